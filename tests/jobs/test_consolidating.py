"""Consolidation as a job: one commit, the tag last, and nothing asked twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from world import DAY, SECRET, World

from memoryd.jobs.daily import check_stores
from memoryd.jobs.job import Job
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import ProviderLimited, ProviderUnavailable
from memoryd.memory.notes import new_note
from memoryd.memory.providers.base import Request
from memoryd.memory.providers.rules import RulesProvider
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

TABS = "Indent every Python file of this repository with four spaces, never with tabs."
TABS_AGAIN = "Python files of this repository: indent with four spaces, never with tabs, always."
MERGED = "Indent every Python file of this repository with four spaces, never with tabs, always."
PORT = "The staging server of the shop listens on port 8443 behind the proxy."


def plan_of(**parts: object) -> str:
    """A model's answer."""
    return json.dumps({"merges": [], "episode": None, "promote": [], **parts})


def merge(into: str = "indent", *supersedes: str, content: str = MERGED) -> dict[str, object]:
    """One merge of an answer."""
    return {
        "into": into,
        "supersedes": list(supersedes or ("indent-again",)),
        "description": "How Python is indented",
        "content": content,
    }


def notes(world: World, **bodies: str) -> Store:
    """Committed notes of memoryd's own in the project's store."""
    store = world.store()
    baseline = Baseline(store)
    baseline.ensure()
    paths = []
    for name, body in bodies.items():
        named = name.replace("_", "-")
        data = new_note(name=named, description=body[:60], type="project", body=body)
        path = f"project/{named}.md"
        (store.root / "project").mkdir(exist_ok=True)
        (store.root / path).write_bytes(data)
        paths.append(path)
    baseline.commit(paths, "Remember", now_ms=world.clock.now_ms())
    return store


def start(world: World) -> Job:
    """Ask for a consolidation of the project's store."""
    made = world.ledger.enqueue_store(
        "consolidate", world.store().key, key=str(world.clock.now_ms()), trigger="cli"
    ).job
    assert made is not None
    return made


def run(world: World) -> Job:
    """Consolidate, and look at the job's row."""
    job = start(world)
    world.work()
    return world.job(job)


@pytest.fixture
def make_world(tmp_path: Path, clock: FakeClock) -> Callable[..., World]:
    """A home with three notes, two of which say the same in other words."""

    def make(*script: str | Exception | Callable[[Request], str], **options: object) -> World:
        world = World(tmp_path, clock, script, **options)  # type: ignore[arg-type]
        notes(world, indent=TABS, indent_again=TABS_AGAIN, staging_port=PORT)
        return world

    return make


def test_a_merge_is_one_commit_and_the_tag_follows_it(make_world: Callable[..., World]) -> None:
    """What was merged away is in the archive, linked; the tree is clean; `show` has the reasons."""
    world = make_world(plan_of(merges=[merge()]))

    job = run(world)

    store = world.store()
    baseline = Baseline(store)
    newest = baseline.log(1)[0]
    assert (job.status, job.outcome_code) == ("completed", "store.consolidated")
    assert world.bodies() == sorted([MERGED, PORT])
    archived = [note for note in store.notes() if note.archived]
    assert [note.superseded_by for note in archived] == ["indent"]
    assert newest.values("Memoryd-Job") == (job.id,)
    assert newest.subject.startswith("Consolidate: 1 merged")
    assert baseline.snapshot() == newest.id
    assert baseline.changed_paths() == []
    assert world.reasons(job) == ["policy.passed"]


def test_the_prompt_has_the_index_the_use_and_no_secret(
    make_world: Callable[..., World],
) -> None:
    """A person's note that holds a secret is not shown at all."""
    world = make_world(plan_of())
    (world.store().root / "user").mkdir()
    (world.store().root / "user/key.md").write_text(f"---\nname: key\n---\nmine is {SECRET}\n")

    run(world)

    assert "[project] indent" in world.prompts()
    assert "used: 0 times of 0 shown" in world.prompts()
    assert SECRET not in world.prompts()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (plan_of(), "nothing.proposed"),
        (plan_of(merges=[merge("indent", "made-up")]), "nothing.passed"),
    ],
)
def test_a_run_that_changes_nothing_says_why_and_moves_the_tag(
    make_world: Callable[..., World], said: str, why: str
) -> None:
    """It makes no commit; the empty runs are counted, and the last one's reason is kept."""
    world = make_world(said)
    before = Baseline(world.store()).head()

    job = run(world)

    known = world.ledger.consolidations.of(world.store().key)
    assert job.outcome_code == known.outcome == why
    assert Baseline(world.store()).head() == before == Baseline(world.store()).snapshot()
    assert known.empty_runs == 1


