"""What every adapter promises, shown on transcripts in each agent's own form and place."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scribes import SCRIBES, DatabaseScribe, Said, Scribe, ran, talk

from memoryd.memory.consolidation_prompt import SYSTEM
from memoryd.memory.errors import (
    TranscriptBusy,
    TranscriptError,
    TranscriptForeign,
    TranscriptGone,
)
from memoryd.memory.own_calls import FOLDER, enclosed
from memoryd.sessions import (
    compressed,
    documents,
    gemini_cli,
    lines,
    rows,
)
from memoryd.sessions.adapter import Adapter
from memoryd.sessions.agents import adapter_for, known
from memoryd.sessions.history import History
from memoryd.sessions.ingest import Ingested, ingest
from memoryd.sessions.recognising import require_own

PROMPT = f"{SYSTEM}\n\n{enclosed('Notes to look at (data): I like tea.')}"
CONVERSATION = talk(
    ("user", "use tabs – نعم"),
    ("assistant", "All right: tabs."),
    ("user", "and run the tests with uv"),
    ("assistant", "Three passed."),
)


@dataclass
class Bench:
    """One agent: who writes its transcripts, and who reads them."""

    scribe: Scribe
    adapter: Adapter
    history: History

    def read(self, path: Path, session: str = "", cutoff: int | None = None) -> Ingested:
        """Ingest a session, as a job does."""
        return ingest(
            self.history,
            self.adapter,
            self.adapter.name,
            session or self.scribe.session,
            path,
            cutoff,
            resolver=lambda cwd: f"key:{cwd}",
            exclude=lambda cwd: False,
        )

    def kept(self, session: str = "") -> list[tuple[str, str]]:
        """Who said what, as far as it was kept."""
        found = self.history.messages(self.adapter.name, session or self.scribe.session, 0, 1000)
        return [(message.role, message.text) for message in found]

    def discovered(self) -> list[str]:
        """The sessions that are found."""
        return [found.session for found in self.adapter.discover(self.scribe.environ)]


def words(said: list[Said]) -> list[tuple[str, str]]:
    """Who said what."""
    return [(each.role, each.text) for each in said]


def bench_of(name: str, tmp_path: Path, history: History) -> Bench:
    """The bench of one form."""
    scribe = SCRIBES[name](tmp_path)
    Path(scribe.cwd).mkdir()
    return Bench(scribe, adapter_for(scribe.agent), history)


@pytest.fixture(params=SCRIBES)
def bench(request: pytest.FixtureRequest, tmp_path: Path, history: History) -> Bench:
    """Each form in turn."""
    return bench_of(request.param, tmp_path, history)


@pytest.fixture(params=[name for name, scribe in SCRIBES.items() if scribe.database])
def stored(request: pytest.FixtureRequest, tmp_path: Path, history: History) -> Bench:
    """Each database in turn."""
    return bench_of(request.param, tmp_path, history)


def test_there_is_a_scribe_for_every_agent() -> None:
    """A new adapter comes with its form."""
    assert sorted({scribe.agent for scribe in SCRIBES.values()}) == list(known())


def test_the_same_conversation_gives_the_same_messages(bench: Bench) -> None:
    """Who, what, when and where; nothing is bad."""
    path = bench.scribe.write(CONVERSATION)

    found = bench.read(path)

    assert bench.kept() == words(CONVERSATION)
    assert (found.kind, found.bad_lines, found.new_messages) == ("root", 0, 4)
    stored = bench.history.messages(bench.adapter.name, bench.scribe.session, 0, 10)
    assert {message.project for message in stored} == {f"key:{bench.scribe.cwd}"}
    times = [said.at_ms if bench.scribe.timed else None for said in CONVERSATION]
    assert [message.at_ms for message in stored] == times


def test_the_end_is_where_reading_ends(bench: Bench) -> None:
    """A job's cutoff; and a look never says less."""
    path = bench.scribe.write(CONVERSATION)
    session = bench.scribe.session

    end = bench.adapter.end(path, session)

    assert end == bench.read(path).position
    look = bench.adapter.look(path, session)
    assert look is not None
    assert look.at_most >= end
    assert look.active_ms > 0


