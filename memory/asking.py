"""What a caller asks to be saved, read at the edge: checked, folded, coerced.

The order of the checks and what is coerced follow FreeCode's memory tool. A key that is not given
(None, or a list that is none) is kept on an update; an empty list takes the key away.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from memoryd.memory import scanner
from memoryd.memory.errors import UsageError
from memoryd.memory.notes import TYPES, NoteType
from memoryd.memory.text import clip, fold, without_surrogates

#: The types a person or an agent may save; episodes come from consolidation alone.
AUTHORABLE: tuple[NoteType, ...] = tuple(known for known in TYPES if known != "episode")

_NAME_CHARACTERS = 200
_DESCRIPTION_CHARACTERS = 1_000
_DURABLE = ", ".join(AUTHORABLE)


@dataclass(frozen=True)
class Asked:
    """A save that may be carried out. None: not given, keep what is there."""

    type: NoteType
    name: str
    description: str | None
    content: str | None
    tags: tuple[str, ...] | None
    supersedes: tuple[str, ...] | None
    source: str | None


def asked(
    type: object,
    name: object,
    description: object = None,
    content: object = None,
    tags: object = None,
    supersedes: object = None,
    source: str | None = None,
    *,
    anyway: bool = False,
) -> Asked:
    """The request in order, or ``UsageError`` for its first fault: type, name, description,
    content, then what the scanner finds. ``anyway`` lets pass what reads like instructions to a
    model or holds invisible characters; nothing lets a secret pass."""
    kind = note_type(type)
    if kind == "episode":
        raise UsageError(
            "episodes are written by consolidation alone", hint=f"save one of {_DURABLE}"
        )
    made = Asked(
        kind,
        note_name(name),
        None if description is None else line("description", description, _DESCRIPTION_CHARACTERS),
        None if content is None else _text("content", content),
        items(tags),
        items(supersedes),
        source,
    )
    _scan(made, anyway)
    return made


def note_type(value: object) -> NoteType:
    """One of the five types. Raises ``UsageError`` that lists the four one may save."""
    for known in TYPES:
        if value == known:
            return known
    raise UsageError(f"type must be one of {_DURABLE}; this is {_shown(value)}")


def line(key: str, value: object, most: int = _NAME_CHARACTERS) -> str:
    """``value`` as one line of at most ``most`` characters. Raises ``UsageError`` for a blank."""
    text = fold_line(_text(key, value))
    if len(text) > most:
        raise UsageError(
            f"{key} has {len(text)} characters", hint=f"it is one line of at most {most}"
        )
    return text


def note_name(value: object) -> str:
    """``value`` as the name of a note. Raises ``UsageError`` for a blank one and one with a slash.

    A slash parts the type from the name wherever a note is named.
    """
    text = line("name", value)
    if "/" in text or "\\" in text:
        raise UsageError("a name has no slash in it", hint="write it with hyphens")
    return text


def items(value: object) -> tuple[str, ...] | None:
    """A list or comma-separated text as items, blanks and repetitions dropped; None for others."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        return None
    texts = (fold_line(without_surrogates(str(item))) for item in value)
    return tuple(dict.fromkeys(text for text in texts if text))


def fold_line(text: str) -> str:
    """``text`` on one line; what divides lines or words is one space."""
    return " ".join(text.replace("\0", " ").split())


def _text(key: str, value: object) -> str:
    text = without_surrogates(value).strip() if isinstance(value, str) else ""
    if not fold(text):
        raise UsageError(
            f"{key} must be a text that is not blank", hint="leave it out to keep what is there"
        )
    return text


def _scan(made: Asked, anyway: bool) -> None:
    lists = (*(made.tags or ()), *(made.supersedes or ()))
    texts = (made.name, made.description, made.content, made.source, *lists)
    found = scanner.verdicts("\n".join(text for text in texts if text))
    if "secret" in found:
        raise UsageError(
            "it holds a secret; nothing was saved. Notes are plain text and are shown to models",
            hint="save where the credential lives (a variable, a vault), never its value",
        )
    if found and not anyway:
        what = {"injection": "reads like instructions to a model"}
        raise UsageError(
            f"it {what.get(min(found), 'holds invisible characters')}; nothing was saved",
            hint="save it anyway only if the person wants exactly these words",
        )


def _shown(value: object) -> str:
    return clip(json.dumps(value, ensure_ascii=False, default=repr), 80)
