"""What must hold when all is at rest, whatever died before: read from the disk alone.

Nothing of memoryd is used here: SQLite, files and git say how it is. ``watch`` adds tables and
triggers to a ledger that keep every move of a cursor and every plan, which the ledger itself
forgets; ``broken`` then says, in words, each invariant that does not hold.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WATCH = """
create table watched_cursor (at real, agent text, session text, was integer, became integer);
create table watched_plan (at real, agent text, session text, first integer, last integer);
create table watched_attempt (at real, job text, attempt integer);
create trigger watched_attempt_made after insert on attempt_log begin
    insert into watched_attempt values
        ((julianday('now') - 2440587.5) * 86400.0, new.job_id, new.attempt);
end;
create trigger watched_cursor_made after insert on cursor begin
    insert into watched_cursor values
        ((julianday('now') - 2440587.5) * 86400.0, new.agent, new.session, 0, new.seq);
end;
create trigger watched_cursor_moved after update on cursor begin
    insert into watched_cursor values
        ((julianday('now') - 2440587.5) * 86400.0, new.agent, new.session, old.seq, new.seq);
end;
create trigger watched_cursor_lost after delete on cursor begin
    insert into watched_cursor values
        ((julianday('now') - 2440587.5) * 86400.0, old.agent, old.session, old.seq, 0);
end;
create trigger watched_plan_made after insert on plan begin
    insert into watched_plan values
        ((julianday('now') - 2440587.5) * 86400.0, new.agent, new.session, new.first, new.last);
end;
"""
#: SQLite's clock has milliseconds, and its days a few microseconds of rounding.
_TICK_SECONDS = 0.003
_LEDGER, _HISTORY = "memoryd.sqlite", "sessions.sqlite"


@dataclass(frozen=True)
class Expected:
    """One session, and the statements of which each must stand in one note of any store.

    ``read`` False: nobody need have read it yet.
    """

    agent: str
    session: str
    statements: tuple[str, ...] = ()
    read: bool = True


@dataclass
class Looked:
    """Two files and a folder, looked at."""

    home: Path
    expected: Sequence[Expected]
    ledger: sqlite3.Connection
    history: sqlite3.Connection
    calls: list[dict[str, Any]]
    found: list[str] = field(default_factory=list)

    def say(self, holds: object, problem: str) -> None:
        """Note ``problem`` unless ``holds``."""
        if not holds:
            self.found.append(problem)

    def rows(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of the ledger."""
        return self.ledger.execute(text, values).fetchall()


def watch(ledger: Path) -> None:
    """Have the ledger keep what the checker asks for later."""
    with closing(sqlite3.connect(ledger)) as database:
        database.executescript(_WATCH)


def broken(
    home: Path, expected: Sequence[Expected], calls: Path, *, fsck: bool = True, failed: int = 0
) -> list[str]:
    """Every invariant that does not hold, in words; ``failed`` jobs at most may have given up."""
    with _opened(home / _LEDGER) as ledger, _opened(home / _HISTORY) as history:
        lines = calls.read_text("utf-8").splitlines() if calls.exists() else []
        looked = Looked(home, expected, ledger, history, [json.loads(each) for each in lines])
        for database, name in ((ledger, _LEDGER), (history, _HISTORY)):
            whole = database.execute("pragma integrity_check").fetchall()
            looked.say(whole == [("ok",)], f"{name} is damaged: {whole}")
        _jobs(looked, failed)
        _attempts(looked)
        _cursors(looked)
        _model(looked)
        _events(looked)
    _notes(looked)
    _files(looked)
    _git(looked, fsck)
    return looked.found


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        yield database


# -- ledger and history --------------------------------------------------------------------------


