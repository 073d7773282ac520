"""One unit of a plan: the operations of one candidate in one store, performed whole or not at all.

A unit that changes one file gives way to a person's version of it: theirs stands, and the statement
is appended as a line if it was an update. A unit of several files (a note and what it supersedes, a
merge and its sources) is decided before any of them is written, and is never left in halves. Its
contents are written in the plan's order, then its files are removed, so what is written says how
far an attempt that died had come:

| a file of the unit | counts as |
|---|---|
| as the plan leaves it; gone, where the plan removes it, and all before it is done | done |
| new, and gone after it was written (``memory/written.py``) | a person's, in the way |
| as the plan found it | to do |
| anything else, and a later file of the unit is written | done, and changed by a person since |
| anything else: changed, deleted, moved, a link, a secret in it | a person's, in the way |

With none in the way what is to do is done: a unit that was begun is finished. With one in the way,
the files that are still as the plan leaves them are put back as they were; theirs stands, and the
candidate is dropped with reason ``changed``. Every step of both ways can be found done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal

from memoryd.memory import seams
from memoryd.memory.baseline import Baseline, blob_id
from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.files import sha256
from memoryd.memory.notes import ARCHIVE, parse
from memoryd.memory.plan import Operation
from memoryd.memory.sayings import said_since
from memoryd.memory.store import MAX_FILE_BYTES, Store
from memoryd.memory.text import statement_key
from memoryd.memory.theirs import commit_theirs, has_secret
from memoryd.memory.values import sense_key
from memoryd.memory.written import Written

_TRIES = 3

_State = Literal["done", "to do", "edited", "theirs"]


def _unsaid(candidate: str) -> str:
    return ""


@dataclass
class Work:
    """One store while a plan is applied to it: what was left where, and what was not.

    ``operations`` are the plan's for this store; ``planned`` the sha256 of files that standing
    plans leave; ``written`` the new files that this plan had put there before, ``since_ms`` when it
    was begun (0: unknown). ``left`` is what is to be committed; ``changed`` and ``appended`` are
    candidates, ``taken`` those of ``changed`` whose new note a person took away again, ``same``
    those whose new note need not be, as another has come that says it. ``statement`` gives a
    candidate's.
    """

    store: Store
    baseline: Baseline
    operations: Sequence[Operation]
    now_ms: int
    written: Written
    planned: Collection[str] = ()
    since_ms: int = 0
    statement: Callable[[str], str] = _unsaid
    left: dict[str, bytes | None] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    appended: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    same: list[str] = field(default_factory=list)

    def is_new(self, path: str) -> bool:
        """Whether the plan makes this file, and does not only change one that it found."""
        return any(each.path == path and each.before is None for each in self.operations)

    @cached_property
    def said(self) -> frozenset[str]:
        """The keys of what was written into other notes since the plan was begun."""
        if not self.since_ms:
            return frozenset()
        own = {each.path for each in self.operations}
        return said_since(self.baseline, self.since_ms, except_for=own, planned=self.planned)


def perform_all(work: Work) -> None:
    """Perform every unit, in the order of their first operations."""
    units: dict[str, list[int]] = {}
    for at, operation in enumerate(work.operations):
        units.setdefault(operation.candidate, []).append(at)
    for unit in units.values():
        if len({work.operations[at].path for at in unit}) > 1:
            _perform_together(work, unit)
            continue
        for at in unit:
            _perform_alone(work, at)


def put_back_all(work: Work) -> list[str]:
    """Give every file that is as the plan leaves it ``HEAD``'s version; their paths come back.

    So too a file that has the plan's statement as a line more than ``HEAD``, and one that the plan
    removes and that is gone. What a person changed since is left alone.
    """
    found = []
    removals_first = sorted(
        reversed(range(len(work.operations))),
        key=lambda at: work.operations[at].content is not None,
    )
    for at in removals_first:
        path = work.operations[at].path
        head = _head(work, path)
        try:
            current = work.store.read(path)
        except StoreError:  # a link, a folder, a huge file: no plan of ours made that
            continue
        left = current != head and _is_left_by(work, at, current, head)
        if left and _write(work, path, current, head):
            found.append(path)
    return found


def appended_line(data: bytes, line: str) -> bytes:
    """``data`` with ``line`` as a list item at its end; the same bytes when it says it already."""
    item = " ".join(line.split())
    text = data.decode("utf-8", "replace")
    if statement_key(item) in {statement_key(each) for each in text.splitlines()}:
        return data
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    start = newline if data and not data.endswith(b"\n") else b""
    return data + start + b"- " + item.encode() + newline


# -- one file ------------------------------------------------------------------------------------


def _perform_alone(work: Work, at: int) -> None:
    """Do one operation, or find it done, or find that the file is a person's."""
    operation = work.operations[at]
    for _ in range(_TRIES):
        try:
            current = work.store.read(operation.path)
        except StoreError:  # a link, a folder, a huge file: no plan of ours made that
            break
        if _is_over(work, at, current):
            return
        if not _kept(work, operation.path, current) or _brings_back(work, operation, current):
            break
        if _digest(current) == operation.before:
            if _write(work, operation.path, current, _content(operation)):
                return
        elif (longer := _with_statement(operation, current)) is None:
            break
        elif longer == current or _write(work, operation.path, current, longer):
            work.left[operation.path] = longer
            work.appended.append(operation.candidate)
            return
    work.changed.append(operation.candidate)


