"""From a recorded plan to one commit a store, however often and wherever the process dies.

Every step can be found done: a file that is as the plan leaves it, a statement that stands in the
file already, a person's version that is in the baseline, a commit with the slice's trailer. What
could not be done, because the file is a person's by now, is written into the commit's trailers, so
that a second call gives the same answer as the one that crashed.

| crash after | a second call finds |
|---|---|
| ``store.replaced`` | files as the plan leaves them: done; it goes on with the rest |
| ``store.committed`` | the trailer: done before; it goes on with the next store |
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from memoryd.memory import seams
from memoryd.memory.baseline import Baseline, Commit, blob_id
from memoryd.memory.clock import Clock
from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.files import sha256
from memoryd.memory.home import Home
from memoryd.memory.notes import parse
from memoryd.memory.plan import Operation, Plan
from memoryd.memory.projects import Project, path_of, record
from memoryd.memory.store import MAX_FILE_BYTES, Store
from memoryd.memory.text import statement_key
from memoryd.memory.theirs import commit_theirs, has_secret

_TRIES = 3
_CHANGED = "Memoryd-Changed"
_APPENDED = "Memoryd-Appended"


@dataclass(frozen=True)
class Applied:
    """What became of a plan: each store's commit, and what a person's version stood in the way of.

    ``changed`` are the candidates dropped with reason ``changed``; ``appended`` those whose
    statement was appended as a line. Both in the plan's order.
    """

    commits: dict[str, str]
    changed: tuple[str, ...] = ()
    appended: tuple[str, ...] = ()


@dataclass
class _Work:
    """One store while a plan is applied to it: what was left where, and what was not."""

    store: Store
    baseline: Baseline
    operations: Sequence[Operation]
    now_ms: int
    planned: Collection[str]
    left: dict[str, bytes | None] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    appended: list[str] = field(default_factory=list)


def apply_plan(
    home: Home,
    plan: Plan,
    *,
    clock: Clock,
    planned: Collection[str] = (),
    wait_seconds: float = 0.0,
) -> Applied:
    """Write what ``plan`` says into its stores, one commit each; call it again after any failure.

    ``planned`` are the sha256 of files that other standing plans leave: never a person's version.
    Raises ``StoreBusy`` when a store is still being written after ``wait_seconds`` (nothing was
    done), ``StoreError`` and ``BaselineError`` when a store cannot be (a later call goes on from
    there). Never call it inside a database transaction.
    """
    stores = [Store.open(home, key) for key in {each.store for each in plan.operations}]
    stores.sort(key=lambda store: store.root)
    for operation in plan.operations:
        _require_writable(Store.open(home, operation.store), operation)
    commits: dict[str, str] = {}
    changed: set[str] = set()
    appended: set[str] = set()
    with contextlib.ExitStack() as locks:
        for store in stores:
            locks.enter_context(store.writer_lock(wait_seconds))
        for store in stores:
            done = _apply_to(store, plan, clock.now_ms(), planned)
            commits[store.key] = done.id
            changed |= set(done.values(_CHANGED))
            appended |= set(done.values(_APPENDED))
        for store in stores:
            store.refresh_index()
    for store in stores:
        _record_project(home, store)
    order = list(dict.fromkeys(each.candidate for each in plan.operations))
    return Applied(
        commits,
        tuple(each for each in order if each in changed),
        tuple(each for each in order if each in appended),
    )


def appended_line(data: bytes, line: str) -> bytes:
    """``data`` with ``line`` as a list item at its end; the same bytes when it says it already."""
    item = " ".join(line.split())
    text = data.decode("utf-8", "replace")
    if statement_key(item) in {statement_key(each) for each in text.splitlines()}:
        return data
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    start = newline if data and not data.endswith(b"\n") else b""
    return data + start + b"- " + item.encode() + newline


def _require_writable(store: Store, operation: Operation) -> None:
    """Refuse a plan that names what no plan may write, before anything is done."""
    named = operation.path
    consistent = (operation.content is None) == (operation.after is None) and (
        operation.content is None or sha256(operation.content.encode()) == operation.after
    )
    if not store.holds(named) or named == "SOUL.md" or not consistent:
        raise StoreError(
            f"the plan may not write {named!r}",
            hint="once it has failed: `memoryd retry --skip`",
        )


def _apply_to(store: Store, plan: Plan, now_ms: int, planned: Collection[str]) -> Commit:
    baseline = Baseline(store)
    baseline.ensure()
    mark = _mark(plan)
    before = baseline.with_trailer(*mark)
    if before:
        return before[0]
    operations = [each for each in plan.operations if each.store == store.key]
    work = _Work(store, baseline, operations, now_ms, planned)
    for at, operation in enumerate(operations):
        _perform(work, at, operation)
    job = ("Memoryd-Job", plan.job)
    trailers = [
        job,
        *((mark,) if mark != job else ()),
        ("Memoryd-Provider", plan.provider),
        *((_CHANGED, candidate) for candidate in work.changed),
        *((_APPENDED, candidate) for candidate in work.appended),
    ]
    subject = plan.subject or _subject(work)
    made = baseline.commit(work.left, subject, trailers, now_ms=now_ms)
    seams.reach("store.committed")
    return Commit(made, "memoryd", now_ms, "", tuple(trailers))


def _mark(plan: Plan) -> tuple[str, str]:
    """The trailer by which a second call knows that the plan was committed."""
    if plan.slice is None:
        return "Memoryd-Job", plan.job
    return "Memoryd-Slice", str(plan.slice)


def _subject(work: _Work) -> str:
    names = [path.rpartition("/")[2].removesuffix(".md") for path in work.left]
    shown = ", ".join(name[:60] for name in names[:3])
    if not shown:
        return "Nothing left to remember: all was changed by hand meanwhile"
    return f"Remember {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _perform(work: _Work, at: int, operation: Operation) -> None:
    """Do one operation, or find it done, or find that the file is a person's."""
    for _ in range(_TRIES):
        try:
            current = work.store.read(operation.path)
        except StoreError:  # a link, a folder, a huge file: no plan of ours made that
            break
        if _ours(work, at, current):
            work.left[operation.path] = current
            return
        if not _kept(work, operation.path, current):
            break
        if current is None and operation.before is None and _deleted(work, operation.path):
            break
        if _digest(current) == operation.before:
            content = operation.content
            data = None if content is None else content.encode()
            if _write(work, operation.path, current, data):
                return
        elif (longer := _with_statement(operation, current)) is None:
            break
        elif longer == current or _write(work, operation.path, current, longer):
            work.left[operation.path] = longer
            work.appended.append(operation.candidate)
            return
    work.changed.append(operation.candidate)