def _jobs(looked: Looked, failed: int) -> None:
    """All came to an end, and no plan and no planned candidate is left of any."""
    open_jobs = looked.rows(
        "select kind, session, status, wait_reason, error_code, error_detail from job"
        " where status in ('pending', 'running')"
    )
    looked.say(not open_jobs, f"jobs are still open: {open_jobs[:5]}")
    gone = looked.rows(
        "select kind, session, error_code, error_detail from job where status = 'failed'"
    )
    looked.say(len(gone) <= failed, f"jobs gave up: {gone[:5]}")
    held = looked.rows("select id, status from job where lease_owner is not null")
    looked.say(not held, f"jobs have an owner still: {held[:5]}")
    plans = looked.rows("select serial_key, first, last from plan")
    looked.say(not plans, f"plans are left: {plans[:5]}")
    planned = looked.rows("select session, first, statement from candidate where state = 'planned'")
    looked.say(not planned, f"candidates are planned still: {planned[:5]}")


def _attempts(looked: Looked) -> None:
    """Each attempt of each job stands in the log once, has ended, and the failures add up."""
    log: dict[str, dict[int, str]] = {}
    for job, attempt, ending in looked.rows("select job_id, attempt, ending from attempt_log"):
        log.setdefault(job, {})[attempt] = ending
        looked.say(ending, f"attempt {attempt} of {job} has no end")
    again = _asked_again(looked)
    jobs = looked.rows("select id, kind, session, status, attempt, failures, crashes from job")
    for job, kind, session, status, attempt, failures, crashes in jobs:
        who, endings = f"the {kind} of {session}", log.pop(job, {})
        looked.say(sorted(endings) == list(range(1, attempt + 1)), f"{who}: attempts {endings}")
        counted = Counter(endings.values())
        before = again.get(job, (0, 0))
        bad = counted["crashed"] + counted["failed"]
        looked.say(
            (failures + before[0], crashes + before[1]) == (bad, counted["crashed"]),
            f"{who}: {failures} failures, {crashes} crashes, and the log says {counted}",
        )
        if status == "completed":
            last = endings.get(attempt)
            looked.say(last == "completed", f"{who} is completed, its last attempt {last}")
    looked.say(not log, f"attempts of jobs that are not there: {list(log.items())[:5]}")


def _asked_again(looked: Looked) -> dict[str, tuple[int, int]]:
    """What jobs had failed and crashed before a person asked for them again."""
    if not looked.rows("select 1 from sqlite_master where name = 'watched_retry'"):
        return {}
    text = "select job, sum(failures), sum(crashes) from watched_retry group by job"
    return {job: (failures, crashes) for job, failures, crashes in looked.rows(text)}


def _cursors(looked: Looked) -> None:
    """Every word was accounted for, once, and no cursor ever went back."""
    moves: dict[tuple[str, str], int] = {}
    for agent, session, was, became in looked.rows(
        "select agent, session, was, became from watched_cursor order by rowid"
    ):
        at = moves.get((agent, session), 0)
        looked.say(
            was == at and became > was,
            f"the cursor of {session} went from {was} to {became}, after {at}",
        )
        moves[agent, session] = became
    for each in looked.expected:
        first, said, count = looked.history.execute(
            "select min(message.seq), max(message.seq), count(*) from message"
            " join session on session.id = message.session_id"
            " where session.agent = ? and session.session = ?",
            (each.agent, each.session),
        ).fetchone()
        looked.say(
            not count or (first, said) == (1, count),
            f"{each.session}: {count} messages are numbered from {first} to {said}",
        )
        if each.read and each.statements:
            read = moves.get((each.agent, each.session), 0)
            looked.say(said, f"nothing of {each.session} was ingested")
            looked.say(read == (said or 0), f"{each.session}: read to {read} of {said}")


def _model(looked: Looked) -> None:
    """No slice was planned twice, and no attempt that began once a plan stood asked about it.

    One that has lost its lease and does not know yet may: it stood still, or its clock did.
    """
    plans = looked.rows("select at, agent, session, first, last from watched_plan")
    slices = Counter((each[2], each[3]) for each in plans if each[3])
    twice = [each for each, times in slices.items() if times > 1]
    looked.say(not twice, f"slices were planned twice: {twice[:5]}")
    said = looked.history.execute(
        "select message.message_id, session.session, message.seq from message"
        " join session on session.id = message.session_id"
    ).fetchall()
    asked: dict[str, list[tuple[int, float]]] = {}
    where = {message: (session, seq) for message, session, seq in said}
    began = {
        (job, attempt): at
        for at, job, attempt in looked.rows("select at, job, attempt from watched_attempt")
    }
    for call in looked.calls:
        since = began.get((call["job"], call["attempt"]), call["at"])
        for message in call["messages"]:
            session, seq = where.get(message, ("", 0))
            asked.setdefault(session, []).append((seq, since))
    for at, _, session, first, last in plans:
        late = [
            seq
            for seq, since in asked.get(session, ())
            if first <= seq <= last and since > at + _TICK_SECONDS
        ]
        looked.say(not late, f"{session}: {late} were asked about again after their plan")


