"""From a recorded plan to one commit a store, however often and wherever the process dies.

Every step can be found done: a file that is as the plan leaves it, a statement that stands in the
file already, a person's version that is in the baseline, a commit with the slice's trailer. What
could not be done, because the file is a person's by now or they forgot it since the plan was made,
is written into the commit's trailers, so that a second call gives the same answer as the one that
crashed. What belongs together is done together or not at all (``memory/units.py``).

| crash after | a second call finds |
|---|---|
| ``store.replaced`` | files as the plan leaves them: done; it goes on with the rest of the unit |
| ``store.committed`` | the trailer: done before; it goes on with the next store |
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from memoryd.memory import seams, subjects
from memoryd.memory.baseline import Baseline, Commit
from memoryd.memory.clock import Clock
from memoryd.memory.derived import follow_index
from memoryd.memory.errors import StoreError
from memoryd.memory.files import sha256
from memoryd.memory.heads import Heads
from memoryd.memory.home import Home
from memoryd.memory.plan import Operation, Plan
from memoryd.memory.projects import record_key
from memoryd.memory.sayings import said_anywhere
from memoryd.memory.store import Store
from memoryd.memory.tombstones import Forgotten, Span, Tombstones
from memoryd.memory.units import Work, perform_all, put_back_all
from memoryd.memory.values import sense_key
from memoryd.memory.written import Written

_CHANGED = "Memoryd-Changed"
_APPENDED = "Memoryd-Appended"
_FORGOTTEN = "Memoryd-Forgotten"
_SAME = "Memoryd-Same"
_REVIEW = "Memoryd-Review"
_PLAN = "Memoryd-Plan"
#: Each trailer that names candidates, and the field of ``Applied`` for them.
_FATES = {
    _CHANGED: "changed",
    _APPENDED: "appended",
    _FORGOTTEN: "forgotten",
    _SAME: "same",
    _REVIEW: "review",
}

#: The (message id, exact words) that a candidate stands on, where they are known.
SpansOf = Callable[[str], Iterable[Span]]


#: What a candidate says; "" where it is not known.
StatementOf = Callable[[str], str]


def _unknown(candidate: str) -> Iterable[Span]:
    return ()


def _unsaid(candidate: str) -> str:
    return ""


@dataclass(frozen=True)
class Applied:
    """What became of a plan: each store's commit, and what a person's version stood in the way of.

    ``changed`` are the candidates dropped with reason ``changed``; ``appended`` those whose
    statement was appended as a line; ``forgotten`` those that a person forgot since the plan was
    made; ``same`` those that another note has come to say since; ``review`` those that were in the
    way of a change as ``changed`` are, and whose statement no note has: a person decides;
    ``repeated`` those whose slice another plan was committed for before. All in the plan's order,
    each candidate once.
    """

    commits: dict[str, str]
    changed: tuple[str, ...] = ()
    appended: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    def fates(self) -> dict[str, tuple[str, ...]]:
        """The candidates that were not simply written, by what became of them."""
        names = (*_FATES.values(), "repeated")
        return {name: found for name in names if (found := getattr(self, name))}


def apply_plan(
    home: Home,
    plan: Plan,
    *,
    clock: Clock,
    planned: Collection[str] = (),
    spans: SpansOf = _unknown,
    statement: StatementOf = _unsaid,
    wait_seconds: float = 0.0,
) -> Applied:
    """Write what ``plan`` says into its stores, one commit each; call it again after any failure.

    ``planned`` are the sha256 of files that other standing plans leave: never a person's version.
    ``spans`` gives the words a candidate stands on, which a person may have forgotten meanwhile,
    ``statement`` what it says, which may stand in a note by now.
    Raises ``StoreBusy`` when a store is still being written after ``wait_seconds`` (nothing was
    done), ``StoreError`` and ``BaselineError`` when a store cannot be (a later call goes on from
    there). Never call it inside a database transaction.
    """
    stores = [Store.open(home, key) for key in {each.store for each in plan.operations}]
    stores.sort(key=lambda store: store.root)
    for operation in plan.operations:
        _require_writable(Store.open(home, operation.store), operation)
    commits: dict[str, str] = {}
    found: dict[str, set[str]] = {name: set() for name in (*_FATES.values(), "repeated")}
    given = _Given(plan, clock.now_ms(), planned, spans, statement)
    with contextlib.ExitStack() as locks:
        for store in stores:
            locks.enter_context(store.writer_lock(wait_seconds))
        for store in stores:
            done = _apply_to(store, given)
            commits[store.key] = done.id
            if not _is_of(done, plan):
                found["repeated"] |= {x.candidate for x in plan.operations if x.store == store.key}
                continue
            for trailer, name in _FATES.items():
                found[name] |= set(done.values(trailer))
        for store in stores:
            follow_index(store)
    for store in stores:
        if not store.is_profile:
            record_key(home, store.key)
    order = list(dict.fromkeys(each.candidate for each in plan.operations))
    named = {name: tuple(x for x in order if x in found[name]) for name in found}
    return Applied(commits, **named)


def take_back(home: Home, plan: Plan, *, clock: Clock, wait_seconds: float = 0.0) -> list[str]:
    """Put back what ``plan`` left uncommitted in its stores, before it is given up.

    Each file that is as the plan leaves it gets ``HEAD``'s version; a person's changes and a store
    where the plan was committed stay. ``store: path`` of each file put back is returned. Harmless
    where the plan is applied after all. Raises as ``apply_plan`` does.
    """
    found = []
    for key in sorted({each.store for each in plan.operations}):
        store = Store.open(home, key)
        with store.writer_lock(wait_seconds):
            baseline = Baseline(store)
            if not baseline.exists() or baseline.committed_as(*_mark(plan)):
                continue
            operations = [each for each in plan.operations if each.store == key]
            written = Written.of(store, plan)
            paths = put_back_all(Work(store, baseline, operations, clock.now_ms(), written))
            written.forget()
            found += [f"{key}: {path}" for path in paths]
            follow_index(store)
    return found


def _require_writable(store: Store, operation: Operation) -> None:
    """Refuse a plan that names what no plan may write, before anything is done."""
    named = operation.path
    consistent = (operation.content is None) == (operation.after is None) and (
        operation.content is None or sha256(operation.content.encode()) == operation.after
    )
    if not store.holds(named) or named == "SOUL.md" or not consistent:
        raise StoreError(
            f"the plan may not write {named!r}",
            hint="once it has failed: `memoryd retry --skip`",
        )


@dataclass(frozen=True)
class _Given:
    """What ``apply_plan`` was asked."""

    plan: Plan
    now_ms: int
    planned: Collection[str]
    spans: SpansOf
    statement: StatementOf


def _apply_to(store: Store, given: _Given) -> Commit:
    """Perform the plan in one store; its commit comes back, made now or before.

    Where another plan was committed for the same slice, that one's: nothing is written, so that
    what was read twice is not remembered twice.
    """
    plan, now_ms = given.plan, given.now_ms
    baseline = Baseline(store)
    baseline.ensure()
    before = _committed(baseline, plan)
    if before is not None:
        Written.of(store, plan).forget()
        return before
    every = [each for each in plan.operations if each.store == store.key]
    written = Written.of(store, plan)
    begun = written.take_up(every)
    forgotten = _forgotten(store, plan, every, given.spans)
    left_out = [each for each in every if each.candidate in forgotten]
    put_back_all(Work(store, baseline, left_out, now_ms, written))
    operations = [each for each in every if each.candidate not in forgotten]
    work = Work(
        store,
        baseline,
        operations,
        now_ms,
        written,
        given.planned,
        plan.at_ms if plan.slice is not None else 0,
        given.statement,
    )
    with Heads(store) as heads:
        heads.follow()
        perform_all(work)
        for each in begun:
            each.unlink(missing_ok=True)
        trailers = _trailers(plan, work, forgotten, _in_no_note(work))
        seams.before("store.committed")
        made = baseline.commit(work.left, plan.subject or _subject(work), trailers, now_ms=now_ms)
        heads.saved(work.left)
    seams.reach("store.committed")
    seams.before("written.forgotten")
    written.forget()
    seams.reach("written.forgotten")
    return Commit(made, "memoryd", now_ms, "", tuple(trailers))


def _in_no_note(work: Work) -> list[str]:
    """Of what was in the way of a change, the candidates whose statement would be lost by it.

    What a person took away again is not: they saw it.
    """
    statements = {
        candidate: sense_key(work.statement(candidate))
        for candidate in work.changed
        if candidate not in work.taken
    }
    if not any(statements.values()):
        return []
    said = said_anywhere(work.baseline, planned=work.planned)
    return [candidate for candidate, key in statements.items() if key and key not in said]


def _trailers(
    plan: Plan, work: Work, forgotten: Iterable[str], review: Collection[str]
) -> list[tuple[str, str]]:
    job, mark = ("Memoryd-Job", plan.job), _mark(plan)
    return [
        job,
        *((mark,) if mark != job else ()),
        (_PLAN, plan.digest),
        ("Memoryd-Provider", plan.provider),
        *((_CHANGED, candidate) for candidate in work.changed if candidate not in review),
        *((_REVIEW, candidate) for candidate in review),
        *((_SAME, candidate) for candidate in work.same),
        *((_APPENDED, candidate) for candidate in work.appended),
        *((_FORGOTTEN, candidate) for candidate in forgotten),
    ]


def _forgotten(
    store: Store, plan: Plan, operations: Iterable[Operation], spans: SpansOf
) -> dict[str, None]:
    """The candidates whose notes a person forgot since deciding began, in the plan's order."""
    found: dict[str, None] = {}
    tombstones = Tombstones.of(store) if plan.at_ms and not store.is_profile else None
    for each in operations:
        if tombstones is None or not tombstones.data or each.content is None:
            continue
        what = Forgotten.of_file(each.path, each.content.encode(), spans(each.candidate))
        # A tombstone that was there before was asked when it was decided.
        if tombstones.meets(what, newest_user_message_ms=plan.at_ms - 1):
            found[each.candidate] = None
    return found


def _committed(baseline: Baseline, plan: Plan) -> Commit | None:
    """The commit of this plan, else of another one for the same scope."""
    found = baseline.committed_as(*_mark(plan))
    return next((each for each in found if _is_of(each, plan)), found[0] if found else None)


def _is_of(commit: Commit, plan: Plan) -> bool:
    """Whether the commit is this plan's. Older ones name no plan: then its job must be the same."""
    plans = commit.values(_PLAN)
    return plan.digest in plans or (not plans and plan.job in commit.values("Memoryd-Job"))


def _mark(plan: Plan) -> tuple[str, str]:
    """The trailer by which a second call knows that the plan was committed."""
    if plan.slice is None:
        return "Memoryd-Job", plan.job
    return "Memoryd-Slice", str(plan.slice)


def _subject(work: Work) -> str:
    if not work.left:
        return "Nothing left to remember: all was changed by hand meanwhile"
    told = subjects.done(work.baseline.files(None, *work.left), work.left, subjects.OURS)
    return told[:1].upper() + told[1:]
