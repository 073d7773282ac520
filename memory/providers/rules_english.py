"""What a person says in English that is meant to last."""

from __future__ import annotations

import re
from collections.abc import Callable

from memoryd.memory.providers import rules_general as general
from memoryd.memory.providers import rules_guards as guards
from memoryd.memory.providers import rules_standing as standing
from memoryd.memory.providers.rules_found import WHAT, Found, command, place, sentence, tidy

_ROLE = (
    r"(?:engineer|developer|designer|manager|student|scientist|researcher|analyst|architect|admin"
    r"|administrator|sre|teacher|founder|lead|writer|consultant|programmer|freelancer|intern"
    r"|professor|devops|maintainer|tester|statistician|mathematician|physicist|biologist)"
)
_CONCISE = {"short": "concise", "brief": "concise", "concise": "concise", "detailed": "detailed"}

_Build = Callable[[re.Match[str]], Found | None]


def find(statement: str) -> Found | None:
    """What ``statement`` (one sentence, lead-in taken off) wants to be remembered, if anything."""
    bare = re.sub(r"^please,?\s+|,? please$", "", statement.rstrip(" .!"), flags=re.IGNORECASE)
    bare = bare.replace("’", "'")
    for expression, build in _RULES:
        match = expression.fullmatch(bare)
        if match is not None:
            return build(match)
    return general.find(bare)


def _remember(match: re.Match[str]) -> Found | None:
    said = tidy(match["x"])
    inner = find(said)
    if inner is not None:
        return inner
    if len(said.split()) < 3 or guards.reminisces(said):
        return None
    if guards.about_somebody(said):
        return None
    if re.match(r"(?:i|i'm|my|i've)\b", said, re.IGNORECASE):
        return Found(sentence(said), "personal", "user")
    return Found(sentence(said), "project", "project")


def _note_that(match: re.Match[str]) -> Found | None:
    """More often about what was just done than about what lasts."""
    inner = find(tidy(match["x"]))
    return inner if inner is not None else general.find(match[0])


def _remember_to(match: re.Match[str]) -> Found | None:
    """Something to be done once is a task, not a rule."""
    said = tidy(match["x"])
    always = re.sub(r"^always ", "", said, flags=re.IGNORECASE)
    habit = (always != said or guards.is_habit(said)) and not guards.is_task(said)
    return _rule(f"always {always}") if habit and guards.imperative(always) else None


def _always(match: re.Match[str]) -> Found | None:
    verb = match["verb"].lower()
    if not guards.imperative(f"{verb} {match['x']}") or guards.is_task(match["x"]):
        return None
    always = "Always" if match["when"].lower() == "always" else "Never"
    return _rule(f"{always} {verb} {match['x']}")


def _rule(said: str) -> Found:
    return Found(sentence(said), "operating-style", "feedback")


def _from_now_on(match: re.Match[str]) -> Found | None:
    said = tidy(match["x"])
    inner = find(said)
    if inner is not None:
        return inner
    first = said.split(" ", 1)[0]
    if first.istitle() and len(first) > 1:
        said = said[0].lower() + said[1:]
    if re.match(r"(?:but|and|so|i|i'm|i'll|it|it's|he|she|they|there|everything)\b", said, re.I):
        return None
    lasting = len(said.split()) >= 3 and not guards.describes(said)
    return _rule(f"From now on, {said}") if lasting else None


def _never_without(match: re.Match[str]) -> Found | None:
    return _rule(match[0]) if guards.imperative(match["verb"]) else None


def prefer(value: str) -> Found | None:
    """The canonical preference for ``value``; None for a choice among things shown just now."""
    value = tidy(value)
    replies = re.fullmatch(
        r"(concise|short|brief|detailed)(?: \w+)? (?:reply|replies)", value, re.I
    )
    if replies is not None:
        value = f"{_CONCISE[replies[1].lower()]} replies"
    if re.match(r"(?:not\b|to )", value) and len(value.split()) < 4:
        return None  # "I'd prefer to wait" is about now
    if not value or len(value.split()) > 14 or guards.one_of_several(value):
        return None
    return Found(f"Prefer {value}.", "preference", "feedback", value)


