"""JSON as people keep it in settings, with the place of every value, so that text can be edited.

Comments and a comma before the closing bracket are read past; nothing else is forgiven. Values are
never written back from what was parsed: ``editing.py`` changes the text itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from json import JSONDecoder
from typing import Literal

DEPTH_LIMIT = 64

_SPACE = " \t\r\n"
_DECODER = JSONDecoder()


class NotJson(Exception):
    """The text is no JSON; the argument says where and why, without a word of the text."""


@dataclass(frozen=True, slots=True)
class Child:
    """One member of an object or one item of an array: ``text[start:end]``, the key included."""

    start: int
    end: int
    #: The place of the comma behind it; None where there is none.
    comma: int | None
    key: str | None
    node: Node


@dataclass(frozen=True, slots=True)
class Node:
    """One value: ``text[start:end]``. ``value`` is that of a scalar, ``children`` of the others."""

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int
    value: object = None
    children: tuple[Child, ...] = ()

    def get(self, key: str) -> Node | None:
        """The value of ``key``, the last where it stands twice: that is the one agents read."""
        found = [child.node for child in self.children if child.key == key]
        return found[-1] if found else None


def parse(text: str) -> Node:
    """The one value that ``text`` is. Raises ``NotJson``."""
    node = _value(text, skip(text, 0), 0)
    if skip(text, node.end) != len(text):
        raise _wrong(text, skip(text, node.end), "something follows the value")
    return node


def skip(text: str, place: int) -> int:
    """Where the white space and the comments that begin at ``place`` end. Raises ``NotJson``."""
    while True:
        while place < len(text) and text[place] in _SPACE:
            place += 1
        if not text.startswith(("//", "/*"), place):
            return place
        place = _comment_end(text, place)


def comments_end(text: str, start: int, end: int) -> int:
    """Behind the last comment between ``start`` and ``end``, which hold nothing else; or start."""
    found = place = start
    while place < end:
        if text[place] in _SPACE or text[place] == ",":
            place += 1
        else:
            found = place = _comment_end(text, place)
    return found


def _comment_end(text: str, place: int) -> int:
    if text.startswith("/*", place):
        closed = text.find("*/", place + 2)
        if closed < 0:
            raise _wrong(text, place, "a comment is not closed")
        return closed + 2
    end = text.find("\n", place)
    end = len(text) if end < 0 else end
    carriage = text.find("\r", place, end)
    return end if carriage < 0 else carriage


def _value(text: str, place: int, depth: int) -> Node:
    if depth > DEPTH_LIMIT:
        raise _wrong(text, place, f"nested deeper than {DEPTH_LIMIT}")
    if text.startswith(("{", "["), place):
        return _box(text, place, depth)
    try:
        value, end = _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError) as error:
        raise _wrong(text, place, "no value begins here, or a string is not closed") from error
    return Node("scalar", place, end, value)


def _box(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    children: list[Child] = []
    place = skip(text, start + 1)
    while not text.startswith(close, place):
        if children and children[-1].comma is None:
            raise _wrong(text, place, f"a comma or {close} is missing")
        child = _child(text, place, depth, is_object)
        children.append(child)
        place = skip(text, child.end if child.comma is None else child.comma + 1)
    return Node("object" if is_object else "array", start, place + 1, None, tuple(children))


def _child(text: str, start: int, depth: int, is_object: bool) -> Child:
    key, place = _key(text, start) if is_object else (None, start)
    node = _value(text, place, depth + 1)
    behind = skip(text, node.end)
    return Child(start, node.end, behind if text.startswith(",", behind) else None, key, node)


def _key(text: str, place: int) -> tuple[str, int]:
    if not text.startswith('"', place):
        raise _wrong(text, place, "a key is missing")
    node = _value(text, place, 0)
    colon = skip(text, node.end)
    if not text.startswith(":", colon):
        raise _wrong(text, colon, "a colon is missing")
    return str(node.value), skip(text, colon + 1)


def _wrong(text: str, place: int, what: str) -> NotJson:
    return NotJson(f"line {text.count(chr(10), 0, place) + 1}: {what}")
