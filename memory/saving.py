"""Saving a note because a person or their agent asks for it now.

One save is one commit and one step to undo. Saving a name that is there updates that note: keys
not given are kept, and so is every byte that is not ours. What another note says already is not
said again: the answer is that note. A person's note is left to them.

| outcome | written | when |
|---|---|---|
| ``created``, ``updated`` | yes | |
| ``unchanged`` | no | the note says all of it already |
| ``duplicate`` | no | another note says the same |
| ``similar`` | no | another note says nearly the same (``resembling``): update that one |
| ``person`` | no | a person changed it, or a note it supersedes, last |

``anyway`` writes in the last three cases. Who saves a note now says it again: the tombstones it
meets are lifted. The commit is memoryd's, with ``Memoryd-Source: tool``, since an agent's words
are not the person's; with ``mine`` it is the person's and only they, or review, change the note
from then on. Semantics of FreeCode's memory tool, but for the omitted
keys, the duplicates and the person's notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memoryd.memory import notes
from memoryd.memory.asking import Asked, asked
from memoryd.memory.baseline import Baseline
from memoryd.memory.changing import WAIT_SECONDS, Change, Planned, lift, none_planned
from memoryd.memory.clock import Clock, iso
from memoryd.memory.errors import UsageError
from memoryd.memory.head import Head, name_key
from memoryd.memory.heads import Heads
from memoryd.memory.listing import Listed, called, existing, listed, require_free_file, unreadable
from memoryd.memory.notes import ARCHIVE, Note, file_name
from memoryd.memory.resembling import Resembling, resembling
from memoryd.memory.store import Store
from memoryd.memory.tombstones import Forgotten

Outcome = Literal["created", "updated", "unchanged", "duplicate", "similar", "person"]

WRITTEN: frozenset[Outcome] = frozenset({"created", "updated"})
_SHOWN = 5


@dataclass(frozen=True)
class Saved:
    """What became of a save. ``commit`` and ``id`` (what ``undo`` takes) are None if not written.

    ``resembles`` are the notes it resembles, those that stood in the way first; ``superseded``
    where the superseded notes are now; ``missing`` the names it supersedes that no note has.
    ``lifted``: it had been forgotten, and is remembered again.
    """

    outcome: Outcome
    type: str
    name: str
    path: str
    previous_description: str | None = None
    commit: str | None = None
    id: str | None = None
    resembles: tuple[Listed, ...] = ()
    superseded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    lifted: bool = False

    @property
    def written(self) -> bool:
        """Whether the note is as it was asked for because of this save."""
        return self.outcome in WRITTEN


def save_note(
    store: Store,
    *,
    type: object,
    name: object,
    description: object = None,
    content: object = None,
    tags: object = None,
    supersedes: object = None,
    source: str | None = None,
    mine: bool = False,
    anyway: bool = False,
    clock: Clock,
    planned: Planned = none_planned,
) -> Saved:
    """Save one note of a project; what came of it, written or not (see above).

    The values are as a caller gave them; ``asking.asked`` checks them. ``source`` is where the
    words come from (``agent/session``). Raises ``UsageError`` for what cannot be saved, a secret
    included, ``NoteError`` when the file there cannot be parsed, ``StoreBusy`` when the store is
    still being written after five seconds, and ``BaselineError``.
    """
    request = asked(type, name, description, content, tags, supersedes, source, anyway=anyway)
    if store.is_profile:
        raise UsageError("a profile holds no notes", hint="name a project")
    with Heads(store) as heads:
        heads.refresh()  # what has to be read is not read under the lock
        with store.writer_lock(WAIT_SECONDS):
            baseline = Baseline(store)
            baseline.ensure()
            heads.refresh(whole=_names_notes(request))
            change = Change(baseline, clock.now_ms(), planned, mine)
            saved = _Save(change, request, heads, anyway).run()
            heads.saved(change.paths if saved.written else ())
    return saved


def told(saved: Saved) -> str:
    """One paragraph for the agent or person who saved."""
    note = f"{saved.type}/{saved.name}"
    before = f' It said before: "{saved.previous_description}".'
    like = ", ".join(f"{each.type}/{each.name} ({each.description})" for each in saved.resembles)
    text = {
        "created": f"Saved {note}.",
        "updated": f"Updated {note}.{before}",
        "unchanged": f"{note} says this already; nothing was changed.",
        "duplicate": f"Not saved: {like} says the same.",
        "similar": f"Not saved: {like} says nearly the same. Update that note instead.",
        "person": f"Not saved: the person changed {like} last. Ask them first.",
    }[saved.outcome]
    if saved.written and like:
        text += f" It resembles {like}."
    if saved.superseded:
        text += f" Moved to the archive: {', '.join(saved.superseded)}."
    if saved.missing:
        text += f" No note is called {', '.join(saved.missing)}."
    return text + (" It had been forgotten and is remembered again." if saved.lifted else "")


def _names_notes(request: Asked) -> bool:
    """Whether there must be a note of some name: then a name given by hand just now counts."""
    return bool(request.supersedes) or request.description is None or request.content is None


class _Save:
    """One save under the writer lock: what is there, what it resembles, what it becomes."""

    def __init__(self, change: Change, request: Asked, heads: Heads, anyway: bool) -> None:
        self._change = change
        self._request = request
        self._heads = heads
        self._anyway = anyway or change.mine
        self._force = anyway
        self._old = existing(heads.named(request.name), request.type, request.name)
        self._name = self._old.name if self._old else request.name
        self._path = self._old.path if self._old else f"{request.type}/{file_name(request.name)}"
        self._superseded: list[Head] = []
        self._links: list[str] = []
        self._missing: list[str] = []

    def run(self) -> Saved:
        """Write it, or say why not."""
        before = self._before()
        self._find_superseded()
        data = self._data(before)
        if data == before and not self._superseded:
            return self._saved("unchanged", before)
        found = self._resembling(before)
        return self._in_the_way(before, found) or self._write(data, before, found)

    def _before(self) -> bytes | None:
        if self._old is None:
            require_free_file(self._heads.at(self._path), self._path, self._name)
            for key in ("description", "content"):
                if getattr(self._request, key) is None:
                    raise UsageError(f"{key} is missing", hint="a new note needs one")
            return None
        if not self._old.readable:
            raise unreadable(self._old)
        return self._change.read(self._path)

    def _find_superseded(self) -> None:
        """The live notes that are superseded; those in the archive already are left there."""
        for name in self._request.supersedes or ():
            found = called((each for each in self._heads.named(name) if each.readable), name)
            if self._is_itself(name, found):
                continue
            if found is None and not self._is_archived(name):
                self._missing.append(name)
            elif found is not None and found not in self._superseded:
                self._superseded.append(found)
            self._links.append(found.name if found else name)

    def _is_itself(self, name: str, found: Head | None) -> bool:
        if found is not None:
            return found.path == self._path
        return name_key(name) in {
            name_key(self._name),
            name_key(f"{self._request.type}/{self._name}"),
        }

    def _is_archived(self, name: str) -> bool:
        paths = self._change.store.paths_named(file_name(name.rpartition("/")[2]))
        return any(path.startswith(f"{ARCHIVE}/") for path in paths)

    def _data(self, before: bytes | None) -> bytes:
        request, now = self._request, iso(self._change.now_ms)
        if before is None:
            return notes.new_note(
                name=self._name,
                description=request.description or "",
                type=request.type,
                body=request.content or "",
                tags=request.tags or (),
                supersedes=self._links,
                created=now,
                source=request.source,
                valid_from=now,
            )
        given: dict[str, notes.Value] = {
            "description": request.description,
            "body": request.content,
            "tags": request.tags,
            "supersedes": None if request.supersedes is None else self._links,
        }
        return _updated(before, self._path, given, request.source, now)

    def _resembling(self, before: bytes | None) -> Resembling:
        """What else says it. Of an update only what is the same stands in the way."""
        if before is not None and self._request.content is None:
            return Resembling()
        old = notes.parse(before, self._path) if before is not None else None
        if old is not None and old.body == _plain(self._request.content):
            return Resembling()
        without = {self._path, *(head.path for head in self._superseded)}
        description = self._request.description or (old.description if old else "")
        found = resembling(
            self._change.store,
            self._heads,
            description,
            self._request.content or "",
            without=without,
        )
        if old is not None:
            found.alike, found.near = found.near + found.alike, []
        return found

    def _in_the_way(self, before: bytes | None, found: Resembling) -> Saved | None:
        if found.same and not self._force:
            return self._saved("duplicate", before, found.same)
        if found.near and not self._force:
            return self._saved("similar", before, found.near)
        if self._anyway:
            return None
        touched = [head for head in (self._old, *self._superseded) if head is not None]
        theirs = [head for head in touched if self._is_persons(head)]
        return self._saved("person", before, theirs) if theirs else None

    def _is_persons(self, head: Head) -> bool:
        self._change.read(head.path)
        return self._change.is_persons(head.path)

    def _write(self, data: bytes, before: bytes | None, found: Resembling) -> Saved:
        self._change.put(self._path, data)
        archived = tuple(self._archive(head) for head in self._superseded)
        again = lift(self._change, Forgotten.of_file(self._path, data))
        verb = "Save" if before is None else "Update"
        made = self._change.carry_out(f"{verb} {self._path}", ("Memoryd-Source", "tool"))
        outcome: Outcome = "created" if before is None else "updated"
        alike = [*found.same, *found.near, *found.alike]
        return self._saved(
            outcome, before, alike, commit=made.commit, id=made.id, superseded=archived,
            lifted=again,
        )  # fmt: skip

    def _archive(self, head: Head) -> str:
        """Move a superseded note to the archive, with both ends linked."""
        data = self._change.read(head.path) or b""
        now = iso(self._change.now_ms)
        old = notes.update(data, valid_until=now, superseded_by=self._name)
        path = self._change.free_path(f"{ARCHIVE}/{head.path}")
        self._change.put(path, old, like=head.path)
        self._change.put(head.path, None)
        return path

    def _saved(
        self,
        outcome: Outcome,
        before: bytes | None,
        like: Sequence[Note | Head] = (),
        *,
        commit: str | None = None,
        id: str | None = None,
        superseded: tuple[str, ...] = (),
        lifted: bool = False,
    ) -> Saved:
        old = None if before is None else notes.parse(before, self._path)
        return Saved(
            outcome,
            self._request.type,
            self._name,
            self._path,
            None if old is None else old.description,
            commit,
            id,
            tuple(listed(each) for each in like[:_SHOWN]),
            superseded,
            tuple(self._missing),
            lifted,
        )


def _updated(
    before: bytes, path: str, given: dict[str, notes.Value], source: str | None, now: str
) -> bytes:
    """``before`` with what was given; other words are valid from now."""
    old = notes.parse(before, path)
    changes = {key: value for key, value in given.items() if value is not None}
    if _plain(changes.get("body")) == old.body:
        changes.pop("body", None)
    data = notes.update(before, **changes)
    if data == before:
        return before
    more: dict[str, notes.Value] = {"source": source} if source else {}
    if {"description", "body"} & changes.keys():
        more["valid_from"] = now
    return notes.update(data, **more)


def _plain(body: notes.Value) -> str | None:
    return body.replace("\r\n", "\n").strip() if isinstance(body, str) else None
