"""Taking back what was written: as new commits, all of it or nothing, and never learned again.

An undo has an id of its own, the ``Memoryd-Job`` of the commits it makes; each names the commit it
reverts in ``Memoryd-Undo``. So an undo is undone like any job, a commit counts as undone while an
undo of it stands, and an undo that crashed half way goes on where it stopped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from memoryd.memory import seams
from memoryd.memory.baseline import Baseline, Commit
from memoryd.memory.clock import Clock
from memoryd.memory.derived import follow_index
from memoryd.memory.edits import forgotten_files, moment, write_tombstones
from memoryd.memory.errors import DiskFull, StoreError, UndoConflict, UsageError
from memoryd.memory.home import Home
from memoryd.memory.identities import identity
from memoryd.memory.ids import short, uuid7
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.together import Rewrite, write_together
from memoryd.memory.tombstones import Span, Tombstones, added_and_taken, with_lines

#: The trailer that names the commit an undo reverts.
UNDO = "Memoryd-Undo"

#: The trailer of a commit that took in another project's notes: that project's key, and a mark.
MERGED = "Memoryd-Merged"

#: (store, path) -> the (message id, exact words) the note there stands on, where they are known.
EvidenceOf = Callable[[str, str], Iterable[Span]]


def _unknown(store: str, path: str) -> Iterable[Span]:
    return ()


@dataclass(frozen=True)
class Undone:
    """What an undo did. ``id`` undoes the undo; ``commits`` and ``paths`` are by store key.

    ``undone`` is the job, or the commit, that was taken back; ``forgotten`` are the paths of the
    notes that vanished with it and left tombstones.
    """

    id: str
    undone: str
    commits: dict[str, tuple[str, ...]]
    paths: dict[str, tuple[str, ...]]
    forgotten: dict[str, tuple[str, ...]]


@dataclass
class _Step:
    """One commit to revert, and the files it leaves behind when it is."""

    commit: Commit
    files: dict[str, bytes | None]
    lines: tuple[list[bytes], list[bytes]]


@dataclass
class _Reversal:
    """All steps in one store, newest first, decided before anything is written."""

    baseline: Baseline
    steps: list[_Step] = field(default_factory=list)
    final: dict[str, bytes | None] = field(default_factory=dict)
    found: dict[str, bytes | None] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return self.baseline.store


def undo(
    home: Home,
    reference: str,
    *,
    clock: Clock,
    evidence: EvidenceOf = _unknown,
    merges: bool = False,
) -> Undone:
    """Take back a job (any unique ending of its id) or one commit, in every store it wrote.

    ``evidence`` gives the (message id, exact words) a note of a store stood on, so that what
    vanishes is not learned again from them under other words. ``merges``: also the notes of a merge
    of two projects, by who sees to the rest of it.

    Raises ``UsageError`` when ``reference`` names nothing, several things, what is undone already
    or, without ``merges``, a merge; ``UndoConflict``, with the files, when one was changed since:
    then nothing is written.
    """
    name, targets = _targets(home, reference)
    if not merges:
        _require_no_merge(home, targets)
    with contextlib.ExitStack() as locks:
        for store in targets:
            locks.enter_context(store.writer_lock())
        for store in targets:
            Baseline(store).ensure()
        undos = {store.key: _undos(Baseline(store)) for store in targets}
        reversals = [
            _decide(Baseline(store), commits, undos[store.key])
            for store, commits in targets.items()
        ]
        _require_work(name, reversals)
        identity = _resumed(targets, undos) or uuid7(clock.now_ms())
        now_ms = clock.now_ms()
        _write(reversals)
        done = {each.store.key: _revert(each, identity, now_ms, evidence) for each in reversals}
        for store in targets:
            follow_index(store)
    return Undone(
        identity,
        name,
        {key: commits for key, (commits, _) in done.items()},
        {each.store.key: tuple(sorted(each.final)) for each in reversals},
        {key: forgotten for key, (_, forgotten) in done.items()},
    )


def undone_commits(baseline: Baseline) -> set[str]:
    """The commits of one store that are taken back: an undo of each stands."""
    undos = _undos(baseline)
    return {commit for commit in undos if not _stands(commit, undos)}


def undo_of(stores: Iterable[Store], job: str) -> str | None:
    """The id of the undo by which all that ``job`` wrote in ``stores`` is taken back.

    None while any commit of it stands, and when it made none.
    """
    found: str | None = None
    for store in stores:
        undos = _undos(Baseline(store))
        for commit in Baseline(store).commits_of(job):
            if _stands(commit.id, undos):
                return None
            found = _resumed({store: [commit]}, {store.key: undos})
    return found


def _targets(home: Home, reference: str) -> tuple[str, dict[Store, list[Commit]]]:
    """What ``reference`` names: its full name, and its commits, newest first, by store."""
    found: dict[str, dict[Store, list[Commit]]] = {}
    for store in Store.all(home) if reference.strip() else []:
        baseline = Baseline(store)
        for job, commits in baseline.jobs_ending(reference).items():
            found.setdefault(job, {})[store] = commits
        if named := baseline.commit_named(reference):
            found.setdefault(named.id, {})[store] = [named]
    if reference in found:
        return reference, found[reference]
    if not found:
        raise UsageError(
            f"no job or commit is called {reference!r}",
            hint="`memoryd list` shows the jobs, `memoryd memory history` the commits",
        )
    if len(found) > 1:
        raise UsageError(
            f"{reference!r} could be any of {len(found)} jobs and commits",
            hint="give more of its ending: " + ", ".join(sorted(found)[:5]),
        )
    return next(iter(found.items()))


def _require_no_merge(home: Home, targets: Mapping[Store, list[Commit]]) -> None:
    """Refuse what would part notes from where the home says that their project's memory is."""
    jobs = {job for made in targets.values() for each in made for job in each.values("Memoryd-Job")}
    for store in Store.all(home):
        for made in Baseline(store).with_trailer(MERGED):
            source = made.values(MERGED)[0].partition(" ")[0]
            said = identity(home, source)
            if jobs.isdisjoint(made.values("Memoryd-Job")) or said is None:
                continue
            if said.merged_into != store.key:
                continue  # they are two projects: its notes go back where they are seen
            raise UsageError(
                f"it merged the project {source} into {store.key}",
                hint=f"`memoryd project merge {source} {store.key} --undo` takes all of it back",
            )