def _brings_back(work: Work, operation: Operation, current: bytes | None) -> bool:
    """Whether writing a new note would undo that somebody took it away."""
    return current is None and operation.before is None and _deleted(work, operation)


def _is_over(work: Work, at: int, current: bytes | None) -> bool:
    """Whether nothing is to be written: it is done, or another note says it by now."""
    operation = work.operations[at]
    if not _is_said_meanwhile(work, operation, current):
        if is_ours := _ours(work, at, current):
            work.left[operation.path] = current
        return is_ours
    if current is not None and not _write(work, operation.path, current, None):
        return False  # it was changed at this moment: theirs
    work.left.pop(operation.path, None)
    work.same.append(operation.candidate)
    return True


def _is_said_meanwhile(work: Work, operation: Operation, current: bytes | None) -> bool:
    """Whether a new note is not needed: since it was decided another one came to say the same.

    So too where an attempt that died has written it, as long as that is not committed.
    """
    path = operation.path
    if operation.before is not None or operation.content is None or path.startswith(f"{ARCHIVE}/"):
        return False
    if current is None and path in work.written:  # a person took it away
        return False
    if _digest(current) not in (None, operation.after):
        return False
    try:
        body = parse(operation.content.encode(), path).body
    except NoteError:  # no note: a profile's file
        return False
    keys = {sense_key(body), sense_key(work.statement(operation.candidate))} - {""}
    return not keys.isdisjoint(work.said) and path not in work.baseline.files(None, path)


def _ours(work: Work, at: int, current: bytes | None) -> bool:
    """Whether the file is as this operation, or a later one on it, leaves it."""
    path = work.operations[at].path
    return _digest(current) in {each.after for each in work.operations[at:] if each.path == path}


def _deleted(work: Work, operation: Operation) -> bool:
    """Whether somebody took away a file that is not there: a new note must not bring it back.

    It was this plan's, or the baseline holds it, or held it at any time since the plan was begun.
    (What this call itself removed is not a person's doing.)
    """
    path = operation.path
    if path in work.left:
        return False
    if path in work.written:
        work.taken.add(operation.candidate)
        return True
    if path in work.baseline.files(None, path):
        return True
    return work.since_ms > 0 and work.baseline.touched_since(path, work.since_ms)


def _kept(work: Work, path: str, current: bytes | None) -> bool:
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


def _with_lines(work: Work, path: str) -> bytes | None:
    """``HEAD``'s version with the plan's statements: what a call that crashed left behind."""
    data = _head(work, path)
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


# -- several files -------------------------------------------------------------------------------


def _perform_together(work: Work, unit: Sequence[int]) -> None:
    """Do a unit of several files, finish one that was begun, or leave nothing of it."""
    unit = sorted(unit, key=lambda at: work.operations[at].content is None)
    for _ in range(_TRIES):
        states = _states(work, unit)
        if "theirs" in states.values():
            break
        if all(_do(work, at) for at in unit if states[at] == "to do"):
            for at in unit:
                if states[at] == "done":
                    work.left[work.operations[at].path] = work.store.read(work.operations[at].path)
            return
    _give_way(work, unit)
    work.changed.append(work.operations[unit[0]].candidate)


def _states(work: Work, unit: Sequence[int]) -> dict[int, _State]:
    """What each file of the unit counts as; a person's version is committed as theirs by this."""
    states: dict[int, _State] = {}
    last = max((place for place, at in enumerate(unit) if _is_written(work, at)), default=-1)
    removes = _has_come_to_removals(work, unit)
    for place, at in enumerate(unit):
        states[at] = _state(work, at, written_after=place < last, removes=removes)
    return states


