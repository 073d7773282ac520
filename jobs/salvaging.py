"""Taking out of a damaged ledger what it still says, into the one that takes its place.

Row by row (``sifting.py``), each looked at before it is believed (``sound.py``): a damaged file may
say anything. What it says is newer than any copy, so its rows stand; where a table was torn, those
of the copy stay beside them. With three exceptions, so that nothing is lost by what is wrong:

- an exclusion stays one, whatever else of its row is wrong, and none is taken back;
- a cursor only rises, and never past what the session history holds of its session;
- where jobs could not be read, no session counts as asked for: the sweep looks at each again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.jobs import schema
from memoryd.jobs.job import CODE
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.sifting import Row, Sifted
from memoryd.jobs.sound import Column, fault, tables

#: What an exclusion is called whose own word cannot be read.
EXCLUDED = "session.excluded"
#: Names for a person, of what is worth a word; the other tables are counts and logs.
_NAMES = {
    "job": "jobs",
    "rollout": "sessions",
    "cursor": "cursors",
    "plan": "plans",
    "candidate": "candidates",
}
#: Tables whose loss may let a model see what was excluded.
_PRIVATE = ("rollout", "cursor")


@dataclass
class Salvaged:
    """What was taken over, and what was not: by table."""

    taken: Counter[str] = field(default_factory=Counter)
    #: Rows that were read and could not be believed.
    refused: Counter[str] = field(default_factory=Counter)
    #: Tables of which not everything could be read.
    torn: set[str] = field(default_factory=set)

    @property
    def is_whole(self) -> bool:
        """Whether all the file had is taken over."""
        return not self.torn and not self.refused

    @property
    def may_have_lost_exclusions(self) -> bool:
        """Whether a session may be read that should not be."""
        return any(each in self.torn or self.refused[each] for each in _PRIVATE)

    def __iadd__(self, other: Salvaged) -> Salvaged:
        """What two files gave."""
        self.taken += other.taken
        self.refused += other.refused
        self.torn |= other.torn
        return self

    def lines(self) -> Iterable[str]:
        """What a person is told."""
        said = [f"{self.taken[table]} {name}" for table, name in _NAMES.items()]
        if sum(self.taken.values()):
            yield f"taken out of the damaged ledger: {', '.join(said)}"
        if self.refused:
            count = sum(self.refused.values())
            yield f"{count} rows of it are not what they must be and are left in it"
        if self.torn:
            torn = ", ".join(_NAMES.get(each, each) for each in sorted(self.torn))
            yield f"some of its rows could not be read at all: {torn}"


def salvage(damaged: Path, ledger: Ledger, last_seqs: Mapping[tuple[str, str], int]) -> Salvaged:
    """Take what ``damaged`` still says into ``ledger``, which is open; what was taken.

    ``last_seqs`` is what the session history holds of each session. Nothing of ``damaged`` changes.
    Raises ``LedgerError``.
    """
    sifted, done = Sifted(damaged), Salvaged()
    known = tables(ledger.db)
    try:
        if sifted.version > len(schema.MIGRATIONS):
            done.torn |= set(known)  # what a newer memoryd wrote means what it says
            return done
        for table in ("job", *(each for each in known if each != "job")):
            with ledger.db.writing():
                for row in sifted.rows(table, [each.name for each in known[table]]):
                    _take(ledger, table, known[table], _Told(row, last_seqs, sifted.torn), done)
        done.torn |= sifted.torn
    finally:
        sifted.close()
    return done


@dataclass
class _Told:
    """A row as the damaged file has it, and what else is known."""

    row: Row
    last_seqs: Mapping[tuple[str, str], int]
    torn: set[str]


def _take(
    ledger: Ledger, table: str, columns: tuple[Column, ...], told: _Told, done: Salvaged
) -> None:
    row = _READ[table](told, columns) if table in _READ else told.row
    if row is None or fault(table, columns, row) or row.get("home", ledger.home) != ledger.home:
        done.refused[table] += 1
        return
    try:
        ledger.db.change(_insert(table, tuple(row)), **row)
        done.taken[table] += 1
    except sqlite3.IntegrityError:  # another row stands for the same
        done.refused[table] += 1


def _insert(table: str, names: tuple[str, ...]) -> str:
    values = ", ".join(f":{name}" for name in names)
    sets = ", ".join(_SETS.get((table, name), f"{name} = excluded.{name}") for name in names)
    only = " where cursor.seq < excluded.seq" if table == "cursor" else ""
    return (
        f"insert into {table} ({', '.join(names)}) values ({values})"
        f" on conflict do update set {sets}{only}"
    )


_SETS = {
    ("rollout", "excluded"): "excluded = coalesce(excluded.excluded, rollout.excluded)",
    ("rollout", "last_cutoff"): "last_cutoff = max(excluded.last_cutoff, rollout.last_cutoff)",
}


def mended_rollout(read: Row, columns: tuple[Column, ...]) -> Row:
    """A row of a session as it can be believed: what was excluded is, whatever else is wrong."""
    row = dict(read)
    why = row.get("excluded")
    if why is not None and not (isinstance(why, str) and CODE.fullmatch(why)):
        row["excluded"] = why = EXCLUDED
    if why is not None and fault("rollout", columns, row):
        whose = {"agent": row.get("agent"), "session": row.get("session")}
        row = {
            **whose,
            "transcript": "",
            "cwd": "",
            "last_cutoff": 0,
            "seen_at": 0,
            "excluded": why,
        }
    return row


def _rollout(told: _Told, columns: tuple[Column, ...]) -> Row | None:
    row = mended_rollout(told.row, columns)
    if "job" in told.torn:  # its job may be among those that are lost
        row["last_cutoff"] = 0
        row |= {name: None for name in ("made_fingerprint",) if name in row}
    return row


def _cursor(told: _Told, _: tuple[Column, ...]) -> Row | None:
    """None for one that is past all that was said: it would lose words."""
    whose = (str(told.row.get("agent")), str(told.row.get("session")))
    seq = told.row.get("seq")
    is_known = isinstance(seq, int) and seq <= told.last_seqs.get(whose, 0)
    return told.row if is_known else None


_READ = {"rollout": _rollout, "cursor": _cursor}
