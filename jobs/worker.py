"""A worker: claim a job, work its attempt, record how that ended; until nothing is ready.

This file and ``distil.py`` are the whole life of a job on the working side; ``ledger.py`` is the
other half.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable
from contextlib import suppress

from memoryd.jobs import backfill
from memoryd.jobs.accounts import Account, Begun, account, begun
from memoryd.jobs.consolidating import consolidate
from memoryd.jobs.control import GiveBack, Snooze, safe_detail
from memoryd.jobs.distil import distil
from memoryd.jobs.job import Job
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.retry import BUSY_FIRST_SECONDS, BUSY_MAX_SECONDS, PAID_MAX_SECONDS, doubling
from memoryd.jobs.workplace import Workplace
from memoryd.memory.errors import (
    BaselineLocked,
    BaselineUnusable,
    CursorUnreadable,
    DiskFull,
    HistoryError,
    HomeError,
    LeaseLost,
    LedgerError,
    MemorydError,
    PlanUnreadable,
    StoreBusy,
    StoreHeld,
    TranscriptBusy,
    TranscriptForeign,
)
from memoryd.memory.files import is_full
from memoryd.memory.gitprogram import require_git
from memoryd.memory.log import about, logger

#: Between two looks at a store in which too much vanished at once.
HELD_WAIT_SECONDS = 600

#: What stands in the way of any job alike: it passes, or a person mends it.
_IN_THE_WAY = (
    StoreBusy,
    TranscriptBusy,
    BaselineLocked,
    BaselineUnusable,
    DiskFull,
    HomeError,
    HistoryError,
    LedgerError,
    PlanUnreadable,
    CursorUnreadable,
)
#: What the system refuses whatever is asked: the disk fails or is read-only, no descriptor is left.
_REFUSALS = frozenset({errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE})

#: What works a job of each kind.
HANDLERS: dict[str, Callable[[Job, Workplace, LeaseKeeper], None]] = {
    "finalize": distil,
    "extract": distil,
    "consolidate": consolidate,
    "backfill": distil,
}


class Worker:
    """Works jobs of one home in the calling thread.

    ``ended`` is told each job that was let go, ``told`` what its attempt did. ``ring`` calls the
    other workers: after a job that ran alone, because it crashed before, they are idle beside what
    it held back.
    """

    def __init__(
        self,
        place: Callable[[], Workplace],
        keeper: LeaseKeeper,
        ended: Callable[[Job], None] = lambda job: None,
        told: Callable[[Account], None] = lambda account: None,
        ring: Callable[[], None] = lambda: None,
    ) -> None:
        self._place = place
        self._keeper = keeper
        self._ended = ended
        self._told = told
        self._ring = ring
        self.owner = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def work_ready(self, stopping: Callable[[], bool] = lambda: False) -> int:
        """Claim and work until nothing is ready or ``stopping()``; how many attempts.

        Where nothing else is ready the next few sessions of the archive are.
        """
        worked = 0
        self._keeper.give_back_left()
        while not stopping():
            place = self._place()
            job = place.ledger.claim(self.owner, room=backfill.room(place))
            if job is not None:
                self.attempt(job)
                worked += 1
            elif not backfill.plan(place):
                break
        return worked

    def work_one(self, job_id: str) -> bool:
        """Claim and work just this job; False when it is not ready."""
        job = self._place().ledger.claim(self.owner, only=job_id)
        if job is None:
            return False
        self.attempt(job)
        return True

    def attempt(self, job: Job) -> None:
        """Work one claimed job to the end of its attempt and record that end."""
        place = self._place()
        started = place.clock.monotonic()
        with about(
            job=job.id, kind=job.kind, attempt=job.attempt, agent=job.agent, session=job.session
        ):
            since, lost, slices = Begun(), False, 0
            try:
                self._keeper.hold(job, place.calls.begun(job).call)
                since = begun(place.ledger, job)
                require_git()  # before anything is asked for that could not be written
                HANDLERS[job.kind](job, place, self._keeper)
            except (KeyboardInterrupt, SystemExit):
                # Called off from outside: that is not the job's fault.
                with suppress(LeaseLost):
                    place.ledger.release(job)
                raise
            except Exception as error:  # noqa: BLE001 - the top of an attempt: any fault is recorded
                lost = not self._record(job, place, error)
            finally:
                slices = self._keeper.slices(job)
                place.calls.ended(job)
                self._keeper.drop(job)
                self._ended(job)
                if job.crashes:
                    self._ring()
            seconds = round(place.clock.monotonic() - started, 3)
            done = account(place.ledger, job, since, lost=lost, seconds=seconds, slices=slices)
            logger().info("attempt.ended", **done.for_log())
            self._told(done)

    def _record(self, job: Job, place: Workplace, error: Exception) -> bool:
        """Write down how the attempt ended; False where the job was another's by then."""
        try:
            _settle_error(job, place, error)
        except LeaseLost:
            logger().info("lease.lost")
            return False
        except MemorydError:  # the ledger itself cannot be used
            self._keeper.leave(job)
            raise
        except Exception as again:  # noqa: BLE001 - what cannot be told is counted all the same
            logger().error("attempt.untold", error=type(again).__name__)
            with suppress(LeaseLost):
                _fail(job, place, "attempt.error", type(error).__name__)
        return True


def _settle_error(job: Job, place: Workplace, error: Exception) -> None:
    """Turn what a handler raised into a snooze or a failure. Raises ``LeaseLost``."""
    if isinstance(error, LeaseLost):
        raise error
    if isinstance(error, GiveBack):
        place.ledger.release(job)
        return
    later = _later(job, place, error)
    if later is not None:
        place.ledger.snooze(job, later.until_ms, later.reason, safe_detail(later.detail))
        return
    code = error.code if isinstance(error, MemorydError) else "attempt.error"
    detail = str(error) if isinstance(error, MemorydError) else f"{type(error).__name__}: {error}"
    if not isinstance(error, MemorydError):
        logger().exception("attempt.error")
    _fail(job, place, code, safe_detail(detail), again=not isinstance(error, TranscriptForeign))


def _fail(job: Job, place: Workplace, code: str, detail: str, *, again: bool = True) -> None:
    """Count a failure. Raises ``LeaseLost``."""
    base = place.config.queue.retry_base_seconds
    place.ledger.fail(job, code, detail, base_seconds=base, again=again)


def _later(job: Job, place: Workplace, error: Exception) -> Snooze | None:
    """What is no fault of the job's: it runs later, at no cost. None: it is one."""
    now = place.clock.now_ms()
    if isinstance(error, Snooze):
        return error
    longest = PAID_MAX_SECONDS if place.calls.asked(job) else BUSY_MAX_SECONDS
    wait = doubling(BUSY_FIRST_SECONDS, longest, job.snoozes)
    if isinstance(error, _IN_THE_WAY):
        return Snooze(now + wait * 1000, error.code, str(error))
    if (refused := _refused(error)) is not None:
        reason = DiskFull.code if is_full(refused) else "system.refused"
        return Snooze(now + wait * 1000, reason, refused.strerror or "")
    if isinstance(error, StoreHeld):
        return Snooze(now + HELD_WAIT_SECONDS * 1000, error.code, str(error))
    return None


def _refused(error: BaseException | None) -> OSError | None:
    """What the system refused, wherever in the chain of causes it is; None: nothing."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # a library may hand its own cause back
        if isinstance(error, OSError) and (is_full(error) or error.errno in _REFUSALS):
            return error
        seen.add(id(error))
        error = error.__cause__
    return None
