"""The baseline: a store's git history, and every write to it.

Authority: the branch that ``HEAD`` names is the memory; the index is derived from it and replaced
after each commit, so that ``git status`` in the store is clean. A commit is made beside it, in a
scratch folder with an index of its own, of exactly the files it is given, and the branch moves by
compare-and-swap: a lock left by a dead git, a person's staged work or a commit made meanwhile can
neither stop it nor be lost in it. Everything is synced before ``commit`` returns. A commit whose
process dies leaves objects nobody names and a scratch folder that the next commit sweeps up.

"Could not read" raises ``BaselineError``; it is never "clean". Writers hold the writer lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memoryd.memory.errors import BaselineError
from memoryd.memory.files import make_directory, sync_directory, write_atomic
from memoryd.memory.gitprogram import Git
from memoryd.memory.store import Store

Author = Literal["memoryd", "person"]

#: Marks what consolidation has seen.
SNAPSHOT_TAG = "refs/tags/consolidation-baseline"

#: Loose objects in one of 256 folders: some 2,000 in all.
_LOOSE_SAMPLE = 8
_GC_SECONDS = 600.0
_SWAPS = 3
_NOTHING = "0" * 40
_EXCLUDE = b"/MEMORY.md\n/.graph/\n.*.tmp\n"
_EXCLUDE_PROFILE = b"/external-memory/\n/memory-index.sqlite*\n*.bak.*\n.*.tmp\n"
_SETTINGS = {
    "core.bare": "false",
    "core.fileMode": "false",
    "core.autocrlf": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "log.showSignature": "false",
}
_FORMAT = "%H%x00%an <%ae>%x00%at%x00%s%x00%(trailers:only=true,unfold=true)%x00%x1e"


@dataclass(frozen=True)
class Commit:
    """One commit: its id, whose it is, when (ms), its subject and its trailers in order."""

    id: str
    author: Author
    at_ms: int
    subject: str
    trailers: tuple[tuple[str, str], ...]

    def values(self, key: str) -> tuple[str, ...]:
        """The values of one trailer."""
        return tuple(value for name, value in self.trailers if name == key)


@dataclass(frozen=True)
class Baseline:
    """The baseline of one store. Nothing is opened or kept; each call runs the git program."""

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

    def ensure(self) -> None:
        """Make the store's folder, its repository and its ``.git`` file where they are missing.

        A ``.git`` that a person put there is left alone: we never depend on it.
        """
        store = self.store
        try:
            make_directory(store.root)
            make_directory(store.git_dir.parent)
            if not store.git_dir.is_dir():
                self._create()
            link = store.root / ".git"
            if not os.path.lexists(link):
                write_atomic(link, self.link_text().encode())
        except OSError as error:
            raise BaselineError(
                f"the baseline of {store.key} cannot be made: {error.strerror}",
                hint="check who owns the home and that the disk has room",
            ) from error

    def link_text(self) -> str:
        """What the ``.git`` file says: a relative path, so that a home can be moved."""
        return f"gitdir: {os.path.relpath(self.store.git_dir, self.store.root)}\n"

    def exists(self) -> bool:
        """Whether there is a repository."""
        return self.store.git_dir.is_dir()

    def _create(self) -> None:
        """Make the repository under another name, then give it its own: it is whole or absent."""
        final = self.store.git_dir
        fresh = final.with_name(f"{final.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        git = Git(final.parent, {"GIT_DIR": str(fresh)})
        git.ok("init", "--quiet", "--bare", "--template=", "--object-format=sha1", "-b", "main")
        for key, value in _SETTINGS.items():
            git.ok("config", key, value)
        (fresh / "info").mkdir(exist_ok=True)
        write_atomic(
            fresh / "info" / "exclude", _EXCLUDE_PROFILE if self.store.is_profile else _EXCLUDE
        )
        fresh.chmod(0o700)
        for name in ("config", "HEAD"):
            write_atomic(fresh / name, (fresh / name).read_bytes())
        fresh.rename(final)
        sync_directory(final.parent)

    # -- reading ------------------------------------------------------------------------------

    def head(self) -> str | None:
        """The commit of ``HEAD``; None before the first one."""
        if not self.exists():
            return None
        done = self.git.run("rev-parse", "--quiet", "--verify", "HEAD")
        if done.status == 0:
            return done.line
        branch = self.git.ok("symbolic-ref", "HEAD").decode().strip()
        if (self.store.git_dir / branch).exists():
            raise BaselineError(
                f"the branch of {self.store.key} cannot be read",
                hint=f"restore {self.store.git_dir} from a backup, or move it away to start anew",
            )
        return None

    def files(self, commit: str | None = None, *paths: str) -> dict[str, str]:
        """The files of memory in ``commit`` (default ``HEAD``), all or these: path to blob id."""
        at = commit or self.head()
        if at is None:
            return {}
        listing = self.git.ok("ls-tree", "-r", "-z", "--full-tree", at, "--", *paths)
        found = {}
        for line in filter(None, listing.split(b"\0")):
            mode_type_id, _, name = line.partition(b"\t")
            if self.store.holds(path := os.fsdecode(name)):
                found[path] = mode_type_id.split()[2].decode()
        return found

    def show(self, commit: str, path: str) -> bytes | None:
        """The bytes of ``path`` in ``commit``; None where it has no such file."""
        line = self.git.ok("ls-tree", "-z", "--full-tree", commit, "--", path)
        if not line:
            return None
        kind, blob = line.partition(b"\t")[0].split()[1:3]
        return self.git.ok("cat-file", "blob", blob.decode()) if kind == b"blob" else None

    def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """The bytes of many blobs, by their ids, in one run of git. Raises ``BaselineError``."""
        wanted = "".join(f"{blob}\n" for blob in blobs).encode()
        out = self.git.ok("cat-file", "--batch", given=wanted) if wanted else b""
        found: dict[str, bytes] = {}
        at = 0
        while at < len(out):
            start = out.index(b"\n", at) + 1
            name, kind, *size = out[at : start - 1].split()
            if kind != b"blob":
                raise BaselineError(
                    f"{self.store.key} lost an object", hint="`git fsck` in the store says more"
                )
            at = start + int(size[0]) + 1
            found[name.decode()] = out[start : at - 1]
        return found

    def changed_paths(self) -> list[str]:
        """The files of memory whose bytes differ from ``HEAD``: new, changed or gone; sorted.

        A file that cannot be read counts as changed. Only what git's index cannot vouch for is
        read, so that a large store is cheap to look at.
        """
        if not self.exists() or self.head() is None:
            return self.store.paths()
        suspects = self._suspects()
        return sorted(path for path, blob in suspects.items() if self._differs(path, blob))

    def _suspects(self) -> dict[str, str | None]:
        """Paths that may differ from ``HEAD``, with the blob ``HEAD`` has there."""
        # Refreshing only saves reading: it may fail, as under a lock that a dead git left.
        self.git.run("update-index", "-q", "--refresh")
        looked = self.git.run("diff-index", "-z", "--no-renames", "--abbrev=40", "HEAD")
        if looked.status != 0:
            self._rebuild_index()
            looked = self.git.run("diff-index", "-z", "--no-renames", "--abbrev=40", "HEAD")
        if looked.status != 0:
            raise BaselineError(
                f"the baseline of {self.store.key} cannot be compared: {looked.err.strip()[:200]}",
                hint="`git fsck` in the store says more",
            )
        suspects: dict[str, str | None] = {}
        others = self.git.ok("ls-files", "--others", "-z").split(b"\0")
        suspects |= {os.fsdecode(name): None for name in others if name}
        if any(name.endswith(b"/") for name in others):  # a repository inside, not looked into
            known = self.files()
            suspects |= {path: known.get(path) for path in self.store.paths()}
        fields = looked.out.split(b"\0")
        for facts, name in zip(fields[0::2], fields[1::2], strict=False):
            blob = facts.split()[2].decode()
            suspects[os.fsdecode(name)] = None if blob == _NOTHING else blob
        return {path: blob for path, blob in suspects.items() if self.store.holds(path)}

    def _differs(self, path: str, blob: str | None) -> bool:
        place = self.store.root / path
        if not os.path.lexists(place):
            return blob is not None
        if blob is None or place.is_symlink() or not place.is_file():
            return True
        try:
            data = place.read_bytes()
        except OSError:  # not readable is not unchanged
            return True
        return blob_id(data) != blob

    def _rebuild_index(self) -> None:
        with self._scratch() as scratch:
            index = scratch / "index"
            self.git.ok("read-tree", "HEAD", env={"GIT_INDEX_FILE": str(index)})
            index.replace(self.store.git_dir / "index")

    def log(self, limit: int | None = None, *, since: str | None = None) -> list[Commit]:
        """The newest ``limit`` commits reachable from ``HEAD``, newest first; after ``since``."""
        head = self.head()
        if head is None:
            return []
        count = () if limit is None else (f"--max-count={limit}",)
        return self._commits(*count, f"{since}..{head}" if since else head)

    def find_trailer(self, key: str, value: str) -> str | None:
        """The newest commit reachable from ``HEAD`` that has exactly this trailer."""
        found = self.with_trailer(key, value)
        return found[0].id if found else None

    def with_trailer(self, key: str, value: str | None = None) -> list[Commit]:
        """Every commit reachable from ``HEAD`` that has exactly this trailer, newest first.

        Without ``value`` any value will do.
        """
        found = self._grep(f"{key}: " if value is None else _trailer(key, value))
        return [made for made in found if made.values(key) and value in (None, *made.values(key))]

    def commits_of(self, job: str) -> list[Commit]:
        """The commits of one job, newest first."""
        return self.with_trailer("Memoryd-Job", job)

    def jobs_ending(self, ending: str) -> dict[str, list[Commit]]:
        """The jobs whose id ends so, each with its commits, newest first."""
        found: dict[str, list[Commit]] = {}
        for made in self.with_trailer("Memoryd-Job"):
            for job in made.values("Memoryd-Job"):
                if job.endswith(ending):
                    found.setdefault(job, []).append(made)
        return found

    def commit_named(self, name: str) -> Commit | None:
        """The commit whose id starts with ``name`` (4 or more hex digits).

        None where no commit, or none that ``HEAD`` reaches, is called so.
        """
        head = self.head()
        if head is None or not re.fullmatch(r"[0-9a-f]{4,40}", name):
            return None
        found = self.git.run("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
        if found.status != 0:
            return None
        if self.git.run("merge-base", "--is-ancestor", found.line, head).status != 0:
            return None
        return self._commits("--max-count=1", found.line)[0]

    def last_author(self, path: str) -> Author | None:
        """Who committed ``path`` last; None when ``HEAD``'s history has never had it."""
        head = self.head()
        if head is None:
            return None
        found = self._commits("--max-count=1", head, "--", path)
        return found[0].author if found else None

    def paths_of(self, commit: str) -> list[str]:
        """The files of memory that ``commit`` changed."""
        listing = self.git.ok(
            "diff-tree", "-r", "-z", "--root", "-m", "--first-parent", "--name-only",
            "--no-renames", "--no-commit-id", commit,
        )  # fmt: skip
        names = [os.fsdecode(name) for name in listing.split(b"\0") if name]
        return [name for name in names if self.store.holds(name)]

    def parent(self, commit: str) -> str | None:
        """The first parent of ``commit``; None for the first commit."""
        ids = self.git.ok("rev-list", "--parents", "--max-count=1", commit).split()
        return ids[1].decode() if len(ids) > 1 else None

    def _grep(self, text: str) -> list[Commit]:
        head = self.head()
        return self._commits("--fixed-strings", f"--grep={text}", head) if head else []

    def _commits(self, *arguments: str) -> list[Commit]:
        out = self.git.ok("log", "--encoding=UTF-8", f"--format={_FORMAT}", *arguments)
        records = out.decode("utf-8", "replace").split("\0\x1e\n")
        return [_parse_commit(record.removesuffix("\0\x1e")) for record in records if record]

    # -- writing ------------------------------------------------------------------------------

    def commit(
        self,
        paths: Iterable[str] | Mapping[str, bytes | None],
        message: str,
        trailers: Iterable[tuple[str, str]] | Mapping[str, str] = (),
        author: Author = "memoryd",
        *,
        now_ms: int | None = None,
    ) -> str:
        """Commit exactly these files and return the commit's id; with no files it is empty.

        ``paths`` are read from the store as they are now (a missing one is a deletion), unless they
        come with their bytes. ``message`` is one line. Raises ``BaselineError``, also when the
        branch kept moving; then nothing was committed.
        """
        self.ensure()
        files = paths if isinstance(paths, Mapping) else {p: self.store.read(p) for p in paths}
        pairs = trailers.items() if isinstance(trailers, Mapping) else trailers
        text = " ".join(message.split()) + "\n"
        if lines := [_trailer(key, value) for key, value in pairs]:
            text += "\n" + "\n".join(lines) + "\n"
        with self._scratch() as scratch:
            return self._commit_in(scratch, files, text, _identity(author, now_ms))

    def _commit_in(
        self,
        scratch: Path,
        files: Mapping[str, bytes | None],
        text: str,
        identity: Mapping[str, str],
    ) -> str:
        changes = self._write_blobs(scratch, files)
        for _ in range(_SWAPS):
            old = self.head()
            index = self._index_with(scratch, old, changes)
            tree = self._ok_line("write-tree", env={"GIT_INDEX_FILE": str(index)})
            parent = ("-p", old) if old else ()
            made = self._ok_line("commit-tree", tree, *parent, given=text.encode(), env=identity)
            moved = self.git.run("update-ref", "HEAD", made, old or _NOTHING)
            if moved.status == 0:
                index.replace(self.store.git_dir / "index")
                return made
            if "but expected" not in moved.err and "already exists" not in moved.err:
                raise BaselineError(
                    f"the branch cannot be moved: {moved.err.strip()[:300]}",
                    hint="another git is at work there, or died: then remove the .lock it names",
                )
        raise BaselineError(
            f"the branch of {self.store.key} keeps moving", hint="try again when it is quiet"
        )

    def _write_blobs(self, scratch: Path, files: Mapping[str, bytes | None]) -> bytes:
        """Store the contents; what comes back are the changes for ``update-index``."""
        kept = {path: data for path, data in files.items() if data is not None}
        names = []
        for at, data in enumerate(kept.values()):
            (scratch / f"blob{at}").write_bytes(data)
            names.append(b"blob%d\n" % at)
        ids: list[bytes] = []
        if names:
            command = ("hash-object", "-w", "--no-filters", "--stdin-paths")
            git = Git(scratch, {"GIT_DIR": str(self.store.git_dir)})
            ids = git.ok(*command, given=b"".join(names)).split()
        blobs = dict(zip(kept, ids, strict=True))
        lines = [
            (b"100644 " + blobs[path] if path in blobs else b"0 " + _NOTHING.encode())
            + b"\t" + os.fsencode(path) + b"\0"
            for path in files
        ]  # fmt: skip
        return b"".join(lines)

    def _index_with(self, scratch: Path, head: str | None, changes: bytes) -> Path:
        """An index of ``head`` with the changes. It starts from the real one, which saves reading
        every file again after the commit; if that is damaged, from nothing."""
        index = scratch / "index"
        index.unlink(missing_ok=True)
        env = {"GIT_INDEX_FILE": str(index)}
        if head is not None:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(self.store.git_dir / "index", index)
            if self.git.run("read-tree", "--reset", head, env=env).status != 0:
                index.unlink(missing_ok=True)
                self.git.ok("read-tree", head, env=env)
        command = ("update-index", "--add", "--replace", "-z", "--index-info")
        self.git.ok(*command, given=changes, env=env)
        return index

    def _ok_line(
        self, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None
    ) -> str:
        return self.git.ok(*arguments, given=given, env=env).decode().strip()

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder in the repository for one commit; those that a crash left are removed."""
        for stale in self.store.git_dir.glob("scratch-*"):
            shutil.rmtree(stale, ignore_errors=True)
        scratch = self.store.git_dir / f"scratch-{secrets.token_hex(6)}"
        try:
            scratch.mkdir(mode=0o700)
            yield scratch
        except OSError as error:
            raise BaselineError(
                f"the baseline of {self.store.key} cannot be written: {error.strerror}",
                hint="check who owns the home and that the disk has room",
            ) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    # -- what consolidation has seen ----------------------------------------------------------

    def snapshot(self) -> str | None:
        """The commit that the tag ``consolidation-baseline`` is on; None before the first."""
        if not self.exists():
            return None
        done = self.git.run("rev-parse", "--quiet", "--verify", f"{SNAPSHOT_TAG}^{{commit}}")
        return done.line if done.status == 0 else None

    def move_snapshot(self, commit: str, *, found: str | None) -> None:
        """Put the tag on ``commit`` if it is still on ``found``. Raises ``BaselineError`` else."""
        self.git.ok("update-ref", SNAPSHOT_TAG, commit, found or _NOTHING)

    def diff(self, since: str, until: str, *paths: str) -> bytes:
        """The unified diff of the files of memory between two commits, all or these."""
        command = ("diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff")
        return self.git.ok(*command, since, until, "--", *paths)

    def changed_between(self, since: str, until: str) -> dict[str, str]:
        """The files of memory that differ between two commits: path to ``A``, ``M`` or ``D``."""
        command = ("diff-tree", "-r", "-z", "--no-renames", "--name-status")
        fields = self.git.ok(*command, since, until).split(b"\0")
        pairs = zip(fields[0::2], fields[1::2], strict=False)
        found = {os.fsdecode(name): status.decode() for status, name in pairs}
        return {path: status for path, status in found.items() if self.store.holds(path)}

    def is_loose(self) -> bool:
        """Whether so many objects are loose that packing pays: by one of their 256 folders."""
        try:
            return sum(1 for _ in (self.store.git_dir / "objects" / "17").iterdir()) > _LOOSE_SAMPLE
        except FileNotFoundError:
            return False

    def collect_garbage(self) -> None:
        """Pack what is loose; takes seconds. The daemon calls it, git never does by itself."""
        git = Git(self.git.folder, self.git.environ, limit_seconds=_GC_SECONDS)
        git.ok("-c", "gc.autoDetach=false", "gc", "--quiet")


def blob_id(data: bytes) -> str:
    """The id git gives to these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _identity(author: Author, now_ms: int | None) -> dict[str, str]:
    who: dict[str, str] = {"AUTHOR": author, "COMMITTER": "memoryd"}
    env = {f"GIT_{role}_NAME": name for role, name in who.items()}
    env |= {f"GIT_{role}_EMAIL": f"{name}@localhost" for role, name in who.items()}
    if now_ms is not None:
        env |= {f"GIT_{role}_DATE": f"@{now_ms // 1000} +0000" for role in who}
    return env


def _trailer(key: str, value: str) -> str:
    """One trailer line; what would break the line, and ``%``, is written as %XX."""
    parts = (
        letter
        if (letter.isprintable() and letter != "%") or letter == " "
        else "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))
        for letter in value
    )
    text = "".join(parts)
    if text != text.strip():
        text = text.replace(" ", "%20")
    return f"{key}: {text}"


def _untrailer(text: str) -> str:
    raw = re.sub(rb"%([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return raw.decode("utf-8", "surrogatepass")


def _parse_commit(record: str) -> Commit:
    made, who, at, subject, trailers = record.split("\0")[:5]
    pairs = [line.partition(": ") for line in trailers.splitlines() if ": " in line]
    return Commit(
        id=made,
        author="memoryd" if who == "memoryd <memoryd@localhost>" else "person",
        at_ms=int(at) * 1000,
        subject=subject,
        trailers=tuple((key, _untrailer(value)) for key, _, value in pairs),
    )