def test_nothing_past_the_cutoff_is_read_and_reading_goes_on_there(bench: Bench) -> None:
    """A resumed session adds what is new, and only that."""
    path = bench.scribe.write(CONVERSATION[:2])
    cutoff = bench.adapter.end(path, bench.scribe.session)
    bench.scribe.write(CONVERSATION)

    bench.read(path, cutoff=cutoff)
    assert bench.kept() == words(CONVERSATION[:2])

    assert bench.read(path).new_messages == 2
    assert bench.kept() == words(CONVERSATION)


def test_reading_again_adds_nothing(bench: Bench) -> None:
    """Neither the same transcript nor one that was written anew."""
    path = bench.scribe.write(CONVERSATION)
    bench.read(path)

    assert bench.read(path).new_messages == 0
    bench.scribe.write([Said("user", "before it all", 9000), *CONVERSATION])

    assert bench.read(path).new_messages == 1
    assert sorted(bench.kept()) == sorted([("user", "before it all"), *words(CONVERSATION)])


def test_a_transcript_that_became_shorter_loses_nothing(bench: Bench) -> None:
    """What was ingested stays, and is not doubled."""
    path = bench.scribe.write(CONVERSATION)
    bench.read(path)
    bench.scribe.write(CONVERSATION[:2])

    assert bench.read(path).new_messages == 0
    assert bench.kept() == words(CONVERSATION)


def test_an_unknown_type_is_counted_and_not_fatal(bench: Bench) -> None:
    """Versions drift."""
    strange = Said("novelty", "x", 1)
    path = bench.scribe.write([CONVERSATION[0], strange, CONVERSATION[2]])

    found = bench.read(path)

    assert bench.kept() == words([CONVERSATION[0], CONVERSATION[2]])
    assert any("novelty" in reason for reason in found.skipped), found.skipped
    assert found.bad_lines == 0


def test_what_the_agent_put_into_the_persons_mouth_is_left_out(bench: Bench) -> None:
    """And what stands beside it stays."""
    path = bench.scribe.write(
        talk(
            ("user", "<system-reminder>do not tell</system-reminder>"),
            ("user", "<session_context>\nToday is Monday\n</session_context>\n\nuse tabs"),
            ("user", "[Request interrupted by user for tool use]"),
        )
    )

    assert bench.read(path).skipped["user.injected"] == 2
    assert bench.kept() == [("user", "use tabs")]


def test_a_session_that_answers_a_question_of_ours_keeps_nothing(bench: Bench) -> None:
    """Whatever its agent is: by the first words, though they stand behind others."""
    path = bench.scribe.write(
        talk(("user", f"Answer:\n{PROMPT}"), ("assistant", "{}"), ("user", "And now?"))
    )

    found = bench.read(path)

    assert (found.kind, found.new_messages, bench.kept()) == ("internal", 0, [])


def test_a_session_in_our_folder_keeps_nothing(bench: Bench) -> None:
    """As far as its agent tells where it works."""
    place = bench.scribe.home / "run" / FOLDER
    place.mkdir(parents=True)
    bench.scribe.cwd = str(place)
    path = bench.scribe.write(CONVERSATION)

    found = bench.read(path)

    assert (found.kind, found.new_messages, bench.kept()) == ("internal", 0, [])


def test_a_question_of_ours_that_was_pasted_costs_only_itself(bench: Bench) -> None:
    """In the middle of a person's session."""
    said = talk(("user", "use tabs"), ("user", f"What is this?\n\n{PROMPT}"), ("user", "Thanks"))

    bench.read(bench.scribe.write(said))

    assert bench.kept() == [("user", "use tabs"), ("user", "What is this?"), ("user", "Thanks")]


