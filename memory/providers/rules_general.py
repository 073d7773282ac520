"""Rules said as a plain order: of a kind of things, each time, or on a day; in English.

An order is a task more often than a rule. It counts as a rule when what it is about is a kind
(plural, without an article) or comes again and again, and, where the form alone cannot tell, when
nothing else is said in the message: ``Found.alone``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from memoryd.memory.providers import rules_guards as guards
from memoryd.memory.providers.rules_found import HABITS, Found, is_tool, sentence, tidy, word_set
from memoryd.memory.values import distinct_values

_MASS = (
    r"code|emoji|markdown|html|yaml|json|whitespace|boilerplate|inheritance|composition|recursion"
    r"|reflection|jargon|slang|punctuation|monkeypatching|formatting|syntax|notation|versioning"
    r"|case|spelling"
)
_PREPOSITION = (
    r"(?:in|to|for|on|with|without|inside|outside|within|from|before|after|when|that|of|at|into"
    r"|between|across)"
)
_WORD = rf"(?!{_PREPOSITION}\b)[A-Za-z][\w'/.+#-]*"
#: A kind of things: no article, a plural or a word without one.
_KIND = rf"(?:{_WORD} ){{0,3}}(?:(?:{_MASS})\b|[A-Za-z][\w/-]*[a-rt-z]s\b|`[^`]+`)"
_KINDS = rf"{_KIND}(?:,? (?:and|or) {_KIND})?"
_NO_KIND = re.compile(
    r"(?:the|this|that|these|those|it|its|an?|your|my|his|her|their|our|each|every|one|another|both"
    r"|something|anything|same|other|more|any more|so|too|such|all|new|further|extra|additional"
    r"|last|first|second|wrong|current|old|two|three|few|many|some|what|which|how|us|is|to|as|changes|results|rows|entries|items|outputs?)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?:,? because|, (?:since|as|they|it|that)) .+|,? (?:anymore|any more)$", re.I
)
#: What ties an order to the task at hand.
_AT_HAND = re.compile(
    r"\b(?:yet|now|here|again|first|either|too|it|them|just|this|these|those|i|i'm|i've|i'll|he|she"
    r"|they|was|were|line \d+|so far|anyway|instead|until|meanwhile)\b|\w\(|\w\.[a-z]{1,5}\b|[;:]",
    re.IGNORECASE,
)
#: What "the" may stand before all the same: the whole of the work, or a named part of it.
_WHOLE = re.compile(
    r"\b(?:the|our) (?:code|code ?base|repo|repository|project|docs|documentation|tests?|api"
    r"|test suite|commit message|changelog|main branch"
    r"|(?:[\w-]+ )?(?:package|module|folder|directory|layer|library|crate|app|service|frontend|code"
    r"|backend))\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    r"\b(?:the|our|your|my|his|her|their|that (?:one|file|test))\b", re.IGNORECASE
)
#: Orders that forbid a kind by its name alone; others need to say where, too.
_FORBIDS_ALONE = word_set("use commit push merge mix nest hardcode hard-code abbreviate edit log")
_ORDERS = _FORBIDS_ALONE | word_set(
    "add write create include import introduce put generate run deploy release skip leave insert"
    " wrap mock catch raise throw return store name define declare expose export start end"
    " squash rebase disable suppress ignore duplicate copy call depend rely pin reformat rename"
)
_STOPPED = (
    r"(?:us|add|writ|apologi[sz]|putt|creat|committ|end|start|summari[sz]|explain|repeat|ask"
    r"|generat|suggest|wrapp|mock|includ|insert|leav|import|mix|abbreviat|hardcod|nest|append"
    r"|reformatt|offer)ing"
)
_MANNERS = re.compile(r"comments|docstrings|emojis?|disclaimers|abbreviations", re.IGNORECASE)
#: What comes again and again, so that an order for each of it is no task.
_EVENT = (
    r"(?:commits?|commit messages?|releases?|(?:code )?changes?|pull requests?|prs?|merge requests?"
    r"|mrs?|(?:bug ?)?fix(?:es)?|new \w+|features?|(?:feature )?branch(?:es)?|deploys?|deployments?"
    r"|merges?|refactorings?|refactors?|bugs?|(?:architecture )?decisions?|tickets?|tags?)"
)
_PARTS = (
    r"(?:files?|packages?|modules?|functions?|tests?|examples?|docs|documents?|documentation"
    r"|classes|components?|services?|projects?|scripts?|migrations?|imports?|dependencies|queries"
    r"|strings?|variables?|identifiers?|names?|endpoints?|code|messages?|types?|dates?|timestamps?"
    r"|apis?|replies|answers|responses|comments?|configs?|stylesheets?|templates?|snippets?)"
)
_UNIT = r"(?:lines?|characters?|chars?|columns?|words?|parameters?|arguments?|levels?)"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_ORDINAL = r"(?:first|second|third|fourth|last|other|\d+(?:st|nd|rd|th))"
_TERM = r"(?:day|night|morning|evening|week|weekend|month|quarter|sprint|year|release)"
_WHEN = (
    rf"(?:(?:only )?on (?:{_DAY}s(?:,? (?:and|or) {_DAY}s)?|weekdays|weekends|(?:the )?{_ORDINAL} "
    rf"(?:{_DAY}|{_TERM}) of (?:the|each|every) {_TERM})"
    rf"|(?:every|each) (?:{_ORDINAL} |two |three |four )?(?:{_DAY}|{_TERM})s?"
    r"|(?:once|twice) (?:a|per) (?:day|week|month|quarter|sprint)|daily|nightly|weekly|biweekly"
    r"|monthly|quarterly)(?: (?:at|before|after|around) [\w: ]{1,20})?"
)
#: What a project has for long, and what is not so just now.
_LASTS = re.compile(
    r"\b(?:version|api|production|staging|databases?|db|schema|servers?|hosts?|environments?|ci|cd"
    r"|pipeline|registry|library|framework|licen[cs]e|teams?|product"
    r"|customers?|clients?|users?|apps?|services?|repo|repository|project|code ?base|platform"
    r"|docs|documentation|deploy\w*|releases?|(?:main|default|release) branch|prices?|amounts?"
    r"|timestamps?|dates|ids|keys|node|python|java)\b",
    re.IGNORECASE,
)
_PASSES = re.compile(
    r"\b(?:only a|still|now|broken|down|slow|failing|failed|red|green|missing|empty|wrong|already"
    r"|just|draft|(?!staging)\w+ing|\d+ (?:failures?|errors?|warnings?)|out of date|outdated|back"
    r"|unavailable"
    r"|was|were|had|been|ready|done|weird|odd|stuck|full|in progress|on my|flaky)\b",
    re.IGNORECASE,
)
_KEPT_SO = re.compile(
    r"(?:owned|maintained|hosted|managed|generated|versioned|deployed|licensed|limited|shared"
    r"|read-only|vendored|written|stored|supported|frozen|required|public|private|immutable"
    r"|append-only|translated|in \w+$)\b",
    re.IGNORECASE,
)
_PROPER = re.compile(r"(?<!^)\b[A-Z][\w+#.-]*")

_Build = Callable[[re.Match[str]], Found | None]


def find(said: str) -> Found | None:
    """The rule that the plain order or statement ``said`` is; None for what is only a task."""
    plain = _REASON.sub("", said)
    for expression, build in _FORMS:
        match = expression.fullmatch(plain)
        if match is not None:
            found = build(match)
            return _with_reason(found, said[len(plain) :]) if found else None
    return None


def _with_reason(found: Found, reason: str) -> Found:
    return replace(found, statement=sentence(tidy(found.statement) + reason))


def _rule(match: re.Match[str]) -> Found:
    return Found(sentence(match[0]), "operating-style", "feedback", alone=True)


def _general(text: str) -> bool:
    """Whether ``text`` is about a kind of things and not about one that is at hand."""
    rest = _WHOLE.sub("", text)
    return not (_NO_KIND.match(text) or _AT_HAND.search(text) or _ARTICLE.search(rest))


def _forbidden(match: re.Match[str]) -> Found | None:
    verb, kind, where = match["verb"].lower(), match["kind"], match["where"] or ""
    if verb not in _ORDERS or not _general(f"{kind}{where}"):
        return None
    by_name = verb in _FORBIDS_ALONE and " " in kind
    return _rule(match) if where or by_name else None


def _avoided(match: re.Match[str]) -> Found | None:
    kind, where = match["kind"], match["where"] or ""
    return _rule(match) if (where or " " in kind) and _general(f"{kind}{where}") else None


def _stopped(match: re.Match[str]) -> Found | None:
    """A bare word is about the work at hand ("stop writing tests"), but for a manner of writing."""
    said = match["x"]
    lasting = " " in said or _MANNERS.fullmatch(said) is not None
    return _rule(match) if lasting and _general(said) else None


def _each_time(match: re.Match[str]) -> Found | None:
    """For each of what comes again any order; of all that is there only "use" of a kind."""
    if not _general(re.sub(r"^an? ", "", match["x"])):
        return None
    batch = match["part"] or match["all"].lower() in {"all", "any"}
    if batch and match["verb"].lower() != "use":
        return None
    if match["part"] and re.match(r"an? ", match["x"]):
        return None
    return _rule(match)


def _bounded(match: re.Match[str]) -> Found | None:
    return _rule(match) if _general(match["kind"]) else None


def _we_do(match: re.Match[str]) -> Found | None:
    what = match["x"] or ""
    if match["verb"].lower() not in HABITS or re.match(r"(?:in|into|out|up|it|this|that)\b", what):
        return None
    return Found(sentence(match[0]), "project", "project")


def _happens(match: re.Match[str]) -> Found:
    return Found(sentence(match[0]), "project", "project")


def _asked(match: re.Match[str]) -> Found | None:
    return find(tidy(match["x"]))


def _noted(match: re.Match[str]) -> Found | None:
    """What a thing that lasts is for good: a value, a name, or whose it is."""
    subject, value = match["s"], match["y"]
    if guards.no_subject(subject) or guards.about_somebody(match["x"]):
        return None
    if not _LASTS.search(subject) or _PASSES.search(match["x"]):
        return None
    exact = distinct_values(value) or _PROPER.search(f" {value}") or _KEPT_SO.match(value)
    return Found(sentence(match["x"]), "project", "project") if exact else None


def _not_the_other(match: re.Match[str]) -> Found | None:
    """A bare choice only between tools: "use foo, not bar" is about code at hand."""
    tools = is_tool(match["new"].strip("`")) and is_tool(match["old"].strip("`"))
    return Found(sentence(match[0]), "technical-default", "project", alone=True) if tools else None


def _moved(match: re.Match[str]) -> Found | None:
    new, old = match["new"], match["old"]
    if guards.determined(new) or guards.determined(old) or new.lower() == old.lower():
        return None
    tools = is_tool(new.strip("`")) and is_tool(old.strip("`"))
    return Found(sentence(match[0]), "technical-default", "project", alone=not tools)


_NAME = r"`?[A-Za-z][\w.+#@/-]*`?"
_FORMS: tuple[tuple[re.Pattern[str], _Build], ...] = tuple(
    (re.compile(expression, re.IGNORECASE), build)
    for expression, build in (
        (
            rf"(?:don't|do not) (?P<verb>[a-z-]+) (?P<kind>{_KINDS})(?P<where> {_PREPOSITION} .+)?",
            _forbidden,
        ),
        (rf"(?:don't|do not) (?:deploy|release|merge|push|ship|publish) {_WHEN}", _rule),
        (
            rf"avoid (?:using |adding )?(?P<kind>{_KINDS})(?P<where> {_PREPOSITION} .+)?",
            _avoided,
        ),
        (r"stop (?:apologi[sz]|summari[sz])ing(?: in (?:your )?(?:answers|replies))?", _rule),
        (rf"stop {_STOPPED} (?P<x>{_KINDS}(?: {_PREPOSITION} .+)?)", _stopped),
        (
            rf"(?P<verb>use|write|add|create|include|open|run|put) (?P<x>(?:an? )?\S+"
            rf"(?: \S+){{0,4}}?) (?:for|in|with|on|to) (?P<all>every|each|all|any) (?:single )?"
            rf"(?:{_EVENT}|(?P<part>(?:[\w+#-]+ ){{0,2}}?{_PARTS}))",
            _each_time,
        ),
        (
            rf"(?:keep|limit) (?:all )?(?P<kind>{_KIND}) (?:under|below|to|at|within|shorter than"
            r"|less than|(?:at|to) (?:or below|most)|no longer than|to a maximum of)"
            rf" (?:at most )?(?:\d+|[a-z]+) {_UNIT}",
            _bounded,
        ),
        (rf"we (?:only )?(?P<verb>[a-z-]+) (?:(?P<x>\S+(?: \S+){{0,3}}?) )?{_WHEN}", _we_do),
        (
            r"(?:our |the )?(?:[\w-]+ )?(?:deploy(?:ment)?s|releases) (?:always )?"
            rf"(?:happen|go out|ship|run|are) {_WHEN}",
            _happens,
        ),
        (
            r"(?:i (?:want|need)|i(?:'d| would)(?: really)? (?:like|prefer)) you to (?P<x>.+)",
            _asked,
        ),
        (
            rf"note(?: that\b,?|:) (?P<x>(?P<s>(?:the|our|all) (?:\S+ ){{0,4}}?\S+|{_WORD})"
            r" (?:is|are|runs? on|requires?|needs?|supports?|must be|uses?) (?P<y>.+))",
            _noted,
        ),
        (rf"use (?P<new>{_NAME})(?:,| and)? not (?P<old>{_NAME})(?: for {_KIND})?", _not_the_other),
        (
            r"we(?:'ve| have)? (?:just )?(?:moved|switched|migrated)(?: over)? from"
            rf" (?P<old>{_NAME}) to (?P<new>{_NAME})(?: for [\w -]{{2,30}})?",
            _moved,
        ),
    )
)
