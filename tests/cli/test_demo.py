"""``memoryd demo``: what it shows is true, and it leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import forking
import in_memory
import pytest
from processes import PATIENCE_SECONDS

from memoryd.cli.demo_results import ShownNote, refuse_unsaid
from memoryd.cli.demo_stage import EXAMPLES, Staged, made_up_token
from memoryd.memory.errors import MemorydError
from memoryd.memory.scanner import verdicts

MEMORYD = [sys.executable, "-m", "memoryd.cli.main"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="d", dir=in_memory.place()) as made:
        yield Path(made).resolve()


def start(folder: Path) -> subprocess.Popen[str]:
    """``memoryd demo`` with ``folder`` for temporary files."""
    return subprocess.Popen(
        [*MEMORYD, "demo"],
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder: Path, *options: str) -> tuple[int, str, str]:
    """The exit code and both outputs of one demo, whose own process is forked."""
    environ = os.environ | {"TMPDIR": str(folder)}
    done = forking.run(
        ["demo", *options], environ=environ, cwd=Path.cwd(), seconds=PATIENCE_SECONDS
    )
    return done.returncode, done.stdout, done.stderr


def played(folder: Path, *options: str) -> dict[str, Any]:
    """What ``memoryd demo --json`` says of a demo that went well."""
    code, out, err = run(folder, "--json", *options)
    assert (code, err) == (0, "")
    values: dict[str, Any] = json.loads(out)
    return values


def examples(folder: Path, **changes: tuple[str, str]) -> Path:
    """A copy of the bundled sessions; ``changes`` are words to replace, by agent."""
    made = folder / "sessions"
    made.mkdir()
    for name in EXAMPLES:
        text = (Path(str(files("memoryd.examples"))) / name).read_text("utf-8")
        old, new = changes.get(name.removesuffix(".jsonl").replace("-", "_"), ("", ""))
        assert old in text
        (made / name).write_text(text.replace(old, new) if old else text, "utf-8")
    return made


def processes_in(folder: Path) -> list[str]:
    """Command lines of running processes that name ``folder``."""
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    return [line for line in listing.splitlines() if str(folder) in line]


@pytest.mark.slow
def test_each_note_stands_beside_the_sentence_it_comes_from(folder: Path) -> None:
    """At least four notes, from both agents, each with words of a bundled transcript."""
    said = "".join(
        json.dumps(json.loads(line), ensure_ascii=False)
        for name in EXAMPLES
        for line in (Path(str(files("memoryd.examples"))) / name).read_text("utf-8").splitlines()
    )

    values = played(folder)

    notes = values["notes"]
    assert len(notes) >= 4
    assert {note["agent"] for note in notes} == {"claude-code", "codex"}
    assert all(note["sentences"] for note in notes)
    assert [one for note in notes for one in note["sentences"] if one not in said] == []
    assert any(re.search("[\u0600-\u06ff]", note["statement"]) for note in notes)
    assert [job["outcome"] for job in values["jobs"]] == ["notes.written", "notes.written"]
    assert {note["job"] for note in notes} == {job["id"] for job in values["jobs"]}
    assert {commit["job"] for commit in values["commits"]} >= {job["id"] for job in values["jobs"]}
    assert values["status"]["counts"] == {"completed": 2}
    assert list(folder.iterdir()) == []
    assert processes_in(folder) == []


@pytest.mark.slow
def test_what_is_not_meant_to_last_is_named_and_not_kept(folder: Path) -> None:
    """Questions, quotes, one-off requests, secrets, tool output and proposals become no note."""
    values = played(folder)

    notes = json.dumps(values["notes"], ensure_ascii=False)
    for word in ("yarn", "tabs", "Redis", "GraphQL", "sandbox", "production", "Friday", "summary"):
        assert word not in notes
    reasons = {one["why"] for one in values["not_kept"]}
    assert {
        "a question",
        "quotes somebody else",
        "said for the moment",
        "a secret, replaced before anything was written",
    } <= reasons
    assert any(why.startswith("left to you: ") for why in reasons)
    assert any("same" in why or "already" in why for why in reasons)


@pytest.mark.slow
def test_another_sentence_makes_another_note(folder: Path) -> None:
    """The notes are made from the transcripts, not shipped with the demo."""
    sessions = examples(folder, claude_code=("use pnpm for packages", "use bun for packages"))

    values = played(folder, "--examples", str(sessions))

    statements = [note["statement"] for note in values["notes"]]
    assert "The project uses bun for packages, not npm." in statements
    assert not any("pnpm for packages" in statement for statement in statements)


@pytest.mark.slow
def test_the_secret_is_nowhere_but_in_the_transcript(folder: Path) -> None:
    """With ``--keep``: not in the output, the home, its databases or any git object."""
    token = made_up_token()

    code, out, err = run(folder, "--keep")

    assert (code, err) == (0, "")
    (root,) = folder.iterdir()
    assert str(root) in out
    assert token in next((root / "person" / ".claude").rglob("*.jsonl")).read_text("utf-8")
    assert token not in out
    assert [path for path in root.rglob("*") if _holds(path, token, root / "person")] == []
    (git_dir,) = (root / "home" / "baselines").glob("*.git")
    objects = subprocess.run(
        ["git", "--git-dir", git_dir, "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True,
        check=True,
    ).stdout
    assert b"pnpm" in objects
    assert token.encode() not in objects
    assert processes_in(folder) == []


def _holds(path: Path, token: str, aside: Path) -> bool:
    if not path.is_file() or path.is_relative_to(aside):
        return False
    return token.encode() in path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_tidies_up(folder: Path, number: int, code: int) -> None:
    """Stopped while the daemon runs: it is ended, the folder goes, the exit code says so."""
    demo = start(folder)
    assert demo.stdout is not None
    for line in demo.stdout:
        if "ready after" in line:
            break

    demo.send_signal(number)
    demo.communicate()

    assert demo.returncode == code
    assert list(folder.iterdir()) == []
    assert processes_in(folder) == []


@pytest.mark.slow
def test_sessions_that_give_too_little_are_a_failure(folder: Path) -> None:
    """Two sessions without a lasting word: one clear line, exit code 1, nothing left
    without --keep."""
    sessions = folder / "sessions"
    sessions.mkdir()
    line = {"type": "user", "uuid": "u1", "sessionId": "s1", "cwd": "{{project}}"}
    said = {"message": {"role": "user", "content": "Fix the test."}}
    (sessions / "claude-code.jsonl").write_text(json.dumps(line | said) + "\n")
    meta = {"type": "session_meta", "payload": {"id": "0198aaaa-0000-7000-8000-000000000001"}}
    (sessions / "codex.jsonl").write_text(json.dumps(meta) + "\n")

    code, _, err = run(folder, "--examples", str(sessions))
    assert code == 1
    assert err.startswith("memoryd: the sessions gave 0 notes")
    assert list(folder.iterdir()) == [sessions]

    code, _, err = run(folder, "--examples", str(sessions), "--keep")
    (kept,) = set(folder.iterdir()) - {sessions}
    assert code == 1
    assert f"the demo's folder is kept: {kept}" in err


@pytest.mark.parametrize("sentences", [("Always use tabs.", "Always use yarn."), ()])
def test_a_note_that_nobody_said_is_a_failure(tmp_path: Path, sentences: tuple[str, ...]) -> None:
    """A note with one sentence that no transcript holds, or with none at all, is not shown."""
    transcript = tmp_path / "s1.jsonl"
    transcript.write_text('{"message": {"content": "Always  use tabs. Thanks."}}\n{"cut')
    staged = Staged("claude-code", "s1", transcript, lines=2)
    said = ShownNote("feedback/x.md", "feedback", "x", "X.", sentences, "claude-code", "j1", "")

    with pytest.raises(MemorydError, match=r"feedback/x\.md stands on nothing"):
        refuse_unsaid([said], [staged])

    refuse_unsaid([replace(said, sentences=("Always use tabs.",))], [staged])


def test_a_missing_transcript_is_named(folder: Path) -> None:
    """An examples folder without the files: the file is named, nothing is left, exit code 1."""
    code, out, err = run(folder, "--json", "--examples", str(folder))

    assert (code, out) == (1, "")
    assert f"the transcript {folder / 'claude-code.jsonl'} cannot be read" in err
    assert list(folder.iterdir()) == []


def test_the_bundled_sessions_hold_no_secret_themselves() -> None:
    """The token is put in when the demo runs, so that no scanner trips on the repository."""
    for name in EXAMPLES:
        text = (Path(str(files("memoryd.examples"))) / name).read_text("utf-8")

        assert "{{token}}" in text or name != "claude-code.jsonl"
        assert "secret" not in verdicts(text)
    assert "secret" in verdicts(made_up_token())
