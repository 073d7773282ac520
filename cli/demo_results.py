"""What came of the demo's sessions, read from its home: notes, what was not kept, commits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoryd.cli.demo_processes import OpenLedger
from memoryd.cli.demo_stage import Stage, Staged
from memoryd.memory.clock import SystemClock
from memoryd.memory.errors import MemorydError
from memoryd.memory.text import clip, fold

if TYPE_CHECKING:
    from memoryd.jobs.job import Job
    from memoryd.jobs.records import KeptCandidate
    from memoryd.memory.store import Store
    from memoryd.sessions.stored import StoredMessage

#: Fewer notes than this and the demo has shown nothing.
NOTES_WANTED = 4
#: What a demo on a person's own long session may list.
NOT_KEPT_SHOWN = 20

_WRITTEN = {"applied", "appended"}
_SENTENCE_END = re.compile(r"(?<=[.!?؟。])\s+|\n+")
_QUOTED = re.compile(r"[\"“”«»„]")


@dataclass(frozen=True)
class ShownNote:
    """A note beside the sentences it stands on. ``file`` is the whole markdown file."""

    path: str
    type: str
    name: str
    statement: str
    sentences: tuple[str, ...]
    agent: str
    job: str
    file: str


@dataclass(frozen=True)
class NotKept:
    """Words that became no note, and why."""

    agent: str
    words: str
    why: str


@dataclass(frozen=True)
class ShownCommit:
    """One commit of a store, whose files lie in ``folder``."""

    folder: str
    id: str
    author: str
    subject: str
    job: str


@dataclass(frozen=True)
class Passed:
    """What a transcript held that nobody reads as memory: lines that gave no message, by reason."""

    agent: str
    messages: int
    skipped: dict[str, int]


# -- notes ---------------------------------------------------------------------------------------


def notes(made: Stage, jobs: Sequence[tuple[Staged, Job]]) -> list[ShownNote]:
    """Every note in the home with its sentences.

    Raises ``MemorydError`` when there are fewer than ``NOTES_WANTED``, and when one does not stand
    on words of the sessions.
    """
    from memoryd.memory.store import Store

    found = []
    with OpenLedger(made) as ledger:
        kept = [
            (staged, candidate)
            for staged, job in jobs
            for candidate in ledger.records.candidates(job.id)
            if candidate.state in _WRITTEN
        ]
    for store in Store.all(made.home):
        found += [_shown(store, note.path, kept) for note in store.notes()]
    refuse_unsaid(found, [staged for staged, _ in jobs])
    if len(found) < NOTES_WANTED:
        raise MemorydError(
            f"the sessions gave {len(found)} notes; the demo wants {NOTES_WANTED}",
            hint="let a person say what should last, such as `Always run the linter first.`",
        )
    return found


def _shown(store: Store, path: str, kept: Sequence[tuple[Staged, KeptCandidate]]) -> ShownNote:
    from memoryd.memory.notes import parse

    data = store.read(path) or b""
    note = parse(data, path)
    behind = [(staged, one) for staged, one in kept if (one.store, one.path) == (store.key, path)]
    if not behind:
        raise _unsaid(path)
    staged, first = behind[0]
    spans = dict.fromkeys(span for _, one in behind for _, _, span in one.evidence)
    file = data.decode("utf-8", "replace")
    return ShownNote(
        path, note.type, note.name, first.statement, tuple(spans), staged.agent, first.job_id, file
    )


def refuse_unsaid(found: Sequence[ShownNote], sessions: Sequence[Staged]) -> None:
    """Look every sentence up in the transcripts themselves, not in what we made of them.

    Raises ``MemorydError`` for a note with a sentence that none of them holds, or with none.
    """
    missing = {sentence: note.path for note in found for sentence in note.sentences}
    for staged in sessions:
        for text in _texts(staged):
            for sentence in [one for one in missing if one in text]:
                del missing[sentence]
    for path in missing.values():
        raise _unsaid(path)
    for note in found:
        if not note.sentences:
            raise _unsaid(note.path)


def _unsaid(path: str) -> MemorydError:
    return MemorydError(
        f"the note {path} stands on nothing that the sessions say",
        hint="that is a fault of memoryd: please report it",
    )


def _texts(staged: Staged) -> Iterator[str]:
    """Every string of a transcript, folded."""
    with staged.transcript.open("rb") as lines:
        for line in lines:
            try:
                waiting: list[object] = [json.loads(line)]
            except (ValueError, RecursionError):
                continue  # ingestion has counted it; nothing can stand on it
            while waiting:
                value = waiting.pop()
                if isinstance(value, str):
                    yield fold(value)
                elif isinstance(value, list):
                    waiting += value
                elif isinstance(value, dict):
                    waiting += value.values()


# -- what was not kept ---------------------------------------------------------------------------


def not_kept(made: Stage, jobs: Sequence[tuple[Staged, Job]]) -> tuple[list[NotKept], list[Passed]]:
    """What the person said that became no note, each with why; and what was not read as theirs."""
    from memoryd.sessions.history import History

    words: list[NotKept] = []
    passed = []
    with OpenLedger(made) as ledger, History(made.home.session_history, SystemClock()) as history:
        for staged, job in jobs:
            candidates = ledger.records.candidates(job.id)
            messages = history.messages(staged.agent, staged.session, 0, 500)
            words += _turned_down(staged.agent, candidates)
            words += _unread(staged.agent, messages, candidates)
            session = history.session(staged.agent, staged.session)
            spoken = sum(message.role == "assistant" for message in messages)
            passed.append(Passed(staged.agent, spoken, session.skipped if session else {}))
    return words[:NOT_KEPT_SHOWN], passed


def _turned_down(agent: str, candidates: Sequence[KeptCandidate]) -> Iterator[NotKept]:
    verb = {"review": "left to you", "ignore": "not kept"}
    for one in candidates:
        if one.state not in _WRITTEN:
            why = verb.get(one.decision, one.state)
            yield NotKept(agent, one.statement, f"{why}: {one.detail or one.reason}")


def _unread(
    agent: str, messages: Sequence[StoredMessage], candidates: Sequence[KeptCandidate]
) -> Iterator[NotKept]:
    """Sentences of the person that nothing was proposed from."""
    spans = [span for one in candidates for _, _, span in one.evidence]
    for message in messages:
        if message.role != "user":
            continue
        for sentence in filter(None, map(fold, _SENTENCE_END.split(message.text))):
            if not any(span in sentence or sentence in span for span in spans):
                yield NotKept(agent, clip(sentence, 120), _why(sentence))


def _why(sentence: str) -> str:
    if "[REDACTED:" in sentence:
        return "a secret, replaced before anything was written"
    if sentence.endswith(("?", "؟")):
        return "a question"
    if _QUOTED.search(sentence):
        return "quotes somebody else"
    return "said for the moment"


# -- the baseline --------------------------------------------------------------------------------


def commits(made: Stage) -> list[ShownCommit]:
    """The commits of every store, newest first."""
    from memoryd.memory.baseline import Baseline
    from memoryd.memory.store import Store

    return [
        ShownCommit(
            str(store.root), one.id, one.author, one.subject, "".join(one.values("Memoryd-Job"))
        )
        for store in Store.all(made.home)
        for one in Baseline(store).log()
    ]
