"""Discovery: every session is in the ledger, once, however often it is looked for."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "sessions"))

from archives import RULE, TABS, Past, touch
from scribes import SCRIBES, talk

from memoryd.jobs import discovery
from memoryd.jobs.archive import home_made_ms
from memoryd.jobs.discovery import survey
from memoryd.jobs.workplace import find_transcript
from memoryd.memory.config import Config, SessionSettings
from memoryd.memory.projects import Resolver
from memoryd.memory.testing import FakeClock
from memoryd.sessions import heads
from memoryd.sessions.hermes import Hermes
from memoryd.sessions.rows import Rows

CHILD = "0199c3a0-0000-7000-8000-0000000000aa"


def test_what_is_found_is_kept_with_what_it_is(tmp_path: Path, clock: FakeClock) -> None:
    """Where it is, how long, when it was last active, and in which project it began."""
    past = Past(tmp_path, clock)
    said = past.session("s1", days=3)

    assert past.discover().written == 1

    (row,) = past.ledger.archive.rows(home_made_ms(past.home))
    assert (row.agent, row.session, row.transcript) == ("claude-code", "s1", str(said.path))
    assert (row.size, row.cwd) == (said.size, str(past.project))
    assert row.project == Resolver(past.home).resolve(str(past.project)).key
    assert row.active_at == clock.now_ms() - 3 * 24 * 3600 * 1000


def test_looking_again_writes_and_reads_nothing(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing changed: no transcript is opened for it."""
    past = Past(tmp_path, clock)
    for number in range(5):
        past.session(f"s{number}")
    assert past.discover().written == 5

    def opened(*arguments: object) -> None:
        raise AssertionError("a transcript was read")

    monkeypatch.setattr(heads, "head_of", opened)
    found = past.discover()

    assert (found.sessions, found.written, found.lost) == (5, 0, 0)


