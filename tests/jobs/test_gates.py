"""Whether a session is distilled now: pure decisions, and what becomes of the words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from builders import enqueue as make
from builders import open_ledger
from world import NOTHING, Transcript, World

from memoryd.jobs import gates
from memoryd.jobs.gates import Refusal
from memoryd.jobs.job import Job
from memoryd.memory.config import Config, CurationSettings, MemorySettings
from memoryd.memory.testing import FakeClock

LONG = "the parser of the configuration file is what we are talking about here, again and again "


@dataclass(frozen=True)
class Said:
    """A message as a gate sees it."""

    role: str
    text: str
    id: str = "m"


@pytest.fixture
def extract(tmp_path: Path, clock: FakeClock) -> Job:
    """An extract made by the end of a run."""
    ledger = open_ledger(tmp_path, clock)
    return make(ledger, kind="extract", reason="stop")


@pytest.fixture
def finalize(tmp_path: Path, clock: FakeClock) -> Job:
    """A finalize made by the end of a session."""
    return make(open_ledger(tmp_path, clock))


def runs(count: int) -> list[Said]:
    """That many runs about one topic."""
    return [Said(role, LONG + str(at)) for at in range(count) for role in ("user", "assistant")]


@pytest.mark.parametrize("value", ["1", "true", "YES", " on "])
@pytest.mark.parametrize("name", ["MEMORYD_DISABLE", "MEMORYD_DISABLE_EXTRACTION"])
def test_a_kill_switch_passes_the_words_over(finalize: Job, name: str, value: str) -> None:
    """Also where a person asked by hand."""
    asked = replace(finalize, trigger="cli")

    for job in (finalize, asked):
        refusal = gates.switches(job, Config(), {name: value})
        assert refusal == Refusal("extraction.switched-off", "passed over")


@pytest.mark.parametrize("value", ["", "0", "false", "no"])
def test_a_switch_that_is_not_on_is_off(finalize: Job, value: str) -> None:
    """``MEMORYD_DISABLE=0`` disables nothing."""
    assert gates.switches(finalize, Config(), {"MEMORYD_DISABLE": value}) is None
    assert not gates.all_off({"MEMORYD_DISABLE": value})


def test_only_the_switch_for_all_stops_ingestion() -> None:
    """Without extraction a session can still be searched."""
    assert gates.all_off({"MEMORYD_DISABLE": "1"})
    assert not gates.all_off({"MEMORYD_DISABLE_EXTRACTION": "1"})


@pytest.mark.parametrize(
    ("changes", "kind", "reason", "code"),
    [
        ({"mode": "manual"}, "finalize", "end", "curation.manual"),
        ({"audit_on_session_end": False}, "finalize", "end", "curation.session-end-off"),
        ({"audit_on_compact": False}, "extract", "compact", "curation.compact-off"),
        ({"audit_on_compact": False}, "extract", "stop", None),
        ({"audit_on_session_end": False}, "extract", "compact", None),
        ({"mode": "review"}, "finalize", "end", None),
    ],
)
def test_settings_leave_the_words_waiting(
    finalize: Job, changes: dict[str, object], kind: str, reason: str, code: str | None
) -> None:
    """Each for its own occasion; a person's own request is never refused by a setting."""
    config = Config(curation=replace(CurationSettings(), **changes))  # type: ignore[arg-type]
    job = replace(finalize, kind=kind, reason=reason)

    refusal = gates.switches(job, config, {})

    assert refusal == (None if code is None else Refusal(code))
    assert gates.switches(replace(job, trigger="cli"), config, {}) is None


def test_an_extract_waits_for_its_interval(extract: Job) -> None:
    """Seven runs of one topic are too few, eight are enough."""
    assert gates.spoken(extract, runs(7), 8) == Refusal("extract.throttled", throttled=True)
    assert gates.spoken(extract, runs(8), 8) is None


def test_an_extract_does_not_wait_when_the_topic_changes(extract: Job) -> None:
    """What was said before is complete."""
    other = [Said("user", "please paint my garden shed green tomorrow"), Said("assistant", "Ok.")]

    assert gates.spoken(extract, runs(2) + other, 8) is None


def test_the_first_run_is_no_change_of_topic(extract: Job) -> None:
    """There is nothing it could differ from."""
    said = [Said("user", LONG * 3), Said("assistant", "Yes.")]

    assert gates.spoken(extract, said, 8) == Refusal("extract.throttled", throttled=True)


