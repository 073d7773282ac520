"""The desk of one consolidation: what was decided so far, and what may still be touched.

Each decision is one candidate with its operations, all or nothing; a file is touched by one
candidate only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from memoryd.memory.config import CurationSettings
from memoryd.memory.consolidation_material import Material
from memoryd.memory.errors import StoreError
from memoryd.memory.files import sha256
from memoryd.memory.merging import Hand, Source, free_path, is_free
from memoryd.memory.notes import ARCHIVE, Note, file_name
from memoryd.memory.plan import Operation
from memoryd.memory.policy import Candidate, Decision, reason_text
from memoryd.memory.scanner import redact, verdicts
from memoryd.memory.text import clip, fold, words
from memoryd.memory.theirs import has_secret
from memoryd.memory.values import distinct_values, holds, names, sense_key

_STATEMENT_CHARACTERS = 500
_DETAIL_CHARACTERS = 200
_SUFFIXES = 1_000

#: (name, statement) -> whether a tombstone covers it.
Forgotten = Callable[[str, str], bool]


class No(Exception):
    """A proposal that is not applied: how it ends, why, and what a person's yes would write."""

    def __init__(
        self, reason: str, detail: str = "", *, decision: Decision = "ignore", draft: str = ""
    ) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.decision, self.draft = reason, detail, decision, draft


@dataclass(frozen=True)
class Counts:
    """What a consolidation did: survivors of merges, promotions, episodes, files archived."""

    merged: int = 0
    promoted: int = 0
    episodes: int = 0
    archived: int = 0


@dataclass(frozen=True)
class Rules:
    """What decisions depend on beside the material.

    ``asked``: a person asked for this run, so mode manual behaves as auto. ``before`` are the
    drafts that wait for a person or were rejected: those are not put to them again.
    """

    settings: CurationSettings
    forgotten: Forgotten
    new_id: Callable[[], str]
    source: str
    asked: bool = False
    before: Collection[str] = ()


