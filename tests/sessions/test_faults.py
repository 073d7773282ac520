"""Every adapter on every fault of a transcript: cut, repeated, rewritten, moved, wrong clocks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from scribes import SCRIBES, Said
from test_conformance import CONVERSATION, Bench, bench_of, words

from memoryd.memory.errors import TranscriptError, TranscriptGone
from memoryd.memory.testing import FakeClock
from memoryd.sessions.adapter import Adapter, Parsed, State
from memoryd.sessions.history import History
from memoryd.sessions.ingest import Ingested, ingest

LINES = [name for name, scribe in SCRIBES.items() if scribe.appended and not scribe.database]
#: Agents whose messages have no ids that last.
NAMELESS = {"codex", "cursor", "hermes"}
YEAR_MS = 366 * 86_400_000


@pytest.fixture(params=LINES)
def lines(request: pytest.FixtureRequest, tmp_path: Path, history: History) -> Bench:
    """Each form that is a file of lines."""
    return bench_of(request.param, tmp_path, history)


@pytest.fixture(params=SCRIBES)
def bench(request: pytest.FixtureRequest, tmp_path: Path, history: History) -> Bench:
    """Each form."""
    return bench_of(request.param, tmp_path, history)


@dataclass
class Disturbed:
    """An adapter, in the middle of whose first reading something happens."""

    adapter: Adapter
    happens: Callable[[], object]
    after: int = 1
    left: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        """All else is the adapter's."""
        return getattr(self.adapter, name)

    def parse(self, line: bytes, state: State) -> Parsed:
        """What the adapter says; and it happens."""
        self.left.append(1)
        if len(self.left) == self.after:
            self.happens()
        return self.adapter.parse(line, state)


def read(bench: Bench, path: Path, adapter: Any = None, seq_after: int = 0) -> Ingested:
    """Ingest the session with ``adapter`` in the place of its own, below a cursor."""
    return ingest(
        bench.history,
        adapter or bench.adapter,
        bench.adapter.name,
        bench.scribe.session,
        path,
        None,
        resolver=lambda cwd: f"key:{cwd}",
        exclude=lambda cwd: False,
        seq_after=seq_after,
    )


def parts_of(bench: Bench, said: list[Said]) -> list[bytes]:
    """The lines of a transcript; those before the first message as one."""
    path = bench.scribe.write(said)
    lines = path.read_bytes().splitlines(keepends=True)
    ahead = len(lines) - len(said)
    return [b"".join(lines[:ahead]), *lines[ahead:]]


# -- cut ------------------------------------------------------------------------------------------


