"""What may not be read is not: exclusions, kill switches and settings, end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from world import World, answer, fact

from memoryd.jobs.job import Job
from memoryd.memory.config import Config, CurationSettings, MemorySettings, PrivacySettings
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock
from memoryd.sessions.stored import StoredSession

FIRST = "Always run the linter before you commit."
SECOND = "We deploy on Fridays only, never else."


def everything(request: Request) -> str:
    """A model that takes each message of the person for a rule."""
    return answer(*(fact(one.text) for one in request.messages if one.role == "user"))


def ingested(world: World, session: str = "s1") -> StoredSession:
    """The session as the history knows it."""
    found = world.place.history.session("claude-code", session)
    assert found is not None
    return found


def outcome_of(job: Job, world: World) -> tuple[str | None, int, list[str]]:
    """How the job ended, how many calls it took, and what is in the memory."""
    return (job.outcome_code, len(world.model.requests), world.bodies())


def test_nothing_said_in_an_excluded_directory_is_kept(tmp_path: Path, clock: FakeClock) -> None:
    """The configuration's globs; the words are in no file of the home."""
    config = Config(privacy=PrivacySettings(exclude=(f"{tmp_path}/proj*",)))
    world = World(tmp_path, clock, [everything], config=config)

    job = world.finalize(world.transcript().user(FIRST))

    assert outcome_of(job, world) == ("nothing.said", 0, [])
    assert ingested(world).skipped == {"excluded": 1}
    world.place.close()
    assert not [path for path, data in world.bytes_of_home() if b"run the linter" in data]


def test_a_projects_own_file_may_exclude_it(tmp_path: Path, clock: FakeClock) -> None:
    """``.memoryd.toml`` in the repository; another project of the session is still read."""
    world = World(tmp_path, clock, [everything])
    other = tmp_path / "other"
    other.mkdir()
    (world.project / ".memoryd.toml").write_text('[privacy]\nexclude = ["*"]\n')

    world.finalize(world.transcript().user(FIRST).user(SECOND, cwd=str(other)))

    assert (world.bodies(), world.bodies(other)) == ([], [SECOND])
    assert FIRST not in world.prompts()


