"""A coding agent as ``[provider] command``: it answers, and leaves the tracks that agents leave.

``python hooked_agent.py FORM KEPT HOOK WORK`` reads a question on standard input, writes a session
with it in the form of ``claude-code`` or ``codex`` below the person's folder, fires the installed
hook at ``HOOK`` with the documented event (not where that is empty) and prints an answer. Of our
three guards only those named in ``KEPT`` reach it: else it drops our variables, works in ``WORK``,
or takes the lines that enclose the prompt away.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoryd.memory.own_calls import CLOSE, OPEN

RULE = "Always run the linter before you commit."


def main() -> None:
    """Answer one question."""
    form, kept, hook, work = sys.argv[1:]
    asked = sys.stdin.read()
    if "environment" not in kept:
        for name in ("MEMORYD_OWN_CALL", "MEMORYD_DISABLE"):
            os.environ.pop(name)
    if "directory" not in kept:
        os.chdir(work)
    if "content" not in kept:
        asked = asked.replace(OPEN, "").replace(CLOSE, "")
    evidence = [{"message": None, "span": RULE}]
    told = {"statement": RULE, "category": "preference", "evidence": evidence}
    told |= {"explicitness": "explicit", "sensitivity": "none", "confidence": 0.9}
    answer = json.dumps({"facts": [told]})
    session = str(uuid.uuid4())
    write = codex if form == "codex" else claude
    path = write(session, asked.strip(), answer)
    if hook:
        end(hook, form, session, path)
    sys.stdout.write(answer)


def claude(session: str, asked: str, answer: str) -> Path:
    """What ``claude -p`` leaves."""
    about = {"sessionId": session, "cwd": here(), "isSidechain": False, "userType": "external"}
    said = {"role": "user", "content": asked}
    told = {"role": "assistant", "content": [{"type": "text", "text": answer}]}
    lines: list[dict[str, Any]] = [
        {"type": "queue-operation", "operation": "enqueue", "content": asked, "timestamp": now()}
    ]
    for role, message in (("user", said), ("assistant", told)):
        known = {"type": role, "uuid": str(uuid.uuid4()), "timestamp": now()}
        lines.append({**known, **about, "message": message})
    folder = "".join(letter if letter.isalnum() else "-" for letter in here())
    return put(Path.home() / ".claude/projects" / folder / f"{session}.jsonl", lines)


def codex(session: str, asked: str, answer: str) -> Path:
    """What ``codex exec`` leaves."""
    meta = {"id": session, "cwd": here(), "source": "exec", "originator": "codex_exec"}
    context = f"<environment_context>\n  <cwd>{here()}</cwd>\n</environment_context>"
    said = [("user", "input_text", context), ("user", "input_text", asked)]
    said.append(("assistant", "output_text", answer))
    payloads: list[tuple[str, dict[str, Any]]] = [("session_meta", meta)]
    for role, kind, text in said:
        content = [{"type": kind, "text": text}]
        payloads.append(("response_item", {"type": "message", "role": role, "content": content}))
    lines = [{"timestamp": now(), "type": kind, "payload": each} for kind, each in payloads]
    name = f"rollout-2026-01-05T09-00-00-{session}.jsonl"
    return put(Path.home() / ".codex/sessions/2026/01/05" / name, lines)


def put(path: Path, lines: list[dict[str, Any]]) -> Path:
    """Write the transcript."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def here() -> str:
    """The working directory."""
    return str(Path.cwd())


def now() -> str:
    """The time as agents write it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def end(hook: str, agent: str, session: str, path: Path) -> None:
    """The end of the session, as its hook is told of it."""
    event = {"session_id": session, "transcript_path": str(path), "cwd": here()}
    event |= {"hook_event_name": "SessionEnd", "permission_mode": "default", "reason": "other"}
    for ours in ("stop", "session-end"):
        fire([hook, agent, ours], json.dumps(event).encode())


def fire(command: list[str], event: bytes) -> None:
    """Run the hook; again where the machine was too busy for its deadline, as it then says."""
    missed = Path(os.environ["MEMORYD_HOME"], "logs/hook-errors.log")
    for _ in range(20):
        before = missed.read_bytes() if missed.exists() else b""
        subprocess.run(command, input=event, check=True)
        if before == (missed.read_bytes() if missed.exists() else b""):
            return
    raise AssertionError(before)


if __name__ == "__main__":
    main()
