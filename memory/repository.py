"""The repository of one baseline: its objects, its index and its scratch folders.

What is here knows nothing of notes. Objects are stored and read by many at once, one run of git;
the index is derived, so where it is damaged it is made anew.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory import branch, trees
from memoryd.memory.errors import BaselineUnusable
from memoryd.memory.gitprogram import Git, what_to_do
from memoryd.memory.store import Store

NOTHING = "0" * 40

#: Objects that one run of git stores, some seconds' work of a slow disk.
_AT_ONCE = 500
_FROM_STDIN = ("--add", "--replace", "-z", "--index-info")


@dataclass(frozen=True)
class Repository:
    """The repository and work tree of ``store``. Nothing is opened or kept."""

    store: Store

    @property
    def git(self) -> Git:
        """The git program on this repository and work tree, whatever is around them.

        Where the store's folder is missing, on the repository alone: history can still be read.
        """
        environ = {"GIT_DIR": str(self.store.git_dir)}
        if not self.store.root.is_dir():
            return Git(self.store.git_dir, environ)
        return Git(self.store.root, environ | {"GIT_WORK_TREE": str(self.store.root)})

    def objects(self, names: Sequence[bytes]) -> list[tuple[bytes, bytes] | None]:
        """The id (hex) and the bytes of each object, None for one that is not there."""
        if not names:
            return []
        out = self.git.ok("cat-file", "--batch", given=b"".join(name + b"\n" for name in names))
        try:
            return list(trees.read_batch(out))
        except ValueError as error:
            raise self.damaged("git's answer about it is no answer") from error

    def write(self, kind: str, scratch: Path, contents: Sequence[bytes]) -> list[str]:
        """Store objects of one kind; their ids in the same order. Each is synced by itself, so that
        ten thousand take many seconds: they go by several runs, each within its limit."""
        git = Git(scratch, {"GIT_DIR": str(self.store.git_dir)})
        command = ("hash-object", "-t", kind, "-w", "--no-filters", "--stdin-paths")
        ids: list[str] = []
        for start in range(0, len(contents), _AT_ONCE):
            some = contents[start : start + _AT_ONCE]
            for at, data in enumerate(some):
                (scratch / f"{kind}{at}").write_bytes(data)
            names = b"".join(b"%s%d\n" % (kind.encode(), at) for at in range(len(some)))
            done = git.run(*command, given=names)
            if done.status != 0:
                raise self.git.failure("hash-object", done)
            ids += done.out.decode().split()
        return ids

    def index_with(self, scratch: Path, tree: str, blobs: Mapping[str, str | None]) -> Path:
        """The index with these files as they will be. It starts from the real one, which saves
        reading every file again after the commit; if that is damaged, from the new tree."""
        index = scratch / "index"
        env = {"GIT_INDEX_FILE": str(index)}
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(self.store.git_dir / "index", index)
            lines = _index_lines(blobs)
            if self.git.run("update-index", *_FROM_STDIN, given=lines, env=env).status == 0:
                return index
        index.unlink(missing_ok=True)
        self.git.ok("read-tree", tree, env=env)
        return index

    def put_into_index(self, blobs: Mapping[str, str | None]) -> None:
        """Have the index say that these files are these blobs (None: not there)."""
        # It may fail, as under a lock that a dead git left: the index only saves reading.
        self.git.run("update-index", *_FROM_STDIN, given=_index_lines(blobs))

    def rebuild_index(self, commit: str | None) -> None:
        """Make the index anew from ``commit``."""
        with self.scratch() as scratch:
            index = scratch / "index"
            self.git.ok("read-tree", commit or "--empty", env={"GIT_INDEX_FILE": str(index)})
            index.replace(self.store.git_dir / "index")

    def forget_paths(self) -> None:
        """Have the index name no file that is not in ``HEAD``. The caller holds the writer lock.

        Git keeps what a split index was split from for two weeks.
        """
        self.rebuild_index("HEAD")
        current = self.git.ok("rev-parse", "--shared-index-path").decode().strip()
        for shared in self.store.git_dir.glob("sharedindex.*"):
            if shared.name != current.rpartition("/")[2]:
                shared.unlink(missing_ok=True)

    def stale_scratch(self) -> list[Path]:
        """The scratch folders of commits that died, perhaps between the branch and the index.

        The caller holds the writer lock and has none of its own.
        """
        return [*self.store.git_dir.glob("scratch-*")]

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder in the repository for one commit; those that a crash left are removed."""
        for stale in self.stale_scratch():
            shutil.rmtree(stale, ignore_errors=True)
        scratch = self.store.git_dir / f"scratch-{secrets.token_hex(6)}"
        try:
            scratch.mkdir(mode=0o700)
            yield scratch
        except OSError as error:
            text = f"the baseline of {self.store.key} cannot be written"
            raise branch.unusable(self.store, text, error) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def damaged(self, how: str) -> BaselineUnusable:
        """The error for a repository that is not whole."""
        return BaselineUnusable(
            f"the baseline of {self.store.key} is damaged: {how}",
            hint=what_to_do(self.store.root, str(self.store.git_dir)),
        )


def _index_lines(blobs: Mapping[str, str | None]) -> bytes:
    """What ``update-index --index-info`` reads: these files as these blobs, None: not there."""
    lines = [
        (f"100644 {blob}" if blob else f"0 {NOTHING}").encode() + b"\t" + os.fsencode(path)
        for path, blob in blobs.items()
    ]
    return b"".join(line + b"\0" for line in lines)
