"""What the full-text index holds of a text, and what a word that a person types looks for.

A text becomes two rows of tokens. ``words`` holds it in order: caseless, without accents and Arabic
vowel signs, Arabic letters that people write for one another as one. Scripts without spaces become
overlapping pairs and the last character alone, so that any two characters or more are found.
``parts`` holds what stands inside a word: ``user`` in ``getUserName``, ``1.2`` in ``v1.2.3``, an
Arabic word without its article, each character of the scripts without spaces. Names in
``snake_case``, ``kebab-case``, dots or slashes need none: they are rows of words, and looked for as
such. Everything is linear in the text, whatever it holds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise

#: Of this rule; an index that was made by another is made anew.
VERSION = 1
#: A longer word is known by its beginning.
TOKEN_CHARACTERS = 64
#: A last ``*`` counts this often in a query: each is looked up as all the words it stands for.
_BEGINNINGS = 3
#: Of a phrase as many tokens are looked for; what has these in a row has the rest.
PHRASE_TOKENS = 64
#: A word with more humps and numbers than this is no name but an encoding.
_PARTS = 8

#: Written without spaces (or, Korean, with endings that stick): kana, Han, bopomofo, Hangul, Thai,
#: Lao, Tibetan, Burmese, Khmer.
_PAIRED = (
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u1100-\u11ff\uac00-\ud7af\U00020000-\U000323af"
    "\u0e01-\u0e3e\u0e40-\u0e4e\u0e80-\u0ece\u0f00-\u0f0a\u0f18-\u0f39\u0f3e-\u0fbc"
    "\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd"
)
#: Signs that belong to the letter before them in the scripts of India; no letters to ``re``.
_SIGNS = (
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
    "\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd"
    "\u0b01-\u0b03\u0b3c-\u0b4d\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c4d"
    "\u0c81-\u0c83\u0cbc-\u0ccd\u0d00-\u0d03\u0d3b-\u0d4d\u0d81-\u0d83\u0dca-\u0ddf"
)
_PICTURES = "\u2600-\u27bf\u2b50\u2b55\U0001f300-\U0001faff"
#: ``c++`` and ``c#``; numbers with dots, dashes, slashes or colons, as in versions and dates.
_SPECIAL = (
    r"[a-z](?:\+\+|\#)(?![a-z0-9])"
    r"|v?[0-9]++(?:\.[0-9]++)+|[0-9]++(?:-[0-9]++)+|[0-9]++(?:/[0-9]++)+|[0-9]++(?::[0-9]++)+"
)
_ASCII = re.compile(rf"{_SPECIAL}|[a-z0-9]++")
_WORD = rf"[^\W_{_PAIRED}]++(?:[{_SIGNS}]++[^\W_{_PAIRED}]*+)*+"
_TOKEN = re.compile(rf"{_SPECIAL}|[{_PAIRED}]++|{_WORD}|[{_PICTURES}]")
_PAIRED_RUN = re.compile(f"[{_PAIRED}]+")
#: A run that is looked for as one: words and what joins them in names, paths and addresses.
_JOINED = re.compile(
    rf"(?:[^\W_{_PAIRED}]|[{_PAIRED}{_SIGNS}])++"
    rf"(?:[_.\-/\\:@#+'’~=]++(?:[^\W_{_PAIRED}]|[{_PAIRED}{_SIGNS}])++)*+[+#]*+|[{_PICTURES}]"
)
#: A word that changes from small to great letters, or between letters and digits.
_HUMPED = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z]?+[a-z]++[A-Z0-9]|[A-Z]{2,}+[a-z0-9]|[A-Z][0-9]|[0-9]++[A-Za-z])"
    r"[A-Za-z0-9]*+"
)
_ASCII_WORD = re.compile(r"[A-Za-z0-9]++")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LETTERED = re.compile(r"[A-Za-z]+")
_SEPARATOR = re.compile(r"[-/:]")
_QUOTES = re.compile(r'[“”„‟«»"]')

#: And, so; with, like or for the; the.
_ARABIC_WORD = re.compile("([وف]?)((?:[بك]?ال|لل)?)(.+)")


def _letters() -> dict[int, str | None]:
    """What is left out of a folded text, and which letters stand for another."""
    gone = [
        *range(0x300, 0x370),  # accents
        *(*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7),  # Hebrew points
        *(0x640, *range(0x64B, 0x660), 0x670, *range(0x6D6, 0x6EE)),  # Arabic vowel signs
        *(0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF),
        *range(0xFE00, 0xFE10),
    ]
    table: dict[int, str | None] = dict.fromkeys(gone)
    for others, letter in (
        ("ٱ", "ا"),
        ("ىیې", "ي"),
        ("ةہھە", "ه"),
        ("ک", "ك"),
        *(("ø", "o"), ("Ø", "o"), ("ł", "l"), ("Ł", "l"), ("đ", "d"), ("Đ", "d"), ("ı", "i")),
        *(("æ", "ae"), ("Æ", "ae"), ("œ", "oe"), ("Œ", "oe")),
    ):
        table |= dict.fromkeys(map(ord, others), letter)
    for zero in (0x660, 0x6F0, 0x966):  # Arabic, Persian and Devanagari digits
        table |= {zero + digit: str(digit) for digit in range(10)}
    return table


_LETTERS = _letters()
_LETTER = re.compile(f"[{''.join(map(chr, _LETTERS))}]")


def fold(text: str) -> str:
    """``text`` caseless, in compatibility form, without accents and vowel signs."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text)
    if _LETTER.search(plain):
        plain = plain.translate(_LETTERS)
    return unicodedata.normalize("NFC", plain.casefold())


