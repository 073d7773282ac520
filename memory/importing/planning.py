"""What an import would do, file by file, decided from what the store holds and has held.

The first row that holds decides:

=============================================================  ==============
the file is a link, too large, unreadable, or says nothing     ``link`` ...
it holds a secret                                              ``secret``
the store has a note that came from it, edited or not          ``imported``
the person forgot it, by name, statement or line               ``forgotten``
its place in the store was emptied a moment ago                ``forgotten``
it was imported before and is not there any more               ``imported``
it reads like instructions to a model                          ``review``
a note says the same                                           ``same``
another note has its name                                      ``conflict``
else                                                           ``create``
=============================================================  ==============
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from memoryd.memory.importing import drafts
from memoryd.memory.importing.drafts import Draft, Undraftable
from memoryd.memory.importing.sources import Source
from memoryd.memory.importing.stock import Stock, digest, says
from memoryd.memory.importing.walk import SourceFile, Walked, read_tree
from memoryd.memory.projects import Project
from memoryd.memory.scanner import redact, verdicts
from memoryd.memory.store import Store
from memoryd.memory.text import clip

Verdict = Literal[
    "create",
    "same",
    "imported",
    "conflict",
    "forgotten",
    "secret",
    "review",
    "unreadable",
    "empty",
    "too-large",
    "link",
]

#: Names tried for a note whose own is taken.
_TRIES = 99


@dataclass(frozen=True)
class Options:
    """What a person asked for: taken names made free, suspicious notes taken in all the same."""

    rename: bool = False
    include_flagged: bool = False


@dataclass(frozen=True)
class Reading:
    """One source, read."""

    source: Source
    walked: Walked


@dataclass(frozen=True)
class Target:
    """A project, its store, and all that is to be imported into it."""

    project: Project
    store: Store
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Item:
    """What becomes of one file. ``file`` is its path below the source, redacted.

    ``path`` is the note's in the store: where it goes, or the note that is there already or in the
    way. ``draft`` is there only for what is created, and for what was imported and is unchanged.
    """

    source: Source
    file: str
    verdict: Verdict
    path: str = ""
    name: str = ""
    detail: str = ""
    warning: str = ""
    draft: Draft | None = None


@dataclass(frozen=True)
class ImportPlan:
    """What an import into one store comes to. ``passed_over`` counts files over the limits."""

    target: Target
    items: tuple[Item, ...]

    @property
    def created(self) -> tuple[Item, ...]:
        """What is to be written."""
        return tuple(item for item in self.items if item.verdict == "create")

    @property
    def passed_over(self) -> int:
        """Files that the limits left out, over all sources."""
        return sum(reading.walked.passed_over for reading in self.target.readings)


def read(source: Source) -> Reading:
    """Read the files of ``source``; nothing is judged yet."""
    return Reading(source, read_tree(source.root))


def decide(target: Target, options: Options, now_ms: int) -> ImportPlan:
    """What importing into ``target`` would do now; nothing is written.

    Raises ``StoreError`` where the store cannot be read.
    """
    stock = Stock.of(target.store)
    items = [
        _judged(stock, reading.source, file, hooks, options, now_ms)
        for reading in target.readings
        for hooks, file in _files(reading)
    ]
    return ImportPlan(target, tuple(items))


def _files(reading: Reading) -> Iterable[tuple[dict[str, str], SourceFile]]:
    """The files that are notes. An index is none, but for what it says besides."""
    hooks = drafts.index_hooks(reading.walked.files)
    kind = reading.source.kind
    for file in reading.walked.files:
        if file.path != drafts.INDEX or (kind == "folder" and not drafts.is_index(file)):
            yield hooks, file
        elif kind == "claude-code" and not file.refusal:
            besides = drafts.without_index_lines(file)
            if besides is not None:
                yield hooks, besides


def _judged(
    stock: Stock,
    source: Source,
    file: SourceFile,
    hooks: dict[str, str],
    options: Options,
    now_ms: int,
) -> Item:
    shown = redact(file.path)[0]
    if file.refusal:
        return Item(source, shown, file.refusal, detail=file.detail)
    drafted = drafts.draft(source, file, hooks, now_ms)
    if isinstance(drafted, Undraftable):
        return Item(source, shown, drafted.verdict, detail=drafted.detail)
    flags = verdicts(drafted.data.decode())
    if "secret" in flags:
        return Item(source, shown, "secret", detail="it holds a secret, which is not kept")
    item = _met(stock, source, shown, drafted) or _flagged(source, shown, drafted, flags, options)
    return item or _placed(stock, source, shown, drafted, flags, options)


def _met(stock: Stock, source: Source, shown: str, drafted: Draft) -> Item | None:
    """What is there already, was there, or was forgotten; None for what is new."""
    note = drafted.note
    there = stock.origins.get(drafted.origin)
    if there is not None:
        kept = drafted if there.sha256 == note.sha256 else None
        changed = "" if kept else "imported before, and changed here or there since"
        return Item(source, shown, "imported", there.path, there.name, changed, draft=kept)
    if stock.forgets(note):
        return Item(source, shown, "forgotten", name=note.name, detail="the person forgot it")
    if note.path in stock.gone:
        return Item(source, shown, "forgotten", name=note.name, detail="it was deleted just now")
    if digest(drafted.origin) in stock.digests:
        return Item(source, shown, "imported", name=note.name, detail="imported before, gone since")
    return None


def _flagged(
    source: Source, shown: str, drafted: Draft, flags: frozenset[str], options: Options
) -> Item | None:
    if "injection" not in flags or options.include_flagged:
        return None
    detail = "it reads like instructions to a model"
    return Item(source, shown, "review", drafted.note.path, drafted.note.name, detail)


def _placed(
    stock: Stock,
    source: Source,
    shown: str,
    drafted: Draft,
    flags: frozenset[str],
    options: Options,
) -> Item:
    """A note that is new here: said already, in the way of another, or to be written."""
    note = drafted.note
    same = stock.bodies.get(says(note))
    if same is not None:
        return Item(source, shown, "same", same.path, note.name, f"{same.path} says the same")
    taken = stock.in_the_way(note)
    if taken and not options.rename:
        detail = f"{taken} has this name and says something else"
        return Item(source, shown, "conflict", taken, note.name, detail)
    free = _free(stock, drafted, rename=bool(taken))
    if free is None:
        return Item(source, shown, "conflict", note.path, note.name, "no free name was found")
    stock.add(free.note)
    warning = "it holds invisible characters" if "invisible" in flags else ""
    if "injection" in flags:
        warning = "it reads like instructions to a model"
    name = clip(free.note.name, 200)
    return Item(source, shown, "create", free.note.path, name, warning=warning, draft=free)


def _free(stock: Stock, drafted: Draft, *, rename: bool) -> Draft | None:
    """The draft at a path that is free; under a name that is free too, where its own is taken."""
    note = drafted.note
    stem = note.path.removesuffix(".md")
    for number in range(1, _TRIES):
        path = note.path if number == 1 else f"{stem}-{number}.md"
        name = f"{note.name}-{number}" if rename and number > 1 else note.name
        taken = rename and (note.type, name.casefold()) in stock.names
        if path.lower() not in stock.paths and not taken:
            return drafts.renamed(drafted, name, path)
    return None
