"""The sweep finds what no hook told of: sessions that ended, and sessions that went on."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "sessions"))

from scribes import SCRIBES, talk
from world import NOTHING, Transcript, World, answer, fact

from memoryd.jobs import sweep
from memoryd.jobs.discovery import discover
from memoryd.jobs.workplace import Workplace
from memoryd.memory.config import Config, CurationSettings, MemorySettings, SessionSettings
from memoryd.memory.testing import FakeClock

RULE = "Always run the linter before you commit."
MINUTE = 60
CODEX = "0199c3a0-0000-7000-8000-000000000001"


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home that was made a day ago."""
    return made(World(tmp_path, clock, [NOTHING]))


def made(world: World) -> World:
    """``world`` with a home that is a day old."""
    touch(world.home.identity, world.clock.now_ms() - 24 * 60 * MINUTE * 1000)
    return world


def finalize_idle(place: Workplace) -> int:
    """A discovery, and a sweep after it."""
    discover(place.home, place.ledger, place.config, place.environ)
    return sweep.finalize_idle(place)


def touch(path: Path, at_ms: int) -> None:
    """Set when ``path`` was last changed."""
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def still(world: World, said: Transcript, minutes: float) -> Transcript:
    """``said``, last touched that long ago."""
    touch(said.path, world.clock.now_ms() - int(minutes * MINUTE * 1000))
    return said


@pytest.mark.parametrize(("agent", "session"), [("claude-code", "s1"), ("codex", CODEX)])
def test_an_idle_transcript_is_found_without_a_hook(
    tmp_path: Path, clock: FakeClock, agent: str, session: str
) -> None:
    """Up to its last whole line; and distilled as if a hook had told of it."""
    world = made(World(tmp_path, clock, [answer(fact(RULE))]))
    said = world.transcript(session, agent=agent).user(RULE)
    whole = said.size
    still(world, said.raw(b'{"type":'), 31)

    assert finalize_idle(world.place) == 1

    (job,) = world.ledger.records.jobs()
    assert (job.kind, job.agent, job.session) == ("finalize", agent, session)
    assert (job.cutoff, job.trigger, job.reason) == (whole, "sweep", "idle")
    world.work()
    assert world.bodies() == [RULE]


def test_one_that_is_still_being_written_waits(world: World) -> None:
    """A person may think for half an hour."""
    said = still(world, world.transcript().user(RULE), 29)
    assert finalize_idle(world.place) == 0

    still(world, said, 30)
    assert finalize_idle(world.place) == 1


def test_answers_to_our_own_questions_make_no_jobs(world: World) -> None:
    """Where the folder of the transcript tells; a person's project of such a name is theirs."""
    said = still(world, world.transcript().user(RULE), 31)
    ours = said.path.parent.with_name("-home-me--memoryd-run-memoryd-own-calls")
    said.path.parent.rename(ours)
    assert finalize_idle(world.place) == 0

    ours.rename(ours.with_name("-home-me-code-memoryd-own-calls"))
    assert finalize_idle(world.place) == 1


def test_one_that_a_wrong_clock_wrote_does_not_wait_for_that_time(world: World) -> None:
    """It may be years; a little ahead, it may be going on."""
    said = still(world, world.transcript().user(RULE), -59)
    assert finalize_idle(world.place) == 0

    still(world, said, -24 * 60)
    assert (finalize_idle(world.place), finalize_idle(world.place)) == (1, 0)


def test_the_next_sweep_makes_no_second_job(world: World) -> None:
    """Before it was worked, and after, and after its row was pruned."""
    still(world, world.transcript().user(RULE), 31)
    finalize_idle(world.place)

    assert finalize_idle(world.place) == 0
    world.work()
    assert finalize_idle(world.place) == 0
    world.ledger.prune(0)
    assert (world.ledger.records.jobs(), finalize_idle(world.place)) == ([], 0)


def test_a_transcript_that_grew_is_finalized_again(world: World) -> None:
    """The session was resumed; only what is new is read."""
    said = still(world, world.transcript().user(RULE), 31)
    finalize_idle(world.place)
    world.work()

    still(world, said.user("And use tabs."), 31)

    assert finalize_idle(world.place) == 1
    world.work()
    assert [len(asked.messages) for asked in world.model.requests] == [1, 1]


def test_a_transcript_that_its_agent_moved_is_found_again(world: World) -> None:
    """An agent archives a session and a person goes on with it there."""
    said = still(world, world.transcript(CODEX, agent="codex").user(RULE), 31)
    finalize_idle(world.place)
    world.work()
    archive = said.path.parents[4] / "archived_sessions"
    archive.mkdir()
    moved = replace(said, path=said.path.rename(archive / said.path.name))

    still(world, moved.user("And use tabs."), 31)

    assert finalize_idle(world.place) == 1
    world.work()
    assert [len(asked.messages) for asked in world.model.requests] == [1, 1]


def test_a_session_known_without_a_transcript_is_found_where_its_agent_keeps_it(
    world: World,
) -> None:
    """A hook told of the session before there was a file."""
    world.ledger.enqueue(
        "extract", "claude-code", "s1", cutoff=0, transcript="", cwd="", trigger="hook"
    )
    world.ledger.cancel(world.ledger.records.jobs()[0])

    still(world, world.transcript().user(RULE), 31)

    assert finalize_idle(world.place) == 1


def test_one_that_its_agent_rewrote_shorter_is_read_again_once(world: World) -> None:
    """Compaction keeps the last turns; what is said after them is shorter than what was read."""
    said = world.transcript()
    for number in range(9):
        said.user(f"{RULE} For the {number}th time.")
    still(world, said, 31)
    finalize_idle(world.place)
    world.work()

    kept = said.path.read_bytes().splitlines(keepends=True)[-1]
    said.path.write_bytes(kept)
    still(world, said.user("And use tabs."), 31)

    assert finalize_idle(world.place) == 1
    assert finalize_idle(world.place) == 0
    world.work()
    assert finalize_idle(world.place) == 0
    assert [m.text for m in world.model.requests[-1].messages] == ["And use tabs."]