def index_tokens(text: str) -> tuple[str, str]:
    """What of ``text`` goes into the index: its words, and the parts of them; spaces between."""
    folded = fold(text)
    words: list[str] = []
    parts: list[str] = []
    if folded.isascii():
        found = _ASCII.findall(folded)
        if not found or ("".join(found).isalnum() and len(max(found, key=len)) <= TOKEN_CHARACTERS):
            words = found
        else:
            _take_ascii(found, words, parts)
    else:
        _take(_TOKEN.findall(folded), words, parts)
    for word in dict.fromkeys(_HUMPED.findall(text)):
        parts += _humps(word)
    return " ".join(words), " ".join(parts)


def _take_ascii(found: list[str], words: list[str], parts: list[str]) -> None:
    for token in found:
        if token.isalnum():
            words.append(token[:TOKEN_CHARACTERS])
        elif token[-1].isdigit():  # a version or a date: one token, however its numbers are joined
            words.append(_number(token))
            parts += _inside(token)
        else:
            words.append(token)
            parts.append(token[0])  # the language of c++


def _take(found: list[str], words: list[str], parts: list[str]) -> None:
    characters: set[str] = set()
    for token in found:
        if token.isascii():
            _take_ascii([token], words, parts)
        elif _PAIRED_RUN.match(token):
            words += [one + other for one, other in pairwise(token)]
            words.append(token[-1])
            characters.update(token)
        else:
            words.append(token[:TOKEN_CHARACTERS])
            if "\u0621" <= token[0] <= "\u064a":
                parts += _bare(token)
    parts += sorted(characters)


def _number(token: str) -> str:
    return _SEPARATOR.sub(".", token.removeprefix("v"))[:TOKEN_CHARACTERS]


def _inside(token: str) -> list[str]:
    """The beginnings of a version or date, and its numbers."""
    numbers = _number(token).split(".")
    begins = [".".join(numbers[:end]) for end in range(2, min(len(numbers), _PARTS))]
    versioned = ["v" + numbers[0]] if token[0] == "v" else []
    return [*versioned, *begins, *dict.fromkeys(numbers[:_PARTS])]


def _bare(token: str) -> list[str]:
    """An Arabic word, folded, without the ``and`` written together with it, then the article."""
    split = _ARABIC_WORD.match(token)
    assert split is not None
    conjunction, article, bare = split.groups()
    found = []
    if conjunction and len(article + bare) > 2:
        found.append(article + bare)
    if article and len(bare) > 1:
        found.append(bare)
    return [each[:TOKEN_CHARACTERS] for each in found]


