"""Policy: which facts are written, which wait for a person, which are dropped. No model decides.

Every fact and every refused item becomes a candidate, so that a person can see why. The first row
that holds decides:

==  ==================================================  =======  ======================
    condition                                           becomes  reason
==  ==================================================  =======  ======================
-   the item is no fact, its evidence does not hold     ignore   ``item.*``, ``evidence.*``
-   the scanner finds a secret, the model calls it one  ignore   ``scanner.secret``
-   the same statement stands earlier in the slice      ignore   ``duplicate``
-   a tombstone covers it                               ignore   ``forgotten``
1   mode review                                         review   ``mode.review``
1'  mode manual, and nobody asked                       ignore   ``mode.manual``
2   it was not said explicitly                          review   ``explicitness``
3   it is sensitive in any way                          review   ``sensitivity``
4   confidence below the configured minimum             review   ``confidence``
6   its risk (by sensitivity) is above the maximum      review   ``risk``
7   an existing note says the same                      ignore   ``same``
8   injection or invisible characters                   review   ``scanner.injection`` ...
9   it says what was not said (``memory/proof.py``)     review   ``statement.unproven``
-   over 3 saves a chunk or 12 a slice                  review   ``cap``
11  else                                                apply    ``policy.passed``
==  ==================================================  =======  ======================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memoryd.memory.config import CurationSettings
from memoryd.memory.facts import (
    Answer,
    Checked,
    EvidenceSpan,
    Fact,
    Refused,
    SliceMessage,
    check_evidence,
    folded,
)
from memoryd.memory.proof import Proof
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.scanner import redact, verdicts
from memoryd.memory.text import clip, fold
from memoryd.memory.values import sense_key

__all__ = ["Candidate", "EvidenceSpan", "Judged", "decide", "reason_text", "with_decision"]

Decision = Literal["apply", "review", "ignore"]
Risk = Literal["low", "medium", "high"]

CHUNK_SAVES = 3
SLICE_SAVES = 12
_EVIDENCE_KEPT = 8
_STATEMENT_CHARACTERS = 500
_RISKS: dict[str, Risk] = {
    "none": "low",
    "private": "medium",
    "sensitive": "high",
    "secret": "high",
}
_RISK_ORDER: tuple[Risk, ...] = ("low", "medium", "high")

#: One line for a person, by reason code.
REASONS: dict[str, str] = {
    "policy.passed": "explicit, harmless and proven: it is written",
    "mode.review": "curation mode is review: a person decides",
    "mode.manual": "curation mode is manual: nothing is kept unless asked for",
    "explicitness": "it was implied, not said",
    "sensitivity": "it is private or sensitive",
    "confidence": "the confidence is below the minimum",
    "risk": "the risk is above the maximum",
    "same": "an existing note says the same",
    "duplicate": "the same statement stands earlier in these messages",
    "forgotten": "it was forgotten before and has not been said again since",
    "cap": "more was found than one piece of a session may save at once",
    "scanner.secret": "it holds a secret; the text is not kept",
    "scanner.injection": "it reads like instructions to a model",
    "scanner.invisible": "it holds invisible characters",
    "item.malformed": "the provider's item is not well-formed",
    "item.too-many": "the provider listed too many items",
    "statement.too-long": "the statement is too long",
    "statement.unproven": "it says something that was not said",
    "note.too-long": "the drafted note is too long",
    "evidence.missing": "the provider gave no evidence",
    "evidence.not-found": "the quoted words were never said",
    "evidence.wrong-message": "the quoted words stand elsewhere, or were not the person's own",
    "evidence.too-short": "the quoted words are too short to prove anything",
    "person": "a person changed the note it meets",
    "conflict": "another fact of this session changes the same note",
    "overridden": "a later statement of the same messages says otherwise",
    "outdated": "a note that said so was superseded since",
    "age.unknown": "nobody knows whether it is newer than the note it meets",
    "changed": "the file was changed meanwhile",
    "slice.done": "these messages were distilled before",
    "duplicate.notes": "notes that say the same become one",
    "retention": "there are over 50 episodes: the least used and oldest go to the archive",
    "superseded": "a note that said this was superseded",
    "merge.unknown": "it names a note that does not exist",
    "merge.not-shown": "it names a note that was not shown in full",
    "merge.ambiguous": "two notes have the name it names",
    "merge.no-target": "nothing is left that it could merge",
    "merge.loop": "merges lead back to a note that they take away",
    "merge.type": "an episode cannot take in what does not fade",
    "merge.unrelated": "the notes are about different things",
    "merge.turns": "the merged text no longer forbids what its sources do, or says the opposite",
    "merge.loses-value": "a number, path or name that its notes hold would be lost",
    "merge.adds-value": "the merged text says something that none of its notes does",
    "merge.shrinks": "over a quarter of what its notes say would be lost",
    "asked.before": "a person was asked this before",
}


@dataclass(frozen=True)
class Candidate:
    """A fact after policy, kept for ``show``; ``statement`` is redacted.

    ``reason`` is a code of ``REASONS``, ``detail`` one line for a person. ``store`` is a project's
    key and ``path`` the note's file, both None while it has no home. ``draft`` is what applying it
    would write, as JSON (``memory/proposals.py``), kept until it is settled, in review or not.
    """

    id: str
    statement: str
    category: str
    explicitness: str
    sensitivity: str
    confidence: float
    evidence: tuple[EvidenceSpan, ...]
    decision: Decision
    reason: str
    detail: str
    risk: str
    store: str | None = None
    path: str | None = None
    draft: str | None = None


@dataclass(frozen=True)
class Judged:
    """A candidate with the fact it came from; None for an item that was no fact."""

    candidate: Candidate
    fact: Fact | None = None
    checked: Checked | None = None
    chunk: int = 0


#: Asked about a fact whose evidence held.
Asked = Callable[[Fact, Checked], bool]


def _never(fact: Fact, checked: Checked) -> bool:
    return False


def decide(
    answers: Sequence[Answer],
    messages: Sequence[SliceMessage],
    settings: CurationSettings,
    *,
    new_id: Callable[[], str],
    asked: bool = False,
    known: Asked = _never,
    forgotten: Asked = _never,
    shown: Sequence[ShownNote] = (),
) -> tuple[Judged, ...]:
    """Every item of a slice's ``answers`` (one a chunk, in order), decided.

    ``asked``: a person asked for this (populate), so mode manual behaves as auto. ``known`` says
    whether a note says the same already, ``forgotten`` whether a tombstone covers it. ``shown`` are
    the notes the model was shown. Of a drafted note only what is proven is kept.
    """
    judged: list[Judged] = []
    texts = folded(messages)
    for chunk, answer in enumerate(answers):
        for fact in answer.facts:
            checked = check_evidence(fact, messages, texts)
            judged.append(_proposed(fact, checked, chunk, new_id()))
        judged.extend(_refused(item, chunk, new_id()) for item in answer.refused)
    table = _Table(settings, asked, known, forgotten, Proof(messages, shown))
    return _capped([_judge(one, table) for one in _merged(judged)])


def reason_text(code: str) -> str:
    """The one line for a person that stands for a reason's code."""
    return REASONS.get(code, code)