def _state(work: Work, at: int, *, written_after: bool, removes: bool) -> _State:
    operation = work.operations[at]
    try:
        current = work.store.read(operation.path)
    except StoreError:  # a link, a folder, a huge file
        return "theirs"
    if _ours(work, at, current):
        return "done" if current is not None or removes else "theirs"
    kept = _kept(work, operation.path, current)
    if current is None and operation.before is None and written_after:
        work.taken.add(operation.candidate)  # it was written before what comes after it
        return "theirs"
    if _digest(current) == operation.before:
        free = kept and not _brings_back(work, operation, current)
        return "to do" if free else "theirs"
    return "edited" if written_after else "theirs"


def _has_come_to_removals(work: Work, unit: Sequence[int]) -> bool:
    """Whether all that the unit writes was written, so that a file it removes may be gone by it.

    What is written last says so, also where a person took it away again.
    """
    writes = [at for at in unit if work.operations[at].content is not None]
    if not writes:
        return True
    path = work.operations[writes[-1]].path
    return _is_written(work, writes[-1]) or path in work.written or path in work.left


def _is_written(work: Work, at: int) -> bool:
    """Whether the file holds what this operation, or a later one on it, wrote."""
    try:
        current = work.store.read(work.operations[at].path)
    except StoreError:
        return False
    changes = work.operations[at].before != work.operations[at].after
    return current is not None and changes and _ours(work, at, current)


def _do(work: Work, at: int) -> bool:
    """Perform an operation whose file is as the plan found it; False when it changed meanwhile."""
    operation = work.operations[at]
    try:
        current = work.store.read(operation.path)
    except StoreError:
        return False
    if _digest(current) != operation.before:
        return False
    return _write(work, operation.path, current, _content(operation))


def _give_way(work: Work, unit: Sequence[int]) -> None:
    """Put back what is still as the unit leaves it, the last first."""
    states = _states(work, unit)
    for at in reversed(unit):
        operation = work.operations[at]
        known, before = _before(work, at)
        if states[at] != "done" or not known:
            continue
        current = work.store.read(operation.path)
        work.left.pop(operation.path, None)
        if _digest(current) == operation.after and current != before:
            _write(work, operation.path, current, before)
        if _head(work, operation.path) == before:
            work.left.pop(operation.path, None)


def _before(work: Work, at: int) -> tuple[bool, bytes | None]:
    """Whether what the operation found is known still, and what it was."""
    operation = work.operations[at]
    if operation.before is None:
        return True, None
    for each in work.operations[:at]:
        if (each.path, each.after) == (operation.path, operation.before):
            return True, _content(each)
    head = _head(work, operation.path)
    return _digest(head) == operation.before, head


# -- both ----------------------------------------------------------------------------------------


def _is_left_by(work: Work, at: int, current: bytes | None, head: bytes | None) -> bool:
    """Whether a file that is not as in ``HEAD`` is so by the plan, and not by a person."""
    operation = work.operations[at]
    if operation.content is not None:
        lines = None if head is None else _with_lines(work, operation.path)
        return current is not None and (_ours(work, at, current) or current == lines)
    unit = [o for o, each in enumerate(work.operations) if each.candidate == operation.candidate]
    others = [other for other in unit if work.operations[other].content is not None]
    begun = _has_come_to_removals(work, unit) or any(_is_written(work, o) for o in others)
    return current is None and begun and _digest(head) == operation.before


def _write(work: Work, path: str, current: bytes | None, data: bytes | None) -> bool:
    """Put ``data`` in the place of ``current``; False when the file changed meanwhile."""
    found = _digest(current)
    seams.before("store.replaced")
    if data is not None:
        is_new = found is None and work.is_new(path)
        note = partial(work.written.note, path) if is_new else None
        written = work.store.replace(path, data, found=found, note=note)
    else:
        written = found is not None and work.store.remove(path, found=found)
    if written:
        work.left[path] = data
        seams.reach("store.replaced")
    return written


def _head(work: Work, path: str) -> bytes | None:
    return work.baseline.show("HEAD", path) if work.baseline.head() else None


def _content(operation: Operation) -> bytes | None:
    return None if operation.content is None else operation.content.encode()


def _digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data)