def _prefer(match: re.Match[str]) -> Found | None:
    asked = re.match(r"i(?:'d| would) prefer an? ", match[0], re.IGNORECASE)
    return None if asked else prefer(match["x"])


def _verbosity(match: re.Match[str]) -> Found | None:
    return prefer(f"{_CONCISE[match['x'].lower()]} replies")


def _uses(match: re.Match[str]) -> Found | None:
    said = tidy(match["x"])
    words = said.lower().split()
    if not words or words[0] in {"it", "this", "that", "to", "them", "these", "a", "too"}:
        return None
    return Found(f"The project uses {said}.", "technical-default", "project")


def _run(match: re.Match[str]) -> Found | None:
    what = command(match["x"])
    if what is None:
        return None
    return Found(f"Run {match['what'].lower()} with `{what}`.", "technical-default", "project")


def _lives(match: re.Match[str]) -> Found | None:
    return _located(match, named=True)


def _lives_plainly(match: re.Match[str]) -> Found | None:
    return _located(match, named=False)


def _located(match: re.Match[str], *, named: bool) -> Found | None:
    subject, where = tidy(match["s"]), place(match["p"], named=named)
    if not named and where is not None and re.match(r"`(?![~/])", where):
        return None  # "the function is in src/x.py" can be read from the code
    if where is None or guards.no_subject(subject) or len(subject.split()) > 8:
        return None
    return Found(sentence(f"{subject} {match['verb']} {where}"), "project", "reference")


def _decided(match: re.Match[str]) -> Found | None:
    if guards.of_the_moment(match[0]):
        return None
    return Found(sentence(match[0]), "project", "project")


def _name(match: re.Match[str]) -> Found | None:
    """A name is written as one; "my name is wrong in the footer" is about a footer."""
    return _person(match) if match["name"][:1].isupper() else None


def _person(match: re.Match[str]) -> Found | None:
    return Found(sentence(match[0]), "personal", "user")


def _rule_of(expression: str, build: _Build) -> tuple[re.Pattern[str], _Build]:
    return re.compile(expression, re.IGNORECASE), build


