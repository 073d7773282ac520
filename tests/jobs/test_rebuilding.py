"""A session history that was lost is read again, and nothing is learned twice."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from archives import RULE, TABS, Past
from world import Transcript, answer, fact

from memoryd.jobs.forgetting import Forgetter
from memoryd.jobs.rebuilding import rebuild
from memoryd.memory.config import SessionSettings
from memoryd.memory.testing import FakeClock


def lose_history(past: Past) -> None:
    """It is moved away, and memoryd started anew."""
    past.place.close()
    for path in past.home.root.glob("sessions.sqlite*"):
        path.unlink()
    past.restart()


def texts(past: Past, said: Transcript) -> list[tuple[int, str]]:
    """What the history keeps of a session."""
    found = past.place.history.messages(said.agent, said.session, 0, 100)
    return [(each.seq, each.text) for each in found]


def again(past: Past) -> int:
    """What a daemon does every ten minutes."""
    past.clock.advance(1)
    past.discover()
    return rebuild(past.place)


def test_a_lost_history_is_read_again_and_asks_nobody(tmp_path: Path, clock: FakeClock) -> None:
    """Of the archive and of hooks alike; each message has the number it had."""
    past = Past(tmp_path, clock, [answer(fact(RULE)), answer(fact(TABS))])
    old, new = past.session("s1", RULE), past.transcript("s2").user(TABS)
    past.mine()
    past.finalize(new)
    before, asked = [texts(past, each) for each in (old, new)], len(past.model.requests)
    cursors = [past.cursor(each) for each in (old, new)]
    lose_history(past)

    assert (again(past), again(past)) == (2, 0)

    assert [texts(past, each) for each in (old, new)] == before
    past.mine()
    assert len(past.model.requests) == asked
    past.finalize(new.user("And this came later."))
    assert [past.cursor(each) for each in (old, new)] == [cursors[0], cursors[1] + 1]
    assert RULE not in past.model.requests[-1].messages[-1].text


def test_a_history_from_a_backup_is_brought_up_to_date(tmp_path: Path, clock: FakeClock) -> None:
    """It is behind the cursor."""
    past = Past(tmp_path, clock)
    said = past.transcript("s1").user(RULE)
    past.finalize(said)
    past.place.close()
    shutil.copy(past.home.session_history, tmp_path / "backup.sqlite")
    past.restart()
    past.finalize(said.user(TABS))
    before = texts(past, said)
    lose_history(past)
    past.place.close()
    shutil.copy(tmp_path / "backup.sqlite", past.home.session_history)
    past.restart()

    assert (again(past), again(past)) == (1, 0)
    assert texts(past, said) == before


def test_what_was_forgotten_is_learned_before_its_fork_is_read_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Else its words would come back through it."""
    past = Past(tmp_path, clock)
    said = past.session("s1", RULE, days=10)
    fork = past.transcript("s2")
    fork.path.write_bytes(said.path.read_bytes())
    fork.lines = 8
    past.aged(fork, TABS, days=5)
    past.mine()
    Forgetter(past.home, past.config, past.environ, past.ledger, past.place.history).forget(
        said.agent, said.session
    )
    before = texts(past, fork)
    assert RULE not in [text for _, text in before]
    lose_history(past)

    assert again(past) == 1

    assert [text for _, text in texts(past, fork)] == [text for _, text in before]
    assert texts(past, said) == []


def test_a_session_that_changed_since_is_left_to_its_job(tmp_path: Path, clock: FakeClock) -> None:
    """What it says now would get numbers that the cursor has passed."""
    past = Past(tmp_path, clock)
    said = past.transcript("s1").user(RULE).user(RULE)
    past.finalize(said)
    lose_history(past)
    said.path.write_bytes(b"")
    said.user(TABS)

    assert again(past) == 0

    past.finalize(said)
    assert [text for _, text in texts(past, said)] == [TABS]
    assert past.cursor(said) == 3


def test_a_transcript_whose_last_line_has_no_end_is_read_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its hook told of more than could be read."""
    past = Past(tmp_path, clock)
    said = past.transcript("s1").user(RULE).raw(b'{"type":"user",')
    past.finalize(said)
    before = texts(past, said)
    assert [text for _, text in before] == [RULE]
    lose_history(past)

    assert again(past) == 1
    assert texts(past, said) == before


def test_a_session_that_went_on_since_it_was_looked_at_is_left_to_its_job(
    tmp_path: Path, clock: FakeClock
) -> None:
    """What it says since has no number yet."""
    past = Past(tmp_path, clock)
    said = past.session("s1", RULE)
    past.mine()
    lose_history(past)
    past.discover()
    said.user(TABS)

    assert rebuild(past.place) == 0
    assert texts(past, said) == []


def test_words_that_say_no_directory_belong_to_that_of_their_session_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    """As its hook told it."""
    past = Past(tmp_path, clock)
    said = past.transcript("s1").user(RULE, cwd=None)
    past.finalize(said, cwd=str(past.project))
    (before,) = past.place.history.messages(said.agent, said.session, 0, 9)
    assert before.project
    lose_history(past)

    assert again(past) == 1
    assert past.place.history.messages(said.agent, said.session, 0, 9) == [before]


def test_a_pass_reads_a_days_sessions_and_the_next_one_goes_on(
    tmp_path: Path, clock: FakeClock
) -> None:
    """One that cannot be read holds the others up no more than it counts."""
    past = Past(tmp_path, clock)
    for number in range(4):
        past.session(f"s{number}", days=10 + number)
    past.mine()
    lose_history(past)
    shortened = replace(past.config.backfill, per_day=2)
    past.restart(config=replace(past.config, backfill=shortened))

    assert [again(past) for _ in range(3)] == [2, 2, 0]


def test_where_no_words_are_to_be_kept_none_are_read_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    """``store = false``."""
    past = Past(tmp_path, clock)
    past.session("s1")
    past.mine()
    lose_history(past)
    past.restart(config=replace(past.config, sessions=SessionSettings(store=False)))

    assert again(past) == 0


def test_a_history_deleted_under_a_live_process_is_made_anew(
    tmp_path: Path, clock: FakeClock
) -> None:
    """It does not go on into a file that nobody can open."""
    past = Past(tmp_path, clock)
    said = past.session("s1")
    past.mine()
    before = texts(past, said)
    assert not past.place.history.renew()
    for path in past.home.root.glob("sessions.sqlite*"):
        path.unlink()

    assert past.place.history.renew()

    assert texts(past, said) == []
    assert again(past) == 1
    assert texts(past, said) == before
    assert past.home.session_history.stat().st_size
    assert not past.place.history.renew()
