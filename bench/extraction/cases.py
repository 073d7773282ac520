"""The corpus as values: sessions, the notes that were there, and what must be told afterwards."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).with_name("sessions.toml")
#: Looks like a key and is none; in pieces, so that no scanner trips on this file.
SECRET = "sk-" + "ant-api03-" + "Q7w9" * 12
_FILLER = "The build prints a long line here. "
_TYPES = {
    "preference": "feedback",
    "operating-style": "feedback",
    "personal": "user",
    "other": "user",
}


@dataclass(frozen=True)
class Written:
    """A note that is there before the first session."""

    path: str
    body: str
    valid_from: str
    by_person: bool


@dataclass(frozen=True)
class Said:
    """One session: (role, words) in order, and the model's facts about it or its raw answer."""

    messages: tuple[tuple[str, str], ...]
    facts: tuple[dict[str, Any], ...]
    answer: str


@dataclass(frozen=True)
class Case:
    """One case of the corpus; see the head of ``sessions.toml`` for what each key means."""

    id: str
    held_out: bool
    notes: tuple[Written, ...]
    sessions: tuple[Said, ...]
    keep: tuple[str, ...]
    model: tuple[str, ...]
    also: tuple[str, ...]
    gone: tuple[str, ...]
    model_gone: tuple[str, ...]
    noise: str


def load(path: Path = CORPUS) -> list[Case]:
    """Every case of the corpus, in the file's order; each third is held out."""
    with path.open("rb") as file:
        found = tomllib.load(file)["case"]
    return [_case(value, held_out=at % 3 == 2) for at, value in enumerate(found)]


def _case(value: dict[str, Any], *, held_out: bool) -> Case:
    fill = _FILLER * (value.get("fill", 0) // len(_FILLER))
    sessions = [
        _session(value, number, fill) for number in ("", "2", "3") if f"said{number}" in value
    ]
    lists = {key: tuple(value.get(key, ())) for key in ("keep", "model", "also", "gone")}
    return Case(
        id=value["id"],
        held_out=held_out,
        notes=tuple(Written(n[0], n[1], n[2], "person" in n[3:]) for n in value.get("notes", ())),
        sessions=tuple(sessions),
        model_gone=tuple(value.get("model_gone", ())),
        noise=value.get("noise", ""),
        **lists,
    )


def _session(value: dict[str, Any], number: str, fill: str) -> Said:
    lines = [line.partition(": ") for line in value[f"said{number}"]]
    messages = tuple((role, _filled(text, fill)) for role, _, text in lines)
    facts = tuple(_fact(given, messages) for given in value.get(f"facts{number}", ()))
    return Said(messages, facts, value.get(f"answer{number}", ""))


def _filled(text: str, fill: str) -> str:
    return text.replace("{{FILL}}", fill).replace("{{SECRET}}", SECRET)


def _fact(given: list[str], messages: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """One fact as the model answers it: ``[statement, category, span, relation, ...]``."""
    padded = [*given, *[""] * (8 - len(given))]
    statement, category, span, relation, name, body, explicitness, sensitivity = padded
    users = [text for role, text in messages if role == "user"]
    if span.startswith("u") and span[1:].isdigit():
        span = users[int(span[1:]) - 1]
    kind, _, met = relation.partition(":")
    note = None
    if name:
        note = {
            "type": _TYPES.get(category, "project"),
            "name": name,
            "description": _filled(statement, ""),
            "content": body or _filled(statement, ""),
        }
    return {
        "statement": _filled(statement, ""),
        "category": category,
        "evidence": [{"message": None, "span": span}],
        "explicitness": explicitness or "explicit",
        "sensitivity": sensitivity or "none",
        "confidence": 0.9,
        "note": note,
        "relation": {"kind": kind or "new", "name": met or None},
    }


def answer(said: Said, noise: str, shown: str) -> str:
    """What the model says about the messages whose text is ``shown``, with its noise."""
    if said.answer:
        return said.answer
    every = "\n".join(text for _, text in said.messages)
    facts = [
        fact
        for fact in said.facts
        if (span := fact["evidence"][0]["span"]) in shown or span not in every
    ]
    text = json.dumps({"facts": facts}, ensure_ascii=False)
    noisy = {
        "fence": f"```json\n{text}\n```",
        "prose": f"Sure! This is what I would keep:\n\n{text}\n\nTell me if you want more.",
        "cut": text.removesuffix("]}") + ', {"statement": "Prefers to be cut in the mid',
        "array": json.dumps(facts, ensure_ascii=False),
    }
    return noisy.get(noise, text)
