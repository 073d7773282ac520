"""What a person says in English that is meant to last."""

from __future__ import annotations

import re
from collections.abc import Callable

from memoryd.memory.providers.rules_found import Found, command, place, sentence, tidy, word_set

_NOT_A_RULE = word_set(
    "mind again the a an been so had is was were in too ever this that it there happens works"
    " thought wanted knew said liked loved hated here on at my your his her their our been"
    " saw seen done heard gone came got took made gave felt found went told met lost quit say"
    " love up down by for from with about more less better best good great nice happy fun"
    " glad open ready available easy hard sure"
    " worth funny lovely amazing awesome interesting as if when where"
)
_ENDS_LIKE_AN_IMPERATIVE = word_set(
    "focus canvas bypass need feed embed proceed exceed speed seed bring ping string shed"
)
_SAYING = re.compile(r"(?:give up|look back|stop (?:learning|dreaming)|be afraid|be too)\b", re.I)
_ONE_OF_SEVERAL = re.compile(
    r"(?:if|that|it|this|those|these|option|your|yes|no|either|neither|both|the (?:first|second"
    r"|third|latter|former|other|last))\b|.*\b(?:one|ones|option|approach|version|solution|variant"
    r"|idea|way|it|that|this)$|[A-Da-d1-9]$",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(
    r"(?:it|this|that|he|she|they|there|which|what|these|those|you|i|we)\b|.*\b(?:bug|error|issue"
    r"|problem|failure|typo|crash|fix|exception|trace|regression|mistake|change|diff|culprit|cause"
    r"|leak|output|failing|failed|broken|wrong|missing)\b",
    re.IGNORECASE,
)
_ROLE = (
    r"(?:engineer|developer|designer|manager|student|scientist|researcher|analyst|architect|admin"
    r"|administrator|sre|teacher|founder|lead|writer|consultant|programmer|freelancer|intern"
    r"|professor|devops|maintainer|tester|statistician|mathematician|physicist|biologist)"
)
_CONCISE = {"short": "concise", "brief": "concise", "concise": "concise", "detailed": "detailed"}

_Build = Callable[[re.Match[str]], Found | None]


def find(statement: str) -> Found | None:
    """What ``statement`` (one sentence, lead-in taken off) wants to be remembered, if anything."""
    bare = re.sub(r"^please,?\s+", "", statement.rstrip(" .!"), flags=re.IGNORECASE)
    bare = bare.replace("’", "'")
    for expression, build in _RULES:
        match = expression.fullmatch(bare)
        if match is not None:
            return build(match)
    return None


def _remember(match: re.Match[str]) -> Found | None:
    said = tidy(match["x"])
    inner = find(said)
    if inner is not None:
        return inner
    if len(said.split()) < 3 or re.match(r"(?:this|when|how|what|the time|me|it)\b", said, re.I):
        return None
    if re.match(r"(?:i|i'm|my|i've)\b", said, re.IGNORECASE):
        return Found(sentence(said), "personal", "user")
    return Found(sentence(said), "project", "project")


def _remember_to(match: re.Match[str]) -> Found | None:
    verb = match["x"].split()[0].lower()
    return _rule(f"always {match['x']}") if _imperative(verb) else None


def _always(match: re.Match[str]) -> Found | None:
    verb = match["verb"].lower()
    if not _imperative(verb) or _SAYING.match(f"{verb} {match['x']}"):
        return None
    always = "Always" if match["when"].lower() == "always" else "Never"
    return _rule(f"{always} {verb} {match['x']}")


def _imperative(verb: str) -> bool:
    if verb in _NOT_A_RULE:
        return False
    if verb in _ENDS_LIKE_AN_IMPERATIVE or verb.endswith("ss"):
        return True
    return not verb.endswith(("s", "ing", "ed"))


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
    return _rule(f"From now on, {said}") if len(said.split()) >= 3 else None


def _never_without(match: re.Match[str]) -> Found | None:
    return _rule(match[0]) if _imperative(match["verb"].lower()) else None


def prefer(value: str) -> Found | None:
    """The canonical preference for ``value``; None for a choice among things shown just now."""
    value = tidy(value)
    replies = re.fullmatch(
        r"(concise|short|brief|detailed)(?: \w+)? (?:reply|replies)", value, re.I
    )
    if replies is not None:
        value = f"{_CONCISE[replies[1].lower()]} replies"
    if not value or len(value.split()) > 14 or _ONE_OF_SEVERAL.match(value):
        return None
    return Found(f"Prefer {value}.", "preference", "feedback", value)


def _prefer(match: re.Match[str]) -> Found | None:
    return prefer(match["x"])


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
    if where is None or _NO_SUBJECT.match(subject) or len(subject.split()) > 8:
        return None
    return Found(sentence(f"{subject} {match['verb']} {where}"), "project", "reference")


def _decided(match: re.Match[str]) -> Found | None:
    return Found(sentence(match[0]), "project", "project")


def _person(match: re.Match[str]) -> Found | None:
    return Found(sentence(match[0]), "personal", "user")


def _rule_of(expression: str, build: _Build) -> tuple[re.Pattern[str], _Build]:
    return re.compile(expression, re.IGNORECASE), build


_MODAL = (
    r"(?:you (?:should|must|need to|have to) |i (?:want|need) you to "
    r"|(?:make sure|be sure)(?: that)? (?:you |to ))?"
)
_WHAT = (
    r"(?P<what>(?:(?:unit|integration|e2e|end-to-end|all|type|smoke) )?"
    r"(?:tests?|checks?|lint|linters?|linting|formatters?|benchmarks?|builds?|migrations?))"
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
        rf"{_MODAL}(?P<when>always|never(?: ever)?|don't ever|do not ever)"
        r" (?P<verb>[a-z-]+) (?P<x>.+)",
        _always,
    ),
    _rule_of(rf"(?:don't|do not) (?P<verb>[a-z-]+) .*{_ASK_FIRST}.*", _never_without),
    _rule_of(r"i (?:always|never) (?:want|use|write) (?!to\b).+", _person),
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
    _rule_of(rf"(?:we )?run (?:our )?{_WHAT} (?:with|using|via|through) (?P<x>.+)", _run),
    _rule_of(rf"to run (?:the |our )?{_WHAT},? (?:use|run) (?P<x>.+)", _run),
    _rule_of(rf"(?:the |our )?{_WHAT} (?:are|is) run (?:with|using|via) (?P<x>.+)", _run),
    _rule_of(
        rf"(?P<s>.+?) (?P<verb>{_KEPT} (?:in|under|at|on)|can be found (?:in|under|at|on))"
        r" (?P<p>.+)",
        _lives,
    ),
    _rule_of(
        r"(?P<s>(?:the|our) .+?) (?P<verb>(?:is|are) (?:in|at|under)) (?P<p>.+)", _lives_plainly
    ),
    _rule_of(
        r"we(?:'ve| have)? (?:decided|agreed) (?:to|on|that|against) \S+ .+"
        r"|we(?:'ve| have)? (?:chose|chosen|picked|went with) .+ (?:over|because|for|since) .+",
        _decided,
    ),
    _rule_of(
        rf"(?:i am|i'm) an? (?:[\w+#/-]+ ){{0,4}}{_ROLE}"
        r"(?: (?:at|in|on|for|with|who|and) .+)?",
        _person,
    ),
    _rule_of(
        r"my (?:name|timezone|time zone|native language|mother tongue|role|job|title) is .+",
        _person,
    ),
    _rule_of(r"i work (?:at|for|as an?) .+|i live in .+", _person),
    _rule_of(
        r"i(?:'m| am) (?:(?:based|located) in .+|new to .+|fluent in .+|dyslexic"
        r"|left.?handed|colou?r.?blind)",
        _person,
    ),
)
