"""From a transcript to the session history: what is kept, once, and where reading goes on."""

from __future__ import annotations

import os
import sqlite3
import uuid
from pathlib import Path

import pytest
from said import Reader, claude, codex, rolled_back, rollout

from memoryd.memory import seams
from memoryd.memory.errors import HistoryError, TranscriptError, TranscriptGone
from memoryd.memory.own_blocks import cited, strip_own_blocks
from memoryd.memory.testing import FakeClock
from memoryd.sessions import ingest as ingestion
from memoryd.sessions import line_ends, lines
from memoryd.sessions.documents import read_document
from memoryd.sessions.history import History
from memoryd.sessions.split import PART_CHARACTERS, parts


def turns(count: int) -> list[bytes]:
    """User messages of Claude Code, each with its own id."""
    return [claude("user", f"message {n}", f"u{n}") for n in range(count)]


def test_reading_goes_on_where_it_stopped(reader: Reader) -> None:
    """Only what was appended is added."""
    reader.write(*turns(2))
    reader.read()
    path = reader.write(*turns(3))

    found = reader.read()

    assert (1, 3, path.stat().st_size) == (found.new_messages, found.first_seq, found.position)
    assert reader.seqs() == [1, 2, 3]


def test_nothing_past_the_cutoff_or_an_incomplete_tail_is_read(reader: Reader) -> None:
    """The last line waits until it is whole."""
    first, second, third = turns(3)
    reader.write(first, second, third[:-1])

    assert reader.read(cutoff=len(first) + 5).new_messages == 1
    assert len(first + second) == reader.read(cutoff=10**9).position


def test_a_rewritten_transcript_adds_only_what_is_new(reader: Reader) -> None:
    """Read again from its beginning, with the same seqs."""
    reader.write(*turns(3))
    reader.read()
    reader.write(claude("user", "new", "n1"), *turns(2))

    assert reader.read().new_messages == 1
    assert reader.texts() == ["message 0", "message 1", "message 2", "new"]


def test_equal_messages_without_ids_are_told_apart(rollouts: Reader) -> None:
    """Twice said is twice kept, and read again still twice."""
    rollouts.write(codex("user", "yes"), codex("user", "yes"))
    rollouts.read()
    rollouts.write(codex("user", "first"), codex("user", "yes"), codex("user", "yes"))
    rollouts.read()

    assert rollouts.texts() == ["yes", "yes", "first"]

    rollouts.write(*[codex("user", "yes")] * 3)
    rollouts.read()

    assert rollouts.texts() == ["yes", "yes", "first", "yes"]


def test_turns_taken_back_are_not_distilled(rollouts: Reader) -> None:
    """Neither the words nor the answer, also when the transcript is read again."""
    said = [codex("user", "a"), codex("user", "b"), codex("assistant", "c"), rolled_back(1)]
    rollouts.write(*said)
    rollouts.read()
    assert rollouts.texts() == ["a"]

    rollouts.write(rollout("turn_context", {"cwd": "/x"}), *said, codex("user", "d"))
    rollouts.read()

    assert rollouts.texts() == ["a", "d"]


def test_a_fork_keeps_only_its_own_messages(rollouts: Reader) -> None:
    """Codex: the copied beginning stays with the session it came from."""
    rollouts.write(codex("user", "a"), codex("assistant", "b"), name="s0")
    rollouts.read("s0")
    meta = rollout("session_meta", {"id": "s1", "forked_from_id": "s0"})
    at = "2026-01-06T09:00:00Z"
    rollouts.write(meta, codex("user", "a", at), codex("assistant", "b", at), codex("user", "c"))

    assert rollouts.read().skipped["copied"] == 2
    assert rollouts.texts() == ["c"]


def test_a_message_with_the_same_uuid_in_another_session_is_a_copy(reader: Reader) -> None:
    """A changed text, or an id that is no UUID, is no copy."""
    same, changed = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
    reader.write(claude("user", "a", same), claude("user", "b", changed), name="s0")
    reader.read("s0")
    reader.write(claude("user", "a", same), claude("user", "c", changed))

    assert reader.read().skipped["copied"] == 1
    assert reader.texts() == ["c"]


def test_a_child_session_is_marked_and_keeps_nothing(rollouts: Reader) -> None:
    """Its messages are counted as a child's."""
    meta = rollout("session_meta", {"id": "s1", "parent_thread_id": "p"})
    rollouts.write(meta, codex("user", "x"))

    found = rollouts.read()

    assert (found.kind, found.new_messages, found.skipped["child"]) == ("child", 0, 1)
    stored = rollouts.history.session("codex", "s1")
    assert stored is not None and (stored.kind, stored.parent) == ("child", "p")


def test_a_secret_never_reaches_the_file(reader: Reader, tmp_path: Path) -> None:
    """Nor the log beside it."""
    secret = "ghp_" + "a1B2" * 9
    reader.write(claude("user", f"my token is {secret}"))

    assert reader.read().redacted == 1
    files = [path.read_bytes() for path in tmp_path.glob("sessions.sqlite*")]
    assert not any(secret.encode() in data for data in files)


