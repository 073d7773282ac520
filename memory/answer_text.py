"""JSON in whatever a model wraps it in: fences, prose, an end that was cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memoryd.memory.text import clip, fold, without_surrogates

ANSWER_CHARACTERS = 1 << 20
_STARTS_TRIED = 64
_SALVAGED = 400

_DECODER = json.JSONDecoder()
_FENCE = re.compile(r"```[a-zA-Z]{0,10}\s*\n(.*?)(?:\n\s*```|\Z)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def whole_values(text: str) -> Iterator[Any]:
    """The JSON values that the text, or a fenced block of it, starts with; None for none."""
    fenced = [match[1] for match in _FENCE.finditer(text)][:_STARTS_TRIED]
    for piece in (text, *fenced):
        yield _decoded(piece.strip(), 0)


def inner_values(text: str) -> Iterator[Any]:
    """The JSON values that start at the first brackets and braces anywhere in the text."""
    for count, match in enumerate(re.finditer(r"[\[{]", text)):
        if count == _STARTS_TRIED:
            return
        yield _decoded(text, match.start())


def _decoded(text: str, start: int) -> Any:
    """The JSON value that starts at ``start``; None where there is none that can be read."""
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):  # no JSON, a number of a mile, nested without end
        return None


def complete_objects(text: str, position: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The objects from ``position`` on that are complete where the rest is cut or broken.

    With them, how many were lost at least.
    """
    found: list[dict[str, Any]] = []
    lost = 0
    for _ in range(_SALVAGED):
        position = text.find("{", position)
        if position < 0:
            break
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            lost, position = lost + 1, position + 1
            continue
        found.append(value)
    return found, lost


def one_line(text: str, limit: int) -> str:
    """``text`` on one line of at most ``limit`` characters."""
    return clip(fold(_CONTROL.sub(" ", without_surrogates(text[: limit * 8]))), limit)


def is_blank(text: str) -> bool:
    """Whether nothing of ``text`` can be read."""
    return not fold(_CONTROL.sub(" ", text))


def markdown(text: str) -> str:
    """``text`` as the body of a note: LF line ends, no control characters, trimmed."""
    return _CONTROL.sub("", without_surrogates(text)).replace("\r\n", "\n").strip()
