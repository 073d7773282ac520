"""Searching the session history: what is found, in which order, and what is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from said import Reader, claude
from said_before import DAY_MS, Past

from memoryd.memory import seams
from memoryd.memory.testing import FakeClock
from memoryd.sessions import finding, schema
from memoryd.sessions import index as index_module
from memoryd.sessions.database import Database
from memoryd.sessions.excerpts import EXCERPT_CHARACTERS
from memoryd.sessions.history import History
from memoryd.sessions.index import Index, unindex
from memoryd.sessions.search import Query, Search
from memoryd.sessions.stored import Keep, RollBack


@pytest.fixture
def past(tmp_path: Path, clock: FakeClock) -> Past:
    """A history in which nothing was said yet."""
    return Past(tmp_path / "sessions.sqlite", clock)


def places(past: Past) -> int:
    """How many messages stand in the index, each once."""
    standing = past.ask("select place from indexed order by place")
    assert standing == past.ask(
        "select rowid from full_text where full_text match ?", '"=a636f646578"'
    )
    return len(standing)


# -- what is found -------------------------------------------------------------------------------


def test_messages_with_all_words_are_found(past: Past) -> None:
    """And no others."""
    past.say("the lease timeout is 300 s", "a lease", "a timeout")

    answer = past.answer("Timeout LEASE")

    assert [hit.excerpt for hit in answer.hits] == ["the lease timeout is 300 s"]
    assert (answer.all_words, answer.capped, answer.waiting) == (True, False, 0)
    assert answer.words == ("Timeout", "LEASE")


def test_a_hit_says_where_it_stands(past: Past) -> None:
    """Enough to show it and to go there."""
    past.say("hello", "use pnpm", session="s7", agent="codex", project="shop", at_ms=5_000)

    (hit,) = past.answer("pnpm").hits

    assert (hit.agent, hit.session, hit.kind, hit.seq) == ("codex", "s7", "root", 2)
    assert (hit.role, hit.at_ms, hit.project, hit.cwd) == ("user", 5_001, "shop", "/srv/shop")
    assert hit.share == 1.0


def test_the_filters_narrow(past: Past) -> None:
    """By project, agent, session, role and time, alone and together."""
    past.say("pnpm one", session="s1", agent="codex", project="a", at_ms=1 * DAY_MS)
    past.say("pnpm two", session="s2", agent="cursor", project="b", at_ms=2 * DAY_MS)
    past.say(
        "pnpm six", session="s1", agent="codex", project="b", at_ms=3 * DAY_MS, role="assistant"
    )

    assert past.find("pnpm", project="b") == ["pnpm six", "pnpm two"]
    assert past.find("pnpm", agent="codex") == ["pnpm six", "pnpm one"]
    assert past.find("pnpm", session="s2") == ["pnpm two"]
    assert past.find("pnpm", role="assistant") == ["pnpm six"]
    assert past.find("pnpm", since_ms=2 * DAY_MS) == ["pnpm six", "pnpm two"]
    assert past.find("pnpm", until_ms=2 * DAY_MS) == ["pnpm one"]
    assert past.find("pnpm", without="s1") == ["pnpm two"]
    assert past.find("pnpm", project="b", session="s1", since_ms=DAY_MS) == ["pnpm six"]
    assert past.find("pnpm", project="never") == past.find("pnpm", session="never") == []


def test_what_was_taken_back_is_not_found(past: Past) -> None:
    """Whether it was indexed before or after."""
    past.say("use pnpm")
    assert past.find("pnpm") == ["use pnpm"]

    past.record(RollBack(1))

    assert past.find("pnpm") == []
    past.say("use pnpm and yarn", session="s2")
    past.record(RollBack(1), session="s2")
    assert past.find("pnpm") == []


def test_a_message_read_again_is_found_once(reader: Reader, tmp_path: Path) -> None:
    """A rewritten transcript adds only what is new, here too."""
    past = Past(tmp_path / "sessions.sqlite")
    reader.write(claude("user", "use pnpm", "u1"))
    reader.read()
    assert past.find("pnpm") == ["use pnpm"]

    reader.write(claude("user", "new pnpm head", "u0"), claude("user", "use pnpm", "u1"))
    reader.read()

    assert sorted(past.find("pnpm")) == ["new pnpm head", "use pnpm"]


def test_a_session_that_is_no_root_after_all_is_not_found(past: Past) -> None:
    """Its messages go, from the index too."""
    past.say("use pnpm")
    assert past.find("pnpm") == ["use pnpm"]

    past.record(kind="child")

    assert past.find("pnpm") == []
    assert places(past) == 0


def test_a_project_that_became_part_of_another_is_found_there(past: Past) -> None:
    """And under its old name no more; what is said later too."""
    past.say("use pnpm", project="old")
    past.say("use yarn", project="new", session="s2")
    assert past.find("use", project="new") == ["use yarn"]

    with History(past.path, past.clock) as history:
        history.repoint_project("old", "new")
    past.say("use npm", project="new", session="s3")

    assert sorted(past.find("use", project="new")) == ["use npm", "use pnpm", "use yarn"]
    assert past.find("use", project="old") == []


# -- which order ---------------------------------------------------------------------------------


def test_equal_hits_come_by_when_they_were_said_not_read(past: Past) -> None:
    """Backfill reads old sessions late."""
    past.say("pnpm new", session="s1", at_ms=9 * DAY_MS)
    past.say("pnpm old", session="s2", at_ms=1 * DAY_MS)
    past.say("pnpm mid", session="s3", at_ms=5 * DAY_MS)

    assert past.find("pnpm") == ["pnpm new", "pnpm mid", "pnpm old"]


def test_the_message_that_is_more_about_it_comes_first(past: Past) -> None:
    """More of the words, and less of others."""
    past.say("lease lease", at_ms=1)
    past.say("a lease among very many other words that are said here", at_ms=DAY_MS)

    assert past.find("lease")[0] == "lease lease"


def test_a_word_inside_of_others_does_not_count(past: Past) -> None:
    """`test` is not said twice by `latest contest`."""
    past.say("a test of the latest contest attested", at_ms=1)
    past.say("a test of the test now for all here to see", at_ms=2)

    assert past.find("test")[0] == "a test of the test now for all here to see"


def test_a_common_word_is_ranked_among_its_newest_hits(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best of them first, what is older not at all, and the answer says so."""
    monkeypatch.setattr(finding, "RANKED", 4)
    past.say("pnpm pnpm pnpm", "pnpm pnpm", *(f"pnpm for one thing {n}" for n in range(3)), at_ms=1)

    answer = past.answer("pnpm")

    assert answer.hits[0].excerpt == "pnpm pnpm"
    assert len(answer.hits) == 4 and answer.capped


