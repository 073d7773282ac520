"""A world for real processes: a home, a project, transcripts, the hook, the daemon, the commands.

Shared by the tests of the daemon, of the command line and of crashes. Nothing here sleeps: what is
waited for is a notification, the end of a process, or an answer of the daemon's own socket.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import forking
import in_memory

from memoryd.daemon.client import Client
from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.config import Config
from memoryd.memory.home import Home
from memoryd.memory.store import Store

MEMORYD = [sys.executable, "-m", "memoryd.cli.main"]
#: The daemon, as most tests start it.
RUN = ("memoryd", "run")
HOOK = Path(sys.executable).with_name("memoryd-hook")
#: Far longer than anything here takes, and shorter than the limit of a test.
PATIENCE_SECONDS = 60.0

TABS = "Please remember that I prefer tabs over spaces."
PNPM = "We use pnpm for packages, not npm."


@dataclass
class World:
    """One temporary folder with all that memoryd touches; ``environ`` is what processes see."""

    root: Path
    environ: dict[str, str]
    started: list[subprocess.Popen[bytes] | forking.Process] = field(default_factory=list)

    @property
    def home(self) -> Home:
        """The home."""
        return Home(self.root / "home")

    @property
    def project(self) -> Path:
        """A git repository in which the sessions were held."""
        return self.root / "code"

    @property
    def client(self) -> Client:
        """A client of the home's daemon."""
        return Client(self.home.socket(self.environ))

    # -- sessions --------------------------------------------------------------------------------

    def claude(self, *said: str, session: str = "s-1", answer: str = "Fine.") -> Path:
        """A transcript as Claude Code writes it: each of ``said`` answered by the assistant."""
        lines = []
        for number, text in enumerate(said):
            asked = {"role": "user", "content": text}
            told = {"role": "assistant", "content": [{"type": "text", "text": answer}]}
            lines += [
                self._claude_line(session, 2 * number + 1, "user", asked),
                self._claude_line(session, 2 * number + 2, "assistant", told),
            ]
        folder = Path(self.environ["CLAUDE_CONFIG_DIR"]) / "projects" / "code"
        return _written(folder / f"{session}.jsonl", lines)

    def _claude_line(
        self, session: str, number: int, role: str, message: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "parentUuid": None,
            "isSidechain": False,
            "userType": "external",
            "cwd": str(self.project),
            "sessionId": session,
            "version": "2.1.230",
            "type": role,
            "message": message,
            "uuid": f"{number:08d}-0000-4000-8000-000000000000",
            "timestamp": f"2026-01-05T09:{number // 60:02d}:{number % 60:02d}.000Z",
        }

    def codex(self, *said: str, session: str = "019b8f2a-4c00-7d31-a5e2-6b0f93c1d7e8") -> Path:
        """A rollout as Codex writes it."""
        about = {"id": session, "cwd": str(self.project), "source": "cli", "originator": "codex"}
        lines = [_codex_line(0, "session_meta", about)]
        for number, text in enumerate(said, start=1):
            content = [{"type": "input_text", "text": text}]
            message = {"type": "message", "role": "user", "content": content}
            lines.append(_codex_line(number, "response_item", message))
        folder = Path(self.environ["CODEX_HOME"]) / "sessions" / "2026" / "01" / "05"
        return _written(folder / f"rollout-2026-01-05T09-00-00-{session}.jsonl", lines)

    def hook(
        self, transcript: Path, session: str = "s-1", *, agent: str = "claude-code", **more: str
    ) -> None:
        """End a session as its agent does: the installed hook, with JSON on standard input."""
        said = {
            "session_id": session,
            "transcript_path": str(transcript),
            "cwd": str(self.project),
            "hook_event_name": "SessionEnd",
            "reason": "other",
        }
        subprocess.run(
            [str(HOOK), agent, "session-end"],
            input=json.dumps(said).encode(),
            env=self.environ | more,
            check=True,
            timeout=PATIENCE_SECONDS,
        )

    def envelope(self, transcript: Path, session: str = "s-1") -> None:
        """The same without the hook's deadline: the envelope it would write, put in place."""
        self.home.prepare()
        self.envelope_at(self.home.root, transcript, session)

    def envelope_at(self, home: Path, transcript: Path, session: str) -> None:
        """The same in a home that is elsewhere by now."""
        name = f"{os.urandom(8).hex()}.json"
        said = {
            "version": 1,
            "agent": "claude-code",
            "event": "session-end",
            "session": session,
            "transcript": str(transcript),
            "cwd": str(self.project),
            "reason": "other",
            "cutoff": transcript.stat().st_size,
            "time_ms": 1_767_603_600_000,
            "switches": [],
        }
        temporary = home / "inbox" / f".{name}"
        temporary.write_text(json.dumps(said), "utf-8")
        temporary.rename(home / "inbox" / f"1-{name}")

    def configure(self, text: str) -> None:
        """Write ``config.toml``."""
        self.home.prepare()
        self.home.config_file.write_text(text, "utf-8")

    # -- processes -------------------------------------------------------------------------------

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """``memoryd ARGUMENTS``, to its end."""
        return forking.run(
            arguments,
            environ=self.environ | more,
            cwd=self.project,
            seconds=PATIENCE_SECONDS,
        )

    def answer(self, *arguments: str) -> Any:
        """What ``memoryd ARGUMENTS --json`` prints; it must succeed."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def answer_failed(self, *arguments: str) -> Any:
        """What ``memoryd ARGUMENTS --json`` prints when its answer is no."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 1, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def daemon(self, command: Sequence[str] = RUN, **more: str) -> Iterator[Running]:
        """A daemon that has said READY; it is killed at the end if it is still there."""
        running = self.start(command, **more)
        try:
            running.heard("READY=1")
            yield running
        finally:
            running.close()

    def start(self, command: Sequence[str] = RUN, **more: str) -> Running:
        """Start a daemon and do not wait for anything; forked, if it is a Python program."""
        number = len(self.started)
        address = self.root / f"notify{number}"
        notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notified.bind(str(address))
        log = self.root / f"daemon{number}.log"
        environ = self.environ | {"NOTIFY_SOCKET": str(address)} | more
        with log.open("wb") as stderr:
            process = self._begin(command, environ, stderr)
        self.started.append(process)
        return Running(process, notified, log)

    def _begin(
        self, command: Sequence[str], environ: dict[str, str], stderr: IO[bytes]
    ) -> subprocess.Popen[bytes] | forking.Process:
        program, *arguments = _forked(command)
        if not program:
            return subprocess.Popen(
                list(command),
                env=environ,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        said, says = os.pipe()
        with open(os.devnull, "rb") as stdin, open(says, "wb") as stdout:  # noqa: PTH123
            streams = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
            process = forking.Process(
                arguments, environ, self.root, streams, program=program, start_new_session=True
            )
        process.stdout = open(said, "rb")  # noqa: PTH123, SIM115 - closed by ``Running.close``
        return process

    # -- what came of it -------------------------------------------------------------------------

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """The ledger, open for a moment."""
        ledger = open_ledger(self.home, Config(), SystemClock())
        try:
            yield ledger
        finally:
            ledger.close()

    def jobs(self) -> list[Job]:
        """Every job, the newest first."""
        with self.ledger() as ledger:
            return ledger.records.jobs(limit=1000)

    def job(self) -> Job:
        """The one job there is."""
        (found,) = self.jobs()
        return found

    def store(self) -> Store:
        """The one store there is."""
        (found,) = Store.all(self.home)
        return found

    def notes(self) -> dict[str, str]:
        """Path -> text of every note of the one store."""
        store = self.store()
        return {note.path: (store.root / note.path).read_text("utf-8") for note in store.notes()}

    def commits(self) -> list[dict[str, str]]:
        """The trailers of each commit of the one store, the newest first."""
        listing = self.git("log", "--format=%x01%(trailers:only,unfold)")
        return [
            dict(line.split(": ", 1) for line in entry.splitlines() if line)
            for entry in listing.split("\1")[1:]
        ]

    def git(self, *arguments: str) -> str:
        """What git says in the one store, as a person sees it."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.store().root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def is_clean(self) -> bool:
        """Whether nothing in the one store's work tree is uncommitted."""
        return not self.git("status", "--porcelain", "--untracked-files=all")

    def children(self) -> list[str]:
        """Command lines of running processes that belong to this world."""
        listing = subprocess.run(["ps", "axeww", "-o", "args="], capture_output=True, text=True)
        return [line[:200] for line in listing.stdout.splitlines() if str(self.root) in line]


@dataclass
class Running:
    """A daemon's process, and what it tells systemd."""

    process: subprocess.Popen[bytes] | forking.Process
    notified: socket.socket
    log: Path
    said: list[str] = field(default_factory=list)

    def heard(self, wanted: str) -> str:
        """Wait for a notified line that begins with ``wanted``; its end is an error."""
        stdout = self.process.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.notified, selectors.EVENT_READ)
            waiting.register(stdout, selectors.EVENT_READ)
            while not (found := [line for line in self.said if line.startswith(wanted)]):
                ready = waiting.select(PATIENCE_SECONDS)
                # What it said before it ended is read first.
                if any(key.fileobj is self.notified for key, _ in ready):
                    self.said += self.notified.recv(4096).decode().split("\n")
                else:
                    raise AssertionError(f"no {wanted}: {self.said} {self.log.read_text()}")
        return found[0]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """The exit code, waited for."""
        return self.process.wait(PATIENCE_SECONDS)

    def events(self) -> list[dict[str, Any]]:
        """What it logged."""
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]

    def close(self) -> None:
        """Leave nothing of it behind."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.notified.close()


class Gate:
    """A provider's program that says when it was asked and answers when the test lets it."""

    def __init__(self, world: World, settings: str = "") -> None:
        self.asked = world.root / "asked"
        self.go = world.root / "go"
        os.mkfifo(self.asked)
        os.mkfifo(self.go)
        script = f"cat >/dev/null; echo asked >{self.asked}; exec cat {self.go}"
        world.configure(
            f'[provider]\nname = "command"\ncommand = ["sh", "-c", "{script}"]\n{settings}'
        )

    def wait_until_asked(self) -> None:
        """Block until the program has read its prompt."""
        assert self.asked.read_text() == "asked\n"

    def answer(self) -> None:
        """Let it answer that there is nothing worth keeping."""
        self.go.write_text('{"facts": []}')


