"""Candidates as rows: kept with the plan of their slice, settled when it has been applied.

A row outlives its job. ``state`` says what became of it: ``planned`` until the slice is applied,
then ``applied``, ``appended`` or ``changed`` (it met a person's edit) or ``skipped``; ``pending``
waits for review, until a person has it ``applied`` or ``rejected``, and so does what met a change
and stands in no note; ``ignored`` is what policy turned down, or what a note says already when it
is to be written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from memoryd.jobs.database import Database
from memoryd.jobs.job import check_code
from memoryd.memory.plan import SliceRange
from memoryd.memory.text import clip

if TYPE_CHECKING:
    from memoryd.jobs.records import KeptCandidate
    from memoryd.memory.policy import Candidate

DETAIL_CHARACTERS = 500
_FIRST_STATE = {"apply": "planned", "review": "pending", "ignore": "ignored"}
_INSERT = """
insert into candidate (id, job_id, agent, session, first, last, ordinal, statement, category,
    explicitness, sensitivity, confidence, evidence, risk, decision, reason, detail, state, store,
    path, draft, created_at)
values (:id, :job, :agent, :session, :first, :last, :ordinal, :statement, :category,
    :explicitness, :sensitivity, :confidence, :evidence, :risk, :decision, :reason, :detail, :state,
    :store, :path, :draft, :now)
"""
#: Those of a slice that its plan was to apply. Guard of all that follows: still planned.
_PLANNED = """
where state = 'planned' and agent = :agent and session = :session and first = :first
    and last = :last
"""
#: The state, reason and detail (None: as they were) of what was not simply applied.
FATES: Mapping[str, tuple[str, str | None, str | None]] = {
    "forgotten": ("ignored", "forgotten", "a person forgot it meanwhile"),
    "same": ("ignored", "same", "another note came to say the same meanwhile"),
    "repeated": ("ignored", "slice.done", "these messages were distilled before"),
    "review": ("pending", "changed", "what it was to be written into was changed meanwhile"),
    "appended": ("appended", None, None),
    "changed": ("changed", None, None),
}
_SETTLE = f"""
update candidate set state = :state, reason = coalesce(:reason, reason),
    detail = coalesce(:detail, detail), draft = case when :keep then draft end
{_PLANNED} and id = :id
"""
_DECIDE = """
update candidate set state = :state, path = coalesce(:path, path), reason = :reason,
    draft = case when :keep then draft end
where id = :id and state = 'pending'
"""


def keep(
    db: Database, job_id: str, part: SliceRange, candidates: Iterable[Candidate], now: int
) -> None:
    """Keep the candidates of one slice, in their order. Runs in the caller's transaction."""
    for ordinal, candidate in enumerate(candidates):
        spans = [[span.message_id, span.seq, span.span] for span in candidate.evidence]
        db.change(
            _INSERT,
            **_slice(part),
            id=candidate.id,
            job=job_id,
            ordinal=ordinal,
            statement=candidate.statement,
            category=candidate.category,
            explicitness=candidate.explicitness,
            sensitivity=candidate.sensitivity,
            confidence=candidate.confidence,
            evidence=json.dumps(spans, ensure_ascii=False),
            risk=candidate.risk,
            decision=candidate.decision,
            reason=check_code(candidate.reason),
            detail=clip(candidate.detail, DETAIL_CHARACTERS),
            state=_FIRST_STATE[candidate.decision],
            store=candidate.store,
            path=candidate.path,
            draft=candidate.draft,
            now=now,
        )


def once_settled(kept: Iterable[KeptCandidate], fates: Mapping[str, Iterable[str]]) -> set[str]:
    """The states that ``kept`` have once ``settle`` was told these ``fates`` of those planned."""
    # Of two fates the first counts there: it is planned no more for the second.
    told = {each: FATES[name][0] for name in reversed(tuple(FATES)) for each in fates.get(name, ())}
    return {
        told.get(each.id, "applied") if each.state == "planned" else each.state for each in kept
    }


def settle(db: Database, part: SliceRange, fates: Mapping[str, Iterable[str]]) -> None:
    """Say what became of a slice's planned candidates: one of ``FATES``, else applied.

    What a candidate would have written is kept only where a person is to decide on it.
    """
    for name in FATES:
        state, reason, detail = FATES[name]
        for identifier in fates.get(name, ()):
            db.change(
                _SETTLE,
                **_slice(part),
                id=identifier,
                state=state,
                reason=reason,
                detail=detail,
                keep=state == "pending",
            )
    db.change(f"update candidate set state = 'applied', draft = null {_PLANNED}", **_slice(part))


def forget(db: Database, identifiers: Iterable[str]) -> int:
    """A person forgot what these candidates in review say; how many still waited.

    What applying them would have written is dropped.
    """
    return sum(
        db.change(
            "update candidate set state = 'ignored', reason = 'forgotten', detail = :detail,"
            " draft = null where id = :id and state = 'pending'",
            id=identifier,
            detail="a person forgot it",
        )
        for identifier in identifiers
    )


def skip(db: Database, part: SliceRange) -> None:
    """A person passed over the slice: its planned candidates will not be applied."""
    db.change(f"update candidate set state = 'skipped', draft = null {_PLANNED}", **_slice(part))


def decide(
    db: Database,
    identifier: str,
    *,
    state: str,
    path: str | None,
    reason: str,
    keep_draft: bool = False,
) -> bool:
    """Record a person's word on a candidate in review; False when it does not wait any more.

    What it would have written goes with that, unless ``keep_draft``: a merge that was rejected is
    known by it. Runs in the caller's transaction.
    """
    values = {"id": identifier, "state": state, "path": path, "reason": check_code(reason)}
    return db.change(_DECIDE, keep=keep_draft, **values) > 0


def follow(db: Database, store: str, former_path: str, path: str) -> None:
    """A note was moved: the words it stands on are found at its new path.

    Else it could be forgotten there and learned again from them.
    """
    with db.writing():
        db.change(
            "update candidate set path = :path where store = :store and path = :former_path",
            store=store,
            path=path,
            former_path=former_path,
        )


def _slice(part: SliceRange) -> dict[str, object]:
    return {
        "agent": part.agent,
        "session": part.session,
        "first": part.first,
        "last": part.last,
    }