def test_an_id_or_a_directory_that_holds_a_secret_never_reaches_the_file(
    reader: Reader, tmp_path: Path
) -> None:
    """The message is kept, known by what it says; where it was said is not known."""
    secret = "ghp_" + "a1B2" * 9
    call = {"type": "tool_use", "id": secret, "name": "Bash", "input": {}}
    reader.write(
        claude("user", "one", secret, cwd=f"/srv/{secret}/x"),
        claude("assistant", [call], "u2"),
        claude("user", "two", "toolu_" + "aB3" * 8, cwd="/work"),
    )

    reader.read()
    reader.read()

    assert reader.texts() == ["one", "two"]
    found = reader.history.messages("claude-code", "s1", 0, 9)
    assert [message.cwd for message in found] == ["", "/work"]
    files = [path.read_bytes() for path in tmp_path.glob("sessions.sqlite*")]
    assert not any(secret.encode() in data for data in files)


def test_a_side_chain_of_a_session_named_by_a_secret_is_a_child(reader: Reader) -> None:
    """Its parent is not known, but it is no person's."""
    owner = "ghp_" + "a1B2" * 9
    reader.write(claude("user", "a task", "u1", isSidechain=True, sessionId=owner))

    assert reader.read().kind == "child"


def test_our_own_blocks_are_removed_and_an_emptied_message_counted(reader: Reader) -> None:
    """What we handed out is not learned again; what was cited is handed back."""
    ours = "<memoryd-context>\nnote\n</memoryd-context>"
    used = "done\n<memory-used>project/a, user/b</memory-used>"
    reader.write(claude("user", ours, "u1"), claude("assistant", used, "a1"))

    found = reader.read()

    assert (found.skipped["own-block"], found.cited) == (1, ("project/a", "user/b"))
    assert reader.texts() == ["done"]


def test_excluded_directories_are_not_kept(reader: Reader) -> None:
    """Counted, and passed over for good."""
    reader.write(claude("user", "x", cwd="/secret"), *turns(1))

    assert reader.read(excluded="/secret").skipped["excluded"] == 1
    assert reader.texts() == ["message 0"]


def test_a_long_message_is_kept_in_parts(reader: Reader) -> None:
    """In order, each with its seq; it counts once."""
    text = "A sentence of some words. " * 800
    reader.write(claude("user", text, "u1"))

    found = reader.read()

    kept = reader.history.messages("claude-code", "s1", 0, 10)
    assert [message.id for message in kept] == ["u1", "u1#2", "u1#3"]
    assert text.strip() == "".join(message.text for message in kept)
    assert found.new_messages == 1


def test_parts_are_full_where_nothing_divides_them() -> None:
    """One long word is still cut."""
    cut = parts("x" * (PART_CHARACTERS + 1))

    assert [len(part) for part in cut] == [PART_CHARACTERS, 1]


def test_a_bad_line_is_skipped_and_counted(reader: Reader) -> None:
    """The rest of the transcript is read."""
    reader.write(b"{bad\n", *turns(1))

    found = reader.read()

    assert (found.bad_lines, found.new_messages) == (1, 1)


