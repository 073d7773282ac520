"""The blocks memoryd itself puts into a conversation, and how to take them out again.

What an agent was handed comes back in its transcript. Were it distilled, every memory would confirm
itself, so both blocks are removed before anything else looks at a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.memory.cited_stream import (
    CITED_CHARACTERS,
    CITED_LIMIT,
    USED_CLOSE,
    USED_OPEN,
    USED_TAG,
    without_citations,
)

__all__ = [
    "CITED_CHARACTERS",
    "CITED_LIMIT",
    "CONTEXT_CLOSE",
    "CONTEXT_OPEN",
    "CONTEXT_TAG",
    "USED_CLOSE",
    "USED_OPEN",
    "USED_TAG",
    "cited",
    "escape_own_blocks",
    "strip_own_blocks",
    "take_out_own_blocks",
    "without_blocks",
]

#: Encloses the notes handed to an agent.
CONTEXT_TAG = "memoryd-context"
CONTEXT_OPEN = f"<{CONTEXT_TAG}>"
CONTEXT_CLOSE = f"</{CONTEXT_TAG}>"

_INDENT = 80
_TAGS = re.compile(rf"<(?=/?(?:{CONTEXT_TAG}|{USED_TAG}))", re.IGNORECASE)


def escape_own_blocks(text: str) -> str:
    """``text``, which a block of ours is to quote, so that nothing in it opens or closes one."""
    return _TAGS.sub("&lt;", text)


def strip_own_blocks(text: str) -> str:
    """``text`` without our context blocks and ``<memory-used>`` tags, trimmed where any was cut.

    A context block that is opened at the start of a line and never closed reaches to the end:
    losing the rest of a cut message is better than learning from ourselves. An unclosed
    ``<memory-used>`` holds nothing of ours, its words stay.
    """
    return take_out_own_blocks(text)[0]


def take_out_own_blocks(text: str) -> tuple[str, tuple[str, ...]]:
    """``strip_own_blocks``, and the notes that the tags outside of context blocks name."""
    if "<" not in text:
        return text, ()
    left = text
    if f"<{CONTEXT_TAG}" in text or CONTEXT_CLOSE in text:
        left = without_blocks(text, CONTEXT_TAG, open_ended=True).replace(CONTEXT_CLOSE, "")
    left, notes = without_citations(left)
    return (text if left == text else left.strip()), notes


def cited(text: str) -> tuple[str, ...]:
    """The note names (``type/name``) inside the ``<memory-used>`` tags of ``text``, in order.

    At most ``CITED_LIMIT``, each once; what could not be a name is left out.
    """
    return without_citations(text)[1]


def without_blocks(text: str, tag: str, *, open_ended: bool, at_line_start: bool = False) -> str:
    """``text`` without each ``<tag ...> ... </tag>``, in one pass whatever it holds.

    ``at_line_start`` removes only blocks that begin a line, so that a tag named in the middle of a
    sentence stays. ``open_ended`` also removes from an unclosed tag at a line start to the end.
    """
    kept: list[str] = []
    position = 0
    for start, end in _spans(text, tag, at_line_start=at_line_start, open_ended=open_ended):
        kept.append(text[position:start])
        position = end
    return "".join(kept) + text[position:] if kept else text


def _spans(
    text: str, tag: str, *, at_line_start: bool = False, open_ended: bool = False
) -> Iterator[tuple[int, int]]:
    """Where each block of ``tag`` begins and ends."""
    opening, closing = f"<{tag}", f"</{tag}>"
    position, last_closing = 0, text.rfind(closing)
    while (start := text.find(opening, position)) >= 0:
        position = start + len(opening)
        if text[position : position + 1] not in {">", " ", "\n", "\t", "\r"}:
            continue
        if at_line_start and not _begins_line(text, start):
            continue
        if position <= last_closing:
            position = text.index(closing, position) + len(closing)
            yield start, position
        elif open_ended and _begins_line(text, start):
            yield start, len(text)
            return


def _begins_line(text: str, start: int) -> bool:
    """Whether only white space, and not much, stands between the last line break and ``start``."""
    before = text[max(0, start - _INDENT) : start]
    return not before.rpartition("\n")[2].strip() and ("\n" in before or start <= _INDENT)