def test_a_database_that_did_not_change_is_opened_to_list_it_alone(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once more for each of its sessions."""
    past = Past(tmp_path, clock)
    SCRIBES["hermes"](tmp_path / "person").write(talk(("user", RULE)))
    assert past.discover().written == 1

    def looked(*arguments: object) -> None:
        raise AssertionError("a session was looked at")

    monkeypatch.setattr(Rows, "look", looked)
    assert past.discover().sessions == 1


def test_many_are_written_in_small_transactions(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that claims meanwhile waits for none of it; ending it early keeps what was seen."""
    monkeypatch.setattr(discovery, "BATCH", 4)
    past = Past(tmp_path, clock)
    for number in range(10):
        past.session(f"s{number}")
    looked = iter(range(10))

    discovery.discover(
        past.home, past.ledger, past.config, past.environ, stopping=lambda: next(looked) == 9
    )

    assert len(past.ledger.archive.rows(home_made_ms(past.home))) == 8
    assert past.discover().written == 2


def test_children_and_internal_sessions_are_not_the_archives(
    tmp_path: Path, clock: FakeClock
) -> None:
    """They belong to others; a listing alone does not always tell."""
    past = Past(tmp_path, clock)
    made = past.transcript("s1")
    made.user(RULE, isSidechain=True, sessionId="another")
    touch(made.path, clock.now_ms() - 10 * 24 * 3600 * 1000)

    assert past.discover().written == 1
    assert past.ledger.archive.rows(home_made_ms(past.home)) == []
    assert past.mine() == []


@pytest.mark.parametrize("form", SCRIBES)
def test_a_session_of_any_agent_is_found_and_mined(
    tmp_path: Path, clock: FakeClock, form: str
) -> None:
    """And not again."""
    past = Past(tmp_path, clock)
    scribe = SCRIBES[form](tmp_path / "person")
    Path(scribe.cwd).mkdir()
    scribe.write(talk(("user", RULE), ("assistant", "Understood.")))
    clock.step(20 * 24 * 3600)
    touch(past.home.identity, clock.now_ms())
    for path in (tmp_path / "person").rglob("*"):
        touch(path, clock.now_ms() - 19 * 24 * 3600 * 1000)

    assert [job.status for job in past.mine()] == ["completed"]
    assert past.discover().written == 0
    assert past.work() == 0
    assert RULE in past.prompts()
    (row,) = past.ledger.archive.rows(home_made_ms(past.home))
    if form not in ("generic", "openclaw"):
        assert row.cwd == scribe.cwd


def test_a_transcript_that_is_gone_is_known_to_be(tmp_path: Path, clock: FakeClock) -> None:
    """Its agent deleted it."""
    past = Past(tmp_path, clock)
    said = past.session("s1")
    past.discover()

    said.path.unlink()

    assert past.discover().lost == 1
    assert past.discover().lost == 0
    assert past.mine() == []


def test_a_database_that_is_held_just_now_loses_no_session(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be listed; the file is there."""
    past = Past(tmp_path, clock)
    path = SCRIBES["hermes"](tmp_path / "person").write(talk(("user", RULE)))
    past.discover()
    with monkeypatch.context() as held:
        held.setattr(Hermes, "discover", lambda *_: iter(()))
        assert past.discover().lost == 0
        path.unlink()
        assert past.discover().lost == 1


def test_a_directory_is_resolved_once(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of sessions were held in a few dozen directories."""
    resolved: list[str] = []
    real = Resolver._resolve

    def counted(self: Resolver, cwd: str) -> object:
        resolved.append(cwd)
        return real(self, cwd)

    monkeypatch.setattr(Resolver, "_resolve", counted)
    past = Past(tmp_path, clock)
    for number in range(20):
        past.session(f"s{number}")

    past.discover()

    assert resolved == [str(past.project)]


def test_names_that_no_row_can_hold_hold_nobody_up(tmp_path: Path, clock: FakeClock) -> None:
    """A name that is no UTF-8, one that is a secret: left out; the others are found."""
    past = Past(tmp_path, clock)
    said = past.session("s1")
    secret = "sk-" + "ant-api03-" + "Q7w9" * 12
    for name in (b"a\xff", secret.encode()):
        with open(os.fsencode(said.path.parent) + b"/" + name + b".jsonl", "wb") as file:  # noqa: PTH123
            file.write(said.path.read_bytes())

    assert past.discover().written == 1


def test_answers_to_our_own_questions_are_no_sessions(tmp_path: Path, clock: FakeClock) -> None:
    """Where the folder of the transcript tells; a person's project of such a name is theirs."""
    past = Past(tmp_path, clock)
    said = past.session("s1")
    ours = said.path.parent.with_name("-home-me--memoryd-run-memoryd-own-calls")
    said.path.parent.rename(ours)
    assert past.discover().written == 0

    ours.rename(ours.with_name("-home-me-code-memoryd-own-calls"))
    assert past.discover().written == 1


def test_under_the_switch_for_all_nothing_is_looked_at(tmp_path: Path, clock: FakeClock) -> None:
    """And nothing that is known is lost to that."""
    past = Past(tmp_path, clock)
    past.session("s1")
    past.discover()
    past.restart(environ={"MEMORYD_DISABLE": "1"})
    past.session("s2")

    found = past.discover()

    assert (found.sessions, found.written, found.lost) == (0, 0, 0)
    assert len(past.ledger.archive.rows(home_made_ms(past.home))) == 1


def test_only_the_agents_that_are_read_are_looked_for(tmp_path: Path, clock: FakeClock) -> None:
    """`[sessions] agents` leaves the others alone."""
    past = Past(tmp_path, clock, config=Config(sessions=SessionSettings(agents=("codex",))))
    past.session("s1")

    assert past.discover().sessions == 0


def test_only_the_beginning_of_a_transcript_is_read(tmp_path: Path, clock: FakeClock) -> None:
    """However long it is before it says where it was held."""
    past = Past(tmp_path, clock)
    made = past.transcript("s1")
    filler = b'{"type":"progress","x":"' + b"x" * 1000 + b'"}\n'
    made.raw(filler * (2 * heads.HEAD_BYTES // len(filler)))
    past.aged(made, RULE, days=10)

    past.discover()

    (row,) = past.ledger.archive.rows(home_made_ms(past.home))
    assert (row.cwd, row.project) == ("", None)
    (job,) = past.mine()
    assert job.outcome_code == "nothing.durable"


def test_a_survey_writes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """For a person who has no home yet."""
    past = Past(tmp_path, clock)
    past.session("s1")

    (seen,) = survey(past.home, past.config, past.environ)

    assert seen.session == "s1"
    assert past.ledger.archive.known("claude-code") == {}


def test_a_transcript_in_a_folder_named_by_a_secret_is_left_out_and_counted(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The others are found, and a directory of theirs that holds one is not known."""
    token = "ghp_" + "Zx9Qw7Er" * 5
    past = Past(tmp_path, clock)
    said = past.session("s1")
    elsewhere = said.path.parent.with_name(f"-srv-{token}")
    elsewhere.mkdir()
    (elsewhere / "s2.jsonl").write_bytes(said.path.read_bytes())
    said.path.write_bytes(
        said.path.read_bytes().replace(str(past.project).encode(), token.encode())
    )
    touch(said.path, clock.now_ms() - 10 * 86_400_000)

    found = past.discover()

    assert (found.written, found.refused) == (1, 1)
    (row,) = past.ledger.archive.rows(home_made_ms(past.home))
    assert (row.session, row.cwd, row.project) == ("s1", "", None)
    assert [seen.session for seen in survey(past.home, past.config, past.place.environ)] == ["s1"]


def test_a_session_in_two_folders_is_read_in_one_of_them(tmp_path: Path, clock: FakeClock) -> None:
    """Where it was last written to, however often it is looked at, and it is one of the day's."""
    past = Past(tmp_path, clock, per_day=3)
    said = past.session("s1", RULE, days=20)
    other = said.path.parent.parent / "-a-moved-checkout" / said.path.name
    other.parent.mkdir()
    shutil.copy(said.path, other)
    longer = replace(said, path=other)
    past.aged(longer, TABS, days=19)

    for _ in range(4):
        past.mine()

    (rollout,) = past.ledger.records.rollouts()
    assert rollout.transcript == str(other)
    assert [job.session for job in past.backfills()] == ["s1"]
    assert past.ledger.archive.made_today() == 1
    assert find_transcript(past.environ, "claude-code", "s1") == other


def test_of_two_folders_that_are_as_old_the_longer_then_the_first_name_is_taken(
    tmp_path: Path, clock: FakeClock
) -> None:
    """In whatever order they are listed."""
    past = Past(tmp_path, clock)
    said = past.session("s1", RULE, days=20)
    folder = said.path.parent.parent
    for name in ("-b", "-a"):
        (folder / name).mkdir()
        shutil.copy2(said.path, folder / name / said.path.name)
    at_ms = said.path.stat().st_mtime_ns // 1_000_000
    first = folder / "-a" / said.path.name
    assert find_transcript(past.environ, "claude-code", "s1") == first

    said.user(TABS)
    touch(said.path, at_ms)

    assert find_transcript(past.environ, "claude-code", "s1") == said.path


def test_a_session_that_looks_again_as_when_it_was_read_is_none_of_the_days(
    tmp_path: Path, clock: FakeClock
) -> None:
    """It was replaced by another copy, and put back."""
    past = Past(tmp_path, clock)
    said = past.session("s1", RULE, days=20)
    past.mine()
    kept = tmp_path / "kept"
    shutil.copy2(said.path, kept)
    past.aged(said, TABS, days=19)
    past.mine()
    assert past.ledger.archive.made_today() == 2

    shutil.copy2(kept, said.path)
    past.mine()

    assert past.ledger.archive.made_today() == 2
    assert {job.status for job in past.backfills()} == {"completed"}
