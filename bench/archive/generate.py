"""An archive of six agents' sessions as they lie on a person's disk, and what they must give.

Writes below FOLDER: ``person`` (a home directory with the agents' folders and the projects) and
``manifest.json`` (every session, every statement that must be remembered once and in which project,
and those that must not be). The same arguments give the same bytes.

    python bench/archive/generate.py FOLDER [--sessions 3000] [--bytes 2GB] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

sys.path.insert(0, str(Path(__file__).parent))

from facts import ANSWERED, ASKED, LEAD_INS, Fact, talk
from formats import FORMS, Item, OpenCode, Output, Said, Session
from outputs import Outputs
from plan import Archive, Place, Planned, plan

#: The end of the year that the archive is of: fixed, and before any clock it is mined by.
UNTIL = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
#: The share of a transcript that is words of the person or the assistant.
KEPT_SHARE = 0.10
#: What a line costs beside what it says, roughly.
_AROUND = 350
#: A line that no reader takes in, in sessions of twice its size.
_HUGE = 20_000_000
_UNITS = {"": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3}


def main() -> None:
    """Read the arguments, write the archive, say what it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    add_arguments(parser)
    chosen = parser.parse_args()
    started = time.perf_counter()
    made = generate(chosen.folder, chosen.sessions, chosen.bytes, chosen.seed)
    seconds = round(time.perf_counter() - started, 1)
    sys.stdout.write(json.dumps({**made["counts"], "seconds": seconds}) + "\n")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How large the archive is to be."""
    parser.add_argument("--sessions", type=int, default=3000)
    parser.add_argument("--bytes", type=_bytes, default=2 * 1000**3, metavar="SIZE")
    parser.add_argument("--seed", type=int, default=1)


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)(|[KMG]B)", text)
    if found is None:
        raise argparse.ArgumentTypeError("a number of bytes, KB, MB or GB")
    return int(found[1]) * _UNITS[found[2]]


def generate(folder: Path, sessions: int, size: int, seed: int) -> dict[str, Any]:
    """Write the archive below ``folder``; its manifest. One that is there already is kept."""
    wanted = {"sessions": sessions, "bytes": size, "seed": seed, "folder": str(folder)}
    path = folder / "manifest.json"
    if path.is_file():
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if found["asked"] == wanted:
            return found
        raise SystemExit(f"{folder} holds another archive: remove it or name another folder")
    person = folder / "person"
    archive = plan(person, sessions=sessions, size=size, seed=seed, until=UNTIL)
    _make_places(archive.places)
    outputs = Outputs(random.Random(seed), size)
    written = list(_write(archive, outputs, person, seed))
    made = manifest(archive, written, wanted)
    path.write_text(json.dumps(made, indent=1), "utf-8")
    return made


# -- what is said --------------------------------------------------------------------------------


def script(planned: Planned, outputs: Outputs, seed: int, share: float = 1.0) -> Iterator[Item]:
    """What happens in the session, up to that share of its size; the same at each call."""
    if planned.origin is not None:
        yield from script(planned.origin, outputs, seed, 0.5)
    teller = _Teller(planned, random.Random(f"{seed}/{planned.session.id}"))
    size = max(planned.size, 1)
    huge = planned.size > 2 * _HUGE
    while teller.done < size * share or (share == 1.0 and teller.left):
        if teller.left and teller.done >= size * teller.left[0][0]:
            yield teller.state()
        elif huge and teller.done > size / 2:
            huge = False
            yield teller.print(outputs, _HUGE)
        elif teller.kept <= KEPT_SHARE * teller.done:
            yield teller.speak()
        else:
            yield teller.print(outputs, Outputs.size(teller.chance, size // 4))


class _Teller:
    """Tells one session; ``done`` estimates the bytes it has come to, ``kept`` those of words."""

    def __init__(self, planned: Planned, chance: random.Random) -> None:
        self.planned, self.chance = planned, chance
        self.done = self.kept = 0
        self.moment_ms = planned.session.begun_ms
        self.turn = 0
        #: At which share of the session each statement is said, by whom.
        self.left: list[tuple[float, str, Fact]] = sorted(
            [(chance.random() * 0.9, "user", each) for each in planned.said]
            + [(chance.random() * 0.9, "trap", each) for each in planned.traps]
        )

    def state(self) -> Said:
        """The next statement. A trap is the assistant's, or all that a child's "person" says."""
        _, whose, what = self.left.pop(0)
        before = LEAD_INS[int(self.chance.random() * len(LEAD_INS))]
        text = what.text if self.chance.random() < 0.5 else f"{before}{what.text}"
        if whose == "user" and self.chance.random() < 0.3:
            text = f"Thanks, that looks right. {text}"
        by_agent = whose == "trap" and not self.planned.session.parent
        return self._said("assistant" if by_agent else "user", text)

    def speak(self) -> Said:
        """The next ordinary words; the assistant says four times as much as the person."""
        self.turn += 1
        if self.turn % 2:
            return self._said(
                "user", talk(self.chance, ASKED, int(60 + self.chance.random() * 300))
            )
        size = min(int(self.chance.lognormvariate(6.8, 0.9)), 30_000)
        return self._said("assistant", talk(self.chance, ANSWERED, size))

    def print(self, outputs: Outputs, size: int) -> Output:
        """The next tool's output."""
        text = outputs.cut(self.chance, size)
        self.done += len(text) + 2 * _AROUND
        return Output(text, self._id(), self._at(), self._cwd())

    def _said(self, role: str, text: str) -> Said:
        self.done += len(text) + _AROUND
        self.kept += len(text)
        return Said(role, text, self._id(), self._at(), self._cwd())

    def _id(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))

    def _at(self) -> int:
        self.moment_ms += 1000 + int(self.chance.random() * 9000)
        return self.moment_ms

    def _cwd(self) -> str:
        return cwd_at(self.planned, self.done / max(1, self.planned.size))