@dataclass
class Desk:
    """The state of one consolidation."""

    material: Material
    rules: Rules
    operations: list[Operation] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self._names = {note.name for note in self.material.notes}

    # -- looking --------------------------------------------------------------------------------

    def source(self, note: Note) -> Source:
        """The note with its bytes. Raises ``No`` where they are not those that were gathered."""
        try:
            data = self.material.store.read(note.path)
        except StoreError:  # a link, a folder, a huge file: no longer what was gathered
            data = None
        if data is None or sha256(data) != note.sha256:
            raise No("changed", f"{note.path} was changed meanwhile")
        if has_secret(data):
            raise No("scanner.secret", f"{note.path} holds a secret")
        return Source(note, data)

    def hand(self, candidate: str) -> Hand:
        """Whose operations these are."""
        return Hand(
            self.material.store.key,
            candidate,
            self.rules.source,
            self.material.now_ms,
            self._archive_path,
        )

    def _archive_path(self, path: str) -> str:
        try:
            free = free_path(self.material.store, path, self.touched)
        except StoreError as error:
            raise No("conflict", error.message) from error
        self.touched.add(free)
        return free

    def free_name(self, kind: str, name: str) -> str:
        """``name``, with a number behind it where another note, or one of the archive, has it."""
        for number in range(1, _SUFFIXES):
            tried = name if number == 1 else f"{name}-{number}"
            path = f"{kind}/{file_name(tried)}"
            if tried not in self._names and all(map(self._free, (path, f"{ARCHIVE}/{path}"))):
                self._names.add(tried)
                return tried
        raise No("conflict", f"every name like {name} is taken")

    def _free(self, path: str) -> bool:
        return path not in self.touched and is_free(self.material.store, path)

    # -- rules that hold for every proposal -----------------------------------------------------

    def require_clean(self, *texts: str) -> None:
        """Refuse what holds a secret; nothing of it is written."""
        if "secret" in verdicts("\n".join(texts)):
            raise No("scanner.secret")

    def require_remembered(self, name: str, texts: Sequence[str], told: Collection[str]) -> None:
        """Refuse what a tombstone covers; ``told`` are keys of what its sources say already."""
        for line in dict.fromkeys(line for text in texts for line in (text, *text.splitlines())):
            key = sense_key(line)
            if key and key not in told and self.rules.forgotten(name, line):
                raise No("forgotten")

    def require_evidence(self, text: str, *, least: int = 1) -> None:
        """Refuse a number, path or name of ``least`` characters that nothing shown holds.

        ``least`` 1: words with a capital too, such as a product nobody spoke of.
        """
        told = self.material.told
        for value in sorted(distinct_values(text)):
            if len(value) >= least and not holds(told, value):
                raise No("evidence.not-found", "it names a value that nothing shown holds")
        spoken = set(words(told))
        for name in sorted(names(text)) if least == 1 else ():
            if not spoken.issuperset(words(name)):
                raise No("evidence.not-found", "it names something that nothing shown names")

    def require_mode(self, draft: str) -> None:
        """Leave to a person what the curation mode leaves to them."""
        mode = self.rules.settings.mode
        if mode == "review":
            raise No("mode.review", decision="review", draft=draft)
        if mode == "manual" and not self.rules.asked:
            raise No("mode.manual")

    def require_plain(self, draft: str, *texts: str) -> None:
        """Leave to a person what reads like instructions or holds what cannot be seen."""
        found = verdicts("\n".join(texts))
        for verdict in ("injection", "invisible"):
            if verdict in found:
                raise No(f"scanner.{verdict}", decision="review", draft=draft)

    def require_ours(self, notes: Sequence[Note], draft: str) -> None:
        """Leave to a person what they changed last themselves."""
        for note in notes:
            if self.material.by_person(note.path):
                detail = f"a person changed {note.path} last"
                raise No("person", detail, decision="review", draft=draft)

    def require_untouched(self, notes: Sequence[Note]) -> None:
        """Refuse a second candidate on one note."""
        for note in notes:
            if note.path in self.touched:
                raise No("conflict", f"another proposal changes {note.path}")

    # -- deciding -------------------------------------------------------------------------------

    def apply(
        self,
        candidate: str,
        operations: Sequence[Operation],
        *,
        statement: str,
        category: str,
        path: str,
        reason: str = "policy.passed",
        detail: str = "",
    ) -> None:
        """Keep the operations of one candidate."""
        self.operations += operations
        self.touched |= {each.path for each in operations}
        why = detail or reason_text(reason)
        made = self._candidate(candidate, statement, category, "apply", reason, why)
        self.candidates.append(replace(made, path=path))

    def refuse(self, no: No, *, statement: str, category: str, path: str | None = None) -> None:
        """Keep a candidate that is not applied; a draft a person saw before only as a remark."""
        decision, reason, draft = no.decision, no.reason, no.draft
        if decision == "review" and draft in self.rules.before:
            decision, reason, draft = "ignore", "asked.before", ""
        if decision == "review" and not draft:
            decision = "ignore"  # nothing that a person could say yes to
        detail = clip(fold(redact(no.detail)[0]), _DETAIL_CHARACTERS) or reason_text(reason)
        candidate = self.rules.new_id()
        made = self._candidate(candidate, statement, category, decision, reason, detail)
        self.candidates.append(replace(made, path=path, draft=draft or None))

    def count(self, **more: int) -> None:
        """Add to the counts."""
        sums = {key: getattr(self.counts, key) + value for key, value in more.items()}
        self.counts = replace(self.counts, **sums)

    def _candidate(
        self,
        identifier: str,
        statement: str,
        category: str,
        decision: Decision,
        reason: str,
        detail: str,
    ) -> Candidate:
        return Candidate(
            id=identifier,
            statement=clip(fold(redact(statement)[0]), _STATEMENT_CHARACTERS),
            category=category,
            explicitness="inferred",
            sensitivity="none",
            confidence=1.0,
            evidence=(),
            decision=decision,
            reason=reason,
            detail=detail,
            risk="low",
            store=self.material.store.key,
        )