_MODAL = (
    r"(?:you (?:should|must|need to|have to) |i (?:want|need) you to "
    r"|i(?:'d| would)(?: really)? (?:like|prefer) you to "
    r"|(?:make sure|be sure)(?: that)? (?:you |to ))?"
)
_DECISIONS = (
    r"(?:not )?(?:use|keep|go with|go for|switch to|move to|drop|support|adopt|store|split|stick"
    r"|replace|avoid|have|run|host|deploy|release|pin|freeze|rename|treat|target|ship|write|build"
    r"|migrate|stay|standardi[sz]e|require|allow|ban|remove|rely|depend|stop|start)"
)
_KEPT = (
    r"(?:lives?|(?:is|are) (?:stored|kept|persisted|located|documented|hosted|published|tracked))"
)
_ASK_FIRST = (
    r"(?:unless i (?:say|ask|tell)|without asking|without my (?:ok|okay|approval|permission)"
    r"|ever again)"
)
_RULES = (
    _rule_of(r"(?:don't forget|remember|do not forget) to (?P<x>.+)", _remember_to),
    _rule_of(
        r"(?:remember|don't forget|do not forget|keep in mind|bear in mind|make a note)"
        r"(?: that\b,?|:)\s*(?P<x>.+)",
        _remember,
    ),
    _rule_of(r"note(?: that\b,?|:)\s*(?P<x>.+)", _note_that),
    _rule_of(
        r"(?:from now on|going forward|from here on|in (?:the )?future)[,:]?\s+(?P<x>.+)",
        _from_now_on,
    ),
    _rule_of(r"(?P<x>.+?),? (?:from now on|going forward)", _from_now_on),
    _rule_of(
        r"(?:keep|make) (?:your |all )?(?:replies|answers|responses)"
        r" (?P<x>short|brief|concise|detailed)",
        _verbosity,
    ),
    _rule_of(
        r"(?:always )?(?:use|give me|write) (?P<x>concise|short|brief|detailed) "
        r"(?:replies|answers|responses)",
        _verbosity,
    ),
    _rule_of(r"(?:use|(?:we|i) want|switch to|choose) (?P<x>.+?) by default", _prefer),
    _rule_of(r"default to (?P<x>.+)", _prefer),
    _rule_of(
        rf"{_MODAL}(?P<when>always|never(?:,? ever)?|don't ever|do not ever)"
        r" (?P<verb>[a-z-]+) (?P<x>.+)",
        _always,
    ),
    _rule_of(rf"(?:don't|do not) (?P<verb>[a-z-]+) .*{_ASK_FIRST}.*", _never_without),
    *((re.compile(each, re.IGNORECASE), build) for each, build in standing.FORMS),
    _rule_of(
        r"i (?:always|never) (?:want|use|write) (?!(?:to|it|this|that|the|these|those)\b).+",
        _person,
    ),
    _rule_of(
        r"(?:i|i'd|i would|we)(?: (?:strongly|generally|usually|much|really))? prefer (?P<x>.+)",
        _prefer,
    ),
    _rule_of(r"prefer (?P<x>.+)", _prefer),
    _rule_of(r"my preference is (?P<x>.+)", _prefer),
    _rule_of(
        r"(?:we|our team)(?: always)? use (?P<x>\S+(?: \S+){0,5}"
        r" (?:for|as|to|instead of|rather than|not|over) .+)",
        _uses,
    ),
    _rule_of(
        r"(?:the |our |this )?(?:project|repo|repository|codebase|code base) uses (?P<x>.+)", _uses
    ),
    _rule_of(rf"(?:we )?run (?:our )?{WHAT} (?:with|using|via|through) (?P<x>.+)", _run),
    _rule_of(rf"to run (?:the |our )?{WHAT},? (?:use|run) (?P<x>.+)", _run),
    _rule_of(rf"(?:the |our )?{WHAT} (?:are|is) run (?:with|using|via) (?P<x>.+)", _run),
    _rule_of(r"i work (?:at|for|as an?) .+|i live in .+", _person),
    _rule_of(
        rf"(?P<s>.+?) (?P<verb>{_KEPT} (?:in|under|at|on)|can be found (?:in|under|at|on))"
        r" (?P<p>.+)",
        _lives,
    ),
    _rule_of(
        r"(?P<s>(?:the|our) .+?) (?P<verb>(?:is|are) (?:in|at|under)) (?P<p>.+)", _lives_plainly
    ),
    _rule_of(
        rf"we(?:'ve| have)? (?:decided|agreed) (?:to (?:{_DECISIONS})|on|that|against) \S+.*"
        r"|we(?:'ve| have)? (?:chose|chosen|picked|went with) .+ (?:over|because|for|since) .+",
        _decided,
    ),
    _rule_of(
        rf"(?:i am|i'm) an? (?:[\w+#/-]+ ){{0,4}}{_ROLE}"
        r"(?: (?:at|in|on|for|with|who|and) .+)?",
        _person,
    ),
    _rule_of(
        r"my (?:timezone|time zone|native language|mother tongue|role|job|title) is .+",
        _person,
    ),
    _rule_of(r"my name is (?P<name>.+)", _name),
    _rule_of(
        r"i(?:'m| am) (?:(?:based|located) in .+|new to .+|fluent in .+|dyslexic"
        r"|left.?handed|colou?r.?blind)",
        _person,
    ),
)