def test_a_huge_item_is_skipped_and_counted(bench: Bench, small_lines: int) -> None:
    """What follows it is read, and reading goes on after it."""
    huge = Said("user", "x" * (small_lines + 1), 1)
    path = bench.scribe.write([CONVERSATION[0], huge, CONVERSATION[2]])

    assert bench.read(path).skipped["too-long"] == 1
    assert bench.kept() == words([CONVERSATION[0], CONVERSATION[2]])
    assert bench.read(path).skipped == {}


def test_roots_are_discovered_once_and_children_are_not(bench: Bench) -> None:
    """Wherever the agent keeps its sub-agents."""
    first, second, child = bench.scribe.sessions
    bench.scribe.write(CONVERSATION, first)
    bench.scribe.write(CONVERSATION[:1], second)
    expected = [first, second]
    if bench.adapter.name not in {"qwen-code", "copilot-cli"}:  # sub-agents have no transcript
        bench.scribe.write(CONVERSATION, child, parent=first)

    assert sorted(bench.discovered()) == expected


def test_a_sub_agents_transcript_keeps_nothing(bench: Bench) -> None:
    """Its messages are counted as a child's."""
    if bench.adapter.name in {"qwen-code", "copilot-cli"}:
        pytest.skip("its sub-agents have no transcript of their own")
    first, _, child = bench.scribe.sessions
    bench.scribe.write(CONVERSATION, first)
    path = bench.scribe.write(CONVERSATION, child, parent=first)
    session = f"subagent-{child}" if bench.adapter.name == "freecode" else child

    found = bench.read(path, session)

    assert (found.kind, found.new_messages, found.skipped["child"]) == ("child", 0, 4)


def test_a_place_with_no_agent_gives_nothing(bench: Bench) -> None:
    """Nothing is made where nothing was."""
    before = sorted(bench.scribe.home.rglob("*"))

    assert bench.discovered() == []
    assert sorted(bench.scribe.home.rglob("*")) == before


def test_a_transcript_that_is_gone_says_so(bench: Bench) -> None:
    """To whoever reads it and to whoever looks."""
    path = bench.scribe.path(bench.scribe.session)

    with pytest.raises(TranscriptGone):
        bench.read(path)
    assert bench.adapter.look(path, bench.scribe.session) is None


def test_garbage_in_its_place_is_an_error_or_counted(bench: Bench) -> None:
    """Never anything else, and the next session is discovered."""
    if not bench.scribe.whole:
        pytest.skip("what was said is in other files")
    path = bench.scribe.write(CONVERSATION)
    path.write_bytes(b"\xff\x00garbage {[\n" * 300)

    try:
        assert bench.read(path).new_messages == 0
    except TranscriptError:
        assert not bench.scribe.appended
    assert len(bench.discovered()) <= 1
    bench.adapter.look(path, bench.scribe.session)


def test_a_cut_transcript_is_read_up_to_the_cut(bench: Bench) -> None:
    """One of lines; a document or database that is cut is an error that passes."""
    path = bench.scribe.write(CONVERSATION)
    data = path.read_bytes()
    path.write_bytes(data[: 4096 if bench.scribe.database else len(data) - 9])

    try:
        bench.read(path)
    except TranscriptError:
        assert not bench.scribe.appended
    kept = bench.kept()

    assert kept == words(CONVERSATION)[: len(kept)]
    if bench.scribe.appended:
        assert len(kept) == 3
    path.write_bytes(data)
    bench.read(path)
    assert bench.kept() == words(CONVERSATION)


# -- versions and tools ---------------------------------------------------------------------------

RUNS = [CONVERSATION[0], ran(11), ran(12, failed=True), ran(13), Said("user", "and on", 14)]
#: Looks like a token and is none; in pieces, so that no scanner trips on this file.
TOKEN = "ghp_" + "Zx9Qw7Er" * 5


