"""Envelopes are read strictly: exactly what the hook writes, and a clear error for the rest."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memoryd.cli import hook
from memoryd.jobs import envelope
from memoryd.memory.errors import BadEnvelope, MemorydError


def make_content(**overrides: Any) -> dict[str, Any]:
    """A good envelope as a plain object, with ``overrides``."""
    content: dict[str, Any] = {
        "version": 1,
        "agent": "claude-code",
        "event": "session-end",
        "session": "0b1c",
        "transcript": "/t/0b1c.jsonl",
        "cwd": "/work",
        "reason": "clear",
        "cutoff": 7,
        "time_ms": 1_767_603_600_000,
        "switches": ["MEMORYD_DISABLE_RECALL"],
    }
    return {**content, **overrides}


def write(folder: Path, data: bytes) -> Path:
    """A file with ``data`` where envelopes are."""
    path = folder / "1-2-3.json"
    path.write_bytes(data)
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """A good envelope comes back with every value typed."""
    path = write(tmp_path, json.dumps(make_content()).encode())

    read = envelope.read(path)

    assert (read.agent, read.event, read.session) == ("claude-code", "session-end", "0b1c")
    assert (
        read.transcript,
        read.cwd,
        read.reason,
        read.cutoff,
    ) == ("/t/0b1c.jsonl", "/work", "clear", 7)
    assert (read.time_ms, read.switches) == (1_767_603_600_000, ("MEMORYD_DISABLE_RECALL",))


def test_what_the_hook_writes_is_an_envelope(tmp_path: Path) -> None:
    """The writer without libraries and the strict reader agree, awkward paths included."""
    said: dict[str, object] = {
        "session_id": "s-1",
        "transcript_path": str(tmp_path / 'ü "x"\n\U0001f600.jsonl'),
        "cwd": "/a b\\c",
        "trigger": "auto",
    }

    path = hook.write(str(tmp_path / "home"), hook.envelope("codex", "pre-compact", said))
    read = envelope.read(Path(path))

    assert (said["transcript_path"], said["cwd"]) == (read.transcript, read.cwd)
    assert (read.reason, read.cutoff, read.switches) == ("auto", None, ())


def test_what_an_agent_may_leave_out_may_be_null(tmp_path: Path) -> None:
    """Transcript, cwd, reason and cutoff are null where the hook could not tell."""
    content = make_content(transcript=None, cwd=None, reason=None, cutoff=None)

    read = envelope.read(write(tmp_path, json.dumps(content).encode()))

    assert (read.transcript, read.cwd, read.reason, read.cutoff) == (None, None, None, None)


@pytest.mark.parametrize(
    "overrides",
    [
        {"version": "1"},
        {"version": True},
        {"agent": "Claude Code"},
        {"agent": "a" * 41},
        {"event": "prompt"},
        {"session": ""},
        {"session": "../../etc"},
        {"session": "a\n"},
        {"session": "a" * 129},
        {"session": 5},
        {"transcript": "relative.jsonl"},
        {"transcript": "/a\0b"},
        {"transcript": "/" + "a" * 4096},
        {"cwd": ["/a"]},
        {"reason": "a whole sentence"},
        {"cutoff": -1},
        {"cutoff": 1.5},
        {"cutoff": 2**63},
        {"time_ms": None},
        {"switches": "MEMORYD_DISABLE"},
        {"switches": ["HOME"]},
        {"switches": ["MEMORYD_DISABLE"] * 9},
        {"prompt": "what the person said"},
    ],
    ids=repr,
)
def test_a_value_of_the_wrong_shape_is_refused(tmp_path: Path, overrides: dict[str, Any]) -> None:
    """One wrong value refuses the whole, and the error names the file."""
    path = write(tmp_path, json.dumps(make_content(**overrides)).encode())

    with pytest.raises(BadEnvelope, match=r"1-2-3\.json"):
        envelope.read(path)


TOKEN = "ghp_" + "Zx9Qw7Er" * 5


@pytest.mark.parametrize("reason", [TOKEN, "Clear", "a1", "x" * 60], ids=repr)
def test_a_reason_that_could_be_a_token_is_none(tmp_path: Path, reason: str) -> None:
    """Whoever wrote the envelope: the session is not lost for it."""
    path = write(tmp_path, json.dumps(make_content(reason=reason)).encode())

    assert envelope.read(path).reason is None


def test_a_directory_that_holds_a_secret_is_not_known(tmp_path: Path) -> None:
    """The session is taken in without it."""
    path = write(tmp_path, json.dumps(make_content(cwd=f"/work/{TOKEN}/x")).encode())

    assert envelope.read(path).cwd is None


def test_a_transcript_whose_path_holds_a_secret_is_refused(tmp_path: Path) -> None:
    """Without the path there is nothing to read, and the error does not say it."""
    path = write(tmp_path, json.dumps(make_content(transcript=f"/t/{TOKEN}.jsonl")).encode())

    with pytest.raises(BadEnvelope, match="path holds a secret") as refused:
        envelope.read(path)

    assert TOKEN not in str(refused.value)


def test_paths_that_differ_in_their_uuid_alone_are_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As an agent's transcripts do; what stands around the UUID is looked at all the same."""
    from memoryd.memory import scanner

    looked: list[str] = []
    look = scanner.has_secret
    monkeypatch.setattr(scanner, "has_secret", lambda text: bool(looked.append(text)) or look(text))
    one, other = (f"/once/0b1c5d6e-7f80-4a1b-9c2d-3e4f5a6b7c{end}.jsonl" for end in ("01", "02"))

    assert not envelope.path_is_secret(one) and not envelope.path_is_secret(other)
    assert len(looked) == 1
    assert envelope.path_is_secret(f"/{TOKEN}{one}") and envelope.path_is_secret(f"{other}/{TOKEN}")
    assert envelope.path_is_secret(f"/password={TOKEN[:9]}{one[6:42]}")
    inside = "AEA6CD41-0B2D-A67D-B716-B840F1ECAFAA" + "2c44a6e654en13gkFiPTcToribkSI"
    assert envelope.path_is_secret(f"/Basic {inside}")


