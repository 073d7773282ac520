"""The worlds of the crash matrix: one for each kind of job, made once and put back for each case.

Everything that opens a database happens in a forked child, so that the warm process of the tests
never holds a connection over a fork. A child dies by a real SIGKILL where its case says so; another
one then is the next daemon.
"""

from __future__ import annotations

import gc
import importlib
import json
import mmap
import os
import pkgutil
import shutil
import signal
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import invariants
from invariants import Expected
from power import Disk
from scripted import Scripted

sys.path.append(str(Path(__file__).parent.parent / "jobs"))

from world import World

import memoryd.jobs
import memoryd.memory
import memoryd.sessions
from memoryd.daemon.lifecycle import HELD_CODES
from memoryd.jobs import reading
from memoryd.jobs.discovery import discover
from memoryd.jobs.sweep import take_in_envelopes
from memoryd.jobs.tidying import tidy
from memoryd.memory import seams
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import iso
from memoryd.memory.config import BackfillSettings, Config, CurationSettings
from memoryd.memory.errors import ProviderUnavailable
from memoryd.memory.gitprogram import require_git
from memoryd.memory.notes import new_note
from memoryd.memory.providers.base import Request

DAY = 24 * 3600
MAIN, DEAD, SHORT = "s-main", "s-dead", "s-short"
#: More rounds than any case takes until nothing is left to do.
ROUNDS = 200
FILLER = "The build prints a long line here, as it always does. " * 130


class Injected(Exception):
    """What nobody expected."""