def _undos(baseline: Baseline) -> dict[str, list[Commit]]:
    """The commits that revert others, by the commit they revert."""
    made: dict[str, list[Commit]] = {}
    for commit in baseline.with_trailer(UNDO):
        for reverted in commit.values(UNDO):
            made.setdefault(reverted, []).append(commit)
    return made


def _stands(commit: str, undos: Mapping[str, list[Commit]]) -> bool:
    """Whether no undo of ``commit`` stands. Undos are younger than what they revert: it ends."""
    return not any(_stands(each.id, undos) for each in undos.get(commit, ()))


def _resumed(
    targets: Mapping[Store, list[Commit]], undos: Mapping[str, Mapping[str, list[Commit]]]
) -> str | None:
    """The id of the undo that reverted some of these commits before it crashed."""
    for store, commits in targets.items():
        for commit in commits:
            for each in undos[store.key].get(commit.id, ()):
                if _stands(each.id, undos[store.key]):
                    return next(iter(each.values("Memoryd-Job")), None)
    return None


def _decide(
    baseline: Baseline, commits: list[Commit], undos: Mapping[str, list[Commit]]
) -> _Reversal:
    """What reverting these commits comes to, without writing; conflicts included."""
    made = _Reversal(baseline)
    head = {path: baseline.show("HEAD", path) for path in _touched(baseline, commits)}
    passed = {path: {data} for path, data in head.items()}
    for commit in commits:
        if not _stands(commit.id, undos):
            continue
        step = _step(baseline, commit)
        made.steps.append(step)
        for path, before in step.files.items():
            if made.final.get(path, head[path]) != baseline.show(commit.id, path):
                made.conflicts.append(path)
            made.final[path] = before
            passed[path].add(before)
    made.conflicts += [path for path in made.final if not _passes(made, path, passed[path])]
    return made