def _ours(work: _Work, at: int, current: bytes | None) -> bool:
    """Whether the file is as this operation, or a later one on it, leaves it."""
    path = work.operations[at].path
    return _digest(current) in {each.after for each in work.operations[at:] if each.path == path}


def _deleted(work: _Work, path: str) -> bool:
    """Whether a person took away what the baseline holds here: a new note must not bring it back.

    (What this plan itself removed is not a person's doing.)
    """
    return path not in work.left and path in work.baseline.files(None, path)


def _kept(work: _Work, path: str, current: bytes | None) -> bool:
    """See that a person's uncommitted version is committed as theirs; False when a secret in it
    forbids that, and with it any commit of the file."""
    if current is None or _digest(current) in work.planned or path in work.left:
        return True
    known = work.baseline.files(None, path).get(path)
    if known == blob_id(current) or (known and _with_lines(work, path) == current):
        return True
    if has_secret(current):
        return False
    commit_theirs(work.baseline, {path: current}, work.now_ms)
    return True


def _with_lines(work: _Work, path: str) -> bytes | None:
    """``HEAD``'s version with the plan's statements: what a call that crashed left behind."""
    data = work.baseline.show("HEAD", path)
    for each in work.operations:
        if data is not None and each.path == path and each.line.strip():
            data = appended_line(data, each.line)
    return data


def _with_statement(operation: Operation, current: bytes | None) -> bytes | None:
    """A person's version with the statement; None when the operation is to be dropped instead."""
    is_update = operation.before is not None and operation.content is not None
    if current is None or not is_update or not operation.line.strip():
        return None
    if "/" in operation.path:
        try:
            parse(current, operation.path)
        except NoteError:  # a file whose header cannot be parsed is never written
            return None
    longer = appended_line(current, operation.line)
    return longer if len(longer) <= MAX_FILE_BYTES else None


def _write(work: _Work, path: str, current: bytes | None, data: bytes | None) -> bool:
    """Put ``data`` in the place of ``current``; False when the file changed meanwhile."""
    found = _digest(current)
    if data is not None:
        written = work.store.replace(path, data, found=found)
    else:
        written = found is not None and work.store.remove(path, found=found)
    if written:
        work.left[path] = data
        seams.reach("store.replaced")
    return written


def _digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data)


def _record_project(home: Home, store: Store) -> None:
    """Write ``project.json`` where it is missing and the key says the path."""
    path = None if store.is_profile else path_of(store.key)
    if path is not None:
        record(home, Project(store.key, path))
