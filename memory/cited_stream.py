"""The ``<memory-used>`` tags of an answer: what they name, and the answer without them.

One reader serves a whole text and a stream of pieces, so that both give the same words whatever the
cuts. A tag is cut out with the white space before it; where words stand on both sides, the larger
gap of the two stays. A code fence that holds nothing else goes with it. An opening without an end
is no tag, its words stay; so is one before another opening. An end without an opening is dropped:
then no end is left in what comes out, and reading that again changes nothing.
"""

from __future__ import annotations

import re
from typing import Literal

#: Encloses the names of the notes an agent says shaped its answer.
USED_TAG = "memory-used"
USED_OPEN = f"<{USED_TAG}>"
USED_CLOSE = f"</{USED_TAG}>"

#: Names taken from one answer at most; one that cites more is not citing.
CITED_LIMIT = 32
#: Longest believable name of a note, ``type/name``.
CITED_CHARACTERS = 200
#: Longest content of a tag; what is longer is no tag.
TAG_CHARACTERS = 8192

_MARKER = re.compile(f"</?{USED_TAG}>", re.IGNORECASE | re.ASCII)
_TOKEN = re.compile(
    f"(?P<mark></?{USED_TAG}>)|(?P<fence>```)|(?P<space>[ \t\r\n]+)|[^<` \t\r\n]+|[<`]",
    re.IGNORECASE | re.ASCII,
)
#: What may become longer with the next piece.
_BEGINNINGS = (USED_OPEN, USED_CLOSE, "```")
_NOTE = re.compile(r"[A-Za-z]+/[^\s/]+")
#: What follows the backticks of a fence: the name of a language.
_LANGUAGE = re.compile(r"[\w+-]{1,20}")

#: Pieces that wait for what follows: white space, words of a fence, a place where a tag was cut.
_Kind = Literal["space", "text", "cut"]


def without_citations(text: str) -> tuple[str, tuple[str, ...]]:
    """``text`` without its tags, and the notes (``type/name``) they name, in order, each once."""
    if not _MARKER.search(text):
        return text, ()
    stream = CitedStream()
    shown = stream.write(text) + stream.flush()
    return shown, stream.cited


