"""Candidates in review: what waits for a person, and what becomes of it at their word.

The store is written first, the row settled after it. A process that dies between the two leaves a
row that still waits beside a commit with its id; the same word again finds the commit and only
settles the row. Whoever comes second to a candidate that two decide at once is told so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import msgspec

from memoryd.jobs import candidates
from memoryd.jobs.ledger import Ledger
from memoryd.memory import seams
from memoryd.memory.clock import Clock
from memoryd.memory.errors import UsageError
from memoryd.memory.facts import Category, EvidenceSpan, Relation
from memoryd.memory.home import Home
from memoryd.memory.ids import short
from memoryd.memory.policy import reason_text
from memoryd.memory.proposals import FactProposal, MergeProposal, Proposal, from_json
from memoryd.memory.reviewing import Accepted, Proposed, accept, refuse
from memoryd.memory.store import Store
from memoryd.memory.text import clip, without_surrogates

_COLUMNS = """id, statement, category, reason, detail, store, draft, evidence, agent, session,
    job_id, created_at"""
_ID_CHARACTERS = 64


@dataclass(frozen=True)
class Waiting:
    """A candidate in review. ``proposed`` is what it would write; ``store`` a store's key."""

    statement: str
    category: str
    reason: str
    detail: str
    store: str
    proposed: Proposed

    @property
    def id(self) -> str:
        """The whole id."""
        return self.proposed.id


@dataclass(frozen=True)
class Decided:
    """What a person's word came to: ``state`` as the row has it now, and the id that undoes it."""

    id: str
    state: str
    store: str
    path: str | None
    commit: str | None
    undo: str | None


def waiting(ledger: Ledger, store: str | None = None) -> list[Waiting]:
    """What waits in a store, or (None) in all of them, the oldest first."""
    rows = ledger.db.rows(
        f"select {_COLUMNS} from candidate where state = 'pending' and store is not null"
        " and (:store is null or store = :store) order by created_at, ordinal, id",
        store=store,
    )
    return [_waiting(row) for row in rows]


def find(ledger: Ledger, ending: str) -> Waiting:
    """The candidate in review with this id, or the only one whose id ends so.

    Raises ``UsageError``, also for one that waits no more: with what became of it.
    """
    wanted = without_surrogates(ending.strip().lower())
    fitting = [each for each in waiting(ledger) if wanted and each.id.lower().endswith(wanted)]
    exact = [each for each in fitting if each.id.lower() == wanted]
    if len(fitting) == 1 or exact:
        return (exact or fitting)[0]
    if fitting:
        raise UsageError(
            f"more than one candidate has an id that ends with {clip(ending, 60)!a}",
            hint="type more of it; `memoryd memory review --json` shows whole ids",
        )
    raise UsageError(
        f"no candidate in review has an id that ends with {clip(ending, 60)!a}"
        + _past(ledger, wanted),
        hint="`memoryd memory review --all` shows what waits",
    )


def apply_candidate(home: Home, ledger: Ledger, one: Waiting, clock: Clock) -> Decided:
    """A person's yes: write it and settle the row. Raises as ``memory.reviewing.accept`` does."""
    done = accept(
        Store.open(home, one.store),
        one.proposed,
        clock=clock,
        planned=ledger.records.planned_contents,
        waits=lambda: _waits(ledger, one),
    )
    seams.reach("candidate.written")
    state = "applied" if done.commit else "ignored"
    _settle(ledger, one, state, done.path, one.reason if done.commit else "same")
    return _decided(one, state, done)


def reject_candidate(home: Home, ledger: Ledger, one: Waiting, clock: Clock) -> Decided:
    """A person's no: forget it on all paths and settle the row."""
    made = refuse(
        Store.open(home, one.store), one.proposed, clock=clock, waits=lambda: _waits(ledger, one)
    )
    seams.reach("candidate.forgotten")
    _settle(ledger, one, "rejected", None, one.reason)
    done = Accepted(None, made.commit if made else None, made.id if made else None)
    return _decided(one, "rejected", done)


def _settle(ledger: Ledger, one: Waiting, state: str, path: str | None, reason: str) -> None:
    is_merge = isinstance(one.proposed.proposal, MergeProposal)
    with ledger.db.writing(durable=True):
        won = candidates.decide(
            ledger.db,
            one.id,
            state=state,
            path=path,
            reason=reason,
            keep_draft=is_merge and state == "rejected",
        )
    if not won:
        raise UsageError(
            f"candidate {short(one.id)} was decided meanwhile",
            hint="`memoryd memory review` shows what waits",
        )


def _waits(ledger: Ledger, one: Waiting) -> bool:
    return bool(
        ledger.db.rows("select 1 from candidate where id = :id and state = 'pending'", id=one.id)
    )


def _decided(one: Waiting, state: str, done: Accepted) -> Decided:
    return Decided(one.id, state, one.store, done.path, done.commit, done.id)


def _past(ledger: Ledger, ending: str) -> str:
    """What became of the candidate that is meant, where its whole id is given."""
    rows = ledger.db.rows("select state from candidate where id = :id", id=ending[:_ID_CHARACTERS])
    return f"; that one is {rows[0][0]}" if rows else ""


def _waiting(row: tuple[object, ...]) -> Waiting:
    (
        identifier, statement, category, reason, detail, store, draft, evidence, agent, session,
        job, created_at,
    ) = row  # fmt: skip
    proposal = _proposal(str(statement), str(category), draft)
    proposed = Proposed(
        str(identifier),
        proposal,
        tuple(_spans(str(evidence))),
        f"{agent}/{session} {job}",
        int(str(created_at)),
    )
    return Waiting(
        str(statement),
        str(category),
        str(reason),
        str(detail) or reason_text(str(reason)),
        str(store),
        proposed,
    )


def _proposal(statement: str, category: str, draft: object) -> Proposal:
    """What is kept with the row; where that is missing or unreadable, the bare statement."""
    try:
        kept = from_json(str(draft)) if draft else None
    except msgspec.DecodeError:
        kept = None
    if kept is not None:
        return kept
    known: Category = "other"
    for each in get_args(Category):
        if each == category:
            known = each
    return FactProposal(statement, known, None, Relation("new"), None)


def _spans(evidence: str) -> Iterator[EvidenceSpan]:
    for message, seq, span in json.loads(evidence):
        yield EvidenceSpan(str(message), int(seq), str(span))
