"""Notes that become one: the files a merge leaves, and what a merge may not lose.

The survivor keeps its name, type and unknown keys and gains the tags of the others and a link to
each; they move to the archive, linked back. Nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoryd.memory import notes
from memoryd.memory.clock import instant_ms, iso
from memoryd.memory.errors import StoreError, UsageError
from memoryd.memory.files import sha256
from memoryd.memory.notes import ARCHIVE, Note
from memoryd.memory.plan import Operation
from memoryd.memory.proposals import MergeProposal
from memoryd.memory.store import Store
from memoryd.memory.values import lacks_value, shrinks, turns, without_said_as

_SUFFIXES = 1_000


@dataclass(frozen=True)
class Source:
    """A note as it stands: what was read of it, and its bytes."""

    note: Note
    data: bytes


@dataclass(frozen=True)
class Text:
    """What a merged note is to say."""

    description: str
    content: str


@dataclass(frozen=True)
class Hand:
    """Whose operations these are. ``free`` gives a path in the archive that no file has.

    ``candidate`` is the id under which all of them stand or fall; ``source`` (session and job) is
    written into a note whose text changes.
    """

    store: str
    candidate: str
    source: str
    now_ms: int
    free: Callable[[str], str]

    def operation(
        self, path: str, before: bytes | None, content: bytes | None, line: str = ""
    ) -> Operation:
        """One file from the bytes found to the bytes left; ``line`` as in ``Operation``."""
        return Operation(
            store=self.store,
            path=path,
            before=None if before is None else sha256(before),
            after=None if content is None else sha256(content),
            content=None if content is None else content.decode(),
            line=line,
            candidate=self.candidate,
        )


def merge(
    hand: Hand, into: Source, sources: Sequence[Source], text: Text | None
) -> tuple[Operation, ...]:
    """``sources`` become part of ``into``; without ``text`` it says already what they say.

    The archive is written first and the old files go last, so that no crash finds a word nowhere.
    """
    copies = [
        hand.operation(hand.free(f"{ARCHIVE}/{one.note.path}"), None, _superseded(hand, into, one))
        for one in sources
    ]
    survivor = hand.operation(into.note.path, into.data, _merged(hand, into, sources, text))
    gone = [hand.operation(one.note.path, one.data, None) for one in sources]
    return (*copies, survivor, *gone)


def retire(hand: Hand, one: Source) -> tuple[Operation, ...]:
    """``one`` moves to the archive as it is: nothing replaces it."""
    copy = hand.operation(hand.free(f"{ARCHIVE}/{one.note.path}"), None, one.data)
    return (copy, hand.operation(one.note.path, one.data, None))


def loss(sources: Sequence[Note], text: Text) -> str:
    """What the text would lose of the notes it stands for, as a reason's code; "" for nothing.

    No distinct value of any note may be missing, no "never" be turned around, nor more than a
    quarter of their words in all be gone, each counted once: so two notes that say the same may
    well become one. A last line that only quotes what a note stands on is no words of it.
    """
    old = "\n".join(f"{note.description}\n{without_said_as(note.body)}" for note in sources)
    new = f"{text.description}\n{text.content}"
    if lacks_value(old, new):
        return "merge.loses-value"
    if shrinks(old, new):
        return "merge.shrinks"
    return "merge.turns" if turns(old, new) else ""


def merge_operations(
    store: Store, proposal: MergeProposal, *, candidate: str, source: str, now_ms: int
) -> tuple[Operation, ...]:
    """What a merge that a person said yes to writes, decided on the store as it is now.

    A person's own notes are merged too: they asked for it. A note that is no longer there is left
    out. Raises ``UsageError`` when the survivor or every other note is gone, ``StoreError`` and
    ``NoteError`` when one cannot be read.
    """
    into = _read(store, proposal.into)
    paths = [path for path in dict.fromkeys(proposal.supersedes) if path != proposal.into]
    sources = [one for path in paths if (one := _read(store, path)) is not None]
    if into is None or not sources:
        missing = proposal.into if into is None else ", ".join(paths)
        raise UsageError(
            f"there is nothing left to merge: {missing} is no longer there",
            hint="`memoryd memory list` shows the notes there are",
        )
    hand = Hand(store.key, candidate, source, now_ms, lambda path: free_path(store, path))
    return merge(hand, into, sources, Text(proposal.description, proposal.content))


def free_path(store: Store, path: str, taken: frozenset[str] | set[str] = frozenset()) -> str:
    """``path``, or with a number behind it where a file, or one of ``taken``, is there."""
    stem = path.removesuffix(".md")
    tries = (path if number == 1 else f"{stem}-{number}.md" for number in range(1, _SUFFIXES))
    for tried in tries:
        if tried not in taken and is_free(store, tried):
            return tried
    raise StoreError(f"every name like {path} is taken", hint="rename some of them")


def is_free(store: Store, path: str) -> bool:
    """Whether a new file could be put at ``path``."""
    try:
        return store.read(path) is None
    except StoreError:  # a link or a folder is not free
        return False


def _read(store: Store, path: str) -> Source | None:
    data = None if path.startswith(f"{ARCHIVE}/") else store.read(path)
    return None if data is None else Source(notes.parse(data, path), data)


def _superseded(hand: Hand, into: Source, one: Source) -> bytes:
    until = one.note.valid_until or iso(hand.now_ms)
    return notes.update(one.data, valid_until=until, superseded_by=into.note.name)


def _merged(hand: Hand, into: Source, sources: Sequence[Source], text: Text | None) -> bytes:
    """The survivor: its links are added to, never replaced; it is as old as its newest part."""
    every = [into.note, *(one.note for one in sources)]
    links = [*into.note.supersedes, *(one.note.name for one in sources)]
    changes: dict[str, notes.Value] = {
        "supersedes": tuple(dict.fromkeys(links)),
        "tags": tuple(dict.fromkeys(tag for note in every for tag in note.tags)),
    }
    times = [note.valid_from for note in every if note.valid_from]
    if text is not None:
        changes |= {"description": text.description, "body": text.content, "source": hand.source}
        if times:
            changes["valid_from"] = max(times, key=lambda time: instant_ms(time) or 0)
    return notes.update(into.data, **changes)
