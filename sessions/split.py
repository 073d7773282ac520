"""Long messages in parts that fit a chunk."""

from __future__ import annotations

#: Longest part of a message, in characters.
PART_CHARACTERS = 8_000

#: What a part may end with, best first; never so early that less than half a part is left.
_ENDINGS = ("\n\n", "\n", "。", ". ", "؟ ", "? ", "! ", " ")


def parts(text: str) -> list[str]:
    """``text`` in order, in parts of at most ``PART_CHARACTERS``; joined they are ``text`` again.

    Cut after a paragraph, else a line, a sentence, a space, else where the part is full.
    """
    cut: list[str] = []
    start = 0
    while len(text) - start > PART_CHARACTERS:
        end = _end(text, start)
        cut.append(text[start:end])
        start = end
    cut.append(text[start:])
    return cut


def _end(text: str, start: int) -> int:
    full = start + PART_CHARACTERS
    for ending in _ENDINGS:
        found = text.rfind(ending, start + PART_CHARACTERS // 2, full)
        if found >= 0:
            return found + len(ending)
    return full
