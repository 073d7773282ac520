"""Reading a slice: chunk by chunk to the provider, then policy, then the draft of a plan.

What one slice gives is decided together, so that a fact said twice is one candidate. When the
provider stops answering after some chunks, the slice ends there: what was read is kept and never
asked again, and the reason is raised once it is safe.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from memoryd.jobs.calls import has_time
from memoryd.jobs.control import Snooze
from memoryd.jobs.job import Job
from memoryd.jobs.stores import as_committed, by_person
from memoryd.jobs.workplace import Workplace
from memoryd.memory import prompt
from memoryd.memory.drafting import Stock, derived, draft
from memoryd.memory.errors import BadAnswer, ProviderError
from memoryd.memory.facts import Answer, Checked, Fact, SliceMessage, parse_answer
from memoryd.memory.known import known_in, shown_only
from memoryd.memory.nearest import NearestNotes
from memoryd.memory.notes import Note
from memoryd.memory.plan import Plan, SliceRange
from memoryd.memory.policy import Candidate, decide
from memoryd.memory.providers.base import Request, ShownNote
from memoryd.memory.scanner import has_secret
from memoryd.memory.store import Store
from memoryd.memory.tombstones import Forgotten, Tombstones
from memoryd.sessions.lines import stat_file
from memoryd.sessions.stored import StoredMessage

#: Chunks one slice may take, and so calls (one corrective aside).
SLICE_CHUNKS = 8
#: Kept free of a slice's limit for deciding, writing and committing.
WRITING_SECONDS = 60.0
#: How far an agent's clock may be ahead of ours.
CLOCKS_DIFFER_MS = 300_000
#: Existing notes shown with a chunk.
NOTES_SHOWN = 5


@dataclass(frozen=True)
class Read:
    """What reading a slice gave. ``stopped`` is why it ended early, to be raised when applied."""

    plan: Plan
    candidates: tuple[Candidate, ...]
    stopped: Exception | None


def slice_of(
    messages: Sequence[StoredMessage], project: str, now_ms: int
) -> list[tuple[SliceMessage, ...]]:
    """The chunks of the next slice: the first ``messages`` that fill at most ``SLICE_CHUNKS``.

    ``project`` is the key for what was said in no directory that is known. What claims to have been
    said after ``now_ms`` was said nobody knows when: it must not outrank what is said from now on.
    """
    latest = now_ms + CLOCKS_DIFFER_MS
    labelled = [
        SliceMessage(
            f"m{number}",
            m.seq,
            m.id,
            m.role,
            m.text,
            None if m.at_ms is None or m.at_ms > latest else min(m.at_ms, now_ms),
            m.project or project,
        )
        for number, m in enumerate(messages, start=1)
    ]
    return prompt.chunks(labelled, most=SLICE_CHUNKS)


def read_slice(
    job: Job,
    place: Workplace,
    chunks: Sequence[tuple[SliceMessage, ...]],
    seconds_left: Callable[[], float],
) -> Read:
    """Ask, decide and draft; nothing is written.

    ``seconds_left`` says how long the slice may still take: with a slow provider it ends before
    all ``chunks`` are read, and the next one goes on there. Raises ``Snooze`` or
    ``ProviderError`` when not even the first chunk was answered.
    """
    began_ms = place.clock.now_ms()
    shelves = _Shelves(place)
    answers, shown, stopped = _ask_all(job, place, chunks, shelves, seconds_left)
    covered = [message for chunk in chunks[: len(answers)] for message in chunk]
    judged = decide(
        shown_only(answers, shown),
        covered,
        place.config.curation,
        new_id=lambda: str(uuid.uuid4()),
        asked=job.trigger == "cli",
        known=known_in(shelves.notes),
        forgotten=shelves.forgotten(covered),
        shown=shown,
    )
    drafted = draft(judged, shelves.stock(shown, job, place.clock.now_ms()))
    part = SliceRange(job.agent, job.session, _first(job, place), covered[-1].seq)
    provider = place.calls.provider.name
    return Read(
        Plan(job.id, part, provider, drafted.operations, at_ms=began_ms),
        tuple(one.candidate for one in drafted.judged),
        stopped,
    )


def _first(job: Job, place: Workplace) -> int:
    """Where the slice begins: right after the cursor, whatever was rolled back in between."""
    return place.ledger.cursor(job.agent, job.session) + 1


def _ask_all(
    job: Job,
    place: Workplace,
    chunks: Sequence[tuple[SliceMessage, ...]],
    shelves: _Shelves,
    seconds_left: Callable[[], float],
) -> tuple[list[Answer], list[ShownNote], Exception | None]:
    """One answer a chunk, as far as the provider went, and the notes it was shown."""
    answers: list[Answer] = []
    shown: list[ShownNote] = []
    corrected = False
    call_seconds = place.config.provider.timeout_seconds

    def for_calls() -> float:
        return seconds_left() - WRITING_SECONDS

    for chunk in chunks:
        # Time for a call, its correction, and the writing.
        if answers and seconds_left() < 2 * call_seconds + WRITING_SECONDS:
            break
        notes = shelves.nearest(chunk)
        request = prompt.build(chunk, notes, timeout_seconds=call_seconds)
        try:
            answer = parse_answer(place.calls.ask(job, request, for_calls).text)
            if not answer.whole:
                spent = corrected or not has_time(request, for_calls())
                answer = _ask_again(job, place, request, answer, None if spent else for_calls)
                corrected = True
        except (Snooze, ProviderError) as error:
            if not answers:
                raise
            return answers, shown, error
        answers.append(answer)
        shown += [note for note in notes if note not in shown]
    return answers, shown, None


def _ask_again(
    job: Job,
    place: Workplace,
    request: Request,
    bad: Answer,
    seconds_left: Callable[[], float] | None,
) -> Answer:
    """One corrective retry a slice. Raises ``BadAnswer`` when that is spent or no better.

    ``seconds_left`` is None where it is spent, or no time is left for it.
    """
    if seconds_left is not None:
        again = prompt.corrective(request, [item.detail for item in bad.refused])
        answer = parse_answer(place.calls.ask(job, again, seconds_left).text)
        if answer.whole:
            return answer
    raise BadAnswer(
        "the provider's answer holds no JSON object with facts",
        hint="try another model; once it has failed, `memoryd retry --skip` gives this part up",
    )


class _Shelves:
    """The stores one slice looks at, each read once."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._stores: dict[str, Store] = {}
        self._notes: dict[str, list[Note]] = {}
        self._index: dict[str, NearestNotes] = {}
        self._tombstones: dict[str, Tombstones] = {}

    def store(self, key: str) -> Store:
        """The store of a project."""
        if key not in self._stores:
            self._stores[key] = Store.for_project(self._place.home, key)
        return self._stores[key]

    def notes(self, key: str) -> list[Note]:
        """Its notes, the archive included, without what plans that stand left uncommitted."""
        if key not in self._notes:
            store = self.store(key)
            standing = self._place.ledger.records.standing_files(key)
            self._notes[key] = as_committed(store, store.notes(), standing)
        return self._notes[key]

    def nearest(self, chunk: Sequence[SliceMessage]) -> list[ShownNote]:
        """The few notes of the chunk's projects nearest to what it says.

        So few notes that all may be shown are shown, whatever words they share: what contradicts a
        note seldom repeats it.
        """
        text = "\n".join(message.text for message in chunk)
        found: list[ShownNote] = []
        for key in dict.fromkeys(message.project for message in chunk):
            if key not in self._index:
                current = [note for note in self.notes(key) if not note.archived]
                self._index[key] = NearestNotes([_shown(key, note) for note in current])
            near = _shareable(self._index[key].find(text, 2 * NOTES_SHOWN))[:NOTES_SHOWN]
            found += near + _shareable(self._index[key].others(near, NOTES_SHOWN))
        return found

    def forgotten(self, messages: Sequence[SliceMessage]) -> _Forgotten:
        """The policy's question whether a tombstone covers a fact."""
        return _Forgotten(self, {message.seq: message for message in messages})

    def tombstones(self, key: str) -> Tombstones:
        """What was forgotten in the store."""
        if key not in self._tombstones:
            self._tombstones[key] = Tombstones.of(self.store(key))
        return self._tombstones[key]

    def stock(self, shown: Sequence[ShownNote], job: Job, now_ms: int) -> Stock:
        """What the drafts may look at."""
        return Stock(
            notes=self.notes,
            read=lambda key, path: self.store(key).read(path),
            by_person=self._by_person,
            shown=shown,
            source=f"{job.agent}/{job.session} {job.id}",
            now_ms=now_ms,
            paths=lambda key: self.store(key).paths(),
            said_by=partial(_last_active, self._place, job, now_ms),
        )

    def _by_person(self, key: str, path: str) -> bool:
        """Whether a person changed the file last, committed as theirs yet or not."""
        planned = self._place.ledger.records.planned_contents
        return by_person(self.store(key), planned)(path)