def cwd_at(planned: Planned, share: float) -> str:
    """Where the work is when that share of the session is done."""
    return planned.moved.path if planned.moved and share > 0.5 else planned.session.cwd


# -- writing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """What became of a planned session: ``said`` are its facts, by directory."""

    planned: Planned
    path: str
    size: int
    kept: int
    active_ms: int
    heard: dict[str, str]


def _make_places(places: list[Place]) -> None:
    who = ("-c", "user.name=person", "-c", "user.email=person@localhost")
    clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    dates = {f"GIT_{role}_DATE": "@1700000000 +0000" for role in ("AUTHOR", "COMMITTER")}
    environ = {**os.environ, **clean, **dates}
    for place in places:
        (Path(place.path) / "src").mkdir(parents=True, exist_ok=True)
        if place.git:
            git = ["git", *who, "-C", place.path]
            subprocess.run([*git, "init", "-q", "-b", "main"], check=True, env=environ)
            begin = ["commit", "-q", "--allow-empty", "-m", f"Begin {place.path}"]
            subprocess.run([*git, *begin], check=True, env=environ)


def _write(archive: Archive, outputs: Outputs, person: Path, seed: int) -> Iterator[Written]:
    for place in archive.places:
        folder = person / ".gemini/tmp" / Path(place.path).name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".project_root").write_text(place.path, "utf-8")
    rows = [each for each in archive.sessions if each.session.agent == "opencode"]
    for planned in archive.sessions:
        if planned.session.agent != "opencode":
            yield _write_file(planned, script(planned, outputs, seed), person)
    yield from _write_rows(rows, outputs, person, seed)


def _write_file(planned: Planned, items: Iterator[Item], person: Path) -> Written:
    session = planned.session
    path = FORMS[session.agent].path(person, session)
    path.parent.mkdir(parents=True, exist_ok=True)
    heard = _Heard(planned)
    with path.open("wb") as file:
        size = _put(file, session, _lines(planned, heard.listen(items)))
    os.utime(path, ns=(heard.at_ms * 1_000_000, heard.at_ms * 1_000_000))
    return Written(planned, str(path), size, heard.kept, heard.at_ms, heard.where)


class _Heard:
    """Listens to a script: when it ended, how many bytes were words, where each fact was said."""

    def __init__(self, planned: Planned) -> None:
        self.at_ms = planned.session.begun_ms
        self.kept = 0
        self.where: dict[str, str] = {}
        facts = [*planned.said, *(planned.origin.said if planned.origin else ())]
        self._texts = {each.text: each.words[0] for each in facts}

    def listen(self, items: Iterator[Item]) -> Iterator[Item]:
        """The same items."""
        for item in items:
            self.at_ms = max(self.at_ms, item.at_ms)
            if isinstance(item, Said):
                self.kept += len(item.text.encode())
                for text, word in self._texts.items() if item.role == "user" else ():
                    if item.text.endswith(text):
                        self.where[word] = item.cwd
            yield item


