"""What agents and a person do during a soak: sessions end, are told of, and notes are edited."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from invariants import Expected

from memoryd.cli import hook
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.config import load
from memoryd.memory.errors import MemorydError
from memoryd.memory.projects import Resolver
from soak.clock import SteppedClock
from soak.places import PROJECTS, Places

AGENT = "claude-code"
HOOK = Path(sys.executable).with_name("memoryd-hook")
#: With so many jobs open nothing more is asked for.
OPEN_JOBS = 60
#: Longer than half a chunk, so that two of them make two slices.
LONG = "The build prints a long line here, as it always does. " * 120
_SYLLABLES = (
    *("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu"),
    *("na", "pe", "qui", "ro", "su", "ta", "ve", "wi", "xo", "zu"),
)
_DAY = 24 * 3600


def word(number: int) -> str:
    """A word of its own for each number, that looks like one."""
    found = []
    while number or len(found) < 3:
        number, rest = divmod(number, len(_SYLLABLES))
        found.append(_SYLLABLES[rest])
    return "".join(found)


class People:
    """The agents and the person. ``expected`` is all that must be remembered in the end."""

    def __init__(self, places: Places, rng: random.Random, clock: SteppedClock) -> None:
        self.places = places
        self.clock = clock
        self.expected: list[Expected] = []
        self.done: Counter[str] = Counter()
        self._rng = rng
        self._number = 0
        #: What could not be told yet, because the disk was full or the ledger locked.
        self._untold: list[Callable[[], None]] = []
        resolver = Resolver(places.home)
        self._keys = [resolver.resolve(str(places.project(n))).key for n in range(PROJECTS)]

    # -- sessions --------------------------------------------------------------------------------

    def go_on(self, open_jobs: int) -> None:
        """End a few sessions, unless enough waits to be read."""
        waiting = len(list(self.places.home.inbox.glob("*.json"))) + self.silent
        for _ in range(min(12, max(0, OPEN_JOBS - open_jobs - waiting))):
            self._end_one()
        self.tell()

    def tell(self) -> None:
        """Try again to tell what could not be told."""
        untold, self._untold = self._untold, []
        for each in untold:
            self._told(each)

    @property
    def silent(self) -> int:
        """How many tellings are still to be made."""
        return len(self._untold)

    def _end_one(self) -> None:
        kinds = {
            self._plain: 30,
            self._silent: 42,
            self._fact: 9,
            self._two_slices: 2,
            self._extract: 5,
            self._port: 3,
            self._old: 6,
            self._consolidation: 1,
        }
        self._rng.choices(list(kinds), list(kinds.values()))[0]()

    def _plain(self) -> None:
        self._finalize(self._session("Please go on.", "And then the next one."))

    def _silent(self) -> None:
        """One in which no person said anything."""
        self._finalize(self._session(wants=()))

    def _fact(self) -> None:
        said, statement = self._preference()
        self._finalize(self._session(said, wants=(statement,)))

    def _two_slices(self) -> None:
        first, second = self._preference(), self._preference()
        said = f"{first[0]} {LONG}", f"{second[0]} {LONG}"
        self._finalize(self._session(*said, wants=(first[1], second[1])))

    def _extract(self) -> None:
        """One that is read in the middle, and again at its end."""
        first, second = self._preference(), self._preference()
        path = self._session(first[0], wants=(first[1], second[1]))
        self._envelope(path, "pre-compact")
        self._write(path, second[0])
        self._finalize(path)

    def _port(self) -> None:
        port = self._rng.randint(2000, 9000)
        self._finalize(self._session(f"The port of staging is {port} now."))

    def _old(self) -> None:
        """One from before the home was made: nobody tells of it."""
        said, statement = self._preference()
        path = self._session(said, wants=(statement,), at=time.time() - 30 * _DAY)
        os.utime(path, (time.time() - 20 * _DAY,) * 2)

    def _consolidation(self) -> None:
        key = self._rng.choice(self._keys)

        def ask(ledger: Ledger) -> None:
            name = str(uuid.UUID(int=self._rng.getrandbits(128)))
            ledger.enqueue_store("consolidate", key, key=name, trigger="cli")

        self._told(lambda: self._in_ledger(ask))

    def _preference(self) -> tuple[str, str]:
        self._number += 2
        liked, left = word(self._number * 7 + 400), word(self._number * 7 + 407)
        return f"I prefer {liked} over {left}.", f"Prefers {liked} over {left}."

    def _session(self, *said: str, wants: tuple[str, ...] = (), at: float | None = None) -> Path:
        self._number += 1
        name = f"s-{self._number:06d}"
        path = self.places.transcripts / f"{name}.jsonl"
        self._write(path, *said, at=at)
        self.expected.append(Expected(AGENT, name, wants))
        self.done["sessions"] += 1
        return path

    def _write(self, path: Path, *said: str, at: float | None = None) -> None:
        began = at or time.time() - 3600
        project = self.places.project(int(path.stem[2:]) % PROJECTS)
        before = len(path.read_bytes().splitlines()) if path.exists() else 0
        with path.open("a", encoding="utf-8") as file:
            for text in said or ("",):
                spoken = [("user", text), ("assistant", "Fine.")]
                for role, words in spoken if text else spoken[1:]:
                    before += 1
                    line = {
                        "type": role,
                        "uuid": str(uuid.UUID(int=int(path.stem[2:]) * 1000 + before)),
                        "sessionId": path.stem,
                        "cwd": str(project),
                        "isSidechain": False,
                        "timestamp": _iso(began + before),
                        "message": {"role": role, "content": [{"type": "text", "text": words}]},
                    }
                    file.write(json.dumps(line) + "\n")

    # -- telling ---------------------------------------------------------------------------------

    def _finalize(self, path: Path) -> None:
        way = self._rng.random()
        if way < 0.02:
            self._hook(path)
        elif way < 0.05:
            self._enqueue(path)
        else:
            self._envelope(path, "session-end")

    def _envelope(self, path: Path, event: str) -> None:
        """What the hook writes, by its own code, without the start of a process."""
        said = {
            "version": 1,
            "agent": AGENT,
            "event": event,
            "session": path.stem,
            "transcript": str(path),
            "cwd": str(self.places.project(int(path.stem[2:]) % PROJECTS)),
            "reason": None,
            "cutoff": path.stat().st_size,
            "time_ms": self.clock.now_ms(),
            "switches": [],
        }
        self._told(lambda: self._write_envelope(said))

    def _write_envelope(self, said: dict[str, object]) -> None:
        hook.write(str(self.places.home.root), said)

    def _hook(self, path: Path) -> None:
        """The hook itself. It may fail, on a full disk, without a word: the sweep then finds it."""
        self.done["hooks"] += 1
        said = {"session_id": path.stem, "transcript_path": str(path), "cwd": str(self.places.root)}
        subprocess.run(
            [HOOK, AGENT, "session-end"],
            input=json.dumps(said).encode(),
            env=dict(self.places.environ),
            check=True,
        )
        self._envelope(path, "session-end")

    def _enqueue(self, path: Path) -> None:
        def ask(ledger: Ledger) -> None:
            size, cwd = path.stat().st_size, str(self.places.project(0))
            named = {"transcript": str(path), "cwd": cwd, "trigger": "cli", "reason": "asked"}
            ledger.enqueue("finalize", AGENT, path.stem, cutoff=size, **named)

        self.done["enqueued"] += 1
        self._told(lambda: self._in_ledger(ask))

    def _in_ledger(self, ask: Callable[[Ledger], None]) -> None:
        config = load(self.places.home.config_file)
        ledger = open_ledger(self.places.home, config, self.clock)
        try:
            ledger.db.rows("pragma busy_timeout = 200")  # whoever strikes has no time to wait
            ask(ledger)
        finally:
            ledger.close()

    def _told(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except (OSError, MemorydError):
            self.done["told again"] += 1
            self._untold.append(tell)

    # -- the person ------------------------------------------------------------------------------

    def edit(self) -> None:
        """A person writes a note, or a line into one that is there."""
        notes = [
            path
            for path in self.places.home.root.glob("projects/*/memory/*/*.md")
            if path.parent.name != "archive"
        ]
        self._number += 1
        with suppress(OSError):  # the disk is full: their editor says so
            if notes and self._rng.random() < 0.7:
                self._add_line(self._rng.choice(notes), f"By hand: {word(self._number + 90_000)}.")
            else:
                self._new_note(f"By hand: {word(self._number + 90_000)}.")

    def _add_line(self, path: Path, line: str) -> None:
        text = path.read_text("utf-8")
        self._save(path, f"{text}\n{line}\n")
        self.expected.append(Expected("person", line, (line,), read=False))

    def _new_note(self, line: str) -> None:
        folder = self.places.home.projects / self._rng.choice(self._keys) / "memory" / "user"
        if not folder.parent.is_dir():
            return
        folder.mkdir(exist_ok=True)
        path = folder / f"hand-{self._number}.md"
        self._save(path, f"---\nname: {path.stem}\ndescription: {line}\ntype: user\n---\n{line}\n")
        self.expected.append(Expected("person", line, (line,), read=False))

    def _save(self, path: Path, text: str) -> None:
        """As an editor does: under another name, then over the old."""
        beside = path.with_name(f".{path.name}.swp")
        try:
            beside.write_text(text, "utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        self.done["edits"] += 1


def _iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
