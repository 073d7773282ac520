"""What gives an English sentence away as no statement of the person's that is meant to last.

A task, a choice among things on the screen, talk about how things are or were, somebody else.
"""

from __future__ import annotations

import re

from memoryd.memory.providers.rules_found import word_set

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
_PAST = word_set(
    "did ran wrote began broke built bought caught chose drew fell forgot grew held kept led left"
    " have has meant paid sent sold spent stood taught understood won know see get need"
    " end talk hear"
)
_ONE_OF_SEVERAL = re.compile(
    r"(?:if|that|it|this|those|these|option|your|yes|no|either|neither|both|the (?:first|second"
    r"|third|latter|former|other|last))\b|.*\b(?:one|ones|option|approach|version|solution|variant"
    r"|idea|way|it|that|this|yours|mine|ours|theirs)$|[A-Da-d1-9]$",
    re.IGNORECASE,
)
#: A memory that is shared, not a fact to be kept.
_REMINISCES = re.compile(
    r"(?:this|when|how|what|me|it|(?:the |one )?(?:time|day|bug|thing|guy|feeling|moment|issue)"
    r" (?:when|that|where|we|from|with|you))\b|the time\b",
    re.IGNORECASE,
)
#: What begins with a thing says what is to be of it only with one of these.
_THING = re.compile(
    r"(?:the|this|that|these|those|my|your|our|you|all|every|each|no|nothing|nobody)\b",
    re.IGNORECASE,
)
_BINDS = re.compile(
    r"\b(?:should|must|needs?|has to|have to|goes|go|shall|may|can)\b", re.IGNORECASE
)
_MOMENT = re.compile(
    r"(?:\w+ )*?(?:to \w+|with|for|on|that|chose|picked) (?:it|this|that|these|those|them)\b"
    r"|.*\b(?:wrong|temporary|temporarily|workaround|a day|for the moment)\b",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(
    r"(?:it|this|that|he|she|they|there|which|what|these|those|you|i|we)\b|.*\b(?:bug|error|issue"
    r"|problem|failure|typo|crash|fix|exception|trace|regression|mistake|change|diff|culprit|cause"
    r"|leak|output|failing|failed|broken|wrong|missing)\b",
    re.IGNORECASE,
)
#: What is done each time, not once.
_EACH_TIME = re.compile(
    r"\b(?:always|every|each|whenever|before (?:committing|pushing|merging|deploying|releasing"
    r"|you (?:commit|push|merge|deploy|release|finish|edit|change|say))"
    r"|after (?:committing|pushing|merging|deploying|releasing|every|each))\b",
    re.IGNORECASE,
)
_HERE_AND_NOW = re.compile(
    r"^(?:that|this|it|these|those|them|i|we)\b|\bhere$"
    r"|\b(?:here so|so (?:that )?(?:we|i) can (?:see|check|debug|find|test)"
    r"|(?:when|if|once) (?:it|this|that) \w+)\b",
    re.IGNORECASE,
)
_KIN = (
    r"colleagues?|co-?workers?|boss|managers?|friends?|wife|husband|partner|mother|father|mom|dad"
    r"|brother|sister|son|daughter|kids?|child|children|neighbou?rs?|roommate|girlfriend|boyfriend"
    r"|parents?|teammates?|interns?|teacher|doctor|landlord"
)
_SOMEBODY = re.compile(
    rf"(?:(?:my|our|the|your|his|her|their) )?(?:\w+ )?(?:{_KIN})\b|(?:he|she|they)\b",
    re.IGNORECASE,
)
_OPINION = re.compile(
    r"[A-Z][a-z]+ (?:and [A-Z][a-z]+ )?(?:loves?|hates?|likes?|prefers?|wants?|thinks?|believes?"
    r"|says?|earns?|suffers?|dislikes?)\b"
)
_NAMED = re.compile(
    r"[A-Z][a-z]+(?: [A-Z][a-z]+)? (?:is|has|was|lives|takes|got|gets|will|had|just)\b"
)
#: What a person is or has, and a server or a library is not.
_OF_PEOPLE = re.compile(
    r"\b(?:divorc\w+|married|engaged|pregnant|sick|ill|dying|medications?|therapy|depress\w+|fired"
    r"|quitting|retir\w+|gay|religious|cancer|disab\w+|hospital|on leave|vacation|birthday|salary"
    r"|in love|dating|alcohol\w*|years old|laid off|burn(?:ed|t) out|wife|husband|kids?|baby)\b",
    re.IGNORECASE,
)
#: What opens a noun that stands on the screen just now.
_DETERMINED = re.compile(
    r"(?:the|this|that|these|those|it|an?|your|my|his|her|their|each|every|one|another|both"
    r"|something|anything|same|other)\b",
    re.IGNORECASE,
)


def imperative(said: str) -> bool:
    """Whether ``said`` begins as an order does, and is no saying."""
    verb = said.split(" ", 1)[0].lower()
    if verb in _NOT_A_RULE or verb in _PAST or _SAYING.match(said.lower()):
        return False
    if verb in _ENDS_LIKE_AN_IMPERATIVE or verb.endswith("ss"):
        return True
    return not verb.endswith(("s", "ing", "ed"))


def is_habit(said: str) -> bool:
    """Whether it is to be done each time."""
    return _EACH_TIME.search(said) is not None


def is_task(said: str) -> bool:
    """Whether it is about what is done just now."""
    return _HERE_AND_NOW.search(said) is not None


def reminisces(said: str) -> bool:
    """Whether what is to be remembered is a shared memory, or stands just before."""
    return _REMINISCES.match(said) is not None


def describes(said: str) -> bool:
    """Whether it tells how a thing is, and not how it is to be."""
    return _THING.match(said) is not None and _BINDS.search(said) is None


def of_the_moment(said: str) -> bool:
    """Whether a decision is about what was just spoken of, or is not to last."""
    return _MOMENT.match(said) is not None


def about_somebody(said: str) -> bool:
    """Whether ``said`` tells of another person: private or an opinion, it is not ours to keep."""
    named = _NAMED.match(said) is not None and _OF_PEOPLE.search(said) is not None
    return named or _OPINION.match(said) is not None or _SOMEBODY.match(said) is not None


def one_of_several(value: str) -> bool:
    """Whether ``value`` is a choice among things that were shown just now."""
    return _ONE_OF_SEVERAL.match(value) is not None


def no_subject(subject: str) -> bool:
    """Whether nothing that lasts can be told of ``subject``."""
    return _NO_SUBJECT.match(subject) is not None


def determined(noun: str) -> bool:
    """Whether ``noun`` is a thing on the screen and no name."""
    return _DETERMINED.match(noun) is not None