class CitedStream:
    """Takes an answer in pieces and gives what of it may be shown; ``flush`` gives the rest.

    From an opening marker on nothing is shown until it turns out to be a tag or not; neither is
    what could still become one, nor white space and an opened code fence that would go with it.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._shown: list[str] = []
        #: The end of all that was shown, as long as a marker.
        self._end = ""
        self._waiting: list[tuple[_Kind, str]] = []
        self._tag: list[str] | None = None
        self._tag_size = 0
        self._fence = _Fence()
        self._line_start = True
        self._in_code = False
        self._cited: dict[str, None] = {}

    @property
    def cited(self) -> tuple[str, ...]:
        """The notes named so far, in order, each once, at most ``CITED_LIMIT``."""
        return tuple(self._cited)[:CITED_LIMIT]

    def write(self, piece: str) -> str:
        """Take the next piece; what may be shown now."""
        text, position = self._rest + piece, 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            assert found is not None  # every character begins a token
            if found[0] in {"<", "`"} and _may_grow(text, position):
                break
            self._take(found.lastgroup or "text", found[0])
            position = found.end()
        self._rest = text[position:]
        return self._taken()

    def flush(self) -> str:
        """The answer is over: what was held back and is no tag."""
        rest, self._rest = self._rest, ""
        if rest:
            self._take("text", rest)
        if self._tag is not None:
            self._release_tag()
        if self._fence.state == "closed":
            self._drop_fence()
        elif self._fence.state != "none":
            self._release_fence()
        words = [at for at, (kind, _) in enumerate(self._waiting, 1) if kind == "text"]
        after = self._waiting[max(words, default=0) :]
        del self._waiting[max(words, default=0) :]
        self._show_waiting()
        if ("cut", "") not in after:
            self._waiting = after
            self._show_waiting()
        return self._taken()

    def _taken(self) -> str:
        shown = "".join(self._shown)
        self._shown.clear()
        return shown

    # -- tokens ----------------------------------------------------------------------------------

    def _take(self, kind: str, token: str) -> None:
        if self._tag is not None and kind != "mark":
            self._tag.append(token)
            self._tag_size += len(token)
            if self._tag_size > TAG_CHARACTERS:
                self._release_tag()
        elif kind == "space":
            self._take_space(token)
        elif kind == "fence":
            self._take_fence(token)
        elif kind != "mark":
            self._take_text(token)
        elif token.startswith("</"):
            self._take_close()
        else:
            self._take_open(token)

    def _take_open(self, token: str) -> None:
        if self._tag is not None:
            self._release_tag()
        self._require_inside_fence()
        self._tag, self._tag_size = [token], 0

    def _take_close(self) -> None:
        self._require_inside_fence()
        if self._tag is not None:
            for note in _notes("".join(self._tag[1:])):
                if len(self._cited) < CITED_LIMIT:
                    self._cited[note] = None
        self._tag = None
        self._waiting.append(("cut", ""))
        self._fence.has_tag = True

    def _release_tag(self) -> None:
        """It was no tag: its words are read again as what they are."""
        tokens, self._tag = self._tag or [], None
        self._take_text(tokens[0])
        for token in tokens[1:]:
            found = _TOKEN.match(token)
            self._take((found.lastgroup if found else None) or "text", token)

    def _take_space(self, token: str) -> None:
        self._waiting.append(("space", token))
        if "\n" not in token:
            return
        self._line_start = True
        if self._fence.state == "opened":
            self._fence.state = "inside"
        elif self._fence.state == "closed":
            self._drop_fence(after=token)

    def _take_fence(self, token: str) -> None:
        fence = self._fence
        if fence.state == "inside" and fence.has_tag and self._line_start:
            fence.state = "closed"
            self._waiting.append(("text", token))
        elif fence.state == "none" and self._line_start and not self._in_code:
            self._fence = _Fence("opened", len(self._waiting))
            self._waiting.append(("text", token))
        else:
            self._take_text(token, ends_code=self._line_start)
            return
        self._line_start = False

    def _take_text(self, token: str, *, ends_code: bool = False) -> None:
        """Words: they are shown, and all that waited before them."""
        if self._fence.state == "opened" and self._names_language(token):
            self._waiting.append(("text", token))
            return
        if self._fence.state != "none":
            self._release_fence()
        if ends_code:
            self._in_code = False
        self._show_waiting()
        self._show(token)
        self._line_start = False

    # -- fences ----------------------------------------------------------------------------------

    def _names_language(self, token: str) -> bool:
        words = [text for _, text in self._waiting[self._fence.begin + 1 :]]
        return bool(_LANGUAGE.fullmatch("".join((*words, token))))

    def _require_inside_fence(self) -> None:
        """A tag in the line of a fence, or after it, is no fence's only content."""
        if self._fence.state in {"opened", "closed"}:
            self._release_fence()

    def _release_fence(self) -> None:
        self._in_code = True
        self._fence = _Fence()

    def _drop_fence(self, after: str = "") -> None:
        del self._waiting[self._fence.begin :]
        self._waiting += [("cut", ""), ("space", after)]
        self._fence = _Fence()

    # -- showing ---------------------------------------------------------------------------------

    def _show(self, text: str) -> None:
        if text:
            self._shown.append(text)
            self._end = (self._end + text)[-len(USED_CLOSE) :]

    def _show_waiting(self) -> None:
        gap: list[str] = [""]
        for kind, text in self._waiting:
            if kind == "space":
                gap[-1] += text
            elif kind == "cut":
                gap.append("")
            else:
                self._show(self._gap(gap) + text)
                gap = [""]
        self._show(self._gap(gap))
        self._waiting.clear()

    def _gap(self, spaces: list[str]) -> str:
        """What stays of the white space around the places where tags were cut."""
        if len(spaces) == 1:
            return spaces[0]
        if not self._end:
            return ""
        lines = max(space.count("\n") for space in spaces)
        if lines:
            indented = [space for space in spaces if "\n" in space][-1]
            return "\n" * lines + indented.rpartition("\n")[2]
        if any(spaces):
            return next(filter(None, spaces))
        # The words on both sides must not become an end of a tag.
        return " " if _begins_marker(self._end) else ""


class _Fence:
    """A code fence that may hold nothing but tags, and where it begins among what waits.

    ``opened``: its first line goes on; ``inside``: white space and tags so far; ``closed``: only
    the end of its last line is to come.
    """

    def __init__(
        self,
        state: Literal["none", "opened", "inside", "closed"] = "none",
        begin: int = 0,
    ) -> None:
        self.state = state
        self.begin = begin
        self.has_tag = False


def _notes(inner: str) -> list[str]:
    names = (name.strip().rstrip(".; \t\r\n") for name in inner.split(",", CITED_LIMIT * 4))
    return [name for name in names if len(name) <= CITED_CHARACTERS and _NOTE.fullmatch(name)]


def _may_grow(text: str, position: int) -> bool:
    """Whether all that is left of ``text`` is the beginning of a marker or a fence."""
    left = text[position : position + len(USED_CLOSE)].lower()
    return len(text) - position < len(USED_CLOSE) and any(
        beginning.startswith(left) for beginning in _BEGINNINGS
    )


def _begins_marker(end: str) -> bool:
    """Whether a text that ends so could go on to an end of a tag."""
    start = end.rfind("<")
    return start >= 0 and USED_CLOSE.startswith(end[start:].lower())
