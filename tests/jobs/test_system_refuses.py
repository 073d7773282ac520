"""What the system refuses is no job's fault: nothing is lost, and it is tried again."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from world import World, answer, fact

from memoryd.cli import hook
from memoryd.jobs import worker
from memoryd.jobs.backups import back_up
from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import HistoryError, LedgerError, MemorydError, ProviderUnavailable
from memoryd.memory.testing import FakeClock

RULE = "Always run the linter before you commit."
ERRORS = [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS]


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home whose model has one thing to say."""
    return World(tmp_path, clock, [answer(fact(RULE))])


@contextmanager
def refusing(call: str, number: int, where: str) -> Iterator[list[str]]:
    """The system refuses ``os.<call>`` with this error for files of ``where``; those it did."""
    real: Callable[..., Any] = getattr(os, call)
    refused: list[str] = []

    def refuse(file: Any, *arguments: Any, **named: Any) -> Any:
        path = os.fspath(Path(f"/proc/self/fd/{file}").readlink() if type(file) is int else file)
        if where in path:
            refused.append(path)
            raise OSError(number, os.strerror(number), path)
        return real(file, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, call, refuse)
        yield refused


@pytest.mark.parametrize("number", ERRORS)
@pytest.mark.parametrize(("call", "where"), [("fsync", "/memory/"), ("open", ".lock")])
def test_a_store_that_cannot_be_written_has_its_job_wait(
    world: World, number: int, call: str, where: str
) -> None:
    """It costs no failure, no second call of the model, and is done when the system lets it."""
    said = world.transcript().user(RULE)

    with refusing(call, number, where) as refused:
        job = world.finalize(said)

    assert refused
    assert (job.status, job.failures) == ("pending", 0)
    full = number in (errno.ENOSPC, errno.EDQUOT)
    reasons = {"disk.full"} if full else {"system.refused", "baseline.unusable"}
    assert job.wait_reason in reasons
    world.work_to_rest()
    assert world.job(job).outcome_code == "notes.written"
    assert len(world.model.requests) == 1
    assert len(world.commits()) == 1


def in_a_child(do: Callable[[], str]) -> str:
    """What ``do`` says in a process that can make no file longer than it is, nor any new one."""
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            os.write(writes, do().encode())
        finally:
            os._exit(0)
    os.close(writes)
    os.waitpid(child, 0)
    with open(reads, encoding="utf-8") as said:  # noqa: PTH123 - a descriptor
        return said.read()


def _enqueue(world: World) -> None:
    world.restart()
    world.enqueue(world.transcript("s2"))


def _ingest(world: World) -> None:
    world.restart()
    world.place.history.number_after("claude-code", "s1", 100)


def _copy(world: World) -> None:
    world.restart()
    back_up(world.ledger, world.home.backups)


@pytest.mark.parametrize("write", [_enqueue, _ingest, _copy])
def test_a_database_that_cannot_grow_is_named_and_stays_whole(
    world: World, write: Callable[[World], None]
) -> None:
    """In one line that says what to do; the ledger and the session history are as before."""
    job = world.finalize(world.transcript().user(RULE))
    world.place.close()

    def said() -> str:
        try:
            write(world)
        except MemorydError as error:
            return f"{error.code}\n{error.message}\n{error.hint}"
        return "nothing was refused"

    code, message, _hint = in_a_child(said).split("\n")

    assert code in ("ledger.unusable", "history.unusable", "home.unusable", "disk.full"), message
    world.restart()
    world.ledger.db.require_whole()
    world.place.history.database.check()
    assert world.ledger.records.jobs() == [job]
    assert [path.name for path in world.home.backups.iterdir()] == ["home.json"]


@pytest.mark.parametrize("number", [*ERRORS, errno.EMFILE])
def test_an_envelope_that_cannot_be_written_leaves_nothing_and_fails_no_agent(
    world: World, number: int
) -> None:
    """The one before it is whole; the next one is written when there is room."""
    said = {"session_id": "s1", "transcript_path": None, "cwd": str(world.project)}
    content = hook.envelope("claude-code", "stop", said)
    hook.write(str(world.home.root), content)
    call = "open" if number in (errno.EMFILE, errno.EROFS) else "fsync"

    with refusing(call, number, "/inbox/"), pytest.raises(OSError):
        hook.write(str(world.home.root), content)

    assert len(list(world.home.inbox.glob("*.json"))) == 1
    assert list(world.home.inbox.glob(".*")) == []
    hook.write(str(world.home.root), content)
    assert len(list(world.home.inbox.glob("*.json"))) == 2


@pytest.mark.parametrize("error", [HistoryError("gone"), LedgerError("locked")])
def test_a_database_that_cannot_be_used_is_no_jobs_fault(
    world: World, monkeypatch: pytest.MonkeyPatch, error: MemorydError
) -> None:
    """Whatever it is: the job waits, and is done when it can be used."""
    with monkeypatch.context() as patched:

        def refused(self: Ledger, *arguments: object) -> None:
            raise error

        patched.setattr(Ledger, "begin_slice", refused)
        job = world.finalize(world.transcript().user(RULE))

    assert (job.status, job.failures, job.wait_reason) == ("pending", 0, error.code)
    world.work_to_rest()
    assert world.job(job).outcome_code == "notes.written"


def test_an_attempt_whose_end_could_not_be_written_down_is_no_crash(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job is given back once the ledger can be used, however long that takes."""
    world = World(tmp_path, clock, [ProviderUnavailable("away"), answer(fact(RULE))])
    asked = world.enqueue(world.transcript().user(RULE)).job
    assert asked is not None
    with monkeypatch.context() as full:

        def refused(self: Ledger, *arguments: object) -> None:
            raise LedgerError("the disk is full")

        full.setattr(Ledger, "snooze", refused)
        with pytest.raises(LedgerError):
            world.work()
    clock.advance(3600)
    world.ledger.rescue()

    world.work()

    job = world.job(asked)
    assert (job.outcome_code, job.failures, job.crashes) == ("notes.written", 0, 0)


def test_an_error_that_is_its_own_cause_is_counted_and_holds_nobody(world: World) -> None:
    """A library may hand back what it was given: the chain of causes has no end then."""
    outer, inner = ConnectionError("outer"), TimeoutError("inner")
    outer.__cause__, inner.__cause__ = inner, outer

    assert worker._refused(outer) is None

    outer.errno = errno.EIO
    assert worker._refused(inner) is outer
