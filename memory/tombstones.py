"""Tombstones: what the person forgot stays forgotten, and no word of it is kept.

A line of ``tombstones.jsonl`` is ``{"at": ms, "name": h, "statements": [h], "spans": [h]}`` where
each ``h`` is the HMAC-SHA256, under the home's key, of the note's name, of a normalised statement
of it (its description, its body, each line of it) or of a message id with the exact words in that
message, and with each four of them in a row: other bounds of the same words are the same words. A
candidate that meets any one is forgotten. Lines that are none are counted and kept.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from memoryd.memory.errors import NoteError
from memoryd.memory.facts import NoteDraft
from memoryd.memory.notes import Note, parse
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.text import fold, statement_key, words

Span = tuple[str, str]

_MAX_STATEMENTS = 64
#: Words in a row by which a span of a message is known again, and how many of a span are looked at.
_ROW = 4
_SPAN_WORDS = 200


class _Line(msgspec.Struct):
    at: int
    name: str = ""
    statements: list[str] = []
    spans: list[str] = []

    def hashes(self) -> set[str]:
        return {self.name, *self.statements, *self.spans} - {""}


@dataclass(frozen=True)
class Forgotten:
    """What a tombstone is to be made of: a name, statements, and (message id, span) pairs."""

    name: str
    statements: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()

    @staticmethod
    def of_file(path: str, data: bytes, spans: Iterable[Span] = ()) -> Forgotten:
        """What forgetting the note ``data`` at ``path`` means; its file name where it is unread."""
        try:
            note = parse(data, path)
        except NoteError:
            return Forgotten(path.rpartition("/")[2].removesuffix(".md"), (), tuple(spans))
        return Forgotten.of_note(note, spans)

    @staticmethod
    def of_note(note: Note | NoteDraft, spans: Iterable[Span] = ()) -> Forgotten:
        """What a note says: its description, its body, each line of it."""
        body = note.body if isinstance(note, Note) else note.content
        lines = (note.description, body, *body.splitlines())
        statements = tuple(dict.fromkeys(line for line in lines if statement_key(line)))
        return Forgotten(note.name, statements[:_MAX_STATEMENTS], tuple(spans))


class Tombstones:
    """The tombstones of one store, read once. Changing them gives new bytes to be committed.

    Reading raises ``StoreError`` when the file is there and cannot be read: that is never "nothing
    is forgotten". ``bad_lines`` counts the lines that are no tombstones.
    """

    def __init__(self, store: Store, key: bytes, data: bytes | None = None) -> None:
        self.store = store
        self.data = (store.read(TOMBSTONES) or b"") if data is None else data
        self.bad_lines = 0
        self._key = key
        self._newest: dict[str, int] = {}
        for raw in self.data.split(b"\n"):
            line = _parsed(raw)
            self.bad_lines += line is None and bool(raw.strip())
            if line is not None:
                for each in line.hashes():
                    self._newest[each] = max(line.at, self._newest.get(each, line.at))

    @classmethod
    def of(cls, store: Store, data: bytes | None = None) -> Tombstones:
        """Those of ``store``, or ``data`` as theirs, under its home's key (the uuid)."""
        return cls(store, store.home.uuid().encode(), data)

    def forgets(
        self,
        name: str,
        statement: str,
        spans: Iterable[Span] = (),
        *,
        newest_user_message_ms: int | None = None,
    ) -> bool:
        """Whether the person forgot this: any one match is enough.

        ``newest_user_message_ms`` is when a person's own message last said it (ms, None: never or
        unknown); one later than the tombstone lifts it.
        """
        what = Forgotten(name, (statement,), tuple(spans))
        return self.meets(what, newest_user_message_ms=newest_user_message_ms)

    def forgets_note(
        self,
        note: Note | NoteDraft,
        spans: Iterable[Span] = (),
        *,
        newest_user_message_ms: int | None = None,
    ) -> bool:
        """Whether the person forgot the note or a line of it: its name, its words, its spans."""
        what = Forgotten.of_note(note, spans)
        return self.meets(what, newest_user_message_ms=newest_user_message_ms)

    def meets(self, what: Forgotten, *, newest_user_message_ms: int | None = None) -> bool:
        """The same for all that ``what`` says."""
        if not self._newest:
            return False
        said = -1 if newest_user_message_ms is None else newest_user_message_ms
        hashes = self._hashes(what, rows=range(1, _ROW + 1))
        return any(said <= at for each in hashes if (at := self._newest.get(each)) is not None)

    def add(self, *forgotten: Forgotten, now_ms: int) -> Tombstones:
        """The tombstones with these; the same one again only becomes newer. Nothing is written."""
        data = self.data
        for each in forgotten:
            line = _Line(
                now_ms,
                self._name(each.name) if each.name.strip() else "",
                [self._statement(one) for one in each.statements if statement_key(one)],
                [hashed for span in each.spans for hashed in self._of_span(span)],
            )
            kept = _without(data, functools.partial(_same, line))
            end = b"\n" if kept and not kept.endswith(b"\n") else b""
            data = kept + end + msgspec.json.encode(line) + b"\n"
        return Tombstones(self.store, self._key, data)

    def lift(self, *again: Forgotten) -> Tombstones:
        """The tombstones without those that meet any of ``again``, which the person put back."""
        back = {each for one in again for each in self._hashes(one)}
        kept = _without(self.data, lambda old: back & old.hashes())
        return Tombstones(self.store, self._key, kept)

    def _hashes(self, what: Forgotten, rows: Iterable[int] = (_ROW,)) -> set[str]:
        found = {self._name(what.name)} if what.name.strip() else set()
        found |= {self._statement(one) for one in what.statements if statement_key(one)}
        return found.union(*(self._of_span(span, rows) for span in what.spans))

    def _name(self, name: str) -> str:
        folded = fold(name).casefold()
        return self._hash("name", "-".join(folded.replace("_", " ").split()))

    def _statement(self, statement: str) -> str:
        return self._hash("statement", statement_key(statement))

    def _of_span(self, span: Span, rows: Iterable[int] = (_ROW,)) -> list[str]:
        """The span as it is, and its words in rows of these lengths (of all, where it is short)."""
        message, said = span[0], words(span[1])[:_SPAN_WORDS]
        found = {json.dumps([message, fold(span[1])]): None}
        for size in rows:
            row = min(size, len(said)) if rows == (_ROW,) else size
            for at in range(len(said) - row + 1 if row > 1 else 0):
                found[json.dumps([message, *said[at : at + row]])] = None
        return [self._hash("span", each) for each in found]

    def _hash(self, kind: str, text: str) -> str:
        words = f"{kind}\0{text}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, words, hashlib.sha256).hexdigest()


def added_and_taken(before: bytes, after: bytes) -> tuple[list[bytes], list[bytes]]:
    """The lines that a change of the file added, and those that it took away."""
    old, new = before.split(b"\n"), after.split(b"\n")
    return [line for line in new if line not in old], [line for line in old if line not in new]


def with_lines(data: bytes, added: list[bytes], taken: list[bytes]) -> bytes:
    """``data`` with lines added at its end and others taken away."""
    kept = [line for line in data.split(b"\n") if line and line not in taken]
    kept += [line for line in added if line and line not in kept]
    return b"".join(line + b"\n" for line in kept)


def _parsed(raw: bytes) -> _Line | None:
    try:
        return msgspec.json.decode(raw, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _same(one: _Line, other: _Line) -> bool:
    return one.hashes() == other.hashes()


def _without(data: bytes, drop: Callable[[_Line], object]) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(
        raw for raw in lines if (line := _parsed(raw.strip())) is None or not drop(line)
    )