def _touched(baseline: Baseline, commits: list[Commit]) -> set[str]:
    return {path for commit in commits for path in baseline.paths_of(commit.id)}


def _step(baseline: Baseline, commit: Commit) -> _Step:
    parent = baseline.parent(commit.id)

    def before(path: str) -> bytes | None:
        return baseline.show(parent, path) if parent else None

    paths = baseline.paths_of(commit.id)
    files = {path: before(path) for path in paths if path != TOMBSTONES}
    lines: tuple[list[bytes], list[bytes]] = ([], [])
    if TOMBSTONES in paths:
        now = baseline.show(commit.id, TOMBSTONES) or b""
        lines = added_and_taken(before(TOMBSTONES) or b"", now)
    return _Step(commit, files, lines)


def _passes(work: _Reversal, path: str, versions: set[bytes | None]) -> bool:
    """Whether the file is as ``HEAD`` has it, or as an undo that crashed has left it."""
    try:
        work.found[path] = work.store.read(path)
    except StoreError:
        return False
    return work.found[path] in versions


def _require_work(name: str, reversals: list[_Reversal]) -> None:
    conflicts = sorted(
        {str(each.store.root / path) for each in reversals for path in each.conflicts}
    )
    if conflicts:
        raise UndoConflict(
            f"changed since {short(name)}: {', '.join(conflicts[:10])}",
            hint="undo what came later first, or edit the files by hand",
        )
    if not any(each.steps for each in reversals):
        raise UsageError(
            f"{short(name)} is undone already", hint="the undo has an id of its own: undo that"
        )


def _revert(
    work: _Reversal, identity: str, now_ms: int, evidence: EvidenceOf
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Commit each step; the commits, and the notes that left tombstones, come back."""
    commits: list[str] = []
    forgotten: list[str] = []
    for step in work.steps:
        gone = [path for path in step.files if _vanishes(work, step, path)]
        files = dict(step.files)
        if not work.store.is_profile:
            files |= _revert_tombstones(work, step, gone, now_ms, evidence)
        trailers = [("Memoryd-Job", identity), (UNDO, step.commit.id)]
        subject = f"Undo: {step.commit.subject}"
        commits.append(work.baseline.commit(files, subject, trailers, "person", now_ms=now_ms))
        seams.reach("store.committed")
        forgotten += gone
    return tuple(commits), tuple(forgotten)


def _vanishes(work: _Reversal, step: _Step, path: str) -> bool:
    """Whether the note is gone for good after the undo: not moved back to where it came from."""
    name = path.rpartition("/")[2]
    back = any(
        data is not None and other.rpartition("/")[2] == name for other, data in work.final.items()
    )
    return not (back or work.store.is_profile or step.files[path] or work.final[path])


def _write(reversals: Iterable[_Reversal]) -> None:
    """Leave every file as all the steps together do: all of them, or none.

    A crash before the commits leaves what ``_passes`` knows again.
    """
    rewrites = []
    for work in reversals:
        if not work.store.is_profile:
            Tombstones.of(work.store)  # what cannot be read is known before anything is written
        rewrites += [
            Rewrite(work.store, path, work.found[path], data) for path, data in work.final.items()
        ]
    try:
        write_together(rewrites)
    except DiskFull:
        raise
    except StoreError as error:
        raise UndoConflict(error.message, hint="look at it, then undo again") from error


def _revert_tombstones(
    work: _Reversal, step: _Step, gone: list[str], now_ms: int, evidence: EvidenceOf
) -> dict[str, bytes | None]:
    """Take back what the commit did to the tombstones; add those of what vanishes now."""
    added, taken = step.lines
    lost = [(path, work.baseline.show(step.commit.id, path)) for path in gone]
    if not (added or taken or lost):
        return {}
    old = Tombstones.of(work.store)
    kept = Tombstones.of(work.store, with_lines(old.data, taken, added))
    forgotten = forgotten_files(work.store, lost, partial(evidence, work.store.key))
    new = kept.add(*forgotten, now_ms=moment(work.baseline, forgotten, now_ms))
    return write_tombstones(work.store, old, new)