def test_a_line_that_was_cut_costs_only_itself(lines: Bench) -> None:
    """Wherever; what stands before it and after it is read."""
    ahead, *said = parts_of(lines, CONVERSATION)
    path = lines.scribe.path(lines.scribe.session)
    for cut in (1, len(said[1]) // 2, len(said[1]) - 2):
        path.write_bytes(b"".join([ahead, said[0], said[1][:cut] + b"\n", *said[2:]]))

        found = lines.read(path)

        assert found.bad_lines == 1, cut
        assert lines.kept() == words([CONVERSATION[0], *CONVERSATION[2:]])


def test_a_line_that_two_writers_tore_costs_only_itself(lines: Bench) -> None:
    """Half a line, and the next one right behind it."""
    ahead, *said = parts_of(lines, CONVERSATION)
    path = lines.scribe.path(lines.scribe.session)
    path.write_bytes(b"".join([ahead, said[0], said[1][:-9], *said[2:]]))

    assert lines.read(path).bad_lines == 1
    assert lines.kept() == words([CONVERSATION[0], CONVERSATION[3]])


def test_a_transcript_that_grows_byte_by_byte_is_read_once(lines: Bench) -> None:
    """A tail that is cut, even within a letter, waits until it is whole."""
    letter = "–".encode()
    data = b"".join(parts_of(lines, CONVERSATION)).replace(b"\\u2013", letter)
    path = lines.scribe.path(lines.scribe.session)
    marks = sorted({*range(0, len(data), 37), data.index(letter) + 1, len(data) - 1})
    added = 0
    for size in [mark for mark in marks if mark > len(parts_of(lines, [])[0])]:
        path.write_bytes(data[:size])
        found = lines.read(path)
        added += found.new_messages
        assert (found.bad_lines, path.stat().st_size) == (0, size)
    path.write_bytes(data)

    assert added + lines.read(path).new_messages == len(CONVERSATION)
    assert lines.kept() == words(CONVERSATION)
    progress = lines.history.progress(lines.adapter.name, lines.scribe.session)
    assert progress is not None and progress.reading == 1


def test_a_huge_line_without_an_end_waits(lines: Bench, small_lines: int) -> None:
    """And is passed over once it has one."""
    data = b"".join(parts_of(lines, CONVERSATION[:1]))
    path = lines.scribe.path(lines.scribe.session)
    path.write_bytes(data + b'{"x":"' + b"y" * (3 * small_lines))

    assert lines.read(path).position == len(data)

    end = b'"}\n' + parts_of(lines, CONVERSATION)[2]
    path.write_bytes(data + b'{"x":"' + b"y" * (3 * small_lines) + end)
    found = lines.read(path)
    assert (found.skipped["too-long"], found.new_messages) == (1, 1)
    assert lines.kept() == words(CONVERSATION[:2])


# -- repeated -------------------------------------------------------------------------------------


def test_a_message_that_is_written_twice_is_one(lines: Bench) -> None:
    """As agents do that resume, where its id says so."""
    ahead, *said = parts_of(lines, CONVERSATION)
    path = lines.scribe.path(lines.scribe.session)
    path.write_bytes(b"".join([ahead, *said, *said[1:3]]))

    lines.read(path)

    twice = [] if lines.adapter.name not in NAMELESS else CONVERSATION[1:3]
    assert sorted(lines.kept()) == sorted(words([*CONVERSATION, *twice]))


def test_of_a_message_that_is_written_anew_the_newest_words_count(lines: Bench) -> None:
    """Whether the first were read before or not; once, and in their place where that was read."""
    if lines.adapter.name in NAMELESS:
        pytest.skip("its messages have no ids")
    ahead, *said = parts_of(lines, CONVERSATION)
    path = lines.scribe.path(lines.scribe.session)
    path.write_bytes(b"".join([ahead, *said[:3]]))
    lines.read(path)
    newer = Said("assistant", "All right: tabs. And two blank lines.", CONVERSATION[1].number)
    expected = words([CONVERSATION[0], newer, *CONVERSATION[2:]])

    path.write_bytes(b"".join([ahead, *said[:3], lines.scribe.line(newer), said[3]]))
    found = lines.read(path)

    assert lines.kept() == expected
    assert found.new_messages == 1
    fresh = lines.scribe.sessions[1]
    bench_path = lines.scribe.path(fresh)
    bench_path.parent.mkdir(parents=True, exist_ok=True)
    bench_path.write_bytes(path.read_bytes().replace(b'"m0', b'"n0'))
    lines.read(bench_path, fresh)
    assert sorted(lines.kept(fresh)) == sorted(expected)


def test_a_newer_version_is_seen_by_a_job_whose_cutoff_lies_before_it(lines: Bench) -> None:
    """Its cursor will pass the place: nothing there may be left unread."""
    if lines.adapter.name in NAMELESS:
        pytest.skip("its messages have no ids")
    path = lines.scribe.write(CONVERSATION[:3])
    cutoff = lines.read(path).position
    with path.open("ab") as file:
        file.write(lines.scribe.line(Said("assistant", "Other words.", 1)))
    lines.read(path)

    found = lines.history.messages(lines.adapter.name, lines.scribe.session, 0, 9, cutoff=cutoff)

    assert [message.text for message in found][1:2] == ["Other words."]
    assert len(found) == 3


def test_a_newer_version_that_is_longer_or_shorter_is_one_message(lines: Bench) -> None:
    """It may need more parts than it had, or fewer; what was said after it stays behind it."""
    if lines.adapter.name in NAMELESS:
        pytest.skip("its messages have no ids")
    ahead, *said = parts_of(lines, CONVERSATION[:2])
    path = lines.scribe.path(lines.scribe.session)
    path.write_bytes(b"".join([ahead, *said]))
    lines.read(path)
    for text in ("x" * 20_000, "y" * 9_000, "z", "w" * 30_000):
        with path.open("ab") as file:
            file.write(lines.scribe.line(Said("assistant", text, 1)))
        lines.read(path)

        kept = lines.kept()
        assert kept[0] == ("user", CONVERSATION[0].text)
        assert "".join(words for _, words in kept[1:]) == text
        assert lines.history.counts().messages == 2


def test_a_message_that_was_distilled_stays_as_it_was(lines: Bench) -> None:
    """Notes stand on its words."""
    if lines.adapter.name in NAMELESS:
        pytest.skip("its messages have no ids")
    path = lines.scribe.write(CONVERSATION[:2])
    seq = lines.read(path).last_seq
    with path.open("ab") as file:
        file.write(lines.scribe.line(Said("assistant", "Other words.", 1)))
        file.write(lines.scribe.line(CONVERSATION[2]))

    read(lines, path, seq_after=seq)

    assert lines.kept() == words(CONVERSATION[:3])


def test_an_id_that_both_sides_use_loses_no_message(lines: Bench) -> None:
    """An agent may count each side's on its own."""
    said = [Said("user", "use tabs", 1), Said("assistant", "Fine.", 1), Said("user", "Thanks", 2)]
    path = lines.scribe.write(said)

    lines.read(path)
    assert lines.read(path).new_messages == 0

    assert lines.kept() == words(said)


# -- rewritten, replaced, moved -------------------------------------------------------------------

NEXT = [*CONVERSATION, Said("user", "and lint", 4), Said("assistant", "Linted.", 5)]


def test_a_transcript_replaced_while_it_is_read_loses_and_doubles_nothing(bench: Bench) -> None:
    """What was begun is read on or is an error that passes; the next time all is there."""
    path = bench.scribe.write(CONVERSATION)

    def replace() -> None:
        old = path.read_bytes()
        bench.scribe.write(NEXT)
        new = path.read_bytes()
        path.write_bytes(old)
        other = path.with_name("other")
        other.write_bytes(new)
        other.replace(path)

    try:
        read(bench, path, Disturbed(bench.adapter, replace))
    except TranscriptError:
        assert bench.scribe.database
    read(bench, path)

    assert bench.kept() == words(NEXT)


def test_a_transcript_emptied_while_it_is_read_loses_nothing_of_what_comes(lines: Bench) -> None:
    """An agent that writes it anew in its place, shorter at first."""
    path = lines.scribe.write(CONVERSATION)
    read(lines, path, Disturbed(lines.adapter, lambda: os.truncate(path, 0), after=2))
    kept = lines.kept()
    assert kept == words(CONVERSATION)[: len(kept)]
    assert read(lines, path).new_messages == 0

    lines.scribe.write(NEXT)

    read(lines, path)
    assert sorted(lines.kept()) == sorted(words(NEXT))


def test_a_transcript_rewritten_to_other_words_adds_them(bench: Bench) -> None:
    """What was ingested stays; none is doubled."""
    path = bench.scribe.write(CONVERSATION)
    bench.read(path)
    other = [Said("user", "use spaces", 20), *CONVERSATION[2:], Said("assistant", "Done.", 21)]
    bench.scribe.write(other)

    assert bench.read(path).new_messages == 2

    assert sorted(bench.kept()) == sorted(words([*CONVERSATION, other[0], other[-1]]))
    assert bench.read(path).new_messages == 0


def test_a_transcript_moved_while_it_is_read_is_read_on(lines: Bench) -> None:
    """As one that its agent archives; and from its new place nothing is read twice."""
    path = lines.scribe.write(CONVERSATION)
    moved = path.with_name(f"moved-{path.name}") if path.name != "messages.jsonl" else None
    moved = moved or path.parent.with_name("moved") / path.name

    def move() -> None:
        moved.parent.mkdir(exist_ok=True)
        path.replace(moved)

    assert read(lines, path, Disturbed(lines.adapter, move)).new_messages == 4
    with pytest.raises(TranscriptGone):
        read(lines, path)
    with moved.open("ab") as file:
        file.write(lines.scribe.line(NEXT[4]))

    assert read(lines, moved).new_messages == 1
    assert lines.kept() == words(NEXT[:5])


def test_a_transcript_that_vanishes_while_it_is_read_is_gone_afterwards(bench: Bench) -> None:
    """What was read of it stays, in order."""
    path = bench.scribe.write(CONVERSATION)

    try:
        read(bench, path, Disturbed(bench.adapter, path.unlink))
    except TranscriptError:
        assert bench.scribe.database

    kept = bench.kept()
    assert kept == words(CONVERSATION)[: len(kept)]
    with pytest.raises(TranscriptGone):
        read(bench, path)


def test_a_transcript_that_is_written_while_it_is_read_is_not_chased(bench: Bench) -> None:
    """What came meanwhile waits for the next reading, and is read then."""
    path = bench.scribe.write(CONVERSATION)

    first = read(bench, path, Disturbed(bench.adapter, lambda: bench.scribe.write(NEXT)))

    assert first.new_messages in {4, 6}
    if bench.scribe.appended and not bench.scribe.database:
        assert first.new_messages == 4
    assert first.new_messages + read(bench, path).new_messages == 6
    assert bench.kept() == words(NEXT)


# -- clocks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("skew_ms", [20 * YEAR_MS, -20 * YEAR_MS, 90_000_000, -90_000_000])
def test_a_clock_that_was_wrong_changes_no_order(
    bench: Bench, clock: FakeClock, skew_ms: int
) -> None:
    """What the agent wrote first came first; a time ahead of now is not believed."""
    clock.advance((CONVERSATION[-1].at_ms - clock.now_ms()) / 1000)
    steps = skew_ms // 1000
    skewed = [
        Said(each.role, each.text, each.number + steps * (at in {1, 2}))
        for at, each in enumerate(CONVERSATION)
    ]
    path = bench.scribe.write(skewed)

    assert bench.read(path).new_messages == 4
    assert bench.read(path).new_messages == 0

    assert sorted(bench.kept()) == sorted(words(CONVERSATION))
    if not bench.scribe.whole:
        return  # files of one message each: there is nothing but the time to order them by
    assert bench.kept() == words(CONVERSATION)
    stored = bench.history.messages(bench.adapter.name, bench.scribe.session, 0, 9)
    times = [message.at_ms for message in stored]
    assert all(at is None or at <= clock.now_ms() + 3_600_000 for at in times)
    if bench.scribe.timed:
        assert [times[0], times[3]] == [CONVERSATION[0].at_ms, CONVERSATION[3].at_ms]
        assert (times[1] is None) == (skew_ms > 0)
    bench.scribe.write([*skewed, Said("user", "and lint", 4)])
    assert bench.read(path).new_messages == 1