def tools_of(bench: Bench) -> dict[str, dict[str, int]]:
    """Which tools ran in the session, and how they ended."""
    stored = bench.history.session(bench.adapter.name, bench.scribe.session)
    assert stored is not None
    return stored.tools


def expected(bench: Bench) -> dict[str, dict[str, int]]:
    """What ``RUNS`` come to in this form."""
    if bench.scribe.ends is None:
        return {}
    well, badly = bench.scribe.ends
    counts = {well: 2}
    counts[badly] = counts.get(badly, 0) + 1
    return {"Bash": counts}


def test_the_agents_version_is_told(bench: Bench) -> None:
    """Where its form has a place for it."""
    bench.read(bench.scribe.write(CONVERSATION))

    stored = bench.history.session(bench.adapter.name, bench.scribe.session)
    assert stored is not None
    assert stored.version == bench.scribe.version


def test_what_is_no_version_is_none(bench: Bench) -> None:
    """A secret, or anything long, in its place is not kept."""
    for hostile in (TOKEN, "1." + "9" * 50, "1.2.3 and more", "\u202e1.2.3"):
        bench.scribe.version = hostile
        bench.read(bench.scribe.write(CONVERSATION))
        stored = bench.history.session(bench.adapter.name, bench.scribe.session)
        assert stored is not None
        assert stored.version == ""


def test_tools_are_counted_by_name_and_end(bench: Bench) -> None:
    """Neither what they were given nor what they put out is kept."""
    bench.read(bench.scribe.write(RUNS))

    assert tools_of(bench) == expected(bench)
    assert bench.kept() == words([CONVERSATION[0], RUNS[-1]])
    path = bench.history.database.path
    data = path.read_bytes() + Path(f"{path}-wal").read_bytes()
    assert b"quokka" not in data and b"wombat" not in data


