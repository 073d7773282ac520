"""The header of a note, taken apart without losing a byte of it.

A note is ``---``, ``key: value`` lines, ``---`` and a body. People write these by hand, so what is
read is the part of YAML they use: quoted and plain scalars, ``[a, b]``, ``a, b`` and block lists,
block scalars, comments. Unlike YAML a plain value goes to the end of its line, ``#`` and all.
Format: YAML as people write it, and FreeCode's notes, which this reads as it wrote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memoryd.memory.errors import NoteError
from memoryd.memory.text import without_surrogates

_BOM = b"\xef\xbb\xbf"
_KEY = re.compile(r"([^\s:#\"'\[\]{},&*!|>%@`-][^:]*?)\s*:(.*)", re.DOTALL)
_PLAIN = re.compile(r"[\w(/.$<+~^=;](?:[^\x00-\x1f\x7f]*[^\s:])?")
_NOT_A_STRING = re.compile(r"(?i)true|false|yes|no|on|off|null|~|[-+.\d][-+.\d_exo:a-f]*")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_SINGLE = re.compile(r"'((?:[^']|'')*)'\s*(?:#.*)?")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ITEM = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]*)\s*(?:,|$)""")
_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\x1b",
}


@dataclass(frozen=True)
class Entry:
    """One key with its raw lines, or (``key`` None) lines that hold none: comments, blanks."""

    key: str | None
    value: str
    raw: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """A note's bytes taken apart; ``join`` gives the same bytes back.

    ``opening`` and ``closing`` are the fence lines as they stand, empty where there is no header.
    """

    bom: bytes
    opening: str
    entries: tuple[Entry, ...]
    closing: str
    body: bytes

    @property
    def newline(self) -> str:
        """The line ending of the header, or of the first line where there is no header."""
        crlf = self.opening.endswith("\r\n") or (
            not self.opening and self.body.partition(b"\n")[0].endswith(b"\r")
        )
        return "\r\n" if crlf else "\n"

    def last(self, key: str) -> Entry | None:
        """The entry that counts for ``key``: the last one."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)

    def join(self) -> bytes:
        """The note's bytes."""
        lines = [self.opening, *(line for entry in self.entries for line in entry.raw)]
        return self.bom + "".join([*lines, self.closing]).encode() + self.body

    def with_value(self, key: str, written: str | None) -> Split:
        """The same with ``key`` set to an encoded value, or without it (None)."""
        split = self if self.opening else self.with_fences()
        found = split.last(key)
        line = () if written is None else (f"{key}: {written}{split.newline}",)
        entry = Entry(key, written or "", line)
        if found is None:
            return replace(split, entries=(*split.entries, entry) if line else split.entries)
        kept = (
            entry if old is found else old
            for old in split.entries
            if old.key != key or (old is found and line)
        )
        return replace(split, entries=tuple(kept))

    def with_fences(self) -> Split:
        """The same with an empty header where there was none."""
        fence = f"---{self.newline}"
        return replace(self, opening=fence, closing=fence)


def split(data: bytes) -> Split:
    """Take a note apart. Raises ``NoteError`` when it opens a header that cannot be parsed."""
    bom, rest = (_BOM, data[3:]) if data.startswith(_BOM) else (b"", data)
    lines = rest.split(b"\n")
    if lines[0].rstrip() != b"---":
        return Split(bom, "", (), "", rest)
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == b"---"), None)
    if end is None:
        raise NoteError("the header is not closed", hint="end it with a line of three hyphens")
    try:
        header = [f"{line.decode()}\n" for line in lines[:end]]
        closing = lines[end].decode() + ("\n" if end + 1 < len(lines) else "")
    except UnicodeDecodeError as error:
        raise NoteError("the header is not UTF-8", hint="save the file as UTF-8") from error
    return Split(bom, header[0], _entries(header[1:]), closing, b"\n".join(lines[end + 1 :]))


