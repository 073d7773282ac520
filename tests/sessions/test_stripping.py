"""Words that leave the session history: gone from the file, and known again all the same."""

from __future__ import annotations

import sqlite3
import uuid
from pathlib import Path

import pytest
from said import AT, Reader, claude, codex, rolled_back, rollout

from memoryd.memory.testing import FakeClock
from memoryd.sessions.history import History
from memoryd.sessions.listing import forks_of, origins_of, page
from memoryd.sessions.stripping import Named, Stripper

WORDS = "the heron stands in the reeds at dawn"
ALL = 2**63 - 1


def one(number: int) -> str:
    """An id that is unique in the world."""
    return str(uuid.UUID(int=number))


@pytest.fixture
def stripper(history: History) -> Stripper:
    """Strips the test's own history."""
    return Stripper(history.database)


def named(history: History, agent: str, session: str) -> Named:
    """The session by the number of its row."""
    with history.database.reading() as cursor:
        row = cursor.execute("select id from session where session = ?", (session,)).fetchone()
    return Named(row[0], agent, session)


def bytes_of(history: History) -> bytes:
    """The file and the log beside it."""
    path = history.database.path
    beside = [path, Path(f"{path}-wal")]
    return b"".join(each.read_bytes() for each in beside if each.exists())


def strip_all(history: History, agent: str, session: str) -> int:
    """Have a session keep no words, as retention does once all is distilled."""
    return Stripper(history.database).up_to(named(history, agent, session), ALL)


def index_all(history: History) -> None:
    """Have everything that was said stand in the full-text index."""
    history.index.catch_up()


# -- forgetting ----------------------------------------------------------------------------------


def test_forgotten_words_are_not_in_the_file(reader: Reader, stripper: Stripper) -> None:
    """Nor in the log beside it, once that is settled; long messages go with all their parts."""
    long = f"{WORDS} " * 600
    reader.write(claude("user", long, one(1)), claude("assistant", WORDS, one(2)))
    reader.read()
    assert b"heron" in bytes_of(reader.history)

    assert stripper.forget("claude-code", "s1") == 4
    assert stripper.settle()

    assert b"heron" not in bytes_of(reader.history)
    assert reader.texts() == []
    assert [line.kept for line in page(reader.history, "claude-code", "s1", 9)] == [False] * 4


def test_nothing_said_later_in_a_forgotten_session_is_kept(
    reader: Reader, stripper: Stripper
) -> None:
    """Whoever reads it: a job that ran at that moment adds digests only."""
    first = claude("user", "before", one(1))
    reader.write(first)
    reader.read()
    stripper.forget("claude-code", "s1")
    reader.write(first, claude("user", WORDS, one(2)))

    reader.read()
    stripper.settle()

    assert reader.texts() == []
    assert b"heron" not in bytes_of(reader.history)
    stored = reader.history.session("claude-code", "s1")
    assert stored is not None and (stored.user_messages, stored.forgotten) == (2, True)


def test_a_copy_of_a_forgotten_message_is_known(reader: Reader, stripper: Stripper) -> None:
    """A resumed session that repeats it keeps its own words only."""
    copied = claude("user", WORDS, one(1))
    reader.write(copied, name="s0")
    reader.read("s0")
    stripper.forget("claude-code", "s0")
    reader.write(copied, claude("user", "mine", one(2)))

    assert reader.read().skipped["copied"] == 1
    assert reader.texts() == ["mine"]


def test_a_copy_of_a_session_forgotten_before_it_was_read_is_known(
    reader: Reader, stripper: Stripper
) -> None:
    """Its transcript is read for the digests alone."""
    copied = claude("user", WORDS, one(1))
    reader.write(copied, name="s0")
    stripper.forget("claude-code", "s0")
    reader.read("s0")
    reader.write(copied, claude("user", "mine", one(2)))

    assert reader.read().skipped["copied"] == 1
    assert reader.texts() == ["mine"]


def test_a_forks_copy_of_forgotten_messages_is_known(rollouts: Reader, stripper: Stripper) -> None:
    """Also where messages have no ids."""
    rollouts.write(codex("user", WORDS), codex("assistant", "b"), name="s0")
    rollouts.read("s0")
    stripper.forget("codex", "s0")
    meta = rollout("session_meta", {"id": "s1", "forked_from_id": "s0"})
    at = "2026-01-06T09:00:00Z"
    said = [codex("user", WORDS, at), codex("assistant", "b", at), codex("user", "c", at)]
    rollouts.write(meta, *said)

    assert rollouts.read().skipped["copied"] == 2
    assert rollouts.texts() == ["c"]