@pytest.mark.parametrize(
    "said",
    [
        [Said("user", "x" * 199)],
        [Said("user", "x" * 500)],
        [Said("user", "x" * 100), Said("assistant", "y" * 99)],
    ],
)
def test_an_extract_that_is_too_short_waits(extract: Job, said: list[Said]) -> None:
    """Under 200 characters or two turns."""
    assert gates.spoken(extract, said, 1) == Refusal("extract.too-short", throttled=True)


def test_a_long_message_is_one_run(extract: Job) -> None:
    """However many parts it is kept in."""
    parts = [Said("user", LONG * 80, "u1"), *(Said("user", LONG, f"u1#{n}") for n in range(2, 30))]

    refusal = gates.spoken(extract, [*parts, Said("assistant", "Read.")], 8)

    assert refusal == Refusal("extract.throttled", throttled=True)


def test_a_finalize_needs_one_word_of_a_person(finalize: Job) -> None:
    """A short session is distilled too; one without a person is not."""
    assert gates.spoken(finalize, [Said("user", "Use tabs.")], 8) is None
    assert gates.spoken(finalize, [Said("assistant", "x" * 999)], 8) == Refusal("nothing.said")


def test_a_finalize_looks_no_further_than_it_must(finalize: Job) -> None:
    """The first word of a person is enough."""

    def endless() -> Iterator[Said]:
        while True:
            yield Said("user", "Use tabs.")

    assert gates.spoken(finalize, endless(), 8) is None


@pytest.mark.parametrize("changes", [{"reason": "compact"}, {"trigger": "cli"}])
def test_compaction_and_a_persons_request_do_not_wait(
    extract: Job, changes: dict[str, str]
) -> None:
    """The words would be gone, or somebody waits."""
    assert gates.spoken(replace(extract, **changes), [Said("user", "Use tabs.")], 8) is None


def test_a_persons_own_extract_leaves_its_row(extract: Job) -> None:
    """Who asked can look at it."""
    asked = replace(extract, trigger="cli")

    assert gates.spoken(asked, [Said("assistant", "Hm.")], 8) == Refusal("nothing.said")


# -- what becomes of it --------------------------------------------------------------------------


def stop(world: World, said: Transcript) -> None:
    """A run ends: the agent's hook asks for an extract, and a worker looks at it."""
    world.enqueue(said, "extract", reason="stop")
    world.work()


def test_a_throttled_extract_leaves_no_row_and_is_counted(tmp_path: Path, clock: FakeClock) -> None:
    """Only the session's row says how often."""
    world = World(tmp_path, clock)
    said = world.transcript()

    for _ in range(3):
        stop(world, said.user(LONG).assistant(LONG))

    assert world.ledger.records.jobs() == []
    assert world.ledger.db.rows("select count(*) from attempt_log") == [(0,)]
    rollout = world.ledger.records.rollout("claude-code", "s1")
    assert rollout is not None
    assert (rollout.throttled, rollout.last_cutoff, world.cursor(said)) == (3, 0, 0)
    assert world.model.requests == []


def test_twenty_runs_of_one_session_take_three_calls_and_lose_nothing(
    tmp_path: Path, clock: FakeClock
) -> None:
    """After 8, after 16, and at the end; every word of every run is shown once."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript()
    for number in range(20):
        said.user(f"{LONG} asked{number:02}").assistant(f"{LONG} answered{number:02}")
        stop(world, said)

    world.finalize(said)

    assert len(world.model.requests) == 3
    for number in range(20):
        assert world.prompts().count(f"asked{number:02}") == 1
        assert world.prompts().count(f"answered{number:02}") == 1
    rollout = world.ledger.records.rollout("claude-code", "s1")
    assert rollout is not None
    assert rollout.throttled == 18


def test_a_projects_own_interval_counts(tmp_path: Path, clock: FakeClock) -> None:
    """``extract_every_n_runs`` of its ``.memoryd.toml``."""
    config = Config(memory=MemorySettings(extract_every_n_runs=50))
    world = World(tmp_path, clock, [NOTHING], config=config)
    (world.project / ".memoryd.toml").write_text("[memory]\nextract_every_n_runs = 2\n")
    said = world.transcript()

    for _ in range(4):
        stop(world, said.user(LONG).assistant(LONG))

    assert len(world.model.requests) == 2