def _entries(lines: Sequence[str]) -> tuple[Entry, ...]:
    found: list[Entry] = []
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            found.append(Entry(None, "", (line,)))
        elif line[0] in " \t" or text == "-" or text.startswith("- "):
            _continue(found, line)
        else:
            match = _KEY.fullmatch(line)
            if match is None or "\0" in line:
                raise NoteError("the header has a line that is no `key: value`", hint="correct it")
            found.append(Entry(match[1], match[2].strip(), (line,)))
    return tuple(found)


def _continue(found: list[Entry], line: str) -> None:
    """Give ``line`` and the comments before it to the last key, whose value it belongs to."""
    at = next((at for at in reversed(range(len(found))) if found[at].key is not None), None)
    if at is None:
        raise NoteError("the header starts with the rest of a value", hint="give it a key")
    between = [raw for entry in found[at + 1 :] for raw in entry.raw]
    found[at:] = [replace(found[at], raw=(*found[at].raw, *between, line))]


def read_text(entry: Entry | None) -> str:
    """The value as one text; empty where there is none."""
    if entry is None:
        return ""
    more = entry.raw[1:]
    if entry.value[:1] in {"|", ">"} and len(entry.value) <= 3 and more:
        return _block(entry.value, more)
    return _scalar(" ".join(part for part in (entry.value, *map(str.strip, more)) if part))


def read_list(entry: Entry | None) -> tuple[str, ...]:
    """The value as a list, in any of the forms people write; blanks are dropped."""
    if entry is None:
        return ()
    more = [text for line in entry.raw[1:] if (text := line.strip()) and text[0] != "#"]
    if not entry.value and more and all(text[0] == "-" for text in more):
        items = [_scalar(text[1:].strip()) for text in more]
    else:
        items = _inline(" ".join((entry.value, *more)).strip())
    return tuple(item for item in items if item)


def _inline(text: str) -> list[str]:
    inside = text.removeprefix("[").removesuffix("]") if text.startswith("[") else text
    items, at = [], 0
    while at < len(inside):
        match = _ITEM.match(inside, at)
        if match is None:  # something follows a closing quote: no quotes then
            return [_scalar(part.strip()) for part in inside.split(",")]
        items.append(_scalar(match[1].strip()))
        at = match.end()
    return items


def _block(style: str, lines: Sequence[str]) -> str:
    """A block scalar: ``|`` keeps its lines, ``>`` makes them one."""
    texts = [line.rstrip("\r\n") for line in lines]
    indent = min((len(text) - len(text.lstrip()) for text in texts if text.strip()), default=0)
    return ("\n" if style[0] == "|" else " ").join(text[indent:] for text in texts).strip()


def _scalar(text: str) -> str:
    if match := _DOUBLE.fullmatch(text):
        return without_surrogates(_ESCAPE.sub(_unescape, match[1]))
    if match := _SINGLE.fullmatch(text):
        return match[1].replace("''", "'")
    return text


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _LETTERS.get(code, code)
    point = int(code[1:], 16)
    return chr(point) if point <= 0x10FFFF else "\ufffd"


def write_text(value: str) -> str:
    """``value`` on one line such that ``read_text``, and any YAML reader, gives it back."""
    value = without_surrogates(value)
    if _PLAIN.fullmatch(value) and not _odd(value) and not _NOT_A_STRING.fullmatch(value):
        return value
    return _quoted(value)


def write_list(values: Sequence[str]) -> str:
    """``a, b``; ``["a, b", c]`` as soon as one item needs quotes."""
    texts = [without_surrogates(value) for value in values]
    written = [write_text(text) for text in texts]
    if all(
        one == text and not set(",[]{}") & set(text)
        for one, text in zip(written, texts, strict=True)
    ):
        return ", ".join(texts)
    return "[" + ", ".join(map(_quoted, texts)) + "]"


def _odd(value: str) -> bool:
    return ": " in value or " #" in value or value != value.strip() or not value.isprintable()


def _quoted(value: str) -> str:
    escaped = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escape(ord(letter)) for letter in escaped)


def _escape(point: int) -> str:
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