def test_forgetting_reaches_words_that_another_session_keeps_for_it(
    reader: Reader, stripper: Stripper
) -> None:
    """The resumed session was read first, and the original only counted its copies."""
    copied = claude("user", f"{WORDS} " * 600, one(1))
    reader.write(copied, claude("user", "mine", one(2), timestamp="2026-01-05T10:00:00Z"))
    reader.read()
    reader.write(copied, name="s0")
    assert reader.read("s0").skipped["copied"] == 1

    assert stripper.forget("claude-code", "s0") == 0
    assert stripper.forget_copies("claude-code", "s0") == 3
    stripper.settle()

    assert reader.texts() == ["mine"]
    assert b"heron" not in bytes_of(reader.history)


def test_forgetting_leaves_an_older_session_what_it_said_first(
    reader: Reader, stripper: Stripper
) -> None:
    """The forgotten one had only repeated it."""
    copied = claude("user", WORDS, one(1))
    reader.write(copied, name="s0")
    reader.read("s0")
    reader.write(copied, claude("user", "mine", one(2), timestamp="2026-01-05T10:00:00Z"))
    reader.read()

    stripper.forget("claude-code", "s1")

    assert stripper.forget_copies("claude-code", "s1") == 0
    assert reader.texts("s0") == [WORDS]
    assert origins_of(reader.history, "claude-code", "s1") == [("claude-code", "s0")]


def test_forgetting_a_fork_leaves_its_origin_whole(rollouts: Reader, stripper: Stripper) -> None:
    """Whichever was active last."""
    late = "2026-02-01T09:00:00Z"
    rollouts.write(codex("user", WORDS), codex("user", "later", late), name="s0")
    rollouts.read("s0")
    meta = rollout("session_meta", {"id": "s1", "forked_from_id": "s0"})
    rollouts.write(meta, codex("user", WORDS, AT), codex("user", "mine", AT))
    rollouts.read()

    stripper.forget("codex", "s1")

    assert stripper.forget_copies("codex", "s1") == 0
    assert rollouts.texts("s0") == [WORDS, "later"]
    assert forks_of(rollouts.history, "codex", "s0") == [("codex", "s1")]


def test_a_fork_forgotten_before_its_origin_is_read_leaves_that_whole(
    rollouts: Reader, stripper: Stripper
) -> None:
    """What both begin with is the origin's too, and nobody asked to forget that."""
    meta = rollout("session_meta", {"id": "s1", "forked_from_id": "s0"})
    rollouts.write(meta, codex("user", WORDS), codex("user", "mine"))
    rollouts.read()
    stripper.forget("codex", "s1")
    about = rollout("session_meta", {"id": "s0"})
    rollouts.write(about, codex("user", WORDS), codex("user", "later"), name="s0")

    rollouts.read("s0")

    assert rollouts.texts("s0") == [WORDS, "later"]


def test_forgetting_twice_is_forgetting_once(reader: Reader, stripper: Stripper) -> None:
    """And a session that never was can be forgotten."""
    reader.write(claude("user", WORDS, one(1)))
    reader.read()

    assert stripper.forget("claude-code", "s1") == 1
    assert stripper.forget("claude-code", "s1") == 0
    assert stripper.forget("claude-code", "never") == 0


# -- what stays ----------------------------------------------------------------------------------


def test_a_stripped_transcript_read_again_adds_nothing(reader: Reader) -> None:
    """By the agent's own ids: grown, rewritten, cut."""
    said = [claude("user", f"message {n}", one(n)) for n in range(3)]
    reader.write(*said)
    reader.read()
    strip_all(reader.history, "claude-code", "s1")

    for lines in (
        [*said, claude("user", "new", one(9))],
        [claude("user", "older", one(8)), *said],
        said[1:],
    ):
        reader.write(*lines)
        reader.read()

    assert reader.texts() == ["new", "older"]


def test_a_stripped_message_that_its_agent_writes_anew_stays_stripped(reader: Reader) -> None:
    """Its newest words count only while the older ones are kept."""
    reader.write(claude("user", "old words", one(1)))
    reader.read()
    strip_all(reader.history, "claude-code", "s1")
    reader.write(claude("user", "first", one(2)), claude("user", "new words", one(1)))

    reader.read()

    assert reader.texts() == ["first"]


