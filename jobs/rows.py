"""Rows as objects: only those whose values are what the object says."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

Made = TypeVar("Made")


def made(kind: type[Made], rows: Iterable[tuple[Any, ...]]) -> list[Made]:
    """The rows as ``kind``, a dataclass with a field for each column.

    A row that holds something else, which no code of ours writes, is left out: it must not keep
    the others from being shown. The doctor names it (``checks_rows.py``).
    """
    types = _types(cast("Hashable", kind))
    return [kind(*row) for row in rows if all(map(isinstance, row, types))]


@cache
def _types(kind: Any) -> tuple[tuple[type, ...], ...]:
    return tuple(tuple(_plain(each)) for each in get_type_hints(kind).values())


def _plain(hint: Any) -> Iterable[type]:
    """What a value may be an instance of; a whole number is a float as well."""
    if isinstance(hint, UnionType):
        return [plain for each in get_args(hint) for plain in _plain(each)]
    if get_origin(hint) is Literal:
        return [str]
    return [int, float] if hint is float else [hint]
