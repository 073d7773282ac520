"""From a store's notes to fewer, better ones: what works a job of kind consolidate.

The path: settle a plan that stands; take in what a person did; gather what the store holds and
what changed in it; ask the provider, where one can be asked; decide; record the plan; apply it;
move the tag ``consolidation-baseline``. The tag moves last and only on success, so that what a
failed run saw is seen again by the next one. From the recorded plan on, no model is asked again.

| crash after | who repairs it |
|---|---|
| the plan is recorded | the next claim of the store applies it |
| it is committed | the same; it finds the commit of the job and moves the tag |
| the tag is moved | the same; nothing is left but to clear the plan |
"""

from __future__ import annotations

import math
from collections.abc import Callable

from memoryd.jobs.calls import has_time
from memoryd.jobs.job import Job
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.reading import WRITING_SECONDS
from memoryd.jobs.recovering import standing_plan
from memoryd.jobs.stores import WRITER_WAIT_SECONDS, by_person, take_in_edits
from memoryd.jobs.workplace import Workplace
from memoryd.memory import prompt, seams
from memoryd.memory.apply import apply_plan
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import iso
from memoryd.memory.config import switched_off
from memoryd.memory.consolidation import (
    Consolidated,
    Material,
    Proposals,
    decide,
    gather,
    parse_proposals,
    request,
)
from memoryd.memory.errors import BadAnswer
from memoryd.memory.ids import uuid7
from memoryd.memory.plan import Plan
from memoryd.memory.store import Store
from memoryd.memory.tombstones import Tombstones

#: Sessions named to the provider, the last active first.
SESSIONS_NAMED = 20


def consolidate(job: Job, place: Workplace, keeper: LeaseKeeper) -> None:
    """Work one claimed job of a store to its end; the ledger says how that was.

    Raises ``Snooze``, ``LeaseLost`` and the errors of stores and providers; the worker records
    them.
    """
    store = Store.for_project(place.home, job.project or "")
    standing, why = standing_plan(place.home, place.ledger, job), ""
    if standing is not None:
        _apply(job, place, store, standing)
    if standing is None or standing.job != job.id:
        if switched_off(place.environ, "CONSOLIDATION"):
            place.ledger.complete(job, "consolidation.switched-off")
            return
        take_in_edits(place, [store.key])
        seams.before("store.read")
        material, found = propose(place, store, job, lambda: keeper.seconds_left(job))
        seams.reach("store.read")
        plan = _plan(job, place, material, found)
        place.ledger.record_plan(job, plan, found.candidates)
        _apply(job, place, store, plan)
        why = found.outcome
    done = _done(job, place)
    place.ledger.complete_store(job, done or why or "nothing.changed", empty=not done)


def propose(
    place: Workplace,
    store: Store,
    job: Job | None,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> tuple[Material, Consolidated]:
    """What the store would become, decided on it as it is now; nothing is written.

    ``job`` is whose call it is, None for a preview, and ``seconds_left`` how long it may still
    take. Raises ``Snooze`` and ``ProviderError``.
    """
    planned = place.ledger.records.planned_contents
    tombstones = Tombstones.of(store)
    now = place.clock.now_ms()
    material = gather(
        store,
        now_ms=now,
        usage=place.ledger.usage.usage_of(store.key),
        sessions=_sessions(place, store),
        by_person=by_person(store, planned),
    )
    asks = place.calls.provider.consolidates and not material.idle
    found = decide(
        material,
        _ask(place, material, job, lambda: seconds_left() - WRITING_SECONDS) if asks else None,
        settings=place.config.curation,
        forgotten=lambda name, statement: tombstones.forgets(name, statement),
        new_id=lambda: uuid7(now),
        source=f"consolidation {job.id}" if job else "consolidation",
        asked=job is None or job.trigger == "cli",
        before=place.ledger.records.drafts(store.key),
    )
    return material, found


def _sessions(place: Workplace, store: Store) -> list[tuple[str, str]]:
    """(date, id) of the sessions in which the project was worked on last."""
    active = place.history.active_since(0, 1).get(store.key, [])
    return [(iso(each.last_active_ms)[:10], each.session) for each in active[:SESSIONS_NAMED]]


def _ask(
    place: Workplace, material: Material, job: Job | None, seconds_left: Callable[[], float]
) -> Proposals:
    """The provider's proposals; one corrective retry. Raises ``BadAnswer`` when it is no better."""
    asked = request(material, timeout_seconds=place.config.provider.timeout_seconds)
    found = parse_proposals(place.calls.ask(job, asked, seconds_left).text)
    if not found.whole and has_time(asked, seconds_left()):
        again = prompt.corrective(asked, [item.detail for item in found.refused])
        found = parse_proposals(place.calls.ask(job, again, seconds_left).text)
    if not found.whole:
        raise BadAnswer(
            "the provider's answer holds no JSON object with merges, an episode or promotions",
            hint="try another model; the part that needs none runs with the rules provider",
        )
    return found


def _plan(job: Job, place: Workplace, material: Material, found: Consolidated) -> Plan:
    return Plan(
        job.id,
        None,
        place.calls.provider.name,
        found.operations,
        found.subject,
        # What no model was asked about is still to be seen by one.
        material.snapshot if place.calls.provider.consolidates else "",
        material.now_ms,
    )


def _apply(job: Job, place: Workplace, store: Store, plan: Plan) -> None:
    """Write what the plan says, move the tag, and clear the plan."""
    applied = apply_plan(
        place.home,
        plan,
        clock=place.clock,
        planned=place.ledger.records.planned_contents(),
        spans=place.ledger.records.spans,
        wait_seconds=WRITER_WAIT_SECONDS,
    )
    seams.before("snapshot.moved")
    made, now_ms = applied.commits.get(store.key), place.clock.now_ms()
    _move_tag(Baseline(store), plan.snapshot, made, now_ms)
    seams.reach("snapshot.moved")
    place.ledger.finish_plan(
        job,
        plan,
        changed=applied.changed,
        forgotten=applied.forgotten,
        repeated=applied.repeated,
    )


def _move_tag(baseline: Baseline, snapshot: str, made: str | None, now_ms: int) -> None:
    """To the new commit when nothing else was committed since the snapshot, else to the snapshot.

    What was committed meanwhile is then in the next diff.
    """
    if not snapshot:
        return
    target = made if made and baseline.parent(made) == snapshot else snapshot
    found = baseline.snapshot()
    if found != target:
        baseline.move_snapshot(target, found=found, now_ms=now_ms)


def _done(job: Job, place: Workplace) -> str:
    """What came of the job, as a code; "" where it changed nothing."""
    states = {kept.state for kept in place.ledger.records.candidates(job.id)}
    if "applied" in states:
        return "store.consolidated"
    return "review.pending" if "pending" in states else ""