@pytest.mark.parametrize("key", sorted(make_content()))
def test_a_missing_key_is_refused(tmp_path: Path, key: str) -> None:
    """Every key is required, also those that may be null."""
    content = make_content()
    del content[key]

    with pytest.raises(BadEnvelope, match=key):
        envelope.read(write(tmp_path, json.dumps(content).encode()))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 40,
        b"[]",
        b"null",
        b'{"version": 1',
        b"[" * 20_000,
        b'{"version":' + b"[" * 60_000,
        b"\xff\xfe",
        json.dumps(make_content()).encode() + b"{}",
        json.dumps(make_content()).encode().replace(b"0b1c.jsonl", b"\\ud800.jsonl"),
        json.dumps(make_content()).encode().replace(b"0b1c.jsonl", b"\xff.jsonl"),
    ],
    ids=lambda data: repr(data[:20]),
)
def test_bytes_that_are_no_envelope_are_refused(tmp_path: Path, data: bytes) -> None:
    """Empty, cut short, nested without end or not text: one error, never another exception."""
    with pytest.raises(BadEnvelope, match="not an envelope"):
        envelope.read(write(tmp_path, data))


def test_another_version_is_refused_by_its_number(tmp_path: Path) -> None:
    """An envelope of a newer memoryd says so, whatever other keys it has."""
    path = write(tmp_path, json.dumps(make_content(version=2, shape="new")).encode())

    with pytest.raises(BadEnvelope, match="version 2") as caught:
        envelope.read(path)

    assert "upgrade memoryd" in caught.value.hint


def test_a_file_too_large_is_refused(tmp_path: Path) -> None:
    """Nothing over 64 KiB is parsed."""
    data = json.dumps(make_content()).encode()

    assert envelope.read(write(tmp_path, data.ljust(64 << 10)))
    with pytest.raises(BadEnvelope, match="larger than"):
        envelope.read(write(tmp_path, data.ljust((64 << 10) + 1)))


def test_links_pipes_and_folders_are_refused(tmp_path: Path) -> None:
    """What is no regular file is refused without following, blocking or reading it."""
    good = write(tmp_path, json.dumps(make_content()).encode())
    (tmp_path / "link.json").symlink_to(good)
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")

    for name in ("link.json", "folder.json", "pipe.json"):
        with pytest.raises(BadEnvelope, match=name):
            envelope.read(tmp_path / name)


def test_a_file_that_is_gone_is_not_a_bad_one(tmp_path: Path) -> None:
    """Another intake took it: that is told apart from what goes to ``inbox/bad``."""
    with pytest.raises(FileNotFoundError):
        envelope.read(tmp_path / "gone.json")


def test_an_envelope_cannot_be_changed(tmp_path: Path) -> None:
    """What was read stays as it was read."""
    read = envelope.read(write(tmp_path, json.dumps(make_content()).encode()))

    with pytest.raises(AttributeError):
        read.cutoff = 9  # type: ignore[misc]


def test_the_error_is_one_of_ours() -> None:
    """Callers catch it with the rest of the tree, and its code is stable."""
    assert issubclass(BadEnvelope, MemorydError)
    assert BadEnvelope.code == "envelope.unreadable"
