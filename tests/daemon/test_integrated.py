"""From `integrate` to a note: each agent's own events, by the entries put in its settings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from processes import PATIENCE_SECONDS, World

sys.path.append(str(Path(__file__).parent.parent / "sessions"))

from scribes import SCRIBES, STARTED_MS, STEP_MS, Said, Scribe

from memoryd.memory.projects import Resolver
from memoryd.memory.store import Store
from memoryd.sessions.integration.table import AGENTS, SILENT, Agent

pytestmark = pytest.mark.slow

RULES = (
    "Please remember that I prefer tabs over spaces.",
    "We use pnpm for packages, not npm.",
    "Always run the linter before you commit.",
)
#: Other turns, so that the end of a run is worth a look.
TALK = tuple(
    f"And what about part {number} of the parser, how does that work?" for number in range(8)
)
#: Settings as people have them.
SETTINGS: dict[str, bytes | None] = {
    "claude-code": b'{\r\n    "theme": "dark", // mine\r\n    "hooks": {}\r\n}',
    "codex": None,
    "gemini-cli": b'\xef\xbb\xbf{\n\t"ui": {"x": 1},\n}\n',
    "qwen-code": b"",
    "cursor": b'{"version": 1, "hooks": {"stop": [{"command": "say done"}]}}',
}
MINUTES_MS = 60_000


@dataclass
class Person:
    """A person with every agent, each working in a project of its own."""

    world: World

    @property
    def home(self) -> Path:
        """Their home directory."""
        return Path(self.world.environ["HOME"])

    def scribe(self, name: str) -> Scribe:
        """Who writes the transcripts of an agent."""
        if name == "generic" and not (ours := self.home / ".memoryd").exists():
            ours.symlink_to(self.world.home.root)
        scribe = SCRIBES[name](self.home)
        scribe.cwd = str(self.world.root / f"code-{name}")
        Path(scribe.cwd).mkdir(exist_ok=True)
        return scribe

    def notes(self, name: str) -> list[str]:
        """What is remembered of an agent's project."""
        key = Resolver(self.world.home).resolve(str(self.world.root / f"code-{name}")).key
        return sorted(note.body for note in Store.for_project(self.world.home, key).notes())

    def settings(self, agent: Agent) -> Path:
        """The settings of an agent."""
        return agent.settings(self.world.environ)


@pytest.fixture
def person(world: World) -> Person:
    """One whose home was made two hours ago."""
    world.home.prepare()
    made = time.time() - 7200
    os.utime(world.home.identity, (made, made))
    made_by = Person(world)
    for agent in AGENTS:
        path = made_by.settings(agent)
        path.parent.mkdir()
        if (before := SETTINGS[agent.name]) is not None:
            path.write_bytes(before)
    return made_by


def session(scribe: Scribe, number: int, *, minutes_ago: int = 0) -> tuple[str, Path]:
    """A session in which rule ``number`` was said, ended just now or a while ago."""
    name = scribe.sessions[number]
    since = (int(time.time() * 1000) - minutes_ago * MINUTES_MS - STARTED_MS) // STEP_MS - 60
    said = [Said("user", RULES[number], since)]
    for at, text in enumerate(TALK if number == 1 else ()):
        said += [Said("assistant", "It reads tokens.", since + 2 * at + 1)]
        said += [Said("user", text, since + 2 * at + 2)]
    path = scribe.write(said, name)
    then = time.time() - 60 * minutes_ago
    for file in (*path.parent.iterdir(), *path.parent.parent.rglob("*.json")):
        os.utime(file, (then, then))
    return name, path


def documented(agent: str, event: str, name: str, path: Path, cwd: str) -> dict[str, Any]:
    """What the agent says at the event, as its documentation has it."""
    if agent == "cursor":
        common = {
            "conversation_id": name,
            "generation_id": "4f1c",
            "model": "m",
            "hook_event_name": event,
            "cursor_version": "2.1.0",
            "workspace_roots": [cwd],
            "user_email": None,
            "transcript_path": str(path),
        }
        more: dict[str, Mapping[str, Any]] = {
            "sessionEnd": {
                "session_id": name,
                "reason": "completed",
                "duration_ms": 5,
                "is_background_agent": False,
                "final_status": "ok",
            },
            "stop": {"status": "completed", "loop_count": 0},
            "preCompact": {
                "trigger": "auto",
                "context_usage_percent": 85,
                "is_first_compaction": True,
            },
        }
        return {**common, **more[event]}
    common = {
        "session_id": name,
        "transcript_path": str(path),
        "cwd": cwd,
        "hook_event_name": event,
    }
    common |= {"timestamp": "2026-01-05T09:00:00Z"} if agent == "gemini-cli" else {}
    common |= {"permission_mode": "default"} if agent in {"claude-code", "codex"} else {}
    if agent == "codex":
        common |= {"model": "m", **({"turn_id": "t1"} if event != "SessionEnd" else {})}
        if event == "SessionEnd":
            common["transcript_path"] = None  # it may name none
    return (
        common
        | {
            "SessionEnd": {"reason": "other" if agent == "codex" else "exit"},
            "Stop": {"stop_hook_active": False, "last_assistant_message": "Done."},
            "AfterAgent": {"prompt": "x", "prompt_response": "y", "stop_hook_active": False},
            "PreCompact": {"trigger": "auto", "custom_instructions": ""},
            "PreCompress": {"trigger": "auto"},
        }[event]
    )