def test_what_was_said_in_no_directory_is_excluded_with_the_agents_own(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A line without a directory belongs to where the agent was started."""
    config = Config(privacy=PrivacySettings(exclude=(f"{tmp_path}/project",)))
    world = World(tmp_path, clock, [everything], config=config)

    job = world.finalize(world.transcript().user(FIRST, cwd=None), cwd=str(world.project))

    assert outcome_of(job, world) == ("nothing.said", 0, [])


def test_a_project_whose_file_is_unusable_waits_until_it_is_mended(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Nobody knows what it excludes; no failure, and nothing of it is kept meanwhile."""
    world = World(tmp_path, clock, [everything])
    file = world.project / ".memoryd.toml"
    file.write_text("[privacy\n")

    job = world.finalize(world.transcript().user(FIRST))
    assert (job.shown_status, job.wait_reason, job.failures) == (
        "waiting",
        "project.config-unusable",
        0,
    )
    assert str(file) in str(job.error_detail)
    assert world.place.history.session("claude-code", "s1") is None

    file.write_text("[privacy]\nexclude = []\n")
    clock.advance(600)
    world.work()
    assert world.bodies() == [FIRST]


def test_a_session_excluded_by_its_hook_stays_so_when_retried(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its pending job is cancelled with the reason; asked again, it ends with the same."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    job = world.enqueue(said).job
    assert job is not None

    assert world.ledger.exclude("claude-code", "s1", "session.excluded") == 1
    assert (world.job(job).status, world.job(job).outcome_code) == (
        "cancelled",
        "session.excluded",
    )
    assert world.enqueue(said.user(SECOND)).excluded == "session.excluded"
    world.ledger.retry(world.job(job))
    world.work()

    assert outcome_of(world.job(job), world) == ("session.excluded", 0, [])
    assert world.place.history.session("claude-code", "s1") is None


def test_what_is_said_under_the_daemons_kill_switch_is_passed_over_for_good(
    tmp_path: Path, clock: FakeClock
) -> None:
    """When the switch is gone, only what is said from then on is distilled."""
    world = World(tmp_path, clock, [everything], environ={"MEMORYD_DISABLE_EXTRACTION": "1"})
    said = world.transcript().user(FIRST)
    job = world.finalize(said)
    assert outcome_of(job, world) == ("extraction.switched-off", 0, [])

    world.restart(environ={"MEMORYD_DISABLE_EXTRACTION": "0"})
    job = world.finalize(said.user(SECOND))

    assert outcome_of(job, world) == ("notes.written", 1, [SECOND])
    assert FIRST not in world.prompts()


def test_under_the_switch_for_all_nothing_is_kept(tmp_path: Path, clock: FakeClock) -> None:
    """Not even in the session history; and what was said then stays unsaid."""
    world = World(tmp_path, clock, [everything], environ={"MEMORYD_DISABLE": "1"})
    said = world.transcript().user(FIRST)
    job = world.finalize(said)
    assert outcome_of(job, world) == ("memoryd.switched-off", 0, [])
    assert ingested(world).messages == 0

    world.restart(environ={"MEMORYD_DISABLE": ""})
    world.finalize(said.user(SECOND))

    assert world.bodies() == [SECOND]
    world.place.close()
    assert not [path for path, data in world.bytes_of_home() if b"run the linter" in data]


def test_without_auto_extract_nothing_is_asked(tmp_path: Path, clock: FakeClock) -> None:
    """The words wait; a person who asks by hand is served all of them."""
    config = Config(memory=MemorySettings(auto_extract=False))
    world = World(tmp_path, clock, [everything], config=config)
    said = world.transcript().user(FIRST)
    job = world.finalize(said)
    assert outcome_of(job, world) == ("extraction.off", 0, [])

    job = world.finalize(said.user(SECOND), trigger="cli")

    assert outcome_of(job, world) == ("notes.written", 1, [FIRST, SECOND])


def test_a_projects_own_file_may_turn_extraction_off(tmp_path: Path, clock: FakeClock) -> None:
    """Only there."""
    world = World(tmp_path, clock, [everything])
    (world.project / ".memoryd.toml").write_text("[memory]\nauto_extract = false\n")
    other = tmp_path / "other"
    other.mkdir()

    off = world.finalize(world.transcript("s1").user(FIRST))
    world.finalize(world.transcript("s2", cwd=other).user(SECOND))

    assert off.outcome_code == "extraction.off"
    assert (world.bodies(), world.bodies(other)) == ([], [SECOND])


def test_in_manual_mode_words_wait_until_a_person_asks(tmp_path: Path, clock: FakeClock) -> None:
    """The cursor stays; asked for, manual behaves as auto."""
    config = Config(curation=replace(CurationSettings(), mode="manual"))
    world = World(tmp_path, clock, [everything], config=config)
    said = world.transcript().user(FIRST)
    job = world.finalize(said)
    assert outcome_of(job, world) == ("curation.manual", 0, [])

    job = world.finalize(said.user(SECOND), trigger="cli")

    assert outcome_of(job, world) == ("notes.written", 1, [FIRST, SECOND])


def test_in_review_mode_everything_waits_for_a_person(tmp_path: Path, clock: FakeClock) -> None:
    """Candidates, no notes; and the words are not read again."""
    config = Config(curation=replace(CurationSettings(), mode="review"))
    world = World(tmp_path, clock, [everything], config=config)
    said = world.transcript().user(FIRST)

    job = world.finalize(said)

    assert outcome_of(job, world) == ("review.pending", 1, [])
    (kept,) = world.candidates(job)
    assert (kept.statement, kept.reason, kept.state) == (FIRST, "mode.review", "pending")
    assert world.cursor(said) == 1


def test_a_session_end_that_is_not_audited_leaves_its_words(
    tmp_path: Path, clock: FakeClock
) -> None:
    """``audit_on_session_end = false``."""
    config = Config(curation=replace(CurationSettings(), audit_on_session_end=False))
    world = World(tmp_path, clock, [everything], config=config)
    said = world.transcript().user(FIRST)

    job = world.finalize(said)

    assert outcome_of(job, world) == ("curation.session-end-off", 0, [])
    assert world.cursor(said) == 0


def test_a_projects_switch_holds_for_its_own_words_in_a_mixed_session(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Wherever the session ended: the other project's words are read, this one's are not sent."""
    world = World(tmp_path, clock, [everything])
    (world.project / ".memoryd.toml").write_text("[memory]\nauto_extract = false\n")
    other = tmp_path / "other"
    other.mkdir()

    world.finalize(world.transcript("s1").user(FIRST).user(SECOND, cwd=str(other)))
    world.finalize(
        world.transcript("s2", cwd=other).user(SECOND).user(FIRST, cwd=str(world.project))
    )

    assert (world.bodies(), world.bodies(other)) == ([], [SECOND])
    assert FIRST not in world.prompts()


def test_what_was_excluded_since_it_was_read_is_not_sent(tmp_path: Path, clock: FakeClock) -> None:
    """It waited in the session history for a budget, a throttle, a provider."""
    manual = Config(curation=replace(CurationSettings(), mode="manual"))
    world = World(tmp_path, clock, [everything], config=manual)
    said = world.transcript().user(FIRST)
    world.finalize(said)

    world.restart(config=Config(privacy=PrivacySettings(exclude=(str(world.project),))))
    job = world.finalize(said.user(SECOND))

    assert outcome_of(job, world) == ("nothing.said", 0, [])


def test_words_that_a_setting_left_waiting_can_be_asked_for(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The same end again: the job that was over is opened again, for a person only."""
    manual = Config(curation=replace(CurationSettings(), mode="manual"))
    world = World(tmp_path, clock, [everything], config=manual)
    said = world.transcript().user(FIRST)
    job = world.finalize(said)

    assert not world.enqueue(said).created
    again = world.finalize(said, trigger="cli")

    assert again.id == job.id
    assert outcome_of(again, world) == ("notes.written", 1, [FIRST])


def test_a_transcript_that_comes_back_is_read_after_all(tmp_path: Path, clock: FakeClock) -> None:
    """It was gone when its job ran; the same end told again is not lost."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    enqueued = world.enqueue(said)
    away = said.path.rename(tmp_path / "away")
    world.work()
    assert enqueued.job is not None
    assert world.job(enqueued.job).outcome_code == "transcript.gone"

    away.rename(said.path)
    world.finalize(said)

    assert world.bodies() == [FIRST]


def test_a_session_excluded_while_it_is_read_is_not_written(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The answer that comes after is for nothing."""
    world = World(tmp_path, clock)

    def excluded_meanwhile(request: Request) -> str:
        world.ledger.exclude("claude-code", "s1", "session.excluded")
        return everything(request)

    world.model._script = [excluded_meanwhile]
    job = world.finalize(world.transcript().user(FIRST))

    assert (job.status, job.outcome_code) == ("cancelled", "session.excluded")
    assert world.bodies() == []


def test_a_directory_that_cannot_exist_does_not_hold_up_its_session(
    tmp_path: Path, clock: FakeClock
) -> None:
    """No settings can lie in a path that is too long; the other messages are read all the same."""
    world = World(tmp_path, clock, [everything])

    job = world.finalize(world.transcript().user(SECOND, cwd="/" + "a" * 300).user(FIRST))

    assert (job.status, job.outcome_code) == ("completed", "notes.written")
    assert world.bodies() == [FIRST]
