"""Notes by name, without reading their bodies: listing, finding, deleting one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memoryd.memory.asking import line, note_type
from memoryd.memory.clock import Clock, local_date
from memoryd.memory.errors import NoteError, UsageError
from memoryd.memory.forget import Deleted, delete_note
from memoryd.memory.head import Head, name_key
from memoryd.memory.heads import Heads
from memoryd.memory.notes import TYPES, Note, NoteType, type_of
from memoryd.memory.store import Store
from memoryd.memory.tombstones import Span


@dataclass(frozen=True)
class Listed:
    """A note without its body. ``path`` is relative to its store."""

    type: str
    name: str
    description: str
    path: str
    source: str | None = None
    valid_from: str | None = None
    #: When its file was changed (ms), 0 where nobody looked.
    changed_ms: int = 0

    @property
    def dated(self) -> str:
        """The day on which it was last said, else on which its file was last changed."""
        if self.valid_from:
            return self.valid_from[:10]
        return local_date(self.changed_ms) if self.changed_ms else ""


def list_notes(store: Store, type: object = None) -> list[Listed]:
    """The live notes of a project by type and name, without their bodies, all or of one type.

    A file that cannot be parsed is left out. Raises ``UsageError`` for a type that is none.
    """
    wanted = None if type is None else note_type(type)
    with Heads(store) as heads:
        heads.refresh(whole=True)
        found = [head for head in heads.all() if head.readable and wanted in {None, head.type}]
    found.sort(key=lambda head: (TYPES.index(type_of(head.path)), head.name, head.path))
    return [listed(head) for head in found]


def delete_named(
    store: Store,
    *,
    type: object,
    name: object,
    clock: Clock,
    spans: Iterable[Span] = (),
) -> Deleted | None:
    """Delete the note of this type and name, an episode too; None when there is none.

    ``spans`` as for ``delete_note``. Raises ``UsageError`` for a bad type or a blank name.
    """
    kind, wanted = note_type(type), line("name", name)
    with Heads(store) as heads:
        heads.refresh(whole=True)
        found = existing(heads.named(wanted), kind, wanted)
    if found is None:
        return None
    return delete_note(store.home, store, found.path, clock=clock, spans=spans)


def existing(found: Sequence[Head], kind: NoteType, name: str) -> Head | None:
    """The note of this type and name, else the one whose name differs only by case.

    Raises ``UsageError`` when several files have the name.
    """
    key = name_key(name)
    same = [head for head in found if head.key == key and head.type == kind]
    fitting = [head for head in same if head.name == name] or same
    if len(fitting) > 1:
        files = " and ".join(head.path for head in fitting)
        raise UsageError(f"{files} are both called {name!r}", hint="rename or delete one of them")
    return fitting[0] if fitting else None


def named(found: Iterable[Head], name: str) -> Head:
    """The one live note called ``name`` or ``type/name``; ``UsageError`` for none or several."""
    fitting = called(found, name)
    if fitting is None:
        raise UsageError(
            f"no note of this project is called {name[:80]!r}",
            hint="`memoryd memory list` shows the names; --project looks in another project",
        )
    return fitting


def called(found: Iterable[Head], name: str) -> Head | None:
    """The one live note called ``name`` or ``type/name``, None for none.

    Raises ``UsageError`` for several.
    """
    wanted = name.strip()
    fitting = [head for head in found if wanted in (head.name, f"{head.type}/{head.name}")]
    if len(fitting) > 1:
        both = " and ".join(f"{head.type}/{head.name}" for head in fitting)
        raise UsageError(f"{wanted!r} names {both}", hint="put the type before the name")
    return fitting[0] if fitting else None


def require_free_file(found: Iterable[Head], path: str, name: str) -> None:
    """Raise ``UsageError`` where another note is in the file (case aside) ``name`` would have."""
    for head in found:
        if head.path.casefold() == path.casefold():
            if not head.readable:
                raise unreadable(head)
            raise UsageError(
                f"{name!r} and {head.type}/{head.name} would be one file, {head.path}",
                hint="choose a name that differs by more than punctuation",
            )


def unreadable(head: Head) -> NoteError:
    """The refusal to write a file whose header cannot be parsed."""
    return NoteError(f"{head.path} cannot be read as a note", hint="correct its header by hand")


def listed(each: Note | Head) -> Listed:
    """A note as listings show it."""
    about = (each.type, each.name, each.description, each.path, each.source, each.valid_from)
    return Listed(*about, each.changed_ns // 1_000_000 if isinstance(each, Head) else 0)
