"""One project's memory becomes another's: notes, tombstones, rows of the ledger, session history.

The merge first says where the project's memory is from now on (``merged_into``), so that whatever
is claimed from then on lands there, and then moves what there is, each step found done by a second
call. It is refused while a job works on either project or a plan for one of them stands.

| crash after                 | on disk                            | a second call              |
|-----------------------------|------------------------------------|----------------------------|
| ``merged_into`` is written  | every directory leads to the other | moves what there is        |
| the other store's commit    | notes in both stores               | finds the commit's mark,   |
|                             |                                    | takes the notes away here  |
| files here went, no commit  | notes in the other store alone     | puts them back, goes on    |
| this store's commit         | rows and messages of the old key   | moves them                 |

Taking it back is an undo of both commits, which have one job, and goes on where it stopped; a merge
that finds it half done finishes it first.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.jobs import statements as sql
from memoryd.jobs.ledger import Ledger
from memoryd.memory import joining, parting, seams
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import Clock
from memoryd.memory.config import Config
from memoryd.memory.errors import MemorydError, StoreBusy, UsageError
from memoryd.memory.files import make_directory, write_atomic
from memoryd.memory.home import Home
from memoryd.memory.identities import identity, identity_file, is_known, merge_identity, record
from memoryd.memory.ids import uuid7
from memoryd.memory.projects import Project, Resolver
from memoryd.memory.store import Store
from memoryd.memory.undo import Undone, undo
from memoryd.sessions.history import History

#: How long a person is kept waiting for a writer lock.
WAIT_SECONDS = 5.0


@dataclass(frozen=True)
class Merged:
    """What a merge did, or would do. ``renamed`` are paths of notes, old and new; ``left`` are
    those that stay, with the reason; ``id`` is that of its commits in both stores."""

    key: str
    into: str
    moved: tuple[str, ...]
    renamed: Mapping[str, str]
    left: Mapping[str, str]
    tombstones: int
    messages: int = 0
    id: str = ""
    commits: Mapping[str, str] = field(default_factory=dict)
    backup: str = ""


@dataclass(frozen=True)
class Unmerged:
    """What taking a merge back did; ``messages`` went back, ``id`` undoes it for the notes."""

    key: str
    into: str
    messages: int
    commits: Mapping[str, str]
    id: str


@dataclass(frozen=True)
class Merger:
    """What a merge works with, opened."""

    home: Home
    config: Config
    clock: Clock
    ledger: Ledger
    history: History

    def merge(self, project: Project, into: Project, *, dry_run: bool = False) -> Merged:
        """Put all that is kept of ``project`` into ``into``; with ``dry_run`` only say what.

        Raises ``UsageError`` for one project twice and for notes that hold a secret, ``StoreBusy``
        while either is worked on.
        """
        if project.key == into.key:
            raise UsageError(f"both are the project {into.key}", hint="name two projects")
        for each in (project, into):
            if not is_known(self.home, each.key) and each.key not in self.history.project_use():
                raise UsageError(
                    f"nothing is kept of {each.path or each.key}",
                    hint="`memoryd project list` shows the projects",
                )
        stores = [Store.for_project(self.home, each.key) for each in (project, into)]
        if dry_run:
            return _told(joining.decide(*stores), self.history.messages_in(project.key))
        said = identity(self.home, project.key)
        if said is not None and said.merged_into == into.key:
            self._finish_undo(*stores)
        with contextlib.ExitStack() as locks:
            for store in sorted(stores, key=lambda each: each.root):
                locks.enter_context(store.writer_lock(WAIT_SECONDS))
            parting.put_back(*stores)
            return self._merge(project, into, joining.decide(*stores))

    def undo(self, project: Project, into: Project) -> Unmerged:
        """Make two projects again of what ``merge`` made one: notes and messages go back.

        Raises ``UsageError`` where ``project`` is not merged into ``into``, ``UndoConflict`` where
        a note was changed since, ``StoreBusy`` while either is worked on.
        """
        said = identity(self.home, project.key)
        if said is None or said.merged_into != into.key:
            raise UsageError(
                f"{project.key} is not merged into {into.key}",
                hint="name both by their keys; `memoryd project list` shows them",
            )
        self._require_quiet({project.key, into.key})
        undone = self._take_back(
            *(Store.for_project(self.home, each.key) for each in (project, into))
        )
        merge_identity(self.home, project.key, "")
        resolver = Resolver(self.home, self.config.projects.worktrees)
        messages = sum(
            self.history.repoint_project(into.key, project.key, cwd=cwd)
            for cwd in self.history.directories(into.key)
            if resolver.resolve(cwd).key == project.key
        )
        commits = {key: made[-1] for key, made in undone.commits.items() if made} if undone else {}
        return Unmerged(project.key, into.key, messages, commits, undone.id if undone else "")

    def _take_back(self, source: Store, target: Store) -> Undone | None:
        """Undo the newest merge of the one store into the other of which anything stands."""
        with source.writer_lock(WAIT_SECONDS):
            parting.put_back(source, target)
        job = parting.to_take_back(source, target)
        undone = self._undo(job) if job is not None else None
        self._let_return(source, target)
        return undone

    def _finish_undo(self, source: Store, target: Store) -> None:
        """See that a merge of which one side was undone is undone on both, before another."""
        job = parting.to_take_back(source, target, half=True)
        if job is not None:
            self._undo(job)
        if job is not None or parting.to_take_back(source, target) is None:
            self._let_return(source, target)

    def _undo(self, job: str) -> Undone:
        evidence = self.ledger.records.evidence
        return undo(self.home, job, clock=self.clock, evidence=evidence, merges=True)

    def _let_return(self, source: Store, target: Store) -> None:
        if parting.merges(source, target):
            with target.writer_lock(WAIT_SECONDS):
                parting.let_return(source, target, self.clock.now_ms())

    def _merge(self, project: Project, into: Project, decided: joining.Joining) -> Merged:
        keys = {project.key, into.key}
        self._require_quiet(keys)
        now = self.clock.now_ms()
        merge_id = uuid7(now)
        backup = self._back_up(merge_id, decided)
        for each in (decided.source, decided.target):
            Baseline(each).ensure()  # who a project is comes only with a history
        before = record(self.home, project).merged_into
        record(self.home, into)
        merge_identity(self.home, project.key, into.key)
        seams.reach("project.merging")
        try:
            # A job claimed before this line may have looked before it, and runs; one claimed after
            # it lands in the other project.
            self._require_quiet(keys)
            commits = joining.carry_out(
                decided,
                now_ms=now,
                merge_id=merge_id,
                planned=self.ledger.records.planned_contents,
            )
        except MemorydError:
            if joining.is_begun(decided) is None:  # else there is no way but on
                merge_identity(self.home, project.key, before)
            raise
        self._move_rows(project.key, into.key, decided.moved)
        messages = self.history.repoint_project(project.key, into.key)
        return _told(decided, messages, merge_id, commits, str(backup))

    def _require_quiet(self, keys: Collection[str]) -> None:
        resolver = Resolver(self.home, self.config.projects.worktrees)
        for job in self.ledger.records.jobs(status="running", limit=1000):
            session = self.history.session(job.agent, job.session) if job.session else None
            rollout = self.ledger.records.rollout(job.agent, job.session) if job.session else None
            touched = {job.project, *(session.projects if session else ())}
            if rollout is not None and rollout.cwd:
                touched.add(resolver.resolve(rollout.cwd).key)
            if not touched.isdisjoint(keys):
                raise StoreBusy(
                    f"the job {job.id[-8:]} works on one of the projects",
                    hint="try again when `memoryd list` shows it finished",
                )
        for _, plan in self.ledger.records.standing():
            if plan is None:
                raise StoreBusy(
                    "what a job decided on cannot be read, so nobody knows which project it is of",
                    hint="`memoryd doctor` names the job; `memoryd run --once` reads it again",
                )
            if not {each.store for each in plan.operations}.isdisjoint(keys):
                raise StoreBusy(
                    "what a job decided on one of the projects is not written yet",
                    hint="`memoryd run --once` finishes it",
                )

    def _back_up(self, merge_id: str, decided: joining.Joining) -> Path:
        """Copies of the ledger and of both ``project.json``, and where both histories were."""
        folder = self.home.backups / f"merge-{merge_id}"
        make_directory(folder)
        heads = {}
        for store in (decided.source, decided.target):
            baseline = Baseline(store)
            heads[store.key] = baseline.head() if baseline.exists() else None
            place = identity_file(self.home, store.key)
            if place.is_file():
                shutil.copy2(place, folder / f"{store.key}.json")
        write_atomic(folder / "heads", json.dumps(heads, indent=2).encode() + b"\n")
        copy = folder / self.home.ledger.name
        self.ledger.db.rows("vacuum into :copy", copy=str(copy))
        copy.chmod(0o600)
        return folder

    def _move_rows(self, key: str, into: str, moved: Mapping[str, str]) -> None:
        """Candidates, counters and jobs of the one store become the other's, in one transaction."""
        db = self.ledger.db
        notes = {path.removesuffix(".md"): new.removesuffix(".md") for path, new in moved.items()}
        with db.writing():
            shown = db.rows(
                "select note from usage where store = :store"
                " union select note from injection where store = :store",
                store=key,
            )
            for (note,) in shown:
                which = {"store": key, "into": into, "old": note, "new": notes.get(note, note)}
                db.change(sql.MOVE_USAGE, **which)
                db.change(sql.MOVE_INJECTIONS, **which)
                db.change(sql.FORGET_USAGE, store=key, note=note)
                db.change(sql.FORGET_INJECTIONS, store=key, note=note)
            for old, new in moved.items():
                db.change(sql.MOVE_CANDIDATES, store=key, into=into, old=old, new=new)
            for statement in sql.MOVE_STORE:
                db.change(statement, store=key, into=into)


def _told(
    decided: joining.Joining,
    messages: int = 0,
    merge_id: str = "",
    commits: Mapping[str, str] | None = None,
    backup: str = "",
) -> Merged:
    return Merged(
        key=decided.source.key,
        into=decided.target.key,
        moved=tuple(decided.moved.values()),
        renamed=decided.renamed,
        left=decided.left,
        tombstones=decided.tombstones,
        messages=messages,
        id=merge_id,
        commits=commits or {},
        backup=backup,
    )
