"""The branch of a baseline: where it is, whether it is checked out, and what stands in its way.

The memory is ``refs/heads/main`` and nothing else. While a person has another branch or an old
commit checked out, the files in the store are not those of the memory: the store is held, and
nothing is written until they go back. A file of git's that cannot be read is damage, never "no
history yet".
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from memoryd.memory.errors import BaselineLocked, BaselineUnusable, StoreDetached, StoreError
from memoryd.memory.files import full_disk, is_full, read_or_none
from memoryd.memory.gitprogram import Git, locked, what_to_do
from memoryd.memory.store import Store

BRANCH = "refs/heads/main"

#: Marks what consolidation has seen.
SNAPSHOT_TAG = "refs/tags/consolidation-baseline"

#: A lock on a ref is held for the length of one rename. One this old was left by a git that died.
STALE_LOCK_MS = 600_000

#: What stops a ref of ours from moving. (A lock on the index stops nothing of ours.)
_REF_LOCKS = ("HEAD.lock", f"{BRANCH}.lock", f"{SNAPSHOT_TAG}.lock", "packed-refs.lock")
_ID = re.compile(rb"[0-9a-f]{40}\n?")
_HEAD = re.compile(r"(?:ref: *)?(refs/[^\s]+|[0-9a-f]{40})\s*")


def read_branch(store: Store, git: Git) -> str | None:
    """The commit of the branch; None before the first. Raises ``BaselineUnusable`` for damage."""
    loose = read(store.git_dir / BRANCH, store)
    if loose is not None and _ID.fullmatch(loose):
        return loose.decode().strip()
    done = git.run("rev-parse", "--quiet", "--verify", BRANCH)
    if done.status == 0:
        return done.line
    log = read(store.git_dir / "logs" / BRANCH, store)
    if loose is None and log is None and not done.err.strip():
        return None
    raise BaselineUnusable(
        f"the branch of {store.key} cannot be read: {done.err.strip()[:200] or 'it is damaged'}",
        hint=_how_to_restore(store, log or b"", "packed-refs" in done.err),
    )


def checked_out(store: Store) -> str:
    """The ref or the commit that is checked out. Raises ``BaselineUnusable`` for a damaged HEAD."""
    head = store.git_dir / "HEAD"
    try:
        text = str(head.readlink()) if head.is_symlink() else head.read_text("utf-8", "replace")
    except OSError as error:
        raise _no_head(store, error.strerror or "it cannot be read") from error
    match = _HEAD.fullmatch(text)
    if match is None:
        raise _no_head(store, "it names no branch")
    return match[1]


def require_checked_out(store: Store) -> None:
    """Raise ``StoreDetached`` while something else than the branch is checked out."""
    what = checked_out(store)
    if what == BRANCH:
        return
    what = what.removeprefix("refs/heads/") if "/" in what else f"the commit {what[:10]}"
    raise StoreDetached(
        f"{what} is checked out in the store {store.key}: nothing is written there meanwhile",
        hint=f"`git -C {shlex.quote(str(store.root))} checkout main` goes back to the memory",
    )


def stale_locks(store: Store, now_ms: int) -> list[Path]:
    """The locks on refs that a git which died has left: older than any git holds one."""
    return [path for name in _REF_LOCKS if _is_stale(path := store.git_dir / name, now_ms)]


def move(store: Store, git: Git, new: str, old: str, now_ms: int, *, ref: str = BRANCH) -> bool:
    """Put ``ref`` on ``new`` if it is still on ``old`` (40 zeros: nowhere); False when not.

    A lock of a dead git is removed. Raises ``BaselineLocked`` for any other, and what
    ``Git.failure`` says.
    """
    for again in (True, False):
        done = git.run("update-ref", ref, new, old)
        if done.status == 0:
            return True
        if "but expected" in done.err or "already exists" in done.err:
            return False
        stale = stale_locks(store, now_ms)
        if not (again and stale and isinstance(git.failure("update-ref", done), BaselineLocked)):
            break
        for path in stale:
            path.unlink(missing_ok=True)
    raise git.failure("update-ref", done)


def read(path: Path, store: Store) -> bytes | None:
    """The bytes of a file of the repository, None where there is none."""
    try:
        return read_or_none(path)
    except OSError as error:
        raise unusable(store, f"{path} cannot be read", error) from error


def unusable(store: Store, message: str, error: OSError) -> StoreError:
    """The error for a folder or file of the baseline that the system refuses."""
    text = f"{message}: {error.strerror or error}"
    if is_full(error):
        return full_disk(text)
    return BaselineUnusable(text, hint=f"see who owns {store.git_dir.parent} and what is in it")


def lock_trouble(store: Store, now_ms: int) -> BaselineLocked | None:
    """The error for the first lock that a dead git left, the index's included; else None."""
    index = store.git_dir / "index.lock"
    found = [*stale_locks(store, now_ms), *([index] if _is_stale(index, now_ms) else [])]
    return locked(str(found[0])) if found else None


def _is_stale(path: Path, now_ms: int) -> bool:
    try:
        return now_ms - path.lstat().st_mtime_ns // 1_000_000 > STALE_LOCK_MS
    except FileNotFoundError:
        return False


def _no_head(store: Store, reason: str) -> BaselineUnusable:
    head = shlex.quote(str(store.git_dir / "HEAD"))
    return BaselineUnusable(
        f"HEAD of the baseline of {store.key} is damaged: {reason}",
        hint=f"mend it with `echo 'ref: {BRANCH}' > {head}`",
    )


def _how_to_restore(store: Store, log: bytes, packed: bool) -> str:
    """The commands that put the branch where it was, as far as git's own log of it knows."""
    last = log.rstrip(b"\n").rpartition(b"\n")[2].split(b" ")[1:2]
    if not last or not _ID.fullmatch(last[0]):
        return what_to_do(store.root, str(store.git_dir))
    broken = shlex.quote(str(store.git_dir / ("packed-refs" if packed else BRANCH)))
    return (
        f"mend it with `rm -f {broken}` and then"
        f" `git -C {shlex.quote(str(store.root))} update-ref {BRANCH} {last[0].decode()}`"
    )