def test_a_tool_is_counted_once_however_often_it_is_read(bench: Bench) -> None:
    """In pieces, in between a call and its end, and anew."""
    path = bench.scribe.write(RUNS)
    end = bench.adapter.end(path, bench.scribe.session)
    for cutoff in sorted({1, *range(0, end, max(1, end // 7)), end}):
        bench.read(path, cutoff=cutoff)
    assert tools_of(bench) == expected(bench)

    bench.scribe.write([Said("user", "before it all", 9000), *RUNS])
    bench.read(path)

    assert tools_of(bench) == expected(bench)


def test_a_name_that_no_tool_has_is_counted_as_another(bench: Bench) -> None:
    """A secret in its place is not kept, nor are more names than there are tools."""
    if bench.scribe.ends is None:
        pytest.skip("it tells of no tools")
    names = [TOKEN, "x" * 80, "\u202eBash", *(f"tool_{letter}" for letter in "abcdefgh" * 10)]
    many = [ran(n, tool=f"{name}{'abcdefghij'[n % 10]}") for n, name in enumerate(names, 1)]
    bench.read(bench.scribe.write([CONVERSATION[0], *many, ran(99, tool=TOKEN)]))

    found = tools_of(bench)

    assert TOKEN not in str(found) and "x" * 80 not in str(found)
    assert sum(sum(ends.values()) for ends in found.values()) == len(many) + 1
    assert found["other"] and len(found) <= 65


def test_tools_that_ran_where_nothing_is_kept_are_not_counted(bench: Bench) -> None:
    """An excluded directory."""
    path = bench.scribe.write(RUNS)
    ingest(
        bench.history,
        bench.adapter,
        bench.adapter.name,
        bench.scribe.session,
        path,
        None,
        resolver=lambda cwd: cwd,
        exclude=lambda cwd: True,
    )

    assert tools_of(bench) == {}


#: An agent that has written to its database and keeps it open.
IN_USE = """
import sqlite3, sys
agent = sqlite3.connect(sys.argv[1], isolation_level=None)
agent.execute(sys.argv[2])
print("open", flush=True)
sys.stdin.read()
"""


# -- databases ------------------------------------------------------------------------------------


def seen(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file's contents and when it was modified."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.iterdir()
    }


def everything(bench: Bench, path: Path) -> None:
    """All that is ever done with a database."""
    session = bench.scribe.session
    assert bench.discovered() == [session]
    assert bench.adapter.look(path, session) is not None
    assert bench.adapter.end(path, session) > 0
    bench.read(path)
    bench.read(path)
    assert bench.kept() == words(CONVERSATION)


@pytest.fixture
def held(stored: Bench) -> Iterator[sqlite3.Connection]:
    """The agent's own connection, open all the while."""
    assert isinstance(stored.scribe, DatabaseScribe)
    with closing(stored.scribe.connect()) as connection:
        yield connection


def test_a_database_nobody_has_open_is_not_touched(stored: Bench) -> None:
    """Nor is anything made beside it."""
    path = stored.scribe.write(CONVERSATION)
    before = seen(path.parent)

    everything(stored, path)

    assert seen(path.parent) == before
    assert list(before) == [path.name]


@pytest.mark.slow
def test_a_database_in_use_is_not_touched(stored: Bench) -> None:
    """Neither the file nor its log nor the index of that, which another process has open."""
    path = stored.scribe.write(CONVERSATION)
    table = "session" if stored.adapter.name == "opencode" else "sessions"
    command = [sys.executable, "-c", IN_USE, str(path), f"UPDATE {table} SET title = 'x'"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"open\n"
        before = seen(path.parent)

        everything(stored, path)

        assert seen(path.parent) == before
        assert len(before) == 3
        agent.communicate(b"")


def test_a_log_that_a_killed_agent_left_is_read(stored: Bench) -> None:
    """What was committed counts, and the database itself stays as it was."""
    path = stored.scribe.write(CONVERSATION[:2])
    with closing(stored.scribe.connect()) as agent:  # type: ignore[attr-defined]
        stored.scribe.fill(agent, CONVERSATION, stored.scribe.session, "")  # type: ignore[attr-defined]
        left = {file: file.read_bytes() for file in path.parent.iterdir()}
    for file, data in left.items():
        if not file.name.endswith("-shm"):
            file.write_bytes(data)

    everything(stored, path)

    assert path.read_bytes() == left[path]


def test_a_database_without_a_log_is_not_touched(stored: Bench) -> None:
    """One with a rollback journal."""
    path = stored.scribe.write(CONVERSATION)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=delete")
    before = seen(path.parent)

    everything(stored, path)

    assert seen(path.parent) == before


def test_an_agent_writes_on_while_its_database_is_read(
    stored: Bench, held: sqlite3.Connection
) -> None:
    """A reader in the middle of a session holds no lock, and sees what is new when it goes on."""
    scribe: Any = stored.scribe
    scribe.fill(held, CONVERSATION[:2], scribe.session, "")
    path = scribe.path("")

    with stored.adapter.open(path, scribe.session) as opened:
        reading = opened.read(0, None)
        next(reading)
        held.execute("PRAGMA busy_timeout=0")
        held.execute("BEGIN EXCLUSIVE")
        scribe.fill(held, CONVERSATION[:2], scribe.sessions[1], "")
        held.execute("COMMIT")
        assert held.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        assert len(list(reading)) == 1


def test_a_database_that_changes_under_an_unchanging_look_is_looked_at_anew(
    stored: Bench,
) -> None:
    """It was closed when it was opened, and the agent came back."""
    path = stored.scribe.write(CONVERSATION[:2])
    with stored.adapter.open(path, stored.scribe.session) as opened:
        before = opened.end()
        stored.scribe.write(CONVERSATION)

        assert opened.end() > before


def test_a_locked_database_is_busy_and_skipped(
    stored: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads is told to come again; whoever looks or discovers goes on without it."""
    monkeypatch.setattr(rows, "BUSY_SECONDS", 0.0)
    path = stored.scribe.write(CONVERSATION)
    with closing(sqlite3.connect(path, isolation_level=None)) as agent:
        agent.execute("PRAGMA journal_mode=delete")
        agent.execute("BEGIN EXCLUSIVE")

        with pytest.raises(TranscriptBusy):
            stored.read(path)
        assert stored.adapter.look(path, stored.scribe.session) is None
        assert stored.discovered() == []

        agent.execute("ROLLBACK")
        assert stored.read(path).new_messages == 4


def test_a_row_that_took_the_place_of_one_taken_back_is_read(stored: Bench) -> None:
    """SQLite gives the ids of removed rows away again."""
    path = stored.scribe.write(CONVERSATION)
    stored.read(path)
    changed = [*CONVERSATION[:3], Said("assistant", "Four passed.", 7)]
    stored.scribe.write(changed)

    assert stored.read(path).new_messages == 1
    assert stored.kept()[-1] == ("assistant", "Four passed.")


def test_a_database_of_another_shape_is_an_error(stored: Bench) -> None:
    """A version that is not known yet; nothing else is disturbed."""
    path = stored.scribe.path("")
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")

    with pytest.raises(TranscriptError, match="cannot be read"):
        stored.read(path)
    assert stored.discovered() == []


def test_a_value_that_is_no_text_does_not_stop_reading(stored: Bench) -> None:
    """SQLite lets any column hold anything."""
    path = stored.scribe.write(CONVERSATION)
    table, column = (
        ("part", "data")
        if stored.adapter.name == "opencode"
        else (
            "messages",
            "content",
        )
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            f"UPDATE {table} SET {column} = x'ff00fe' WHERE rowid ="
            f" (SELECT min(rowid) + 1 FROM {table})"
        )

    assert stored.read(path).new_messages >= 3


def test_a_look_reads_nothing_through(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep looks at thousands; only one that is idle is opened."""
    if bench.scribe.database:
        pytest.skip("its rows are asked for")
    path = bench.scribe.write(CONVERSATION)

    def refuse(*_: object) -> None:
        raise AssertionError("it was opened")

    for module in (lines, documents, compressed, gemini_cli):
        monkeypatch.setattr(module, "open_transcript", refuse)

    assert bench.adapter.look(path, bench.scribe.session) is not None


def test_a_session_is_discovered_without_being_read(bench: Bench) -> None:
    """Of a long transcript only the beginning is looked at, if anything."""
    if bench.scribe.database or not bench.scribe.appended:
        pytest.skip("a document or a database")
    path = bench.scribe.write(CONVERSATION[:1])
    with path.open("ab") as file:
        file.truncate(1 << 40)

    assert bench.discovered() == [bench.scribe.session]


def test_another_agents_transcript_is_told_from_one_without_words(bench: Bench) -> None:
    """What is the agent's own is never strange; plain lines of nobody's always are, and refused."""
    path = bench.scribe.write(CONVERSATION)
    require_own(bench.adapter.name, path, bench.scribe.session)
    assert not bench.read(path).strange
    if not (bench.scribe.appended and bench.scribe.whole):
        return
    path.write_bytes(b"root:x:0:0:root:/root:/bin/sh\n" * 24)

    with pytest.raises(TranscriptForeign) as refused:
        require_own(bench.adapter.name, path, bench.scribe.session)

    assert "looks like" not in refused.value.message


def test_the_agent_whose_transcript_it_is_is_named(tmp_path: Path) -> None:
    """Where there is another that understands it."""
    path = SCRIBES["codex"](tmp_path).write(CONVERSATION)

    with pytest.raises(TranscriptForeign, match="looks like one of codex"):
        require_own("claude-code", path, "s1")