def test_what_grew_by_half_a_line_did_not_grow(world: World) -> None:
    """There is nothing more to read yet."""
    said = still(world, world.transcript().user(RULE), 31)
    finalize_idle(world.place)

    still(world, said.raw(b'{"type":'), 31)

    assert finalize_idle(world.place) == 0


def test_what_a_hook_told_of_is_not_told_again(world: World) -> None:
    """Its job was made for the same cutoff."""
    said = world.transcript().user(RULE)
    world.finalize(said)

    still(world, said, 31)

    assert finalize_idle(world.place) == 0


def test_an_extract_that_was_throttled_leaves_the_end_to_the_sweep(world: World) -> None:
    """Its cutoff was the end of the file, and yet nothing of it was distilled."""
    said = world.transcript().user(RULE)
    world.throttle(said)

    still(world, said, 31)

    assert finalize_idle(world.place) == 1
    world.work()
    assert RULE in world.prompts()


def test_a_transcript_older_than_the_home_is_the_archives(world: World) -> None:
    """Mining it is another matter, and asked for."""
    still(world, world.transcript().user(RULE), 25 * 60)

    assert finalize_idle(world.place) == 0


def test_one_that_is_older_and_known_is_looked_at(world: World) -> None:
    """A job was made for it before: more was said than that one read."""
    said = world.transcript().user(RULE)
    world.finalize(said)
    still(world, said.user("And use tabs."), 25 * 60)

    assert finalize_idle(world.place) == 1


def test_an_excluded_session_is_left_alone(world: World) -> None:
    """However much is said in it."""
    still(world, world.transcript().user(RULE), 31)
    world.ledger.exclude("claude-code", "s1", "session.excluded")

    assert finalize_idle(world.place) == 0


@pytest.mark.parametrize(
    "config",
    [
        Config(memory=MemorySettings(auto_extract=False)),
        Config(curation=replace(CurationSettings(), audit_on_session_end=False)),
        Config(sessions=SessionSettings(agents=("codex",))),
        Config(sessions=SessionSettings(idle_minutes=60)),
    ],
)
def test_the_configuration_may_turn_it_off(
    tmp_path: Path, clock: FakeClock, config: Config
) -> None:
    """Extraction, the end of sessions, an agent; or ask for more patience."""
    world = made(World(tmp_path, clock, config=config))
    still(world, world.transcript().user(RULE), 31)

    assert finalize_idle(world.place) == 0


def test_a_sub_agents_transcript_is_no_session(world: World) -> None:
    """It belongs to its parent."""
    still(world, world.transcript("agent-7").user(RULE), 31)

    assert finalize_idle(world.place) == 0


def test_a_transcript_that_is_gone_is_passed_over(world: World) -> None:
    """Nothing more can be learned from it."""
    said = world.transcript().user(RULE)
    world.finalize(said)
    said.path.unlink()

    assert finalize_idle(world.place) == 0


def test_a_name_that_no_row_can_hold_holds_nobody_up(world: World) -> None:
    """A file name that is no valid UTF-8, before a good one."""
    said = world.transcript("s1").user(RULE)
    bad = os.fsencode(said.path.parent) + b"/a\xff.jsonl"
    with open(bad, "wb") as file:  # noqa: PTH123 - a name in bytes
        file.write(said.path.read_bytes())
    touch(Path(os.fsdecode(bad)), world.clock.now_ms() - 31 * MINUTE * 1000)
    still(world, said, 31)

    assert finalize_idle(world.place) == 1

    (job,) = world.ledger.records.jobs()
    assert job.session == "s1"


@pytest.mark.parametrize("form", SCRIBES)
def test_a_session_of_any_agent_ends_without_an_event(
    tmp_path: Path, clock: FakeClock, form: str
) -> None:
    """Once, up to what is there; and again when the person goes on with it."""
    world = made(World(tmp_path, clock, [answer(fact(RULE)), NOTHING]))
    scribe = SCRIBES[form](tmp_path / "person")
    Path(scribe.cwd).mkdir()

    for said in (("user", RULE),), (("user", RULE), ("user", "And use tabs."), ("assistant", "ok")):
        scribe.write(talk(*said))
        clock.step(31 * MINUTE)
        for path in (tmp_path / "person").rglob("*"):
            touch(path, clock.now_ms() - 31 * MINUTE * 1000)

        assert finalize_idle(world.place) == 1
        assert finalize_idle(world.place) == 0
        world.work()
        assert finalize_idle(world.place) == 0

    assert [job.status for job in world.ledger.records.jobs()] == ["completed"] * 2
    assert [RULE in world.prompts(), "And use tabs." in world.prompts()] == [True, True]


def test_a_session_that_its_agent_goes_on_with_elsewhere_is_followed(world: World) -> None:
    """A newer version of the agent writes it in another form and leaves the old file."""
    old, new = (
        SCRIBES[form](world.folder / "person") for form in ("gemini-cli document", "gemini-cli")
    )
    path = old.write(talk(("user", RULE)))
    touch(path, world.clock.now_ms() - 60 * MINUTE * 1000)
    finalize_idle(world.place)
    world.work()

    path = new.write(talk(("user", RULE), ("user", "And use tabs.")))
    touch(path, world.clock.now_ms() - 31 * MINUTE * 1000)

    assert finalize_idle(world.place) == 1
    world.work()
    assert [len(asked.messages) for asked in world.model.requests] == [1, 1]
