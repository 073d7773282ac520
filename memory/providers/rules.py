"""The rules: the default provider. Deterministic, offline, free; they invent nothing.

They read what the person said and keep only sentences whose form says that they are meant to last,
in English and in Arabic. The answer is the same JSON object that a model gives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from memoryd.memory.known import says_same
from memoryd.memory.providers import rules_arabic, rules_english
from memoryd.memory.providers.base import Reply, Request, ShownNote
from memoryd.memory.providers.rules_choices import replaced
from memoryd.memory.providers.rules_found import Found, word_set
from memoryd.memory.providers.rules_statements import says_only, statements
from memoryd.memory.text import clip, slug, statement_key
from memoryd.memory.values import SAID_AS

#: What the rules answer a consolidation, which needs a model.
NO_PROPOSALS = '{"merges": [], "episode": null, "promote": []}'

_CONFIDENCE = 0.9
_DESCRIPTION_CHARACTERS = 160
_NAME_CHARACTERS = 48
_ARABIC = re.compile("[\u0600-\u06ff]")
_FILLERS = word_set(
    "a an the is are was be to of in on at for with and or that this it its we our i my me you your"
    " should must have has had do does than then so as by from now"
)
#: Pairs of words that turn a name round where one of them is left out.
_NOT = re.compile(r"\b(?:do not|don['’]t|instead of)(?=\s)", re.IGNORECASE)
#: Subjects that make a fact private, so that a person decides.
_PRIVATE = re.compile(
    r"\b(?:medical|diagnosis|diagnosed|medication|legal|lawsuit|attorney|financial|bank|salary"
    r"|relationship|spouse|wife|husband|partner|child|children|kids|passport|ssn|social security"
    r"|tokens?|credentials?|passwords?|religion|religious|pregnant|therapy|health|disorder|dyslexic"
    r"|divorced?|married|depress(?:ed|ion)|anxiety|adhd|autis\w+|cancer|disab\w+|sick|hospital|debts?"
    r"|income|loans?|mortgage|visa|immigration|church|mosque|politic\w+|alcohol\w*)\b"
    r"|(?<!\w)(?:راتبي|مرض|طبي|زوجتي|زوجي|أطفالي|كلمة المرور|كلمة السر|جواز)",
    re.IGNORECASE,
)
#: Values of which a person prefers one at a time.
_FAMILIES: tuple[re.Pattern[str], ...] = tuple(
    re.compile(family, re.IGNORECASE)
    for family in (
        r"(?:concise|detailed) replies",
        r"npm|pnpm|yarn|bun",
        r"(?:npm|pnpm|yarn|bun) test",
        r"typescript|javascript",
        r"tabs|spaces",
    )
)


class RulesProvider:
    """Sentences of the person that are meant to last, found by their form."""

    name = "rules"
    costs = False
    consolidates = False

    def complete(self, request: Request) -> Reply:
        """The facts of the request's user messages, each statement once. Never raises.

        They propose nothing to a consolidation, which does its mechanical part without them.
        """
        if request.purpose == "consolidate":
            return Reply(NO_PROPOSALS, input_tokens=0, output_tokens=0)
        facts: dict[str, dict[str, Any]] = {}
        notes = list(request.notes)
        for message in request.messages:
            if message.role != "user":
                continue
            for span, found in find(message.text):
                key = statement_key(found.statement)
                if key not in facts:
                    facts[key] = _fact(message.label, span, found, notes)
                    notes.append(_drafted(message.project, facts[key]["note"]))
        text = json.dumps({"facts": list(facts.values())}, ensure_ascii=False)
        return Reply(text, input_tokens=0, output_tokens=0)


def find(text: str) -> Iterator[tuple[str, Found]]:
    """(exact words, what they want remembered) for each statement of a person's message."""
    told: list[tuple[str, Found]] = []
    for span, statement in statements(text):
        language = rules_arabic if _ARABIC.search(statement) else rules_english
        found = language.find(statement)
        if found is not None:
            told.append((span, found))
    nothing_else = says_only(text, len(told))
    yield from (one for one in told if nothing_else or not one[1].alone)


def _fact(label: str, span: str, found: Found, notes: Sequence[ShownNote]) -> dict[str, Any]:
    return {
        "statement": found.statement,
        "category": found.category,
        "evidence": [{"message": label, "span": span}],
        "explicitness": "explicit",
        "sensitivity": "private" if _PRIVATE.search(found.statement) else "none",
        "confidence": _CONFIDENCE,
        "note": {
            "type": found.type,
            "name": _name(found.statement),
            "description": clip(found.statement, _DESCRIPTION_CHARACTERS),
            "content": _content(found, span),
        },
        "relation": _relation(found, notes),
    }


def _drafted(store: str, note: dict[str, str]) -> ShownNote:
    """The note of a fact before, so that a later one can contradict it by its name."""
    path = f"{note['type']}/{note['name']}.md"
    return ShownNote(store, path, note["type"], note["name"], note["description"], note["content"])


def _name(statement: str) -> str:
    said = _NOT.sub(_spelled_out, statement)
    telling = [word for word in said.split() if word.lower().strip(".,") not in _FILLERS]
    return slug(" ".join(telling) or statement, _NAME_CHARACTERS)


def _spelled_out(match: re.Match[str]) -> str:
    return "do-not" if match[0].lower().startswith("do") else "instead-of"


def _content(found: Found, span: str) -> str:
    """The statement, and the words it stands on where they are others."""
    if statement_key(found.statement) == statement_key(span):
        return found.statement
    return f"{found.statement}\n\n{SAID_AS}{span}"


def _relation(found: Found, notes: Sequence[ShownNote]) -> dict[str, str | None]:
    for note in notes:
        if says_same(note, found.statement):
            return {"kind": "same", "name": note.name}
    family = next((one for one in _FAMILIES if one.fullmatch(found.value)), None)
    for note in notes if family is not None else ():
        other = re.fullmatch(r"Prefer (.+)\.", note.description)
        if family is not None and other is not None and family.fullmatch(other[1]):
            return {"kind": "contradicts", "name": note.name}
    before = replaced(found.statement, notes)
    if before is not None:
        return {"kind": "contradicts", "name": before.name}
    return {"kind": "new", "name": None}
