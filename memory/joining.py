"""Putting all notes of one store into another: one change of each, with one id.

The histories stay where they are. The other store's commit says of which files it was made, so
that a second call after a crash finds it done and only takes the first store's notes away.

| a note                                   | becomes                                             |
|------------------------------------------|-----------------------------------------------------|
| whose place and name are free            | the same, in the other store                        |
| that is there already, byte for byte     | that one                                            |
| whose place or name another has          | ``name-2`` and so on; links to it follow            |
| that a person forgot in the other store  | stays where it is, and is named                     |
| that cannot be read                      | stays where it is, and is named                     |
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from memoryd.memory import notes
from memoryd.memory.baseline import Baseline, Commit
from memoryd.memory.changing import Change, Planned, none_planned
from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.files import sha256
from memoryd.memory.head import name_key
from memoryd.memory.heads import Heads
from memoryd.memory.notes import Note, parse
from memoryd.memory.parting import begun, job_of
from memoryd.memory.renaming import relink
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.tombstones import Forgotten, Tombstones, with_lines
from memoryd.memory.undo import MERGED

#: A note that got another path: the old one and the new one.
_RENAMED = "Memoryd-Renamed"


@dataclass
class Joining:
    """What a merge is to do, decided on both stores as they are. Nothing is written by deciding."""

    source: Store
    target: Store
    #: Each file that goes, and what it is called in the other store.
    moved: dict[str, str] = field(default_factory=dict)
    #: Files that stay, with the reason.
    left: dict[str, str] = field(default_factory=dict)
    tombstones: int = 0
    contents: dict[str, bytes] = field(default_factory=dict)
    #: The new names of live notes that get one, by the path they have.
    names: dict[str, str] = field(default_factory=dict)

    @property
    def renamed(self) -> dict[str, str]:
        """Those of ``moved`` that get another path."""
        return {old: new for old, new in self.moved.items() if old != new}

    @property
    def mark(self) -> str:
        """By which the other store's commit is known again: of which store and files it is."""
        files = sorted((path, sha256(data)) for path, data in self.contents.items())
        return f"{self.source.key} {sha256(json.dumps(files).encode())[:16]}"


def decide(source: Store, target: Store) -> Joining:
    """What merging ``source`` into ``target`` does. Raises ``StoreError`` as reading does."""
    made = Joining(source, target)
    forgotten = Tombstones.of(target) if target.git_dir.is_dir() else None
    for path in source.paths():
        if path == TOMBSTONES:
            continue
        try:
            data = source.read(path)
        except StoreError as error:
            made.left[path] = error.hint
            continue
        if data is None:
            continue
        if forgotten and forgotten.meets(Forgotten.of_file(path, data)):
            made.left[path] = "it was forgotten in the other project"
            continue
        made.contents[path] = data
    _name(made)
    made.tombstones = len(_new_lines(source, target))
    return made


def carry_out(
    joining: Joining, *, now_ms: int, merge_id: str, planned: Planned = none_planned
) -> dict[str, str]:
    """Do it; the last commit of each store that changed comes back, by key.

    The caller holds both writer locks since before ``decide``. Raises ``UsageError`` where a note
    holds a secret (nothing was written), ``StoreError`` and ``BaselineError``: a later call goes on
    from there.
    """
    commits: dict[str, str] = {}
    if not joining.contents and not joining.tombstones:
        return commits
    done = is_begun(joining) if joining.contents else None
    identity = job_of(done) if done is not None else merge_id  # one undo takes both sides back
    source = _opened(joining.source, now_ms, planned, identity)
    for path in joining.contents:
        # All in one commit, whoever wrote them: a half of them cannot be handed over.
        source.put(path, None, author="memoryd")
    target = _opened(joining.target, now_ms, planned, identity)
    if done is not None:
        was = (json.loads(each) for each in done.values(_RENAMED))
        joining.moved = {path: path for path in joining.contents} | {old: new for old, new in was}
        _finish(joining, source, target, done)
    else:
        _fill(joining, source, target)
    if done is None or target.paths:
        renames = [(_RENAMED, json.dumps(each)) for each in joining.renamed.items()]
        title = f"Take in {len(joining.moved)} notes of {joining.source.key}"
        made = target.carry_out(title, (MERGED, joining.mark), *renames)
        commits[joining.target.key] = made.commit
    if source.paths:
        title = f"Hand {len(source.paths)} notes to {joining.target.key}"
        commits[joining.source.key] = source.carry_out(title).commit
    return {key: commit for key, commit in commits.items() if commit}


