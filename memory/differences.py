"""What changed in a store since a commit, as a person reads it: the edits not yet committed too.

Nothing secret is shown: both sides are redacted before they are compared, and a file whose sides
differ in nothing else says so.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memoryd.memory import branch
from memoryd.memory.baseline import Baseline, Commit
from memoryd.memory.errors import StoreError, UsageError
from memoryd.memory.scanner import redact
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.tombstones import added_and_taken

#: A larger file is named and not compared: nobody reads its lines in a terminal.
MAX_BYTES = 256 * 1024


@dataclass(frozen=True)
class Difference:
    """One file: ``added``, ``changed`` or ``removed``, and the unified diff of its text."""

    path: str
    status: Literal["added", "changed", "removed"]
    diff: str


def differences(store: Store, since: str | None) -> list[Difference]:
    """What became of the notes since the commit ``since`` (None: since the newest), by path.

    The tombstones are not among them, they hold no words: ``forgotten`` counts those.
    Raises ``StoreDetached`` while other files than those of the memory are checked out.
    """
    baseline = Baseline(store)
    branch.require_checked_out(store)
    head = baseline.head()
    if head is None:
        paths = [path for path in store.paths() if path != TOMBSTONES]
        return [_difference(path, None, _now(store, path)) for path in paths]
    now = baseline.files(head)
    then = now if since in {None, head} else baseline.files(since)
    committed = {path for path in {*now, *then} if now.get(path) != then.get(path)}
    paths = sorted(committed | set(baseline.changed_paths()))
    old = _contents(baseline, {path: then[path] for path in paths if path in then})
    pairs = ((path, old.get(path), _now(store, path)) for path in paths if path != TOMBSTONES)
    return [_difference(path, before, after) for path, before, after in pairs if before != after]


def forgotten(store: Store, since: str | None) -> tuple[int, int]:
    """How many things were forgotten since ``since``, as ``differences`` takes it, and how many of
    those before are forgotten no more."""
    baseline = Baseline(store)
    at = since or baseline.head()
    before = (baseline.show(at, TOMBSTONES) if at else None) or b""
    now = store.read(TOMBSTONES) or b""
    added, taken = added_and_taken(before, now)
    return sum(1 for each in added if each.strip()), sum(1 for each in taken if each.strip())


def commit_of(store: Store, reference: str) -> Commit:
    """The commit that ``reference`` names, or the newest of the job whose id ends so.

    Raises ``UsageError`` when it names nothing or several things.
    """
    baseline = Baseline(store)
    found = {job: made[0] for job, made in baseline.jobs_ending(reference).items() if reference}
    if named := baseline.commit_named(reference):
        found[named.id] = named
    if len(found) == 1:
        return next(iter(found.values()))
    raise UsageError(
        f"{reference[:80]!r} could be any of {len(found)} jobs and commits"
        if found
        else f"no job or commit of this project is called {reference[:80]!r}",
        hint="`memoryd memory history` shows them; --project looks in another project",
    )


def _contents(baseline: Baseline, blobs: Mapping[str, str]) -> dict[str, bytes]:
    found = baseline.contents(set(blobs.values()))
    return {path: found[blob] for path, blob in blobs.items()}


def _now(store: Store, path: str) -> bytes | StoreError | None:
    try:
        return store.read(path)
    except StoreError as error:  # shown in its place: not readable is not unchanged
        return error


def _difference(path: str, before: bytes | None, after: bytes | StoreError | None) -> Difference:
    status: Literal["added", "changed", "removed"] = (
        "added" if before is None else "removed" if after is None else "changed"
    )
    heads = ["/dev/null" if before is None else f"a/{path}"]
    heads += ["/dev/null" if after is None else f"b/{path}"]
    lines = [f"--- {heads[0]}", f"+++ {heads[1]}"]
    if isinstance(after, StoreError):
        lines.append(f"({after.hint or after.message})")
    elif max(len(before or b""), len(after or b"")) > MAX_BYTES:
        lines.append(f"({len(before or b'')} bytes became {len(after or b'')}: too large to show)")
    else:
        lines += _compared(before, after)
    return Difference(path, status, "\n".join(lines))


def _compared(before: bytes | None, after: bytes | None) -> list[str]:
    old, new = (redact((data or b"").decode("utf-8", "replace"))[0] for data in (before, after))
    if old == new:
        return ["(differs only in what is not shown: a secret, or bytes that are no text)"]
    made = difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="")
    return list(made)[2:]