def with_decision(judged: Judged, decision: Decision, reason: str, detail: str = "") -> Judged:
    """``judged`` decided anew."""
    changed = replace(
        judged.candidate,
        decision=decision,
        reason=reason,
        detail=clip(fold(redact(detail)[0]), 200) or reason_text(reason),
    )
    return replace(judged, candidate=changed)


@dataclass(frozen=True)
class _Table:
    settings: CurationSettings
    asked: bool
    known: Asked
    forgotten: Asked
    proof: Proof

    def row(self, fact: Fact, checked: Checked) -> tuple[Decision, str, str]:
        """The first row that holds, as decision, reason and detail."""
        return (
            self._by_safety(fact, checked)
            or self._by_mode()
            or self._by_fact(fact)
            or self._by_memory(fact, checked)
            or ("apply", "policy.passed", "")
        )

    def _by_safety(self, fact: Fact, checked: Checked) -> tuple[Decision, str, str] | None:
        if fact.sensitivity == "secret" or "secret" in _verdicts(fact):
            return "ignore", "scanner.secret", ""
        if self.forgotten(fact, checked):
            return "ignore", "forgotten", ""
        return None

    def _by_mode(self) -> tuple[Decision, str, str] | None:
        if self.settings.mode == "review":
            return "review", "mode.review", ""
        if self.settings.mode == "manual" and not self.asked:
            return "ignore", "mode.manual", ""
        return None

    def _by_fact(self, fact: Fact) -> tuple[Decision, str, str] | None:
        minimum = self.settings.auto_apply_min_confidence
        most = self.settings.auto_apply_max_risk
        risk = _RISKS[fact.sensitivity]
        if fact.explicitness != "explicit":
            return "review", "explicitness", f"explicitness is {fact.explicitness}"
        if fact.sensitivity != "none":
            return "review", "sensitivity", f"sensitivity is {fact.sensitivity}"
        if fact.confidence < minimum:
            return "review", "confidence", f"confidence {fact.confidence:g} is below {minimum:g}"
        if _RISK_ORDER.index(risk) > _RISK_ORDER.index(most):
            return "review", "risk", f"risk {risk} is above {most}"
        return None

    def _by_memory(self, fact: Fact, checked: Checked) -> tuple[Decision, str, str] | None:
        if fact.relation.kind == "same" or self.known(fact, checked):
            return "ignore", "same", ""
        for verdict in ("injection", "invisible"):
            if verdict in _verdicts(fact):
                return "review", f"scanner.{verdict}", ""
        if fault := self.proof.fault(fact, checked):
            return "review", "statement.unproven", fault
        return None