def _events(looked: Looked) -> None:
    """Each slice that wrote a note was told of once."""
    told = Counter(
        (body["session"], body["job"])
        for (text,) in looked.rows("select body from event where kind = 'memory.saved'")
        if (body := json.loads(text))["session"]
    )
    wrote = Counter(
        session
        for session, _ in looked.rows(
            "select distinct session, first from candidate where state in ('applied', 'appended')"
            " and path is not null and path not like 'archive/%' and agent <> ''"
        )
    )
    by_session: Counter[str] = Counter()
    for (session, _), times in told.items():
        by_session[session] += times
    if sum(wrote.values()) <= 1000:  # older events are dropped
        over, under = by_session - wrote, wrote - by_session
        looked.say(by_session == wrote, f"told too often: {over}, too seldom: {under}")


# -- files and git -------------------------------------------------------------------------------


def _notes(looked: Looked) -> None:
    """Each wanted statement stands once, in one note."""
    texts = [
        path.read_text("utf-8")
        for path in sorted(looked.home.glob("projects/*/memory/**/*.md"))
        if path.name != "MEMORY.md"
    ]
    whole = "\n".join(text.partition("\n---\n")[2] for text in texts)
    for each in looked.expected:
        for statement in each.statements:
            times = whole.count(statement)
            looked.say(times == 1, f"{each.session}: {times} times {statement!r}")


def _files(looked: Looked) -> None:
    """Nothing half made is left anywhere."""
    left = [
        str(path.relative_to(looked.home))
        for path in looked.home.rglob("*")
        if path.name.endswith(".tmp") or path.name.startswith("scratch-") or ".git.new" in path.name
    ]
    looked.say(not left, f"half-made files are left: {left[:5]}")
    inbox = looked.home / "inbox"
    found = [*inbox.glob("*"), *inbox.glob("bad/*")]
    waiting = [path.name for path in found if path.name not in ("bad", "taken")]
    looked.say(not waiting, f"envelopes are left: {waiting[:5]}")


def _git(looked: Looked, fsck: bool) -> None:
    """Each work tree is clean, each slice is in one commit, and each repository whole."""
    for baseline in sorted((looked.home / "baselines").glob("*.git")):
        tree = looked.home / "projects" / baseline.stem / "memory"
        if not (baseline / "refs/heads/main").exists():
            continue
        status = _run(baseline, tree, "status", "--porcelain", "--untracked-files=all")
        looked.say(not status, f"{baseline.stem} is not clean: {status[:300]}")
        log = _run(baseline, tree, "log", "--format=%(trailers:key=Memoryd-Slice,valueonly)")
        slices = Counter(line for line in log.splitlines() if line.strip())
        twice = [each for each, times in slices.items() if times > 1]
        looked.say(not twice, f"{baseline.stem}: committed twice: {twice[:5]}")
        if fsck:
            bad = _run(baseline, tree, "fsck", "--full", "--no-dangling")
            looked.say(not bad, f"{baseline.stem}: git fsck says {bad[:300]}")


def _run(baseline: Path, tree: Path, *arguments: str) -> str:
    environ = {
        "PATH": os.environ["PATH"],
        "GIT_DIR": str(baseline),
        "GIT_WORK_TREE": str(tree),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    done = subprocess.run(
        ["git", *arguments], env=environ, cwd=tree, capture_output=True, text=True, check=False
    )
    return (done.stdout + (done.stderr if done.returncode else "")).strip()
