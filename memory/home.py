"""The home: where everything memoryd keeps is, and who may read it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from memoryd.memory.errors import HomeError, HomeForeign
from memoryd.memory.files import make_directory, read_or_none, write_atomic

#: Longest socket path that every supported kernel binds (``sun_path`` is 104 bytes on macOS).
SOCKET_PATH_BYTES = 100

#: Made with each home, for the owner alone.
FOLDERS = (
    "inbox",
    "inbox/bad",
    "inbox/taken",
    "projects",
    "baselines",
    "locks",
    "run",
    "logs",
    "backups",
)


@dataclass(frozen=True)
class Home:
    """Paths inside one home. Nothing is created by looking; ``prepare`` makes the folders."""

    root: Path

    @classmethod
    def locate(cls, explicit: str | None, environ: Mapping[str, str]) -> Home:
        """The home named by ``--home``, else ``$MEMORYD_HOME``, else ``~/.memoryd``.

        Raises ``HomeError`` for a ``~`` that stands for nobody.
        """
        chosen = explicit or environ.get("MEMORYD_HOME") or "~/.memoryd"
        try:
            return cls(Path(chosen).expanduser().absolute())
        except RuntimeError as error:
            raise HomeError(
                f"there is no user of that name to find the home {chosen} of",
                hint="name the directory in full with --home",
            ) from error

    def prepare(self) -> str:
        """Make the folders (0700) and ``home.json``; the home's uuid comes back.

        What was forgotten is known by this uuid alone, so it is never made anew where there are
        stores: a lost ``home.json`` is restored from its copy in ``backups/`` or from the ledger.
        Raises ``HomeError`` when that is not possible, with what to do about it.
        """
        self.require_own()
        try:
            self._require_folders()
            for name in FOLDERS:
                make_directory(self.root / name)
            if read_or_none(self.identity) is None:
                self._restore_identity()
            self._keep_copy()
        except OSError as error:
            todo = "check who owns it and that the disk has room, or choose another with --home"
            if error.errno == errno.EROFS:
                todo = "the disk is mounted read-only: mount it for writing; nothing is lost"
            raise HomeError(
                f"the home {self.root} cannot be used: {error.strerror}", hint=todo
            ) from error
        return self.uuid()

    def misplaced(self) -> list[Path]:
        """What stands where a folder of the home should be, and is none."""
        paths = [self.root / name for name in FOLDERS]
        return [path for path in paths if os.path.lexists(path) and not path.is_dir()]

    def _require_folders(self) -> None:
        """Raise ``HomeError`` that names what is in the way of a folder."""
        for path in self.misplaced():
            raise HomeError(
                f"{path} is no folder, and one of the home should be there",
                hint="`memoryd doctor --fix` keeps it under another name and makes the folder",
            )

    def require_own(self) -> None:
        """Raise ``HomeForeign`` where the home is another user's, root included.

        What root made in it would be none of theirs to write.
        """
        try:
            owner, us = self.root.stat().st_uid, os.geteuid()
        except OSError:
            return  # there is none yet, or making it says why not
        if owner != us:
            raise HomeForeign(
                f"the home {self.root} belongs to the user {user(owner)}, and this is {user(us)}",
                hint=foreign_todo(self.root, owner),
            )

    def is_made(self) -> bool:
        """Whether there is a home here, if only what a hook or a person put there."""
        kept = (self.identity, self.ledger, self.inbox, self.projects, self.config_file)
        return any(map(os.path.lexists, kept))

    def uuid(self) -> str:
        """The uuid in ``home.json``, or in its copy where that is missing.

        Raises ``HomeError`` when it cannot be read.
        """
        raw = read_or_none(self.identity)
        found = _uuid_in(read_or_none(self.identity_copy) if raw is None else raw)
        if found is None:
            raise HomeError(
                f"{self.identity} does not hold the home's uuid",
                hint=f"`memoryd doctor --fix` puts {self.identity_copy} back, else restore it"
                " from a backup: what was forgotten is known by it",
            )
        return found

    def _restore_identity(self) -> None:
        known = _uuid_in(read_or_none(self.identity_copy)) or self._uuid_in_ledger()
        if known is None and self._has_stores():
            raise HomeError(
                f"{self.identity} is missing and the home has memories",
                hint="restore it from a backup: what was forgotten is known by it. If there is"
                f" none, move {self.projects} and {self.baselines} away and import the notes",
            )
        made = {"uuid": known or str(uuid.uuid4())}
        write_atomic(self.identity, json.dumps(made).encode() + b"\n")
        if known and self.identity_copy.exists():  # its time is since when sessions are looked at
            at = self.identity_copy.stat().st_mtime_ns
            os.utime(self.identity, ns=(at, at))

    def put_back_identity(self, now_ms: int) -> Path | None:
        """Put a ``home.json`` that can be read in the place of one that cannot, from its copy or
        the ledger; where the old one is kept. None: nothing to do, or nothing to do it with.

        Raises ``OSError``.
        """
        if not os.path.lexists(self.identity) or _uuid_in(_read_any(self.identity)):
            return None
        if (_uuid_in(_read_any(self.identity_copy)) or self._uuid_in_ledger()) is None:
            return None
        aside = self.identity.with_name(f"{self.identity.name}.damaged-{now_ms}")
        self.identity.rename(aside)
        self._restore_identity()
        return aside

    def _keep_copy(self) -> None:
        raw = read_or_none(self.identity)
        ours, kept = _uuid_in(raw), _uuid_in(read_or_none(self.identity_copy))
        if ours and kept and ours != kept:
            raise HomeError(
                f"{self.identity} and its copy {self.identity_copy} name two homes",
                hint="what was forgotten is known by the uuid it was forgotten under: copy the one"
                " that was there first over the other",
            )
        if raw and ours and not kept:
            write_atomic(self.identity_copy, raw)
            at = self.identity.stat().st_mtime_ns
            os.utime(self.identity_copy, ns=(at, at))

    def _has_stores(self) -> bool:
        """Whether anything is remembered here; empty folders are not."""
        found = (path for memory in self.projects.glob("*/memory") for path in memory.rglob("*"))
        return any(self.baselines.glob("*.git/HEAD")) or any(path.is_file() for path in found)

    def _uuid_in_ledger(self) -> str | None:
        """The ``home`` of the ledger's newest job; None where there is none to be read."""
        import sqlite3

        if not self.ledger.is_file():
            return None
        where = f"file:{quote(os.fspath(self.ledger))}?mode=ro"
        newest = "select home from job order by created_at desc, id desc limit 1"
        try:
            with contextlib.closing(sqlite3.connect(where, uri=True)) as ledger:
                row = ledger.execute(newest).fetchone()
        except sqlite3.Error:
            return None
        return _uuid_in(json.dumps({"uuid": row[0]}).encode()) if row else None

    @property
    def identity(self) -> Path:
        """``home.json``."""
        return self.root / "home.json"

    @property
    def identity_copy(self) -> Path:
        """The copy of ``home.json``, in ``backups/``."""
        return self.backups / "home.json"

    @property
    def config_file(self) -> Path:
        """``config.toml``."""
        return self.root / "config.toml"

    @property
    def ledger(self) -> Path:
        """``memoryd.sqlite``, the ledger."""
        return self.root / "memoryd.sqlite"

    @property
    def session_history(self) -> Path:
        """``sessions.sqlite``, the session history."""
        return self.root / "sessions.sqlite"

    @property
    def inbox(self) -> Path:
        """Where hooks leave envelopes."""
        return self.root / "inbox"

    @property
    def projects(self) -> Path:
        """One folder a project, by key."""
        return self.root / "projects"

    @property
    def baselines(self) -> Path:
        """The stores' git directories."""
        return self.root / "baselines"

    @property
    def locks(self) -> Path:
        """Lock files; never unlinked."""
        return self.root / "locks"

    @property
    def daemon_lock(self) -> Path:
        """Held by the one process that works this home."""
        return self.locks / "daemon.lock"

    @property
    def inbox_lock(self) -> Path:
        """Held for the moment in which envelopes become rows. No store's key begins so."""
        return self.locks / "%inbox.lock"

    @property
    def backups(self) -> Path:
        """Copies of the ledger made before each migration."""
        return self.root / "backups"

    @property
    def logs(self) -> Path:
        """The daemon's log when nothing else collects its output."""
        return self.root / "logs"

    def socket(self, environ: Mapping[str, str]) -> Path:
        """The unix socket: in ``run/``, or in the runtime or temp folder where that is too long."""
        path = self.root / "run" / "memoryd.sock"
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
            return path
        base = environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return Path(base) / f"memoryd-{os.getuid()}" / f"{name}.sock"


def user(uid: int) -> str:
    """The name of a user, the number where there is none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def foreign_todo(root: Path, owner: int) -> str:
    """What to do about a home at ``root`` that is ``owner``'s, in whole or in part."""
    ours = user(os.geteuid())
    give = f"if it should be {ours}'s, as root: chown -R {ours} {root}"
    return f"run memoryd as {user(owner)}, or choose another home with --home; {give}"


def _read_any(path: Path) -> bytes | None:
    """The bytes of a file; None where there is none, or something else."""
    return read_or_none(path) if path.is_file() else None


def _uuid_in(raw: bytes | None) -> str | None:
    """The uuid that the bytes of a ``home.json`` hold; None where they hold none."""
    try:
        return str(uuid.UUID(json.loads(raw or b"")["uuid"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