@contextmanager
def make_world() -> Iterator[World]:
    """A world in a folder with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="m", dir=in_memory.place()) as made:
        root = Path(made).resolve()
        environ = dict(os.environ) | {
            "HOME": str(root / "person"),
            "MEMORYD_HOME": str(root / "home"),
            "CLAUDE_CONFIG_DIR": str(root / "person" / ".claude"),
            "CODEX_HOME": str(root / "person" / ".codex"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "TMPDIR": str(root),
        }
        (root / "person").mkdir()
        world = World(root, environ)
        world.project.mkdir()
        subprocess.run(["git", "init", "-q", str(world.project)], check=True)
        try:
            yield world
        finally:
            for process in world.started:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _forked(command: Sequence[str]) -> Sequence[str]:
    """The command without the Python before it; its first word is empty where that is needed."""
    if list(command[:3]) == MEMORYD:
        return ["memoryd", *command[3:]]
    if command[0] == sys.executable and command[1].endswith(".py"):
        return command[1:]
    return command if command[0] == "memoryd" else [""]


def snapshot(world: World) -> dict[str, object]:
    """All that is in the home, but for what only says that somebody looked."""
    ignored = {"memoryd.sqlite", "sessions.sqlite", "index"}
    files = {
        # A lock's file says who held it last.
        str(path.relative_to(world.home.root)): b"" if path.suffix == ".lock" else path.read_bytes()
        for path in world.home.root.rglob("*")
        if path.is_file()
        and path.name not in ignored
        and not path.name.startswith("sharedindex.")  # a part of git's index
        and not path.name.endswith(("-wal", "-shm"))
    }
    return {"files": files, "rows": rows(world), "head": world.git("rev-parse", "HEAD")}


def rows(world: World) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the ledger and the session history, by table, but for the full-text index."""
    import sqlite3

    found = {}
    for path in (world.home.ledger, world.home.session_history):
        with sqlite3.connect(path) as database:
            query = (
                "select name from sqlite_master where type = 'table' and name not like 'full_text%'"
                " order by name"
            )
            for (table,) in database.execute(query).fetchall():
                values = database.execute(f"select * from [{table}]").fetchall()
                found[f"{path.name}:{table}"] = sorted(values, key=repr)
        database.close()
    return found


def _codex_line(number: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    time = f"2026-01-05T09:00:{number:02d}.000Z"
    return {"timestamp": time, "ordinal": number, "type": kind, "payload": payload}


def _written(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path
