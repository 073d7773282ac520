"""The processes of ``memoryd demo``: the hook, the daemon, and the wait for its jobs."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.cli.demo_stage import Stage, Staged, last_line
from memoryd.memory.clock import SystemClock
from memoryd.memory.errors import MemorydError

if TYPE_CHECKING:
    from memoryd.daemon.client import Client
    from memoryd.jobs.job import Job
    from memoryd.jobs.ledger import Ledger

READY_SECONDS = 30.0
STOP_SECONDS = 15.0
WAIT_SECONDS = 60.0
HOOK_TRIES = 3

_RUN_HOOK = "from memoryd.cli.hook import main; main()"


# -- the hook ------------------------------------------------------------------------------------


def run_hook(made: Stage, staged: Staged) -> None:
    """End the session as its agent does: the hook, with the agent's JSON on standard input."""
    said = {
        "session_id": staged.session,
        "transcript_path": str(staged.transcript),
        "cwd": str(made.project),
        "permission_mode": "default",
        "hook_event_name": "SessionEnd",
    }
    if staged.agent == "codex":
        said |= {"model": "gpt-5-codex", "reason": "other"}
    else:
        said |= {"reason": "prompt_input_exit"}
    subprocess.run(
        [*hook_command(), staged.agent, "session-end"],
        input=json.dumps(said).encode(),
        env=made.environ,
        cwd=made.project,
        check=True,
    )


def hook_command() -> list[str]:
    """The installed hook beside this Python, else the same module run by it."""
    script = Path(sys.executable).with_name("memoryd-hook")
    return [str(script)] if os.access(script, os.X_OK) else [sys.executable, "-c", _RUN_HOOK]


def first_envelope(made: Stage, staged: Staged) -> dict[str, object]:
    """The envelope that the hook leaves while no daemon takes it away. Raises if none comes."""
    for _ in range(HOOK_TRIES):  # on a machine that stands still the hook gives up at 300 ms
        run_hook(made, staged)
        for path in sorted(made.home.inbox.glob("*.json")):
            envelope: dict[str, object] = json.loads(path.read_bytes())
            return envelope
    raise hook_failed(made)


def hook_failed(made: Stage) -> MemorydError:
    """What to say when the hook left nothing, with the trace it wrote."""
    trace = made.home.logs / "hook-errors.log"
    why = last_line(trace.read_bytes()) if trace.is_file() else "it left no trace"
    return MemorydError(
        f"the hook left no envelope: {why}", hint="try again when the machine is less busy"
    )


# -- the daemon ----------------------------------------------------------------------------------


def start_daemon(made: Stage) -> None:
    """Start the daemon and wait until it says READY, as systemd would. Raises where it does not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        address = made.root / "notify"
        notified.bind(str(address))
        command = [sys.executable, "-m", "memoryd.cli.main", "--home", str(made.home.root), "run"]
        with made.log.open("wb") as log:
            made.daemon = subprocess.Popen(
                command,
                env=made.environ | {"NOTIFY_SOCKET": str(address)},
                cwd=made.root,
                stdin=subprocess.DEVNULL,
                # Says nothing there; its end tells us of a daemon that dies.
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        if not _is_ready(made.daemon, notified):
            raise daemon_failed(made, "the daemon did not become ready")


def _is_ready(daemon: subprocess.Popen[bytes], notified: socket.socket) -> bool:
    assert daemon.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(notified, selectors.EVENT_READ)
        waiting.register(daemon.stdout, selectors.EVENT_READ)
        while ready := waiting.select(READY_SECONDS):
            if any(key.fileobj is daemon.stdout for key, _ in ready):
                return False
            if b"READY=1" in notified.recv(4096).split(b"\n"):
                return True
    return False


def daemon_failed(made: Stage, what: str) -> MemorydError:
    """What to say when the daemon let us down, with the last line of its log."""
    line = last_line(made.log.read_bytes()) if made.log.is_file() else ""
    return MemorydError(
        f"{what}: {line or 'it logged nothing'}",
        hint="`memoryd demo --keep` keeps the home and daemon.log",
    )


def stop_daemon(made: Stage) -> int | None:
    """Stop the daemon as a service manager does; its exit code, None where none runs."""
    daemon, made.daemon = made.daemon, None
    if daemon is None:
        return None
    try:
        daemon.terminate()
        return daemon.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # Whatever of it is still there, on every way out, a second Ctrl-C included.
        with suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
        if daemon.stdout is not None:
            daemon.stdout.close()


@contextmanager
def stopping_daemon(made: Stage) -> Iterator[None]:
    """Leave no daemon behind, whatever happens inside."""
    try:
        yield
    finally:
        stop_daemon(made)


# -- jobs ----------------------------------------------------------------------------------------


def finished_job(made: Stage, staged: Staged) -> Job:
    """The session's job, waited for. Raises ``MemorydError`` where it did not complete."""
    from memoryd.daemon.client import Client

    client = Client(made.home.socket(made.environ))
    job = _job(made, staged, client)
    client.wait(job.id, WAIT_SECONDS)
    with OpenLedger(made) as ledger:
        job = ledger.records.job(job.id)
    if job.status == "completed":
        return job
    if made.daemon is not None and made.daemon.poll() is not None:
        raise daemon_failed(made, "the daemon died")
    why = job.error_detail or job.error_code or job.wait_reason or "it did not end in time"
    raise MemorydError(
        f"the {staged.agent} job is {job.shown_status}: {why}",
        hint="`memoryd demo --keep` keeps the home, its daemon.log and the job",
    )


def _job(made: Stage, staged: Staged, client: Client) -> Job:
    for _ in range(HOOK_TRIES):
        # The envelope is its own ring; asking again only says when the inbox has been looked at.
        if not client.ring():
            raise daemon_failed(made, "the daemon does not answer")
        with OpenLedger(made) as ledger:
            found = [job for job in ledger.records.jobs() if job.session == staged.session]
        if found:
            return found[0]
        run_hook(made, staged)
    raise hook_failed(made)


class OpenLedger:
    """The demo's ledger, open for a moment."""

    def __init__(self, made: Stage) -> None:
        from memoryd.jobs.workplace import open_ledger
        from memoryd.memory.config import Config

        self._ledger = open_ledger(made.home, Config(), SystemClock())

    def __enter__(self) -> Ledger:
        return self._ledger

    def __exit__(self, *error: object) -> None:
        self._ledger.close()