def is_begun(joining: Joining) -> Commit | None:
    """The other store's commit of this very merge, where it died before the first store's.

    One that was undone since, or that was carried out whole, is another merge of the same notes.
    """
    made = begun(joining.source, joining.target)
    return made if made is not None and joining.mark in made.values(MERGED) else None


def _finish(joining: Joining, source: Change, target: Change, done: Commit) -> None:
    """Commit what the merge that died left to be committed; a note that is gone since is back."""
    head, ours = target.baseline.files(), set()
    for path, to in joining.moved.items():
        data = target.read(to)
        if data is not None and to in head:
            continue
        if data is None:
            data = target.baseline.show(done.id, to) or joining.contents[path]
        ours.add(sha256(data))
        target.put(to, data, author="person" if source.is_persons(path) else "memoryd")
    _know(target, ours)


def _opened(store: Store, now_ms: int, planned: Planned, merge_id: str) -> Change:
    baseline = Baseline(store)
    baseline.ensure()
    return Change(baseline, now_ms, planned, id=merge_id)


def _fill(joining: Joining, source: Change, target: Change) -> None:
    ours = set()
    for path, to in joining.moved.items():
        content = _under_new_names(joining, path)
        ours.add(sha256(content))
        target.put(to, content, author="person" if source.is_persons(path) else "memoryd")
    _know(target, ours)
    lines = _new_lines(joining.source, joining.target)
    if lines:
        old = Tombstones.of(joining.target)
        target.tombstones = Tombstones.of(joining.target, with_lines(old.data, lines, []))


def _know(target: Change, ours: set[str]) -> None:
    """What lies there already is from a merge that died: no version of a person's."""
    before = target.planned
    target.planned = lambda: {*before(), *ours}


def _new_lines(source: Store, target: Store) -> list[bytes]:
    """The tombstones of ``source`` that ``target`` has not; their hashes are the whole home's."""
    there = set((target.read(TOMBSTONES) or b"").split(b"\n"))
    mine = (source.read(TOMBSTONES) or b"").split(b"\n")
    return [line for line in mine if line.strip() and line not in there]


def _name(made: Joining) -> None:
    """Give every note that goes its path, and its name, in the other store."""
    there = set(made.target.paths())
    with Heads(made.target) as heads:
        heads.refresh(whole=True)
        names = {(each.path.rpartition("/")[0], each.key) for each in heads.all()}
    taken = there | set(made.contents)
    for path, data in made.contents.items():
        made.moved[path] = path
        if path in there and made.target.read(path) == data:
            continue  # the same note, byte for byte
        note = _parsed(data, path)
        live = note is not None and not note.archived
        folder, name = path.rpartition("/")[0], note.name if note is not None and live else ""
        if path not in there and not (live and (folder, name_key(name)) in names):
            continue
        number = 2
        while True:
            to, new = f"{path.removesuffix('.md')}-{number}.md", f"{name}-{number}" if live else ""
            if to not in taken and (folder, name_key(new)) not in names:
                break
            if to in there and made.target.read(to) == _renamed(data, path, name, new):
                break  # left by a merge that died before its commit
            number += 1
        taken.add(to)
        made.moved[path] = to
        if live:
            made.names[path] = new
            names.add((folder, name_key(new)))


def _renamed(data: bytes, path: str, name: str, new: str) -> bytes:
    """The note under its new name; it as it is where it has none."""
    return notes.update(relink(data, path, name, new), name=new) if new else data


def _under_new_names(joining: Joining, path: str) -> bytes:
    """The note's bytes with its new name, and its links to others that were renamed."""
    data = joining.contents[path]
    note = _parsed(data, path)
    if note is None:
        return data
    for other, new in joining.names.items():
        old = _parsed(joining.contents[other], other)
        if old is not None:
            data = relink(data, path, old.name, new)
    return notes.update(data, name=joining.names[path]) if path in joining.names else data


def _parsed(data: bytes, path: str) -> Note | None:
    try:
        return parse(data, path)
    except NoteError:
        return None