def test_what_was_taken_back_takes_no_place_among_the_newest(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest that count are those that can be found."""
    monkeypatch.setattr(finding, "RANKED", 2)
    past.say("pnpm stays", at_ms=1)
    past.say(*(f"pnpm {n}" for n in range(5)), session="s2", at_ms=DAY_MS)
    past.record(RollBack(5), session="s2")

    assert past.find("pnpm") == ["pnpm stays"]


@pytest.mark.parametrize("at_ms", [None, -5, 0, 1 << 61])
def test_a_time_that_cannot_be_is_no_obstacle(past: Past, at_ms: int | None) -> None:
    """No time, one before 1970, one in the far future."""
    past.say("pnpm now", at_ms=past.clock.now_ms())
    past.say("pnpm then", session="s2", at_ms=at_ms)

    assert sorted(past.find("pnpm")) == ["pnpm now", "pnpm then"]


def test_any_number_of_messages_may_share_a_moment(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gets a place of its own."""
    monkeypatch.setattr(index_module, "PLACE_BITS", 0)
    monkeypatch.setattr(index_module, "BATCH_MESSAGES", 3)
    past.record(*(Keep("user", (f"pnpm {n}",), "", 7, "", "shop") for n in range(10)))

    assert len(past.find("pnpm")) == 10
    assert places(past) == 10


# -- no message has all of it --------------------------------------------------------------------


def test_where_no_message_has_all_words_those_with_most_are_told(past: Past) -> None:
    """Rare words count for more, and the answer says it."""
    past.say(*(f"we decide about thing {n}" for n in range(20)))
    past.say("the webhook signature is checked", session="s2")

    answer = past.answer("what did we decide about the webhook signature")

    assert not answer.all_words
    assert answer.hits[0].excerpt == "the webhook signature is checked"
    assert answer.hits[0].share > answer.hits[-1].share > 0


def test_a_session_that_has_the_words_between_its_messages_comes_first(past: Past) -> None:
    """People forget who said what."""
    past.say("the webhook is old", "its signature too", session="both")
    past.say("a webhook", session="one")
    past.say("a signature", session="two")

    assert [hit.session for hit in past.answer("webhook signature").hits][:2] == ["both", "both"]


def test_a_question_without_spaces_finds_what_has_most_of_it(past: Past) -> None:
    """Its pairs are words like others."""
    past.say("我们决定周五部署新版本。", "今天天气很好")

    answer = past.answer("关于部署我们当时决定了什么")

    assert [hit.excerpt for hit in answer.hits] == ["我们决定周五部署新版本。"]
    assert not answer.all_words


def test_nothing_found_is_an_answer(past: Past) -> None:
    """As is a query without a word."""
    past.say("use pnpm")

    assert past.answer("yarn").hits == past.answer("?!").hits == past.answer("").hits == ()


# -- what people type ----------------------------------------------------------------------------

NASTY = [
    'AND "',
    "NEAR(a b, 3)",
    "words : use",
    "-use ^use {use}",
    "use NOT pnpm",
    "(((((",
    '"""""""',
    "* ** use*",
    "\0 use \0",
    "\ud800 use",
    "' or 1=1 --",
    "=s1 =p1 =acodex",
    "x" * 10_000,
    "a b c d e f g h " * 700,
    "é" * 9_999,
    "漢字" * 5_000,
    "🚀🚀🚀",
    "%_[]",
]


@pytest.mark.parametrize("query", NASTY)
def test_no_query_is_an_error(past: Past, query: str) -> None:
    """Whatever FTS5 or SQL would make of it."""
    past.say("use pnpm")

    past.answer(query)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(max_size=80))