@dataclass(frozen=True)
class _Forgotten:
    shelves: _Shelves
    messages: dict[int, SliceMessage]

    def __call__(self, fact: Fact, checked: Checked) -> bool:
        """Whether the person forgot this and has not said it again since."""
        said = [self.messages[span.seq] for span in checked.spans if span.seq in self.messages]
        times = {m.id: m.at_ms for m in said if m.role == "user" and m.at_ms is not None}
        what = Forgotten.of_note(
            derived(fact), [(span.message_id, span.span) for span in checked.spans]
        )
        return self.shelves.tombstones(checked.project).meets(
            replace(what, statements=(fact.statement, *what.statements)),
            said=times,
        )


def _shareable(notes: Sequence[ShownNote]) -> list[ShownNote]:
    """Those that hold no secret: a person's that does is shown to no model, not even redacted."""
    return [note for note in notes if not has_secret(note.name, note.description, note.body)]


def _shown(key: str, note: Note) -> ShownNote:
    return ShownNote(key, note.path, note.type, note.name, note.description, note.body)


def _last_active(place: Workplace, job: Job, now_ms: int) -> int | None:
    """When anything was last said in a session: by its messages, else by its transcript.

    None where nobody knows, or its messages are of the future: then no time in it can be believed.
    """
    stored = place.history.session(job.agent, job.session)
    if stored is not None and stored.last_active_ms:
        return stored.last_active_ms if stored.last_active_ms <= now_ms else None
    active_ms = place.ledger.records.active_at(job.agent, job.session)
    if not active_ms and stored is not None and stored.transcript:
        found = stat_file(Path(stored.transcript))
        active_ms = found.st_mtime_ns // 1_000_000 if found is not None else 0
    return min(active_ms, now_ms) if active_ms > 0 else None