def test_a_run_after_which_nothing_changed_asks_no_model_and_says_so(
    make_world: Callable[..., World],
) -> None:
    """Asked for again at once, it is the second empty run."""
    world = make_world(plan_of())
    run(world)
    world.clock.advance(60)

    job = run(world)

    assert (job.outcome_code, len(world.model.requests)) == ("nothing.changed", 1)
    assert world.ledger.consolidations.of(world.store().key).empty_runs == 2


@pytest.mark.parametrize(
    "point",
    ["plan.recorded", "store.replaced", "store.committed", "snapshot.moved", "plan.finished"],
)
def test_a_crash_after_the_plan_asks_no_model_again(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """One commit, the tag on it, whatever the moment."""
    world = make_world(plan_of(merges=[merge()]))
    job = start(world)

    world.die_at(point, monkeypatch)
    world.work_to_rest()

    baseline = Baseline(world.store())
    assert len(world.model.requests) == 1
    assert world.job(job).outcome_code == "store.consolidated"
    assert len(baseline.commits_of(job.id)) == 1
    assert baseline.snapshot() == baseline.head()
    assert world.bodies() == sorted([MERGED, PORT])
    assert baseline.changed_paths() == []


def test_the_diff_of_a_failed_window_is_carried_on(make_world: Callable[..., World]) -> None:
    """A failed run leaves the tag; the next one is shown both windows."""
    world = make_world(plan_of(), "no idea", "no idea", plan_of())
    run(world)
    world.clock.advance(60)
    notes(world, first_window="The release of May is called Otter.")
    failing = start(world)
    world.work()
    notes(world, second_window="The release of June is called Heron.")
    status = world.job(failing).shown_status

    world.work_to_rest()

    last = world.model.requests[-1].prompt
    assert status == "retrying"
    assert "+The release of May is called Otter." in last
    assert "+The release of June is called Heron." in last


def test_an_edit_made_while_the_model_thinks_wins(make_world: Callable[..., World]) -> None:
    """Nothing of the merge is done, and the person's words stand as they wrote them."""

    def edit(request: Request) -> str:
        path = world.store().root / "project/indent-again.md"
        path.write_text(path.read_text() + "\nExcept in Makefiles.\n")
        return plan_of(merges=[merge()])

    world = make_world(edit)

    job = run(world)

    assert world.reasons(job) == ["changed"]
    assert "Except in Makefiles." in "\n".join(world.bodies())
    assert TABS in world.bodies()
    assert not (world.store().root / "archive").exists()


def test_what_was_committed_meanwhile_is_in_the_next_diff(
    make_world: Callable[..., World],
) -> None:
    """The tag then stays on what the model was shown."""

    def commit(request: Request) -> str:
        notes(world, meanwhile="The queue of the shop is called Kite.")
        return plan_of(merges=[merge()])

    world = make_world(commit, plan_of())

    run(world)
    world.clock.advance(DAY)
    run(world)

    assert "+The queue of the shop is called Kite." in world.model.requests[1].prompt


def test_without_a_provider_exact_duplicates_are_merged_all_the_same(
    make_world: Callable[..., World],
) -> None:
    """The mechanical part needs no model."""
    world = make_world(provider=RulesProvider())
    notes(world, staging_port_again=PORT)

    job = run(world)

    assert job.outcome_code == "store.consolidated"
    assert world.bodies() == sorted([TABS, TABS_AGAIN, PORT])


def test_a_provider_that_is_away_costs_nothing_and_is_asked_later(
    make_world: Callable[..., World],
) -> None:
    """The day's job waits; the tag stays."""
    world = make_world(ProviderUnavailable("no route"), plan_of(merges=[merge()]))
    job = start(world)

    world.work()
    waiting = world.job(job)
    world.work_to_rest()

    assert (waiting.shown_status, waiting.failures) == ("waiting", 0)
    assert world.job(job).outcome_code == "store.consolidated"


def test_a_run_that_failed_writes_nothing_and_is_tried_again_within_minutes(
    make_world: Callable[..., World],
) -> None:
    """Not even what needs no model; it counts as no run, and the next one does it all."""
    world = make_world("no idea", "still none", plan_of())
    store = notes(world, staging_port_again=PORT)
    before = Baseline(store).head(), world.bodies()

    job = run(world)

    waiting, known = world.job(job), world.ledger.consolidations.of(store.key)
    assert (waiting.shown_status, waiting.error_code) == ("retrying", "answer.unusable")
    assert waiting.run_at - world.clock.now_ms() < 60_000
    assert (Baseline(store).head(), world.bodies()) == before
    assert (Baseline(store).snapshot(), known.last_run_at) == (None, 0)

    world.work_to_rest()

    assert world.job(job).outcome_code == "store.consolidated"
    assert world.bodies() == sorted([TABS, TABS_AGAIN, PORT])
    assert world.ledger.consolidations.of(store.key).last_run_at > 0


def test_episodes_over_the_cap_stay_until_a_run_succeeds(
    make_world: Callable[..., World],
) -> None:
    """A run that failed archives none; the one that succeeds archives what is over."""
    world = make_world("no idea", "still none", plan_of())
    store = world.store()
    for number in range(51):
        data = new_note(
            name=f"e{number}", description=f"Event {number}", type="episode",
            body=f"The thing of number {number} was done.", happened_at="2025-11-30",
        )  # fmt: skip
        store.replace(f"episode/e{number}.md", data, found=None)
    paths = [path for path in store.paths() if path.startswith("episode/")]
    Baseline(store).commit(paths, "Remember", now_ms=world.clock.now_ms())

    run(world)
    after_failure = sum(path.startswith("episode/") for path in store.paths())
    world.work_to_rest()

    assert after_failure == 51
    assert sum(path.startswith("episode/") for path in store.paths()) == 50


def test_a_limit_of_the_providers_is_waited_for(make_world: Callable[..., World]) -> None:
    """It costs no failure, and the run is made when the limit lifts."""
    world = make_world(ProviderLimited("slow down"), plan_of(merges=[merge()]))
    job = start(world)

    world.work()
    waiting = world.job(job)
    world.work_to_rest()

    assert (waiting.wait_reason, waiting.failures) == ("provider.limited", 0)
    assert world.job(job).outcome_code == "store.consolidated"


def test_a_switch_set_meanwhile_ends_the_job(make_world: Callable[..., World]) -> None:
    """It counts as no run: the store is due again when the switch is gone."""
    world = make_world(plan_of(merges=[merge()]))
    job = start(world)
    world.restart(environ={"MEMORYD_DISABLE_CONSOLIDATION": "1"})

    world.work()

    assert world.job(job).outcome_code == "consolidation.switched-off"
    assert world.model.requests == []
    assert world.ledger.consolidations.of(world.store().key).last_run_at == 0


def test_a_second_check_of_the_day_asks_nobody(make_world: Callable[..., World]) -> None:
    """One job a day, one call a job."""
    world = make_world('{"facts": []}')
    for number in range(5):
        transcript = world.transcript(f"s{number}")
        for run_ in range(2):
            transcript.user(f"What does module {number} {run_} do?").assistant("It parses.")
        world.finalize(transcript)
    asked = len(world.model.requests)

    check_stores(world.place)
    world.work_to_rest()
    after = len(world.model.requests)
    world.clock.advance(3600)
    check_stores(world.place)
    world.work_to_rest()

    assert after > asked
    assert len(world.model.requests) == after


def test_a_store_from_which_most_vanished_waits_for_a_person(
    make_world: Callable[..., World],
) -> None:
    """Nothing is decided on an emptied store."""
    world = make_world(plan_of())
    for path in (world.store().root / "project").glob("*.md"):
        path.unlink()

    job = run(world)

    assert (job.shown_status, job.wait_reason) == ("waiting", "store.held")
    assert world.model.requests == []


def test_what_the_rules_went_over_is_still_to_be_seen_by_a_model(
    make_world: Callable[..., World],
) -> None:
    """The tag marks what a model has seen: a provider chosen later is asked about all of it."""
    world = make_world(plan_of())
    world.provider = RulesProvider()
    world.restart()
    run(world)
    before = Baseline(world.store()).snapshot()
    world.provider = world.model
    world.restart()
    world.clock.advance(60)

    run(world)

    assert before is None
    assert len(world.model.requests) == 1