class SharedClock:
    """A clock in memory that forked processes share: what one waited, the next has waited too."""

    def __init__(self) -> None:
        self._place = mmap.mmap(-1, 8)
        self.set(time.time() + 600)

    def set(self, seconds: float) -> None:
        """Make it ``seconds`` (wall)."""
        self._place[:8] = struct.pack("d", seconds)

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass on both clocks."""
        self.set(self.monotonic() + seconds)

    def now_ms(self) -> int:
        """Wall milliseconds."""
        return int(self.monotonic() * 1000)

    def monotonic(self) -> float:
        """The same in seconds; it is never set back."""
        return float(struct.unpack("d", self._place[:8])[0])


@dataclass(frozen=True)
class Trap:
    """Where a run is to end: at a point, the so-manieth time it is reached.

    ``how``: ``killed`` right after it, or the power ``cut``; something ``raised`` right before it
    and, once that was tried again, right after it; or only ``before``, or only ``after``.
    """

    point: str
    time: int
    how: Literal["killed", "cut", "raised", "before", "after"]

    def __str__(self) -> str:
        return f"{self.how} {self.point} #{self.time}"

    @property
    def kills(self) -> bool:
        """Whether the process dies of it."""
        return self.how in ("killed", "cut")

    def set(self, disk: Disk | None) -> None:
        """Have this process fall into it."""
        if self.kills:
            seams.hook = self._falling(partial(self._kill, disk))
        if self.how in ("raised", "before"):
            seams.prior = self._falling(self._raise)
        if self.how in ("raised", "after"):
            seams.hook = self._falling(self._raise)

    def _kill(self, disk: Disk | None) -> None:
        if disk is not None and self.how == "cut":
            disk.cut()
        os.kill(os.getpid(), signal.SIGKILL)

    def _raise(self) -> None:
        raise Injected(str(self))

    def _falling(self, end: Callable[[], None]) -> Callable[[str], None]:
        left = self.time

        def hook(reached: str) -> None:
            nonlocal left
            left -= reached == self.point
            if not left and reached == self.point:
                end()

        return hook


def trouble(number: int) -> str:
    """The first calls go wrong, each in a way of its own; the model is well from the fifth on."""
    if number == 1:
        raise ProviderUnavailable("nobody answers")
    if number == 2:
        raise KeyboardInterrupt  # the process is told to leave
    return "I'd rather not say." if number in (3, 4) else ""


def merges(request: Request) -> dict[str, object]:
    """Two notes that say the same become one."""
    if "[project] indent-again" not in request.prompt:
        return {"merges": []}
    merged = {
        "into": "indent",
        "supersedes": ["indent-again"],
        "description": "How Python is indented",
        "content": "Indent every Python file of this repository with four spaces, never with tabs,"
        " always.",
    }
    return {"merges": [merged]}


class Case:
    """The world of one kind of job. ``expected`` is what must be there in the end.

    ``troubled``: the provider is away, then the process is told to leave, then the answers are bad;
    and a part of the session is said in a project that has no store yet. ``disk`` is what the world
    is on where its power is to be cut.
    """

    def __init__(
        self, kind: str, folder: Path, *, troubled: bool = False, disk: Disk | None = None
    ) -> None:
        self.kind = kind
        self.troubled = troubled
        self.disk = disk
        self.folder = (disk.place if disk else folder) / "world"
        self.template = folder / "template"
        self.calls = folder / "calls"
        self.clock = SharedClock()
        self.began = self.clock.monotonic()
        read = ("Prefers rye over wheat.", "The port of staging is 9443.")
        wanted = (
            *read,
            "Prefers trains over planes.",
            "Uses spaces and no tabs.",
            *(["Prefers red over green."] if troubled else []),
        )
        self.expected = [Expected("claude-code", DEAD)]
        if kind in ("finalize", "extract", "backfill"):
            self.expected.append(Expected("claude-code", MAIN, wanted))
        self.make()

    # -- making --------------------------------------------------------------------------------

    def make(self) -> None:
        """Make the world, and keep it as the template of every case."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        in_child(self._fill)
        os.utime(self.folder / "home/home.json", (self.began - 7200, self.began - 7200))
        shutil.copytree(self.folder, self.template, symlinks=True)

    def put_back(self) -> None:
        """The world as it was made, and its time."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.template, self.folder, symlinks=True)
        self.calls.unlink(missing_ok=True)
        self.clock.set(self.began)
        if self.disk is not None:
            self.disk.sync()

    def world(self) -> World:
        """The world, opened by this process."""
        backfill = BackfillSettings(enabled=self.kind == "backfill")
        config = Config(backfill=backfill, curation=CurationSettings(mode="auto"))
        wrong = trouble if self.troubled else lambda number: ""
        provider = Scripted(self.calls, trouble=wrong, merges=merges)
        return World(self.folder, self.clock, config=config, provider=provider)  # type: ignore[arg-type]

    def _fill(self) -> None:
        world = self.world()
        invariants.watch(world.home.ledger)
        self._notes(world)
        dead = world.transcript(DEAD).assistant("Nobody said anything.")
        world.enqueue(dead)
        assert world.ledger.claim("0-dead") is not None  # its process died long ago
        self.clock.advance(1)
        getattr(self, f"_ask_{self.kind}")(world)
        world.place.close()

    def _notes(self, world: World) -> None:
        """Notes of ours and of a person, and an edit that nobody has taken in yet."""
        store = world.store()
        baseline = Baseline(store)
        day_before = iso(world.clock.now_ms() - DAY * 1000)
        bodies = {
            "prefers-tabs": ("feedback", "Prefers tabs over spaces."),
            "port-of-staging": ("project", "The port of staging is 8443."),
            "indent": ("project", "Indent every Python file of this repository with four spaces."),
            "indent-again": ("project", "Python files of this repository: four spaces, always."),
            "theirs": ("user", "A person wrote this themselves."),
        }
        for name, (type_, body) in bodies.items():
            if type_ == "feedback" and self.kind == "consolidate":
                continue
            data = new_note(
                name=name, description=body[:60], type=type_, body=body, valid_from=day_before
            )
            path = store.root / type_ / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        baseline.ensure()
        mine = [path for path in store.paths() if "theirs" not in path]
        baseline.commit(mine, "Remember", now_ms=world.clock.now_ms() - DAY * 1000)
        baseline.commit(["user/theirs.md"], "Edit", author="person")
        edited = store.root / "user/theirs.md"
        edited.write_text(edited.read_text("utf-8") + "And this a minute ago.\n", "utf-8")

    def _say(self, world: World) -> None:
        """A session of two slices, with something in each that is new and that changes a note."""
        said = world.transcript(MAIN)
        world.ledger.usage.record_injection(
            "claude-code", MAIN, "m1", [(world.store().key, "project/indent")]
        )
        said.user(f"I prefer rye over wheat. The port of staging is 9443 now. {FILLER}")
        said.assistant("Noted. <memory-used>project/indent</memory-used>")
        said.user(f"I prefer trains over planes. I went from tabs to spaces. {FILLER}")
        if self.troubled:
            other = world.folder / "other"
            other.mkdir()
            said.user("I prefer red over green.", cwd=str(other))
        said.assistant("Understood.")
        self._main = said

    def _ask_finalize(self, world: World) -> None:
        self._say(world)
        self._envelope(world, MAIN, "session-end")

    def _ask_extract(self, world: World) -> None:
        self._say(world)
        short = world.transcript(SHORT).user("Hello there.").assistant("Hello.")
        self._envelope(world, SHORT, "stop", short.size)
        self._envelope(world, MAIN, "pre-compact")

    def _ask_backfill(self, world: World) -> None:
        self._say(world)
        long_ago = self.began - 3 * DAY
        os.utime(self._main.path, (long_ago, long_ago))

    def _ask_consolidate(self, world: World) -> None:
        world.ledger.enqueue_store("consolidate", world.store().key, key="today", trigger="cli")

    def _envelope(self, world: World, session: str, event: str, cutoff: int = 0) -> None:
        world.home.inbox.mkdir(exist_ok=True)
        path = world.folder / "person/.claude/projects/-project" / f"{session}.jsonl"
        body = {
            "version": 1,
            "agent": "claude-code",
            "event": event,
            "session": session,
            "transcript": str(path),
            "cwd": str(world.project),
            "reason": None,
            "cutoff": cutoff or path.stat().st_size,
            "time_ms": world.clock.now_ms(),
            "switches": [],
        }
        (world.home.inbox / f"{time.time_ns()}-1.json").write_text(json.dumps(body), "utf-8")

    # -- running -------------------------------------------------------------------------------

    def reached(self) -> tuple[Counter[str], Counter[str]]:
        """How often each point is reached in a run that nothing disturbs: before it, after it."""
        told = in_child(self._count)
        assert told is not None
        counts = (Counter[str](), Counter[str]())
        for line in told.splitlines():
            side, point, times = line.split()
            counts[int(side)][point] = int(times)
        return counts

    def _count(self) -> str:
        counts = (Counter[str](), Counter[str]())
        seams.prior = lambda point: counts[0].update([point])
        seams.hook = lambda point: counts[1].update([point])
        self.work()
        problems = self.problems(fsck=True)
        assert not problems, problems
        return "\n".join(f"{side} {p} {n}" for side in (0, 1) for p, n in counts[side].items())

    def fall_into(self, trap: Trap, *, fsck: bool = False) -> list[str]:
        """Run into the trap, go on as what comes after would, and say what does not hold then."""
        self.put_back()
        if trap.kills:
            if in_child(lambda: self._trapped(trap)) is not None:
                return ["it was never killed"]
            if self.disk is not None and trap.how == "cut":
                self.disk.restore()
            told = in_child(lambda: self._go_on(fsck))
        else:
            told = in_child(lambda: (self._trapped(trap) and "") or self._go_on(fsck))
        return [] if not told else told.splitlines()

    def _trapped(self, trap: Trap) -> None:
        trap.set(self.disk)
        self.work()

    def _go_on(self, fsck: bool) -> str:
        """The next start, a day later."""
        seams.prior = seams.hook = lambda point: None
        self.clock.advance(60)
        self.work()
        return "\n".join(self.problems(fsck=fsck))

    def problems(self, *, fsck: bool) -> list[str]:
        """The invariants that do not hold."""
        home = self.folder / "home"
        return invariants.broken(home, self.expected, self.calls, fsck=fsck)

    def work(self) -> None:
        """What a daemon does from its start until nothing is left to do, a tidying included."""
        world = self.world()
        reading.SLICE_CHUNKS = 1
        started = [False]
        for _ in range(ROUNDS):
            try:
                self._round(world, started)
            except (Injected, KeyboardInterrupt):
                continue  # its thread goes on to the next ring
            if not self._wait(world):
                break
        else:
            raise AssertionError("it never comes to rest")
        self.clock.advance(2 * DAY)
        tidy(world.place)
        world.place.close()

    def _round(self, world: World, started: list[bool]) -> None:
        if not started[0]:
            world.ledger.rescue(everything=True)
            started[0] = True
            world.ledger.breakers.resume("scripted")
            world.ledger.wake(*HELD_CODES)
        take_in_envelopes(world.place)
        if self.kind == "backfill":
            discover(world.home, world.ledger, world.config, world.environ)
        world.work()

    def _wait(self, world: World) -> bool:
        """Let the time pass to what is due next; False when nothing is."""
        due = world.ledger.next_due_ms()
        if due is not None:
            self.clock.advance(max(0, due - self.clock.now_ms()) / 1000 + 0.001)
        return due is not None or not world.ledger.idle() or any(world.home.inbox.glob("*.json"))


def warm() -> None:
    """Load what a job needs before the first fork, so that no child has to.

    None of it is the collector's any more: a child's would write to all that is shared.
    """
    import ctypes  # noqa: F401

    import git  # noqa: F401
    import peewee  # noqa: F401

    for package in (memoryd.memory, memoryd.sessions, memoryd.jobs):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    require_git()
    gc.collect()
    gc.freeze()


def in_child(run: Callable[[], str | None]) -> str | None:
    """What ``run`` says in a forked process; None where that was killed. Its fault is raised."""
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(told)
            with os.fdopen(tell, "w", encoding="utf-8") as pipe:
                try:
                    pipe.write(run() or "")
                    status = 0
                except BaseException:  # noqa: BLE001 - told to the parent
                    pipe.write(traceback.format_exc())
        finally:
            os._exit(status)
    os.close(tell)
    with os.fdopen(told, encoding="utf-8") as pipe:
        text = pipe.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended == -signal.SIGKILL:
        return None
    if ended:
        raise AssertionError(text)
    return text