def test_a_stripped_rollout_without_ids_read_again_adds_nothing(rollouts: Reader) -> None:
    """Equal words twice, and turns taken back."""
    said = [codex("user", "yes"), codex("user", "yes"), codex("user", "no"), rolled_back(1)]
    rollouts.write(*said)
    rollouts.read()
    assert strip_all(rollouts.history, "codex", "s1") == 3
    rollouts.write(rollout("turn_context", {"cwd": "/x"}), *said, codex("user", "last"))

    assert rollouts.read().new_messages == 1
    assert rollouts.texts() == ["last"]


def test_turns_projects_and_times_are_counted_as_before(reader: Reader) -> None:
    """Consolidation and the gates count turns, not words."""
    reader.write(*[claude("user", f"message {n}", one(n)) for n in range(3)])
    reader.read()
    history = reader.history
    before = (
        history.runs("claude-code", "s1"),
        history.active_since(0, 2),
        history.project_use(),
        history.newest_said_ms("key:/home/u/demo"),
        history.counts(),
        history.session("claude-code", "s1"),
    )

    strip_all(history, "claude-code", "s1")

    assert before == (
        history.runs("claude-code", "s1"),
        history.active_since(0, 2),
        history.project_use(),
        history.newest_said_ms("key:/home/u/demo"),
        history.counts(),
        history.session("claude-code", "s1"),
    )
    assert history.directories("key:/home/u/demo") == []


def test_only_what_is_old_and_distilled_is_stripped(reader: Reader, stripper: Stripper) -> None:
    """Up to a seq and said before a time; words without a time are as old as their session."""
    days = ["2026-01-01", "2026-01-05", "2026-01-09"]
    reader.write(
        *[
            claude("user", day, one(n), timestamp=f"{day}T09:00:00Z")
            for n, day in enumerate(days, 1)
        ]
    )
    reader.read()
    session = named(reader.history, "claude-code", "s1")
    sixth = 1_767_657_600_000  # 2026-01-06

    assert [each.session for each in stripper.old(sixth)] == ["s1"]
    assert stripper.up_to(session, 1, sixth) == 1
    assert reader.texts() == days[1:]
    assert stripper.up_to(session, 3, sixth) == 1
    assert reader.texts() == days[2:]
    assert stripper.old(sixth) == []


def test_messages_without_times_are_as_old_as_their_session(
    reader: Reader, stripper: Stripper, clock: FakeClock
) -> None:
    """Some agents write none."""
    reader.write(claude("user", "when?", one(1), timestamp=None))
    reader.read()
    session = named(reader.history, "claude-code", "s1")
    now = clock.now_ms()

    assert stripper.old(now) == []
    assert stripper.up_to(session, ALL, now) == 0
    assert [each.session for each in stripper.old(now + 1)] == ["s1"]
    assert stripper.up_to(session, ALL, now + 1) == 1


def test_what_was_said_in_one_directory_is_stripped_alone(
    reader: Reader, stripper: Stripper
) -> None:
    """A session moves through several."""
    reader.write(
        claude("user", "here", one(1), cwd="/a"), claude("user", "there", one(2), cwd="/b")
    )
    reader.read()
    session = named(reader.history, "claude-code", "s1")
    assert sorted(stripper.places()) == [(session, "/a"), (session, "/b")]

    assert stripper.said_in(session, "/a") == 1

    assert reader.texts() == ["there"]
    assert stripper.places() == [(session, "/b")]


# -- nothing kept --------------------------------------------------------------------------------


def test_with_nothing_kept_what_waits_is_read_again(reader: Reader, stripper: Stripper) -> None:
    """What was distilled is known; the rest comes back with a higher seq, once."""
    said = [claude("user", f"heron {n}", one(n)) for n in range(4)]
    reader.write(*said)
    reader.read()

    assert stripper.keep_nothing("claude-code", "s1", 2) == 4
    stripper.settle()
    assert b"heron" not in bytes_of(reader.history)
    assert stripper.keeping() == []

    assert reader.read().new_messages == 2
    assert reader.texts() == ["heron 2", "heron 3"]
    assert reader.seqs() == [5, 6]
    assert reader.read().new_messages == 0


