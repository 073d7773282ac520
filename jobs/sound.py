"""What a row of the ledger must be for anything to work with it.

SQLite keeps any value in any column, and a damaged file, or a program of somebody else's, may have
left one that no code of ours would. Types and bounds come from the tables themselves
(``schema.py``); what else a column holds is looked at here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from memoryd.jobs.database import Database
from memoryd.jobs.job import CODE, STATUSES, TEXT_CHARACTERS, is_keepable
from memoryd.jobs.sifting import Row
from memoryd.memory.plan import Plan
from memoryd.memory.text import without_surrogates

#: Longest text of those that hold more than a name.
LONG_CHARACTERS = 8_000_000
#: What no time, count or length reaches; sums of a few stay integers of SQLite.
_TOO_MUCH = 1 << 60
_LONG = {
    ("job", "payload"),
    ("plan", "plan"),
    ("event", "body"),
    *(("candidate", name) for name in ("statement", "evidence", "detail", "draft")),
}
_CODES = {
    ("rollout", "excluded"),
    *(("job", name) for name in ("kind", "trigger", "outcome_code", "error_code", "wait_reason")),
}
_ID = re.compile(r"[0-9a-f-]{36}")


@dataclass(frozen=True)
class Column:
    """One column as the schema declares it: ``type`` is ``text``, ``integer`` or ``double``."""

    name: str
    type: str
    needed: bool
    in_key: bool


def tables(db: Database) -> dict[str, tuple[Column, ...]]:
    """The tables of an open ledger and their columns. Raises ``LedgerError``."""
    names = db.rows(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite%'"
    )
    return {str(name): _columns(db, str(name)) for (name,) in names}


def _columns(db: Database, table: str) -> tuple[Column, ...]:
    found = []
    for _, name, declared, needed, _, key in db.rows(f"pragma table_info({table})"):
        kind = str(declared).lower().split()[0]
        kind = "integer" if kind == "bigint" else kind
        found.append(Column(str(name), kind, bool(needed or key), bool(key)))
    return tuple(found)


def fault(table: str, columns: tuple[Column, ...], row: Mapping[str, object]) -> str:
    """What is wrong with a row, naming its column; empty where nothing is."""
    for column in columns:
        if column.name in row and not _is_sound(table, column, row[column.name]):
            return f"{column.name} is not what it must be"
    also = _ALSO.get(table)
    return also(row) if also is not None else ""


def _is_sound(table: str, column: Column, value: object) -> bool:
    if value is None:
        return not column.needed
    if column.type == "text":
        return isinstance(value, str) and _is_text(table, column.name, value)
    if column.type == "double":
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, int) and 0 <= value < _TOO_MUCH


def _is_text(table: str, column: str, value: str) -> bool:
    if (table, column) in _CODES:
        return CODE.fullmatch(value) is not None
    if (table, column) in _LONG:
        return len(value) <= LONG_CHARACTERS and value == without_surrogates(value)
    return len(value) <= TEXT_CHARACTERS and is_keepable(value)


def _job(row: Mapping[str, object]) -> str:
    if not _ID.fullmatch(str(row["id"])):
        return "id is not what it must be"
    if row["status"] not in STATUSES:
        return "status is none that is known"
    return "" if isinstance(_json(row["payload"]), dict) else "payload is no object"


def _plan(row: Mapping[str, object]) -> str:
    try:
        Plan.from_json(str(row["plan"]))
    except (msgspec.MsgspecError, RecursionError):
        return "plan cannot be read"
    return ""


def _candidate(row: Mapping[str, object]) -> str:
    spans = _json(row["evidence"])
    if not isinstance(spans, list) or not all(map(_is_span, spans)):
        return "evidence cannot be read"
    return ""


def _is_span(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and isinstance(value[0], str)
        and isinstance(value[1], int)
        and isinstance(value[2], str)
    )


def _json(value: object) -> object:
    try:
        return json.loads(str(value))
    except (ValueError, RecursionError):
        return None


_ALSO: dict[str, Callable[[Mapping[str, object]], str]] = {
    "job": _job,
    "plan": _plan,
    "candidate": _candidate,
}


def key_of(columns: tuple[Column, ...], row: Row) -> str:
    """The row's key for a person to read: ``claude-code/s1``."""
    return "/".join(str(row.get(each.name)) for each in columns if each.in_key)
