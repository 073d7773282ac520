"""Words that the session history lets go of by itself, and what stays possible without them."""

from __future__ import annotations

import dataclasses
import subprocess
import uuid
from pathlib import Path

import pytest
from world import DAY, NOTHING, Transcript, World, answer, fact

from memoryd.jobs import letting_go
from memoryd.jobs.indexing import index_some
from memoryd.jobs.letting_go import let_go
from memoryd.memory import seams
from memoryd.memory.config import (
    Config,
    CurationSettings,
    PrivacySettings,
    SessionSettings,
)
from memoryd.memory.errors import ProviderUnavailable
from memoryd.memory.testing import FakeClock
from memoryd.sessions import index
from memoryd.sessions.stripping import Stripper

RULE = "Always run the linter before you commit."
#: A word that stands in the transcripts of these tests and nowhere else.
WORD = "xylophonic"


def config(**sessions: object) -> Config:
    """A configuration with these settings of ``[sessions]``."""
    return Config(sessions=SessionSettings(**sessions))  # type: ignore[arg-type]


def texts(world: World, said: Transcript) -> list[str]:
    """The words kept of a session."""
    return [m.text for m in world.place.history.messages(said.agent, said.session, 0, 1000)]


def words_on_disk(world: World, word: str = WORD) -> list[str]:
    """The files of the home that hold the word."""
    return [path.name for path, data in world.bytes_of_home() if word.encode() in data]


# -- keep_days -----------------------------------------------------------------------------------


