"""A provider's answer to a consolidation, read: merges, at most one episode, promotions.

Like an extraction's, it is one JSON object in whatever it stands in; bad items are dropped singly
and listed. What is well-formed is still not believed: ``memory/consolidation.py`` decides.
Schema: that of FreeCode's consolidation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from memoryd.memory.answer_text import (
    ANSWER_CHARACTERS,
    complete_objects,
    inner_values,
    is_blank,
    markdown,
    one_line,
    whole_values,
)
from memoryd.memory.facts import DraftType, NoteDraft, Refused
from memoryd.memory.notes import day
from memoryd.memory.scanner import redact
from memoryd.memory.text import slug, without_surrogates

ITEMS = 100
DESCRIPTION_CHARACTERS = 300
CONTENT_BYTES = 8 << 10
_NAME_CHARACTERS = 200
_KEYS = frozenset({"merges", "episode", "promote"})

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Merge:
    """Notes to become one. ``into`` and ``supersedes`` are names as the answer gave them."""

    into: str
    supersedes: tuple[str, ...]
    description: str
    content: str


@dataclass(frozen=True)
class EpisodeDraft:
    """What happened, and when; ``happened_at`` is ``YYYY-MM-DD`` or None. ``name`` is a slug."""

    name: str
    description: str
    content: str
    happened_at: str | None = None


@dataclass(frozen=True)
class Proposals:
    """What an answer held. ``whole`` False: no object with a plan was found, a bad answer.

    ``episodes`` has more than one only when the answer listed several.
    """

    merges: tuple[Merge, ...] = ()
    episodes: tuple[EpisodeDraft, ...] = ()
    promotions: tuple[NoteDraft, ...] = ()
    refused: tuple[Refused, ...] = ()
    whole: bool = True


class _Bad(Exception):
    """An item that is no proposal: the code and what is wrong with it."""

    def __init__(self, detail: str, reason: str = "item.malformed") -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def parse_proposals(text: str) -> Proposals:
    """Read an answer. ``{}`` and a plan with nothing in it are whole; never raises."""
    text = text[:ANSWER_CHARACTERS]
    found = next(_objects(text), None)
    lost = 0
    if found is None:
        found, lost = _salvaged(text)
        if found is None:
            return Proposals(whole=False)
    refused: list[Refused] = []
    if lost:
        refused.append(Refused("item.malformed", "", "the answer was cut inside this item"))
    return Proposals(
        _read(found.get("merges"), _merge, refused),
        _read(found.get("episode"), _episode, refused),
        _read(found.get("promote"), _promotion, refused),
        tuple(refused),
    )


def _objects(text: str) -> Iterator[dict[str, Any]]:
    for value in whole_values(text):
        if isinstance(value, dict) and (not value or _KEYS & value.keys()):
            yield value
    for value in inner_values(text):
        if isinstance(value, dict) and _KEYS & value.keys():
            yield value


def _salvaged(text: str) -> tuple[dict[str, Any] | None, int]:
    """The complete items of an object that is cut, told apart by their keys."""
    items, lost = complete_objects(text)
    merges = [item for item in items if "into" in item]
    rest = [item for item in items if "into" not in item and "content" in item]
    promotions = [item for item in rest if "type" in item]
    episodes = [item for item in rest if "type" not in item]
    if not merges and not rest:
        return None, lost
    return {"merges": merges, "episode": episodes, "promote": promotions}, max(lost - 1, 0)


def _read(value: Any, read: Callable[[Any], _Item], refused: list[Refused]) -> tuple[_Item, ...]:
    """The items of ``value``, a list or a single one, that ``read`` accepts."""
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    if len(items) > ITEMS:
        refused.append(Refused("item.too-many", "", f"{len(items) - ITEMS} items over {ITEMS}"))
    found: list[_Item] = []
    for item in items[:ITEMS]:
        try:
            found.append(read(item))
        except _Bad as bad:
            refused.append(Refused(bad.reason, _said(item), bad.detail))
    return tuple(found)


def _said(item: Any) -> str:
    said = item.get("description") if isinstance(item, dict) else None
    return one_line(said, DESCRIPTION_CHARACTERS) if isinstance(said, str) else ""


def _merge(item: Any) -> Merge:
    into = _name(item, "into")
    listed = item.get("supersedes")
    names = [listed] if isinstance(listed, str) else listed
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise _Bad("supersedes is no list of names")
    targets = [one_line(name, _NAME_CHARACTERS) for name in names[:ITEMS]]
    others = tuple(dict.fromkeys(name for name in targets if name and name != into))
    if not others:
        raise _Bad("it supersedes nothing but itself", "merge.no-target")
    return Merge(into, others, _description(item), _content(item))


def _episode(item: Any) -> EpisodeDraft:
    draft = _slug(item), _description(item), _content(item)
    happened = item.get("happened_at")
    return EpisodeDraft(
        *draft, happened_at=day(happened.strip()) if isinstance(happened, str) else None
    )


def _promotion(item: Any) -> NoteDraft:
    kind = _name(item, "type").lower()
    known: tuple[DraftType, ...] = get_args(DraftType)
    for one in known:
        if one == kind:
            return NoteDraft(one, _slug(item), _description(item), _content(item))
    raise _Bad(f"type is not one of {', '.join(known)}")


def _text(item: Any, key: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    if not isinstance(value, str) or is_blank(value):
        raise _Bad(f"{key} is no text")
    return value


def _name(item: Any, key: str) -> str:
    return one_line(_text(item, key), _NAME_CHARACTERS)


def _slug(item: Any) -> str:
    """The name as a slug. A token without its capitals and underscores is still a token, so the
    scanner looks before."""
    plain, secrets = redact(without_surrogates(_text(item, "name")[: _NAME_CHARACTERS * 2]))
    if secrets:
        raise _Bad("its name holds a secret", "scanner.secret")
    return slug(plain)


def _description(item: Any) -> str:
    return one_line(_text(item, "description"), DESCRIPTION_CHARACTERS)


def _content(item: Any) -> str:
    text = _text(item, "content")
    if len(text.encode("utf-8", "replace")) > CONTENT_BYTES:
        raise _Bad(f"its content has more than {CONTENT_BYTES} bytes", "note.too-long")
    return markdown(text)
