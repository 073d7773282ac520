"""Tombstones: what the person forgot stays forgotten, and no word of it is kept.

A line of ``tombstones.jsonl`` is ``{"at": ms, "name": h, "statements": [h], "spans": [h],
"whole": n}`` where each ``h`` is the HMAC-SHA256, under the home's key, of the note's name, of a
normalised statement of it (its description, its body, each line of it; the first ``n`` stand for
all of it), of a message id, or of one with the exact words in that message, and with each four of
them in a row: other bounds of the same words are the same words. A candidate that meets any one is
forgotten. Lines that are none are counted and kept.

What a person says again is remembered again: their message later than the tombstone, which is not
one that it stands on, or a note they put back. A line that many notes share, said again, is that
line alone; the name, the description or the body is the whole.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from memoryd.memory.clock import instant_ms
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
    whole: int = 0

    def hashes(self) -> set[str]:
        return {self.name, *self.statements, *self.spans} - {""}


@dataclass(frozen=True)
class Forgotten:
    """What a tombstone is to be made of: a name, statements, and (message id, span) pairs.

    The first ``whole`` statements say all of it; the others are parts. ``said_ms`` is when it was
    said last, as far as that is known (0: it is not).
    """

    name: str
    statements: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    whole: int = 1
    said_ms: int = 0

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
        whole = _said((note.description, body))
        statements = _said((*whole, *body.splitlines()))
        said_ms = _said_ms(note) if isinstance(note, Note) else 0
        return Forgotten(note.name, statements[:_MAX_STATEMENTS], tuple(spans), len(whole), said_ms)


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
        self._by_hash: dict[str, list[_Line]] = {}
        self._newest_ms = 0
        for raw in self.data.split(b"\n"):
            line = _parsed(raw)
            self.bad_lines += line is None and bool(raw.strip())
            if line is not None:
                self._newest_ms = max(line.at, self._newest_ms)
                for each in line.hashes():
                    self._by_hash.setdefault(each, []).append(line)

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

    def meets(
        self,
        what: Forgotten,
        *,
        newest_user_message_ms: int | None = None,
        said: Mapping[str, int] | None = None,
    ) -> bool:
        """The same for all that ``what`` says.

        ``said`` are messages of a person by id, with their times (ms): each lifts what is older
        than it, but never a tombstone that stands on that message, whatever a clock said.
        """
        if not self._by_hash:
            return False
        times = {self._message(message): at for message, at in (said or {}).items()}
        newest = -1 if newest_user_message_ms is None else newest_user_message_ms
        return any(
            max((at for each, at in times.items() if each not in line.spans), default=newest)
            <= line.at
            for line in self._met(what, rows=range(1, _ROW + 1))
        )

    def covers(self, what: Forgotten, *, since_ms: int) -> bool:
        """Whether all of ``what`` was forgotten at ``since_ms`` or later: by its name, or whole."""
        hashes = self._whole(what)
        return any(line.at >= since_ms and hashes & _whole_of(line) for line in self._met(what))

    def add(self, *forgotten: Forgotten, now_ms: int) -> Tombstones:
        """The tombstones with these; the same one again only becomes newer. Nothing is written."""
        data = self.data
        at = max(now_ms, self._newest_ms)
        for each in forgotten:
            line = _Line(
                at,
                self._name(each.name) if each.name.strip() else "",
                [self._statement(one) for one in each.statements if statement_key(one)],
                [hashed for span in each.spans for hashed in self._of_span(span)],
                len([one for one in each.statements[: each.whole] if statement_key(one)]),
            )
            line.spans += dict.fromkeys(self._message(message) for message, _ in each.spans)
            kept = _changed(data, functools.partial(_unless_same, line))
            end = b"\n" if kept and not kept.endswith(b"\n") else b""
            data = kept + end + msgspec.json.encode(line) + b"\n"
        return Tombstones(self.store, self._key, data)

    def lift(self, *again: Forgotten) -> Tombstones:
        """The tombstones without what ``again`` says, which the person put back.

        One whose name, description or body is said again goes; of others only the parts that are.
        """
        back = {each for one in again for each in self._hashes(one)}
        return Tombstones(self.store, self._key, _changed(self.data, lambda old: _less(old, back)))

    def _met(self, what: Forgotten, rows: Iterable[int] = (_ROW,)) -> list[_Line]:
        return [line for each in self._hashes(what, rows) for line in self._by_hash.get(each, ())]

    def _whole(self, what: Forgotten) -> set[str]:
        return self._hashes(Forgotten(what.name, what.statements[: what.whole]))

    def _hashes(self, what: Forgotten, rows: Iterable[int] = (_ROW,)) -> set[str]:
        found = {self._name(what.name)} if what.name.strip() else set()
        found |= {self._statement(one) for one in what.statements if statement_key(one)}
        return found.union(*(self._of_span(span, rows) for span in what.spans))

    def _name(self, name: str) -> str:
        folded = fold(name).casefold()
        return self._hash("name", "-".join(folded.replace("_", " ").split()))

    def _statement(self, statement: str) -> str:
        return self._hash("statement", statement_key(statement))

    def _message(self, message: str) -> str:
        return self._hash("message", message)

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


def _said(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if statement_key(text)))


def _said_ms(note: Note) -> int:
    try:
        return (instant_ms(note.valid_from) or -999) + 999  # notes hold whole seconds
    except ValueError:  # a person's own way to write a date
        return 0


def _unless_same(new: _Line, old: _Line) -> _Line | None:
    return None if new.hashes() == old.hashes() else old


def _whole_of(line: _Line) -> set[str]:
    return {line.name, *line.statements[: line.whole]} - {""}


def _less(line: _Line, back: Collection[str]) -> _Line | None:
    """The tombstone without the hashes ``back``; None where nothing of it is left."""
    if not line.hashes() & set(back):
        return line
    statements = [each for each in line.statements if each not in back]
    spans = [each for each in line.spans if each not in back]
    gone = _whole_of(line) & set(back) or not (line.name or statements or spans)
    return None if gone else _Line(line.at, line.name, statements, spans, line.whole)


def _changed(data: bytes, change: Callable[[_Line], _Line | None]) -> bytes:
    """``data`` with each tombstone as ``change`` leaves it; what is none stays as it is."""
    made: list[bytes] = []
    for raw in data.splitlines(keepends=True):
        old = _parsed(raw.strip())
        new = None if old is None else change(old)
        if new is old:
            made.append(raw)
        elif new is not None:
            made.append(msgspec.json.encode(new) + b"\n")
    return b"".join(made)