def test_words_older_than_keep_days_go_once_they_are_distilled(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Not a day sooner, and for ever with 0."""
    world = World(tmp_path, clock, [NOTHING], config=config(keep_days=30))
    said = world.transcript().user(f"{WORD} one").assistant(f"{WORD} two")
    world.finalize(said)
    clock.advance(29 * DAY)
    assert let_go(world.place) == 0

    clock.advance(2 * DAY)
    world.restart(config=config())
    assert let_go(world.place) == 0
    world.restart(config=config(keep_days=30))
    assert let_go(world.place) == 2

    assert texts(world, said) == []
    assert "sessions.sqlite" not in words_on_disk(world)
    assert let_go(world.place) == 0


def test_words_that_wait_stay_however_old(tmp_path: Path, clock: FakeClock) -> None:
    """A gate sent them away; the next job reads them all."""
    world = World(tmp_path, clock, [NOTHING], config=config(keep_days=1))
    said = world.transcript().user(f"{WORD} one")
    world.throttle(said)
    clock.advance(90 * DAY)

    assert let_go(world.place) == 0
    world.finalize(said)
    assert WORD in world.prompts()
    assert let_go(world.place) == 1


def test_words_of_an_excluded_session_that_wait_are_old_too(
    tmp_path: Path, clock: FakeClock
) -> None:
    """They can never be distilled."""
    world = World(tmp_path, clock, config=config(keep_days=1))
    said = world.transcript().user(f"{WORD} one")
    world.throttle(said)
    world.ledger.exclude(said.agent, said.session, "session.excluded")

    assert let_go(world.place) == 0
    clock.advance(2 * DAY)
    assert let_go(world.place) == 1


def test_a_resumed_session_goes_on_after_its_words_went(tmp_path: Path, clock: FakeClock) -> None:
    """Only what is new is read, and what it says is kept with what it stands on."""
    world = World(tmp_path, clock, [NOTHING, answer(fact(RULE))], config=config(keep_days=1))
    said = world.transcript().user(f"{WORD} one").assistant("Fine.")
    world.finalize(said)
    clock.advance(3 * DAY)
    assert let_go(world.place) == 2

    job = world.finalize(said.user(RULE))

    assert job.outcome_code == "notes.written"
    assert WORD not in world.model.requests[1].prompt
    assert world.cursor(said) == 3
    assert world.bodies() == [RULE]


def test_a_pass_is_bounded(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shares its thread: the rest goes with the next ones."""
    monkeypatch.setattr(letting_go, "LIMIT", 1)
    world = World(tmp_path, clock, [NOTHING] * 3, config=config(keep_days=1))
    for session in ("s1", "s2", "s3"):
        world.finalize(world.transcript(session).user(f"{WORD} {session}"))
    clock.advance(3 * DAY)

    assert [let_go(world.place) for _ in range(4)] == [1, 1, 1, 0]


# -- exclusion -----------------------------------------------------------------------------------


def test_a_directory_excluded_later_loses_its_words(tmp_path: Path, clock: FakeClock) -> None:
    """Waiting or distilled; the next directory of the same session keeps its own."""
    world = World(tmp_path, clock)
    other = tmp_path / "other"
    other.mkdir()
    said = world.transcript().user(f"{WORD} here").user("there", cwd=str(other))
    world.throttle(said)

    assert let_go(world.place) == 0
    world.restart(config=Config(privacy=PrivacySettings(exclude=(str(world.project),))))
    assert let_go(world.place) == 1

    assert texts(world, said) == ["there"]
    assert "sessions.sqlite" not in words_on_disk(world)


def test_a_project_that_excludes_a_folder_of_its_own_loses_those_words(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its own file counts; one that cannot be read takes nothing away."""
    world = World(tmp_path, clock)
    private = world.project / "private"
    private.mkdir()
    said = world.transcript().user("open").user(f"{WORD} closed", cwd=str(private))
    world.throttle(said)
    subprocess.run(["git", "init", "-q", str(world.project)], check=True)
    settings = world.project / ".memoryd.toml"
    settings.write_text("[privacy\n")
    assert let_go(world.place) == 0

    settings.write_text('[privacy]\nexclude = ["private"]\n')

    assert let_go(world.place) == 1
    assert texts(world, said) == ["open"]


def test_where_it_was_started_counts_for_words_said_nowhere(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Some agents tell no directory."""
    world = World(tmp_path, clock)
    said = world.transcript().user(f"{WORD} one", cwd="")
    world.enqueue(said, "extract", reason="stop", cwd=str(world.project))
    world.work()
    assert texts(world, said) == [f"{WORD} one"]

    world.restart(config=Config(privacy=PrivacySettings(exclude=("project",))))

    assert let_go(world.place) == 1


def test_an_agent_that_is_not_to_be_read_any_more_loses_its_words(
    tmp_path: Path, clock: FakeClock
) -> None:
    """But for what a job is about to read."""
    world = World(tmp_path, clock, [NOTHING])
    mine, codex = world.transcript().user("mine"), world.transcript("c1", agent="codex")
    world.throttle(mine)
    world.throttle(codex.user(f"{WORD} theirs"))
    world.restart(config=config(agents=("claude-code",)))
    world.enqueue(codex)
    assert let_go(world.place) == 0

    world.work()

    assert WORD in world.prompts()
    assert let_go(world.place) == 1
    assert (texts(world, mine), texts(world, codex)) == (["mine"], [])


# -- nothing stored ------------------------------------------------------------------------------


def unstored(tmp_path: Path, clock: FakeClock, script: object = (), **more: object) -> World:
    """A home that keeps no words."""
    return World(tmp_path, clock, script, config=config(store=False), **more)  # type: ignore[arg-type]


def test_with_no_store_nothing_of_the_words_stays_after_a_job(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Not in the history nor its log; the note is written as always, the session is known."""
    world = unstored(tmp_path, clock, [answer(fact(RULE))])
    said = world.transcript().user(f"{WORD} one").user(RULE).assistant(f"{WORD} two")

    job = world.finalize(said)

    assert job.outcome_code == "notes.written"
    assert world.bodies() == [RULE]
    assert texts(world, said) == []
    assert words_on_disk(world) == []
    stored = world.place.history.session(said.agent, said.session)
    assert stored is not None and (stored.messages, stored.user_messages) == (3, 2)
    assert world.cursor(said) == 3


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_with_no_store_a_session_is_distilled_as_before(
    tmp_path: Path, clock: FakeClock, agent: str
) -> None:
    """Grown, gated, rewritten and asked for again: each word reaches the provider once."""
    session = str(uuid.UUID(int=7))
    world = unstored(tmp_path, clock, [NOTHING] * 9)
    said = world.transcript(session, agent=agent)
    world.throttle(said.user("alpha one").assistant("alpha two"))
    assert world.model.requests == []
    assert b"alpha" not in world.home.session_history.read_bytes()
    world.throttle(said.user("beta three"))
    world.finalize(said)
    world.finalize(said.user("gamma four"))
    lines = said.path.read_bytes().splitlines(keepends=True)
    said.path.write_bytes(b"".join([*lines[:1], b"{}\n", *lines[1:]]))
    world.finalize(said.user("delta five"))

    prompts = "".join(asked.prompt for asked in world.model.requests)
    for word in ("alpha one", "alpha two", "beta three", "gamma four", "delta five"):
        assert prompts.count(word) == 1, word
    assert b"delta" not in world.home.session_history.read_bytes()


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_with_no_store_a_fork_adds_only_its_own(
    tmp_path: Path, clock: FakeClock, agent: str
) -> None:
    """The words it repeats are known by their digest."""
    first, second = str(uuid.UUID(int=7)), str(uuid.UUID(int=8))
    world = unstored(tmp_path, clock, [NOTHING] * 9)
    said = world.transcript(first, agent=agent).user("alpha one").assistant("alpha two")
    world.finalize(said)
    fork = world.transcript(second, agent=agent)
    fork.path.write_bytes(said.path.read_bytes().replace(first.encode(), second.encode()))
    if agent == "codex":
        meta, _, rest = fork.path.read_bytes().partition(b"\n")
        meta = meta.replace(b'"source"', b'"forked_from_id": "%s", "source"' % first.encode())
        fork.path.write_bytes(meta + b"\n" + rest)
    fork.lines = 8
    world.finalize(fork.user("omega three"))

    prompts = "".join(asked.prompt for asked in world.model.requests)
    assert (prompts.count("alpha one"), prompts.count("omega three")) == (1, 1)


def test_with_no_store_words_wait_for_a_provider_that_is_away(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The job has not ended; it reads them when it goes on."""
    world = unstored(tmp_path, clock, [ProviderUnavailable("away"), NOTHING])
    said = world.transcript().user(f"{WORD} one")
    job = world.finalize(said)
    assert (job.status, texts(world, said)) == ("pending", [f"{WORD} one"])

    world.work_to_rest()

    assert world.job(job).status == "completed"
    assert WORD in world.model.requests[-1].prompt
    assert words_on_disk(world) == []


def test_with_no_store_words_of_a_job_that_gave_up_go_with_the_next_pass(
    tmp_path: Path, clock: FakeClock
) -> None:
    """And are read again when a person tries it again."""
    world = unstored(tmp_path, clock, ["no answer"] * 20)
    said = world.transcript().user(f"{WORD} one")
    job = world.finalize(said)
    world.work_to_rest()
    assert world.job(job).status == "failed"

    assert let_go(world.place) == 1
    assert "sessions.sqlite" not in words_on_disk(world)
    world.model._script = [NOTHING]
    world.model.requests.clear()
    assert world.ledger.retry(world.job(job))
    world.work()

    assert world.job(job).status == "completed"
    assert WORD in world.prompts()


def test_with_no_store_a_gate_that_always_says_no_keeps_nothing(
    tmp_path: Path, clock: FakeClock
) -> None:
    """What waits for a person's word is read when that comes."""
    manual = dataclasses.replace(config(store=False), curation=CurationSettings(mode="manual"))
    world = World(tmp_path, clock, [NOTHING], config=manual)
    said = world.transcript().user(f"{WORD} one")

    assert world.finalize(said).outcome_code == "curation.manual"
    assert words_on_disk(world) == []
    assert world.finalize(said, trigger="cli").outcome_code == "nothing.durable"
    assert WORD in world.prompts()


def test_an_attempt_that_lost_its_lease_takes_nothing_from_the_next_one(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still, another attempt reads the session now, and it wakes up to end its own."""
    world = unstored(tmp_path, clock, [NOTHING])
    said = world.transcript().user(f"{WORD} one")
    job = world.enqueue(said, "extract", reason="stop").job
    assert job is not None

    def lose(reached: str) -> None:
        if reached == "session.ingested":
            clock.advance(3600)
            world.ledger.rescue(everything=True)

    monkeypatch.setattr(world.ledger, "alive", tuple)
    monkeypatch.setattr(seams, "hook", lose)
    mine = world.ledger.claim("stopped")
    assert mine is not None
    world.worker.attempt(mine)

    assert world.job(job).status == "pending"
    assert texts(world, said) == [f"{WORD} one"]


def test_with_no_store_the_index_is_not_rewritten_for_each_job(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the daemon sees to the index while a job runs, and a search made one before."""
    world = World(tmp_path, clock, [NOTHING] * 12)
    world.finalize(world.transcript("kept").user(f"{WORD} kept"))
    index_some(world.place)
    world.restart(config=config(store=False))
    rewritten: list[int] = []
    monkeypatch.setattr(index, "_purge_some", lambda cursor: rewritten.append(1) or True)

    def look(reached: str) -> None:
        if reached == "session.ingested":
            index_some(world.place)

    monkeypatch.setattr(seams, "hook", look)
    for number in range(10):
        world.finalize(world.transcript(f"s{number}").user(f"gryphon {number}"))

    assert rewritten == []
    assert b"gryphon" not in world.home.session_history.read_bytes()


def test_words_kept_before_the_store_was_switched_off_go(tmp_path: Path, clock: FakeClock) -> None:
    """With the next pass."""
    world = World(tmp_path, clock, [NOTHING])
    world.finalize(world.transcript().user(f"{WORD} one"))
    assert words_on_disk(world)

    world.restart(config=config(store=False))

    assert let_go(world.place) == 1
    assert words_on_disk(world) == []


def test_a_crash_between_letting_go_and_the_end_of_the_job_loses_nothing(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt reads the transcript again."""
    world = unstored(tmp_path, clock, [NOTHING, NOTHING])
    said = world.transcript().user(f"{WORD} one")
    job = world.enqueue(said).job
    assert job is not None
    world.die_at("session.ingested", monkeypatch)
    Stripper(world.place.history.database).keep_nothing(said.agent, said.session, 0)
    world.work_to_rest()

    assert world.job(job).status == "completed"
    assert WORD in world.prompts()