def test_any_text_can_be_looked_for(past: Past, query: str) -> None:
    """None raises."""
    past.answer(query)


_LETTERS = st.text(st.sampled_from("abAB9_.-/ 'éßأةىЁ部署데ทั้🚀"), min_size=1, max_size=20)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_LETTERS, min_size=1, max_size=4))
def test_what_is_written_is_found_by_each_of_its_words(past: Past, texts: list[str]) -> None:
    """Write then search meet."""
    session = f"s{len(past.ask('select 1 from session')) if past.path.exists() else 0}"
    kept = [text.strip() for text in texts if text.strip()]
    past.say(*kept, session=session)

    for text in kept:
        for word in text.split():
            answer = past.answer(word, session=session, limit=50)
            if answer.words:
                assert " ".join(text.split()) in [hit.excerpt for hit in answer.hits]


def test_an_excerpt_is_one_clean_line_around_the_words(past: Past) -> None:
    """Long messages are cut where the words stand; nothing in them drives a terminal."""
    past.say(f"{'before ' * 200}\n\x1b[31m the lease\ttimeout\u202e is here\n{'after ' * 200}")

    (excerpt,) = past.find("timeout lease")

    assert "the lease timeout is here" in excerpt
    assert excerpt.startswith("…") and excerpt.endswith("…")
    assert len(excerpt) <= EXCERPT_CHARACTERS
    assert excerpt.isprintable()


