"""The baseline: a store's git history, and every write to it.

Authority: the branch ``main`` is the memory, whatever else is checked out; the index is derived
from it and follows each commit, so that ``git status`` in the store is clean. A commit is made
beside both, from the trees of the one before and exactly the files it is given, and the branch
moves by compare-and-swap: a lock left by a dead git, a person's staged work or a commit made
meanwhile can neither stop it nor be lost in it. Everything is synced before ``commit`` returns. A
commit whose process dies leaves objects nobody names and a scratch folder that the next commit
sweeps up.

"Could not read" raises ``BaselineError``; it is never "clean". Writers hold the writer lock.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory import branch, changes, seams, trees
from memoryd.memory.branch import BRANCH, SNAPSHOT_TAG
from memoryd.memory.clock import SystemClock
from memoryd.memory.commit_index import commit_index
from memoryd.memory.commits import FORMAT, Author, Commit, identity, message, parse_commit, trailer
from memoryd.memory.committing import write_blobs, write_trees
from memoryd.memory.errors import BaselineError, BaselineMissing
from memoryd.memory.files import DIRECTORY_MODE, make_directory, sync_directory, write_atomic
from memoryd.memory.gitprogram import Git
from memoryd.memory.kept_files import keep_files, kept_files
from memoryd.memory.repository import NOTHING, Repository
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.trouble import Trouble, find_trouble

__all__ = ["BRANCH", "SNAPSHOT_TAG", "Author", "Baseline", "Commit", "blob_id"]

#: Loose objects in one of 256 folders: some 2,000 in all.
_LOOSE_SAMPLE = 8
_GC_SECONDS = 600.0
_SWAPS = 3
_EXCLUDE = b"/MEMORY.md\n/.graph/\n.*.tmp\n"
_EXCLUDE_PROFILE = b"/external-memory/\n/memory-index.sqlite*\n*.bak.*\n.*.tmp\n"
#: Over any ``.gitattributes``: bytes are compared, stored and shown as they are.
_ATTRIBUTES = b"* -text -ident -filter !eol !working-tree-encoding diff\n"
#: In place of what git says of these on making a repository; what it finds of the disk stands.
_SETTINGS = b"""\
[core]
	bare = false
	fileMode = false
	autocrlf = false
[gc]
	auto = 0
[maintenance]
	auto = false
[log]
	showSignature = false