def test_with_nothing_kept_equal_messages_without_ids_are_told_apart(
    rollouts: Reader, stripper: Stripper
) -> None:
    """Two were distilled, two wait."""
    rollouts.write(*[codex("user", "yes")] * 4)
    rollouts.read()
    stripper.keep_nothing("codex", "s1", 2)

    rollouts.read()
    assert rollouts.texts() == ["yes", "yes"]
    stripper.keep_nothing("codex", "s1", 6)
    rollouts.write(*[codex("user", "yes")] * 5)

    rollouts.read()
    assert rollouts.texts() == ["yes"]


def test_with_nothing_kept_digests_of_copies_stay(reader: Reader, stripper: Stripper) -> None:
    """What another forgotten session took away does not come back with the next reading."""
    copied = claude("user", WORDS, one(1))
    reader.write(copied, claude("user", "mine", one(2), timestamp="2026-01-05T10:00:00Z"))
    reader.read()
    reader.write(copied, name="s0")
    reader.read("s0")
    stripper.forget("claude-code", "s0")
    assert stripper.forget_copies("claude-code", "s0") == 1
    stripper.keep_nothing("claude-code", "s1", 0)

    reader.read()

    assert reader.texts() == ["mine"]


def test_with_nothing_kept_a_save_counts_where_it_was(reader: Reader, stripper: Stripper) -> None:
    """Read again, it stands after the same words, not after none of them."""
    block = {"type": "tool_use", "id": "t1", "name": "mcp__memoryd__memory_save", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    reader.write(
        claude("user", "Keep this.", one(1)),
        claude("assistant", [block], one(2)),
        claude("user", [result], one(3)),
        claude("user", "And on.", one(4)),
    )
    reader.read()
    assert reader.history.last_saved("claude-code", "s1") == 1
    stripper.keep_nothing("claude-code", "s1", 0)

    reader.read()

    assert reader.seqs() == [3, 4]
    assert reader.history.last_saved("claude-code", "s1") == 3


def test_an_older_history_knows_where_its_words_were_said(tmp_path: Path, clock: FakeClock) -> None:
    """The step to the present tables fills in what later ones rely on."""
    from memoryd.sessions import schema

    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as database:
        for step in schema.MIGRATIONS[:2]:
            for statement in step:
                database.execute(statement)
        database.execute(schema.BEGIN_SESSION, ("codex", "s1"))
        database.execute(
            "insert into message (session_id, seq, message_id, part, parts, reading, role, text,"
            " cwd, project, line_end) values (1, 1, 'm', 1, 1, 1, 'user', 'x', '/a', 'p', 1)"
        )
        database.execute("pragma user_version = 2")
    database.close()

    with History(path, clock) as opened:
        stripper = Stripper(opened.database)
        assert stripper.places() == [(Named(1, "codex", "s1"), "/a")]
        assert stripper.said_in(Named(1, "codex", "s1"), "/a") == 1


# -- what left the tables before ----------------------------------------------------------------


@pytest.mark.parametrize("way", ["forget", "up_to", "keep_nothing"])
def test_older_words_of_a_message_go_with_the_newer(
    reader: Reader, stripper: Stripper, way: str
) -> None:
    """A message that its agent changed lies in what the index has still to let go of."""
    reader.write(claude("user", WORDS, one(1)))
    reader.read()
    index_all(reader.history)
    reader.write(claude("user", "something else", one(1)))
    reader.read()
    assert b"heron" in bytes_of(reader.history)

    if way == "forget":
        stripper.forget("claude-code", "s1")
    elif way == "up_to":
        stripper.up_to(named(reader.history, "claude-code", "s1"), ALL)
    else:
        stripper.keep_nothing("claude-code", "s1", 0)
    reader.history.index.purge()
    stripper.settle()

    assert b"heron" not in bytes_of(reader.history)


def test_words_of_a_message_that_is_dropped_go_with_the_next_purge(
    reader: Reader, stripper: Stripper
) -> None:
    """Of whatever session: nobody waits for the index to be caught up."""
    reader.write(claude("user", WORDS, one(1)))
    reader.read()
    index_all(reader.history)
    with reader.history.database.transaction() as cursor:
        cursor.execute("delete from message")
    assert b"heron" in bytes_of(reader.history)

    assert reader.history.index.purge()
    stripper.settle()

    assert b"heron" not in bytes_of(reader.history)
