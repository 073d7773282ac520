"""What extraction keeps, misses, invents and doubles, on a corpus of small sessions.

The whole path is real: a home, its ledger and session history, transcripts as files, a worker, git.
Each case is a project of its own. It runs twice: with the rules, and with a model whose answers
stand in the corpus, noise included. Prints one JSON object a provider: counts over all cases, and
apart those that the rules were tuned on and those that were held out.

A note that says what no case expects is invented; so is a line added to a note that was there. What
two current notes tell, or one note twice, is doubled. What should be told no more and is, is stale.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).parent))

from cases import Case, Written, answer, load

from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.worker import Worker
from memoryd.jobs.workplace import Workplace, open_workplace
from memoryd.memory import log
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import iso
from memoryd.memory.config import Config
from memoryd.memory.home import Home
from memoryd.memory.notes import Note, new_note
from memoryd.memory.projects import Resolver
from memoryd.memory.providers.base import Provider, Reply, Request
from memoryd.memory.providers.rules import RulesProvider
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

_DAY_SECONDS = 24 * 3600


def main() -> int:
    """Run the corpus with both providers and print the figures. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--faults", action="store_true", help="Name each fault on stderr.")
    chosen = options.parse_args()
    for provider in ("rules", "scripted"):
        started = time.perf_counter()
        result = measure(load(), provider)
        result["seconds"] = round(time.perf_counter() - started, 1)
        faults = result.pop("faults")
        if chosen.faults:
            sys.stderr.write("".join(f"{provider} {fault}\n" for fault in faults))
        sys.stdout.write(json.dumps(result) + "\n")
    return 0


def measure(cases: Sequence[Case], provider: str) -> dict[str, Any]:
    """The counts for ``rules`` or ``scripted``, and ``faults``, a line each."""
    with tempfile.TemporaryDirectory() as folder:
        told = _told(cases, provider, Path(folder))
    counts = {case.id: judged(case, told[case.id], provider) for case in cases}
    tuned = [case.id for case in cases if not case.held_out]
    held = [case.id for case in cases if case.held_out]
    return {
        "what": f"extraction, {provider}",
        "sessions": sum(len(case.sessions) for case in cases),
        "all": _summed(counts.values()),
        "tuned": _summed(counts[name] for name in tuned),
        "held_out": _summed(counts[name] for name in held),
        "faults": [
            f"{'held-out' if case.held_out else 'tuned'} {case.id}: {fault}"
            for case in cases
            for fault in _faults(counts[case.id])
        ],
    }


# -- the run --------------------------------------------------------------------------------------