def _judge(judged: Judged, table: _Table) -> Judged:
    if judged.fact is None or judged.checked is None or judged.candidate.decision == "ignore":
        return judged
    decision, reason, detail = table.row(judged.fact, judged.checked)
    decided = with_decision(judged, decision, reason, detail)
    if reason == "scanner.secret":
        bare = replace(decided.candidate, statement=_hidden(judged.fact), evidence=())
        return replace(decided, candidate=bare)
    if decision == "ignore":
        return decided
    return replace(decided, fact=table.proof.proven(judged.fact, judged.checked))


def _hidden(fact: Fact) -> str:
    """The statement without its secret; nothing of it when only the model saw one."""
    clean, count = redact(fact.statement)
    return clean if count else "[REDACTED:secret]"


def _verdicts(fact: Fact) -> frozenset[str]:
    note = fact.note
    texts = [
        fact.statement,
        fact.relation.name or "",
        *((note.name, note.description, note.content) if note else ()),
    ]
    return verdicts("\n".join(texts))


def _proposed(fact: Fact, checked: Checked | str, chunk: int, identifier: str) -> Judged:
    held = checked if isinstance(checked, Checked) else None
    reason = "policy.passed" if isinstance(checked, Checked) else checked
    candidate = Candidate(
        id=identifier,
        statement=redact(fact.statement)[0],
        category=fact.category,
        explicitness=fact.explicitness,
        sensitivity=fact.sensitivity,
        confidence=fact.confidence,
        evidence=_clean(held.spans) if held else (),
        decision="apply" if held else "ignore",
        reason=reason,
        detail=reason_text(reason),
        risk=_RISKS[fact.sensitivity],
        store=held.project if held else None,
    )
    return Judged(candidate, fact, held, chunk)


def _clean(spans: tuple[EvidenceSpan, ...]) -> tuple[EvidenceSpan, ...]:
    return tuple(replace(span, span=redact(span.span)[0]) for span in spans)


def _refused(item: Refused, chunk: int, identifier: str) -> Judged:
    candidate = Candidate(
        id=identifier,
        statement=clip(fold(redact(item.statement)[0]), _STATEMENT_CHARACTERS),
        category="other",
        explicitness="inferred",
        sensitivity="none",
        confidence=0.0,
        evidence=(),
        decision="ignore",
        reason=item.reason,
        detail=clip(fold(redact(item.detail)[0]), 200) or reason_text(item.reason),
        risk="low",
    )
    return Judged(candidate, chunk=chunk)


def _merged(judged: Sequence[Judged]) -> list[Judged]:
    """What says the same in one project as one: the most confident is kept, evidence joined."""
    groups: dict[tuple[str, str], list[int]] = {}
    for at, one in enumerate(judged):
        if one.fact is not None and one.checked is not None:
            key = (one.checked.project, sense_key(one.fact.statement))
            groups.setdefault(key, []).append(at)
    result = list(judged)
    for places in groups.values():
        best = min(places, key=lambda at: (-judged[at].candidate.confidence, at))
        result[best] = _joined(judged[best], [judged[at] for at in places if at != best])
        for at in places:
            if at != best:
                result[at] = with_decision(judged[at], "ignore", "duplicate")
    return result


def _joined(kept: Judged, others: Sequence[Judged]) -> Judged:
    assert kept.checked is not None
    all_checked = [kept.checked, *(one.checked for one in others if one.checked is not None)]
    spans = tuple(dict.fromkeys(span for one in all_checked for span in one.spans))
    times = [one.at_ms for one in all_checked if one.at_ms is not None]
    checked = Checked(spans[:_EVIDENCE_KEPT], max(times, default=None), kept.checked.project)
    candidate = replace(kept.candidate, evidence=_clean(checked.spans))
    return replace(kept, candidate=candidate, checked=checked)


def _capped(judged: Sequence[Judged]) -> tuple[Judged, ...]:
    """What is over 3 saves a chunk or 12 a slice goes to review, the least confident."""
    result = list(judged)
    saves = [at for at, one in enumerate(judged) if one.candidate.decision == "apply"]
    saves.sort(key=lambda at: (-judged[at].candidate.confidence, at))
    by_chunk: dict[int, int] = {}
    kept = 0
    for at in saves:
        chunk = judged[at].chunk
        if kept == SLICE_SAVES or by_chunk.get(chunk, 0) == CHUNK_SAVES:
            result[at] = with_decision(judged[at], "review", "cap")
            continue
        kept += 1
        by_chunk[chunk] = by_chunk.get(chunk, 0) + 1
    return tuple(result)