@pytest.mark.parametrize(
    ("query", "shown"),
    [("المفتاح", "مِفتاحَ الواجهة"), ("cafe", "the Café"), ("getUserName", "get_user_name")],
)
def test_an_excerpt_shows_a_word_that_is_written_otherwise(
    past: Past, query: str, shown: str
) -> None:
    """The one the search found."""
    past.say(f"{'before ' * 200}{shown} {'after ' * 200}")

    assert shown in past.find(query)[0]


# -- how the index is kept up --------------------------------------------------------------------


def catch_up(past: Past, stop: Callable[[], bool] = index_module.never) -> int:
    """Index what is not yet."""
    with Search(past.path, past.clock) as search:
        return search.index.catch_up(stop)


def test_a_crash_between_batches_loses_and_doubles_nothing(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside a batch, and between two."""
    monkeypatch.setattr(index_module, "BATCH_MESSAGES", 4)
    past.say(*(f"pnpm {n}" for n in range(10)))
    batches = []

    def die(point: str) -> None:
        batches.append(point)
        if len(batches) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(seams, "hook", die)
        with pytest.raises(KeyboardInterrupt):
            catch_up(past)
    assert places(past) == 4

    assert catch_up(past) == 6
    assert places(past) == len(past.find("pnpm")) == 10


def test_indexing_stops_when_it_is_told_to_and_a_search_says_what_is_left(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For who cannot wait."""
    monkeypatch.setattr(index_module, "BATCH_MESSAGES", 4)
    past.say(*(f"pnpm {n}" for n in range(10)))

    with Search(past.path, past.clock) as search:
        answer = search.find(Query("pnpm"), stop=lambda: True)

    assert (len(answer.hits), answer.waiting) == (4, 6)
    assert len(past.find("pnpm")) == 10


@pytest.mark.slow
def test_two_processes_index_together(past: Past) -> None:
    """Neither misses or doubles anything."""
    past.say(*(f"pnpm {n}" for n in range(3_000)))
    script = (
        "import sys; from pathlib import Path; from memoryd.memory.clock import SystemClock;"
        "from memoryd.sessions import index; from memoryd.sessions.search import Search\n"
        "index.BATCH_MESSAGES = 50\n"
        "with Search(Path(sys.argv[1]), SystemClock()) as search: print(search.index.catch_up())"
    )
    command = [sys.executable, "-c", script, str(past.path)]

    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    done = [process.communicate()[0] for process in started]

    assert [process.returncode for process in started] == [0, 0]
    assert sum(map(int, done)) == 3_000
    assert places(past) == 3_000


def test_a_history_of_before_is_indexed(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages wait from the migration on."""
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:2])
        patched.setattr(schema, "SCHEMA_VERSION", 2)
        database = Database(past.path)
        database.open()
        database.close()
    past.ask(
        "insert into session (agent, session, kind, parent, forked_from, transcript, position,"
        " reading, head, tail, last_seq, bad_lines, skipped, state, ingested_ms)"
        " values ('codex', 's1', 'root', '', '', '', 0, 1, '', '', 1, 0, '{}', '', 0)"
    )
    past.ask(
        "insert into message (session_id, seq, message_id, part, parts, reading, role, text, cwd,"
        " project, line_end) values (1, 1, 'm', 1, 1, 1, 'user', 'use pnpm', '', '', 0)"
    )

    assert past.find("pnpm") == ["use pnpm"]


def test_another_rule_makes_the_index_anew(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was indexed by another could not be found or taken out."""
    past.say("use pnpm", "use yarn")
    assert past.find("pnpm") == ["use pnpm"]

    monkeypatch.setattr(index_module, "VERSION", 99)

    assert past.find("pnpm") == ["use pnpm"]
    assert places(past) == 2


# -- forgetting ----------------------------------------------------------------------------------

SECRETIVE = "xylophoneword"


def on_disk(past: Past, word: str) -> bool:
    """Whether a word is readable in the file or beside it."""
    names = [past.path.with_name(past.path.name + end) for end in ("", "-wal")]
    return any(word.encode() in name.read_bytes() for name in names if name.exists())


def strip(past: Past) -> None:
    """Strip the messages of session s1, as retention does."""
    database = Database(past.path)
    database.open()
    with database.transaction() as cursor:
        rows = cursor.execute("select id from message where session_id = 1").fetchall()
        assert unindex(cursor, [row for (row,) in rows]) == len(rows)
        cursor.execute("update message set text = '' where session_id = 1")
    database.close()


def test_what_is_unindexed_is_found_no_more_and_not_indexed_again(past: Past) -> None:
    """At once, in the caller's transaction."""
    past.say(f"the {SECRETIVE} getUserName", "v1.2.3 另一个")
    past.say(f"another {SECRETIVE}", session="s2")
    assert len(past.find(SECRETIVE)) == 2

    strip(past)

    assert past.find(SECRETIVE) == [f"another {SECRETIVE}"]
    assert past.find("getUserName") == past.find("1.2.3") == past.find("另一个") == []
    assert catch_up(past) == 0


def test_the_words_leave_the_file_with_the_purge(past: Past) -> None:
    """In steps that may stop anywhere; nothing else is lost."""
    past.say(f"the {SECRETIVE} of mine", *(f"more pnpm {n}" for n in range(50)))
    past.say(*(f"other pnpm {n}" for n in range(50)), session="s2")
    catch_up(past)
    strip(past)
    assert on_disk(past, SECRETIVE)

    with Search(past.path, past.clock) as search:
        rounds = 0
        while not search.index.purge(lambda: True):
            rounds += 1
            assert rounds < 100
        assert search.index.purge()

    assert not on_disk(past, SECRETIVE)
    assert sorted(past.find("pnpm", limit=99)) == sorted(f"other pnpm {n}" for n in range(50))


def test_taking_out_what_was_never_indexed_is_harmless(past: Past) -> None:
    """It only waits no more."""
    past.say("say yarn")
    catch_up(past)
    past.say("use pnpm")
    database = Database(past.path)
    database.open()

    with database.transaction() as cursor:
        assert unindex(cursor, [2, 3, 999]) == 0

    assert Index(database, past.clock).waiting() == 0
    database.close()
    assert past.find("pnpm") == []
    assert past.find("yarn") == ["say yarn"]


@pytest.mark.parametrize(
    "statement",
    [
        "delete from message where session_id = 1",
        "update message set text = '' where session_id = 1",
        "delete from session where id = 1",
    ],
)
def test_what_goes_without_being_unindexed_first_goes_all_the_same(
    past: Past, statement: str
) -> None:
    """It is found no more at once, and its words leave the file with the next purge."""
    past.say(f"the {SECRETIVE}", "use pnpm")
    past.say("say pnpm", session="s2")
    catch_up(past)

    past.ask("pragma foreign_keys = 1", then=statement)

    with Search(past.path, past.clock) as search:
        assert search.find(Query(SECRETIVE)).hits == ()
        assert search.index.purge()
    assert past.find("pnpm") == ["say pnpm"]
    assert places(past) == 1
    assert not on_disk(past, SECRETIVE)


def test_new_words_of_a_message_are_found_in_place_of_the_old(past: Past) -> None:
    """An agent may write a message again."""
    past.say("use pnpm")
    catch_up(past)

    past.ask("update message set text = 'use yarn'")

    assert past.find("pnpm") == []
    assert past.find("yarn") == ["use yarn"]
    assert places(past) == 1


def test_a_row_id_given_again_is_indexed_again(past: Past) -> None:
    """SQLite reuses the highest one."""
    past.say("use pnpm")
    catch_up(past)
    past.ask("delete from message")

    past.say("use yarn")

    assert past.find("yarn") == ["use yarn"]
    assert past.find("pnpm") == []
