"""Small edits of JSON text: what is not edited keeps its bytes, its comments and its order.

Each takes the text and the place of what to edit (``jsonc.py``) and gives the new text; whoever
makes two edits parses again in between. Taking out what was put in last gives the old text back,
but for white space within brackets that held nothing else.
"""

from __future__ import annotations

import json

from memoryd.sessions.integration.jsonc import Child, Node, comments_end

INDENT = "  "


def replaced(text: str, node: Node, value: object) -> str:
    """``text`` with the scalar ``node`` saying ``value``."""
    return text[: node.start] + json.dumps(value, ensure_ascii=False) + text[node.end :]


def appended(text: str, root: Node, box: Node, value: object, key: str | None = None) -> str:
    """``text`` with ``value`` (under ``key`` in an object) as the last in ``box``.

    Indentation, line ends and whether it stands on lines of its own follow what is there.
    """
    unit, newline = _unit(text, root), "\r\n" if "\r\n" in text else "\n"
    in_lines = _in_lines(text, root, box)
    inner = _inner_indent(text, box, unit)
    new = json.dumps(value, ensure_ascii=False, indent=unit if in_lines else None)
    new = new.replace("\n", newline + inner)
    if key is not None:
        new = f"{json.dumps(key, ensure_ascii=False)}: {new}"
    gap = newline + inner if in_lines else " "
    if box.children:
        return _behind_last(text, box, new, gap, newline)
    return _into_empty(text, box, new, gap, newline + _line_indent(text, box.start))


def without(text: str, box: Node, child: Child) -> str:
    """``text`` without ``child`` of ``box``; comments around it stay."""
    children = box.children
    number = children.index(child)
    before = children[number - 1] if number else None
    opened = box.start + 1
    if before is not None:
        opened = (before.end if before.comma is None else before.comma) + 1
    start = comments_end(text, opened, child.start)
    end = child.end if child.comma is None else child.comma + 1
    if len(children) == 1:
        return _emptied(text, box, start, end)
    if number == len(children) - 1 and child.comma is None:
        assert before is not None and before.comma is not None
        return text[: before.comma] + text[before.comma + 1 : start] + text[end:]
    if start == child.start:  # the first on its line: what follows takes its place
        while text[end] in " \t":
            end += 1
    return text[:start] + text[end:]


def _behind_last(text: str, box: Node, new: str, gap: str, newline: str) -> str:
    last = box.children[-1]
    behind = last.end if last.comma is None else last.comma + 1
    place = comments_end(text, behind, box.end - 1)
    if place > behind and "\n" not in gap:  # a comment to the end of the line would swallow it
        gap = newline + _line_indent(text, last.start)
    if last.comma is not None:
        return text[:place] + gap + new + "," + text[place:]
    return text[: last.end] + "," + text[last.end : place] + gap + new + text[place:]


def _into_empty(text: str, box: Node, new: str, gap: str, closing: str) -> str:
    place = comments_end(text, box.start + 1, box.end - 1)
    tail = text[place : box.end - 1]
    if "\n" not in gap and place == box.start + 1:
        gap = closing = ""
    return text[:place] + gap + new + (tail if "\n" in tail else closing) + text[box.end - 1 :]


def _emptied(text: str, box: Node, start: int, end: int) -> str:
    rest = text[box.start + 1 : start] + text[end : box.end - 1]
    if not rest.strip():
        rest = ""
    return text[: box.start + 1] + rest + text[box.end - 1 :]


def _in_lines(text: str, root: Node, box: Node) -> bool:
    if box.children:
        return "\n" in text[box.start : box.children[0].start]
    return "\n" in text[root.start : root.end] or not root.children


def _unit(text: str, root: Node) -> str:
    """One step of indentation: that of the first line within the outermost brackets."""
    if not root.children:
        return INDENT
    own = _inner_indent(text, root, "")
    return own.removeprefix(_line_indent(text, root.start)) or INDENT


def _inner_indent(text: str, box: Node, unit: str) -> str:
    if box.children and "\n" in text[box.start : box.children[0].start]:
        return _line_indent(text, box.children[0].start)
    return _line_indent(text, box.start) + unit


def _line_indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]
