"""Reading a damaged SQLite file row by row: what can be read is, what cannot is passed over.

No index is used, only the tables themselves, in the order of their keys: from the front until a
page cannot be read, from the back until one cannot, and into what lies between, at keys that
may stand in it. Nothing is written: the file is opened read-only.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

Row = dict[str, object]
#: Tries at one table: a page holds a few dozen rows.
TRIES = 4000
_LAST_ROWID = (1 << 63) - 1
#: Numbers that are looked into behind the last that could be read.
_LONGEST_GAP = 1 << 16
#: Where the sessions of an agent may begin: ids are mostly hexadecimal.
_BEGINNINGS = tuple(a + b for a in "0123456789abcdefghjkmnprstuvwxyz" for b in "048c")


class Sifted:
    """A damaged database. ``torn`` names the tables of which not everything could be read."""

    def __init__(self, path: Path, *, live: bool = False) -> None:
        """``live``: others may write it meanwhile."""
        log = path.with_name(f"{path.name}-wal")
        # Without a log nothing else is looked for: SQLite would make one beside it.
        has_log = log.is_file() and log.stat().st_size
        how = "mode=ro" if live or has_log else "immutable=1"
        self._db = sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True)
        self._db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        self.torn: set[str] = set()
        self._tries = 0
        self._ended = False
        try:
            # Else a file that was cut short, or a schema with one bad line, is refused as a whole.
            self._db.execute("pragma writable_schema = on")
            self._names = {
                str(row[0]) for row in self._db.execute("select name from sqlite_schema")
            }
        except sqlite3.Error:
            self._names = set()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def version(self) -> int:
        """Its ``pragma user_version``; 0 where that cannot be read."""
        try:
            return int(self._db.execute("pragma user_version").fetchone()[0])
        except sqlite3.Error:
            return 0

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """The rows of ``table`` that can be read, with those of ``columns`` that it has."""
        known = self._known(table)
        if not known:
            if not self._names:
                self.torn.add(table)
            return
        self._tries = TRIES
        had = [name for name in columns if name in known]
        key = [name for name, place in sorted(known.items(), key=lambda each: each[1]) if place]
        scan = self._by_rowid if self._has_rowid(table) else self._by_key
        for found in scan(table, key, had):
            yield dict(zip(had, found, strict=True))

    def _known(self, table: str) -> dict[str, int]:
        """The columns of a table, each with its place in the key, 0 for none."""
        try:
            rows = self._db.execute(f"pragma table_info({table})").fetchall()
        except sqlite3.Error:
            self.torn.add(table)
            return {}
        return {str(row[1]): int(row[5]) for row in rows}

    def _has_rowid(self, table: str) -> bool:
        try:
            self._db.execute(f"select rowid from {table} limit 0")
        except sqlite3.OperationalError as error:
            return "no such column" not in str(error)
        return True

    def _until_torn(
        self, table: str, text: str, values: Sequence[object]
    ) -> Iterator[tuple[object, ...]]:
        """The rows of one statement until its end (``_ended``), or until a page is torn."""
        self._tries -= 1
        self._ended = False
        try:
            yield from self._db.execute(text, tuple(values))
        except sqlite3.Error:
            self.torn.add(table)
        else:
            self._ended = True

    def _by_rowid(
        self, table: str, _: Sequence[str], columns: Sequence[str]
    ) -> Iterator[tuple[object, ...]]:
        """Where a span is torn at both ends, its halves are looked at by themselves."""
        within = (
            f"select rowid, {', '.join(columns)} from {table} not indexed"
            " where rowid > ? and rowid < ? order by rowid"
        )
        spans = deque([(-1, _LAST_ROWID)])
        while spans and self._tries > 0:
            low, high = spans.popleft()
            for number, *found in self._until_torn(table, within, (low, high)):
                if not self._is_next(table, low, number, high):
                    break
                low = int(str(number))
                yield tuple(found)
            if self._ended:
                continue
            for number, *found in self._until_torn(table, f"{within} desc", (low, high)):
                if not self._is_next(table, low, number, high):
                    break
                high = int(str(number))
                yield tuple(found)
            high = min(high, low + _LONGEST_GAP)
            if not self._ended and high - low > 2:
                middle = (low + high) // 2
                spans += [(low, middle + 1), (middle, high)]

    def _is_next(self, table: str, low: int, number: object, high: int) -> bool:
        """Whether a row is in its place: a page that is not there is read as rows of nothing."""
        if isinstance(number, int) and low < number < high:
            return True
        self.torn.add(table)
        return False

    def _by_key(
        self, table: str, key: Sequence[str], columns: Sequence[str]
    ) -> Iterator[tuple[object, ...]]:
        names, width = ", ".join(key), len(key)
        select = f"select {names}, {', '.join(columns)} from {table}"
        down = ", ".join(f"{name} desc" for name in key)
        places = f"({', '.join('?' * width)})"
        seen: set[tuple[object, ...]] = set()

        def scan(text: str, values: Sequence[object] = ()) -> Iterator[tuple[object, ...]]:
            for row in self._until_torn(table, text, values):
                if row[:width] in seen:
                    break
                seen.add(row[:width])
                yield row[width:]

        yield from scan(f"{select} order by {names}")
        if self._ended:
            return
        yield from scan(f"{select} order by {down}")
        for probe in _probes(key, seen):
            if self._tries > 0:
                yield from scan(f"{select} where ({names}) >= {places} order by {names}", probe)
                yield from scan(f"{select} where ({names}) < {places} order by {down}", probe)


def _probes(key: Sequence[str], seen: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Keys between those that were read, where the rows of a session may stand."""
    if len(key) != 2 or key[0] != "agent":
        return []
    agents = {str(each[0]) for each in seen} or {"claude-code", "codex"}
    return [(agent, beginning) for agent in sorted(agents) for beginning in _BEGINNINGS]
