"""One choice put in the place of another: "use B, not A" against the note that says to use A."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memoryd.memory.providers.base import ShownNote
from memoryd.memory.providers.rules_found import is_tool, tidy
from memoryd.memory.values import sense_key, without_said_as

_NAME = r"`?[A-Za-z][\w.+#@/-]*`?(?: [A-Za-z][\w.+#@-]*)?"
_OPENS = r"(?:from now on,? )?(?:please )?(?:(?:always|only) )?"
_DOES = r"(?:(?:we|i|the project|our team) )?(?:now )?(?:uses?|prefers?)"
_FOR = r"(?: (?P<where>for|in|as) (?P<for>[^,;:]+?))?"
_NOT = r"(?:,? (?:and )?(?:not|never)|,? instead of|,? rather than)"
_REPLACES = tuple(
    re.compile(expression, re.IGNORECASE)
    for expression in (
        rf"{_OPENS}{_DOES} (?P<new>{_NAME}){_FOR}{_NOT} (?P<old>{_NAME})",
        rf"{_OPENS}{_DOES} (?P<new>{_NAME}){_NOT} (?P<old>{_NAME}){_FOR}",
        rf"we(?:'ve| have)? (?:just )?(?:moved|switched|migrated)(?: over)? from (?P<old>{_NAME})"
        rf" to (?P<new>{_NAME}){_FOR}",
    )
)
_CHOOSES = re.compile(
    rf"{_OPENS}{_DOES} (?P<new>{_NAME}){_FOR}(?:(?:{_NOT}|,? over) {_NAME}(?: for (?P<also>.+))?)?",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"\band\b.* (?:for|in|as)\b", re.IGNORECASE)
_EVERYWHERE = re.compile(
    r"(?:(?:this|our|the) )?(?:project|repo|repository|code ?base|everything)", re.IGNORECASE
)


def replaced(statement: str, notes: Sequence[ShownNote]) -> ShownNote | None:
    """The one note that says no more than to use what ``statement`` puts something else for.

    None where no note does, where several do, or where both say what for and differ in it.
    """
    said = tidy(statement)
    match = next((found for one in _REPLACES if (found := one.fullmatch(said))), None)
    if match is None or _same(match["new"], match["old"]):
        return None
    met = [note for note in notes if _is_choice(note, match["old"], match["for"])]
    return met[0] if len(met) == 1 else None


def _is_choice(note: ShownNote, value: str, purpose: str | None) -> bool:
    body = without_said_as(note.body)
    match = _CHOOSES.fullmatch(tidy(body or note.description)) if "\n" not in body else None
    if match is None:
        return False
    if not _same(match["new"], value) or _SEVERAL.search(match["for"] or ""):
        return False
    asked, told = _purposes(purpose), _purposes(match["for"], match["also"])
    # "Use tabs in Makefiles" is an exception to a rule, "use pnpm for packages" what pnpm is for.
    scoped = match["where"] == "in" or not is_tool(value.strip("`"))
    return asked == told if scoped else len(asked | told) <= 1


def _purposes(*said: str | None) -> set[str]:
    return {sense_key(each) for each in said if each and not _EVERYWHERE.fullmatch(each)}


def _same(one: str, other: str) -> bool:
    return one.strip("`").casefold() == other.strip("`").casefold()