def _lines(planned: Planned, items: Iterator[Item]) -> Iterator[bytes]:
    form, session = FORMS[planned.session.agent], planned.session
    yield from form.head(session)
    for number, item in enumerate(items):
        if planned.faulty and number == 2:
            yield b'{"type": "user", "message": {"role": "us\n'
        how = form.said if isinstance(item, Said) else form.output
        yield from how(item, session)  # type: ignore[arg-type]
    if planned.faulty:
        yield b'{"type":"user","mess'


def _put(file: BinaryIO, session: Session, lines: Iterator[bytes]) -> int:
    """Write the lines as the session is kept; how many bytes they are, decompressed."""
    if session.kept == "document":
        return _put_document(file, lines)
    size = 0
    target: Any = file
    if "zst" in session.kept:
        target = zstandard.ZstdCompressor(level=3).stream_writer(file, closefd=False)
    for line in lines:
        size += target.write(line) if target is file else len(line)
        if target is not file:
            target.write(line)
    if target is not file:
        target.close()
    return size


def _put_document(file: BinaryIO, lines: Iterator[bytes]) -> int:
    """Gemini CLI's older form: one object, the messages in a list, the last version of each."""
    head = next(lines).rstrip().removesuffix(b"}")
    size = file.write(head + b',"messages":[\n')
    before, known = b"", b""
    for line in lines:
        if before and line[:50] != known:
            size += file.write(before + b",\n")
        before, known = line.rstrip(), line[:50]
    return size + file.write(before + b"\n]}\n")


def _write_rows(
    every: list[Planned], outputs: Outputs, person: Path, seed: int
) -> Iterator[Written]:
    path = person / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = wal")
    database.execute("PRAGMA synchronous = off")
    database.executescript(OpenCode.tables)
    for planned in every:
        heard = _Heard(planned)
        database.execute("BEGIN")
        size = _put_rows(database, planned, heard.listen(script(planned, outputs, seed)))
        session = planned.session
        row = (session.id, session.parent or None, session.cwd, session.begun_ms, heard.at_ms)
        database.execute("INSERT INTO session VALUES (?, 'p', ?, ?, '', ?, ?)", row)
        database.execute("COMMIT")
        yield Written(planned, str(path), size, heard.kept, heard.at_ms, heard.where)
    database.close()


def _put_rows(database: sqlite3.Connection, planned: Planned, items: Iterator[Item]) -> int:
    form, session, size = OpenCode(), planned.session.id, 0
    for item in items:
        key, moment = f"msg_{item.id}", item.at_ms
        info = form.info(item).decode()
        row = (key, session, moment, moment, info)
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
        size += len(info)
        for at, part in enumerate(form.parts(item)):
            row = (f"prt_{item.id}{at}", key, session, moment, moment, part.decode())
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
            size += len(part)
    return size


# -- the manifest --------------------------------------------------------------------------------


def manifest(archive: Archive, written: list[Written], asked: dict[str, Any]) -> dict[str, Any]:
    """What the archive holds and must give; the form ``check.py`` reads."""
    facts: dict[str, dict[str, Any]] = {}
    for each in written:
        said = {fact.words[0]: fact for fact in _all_said(each.planned)}
        for word, cwd in each.heard.items():
            known = facts.setdefault(word, _expected(said[word], cwd))
            known["sessions"].append(each.planned.session.id)
    kinds = [each.planned.kind for each in written]
    return {
        "asked": asked,
        "counts": {
            "sessions": len(kinds) - kinds.count("child"),
            "children": kinds.count("child"),
            "forks": kinds.count("fork"),
            "projects": len(archive.places),
            "facts": len(facts),
            "bytes": sum(each.size for each in written),
            "kept_share": round(_share(written), 3),
        },
        "projects": [vars(each) for each in archive.places],
        "facts": list(facts.values()),
        "traps": [list(trap.words) for each in written for trap in each.planned.traps],
        "sessions": [_session(each) for each in written],
    }


def _all_said(planned: Planned) -> list[Fact]:
    return [*planned.said, *(planned.origin.said if planned.origin else ())]


def _share(written: list[Written]) -> float:
    return sum(each.kept for each in written) / max(1, sum(each.size for each in written))


def _expected(fact: Fact, cwd: str) -> dict[str, Any]:
    project = cwd.removesuffix("/src")
    return {"words": list(fact.words), "text": fact.text, "project": project, "sessions": []}


def _session(written: Written) -> dict[str, Any]:
    planned = written.planned
    return {
        "agent": planned.session.agent,
        "session": planned.session.id,
        "kind": planned.kind,
        "transcript": written.path,
        "bytes": written.size,
        "active_ms": written.active_ms,
    }


if __name__ == "__main__":
    main()
