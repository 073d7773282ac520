"""The doorbell and the clock: huey, in memory, waiting instead of polling.

A ring says that a job may be ready; each worker then claims until nothing is. Rings may be lost:
a worker also wakes by itself when the ledger says that something falls due. huey owns the worker
threads, the signals and the drain; what must happen is in the ledger alone.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from huey import MemoryHuey
from huey.consumer import Consumer, ForkSafeFlag, Scheduler, ThreadEnvironment
from huey.storage import MemoryStorage

#: A wait for the next due job is cut to this, so that a stepped clock costs minutes, not days.
LONGEST_WAIT_SECONDS = 300.0
#: Between two looks for a worker thread that died.
HEALTH_CHECK_SECONDS = 60.0


class Bell(MemoryStorage):  # type: ignore[misc]  # huey has no types
    """huey's queue: one message a ring. ``dequeue`` blocks until a ring, a due job or the close."""

    #: Tells huey's workers that they never have to sleep by themselves.
    blocking = True

    def __init__(self, name: str, *, seconds_to_due: Callable[[], float | None]) -> None:
        super().__init__(name)
        self._seconds_to_due = seconds_to_due
        self._changed = threading.Condition()
        self._closed = False
        #: Makes the message a worker gets when a job falls due.
        self.message: Callable[[], bytes] = bytes

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        """Ring once."""
        with self._changed:
            super().enqueue(data, priority)
            self._changed.notify()

    def close_bell(self) -> None:
        """Wake every worker for the last time."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def dequeue(self) -> bytes | None:
        """The next message; None when the bell was closed."""
        with self._changed:
            while not self._closed:
                data: bytes | None = super().dequeue()
                if data is not None:
                    return data
                due = self._seconds_to_due()
                wait = LONGEST_WAIT_SECONDS if due is None else min(due, LONGEST_WAIT_SECONDS)
                if wait <= 0 or (not self._changed.wait(wait) and due is not None):
                    return self.message()
        return None


class _Ticks(Scheduler):  # type: ignore[misc]
    """huey's scheduler thread as our clock: it calls ``huey.tick`` and sleeps as long as told."""

    def loop(self, now: object = None) -> None:
        seconds: float = self.huey.tick()
        self.stop_flag.wait(seconds)


class _Threads(ThreadEnvironment):  # type: ignore[misc]
    def get_stop_flag(self) -> ForkSafeFlag:
        """A pipe: ``threading.Event.set`` in a signal handler can deadlock."""
        return ForkSafeFlag()


class _QuietConsumer(Consumer):  # type: ignore[misc]
    """huey's consumer without its ten wake-ups a second."""

    scheduler_class = _Ticks

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        # The waiting is ours (``loop``); huey then only looks.
        self._stop_flag_timeout = 0.0
        self._signalled, self._wake = os.pipe()
        os.set_blocking(self._signalled, False)
        os.set_blocking(self._wake, False)
        # Ctrl-C drains like SIGTERM; SIGHUP is ours (reload), not huey's restart.
        self._signal_actions = {signal.SIGTERM: (False, True), signal.SIGINT: (False, True)}
        self._listening = False

    def get_environment(self, worker_type: str) -> _Threads:
        return _Threads(self._graceful_sig, self._interrupt_sig)

    def _set_signal_handlers(self) -> None:
        """Once: huey calls it when the workers are at work already, ``Doorbell.listen`` before."""
        if not self._listening:
            self._listening = True
            signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
            super()._set_signal_handlers()

    def loop(self, health_check_ts: float | None = None) -> float | None:
        """Wait for a signal; once a minute look for a dead worker thread.

        Every signal writes into the pipe: one that comes just before the wait would else be
        handled only after it.
        """
        waiting = select.poll()
        waiting.register(self._signalled, select.POLLIN)
        waiting.register(self.stop_flag._r, select.POLLIN)
        waiting.poll(HEALTH_CHECK_SECONDS * 1000)
        with suppress(BlockingIOError):
            os.read(self._signalled, 4096)
        checked: float | None = super().loop(health_check_ts)
        return checked

    def _handle_signal(self, signum: int, frame: FrameType | None) -> None:
        super()._handle_signal(signum, frame)
        for number in self._signal_actions:
            signal.signal(number, signal.default_int_handler)
        self.stop_flag.set()

    def stop(self, graceful: bool = False) -> None:
        self.stop_flag.set()
        self.huey.storage.close_bell()
        self.huey.stopping()
        super().stop(graceful)


class Doorbell:
    """Worker threads that call ``work`` at each ring, and a thread that calls ``tick``.

    ``work`` runs in a worker and works until nothing is ready. ``tick`` does what is due and
    returns the seconds until it wants to be called again. ``seconds_to_due`` says when the ledger
    next has something by itself. ``stopping`` is told, in the main thread, that the drain begins.
    """

    def __init__(
        self,
        work: Callable[[], object],
        tick: Callable[[], float],
        seconds_to_due: Callable[[], float | None],
        stopping: Callable[[], None] = lambda: None,
        *,
        workers: int,
        drain_seconds: float,
    ) -> None:
        self.workers = workers
        self._huey = MemoryHuey(
            "memoryd", results=False, storage_class=Bell, seconds_to_due=seconds_to_due
        )
        self._huey.tick = tick
        self._huey.stopping = stopping
        self._bell: Bell = self._huey.storage
        task = self._huey.task(name="work")(work)
        self._task = task
        self._bell.message = lambda: self._huey.serialize_task(task.s())
        self._consumer = _QuietConsumer(
            self._huey,
            workers=workers,
            periodic=False,
            graceful_signal="TERM",
            shutdown_timeout=drain_seconds,
        )

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for: claim nothing more."""
        return bool(self._consumer.stop_flag.is_set())

    @property
    def drain_seconds(self) -> float:
        """How long a stop waits for what is worked on."""
        return float(self._consumer.shutdown_timeout)

    def drain_within(self, seconds: float) -> None:
        """A stop that begins from now on waits so long for what is worked on."""
        self._consumer.shutdown_timeout = seconds

    def pause(self, seconds: float) -> None:
        """Wait in a worker's thread; a stop ends it at once."""
        self._consumer.stop_flag.wait(seconds)

    def ring(self) -> None:
        """A job may be ready. One message for each worker that could be free, never more."""
        for _ in range(self.workers - self._bell.queue_size()):
            self._task()

    def listen(self) -> None:
        """From here on SIGTERM and SIGINT end ``run``, also one that has not begun."""
        self._consumer._set_signal_handlers()

    def run(self) -> None:
        """Own the main thread until a signal; returns when drained or when drain time is over.

        Worker threads that did not finish are still there then; the caller gives their jobs back.
        """
        # A second signal, at whatever point of the stop it comes: leave at once.
        with suppress(KeyboardInterrupt):
            self._consumer.run()
