"""Rows of the ledger that no code of ours would have written: found, and set aside.

Whatever works with the ledger leaves them out; what they were about waits until then. Set aside
they are lines of JSON in ``backups/rows-<time>.jsonl``: the table, what is wrong, the values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memoryd.jobs.database import Database
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.looking import Look
from memoryd.jobs.salvaging import mended_rollout
from memoryd.jobs.schema import TO_RECOVER
from memoryd.jobs.sifting import Row, Sifted
from memoryd.jobs.sound import Column, fault, key_of, tables
from memoryd.memory.files import write_atomic
from memoryd.memory.health import Finding
from memoryd.memory.text import clip, without_surrogates


@dataclass(frozen=True)
class Faulty:
    """A row, and what is wrong with it."""

    table: str
    columns: tuple[Column, ...]
    row: Row
    why: str

    def __str__(self) -> str:
        """Its table and key, for a person."""
        return f"{self.table} {clip(key_of(self.columns, self.row), 100)!a}"


def faulty(db: Database) -> Iterator[Faulty]:
    """Every row that is not what it must be; all tables are read. Raises ``LedgerError``."""
    known = tables(db)
    sifted = Sifted(db.path, live=True)
    try:
        for table, columns in known.items():
            for row in sifted.rows(table, [each.name for each in columns]):
                if why := fault(table, columns, row):
                    yield Faulty(table, columns, row, why)
    finally:
        sifted.close()


def rows(look: Look) -> Iterator[Finding]:
    """Rows that nothing can work with."""
    for each in faulty(look.ledger.db):
        what = f"a row of the ledger is left out, {each}: {each.why}"
        todo = "`memoryd doctor --fix` sets it aside into backups/; enqueue what it was about again"
        yield Finding("row.unusable", "problem", what, todo)


def set_aside(ledger: Ledger, backups: Path, now_ms: int) -> Iterator[str]:
    """Move the rows that nothing can work with out of the ledger, into a file; in lines.

    What was excluded stays so, and the session of a job is looked at again. Raises ``LedgerError``,
    ``OSError``.
    """
    found = list(faulty(ledger.db))
    if not found:
        return
    kept = backups / f"rows-{now_ms}.jsonl"
    write_atomic(kept, b"".join(map(_line, found)))
    with ledger.db.writing(durable=True):
        for each in found:
            _take_out(ledger.db, each)
        if any(each.table in ("cursor", "plan") for each in found):
            # The next open asks the stores' histories what was done (``recovering.py``).
            ledger.db.rows(f"pragma application_id = {TO_RECOVER}")
    for each in found:
        yield f"{each} is set aside into {kept.name}: {each.why}"


def _take_out(db: Database, faulty: Faulty) -> None:
    values: dict[str, object] = {}
    same = []
    for column in faulty.columns:
        if column.in_key:
            values[column.name] = value = _raw(faulty.row.get(column.name))
            is_text = isinstance(faulty.row.get(column.name), str) and isinstance(value, bytes)
            named = f"cast(:{column.name} as text)" if is_text else f":{column.name}"
            same.append(f"{column.name} is {named}")
    db.change(f"delete from {faulty.table} where {' and '.join(same)}", **values)
    row = faulty.row
    if faulty.table == "rollout":
        again = mended_rollout(row, faulty.columns)
        if again.get("excluded") and not fault("rollout", faulty.columns, again):
            names = ", ".join(again)
            marks = ", ".join(f":{name}" for name in again)
            db.change(f"insert into rollout ({names}) values ({marks})", **again)
    if faulty.table == "job":
        db.change(
            "update rollout set last_cutoff = 0 where agent = :agent and session = :session",
            agent=_raw(row["agent"]),
            session=_raw(row["session"]),
        )


def _raw(value: object) -> object:
    """What SQLite is given for a value it gave: a text that is none as its bytes."""
    if isinstance(value, str) and value != without_surrogates(value):
        return value.encode("utf-8", "surrogateescape")
    return value


def _line(faulty: Faulty) -> bytes:
    values = {
        name: {"hex": value.hex()} if isinstance(value := _raw(each), bytes) else value
        for name, each in faulty.row.items()
    }
    return json.dumps({"table": faulty.table, "why": faulty.why, "row": values}).encode() + b"\n"