def commands(settings: Path, agent: Agent) -> dict[str, str]:
    """By event, the command line that is in the agent's settings."""
    text = settings.read_text("utf-8-sig")
    hooks = json.loads(text.replace("// mine", "").replace("},\n}", "}\n}"))["hooks"]
    found = {}
    for event in agent.events:
        entry = hooks[event][-1]
        found[event] = (entry["hooks"][0] if agent.grouped else entry)["command"]
    return found


def fire(person: Person, agent: Agent) -> None:
    """One session for each event, and the event as the agent fires it: a shell runs the entry.

    The prompt event makes no job (``test_prompts.py``).
    """
    scribe = person.scribe(agent.name)
    for event, (ours, _) in agent.events.items():
        if ours == "prompt":
            continue
        # The end of a run is looked at where enough was said: that is session 1.
        name, path = session(scribe, ("session-end", "stop", "pre-compact").index(ours))
        said = documented(agent.name, event, name, path, scribe.cwd)
        command = commands(person.settings(agent), agent)[event]
        while run_entry(person.world, command, said):
            pass  # the machine was too busy for the hook's deadline, as its log says


def run_entry(world: World, command: str, said: Mapping[str, Any]) -> bool:
    """Run what an entry calls, as the agent does; whether the hook left nothing in time."""
    missed = world.home.logs / "hook-errors.log"
    before = missed.read_text() if missed.exists() else ""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(said).encode(),
        env=world.environ,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    new = (missed.read_text() if missed.exists() else "").removeprefix(before)
    late = new.strip().endswith(" deadline")
    assert late or not new or new.strip().endswith(" deadline.unsynced"), new
    return late


@contextmanager
def daemon_that_is(state: str, world: World) -> Iterator[None]:
    """A daemon that runs meanwhile, one that was killed, or none."""
    if state == "stopped":
        yield
        return
    with world.daemon() as running:
        if state == "killed":
            assert running.stop(signal.SIGKILL) == -signal.SIGKILL
        yield


DAEMON = pytest.mark.parametrize("state", ["stopped", "running", "killed"])


@DAEMON
def test_every_event_of_every_hooked_agent_becomes_a_note(person: Person, state: str) -> None:
    """Whatever the daemon was doing; then all settings are as they were, to the byte."""
    names = [agent.name for agent in AGENTS]
    done = person.world.answer("integrate", *names)["agents"]
    assert [each["state"] for each in done] == ["added"] * len(AGENTS)

    with daemon_that_is(state, person.world):
        for agent in AGENTS:
            fire(person, agent)
        person.world.answer("run", "--once")

    assert sorted((job.agent, job.kind, job.reason) for job in person.world.jobs()) == sorted(
        (name, kind, reason)
        for name in names
        for kind, reason in (("finalize", "end"), ("extract", "stop"), ("extract", "compact"))
    )
    assert {job.outcome_code for job in person.world.jobs()} == {"notes.written"}
    assert {name: len(person.notes(name)) for name in names} == dict.fromkeys(names, 3)
    done = person.world.answer("integrate", *names, "--remove")["agents"]
    assert [each["state"] for each in done] == ["removed"] * len(AGENTS)
    found = {agent.name: person.settings(agent) for agent in AGENTS}
    assert {
        name: path.read_bytes() if path.exists() else None for name, path in found.items()
    } == SETTINGS


@DAEMON
def test_every_agent_is_found_by_the_sweep_once_it_is_still(person: Person, state: str) -> None:
    """The ones without hooks, and the others, whose events may be lost: one note each."""
    world, names = person.world, [name for name in SCRIBES if " " not in name]
    assert {agent.name for agent in SILENT} < set(names)
    with daemon_that_is("killed" if state == "killed" else "stopped", world):
        for name in names:
            session(person.scribe(name), 0, minutes_ago=40)

    if state == "running":
        with world.daemon():
            wait_for_jobs(world, len(names))
    else:
        world.answer("run", "--once")

    assert {(job.agent, job.trigger, job.reason) for job in world.jobs()} == {
        (name, "sweep", "idle") for name in names
    }
    assert {job.outcome_code for job in world.jobs()} == {"notes.written"}
    assert {name: len(person.notes(name)) for name in names} == dict.fromkeys(names, 1)


def wait_for_jobs(world: World, count: int) -> None:
    """Until the daemon has made so many, by the sweep that follows its discovery, and worked them.

    Its first sweep may be over before the sessions are found.
    """
    seen = 0
    while len(world.jobs()) < count:
        seen = world.client.changes(seen, 1) or seen
    world.answer("run", "--once")
