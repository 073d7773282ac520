"""Standing statements in English: habits of a team, tastes, names, places, dates, replacements."""

from __future__ import annotations

import re
from collections.abc import Callable

from memoryd.memory.providers import rules_guards as guards
from memoryd.memory.providers.rules_found import (
    HABITS,
    WHAT,
    Found,
    command,
    host,
    sentence,
    tidy,
    word_set,
)

#: Things of a kind rather than a thing: what a taste may be of.
_GENERAL = re.compile(
    r"(?:[\w-]+ ){0,2}(?:\w+s|code|emoji|yaml|whitespace|boilerplate|inheritance|composition"
    r"|markdown)\b.* (?:in|for|with|without|over|to|of|per|as) .+"
    r"|(?:small|short|long|tiny|big|flat|plain|explicit|implicit|early|deep|nested|clever|terse"
    r"|verbose|descriptive|inline|functional|pure|strict|lazy) \w+s\b.*",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"(?:the|this|that|these|those|it|your|how|what|when|where|you|him|her|them|all|an?)\b"
    r"|(?:do|see|tak|go|be|hav|gett|work|mak|play|watch|read|spend|hang|look)ing\b"
    r"|to (?:see|know|have|get|try|add|change|be)\b"
    r"|.*\b(?:bugs?|errors?|failures?|issues?|problems?|conflicts?|surprises?|flaky|mondays?"
    r"|meetings?|deadlines?|outages?|crash(?:es)?|warnings?|ideas?|looks?|results?)\b",
    re.IGNORECASE,
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    rf"\b(?:\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}|{_MONTH} \d{{1,4}}"
    rf"|\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?|(?:end of |early |mid |late )?q[1-4]|end of {_MONTH})\b",
    re.IGNORECASE,
)
_NO_NAME = word_set("back later maybe crazy tomorrow when if old stupid lazy paranoid")
_WORDS_OF_A_TASTE = 14
_WORDS_OF_A_NAME = 8
_HERE = r"(?:this|our|the) (?:project|repo|repository|codebase|code base)"


def _we_do(match: re.Match[str]) -> Found | None:
    if match["verb"].lower() not in HABITS or re.match(r"(?:in|out|up|it|this)\b", match["x"]):
        return None
    return Found(sentence(match[0]), "project", "project")


def _taste(match: re.Match[str]) -> Found | None:
    """A liking is meant to last when it is of a kind of things, not of one that was shown."""
    said = tidy(match["x"])
    if _PASSING.match(said) or guards.one_of_several(said):
        return None
    if len(said.split()) > _WORDS_OF_A_TASTE or not _GENERAL.fullmatch(said):
        return None
    return Found(sentence(match[0]), "preference", "feedback")


def _named_place(match: re.Match[str]) -> Found | None:
    where, subject = host(match["p"]), tidy(match["s"])
    if where is None or guards.no_subject(subject) or len(subject.split()) > _WORDS_OF_A_NAME:
        return None
    return Found(sentence(f"{subject} {match['verb']} {where}"), "project", "reference")


def _instead(match: re.Match[str]) -> Found | None:
    """One thing for another, where both are names and it is said to hold for all."""
    new, old = tidy(match["new"]), tidy(match["old"])
    if not (match["where"] or match["habit"]) or not _are_names(new, old):
        return None
    return Found(f"Use {new} instead of {old}.", "technical-default", "project")


def _deprecated(match: re.Match[str]) -> Found | None:
    old, new = tidy(match["old"]), tidy(match["new"])
    if not _are_names(new, old):
        return None
    return Found(f"{old} is deprecated here, use {new}.", "technical-default", "project")


def _are_names(new: str, old: str) -> bool:
    short = len(f"{new} {old}".split()) <= _WORDS_OF_A_NAME
    return short and not guards.determined(new) and not guards.determined(old)


def _run_with(match: re.Match[str]) -> Found | None:
    """Without "always" only what is written as code: "run with 3 failures" is a report."""
    what = command(match["x"])
    if what is None or not (match["only"] or match["x"].strip().startswith("`")):
        return None
    return Found(f"Run {match['what'].lower()} with `{what}`.", "technical-default", "project")


def _deadline(match: re.Match[str]) -> Found | None:
    if _DATE.search(match["when"]) is None:
        return None
    return Found(sentence(match[0]), "recurring-constraint", "project")


def _called(match: re.Match[str]) -> Found | None:
    name = tidy(match["x"])
    if not re.fullmatch(r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)?", name) or name.lower() in _NO_NAME:
        return None
    return Found(f"Call me {name}.", "personal", "user")


#: Whole statements, and what they are made to.
FORMS: tuple[tuple[str, Callable[[re.Match[str]], Found | None]], ...] = (
    (r"we (?:always|never) (?P<verb>[a-z-]+) (?P<x>.+)", _we_do),
    (
        r"i (?:(?:really|strongly|absolutely|generally|usually) )?"
        r"(?:like|love|hate|dislike|can't stand|cannot stand|don't like|do not like|detest)"
        r" (?P<x>.+)",
        _taste,
    ),
    (
        r"(?P<habit>always )?use (?P<new>.+?) (?:instead of|rather than|and not) (?P<old>.+?)"
        rf"(?P<where>,? (?:in {_HERE}|here|everywhere|from now on|by default|throughout))?",
        _instead,
    ),
    (
        rf"(?P<old>\S+(?: \S+){{0,2}}) is deprecated (?:here|in {_HERE})[,;]? (?:so )?(?:please )?"
        r"use (?P<new>\S+(?: \S+){0,2}?)(?: instead)?",
        _deprecated,
    ),
    (
        rf"(?:the |our )?{WHAT} (?P<only>always |only )?runs? (?:with|using|via|through) (?P<x>.+)",
        _run_with,
    ),
    (
        r"(?:the |our )?(?:[\w.]+ )?(?:deadline|due date|release date|code freeze"
        r"|feature freeze|launch)(?: (?:for|of) .+?)? (?:is|will be)(?: on| by)? (?P<when>.+)",
        _deadline,
    ),
    (r"(?P<s>(?:the|our) .+?) (?P<verb>is|are|runs (?:at|on)) (?P<p>\S+)", _named_place),
    (r"call me (?P<x>.+)", _called),
)
