"""How well transcripts are read, by agent and version: when a person is told that less is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from said import Reader, claude

from memoryd.sessions.drift import Reading, read_worse, readings, unreadable
from memoryd.sessions.history import History


def read(reader: Reader, session: str, version: str, *types: str, said: int = 10) -> None:
    """Have a session of a version read that holds lines of these types."""
    lines = [
        claude("user", f"{session} {n}", f"{session}{n}", version=version) for n in range(said)
    ]
    lines += [json.dumps({"type": each}).encode() + b"\n" for each in types]
    reader.write(*lines, name=session)
    reader.read(session)


def test_skipped_lines_are_told_by_version_the_newest_first(reader: Reader) -> None:
    """Numbers count as numbers; what is left out on purpose is no unknown type."""
    read(reader, "s1", "2.1.9", "progress", "novelty")
    read(reader, "s2", "2.1.10", "novelty", "progress", "curiosity")
    read(reader, "s3", "2.1.10", "novelty")

    found = readings(reader.history)

    assert [(each.version, each.sessions) for each in found] == [("2.1.10", 2), ("2.1.9", 1)]
    assert found[0].unknown == {"novelty": 2, "curiosity": 1}
    assert (found[0].known, found[0].messages, found[0].lines) == ({"progress": 1}, 20, 24)


def test_a_session_counts_under_the_version_it_named_last(reader: Reader) -> None:
    """Agents are upgraded in the middle of a session."""
    reader.write(claude("user", "a", "u1", version="2.1.9"))
    reader.read()
    reader.write(
        claude("user", "a", "u1", version="2.1.9"), claude("user", "b", "u2", version="2.2.0")
    )
    reader.read()

    assert [each.version for each in readings(reader.history)] == ["2.2.0"]


@pytest.mark.parametrize(
    ("newest", "older", "worse"),
    [
        (30, 0, True),
        (30, None, True),
        (30, 20, False),
        (19, 0, False),
        (30, 12, True),
    ],
)
def test_a_version_is_named_once_much_more_of_it_is_unknown(
    newest: int, older: int | None, worse: bool
) -> None:
    """Some lines, a tenth of all, and twice the share of those before it."""
    found = [Reading("codex", "2.0", messages=70, unknown={"novelty": newest})]
    if older is not None:
        found.append(Reading("codex", "1.0", messages=70, unknown={"novelty": older}))

    assert [one.version for one, _ in read_worse(found)] == (["2.0"] if worse else [])


def test_few_unknown_lines_among_many_are_no_matter() -> None:
    """Under a tenth."""
    assert read_worse([Reading("codex", "2.0", messages=1000, unknown={"novelty": 99})]) == []


def test_only_the_newest_version_is_judged() -> None:
    """What an older one was like is past; a damaged line counts as an unknown one."""
    old = Reading("codex", "1.0", messages=10, unknown={"novelty": 90})

    assert read_worse([Reading("codex", "2.0", messages=90), old]) == []
    assert read_worse([Reading("codex", "2.0", messages=10, bad_lines=90), old]) == []
    assert read_worse([Reading("codex", "2.0", messages=10, bad_lines=90)]) != []


def test_a_release_is_newer_than_what_led_to_it(reader: Reader) -> None:
    """And sessions that name no version are the oldest."""
    for number, version in enumerate(["1.2.0-rc.1", "1.2.0", "", "1.10.0", "v1.9.9"]):
        read(reader, f"s{number}", version)

    versions = [each.version for each in readings(reader.history)]

    assert versions == ["1.10.0", "v1.9.9", "1.2.0", "1.2.0-rc.1", ""]


def test_transcripts_that_are_gone_are_counted(reader: Reader) -> None:
    """What was read of them is kept."""
    read(reader, "s1", "2.1.9")
    (reader.folder / "s1.jsonl").unlink()

    (one,) = readings(reader.history)

    assert (one.gone, one.messages) == (1, 10)


def test_a_forgotten_session_that_was_never_read_is_no_reading(history: History) -> None:
    """It has no lines."""
    from memoryd.sessions.stripping import Stripper

    Stripper(history.database).forget("codex", "never")

    assert readings(history) == []


def test_databases_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """Those of the agents that are asked for."""
    path = tmp_path / ".estacoda" / "sessions.sqlite"
    path.parent.mkdir()
    path.write_bytes(b"no database" * 500)
    environ = {"HOME": str(tmp_path), "ESTACODA_HOME": str(tmp_path)}

    (found,) = unreadable(environ)

    assert found[0] == "estacoda" and str(path) in found[1]
    assert unreadable(environ, ("codex", "hermes")) == []
