"""Facts: what a model or the rules extracted from the messages of a slice.

The answer is one JSON object (design of the product, "Memory"): ``{"facts": [...]}``. Everything in
it is hostile until checked: ``parse_answer`` reads what can be read and says what it refused,
``check_evidence`` holds each fact against the words that were really said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memoryd.memory.text import fold

Role = Literal["user", "assistant"]
Category = Literal[
    "preference",
    "operating-style",
    "personal",
    "other",
    "work",
    "recurring-constraint",
    "project",
    "technical-default",
]
Explicitness = Literal["explicit", "strongly-implied", "inferred"]
Sensitivity = Literal["none", "private", "sensitive", "secret"]
RelationKind = Literal["new", "same", "updates", "contradicts"]
DraftType = Literal["user", "feedback", "project", "reference"]

#: Facts about the code base: the assistant's own words may prove them too.
ABOUT_THE_PROJECT: frozenset[Category] = frozenset({"project", "technical-default"})
#: A span shorter than this proves nothing, unless it is the whole message.
SPAN_CHARACTERS = 8


@dataclass(frozen=True)
class SliceMessage:
    """One message of a slice as the prompt shows it: ``[m3] user: ...``.

    ``label`` is unique in the slice (``m1``, ``m2``, ... over the whole slice, not the chunk);
    ``id`` and ``seq`` are the session history's; ``at_ms`` is wall time or None when the agent
    did not say; ``project`` is the key of the project the message was said in.
    """

    label: str
    seq: int
    id: str
    role: Role
    text: str
    at_ms: int | None
    project: str


@dataclass(frozen=True)
class Evidence:
    """What a fact claims to stand on: a label of the prompt, or None for any message, and words."""

    message: str | None
    span: str


@dataclass(frozen=True)
class NoteDraft:
    """How the fact would read as a note; ``name`` is kebab-case."""

    type: DraftType
    name: str
    description: str
    content: str


@dataclass(frozen=True)
class Relation:
    """How the fact stands to a note that was shown; ``name`` is None only for ``new``."""

    kind: RelationKind
    name: str | None = None


@dataclass(frozen=True)
class Fact:
    """One extracted fact, well-formed but not yet believed. ``confidence`` is 0..1."""

    statement: str
    category: Category
    evidence: tuple[Evidence, ...]
    explicitness: Explicitness
    sensitivity: Sensitivity
    confidence: float
    note: NoteDraft | None = None
    relation: Relation = Relation("new")


@dataclass(frozen=True)
class Refused:
    """An item of an answer that is no fact: the reason's code, its statement if it had one, why."""

    reason: str
    statement: str
    detail: str


@dataclass(frozen=True)
class Answer:
    """What an answer held. ``whole`` False: no object with facts was found, ask once more."""

    facts: tuple[Fact, ...]
    refused: tuple[Refused, ...]
    whole: bool


@dataclass(frozen=True)
class EvidenceSpan:
    """Words that were really said: the message's id and ``seq``, and the span, folded."""

    message_id: str
    seq: int
    span: str


@dataclass(frozen=True)
class Checked:
    """Evidence that held. ``at_ms`` and ``project`` are those of the newest message of it.

    ``at_ms`` is None when no message of the evidence has a time.
    """

    spans: tuple[EvidenceSpan, ...]
    at_ms: int | None
    project: str


def parse_answer(text: str) -> Answer:
    """The facts of a provider's answer; prose, fences and a cut end are put up with.

    Never raises. Complete objects of a cut list are kept; a bad item is dropped and listed.
    """
    from memoryd.memory.answers import read

    return read(text)


def folded(messages: Sequence[SliceMessage]) -> dict[str, str]:
    """The folded text of each message by its label, for many checks of one slice."""
    return {message.label: fold(message.text) for message in messages}


def check_evidence(
    fact: Fact, messages: Sequence[SliceMessage], texts: Mapping[str, str] | None = None
) -> Checked | str:
    """Hold ``fact`` against the slice: what held of its evidence, or the code of what is wrong.

    A span must stand word for word in a message whose role may prove the fact: a user's for
    anything about the person, also the assistant's for the project. White space, NFC and
    typographic quotes do not count; case does. ``texts`` is ``folded(messages)``, where the caller
    has it already.
    """
    texts = folded(messages) if texts is None else texts
    worst = "evidence.not-found"
    held: dict[tuple[int, str], SliceMessage] = {}
    for evidence in fact.evidence:
        span = fold(evidence.span)
        message = next(_holding(fact, evidence.message, span, messages, texts), None)
        if message is None:
            if any(span in text for text in texts.values()):
                worst = "evidence.wrong-message"
        elif len(span) >= SPAN_CHARACTERS or span == texts[message.label]:
            held[(message.seq, span)] = message
        else:
            worst = "evidence.too-short"
    if not held:
        return worst
    newest = max(held.values(), key=lambda message: message.seq)
    times = [message.at_ms for message in held.values() if message.at_ms is not None]
    spans = tuple(EvidenceSpan(message.id, seq, span) for (seq, span), message in held.items())
    return Checked(spans, max(times, default=None), newest.project)


def _holding(
    fact: Fact,
    label: str | None,
    span: str,
    messages: Sequence[SliceMessage],
    texts: Mapping[str, str],
) -> Iterator[SliceMessage]:
    """The messages that may prove ``fact`` and hold ``span``."""
    for message in messages:
        allowed = message.role == "user" or fact.category in ABOUT_THE_PROJECT
        if allowed and label in (None, message.label) and span and span in texts[message.label]:
            yield message
