"""Answers kept of functions of text, so that a store of many notes is not thought over anew for
every slice that is decided on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: Answers kept of one function: some thousand notes in a few megabytes.
ENTRIES = 8_192
#: Longest texts whose answer is kept; usual notes have some hundred characters.
CHARACTERS = 2_000


def kept_for_short(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """``function``, which depends on its texts (str or bytes) alone, with its last answers kept.

    For texts of up to ``CHARACTERS`` in all: so what is kept is bounded whatever the notes hold.
    What the function returns is shared between callers and must not be changed; what it raises is
    not kept.
    """
    kept = cast("Callable[_P, _T]", lru_cache(maxsize=ENTRIES)(function))

    @wraps(function)
    def asked(*texts: _P.args, **named: _P.kwargs) -> _T:
        given = (*texts, *named.values())
        short = sum(len(text) for text in given if isinstance(text, str | bytes)) <= CHARACTERS
        return kept(*texts, **named) if short else function(*texts, **named)

    return asked