class Scripted:
    """The model of the corpus: it knows by the project which case it is asked about."""

    name = "scripted"
    costs = True

    def __init__(self, cases: Iterable[Case]) -> None:
        self._cases = {case.id: case for case in cases}
        self.round = 0

    def complete(self, request: Request) -> Reply:
        """The answer that stands in the corpus, as far as the messages shown bear it."""
        project = unquote(request.messages[0].project.rpartition("-case%20")[2])
        case = self._cases[project]
        shown = "\n".join(message.text for message in request.messages)
        text = answer(case.sessions[self.round], case.noise, shown)
        return Reply(text, len(request.prompt) // 4, len(text) // 4)


def _told(cases: Sequence[Case], provider: str, folder: Path) -> dict[str, list[Note]]:
    """The current notes of each case's project when all its sessions are distilled."""
    log.configure(quiet=True)
    clock = FakeClock()
    home = Home(folder / "home")
    scripted = Scripted(cases)
    chosen: Provider = scripted if provider == "scripted" else RulesProvider()
    config = Config()
    place = open_workplace(
        home, config, clock, {"HOME": str(folder / "person")}, provider=_unpaid(chosen)
    )
    stores = {case.id: _store(home, folder / f"case {case.id}") for case in cases}
    for case in cases:
        _write_notes(stores[case.id], case.notes)
    worker = Worker(lambda: place, LeaseKeeper(place.ledger, clock, 30))
    for scripted.round in range(max(len(case.sessions) for case in cases)):
        for case in cases:
            if scripted.round < len(case.sessions):
                _enqueue(place, folder, case, scripted.round)
        worker.work_ready()
        clock.advance(_DAY_SECONDS)
    unfinished = [
        job.session for job in place.ledger.records.jobs(limit=1000) if not job.outcome_code
    ]
    place.close()
    if unfinished:
        raise SystemExit(f"not distilled: {', '.join(unfinished)}")
    return {name: [n for n in store.notes() if not n.archived] for name, store in stores.items()}


def _unpaid(provider: Provider) -> Provider:
    """The provider without a budget: the corpus is more than a day's calls."""
    provider.costs = False  # type: ignore[misc]
    return provider


def _store(home: Home, project: Path) -> Store:
    project.mkdir()
    return Store.for_project(home, Resolver(home).resolve(str(project)).key)


def _write_notes(store: Store, notes: Sequence[Written]) -> None:
    for note in notes:
        path = store.root / note.path
        path.parent.mkdir(parents=True, exist_ok=True)
        folder, name = note.path.removesuffix(".md").split("/")
        data = new_note(
            name=name,
            description=note.body.split(". ")[0],
            type=folder,  # type: ignore[arg-type]
            body=note.body,
            created=note.valid_from,
            valid_from=note.valid_from,
        )
        path.write_bytes(data)
        author = "person" if note.by_person else "memoryd"
        Baseline(store).commit([note.path], "Before", author=author)  # type: ignore[arg-type]


def _enqueue(place: Workplace, folder: Path, case: Case, number: int) -> None:
    """Write the session as Claude Code would and ask for its end."""
    session = f"{case.id}-{number}"
    start = place.clock.now_ms() - 3_600_000
    lines = [
        {
            "type": role,
            "uuid": f"{session}-{at}",
            "sessionId": session,
            "cwd": str(folder / f"case {case.id}"),
            "isSidechain": False,
            "timestamp": iso(start + at * 1000),
            "message": {"role": role, "content": [{"type": "text", "text": text}]},
        }
        for at, (role, text) in enumerate(case.sessions[number].messages)
    ]
    path = folder / f"{session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    place.ledger.enqueue(
        "finalize",
        "claude-code",
        session,
        cutoff=path.stat().st_size,
        transcript=str(path),
        cwd=str(folder / f"case {case.id}"),
        trigger="hook",
        reason="end",
    )


# -- the count ------------------------------------------------------------------------------------


def judged(case: Case, told: Sequence[Note], provider: str) -> dict[str, list[str]]:
    """What of the case's facts was kept, missed and doubled, and what else is told."""
    scripted = provider == "scripted"
    wanted = case.keep + (case.model if scripted else ())
    allowed = wanted + case.also + case.model
    gone = case.gone + (case.model_gone if scripted else ())
    hits = {fact: [note for note in told if _tells(_text(note), fact)] for fact in wanted}
    before = {note.path: note.body for note in case.notes}
    return {
        "kept": [fact for fact in wanted if hits[fact]],
        "missed": [fact for fact in wanted if not hits[fact]],
        "invented": [
            line
            for note in told
            for line in _new_lines(note, before)
            if not any(_tells(line, fact) for fact in allowed)
        ],
        "doubled": [fact for fact in wanted if len(hits[fact]) > 1 or _twice(hits[fact], fact)],
        "stale": [fact for fact in gone if any(_tells(_text(note), fact) for note in told)],
    }


def _text(note: Note) -> str:
    return f"{note.description}\n{note.body}"


def _tells(text: str, fact: str) -> bool:
    """Whether every word of the fact begins a word of the text (CJK has none to begin)."""
    said = text.casefold()
    return all(
        re.search(("" if not word.isascii() else r"(?<!\w)") + re.escape(word), said)
        for word in fact.casefold().split()
    )


def _twice(notes: Sequence[Note], fact: str) -> bool:
    said = [line for note in notes for line in _own_lines(note) if _tells(line, fact)]
    return len(said) > 1


def _own_lines(note: Note) -> list[str]:
    lines = note.body.splitlines()
    return [line for line in lines if line.strip() and not line.startswith("Said as: ")]


def _new_lines(note: Note, before: dict[str, str]) -> list[str]:
    """A new note as one text; of a note that was there, the lines that were not."""
    if note.path not in before:
        return [_text(note)]
    return [line for line in _own_lines(note) if line not in before[note.path].splitlines()]


def _summed(counts: Iterable[dict[str, list[str]]]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for count in counts:
        sums.update({key: len(values) for key, values in count.items()})
    return {"facts": sums["kept"] + sums["missed"], **sums}


def _faults(count: dict[str, list[str]]) -> list[str]:
    return [
        f"{key} {value!r}" for key, values in count.items() if key != "kept" for value in values
    ]


if __name__ == "__main__":
    raise SystemExit(main())
