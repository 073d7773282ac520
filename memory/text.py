"""One way to compare what people wrote: folded text, words, similarity, slugs."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_STRAIGHT = str.maketrans(
    {"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"'}
)
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def fold(text: str) -> str:
    """NFC, straight quotes, every run of white space one space, trimmed. Case is kept."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_STRAIGHT).split())


def statement_key(statement: str) -> str:
    """The form in which two statements count as the same: folded, caseless, no final stop."""
    return fold(statement).casefold().rstrip(" .!?؟。").lstrip("-*• ")


def without_surrogates(text: str) -> str:
    """``text`` with lone surrogates, which neither SQLite nor UTF-8 can hold, replaced."""
    return _SURROGATE.sub("\ufffd", text)


def words(text: str) -> list[str]:
    """Caseless words of ``text`` in any script; a run of CJK gives its overlapping pairs.

    Accents and Arabic vowel signs are removed, so that ``café`` and ``cafe`` meet.
    """
    plain = text.casefold()
    if not plain.isascii():
        letters = unicodedata.normalize("NFKD", plain)
        kept = "".join(letter for letter in letters if not unicodedata.combining(letter))
        plain = unicodedata.normalize("NFC", kept)
    found: list[str] = []
    for word in _WORD.findall(plain):
        if _CJK.search(word) and len(word) > 1:
            found.extend(word[index : index + 2] for index in range(len(word) - 1))
        else:
            found.append(word)
    return found


def similarity(one: str, other: str) -> float:
    """Jaccard overlap of the two texts' words, 0..1; 0 when either has none."""
    left, right = set(words(one)), set(words(other))
    if not left or not right:
        return 0.0
    return len(left & right) / len(left | right)


_NOT = (
    (re.compile(r"\bcan't\b"), "cannot"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"(?<=\w)n't\b"), " not"),
)
#: What a name must not end in where it was cut: it would deny the words before.
_DANGLING = re.compile(r"(?:-(?:do|not|never|no|without|unless|instead|of|or|and))+$")


def slug(text: str, limit: int = 48) -> str:
    """A kebab-case ASCII name for ``text``: whole words up to ``limit`` characters.

    "Don't" is "do not", so that a name never says the opposite of its text. Text without ASCII
    words gets ``note-`` and 10 hex of its sha256, so that it has a stable name.
    """
    plain = unicodedata.normalize("NFKD", text.translate(_STRAIGHT)).lower()
    for expression, meant in _NOT:
        plain = expression.sub(meant, plain)
    ascii_words = re.findall(r"[a-z0-9]+", plain)
    name = ""
    for word in ascii_words:
        longer = f"{name}-{word}" if name else word[:limit]
        if len(longer) > limit:
            name = _DANGLING.sub("", name)
            break
        name = longer
    return name or f"note-{hashlib.sha256(fold(text).encode()).hexdigest()[:10]}"


def clip(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, with ``…`` where it was cut."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def counted(count: int, word: str) -> str:
    """So many of them: ``1 job``, ``2 jobs``. ``word`` is one that forms its plural with s."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
