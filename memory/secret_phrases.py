"""Passphrases of plain words, told from sentences about one by the words themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: A passphrase of plain words, in quotes or to the end of its line.
_PHRASE = re.compile(
    r"pass[ _-]?phrase\\?[\"'`]?\s{0,2}(?P<sign>[:=：])[ \t]{0,2}\\?(?P<quote>[\"'`])?"
    r"(?P<secret>[a-z]{3,12}(?:[ -][a-z]{3,12}){2,9})(?(quote)\\?(?P=quote)|[ \t]*(?:$|(?=\n)))"
)
#: Words of sentences about a passphrase rather than of one.
_SAID = re.compile(
    r"\b(?:"
    r"the|and|are|for|was|has|had|not|but|you|your|from|with|this|that|they|must|when|where"
    r"|which|who|how|what|ask|asks|enter|type|use|used|uses|using|user|users|key|keys|string"
    r"|optional|required|please|pass|passphrase|password|secret|stored|saved|set|same|only|may"
    r"|can|will|should|never|always|every|needs|need|see|read|kept|keep|lives|file|files|any"
    r"|all|unlock|protect|protects|encrypt|encrypts|signing|encryption|private|value|none|empty"
    r"|new|old"
    r")\b"
)


def passphrases(lowered: str) -> Iterator[tuple[int, int]]:
    """(start, end) of the words behind ``passphrase =`` or ``:`` in a text in lower case.

    Three words or more; four behind a colon without quotes, where prose stands as often.
    """
    for match in _PHRASE.finditer(lowered):
        said = match["secret"]
        least = 4 if match["sign"] != "=" and not match["quote"] else 3
        if len(re.split("[ -]", said)) >= least and _SAID.search(said) is None:
            yield match.span("secret")
