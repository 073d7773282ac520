"""A provider's answer, read: JSON found in whatever it stands in, each item checked and bounded."""

from __future__ import annotations

import math
import re
from typing import Any, get_args

from memoryd.memory.answer_text import (
    ANSWER_CHARACTERS,
    complete_objects,
    inner_values,
    is_blank,
    markdown,
    one_line,
    whole_values,
)
from memoryd.memory.facts import (
    Answer,
    Category,
    DraftType,
    Evidence,
    Explicitness,
    Fact,
    NoteDraft,
    Refused,
    Relation,
    RelationKind,
    Sensitivity,
)
from memoryd.memory.scanner import redact
from memoryd.memory.text import slug, without_surrogates

ITEMS = 100
STATEMENT_CHARACTERS = 500
DESCRIPTION_CHARACTERS = 300
CONTENT_BYTES = 8 << 10
EVIDENCE_ITEMS = 8
SPAN_CHARACTERS = 2_000

_FACTS_KEY = re.compile(r'"facts"\s*:\s*\[')


class _Bad(Exception):
    """An item that is no fact: the code and what is wrong with it."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def read(text: str) -> Answer:
    """See ``facts.parse_answer``."""
    text = text[:ANSWER_CHARACTERS]
    items, lost = _items(text), 0
    if items is None:
        items, lost = _salvage(text)
        if not items:
            return Answer((), (), whole=False)
    facts: list[Fact] = []
    refused = [Refused("item.malformed", "", "the answer was cut inside this item")] * min(lost, 1)
    if len(items) > ITEMS:
        refused.append(Refused("item.too-many", "", f"{len(items) - ITEMS} items over {ITEMS}"))
    for item in items[:ITEMS]:
        try:
            facts.append(_fact(item))
        except _Bad as bad:
            refused.append(Refused(bad.reason, _said(item), bad.detail))
    return Answer(tuple(facts), tuple(refused), whole=True)


def _items(text: str) -> list[Any] | None:
    """The list of facts of the first well-formed object that has one, else None."""
    for value in whole_values(text):
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return value
        if _has_facts(value):
            return list(value["facts"])
    for value in inner_values(text):
        if _has_facts(value):
            return list(value["facts"])
        if _is_fact_list(value):
            return list(value)
    return None


def _has_facts(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("facts"), list)


def _is_fact_list(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(item, dict) and "statement" in item for item in value
    )


def _salvage(text: str) -> tuple[list[Any], int]:
    """The complete facts of a list that is cut or broken, and how many were lost at least."""
    key = _FACTS_KEY.search(text)
    found, lost = complete_objects(text, key.end() if key else text.find("[") + 1)
    return [value for value in found if "statement" in value], lost


def _said(item: Any) -> str:
    statement = item.get("statement") if isinstance(item, dict) else None
    return one_line(statement, STATEMENT_CHARACTERS) if isinstance(statement, str) else ""


def _fact(item: Any) -> Fact:
    if not isinstance(item, dict):
        raise _Bad("item.malformed", "it is not an object")
    statement = _text(item, "statement")
    if len(statement) > STATEMENT_CHARACTERS:
        raise _Bad("statement.too-long", f"it has more than {STATEMENT_CHARACTERS} characters")
    return Fact(
        statement=one_line(statement, STATEMENT_CHARACTERS),
        category=_one_of(Category, item, "category"),
        evidence=_evidence(item.get("evidence")),
        explicitness=_one_of(Explicitness, item, "explicitness"),
        sensitivity=_one_of(Sensitivity, item, "sensitivity"),
        confidence=_confidence(item.get("confidence")),
        note=_note(item.get("note")),
        relation=_relation(item.get("relation")),
    )


def _text(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    if not isinstance(value, str) or is_blank(value):
        raise _Bad("item.malformed", f"{key} is no text")
    return value


def _one_of(allowed: Any, item: dict[str, Any], key: str) -> Any:
    """The value of ``key`` as one of a Literal's; case, spaces and underscores are put up with."""
    value = item.get(key)
    if isinstance(value, str):
        value = re.sub(r"[ _]+", "-", value[:80].strip().lower())
        if value in get_args(allowed):
            return value
    raise _Bad("item.malformed", f"{key} is not one of {', '.join(get_args(allowed))}")


def _confidence(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise _Bad("item.malformed", "confidence is no number")
    return float(min(1, max(0, value)))


def _finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _evidence(value: Any) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    for item in value[: EVIDENCE_ITEMS * 4] if isinstance(value, list) else ():
        span = item.get("span") if isinstance(item, dict) else None
        if not isinstance(span, str) or not 0 < len(span) <= SPAN_CHARACTERS:
            continue
        label = item.get("message")
        if label is not None and not isinstance(label, str):
            continue
        found.append(Evidence(label.strip(" []:") or None if label else None, span))
    if not found:
        raise _Bad("evidence.missing", "it has no evidence of the form message and span")
    return tuple(found[:EVIDENCE_ITEMS])


def _note(value: Any) -> NoteDraft | None:
    """The drafted note; None for one that is not usable, so that the runtime derives its own."""
    if not isinstance(value, dict):
        return None
    texts = [value.get(key) for key in ("type", "name", "description", "content")]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return None
    kind, name, description, content = map(str, texts)
    kind = kind.strip().lower()
    if len(content.encode("utf-8", "replace")) > CONTENT_BYTES:
        raise _Bad("note.too-long", f"its content has more than {CONTENT_BYTES} bytes")
    if kind not in get_args(DraftType):
        return None
    clean = markdown(content)
    line = one_line(description, DESCRIPTION_CHARACTERS)
    if not clean or not line:
        return None
    # Before it is cut to a slug: a token without its capitals and underscores is still a token.
    plain = redact(without_surrogates(name[:400]))
    if plain[1]:
        raise _Bad("scanner.secret", "its name holds a secret")
    return NoteDraft(_draft_type(kind), slug(plain[0]), line, clean)


def _draft_type(kind: str) -> DraftType:
    known: tuple[DraftType, ...] = get_args(DraftType)
    return next(one for one in known if one == kind)


def _relation(value: Any) -> Relation:
    """The relation; ``new`` for one that names nothing or no known kind."""
    if isinstance(value, dict):
        kind, name = value.get("kind"), value.get("name")
        kinds: tuple[RelationKind, ...] = get_args(RelationKind)
        for known in kinds:
            if kind == known != "new" and isinstance(name, str) and name.strip():
                return Relation(known, one_line(name, 200))
    return Relation("new")
