"""A person's word on a candidate in review: yes writes it, no forgets it.

What was proposed is decided anew on the store as it is now. The person's yes is theirs to give on a
note they changed themselves, on what reads like instructions, on what was forgotten (the
tombstones it meets are lifted) and on what is older than the note it meets: it holds from now. A
secret is refused whoever says yes. What they did not see is not theirs to lose: where the note it
updates was changed after the proposal was made, the statement is appended as a line.

The words are a model's, read by a person: a new note is memoryd's, so that a session may go on
with it; a note that was a person's stays theirs.

A commit of this carries ``Memoryd-Candidate``: one that died before its row was settled is found by
it, and not made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from memoryd.memory import notes, scanner
from memoryd.memory.baseline import Baseline, Commit
from memoryd.memory.changing import WAIT_SECONDS, Change, Made, Planned, lift, none_planned
from memoryd.memory.clock import Clock
from memoryd.memory.drafting import Stock, derived, draft
from memoryd.memory.edits import moment, write_tombstones
from memoryd.memory.errors import UsageError
from memoryd.memory.facts import Checked, EvidenceSpan, Fact, NoteDraft
from memoryd.memory.ids import uuid7
from memoryd.memory.merging import Text, loss, merge_operations
from memoryd.memory.notes import ARCHIVE, Note
from memoryd.memory.plan import Operation
from memoryd.memory.policy import Candidate, Judged, reason_text
from memoryd.memory.proposals import FactProposal, MergeProposal, Proposal
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.store import Store
from memoryd.memory.text import statement_key
from memoryd.memory.tombstones import Forgotten, Tombstones

_CANDIDATE = "Memoryd-Candidate"
_UNDO = "Memoryd-Undo"
_LONG_AGO = "1970-01-01"


@dataclass(frozen=True)
class Proposed:
    """A candidate that waits: what it would write, the words it stands on, and since when (ms).

    ``source`` (session and job) is written into the note.
    """

    id: str
    proposal: Proposal
    evidence: tuple[EvidenceSpan, ...]
    source: str
    since_ms: int


@dataclass(frozen=True)
class Accepted:
    """What a yes came to: written at ``path`` (None: a note says the same already)."""

    path: str | None
    commit: str | None
    id: str | None


def accept(
    store: Store,
    proposed: Proposed,
    *,
    clock: Clock,
    planned: Planned = none_planned,
    waits: Callable[[], bool] = lambda: True,
) -> Accepted:
    """Write what is proposed, as a person's yes, unless a commit of it stands already.

    ``waits`` is asked under the writer lock whether the candidate still waits. Raises
    ``UsageError`` when it does not, when it holds a secret, and for what cannot be applied;
    ``StoreBusy`` and ``BaselineError``.
    """
    with store.writer_lock(WAIT_SECONDS):
        baseline = Baseline(store)
        baseline.ensure()
        done = _standing(baseline, proposed.id)
        if done is not None:
            return Accepted(_path_of(baseline, done), done.id, done.values("Memoryd-Job")[0])
        _require_waiting(waits)
        change = Change(baseline, clock.now_ms(), planned)
        return apply_proposal(change, proposed)


def apply_proposal(change: Change, proposed: Proposed) -> Accepted:
    """Decide on the store as it is and carry it out: the one place where a proposal is written."""
    proposal = proposed.proposal
    if isinstance(proposal, MergeProposal):
        return _apply_merge(change, proposed, proposal)
    return _apply_fact(change, proposed, proposal)


def refuse(
    store: Store,
    proposed: Proposed,
    *,
    clock: Clock,
    waits: Callable[[], bool] = lambda: True,
) -> Made | None:
    """Forget what is proposed, so that it is not proposed again; None where nothing was said.

    A merge says nothing new: it leaves no tombstone. Raises as ``accept`` does.
    """
    with store.writer_lock(WAIT_SECONDS):
        _require_waiting(waits)
        proposal = proposed.proposal
        if isinstance(proposal, MergeProposal):
            return None
        baseline = Baseline(store)
        baseline.ensure()
        now_ms = clock.now_ms()
        old = Tombstones.of(store)
        gone = _forgotten(store, proposed, proposal)
        new = old.add(gone, now_ms=moment(baseline, [gone], now_ms))
        files = write_tombstones(store, old, new)
        identity = uuid7(now_ms)
        marks = [("Memoryd-Job", identity), ("Memoryd-Rejected", proposed.id)]
        commit = baseline.commit(files, "Forget a proposal", marks, "person", now_ms=now_ms)
    return Made(commit, identity)


def _require_waiting(waits: Callable[[], bool]) -> None:
    if not waits():
        raise UsageError(
            "the candidate was decided meanwhile", hint="`memoryd memory review` shows what waits"
        )


def _standing(baseline: Baseline, candidate: str) -> Commit | None:
    """The commit of this candidate that no undo took back."""
    for made in baseline.with_trailer(_CANDIDATE, candidate):
        if not baseline.with_trailer(_UNDO, made.id):
            return made
    return None


def _path_of(baseline: Baseline, commit: Commit) -> str | None:
    paths = [path for path in baseline.paths_of(commit.id) if path.endswith(".md")]
    left = [path for path in paths if baseline.show(commit.id, path) is not None]
    return min(left, key=lambda path: path.startswith(f"{ARCHIVE}/"), default=None)


def _apply_fact(change: Change, proposed: Proposed, proposal: FactProposal) -> Accepted:
    _require_no_secret(proposal)
    judged, operations = _decided(change, proposed, proposal, proposal.at_ms)
    late = any(each.path.startswith(f"{ARCHIVE}/") for each in operations[:1])
    if judged.decision == "review" or late:  # its age: the person says it holds now
        judged, operations = _decided(change, proposed, proposal, change.now_ms)
    if judged.decision == "ignore":
        return Accepted(None, None, None)
    if judged.decision != "apply" or judged.path is None:
        raise UsageError(f"it cannot be applied: {judged.detail}", hint="save it in your words")
    written = {each.path: each.content for each in operations}[judged.path] or ""
    lift(
        change,
        Forgotten("", (proposal.statement,), _spans(proposed)),
        Forgotten.of_file(judged.path, written.encode()),
    )
    return _carry_out(change, proposed, operations, judged.path, "Remember")


def _apply_merge(change: Change, proposed: Proposed, proposal: MergeProposal) -> Accepted:
    """Merge the notes that are still there, unless they say by now what the merge would lose."""
    store = change.store
    operations = merge_operations(
        store,
        proposal,
        candidate=proposed.id,
        source=proposed.source,
        now_ms=change.now_ms,
    )
    met = {proposal.into, *(each.path for each in operations if each.content is None)}
    merged = [notes.parse(change.read(path) or b"", path) for path in sorted(met)]
    _require_unforgotten(store, proposal, merged)
    if lost := loss(merged, Text(proposal.description, proposal.content)):
        raise UsageError(
            f"the notes were changed since: {reason_text(lost)}",
            hint="`memoryd memory reject` drops it; the next consolidation looks at them anew",
        )
    return _carry_out(change, proposed, operations, proposal.into, "Merge into")


def _require_unforgotten(store: Store, proposal: MergeProposal, merged: list[Note]) -> None:
    """Raise ``UsageError`` where the text may hold words that were forgotten since.

    Those of a note it names that was, and those that no note it still merges says.
    """
    tombstones = Tombstones.of(store)
    text = Forgotten.of_note(NoteDraft("project", "", proposal.description, proposal.content))
    said = {statement_key(one) for note in merged for one in Forgotten.of_note(note).statements}
    added = tuple(one for one in text.statements if statement_key(one) not in said)
    gone = {proposal.into, *proposal.supersedes} - {note.path for note in merged}
    names = [path.rpartition("/")[2].removesuffix(".md") for path in gone]
    if tombstones.meets(Forgotten("", added)) or any(
        tombstones.forgets(name, "") for name in names
    ):
        raise UsageError(
            "a part of what it merges was forgotten since",
            hint="`memoryd memory reject` drops it; the next consolidation looks at the rest anew",
        )


def _carry_out(
    change: Change, proposed: Proposed, operations: Iterable[Operation], path: str, verb: str
) -> Accepted:
    for each in operations:
        change.put(each.path, None if each.content is None else each.content.encode())
    title = f"{verb} {path} as reviewed"
    made = change.carry_out(title, (_CANDIDATE, proposed.id), ("Memoryd-Source", "review"))
    return Accepted(path, made.commit, made.id)


def _decided(
    change: Change, proposed: Proposed, proposal: FactProposal, at_ms: int | None
) -> tuple[Candidate, tuple[Operation, ...]]:
    """The candidate and its operations, drafted as if it had been said at ``at_ms``."""
    store = change.store
    live = store.notes()
    dated = [_dated(note) for note in live] if at_ms == change.now_ms else live
    stock = Stock(
        notes=lambda _: dated,
        read=lambda _, path: change.read(path),
        by_person=lambda _, path: False,
        shown=tuple(_shown(store, live, proposed.since_ms)),
        source=proposed.source,
        now_ms=change.now_ms,
        said_by=lambda: proposal.said_by_ms,
    )
    candidate = Candidate(
        id=proposed.id,
        statement=proposal.statement,
        category=proposal.category,
        explicitness="explicit",
        sensitivity="none",
        confidence=1.0,
        evidence=proposed.evidence,
        decision="apply",
        reason="policy.passed",
        detail="",
        risk="low",
        store=store.key,
    )
    checked = Checked(proposed.evidence, at_ms, store.key)
    done = draft([Judged(candidate, _fact(proposal), checked)], stock)
    return done.judged[0].candidate, done.operations


def _dated(note: Note) -> Note:
    """The note, older than a person's yes also where nobody wrote down how old it is."""
    return replace(
        note,
        valid_from=note.valid_from or note.created or _LONG_AGO,
        valid_until=note.valid_until or (_LONG_AGO if note.archived else None),
    )