def _humps(word: str) -> list[str]:
    """``get``, ``user``, ``name`` of ``getUserName``; ``python`` and ``3`` of ``python3``."""
    if len(word) > TOKEN_CHARACTERS:
        return []
    parts = _PART.findall(word)
    numbered = any(part.isdigit() for part in parts)
    if not 1 < len(parts) <= _PARTS or (numbered and min(map(len, _LETTERED.findall(word))) < 3):
        return []  # `t09`, and encodings such as a digest
    return [part.lower() for part in parts]


@dataclass(frozen=True)
class Term:
    """One thing that a message must hold: one of ``phrases``, each a row of tokens.

    ``typed`` is what the person wrote; ``begins`` says that the last token may go on.
    """

    typed: str
    phrases: tuple[tuple[str, ...], ...]
    begins: bool = False

    def match(self) -> str:
        """The term in the language of FTS5, in which nothing of it can mean anything else."""
        star = " *" if self.begins else ""
        each = (f'"{" ".join(phrase)}"{star}' for phrase in self.phrases)
        return f"({' OR '.join(each)})"

    def single(self) -> list[Term]:
        """Its tokens as terms of their own: what a message may have some of."""
        if len(self.phrases[0]) == 1:
            return [self]
        return [Term(token, ((token,),)) for token in dict.fromkeys(self.phrases[0])]


def terms(query: str) -> list[Term]:
    """What a person looks for who types ``query``: each word, name or ``"quoted phrase"``, once.

    A last ``*`` after three letters or more stands for whatever ends the word, three times in a
    query. Nothing else means anything but itself; a quotation mark without its second is passed
    over.
    """
    pieces = _QUOTES.sub('"', query).split('"')
    found: dict[tuple[object, ...], Term] = {}
    beginnings = 0
    for at, piece in enumerate(pieces):
        quoted = at % 2 == 1 and at < len(pieces) - 1
        for term in [_quoted(piece)] if quoted else _typed(piece):
            if term is None:
                continue
            beginnings += term.begins
            if beginnings > _BEGINNINGS:
                term = replace(term, begins=False)
            found.setdefault((term.phrases, term.begins), term)
    return list(found.values())


def _quoted(piece: str) -> Term | None:
    tokens = _looked_for(piece)
    if not tokens:
        return None
    return Term(" ".join(piece.split()), (tuple(tokens),), _may_begin_a_pair(tokens))


def _typed(piece: str) -> Iterator[Term]:
    """The words of what stands outside of quotation marks."""
    for run in _JOINED.finditer(piece):
        typed = run[0]
        tokens = _looked_for(typed)
        if not tokens:
            continue
        begins = piece[run.end() : run.end() + 1] == "*" and len(tokens[-1]) > 2
        phrases = {tuple(tokens): None, **dict.fromkeys(_alternatives(typed, tokens))}
        yield Term(typed, tuple(phrases), begins or _may_begin_a_pair(tokens))


def _looked_for(text: str) -> list[str]:
    """The words of ``text``, but for the last character of a last run that pairs already cover."""
    words = index_tokens(text)[0].split()
    if len(words) > 1 and _PAIRED_RUN.match(words[-1]) and len(words[-1]) == 1:
        pair = words[-2]
        if len(pair) == 2 and _PAIRED_RUN.match(pair) and pair[1] == words[-1]:
            words.pop()
    return words[:PHRASE_TOKENS]


def _may_begin_a_pair(tokens: list[str]) -> bool:
    """Whether a phrase ends in a character that a text may have in a pair; alone it is a part."""
    return len(tokens) > 1 and len(tokens[-1]) == 1 and bool(_PAIRED_RUN.match(tokens[-1]))


def _alternatives(typed: str, tokens: list[str]) -> Iterator[tuple[str, ...]]:
    """Other ways in which the same name or word may stand in a text."""
    words = _ASCII_WORD.findall(typed)
    if any(map(_humps, words)):
        parts = (part for word in words for part in _humps(word) or [word.lower()])
        yield tuple(islice(parts, PHRASE_TOKENS))
    if len(tokens) == 1 and "\u0621" <= tokens[0][0] <= "\u064a":
        for bare in _bare(tokens[0]):
            yield (bare,)
