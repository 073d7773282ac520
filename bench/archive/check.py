"""Whether a home holds what an archive must give: each statement once, and nothing else.

Looks at the files themselves, not through the product: the notes, the ledger's tables, git.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_TYPES = ("user", "feedback", "project", "reference", "episode")
_TOKEN = re.compile(r"[a-z]{8}")
#: The line of a note that quotes what it stands on.
_QUOTE = "Said as: "
#: What a finished session's job may have come to.
_GOOD_ENDS = {"completed"}


@dataclass
class Verdict:
    """What was found. Every list but ``kept`` is one of faults, each in words."""

    kept: int = 0
    missing: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    unmined: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def faults(self) -> dict[str, list[str]]:
        """The lists that are not empty."""
        return {name: found for name, found in asdict(self).items() if name != "kept" and found}


@dataclass(frozen=True)
class Told:
    """One note: whose project, its file, the lines it says, and whether it is superseded."""

    project: str
    path: str
    text: str
    lines: tuple[str, ...]
    archived: bool


def check(manifest: dict[str, Any], home: Path) -> Verdict:
    """Hold the home against the archive's manifest."""
    verdict = Verdict()
    _facts(manifest, list(notes(home)), verdict)
    _ledger(manifest, home, verdict)
    for store in sorted(home.glob("projects/*/memory")):
        _git(home, store, verdict)
    # Beside a project's own file one may lie for a day; in a store it would be in the person's way.
    for folder in (*home.glob("projects/*/memory"), home / "baselines", home / "inbox"):
        verdict.damaged += [f"left behind: {path.name}" for path in folder.rglob("*.tmp")]
    return verdict


def notes(home: Path) -> Iterator[Told]:
    """Every note of every project."""
    for store in sorted(home.glob("projects/*/memory")):
        known: dict[str, Any] = json.loads((store.parent / "project.json").read_text("utf-8"))
        for path in sorted(store.rglob("*.md")):
            inside = path.relative_to(store)
            if path.parent.name in _TYPES:
                text = path.read_text("utf-8")
                body = text.split("\n---\n", 1)[-1]
                lines = [each for each in body.splitlines() if not each.startswith(_QUOTE)]
                archived = inside.parts[0] == "archive"
                yield Told(known["path"], str(inside), text, tuple(lines), archived)


# -- facts ---------------------------------------------------------------------------------------


def _facts(manifest: dict[str, Any], told: Iterable[Told], verdict: Verdict) -> None:
    expected = {each["words"][0]: each for each in manifest["facts"]}
    first = {word: each["words"][0] for each in manifest["facts"] for word in each["words"]}
    traps = {word for words in manifest["traps"] for word in words}
    found: dict[str, list[Told]] = {name: [] for name in expected}
    for note in told:
        tokens = set(_TOKEN.findall(note.text))
        names = {first[token] for token in tokens & first.keys()}
        whole = [name for name in names if tokens.issuperset(expected[name]["words"])]
        for name in whole:
            found[name].append(note)
        if not whole:
            why = "a trap" if tokens & traps else "nothing that was said"
            verdict.invented.append(f"{note.project}: {note.path} says {why}")
    for name, each in expected.items():
        _judge(each, found[name], verdict)


def _judge(fact: dict[str, Any], found: list[Told], verdict: Verdict) -> None:
    what = f"{fact['text']} ({', '.join(fact['sessions'])})"
    live = [note for note in found if not note.archived]
    if not live:
        verdict.missing.append(f"{what}{' is archived only' if found else ''}")
        return
    verdict.kept += 1
    said = [line for note in live for line in note.lines if fact["words"][0] in line]
    if len(live) > 1 or len(said) > 1:
        verdict.doubled.append(f"{what}: {', '.join(note.path for note in live)}")
    if any(note.project != fact["project"] for note in live):
        verdict.misplaced.append(f"{what}: in {', '.join(note.project for note in live)}")


# -- the ledger ----------------------------------------------------------------------------------


def _ledger(manifest: dict[str, Any], home: Path, verdict: Verdict) -> None:
    with closing(sqlite3.connect(f"file:{home / 'memoryd.sqlite'}?mode=ro", uri=True)) as database:
        jobs = database.execute("SELECT agent, session, kind, status FROM job").fetchall()
        plans = database.execute("SELECT agent, session FROM plan").fetchall()
    through = {(agent, session) for agent, session, _, status in jobs if status in _GOOD_ENDS}
    for each in manifest["sessions"]:
        name = (each["agent"], each["session"])
        if each["kind"] != "child" and name not in through:
            verdict.unmined.append("/".join(name))
    verdict.unfinished += [
        f"the {kind} of {agent}/{session} is {status}"
        for agent, session, kind, status in jobs
        if status not in _GOOD_ENDS
    ]
    verdict.unfinished += [f"the plan of {agent}/{session} stands" for agent, session in plans]


# -- git -----------------------------------------------------------------------------------------


def _git(home: Path, store: Path, verdict: Verdict) -> None:
    baseline = home / "baselines" / f"{store.parent.name}.git"
    changed = _asked(baseline, store, "status", "--porcelain")
    verdict.damaged += [f"{store.parent.name}: not committed: {line}" for line in changed]
    broken = _asked(baseline, store, "fsck", "--full", "--no-dangling", "--no-progress")
    verdict.damaged += [f"{store.parent.name}: {line}" for line in broken]


def _asked(baseline: Path, store: Path, *command: str) -> list[str]:
    """What git says; a command that fails says so too."""
    clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    whole = ["git", f"--git-dir={baseline}", f"--work-tree={store}", *command]
    done = subprocess.run(whole, capture_output=True, text=True, env={**os.environ, **clean})
    said = (done.stdout + done.stderr).splitlines()
    return said or ([f"git {command[0]} failed"] if done.returncode else [])