def _shown(store: Store, live: list[Note], since_ms: int) -> Iterator[ShownNote]:
    """The notes as far as the proposal can have been made on them: not what is younger."""
    for note in live:
        seen = max(store.changed_at_ms(note.path)) <= since_ms
        body = note.body if seen else ""
        yield ShownNote(store.key, note.path, note.type, note.name, note.description, body)


def _require_no_secret(proposal: FactProposal) -> None:
    note = proposal.note
    texts = (proposal.statement, *((note.name, note.description, note.content) if note else ()))
    if "secret" in scanner.verdicts("\n".join(texts)):
        raise UsageError("it holds a secret", hint="`memoryd memory reject` drops it")


def _forgotten(store: Store, proposed: Proposed, proposal: FactProposal) -> Forgotten:
    """What no session is to propose again. Of a note that is there only the new statement."""
    spans = _spans(proposed)
    if proposal.relation.kind in {"updates", "contradicts"}:
        return Forgotten("", (proposal.statement,), spans, said_ms=proposal.at_ms or 0)
    drafted = derived(_fact(proposal))
    name = "" if drafted.name in {note.name for note in store.notes()} else drafted.name
    data = notes.new_note(
        name=name or "x",
        description=drafted.description,
        type=drafted.type,
        body=drafted.content,
    )
    whole = Forgotten.of_file(f"{drafted.type}/x.md", data, spans)
    statements = (proposal.statement, *whole.statements)
    return Forgotten(name, statements, spans, whole.whole + 1, proposal.at_ms or 0)


def _fact(proposal: FactProposal) -> Fact:
    return Fact(
        proposal.statement,
        proposal.category,
        (),
        "explicit",
        "none",
        1.0,
        proposal.note,
        proposal.relation,
    )


def _spans(proposed: Proposed) -> tuple[tuple[str, str], ...]:
    return tuple((span.message_id, span.span) for span in proposed.evidence)


def described(proposed: Proposed) -> Mapping[str, str]:
    """Where it would go, for a person: ``type``, ``name`` and ``relation`` ("updates x")."""
    proposal = proposed.proposal
    if isinstance(proposal, MergeProposal):
        merged = ", ".join(proposal.supersedes)
        return {"type": "", "name": proposal.into, "relation": f"merges {merged}"}
    drafted = derived(_fact(proposal))
    relation = proposal.relation
    about = f"{relation.kind} {relation.name}" if relation.name else relation.kind
    return {"type": drafted.type, "name": drafted.name, "relation": about}