"""
_OURS_TO_SET = re.compile(rb"(?mi)^\s*(?:bare|filemode)\s*=.*\n")


@dataclass(frozen=True)
class Baseline:
    """The baseline of one store. Nothing is opened or kept; each call runs the git program."""

    store: Store

    @property
    def repository(self) -> Repository:
        """Its repository, where nothing is known of notes."""
        return Repository(self.store)

    @property
    def git(self) -> Git:
        """The git program on this repository and work tree, whatever is around them."""
        return self.repository.git

    def ensure(self) -> None:
        """See that the store can be written: what is missing is made, its branch is checked out.

        A ``.git`` that a person put there is left alone: we never depend on it. Raises
        ``StoreDetached`` while another branch or commit is checked out, ``BaselineMissing`` where
        a history there was is gone, ``BaselineUnusable`` where the repository is damaged or cannot
        be made, ``DiskFull``.
        """
        self.require_history()
        self._ensure()

    def begin_anew(self) -> bool:
        """Begin a new history where the old one is lost for good, by a person's word.

        False, and nothing done, where there is one. Raises as ``ensure`` does. The caller holds the
        writer lock.
        """
        if self.exists():
            return False
        self._ensure()
        return True

    def require_history(self) -> None:
        """Raise ``BaselineMissing`` where the store had a history and has none now.

        What only ever comes with one says so: the link to it, and tombstones. A new history in its
        place would know neither whose a note is nor what was done already.
        """
        if self.exists() or not self._had_history():
            return
        store = self.store
        todo = f"put {store.git_dir} back, from where it was moved or from a backup"
        if not store.is_profile:
            anew = f"memoryd memory restore --begin-anew --project {shlex.quote(store.key)}"
            todo += f"; if it is lost for good: `{anew}`"
        raise BaselineMissing(
            f"the history of {store.key} is gone: nothing is written there meanwhile", hint=todo
        )

    def _had_history(self) -> bool:
        store = self.store
        if os.path.lexists(f"{store.git_dir}.damaged"):
            return False  # put aside by hand, as `gitprogram.what_to_do` says: that is the word
        link = store.root / ".git"
        if link.is_file() and not link.is_symlink():
            with contextlib.suppress(OSError):
                target = link.read_text("utf-8", "replace").strip()
                if target.endswith(f"/baselines/{store.git_dir.name}"):
                    return True
        return os.path.lexists(store.root / TOMBSTONES)

    def _ensure(self) -> None:
        store = self.store
        try:
            make_directory(store.root)
            make_directory(store.git_dir.parent)
            if not self.exists():
                self._create()
            branch.require_checked_out(store)
            self._mend()
        except OSError as error:
            raise branch.unusable(
                store, f"the baseline of {store.key} cannot be made", error
            ) from error

    def _mend(self) -> None:
        """Put right what is ours and derived: the ``.git`` file, the attributes, and the index
        where a commit died before it followed."""
        if self.is_unlinked():
            write_atomic(self.store.root / ".git", self.link_text().encode())
        attributes = self.store.git_dir / "info" / "attributes"
        if branch.read(attributes, self.store) != _ATTRIBUTES:
            make_directory(attributes.parent)
            write_atomic(attributes, _ATTRIBUTES)
        if self.repository.stale_scratch():
            self.repository.rebuild_index(self.head())

    def is_unlinked(self) -> bool:
        """Whether the history is there, and the store's folder has no file that leads to it."""
        link = self.store.root / ".git"
        return self.exists() and (not os.path.lexists(link) or self._lost_its_way(link))

    def _lost_its_way(self, link: Path) -> bool:
        """Whether the ``.git`` file is one of ours and leads nowhere, as after a rename."""
        if link.is_symlink() or not link.is_file():
            return False
        target = Path(link.read_text("utf-8", "replace").removeprefix("gitdir: ").strip())
        ours = target.parent.name == "baselines" and target.suffix == ".git"
        return ours and not (self.store.root / target).is_dir()

    def link_text(self) -> str:
        """What the ``.git`` file says: a relative path, so that a home can be moved."""
        return f"gitdir: {os.path.relpath(self.store.git_dir, self.store.root)}\n"

    def exists(self) -> bool:
        """Whether there is a repository. Raises ``BaselineUnusable`` where that cannot be seen."""
        try:
            return self.store.git_dir.is_dir()
        except OSError as error:
            raise branch.unusable(
                self.store, f"{self.store.git_dir} cannot be read", error
            ) from error

    def trouble(self, now_ms: int | None = None) -> list[Trouble]:
        """What a person should know of this baseline; nothing is changed by looking.

        ``now_ms`` (default: now) tells young locks from those that a dead git left.
        """
        return find_trouble(
            self.store, self.git, SystemClock().now_ms() if now_ms is None else now_ms
        )

    def _create(self) -> None:
        """Make the repository under another name, then give it its own: it is whole or absent."""
        final = self.store.git_dir
        seams.before("baseline.made")
        fresh = final.with_name(f"{final.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        git = Git(final.parent, {"GIT_DIR": str(fresh)})
        git.ok("init", "--quiet", "--bare", "--template=", "--object-format=sha1", "-b", "main")
        (fresh / "info").mkdir(DIRECTORY_MODE, exist_ok=True)
        write_atomic(fresh / "info" / "attributes", _ATTRIBUTES)
        write_atomic(
            fresh / "info" / "exclude", _EXCLUDE_PROFILE if self.store.is_profile else _EXCLUDE
        )
        fresh.chmod(0o700)
        found = _OURS_TO_SET.sub(b"", (fresh / "config").read_bytes())
        write_atomic(fresh / "config", found + _SETTINGS)
        write_atomic(fresh / "HEAD", (fresh / "HEAD").read_bytes())
        fresh.rename(final)
        sync_directory(final.parent)
        seams.reach("baseline.made")

    # -- reading ------------------------------------------------------------------------------

    def head(self) -> str | None:
        """The newest commit of the memory; None before the first one."""
        return branch.read_branch(self.store, self.git) if self.exists() else None

    def files(self, commit: str | None = None, *paths: str) -> dict[str, str]:
        """The files of memory in ``commit`` (default the newest), all or these: path to blob id."""
        at, place = commit or self.head(), str(self.store.git_dir)
        if at is None:
            return {}
        if (kept := kept_files(place, at)) is not None and self.exists():
            return {path: kept[path] for path in paths or kept if path in kept}
        listing = self.git.ok("ls-tree", "-r", "-z", "--full-tree", at, "--", *paths)
        found = {}
        for line in filter(None, listing.split(b"\0")):
            mode_type_id, _, name = line.partition(b"\t")
            if self.store.holds(path := os.fsdecode(name)):
                found[path] = mode_type_id.split()[2].decode()
        if not paths:
            keep_files(place, at, dict(found))
        return found

    def show(self, commit: str, path: str) -> bytes | None:
        """The bytes of ``path`` in ``commit``; None where it has no such file.

        ``HEAD`` is the newest commit of the memory, whatever is checked out.
        """
        at = BRANCH if commit == "HEAD" else commit
        line = self.git.ok("ls-tree", "-z", "--full-tree", at, "--", path)
        if not line:
            return None
        kind, blob = line.partition(b"\t")[0].split()[1:3]
        return self.git.ok("cat-file", "blob", blob.decode()) if kind == b"blob" else None

    def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """The bytes of many blobs, by their ids, in one run of git. Raises ``BaselineError``."""
        wanted = list(blobs)
        found = self.repository.objects([blob.encode() for blob in wanted])
        if None in found:
            raise self.repository.damaged("a version of a note is missing in it")
        return {each[0].decode(): each[1] for each in found if each is not None}

    def changed_paths(self) -> list[str]:
        """The files of memory that differ from the newest commit: new, changed or gone; sorted.

        A file that cannot be read counts as changed. Only what git's index cannot vouch for is
        read, so that a large store is cheap to look at.
        """
        head = self.head()
        if head is None:
            return self.store.paths()
        return changes.changed_paths(self.repository, head, lambda: self.files(head))

    def log(self, limit: int | None = None, *, since: str | None = None) -> list[Commit]:
        """The newest ``limit`` commits of the memory, newest first; after ``since``."""
        head = self.head()
        if head is None:
            return []
        count = () if limit is None else (f"--max-count={limit}",)
        return self._commits(*count, f"{since}..{head}" if since else head)

    def find_trailer(self, key: str, value: str) -> str | None:
        """The newest commit of the memory that has exactly this trailer."""
        found = self.with_trailer(key, value)
        return found[0].id if found else None

    def with_trailer(self, key: str, value: str | None = None) -> list[Commit]:
        """Every commit of the memory that has exactly this trailer, newest first.

        Without ``value`` any value will do.
        """
        found = self._grep(f"{key}: " if value is None else trailer(key, value))
        return [made for made in found if made.values(key) and value in (None, *made.values(key))]

    def committed_as(self, key: str, value: str) -> list[Commit]:
        """``with_trailer`` for a trailer of ``commit_index.MARKS``: the history is not walked anew.

        For whoever asks again and again, as a worker does before each save.
        """
        head = self.head()
        if head is None:
            return []
        found = commit_index(self.git, str(self.store.git_dir), head).with_mark(key, value)
        commits = (self._commits("--max-count=1", each)[0] for each in found)
        return [made for made in commits if value in made.values(key)]

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

        None where no commit, or none of the memory, is called so.
        """
        head = self.head()
        if head is None or not re.fullmatch(r"[0-9a-f]{4,40}", name):
            return None
        found = self.git.run("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
        if found.status != 0:
            return None
        within = self.git.run("merge-base", "--is-ancestor", found.line, head)
        if within.status > 1:
            raise self.git.failure("merge-base", within)
        if within.status == 1:
            return None
        return self._commits("--max-count=1", found.line)[0]

    def last_author(self, path: str) -> Author | None:
        """Who committed ``path`` last; None when it was never in the memory."""
        head = self.head()
        if head is None:
            return None
        found = self._commits("--max-count=1", head, "--", path)
        return found[0].author if found else None

    def committed_at_ms(self, path: str) -> int:
        """When ``path`` was committed last (ms); 0 when it was never in the memory."""
        head = self.head()
        found = self._commits("--max-count=1", head, "--", path) if head else []
        return found[0].at_ms if found else 0

    def touched_since(self, path: str, since_ms: int) -> bool:
        """Whether a commit of that second or later changed ``path``."""
        head, second_ms = self.head(), since_ms // 1000 * 1000
        if head is None:
            return False
        index = commit_index(self.git, str(self.store.git_dir), head)
        if not index.linear:
            return self.committed_at_ms(path) >= max(second_ms, 1)
        within = index.since(second_ms)
        found = self._commits("--max-count=1", within, "--", path) if within else []
        return bool(found) and found[0].at_ms >= second_ms

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
        out = self.git.ok("log", "--encoding=UTF-8", f"--format={FORMAT}", *arguments)
        records = out.decode("utf-8", "replace").split("\0\x1e\n")
        return [parse_commit(record.removesuffix("\0\x1e")) for record in records if record]

    # -- writing ------------------------------------------------------------------------------

    def commit(
        self,
        paths: Iterable[str] | Mapping[str, bytes | None],
        subject: str,
        trailers: Iterable[tuple[str, str]] | Mapping[str, str] = (),
        author: Author = "memoryd",
        *,
        now_ms: int | None = None,
    ) -> str:
        """Commit exactly these files and return the commit's id; with no files it is empty.

        ``paths`` are read from the store as they are now (a missing one is a deletion), unless they
        come with their bytes. ``subject`` is one line. Raises ``BaselineError`` in all its
        kinds, ``StoreDetached`` and ``DiskFull``; then nothing was committed.
        """
        self.ensure()
        files = paths if isinstance(paths, Mapping) else {p: self.store.read(p) for p in paths}
        at_ms = SystemClock().now_ms() if now_ms is None else now_ms
        text = message(subject, trailers)
        with self.repository.scratch() as scratch:
            seams.before("objects.written")
            blobs = write_blobs(self.repository, scratch, files)
            for _ in range(_SWAPS):
                old = self.head()
                tree = write_trees(self.repository, scratch, old, blobs)
                seams.reach("objects.written")
                parent = ("-p", old) if old else ()
                who = identity(author, now_ms)
                seams.before("commit.made")
                made = self.git.line("commit-tree", tree, *parent, given=text, env=who)
                seams.reach("commit.made")
                index = self.repository.index_with(scratch, tree, blobs)
                seams.before("branch.moved")
                if branch.move(self.store, self.git, made, old or NOTHING, at_ms):
                    seams.reach("branch.moved")
                    seams.before("index.moved")
                    index.replace(self.store.git_dir / "index")
                    seams.reach("index.moved")
                    return made
        raise BaselineError(
            f"the branch of {self.store.key} keeps moving", hint="try again when it is quiet"
        )

    # -- what consolidation has seen ----------------------------------------------------------

    def snapshot(self) -> str | None:
        """The commit that the tag ``consolidation-baseline`` is on; None before the first.

        Raises ``BaselineUnusable`` when there is a tag and its commit cannot be read.
        """
        if not self.exists():
            return None
        done = self.git.run("rev-parse", "--quiet", "--verify", SNAPSHOT_TAG)
        if done.status != 0:
            if done.err.strip() or (self.store.git_dir / SNAPSHOT_TAG).exists():
                raise self.git.failure("rev-parse", done)
            return None
        return self.git.line("rev-parse", "--verify", f"{done.line}^{{commit}}")

    def move_snapshot(self, commit: str, *, found: str | None, now_ms: int | None = None) -> None:
        """Put the tag on ``commit`` if it is still on ``found``. Raises ``BaselineError`` else.

        ``now_ms`` (default: now) tells a lock at work from one that a dead git left.
        """
        at_ms = SystemClock().now_ms() if now_ms is None else now_ms
        old = found or NOTHING
        if not branch.move(self.store, self.git, commit, old, at_ms, ref=SNAPSHOT_TAG):
            raise BaselineError(
                f"the tag of {self.store.key} was moved meanwhile", hint="look at it again"
            )

    def diff(self, since: str, until: str, *paths: str) -> bytes:
        """The unified diff of the files of memory between two commits, all or these."""
        command = ("diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv")
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
    return trees.object_id("blob", data).hex()