def test_a_line_too_long_is_passed_over(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted and reading goes on after it, also the next time."""
    monkeypatch.setattr(lines, "LINE_LIMIT_BYTES", 1000)
    reader.write(claude("user", "x" * 200_000), *turns(1))

    assert reader.read().skipped["too-long"] == 1
    assert reader.read().new_messages == 0


def test_where_a_transcript_without_a_line_ends_is_answered_at_once(reader: Reader) -> None:
    """A terabyte of nothing is not looked through; what is whole before it is read all the same."""
    path = reader.write(*turns(1))
    os.truncate(path, 1 << 40)

    assert lines.whole_lines_end(path) == 1 << 40
    assert reader.read(cutoff=1 << 40).new_messages == 1


def test_words_behind_a_terabyte_of_nothing_are_read(reader: Reader) -> None:
    """A power cut left a hole, and the agent went on: one bad line, and what was said after it."""
    path = reader.write(*turns(1))
    os.truncate(path, 1 << 40)
    with path.open("ab") as file:
        file.write(b"\n" + b"".join(turns(2)[1:]))

    found = reader.read()

    assert (found.new_messages, found.skipped) == (2, {"too-long": 1})


def test_a_line_without_an_end_is_passed_over_in_pieces(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each counts and each is recorded, so that whoever has no more time goes on from there."""
    monkeypatch.setattr(lines, "LINE_LIMIT_BYTES", 1000)
    monkeypatch.setattr(line_ends, "PASS_BYTES", 70_000)
    monkeypatch.setattr(ingestion, "BATCH_BYTES", 1000)
    reader.write(claude("user", "x" * 200_000), *turns(1))

    def no_time() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        reader.read(recorded=no_time)
    found = reader.read()

    assert (found.new_messages, found.skipped["too-long"]) == (1, 1)


def test_a_line_that_would_fill_the_memory_is_passed_over(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen mebibytes of empty lists are a gigabyte once they are parsed."""
    monkeypatch.setattr(lines, "BRACKETS_LIMIT", 350_000)
    bomb = b'{"type": "user", "message": {"role": "user", "content": [%s[]]}}\n' % (
        b"[]," * 350_000
    )
    reader.write(bomb, *turns(1))

    found = reader.read()

    assert (found.skipped["too-long"], found.new_messages) == (1, 1)


def test_a_document_that_would_fill_the_memory_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is taken apart; its job says `transcript.unreadable`."""
    path = tmp_path / "session.json"
    path.write_bytes(b'{"messages": [%s[]]}' % (b"[]," * 350_000))
    assert len(read_document(path)) > 1_000_000
    monkeypatch.setattr(lines, "BRACKETS_LIMIT", 80_000)

    with pytest.raises(TranscriptError, match="too intricate"):
        read_document(path)


@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_crash_beside_a_commit_doubles_and_loses_nothing(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, crash: str
) -> None:
    """Messages and position are one transaction."""
    monkeypatch.setattr(ingestion, "BATCH_MESSAGES", 2)
    reader.write(*turns(5))

    def stop(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as broken, pytest.raises(RuntimeError):
        if crash == "after":
            broken.setattr(seams, "hook", stop)
        else:
            broken.setattr(History, "_move", stop)
        reader.read()
    reader.read()

    assert [f"message {n}" for n in range(5)] == reader.texts()
    assert reader.seqs() == [1, 2, 3, 4, 5]


def test_two_readers_of_one_session_double_nothing(
    rollouts: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one whose position moved begins anew from there."""
    rollouts.write(codex("user", "a"), codex("user", "b"))
    record, raced = History.record, []

    def after_another(self: History, *values: object, **more: object) -> object:
        if not raced:
            raced.append(True)
            rollouts.read()
        return record(self, *values, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(History, "record", after_another)
    rollouts.read()

    assert rollouts.texts() == ["a", "b"]


def test_a_transcript_that_cannot_be_read_says_so(reader: Reader, tmp_path: Path) -> None:
    """Gone, a folder and a pipe are told apart from a transcript; nothing hangs."""
    with pytest.raises(TranscriptGone):
        reader.read("gone")
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name in ("folder", "pipe"):
        with pytest.raises(TranscriptError, match="not a file"):
            reader.read(name)


def test_permission_denied_is_a_transcript_error(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to check."""
    path = reader.write(*turns(1))

    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as broken, pytest.raises(TranscriptError, match="who may read"):
        broken.setattr(os, "open", denied)
        lines.open_transcript(path)


@pytest.mark.parametrize(("data", "end"), [(b"", 0), (b"ab", 0), (b"a\nb", 2), (b"a\n", 2)])
def test_the_end_of_the_last_whole_line(tmp_path: Path, data: bytes, end: int) -> None:
    """Found from the tail, also a long way back."""
    path = tmp_path / "t"
    path.write_bytes(data)
    assert end == lines.whole_lines_end(path)

    path.write_bytes(data + b"x" * 200_000)
    assert end == lines.whole_lines_end(path)


def test_a_newer_history_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    """And left as it is."""
    path = tmp_path / "newer.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 99")
    connection.close()

    with pytest.raises(HistoryError, match="newer memoryd"):
        History(path, clock).open()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    """With what to do about it."""
    path = tmp_path / "sessions.sqlite"
    path.write_bytes(b"no database at all" * 100)

    with pytest.raises(HistoryError, match="keeps the file under another name"):
        History(path, clock).open()


def test_the_history_is_the_persons_alone(reader: Reader, tmp_path: Path) -> None:
    """0600, its log too."""
    reader.write(*turns(1))
    reader.read()

    modes = {path.stat().st_mode & 0o777 for path in tmp_path.glob("sessions.sqlite*")}
    assert {0o600} == modes


def test_counts_say_what_is_kept(reader: Reader) -> None:
    """For status."""
    reader.write(b"bad\n", *turns(2), claude("assistant", "ok", "a1"))
    reader.read()

    counts = reader.history.counts()

    assert (
        counts.sessions,
        counts.messages,
        counts.user_messages,
        counts.bad_lines,
    ) == (1, 3, 2, 1)


def test_an_unclosed_own_block_is_cut_to_the_end() -> None:
    """Only where it begins a line."""
    assert strip_own_blocks("a\n<memoryd-context>\nnote") == "a"
    assert strip_own_blocks("say <memoryd-context> x") == "say <memoryd-context> x"
    assert cited("no tags") == ()


def test_a_file_replaced_while_it_is_read_is_read_again_the_next_time(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The open file is read to its end; the new one is not mistaken for it."""
    reader.write(*turns(3))
    replaced = b"".join(claude("user", f"other {n}", f"o{n}") for n in range(4))
    open_transcript = lines.open_transcript

    def replace_then(path: Path) -> object:
        file = open_transcript(path)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(replaced)
        fresh.replace(path)
        return file

    with monkeypatch.context() as raced:
        raced.setattr(lines, "open_transcript", replace_then)
        reader.read()
    reader.read()

    assert reader.texts() == [f"message {n}" for n in range(3)] + [f"other {n}" for n in range(4)]
