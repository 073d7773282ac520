"""The scanner: secrets, prompt injection and invisible characters, found without keeping them.

Redaction runs before truncation and before anything reaches a disk or a model; it cannot be
switched off. A finding says which pattern matched and where, never what.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from memoryd.memory.secret_lines import ALWAYS, COMMANDS, OPTION
from memoryd.memory.secret_names import named_secrets, seeds
from memoryd.memory.secret_shapes import Runs, Shape, key_blocks, long_runs
from memoryd.memory.secret_tokens import (
    BEHIND,
    IN_RUNS,
    IN_RUNS_ANY,
    IN_WIDE_RUNS,
    IN_WIDE_RUNS_ANY,
)

Verdict = Literal["secret", "injection", "invisible"]


@dataclass(frozen=True)
class Finding:
    """One hit: what it is, the name of the pattern, and the characters ``start..end`` it covers."""

    verdict: Verdict
    pattern: str
    start: int
    end: int


def scan(text: str) -> tuple[Finding, ...]:
    """Everything found in ``text``, in order of place. Secrets never overlap one another."""
    lowered = _lower(text)
    found = [*_secrets(text, lowered), *_injections(lowered), *_invisible(text)]
    return tuple(sorted(found, key=lambda finding: (finding.start, finding.end, finding.pattern)))


def redact(text: str) -> tuple[str, int]:
    """``text`` with each secret replaced by ``[REDACTED:<kind>]``, and how many there were."""
    findings = _secrets(text, _lower(text))
    if not findings:
        return text, 0
    pieces: list[str] = []
    position = 0
    for finding in findings:
        pieces += (text[position : finding.start], f"[REDACTED:{finding.pattern}]")
        position = finding.end
    return "".join((*pieces, text[position:])), len(findings)


def has_secret(*texts: str) -> bool:
    """Whether any of ``texts`` holds a secret; they are looked at together, one a line."""
    text = "\n".join(texts)
    return bool(_secrets(text, _lower(text)))


def redact_all(value: Any) -> Any:
    """``value`` with each text in it redacted, however deep in lists, tuples and dictionaries.

    What stands under a key that names a secret counts only if it looks like one by itself. Names
    of keys are left as they are.
    """
    if isinstance(value, str):
        return redact(value)[0]
    if isinstance(value, dict):
        return {redact_all(key): redact_all(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(each) for each in value]
    return value


def verdicts(text: str) -> frozenset[str]:
    """Which of ``secret``, ``injection`` and ``invisible`` hold for ``text``."""
    return frozenset(finding.verdict for finding in scan(text))


def _lower(text: str) -> str:
    """Lower case with every position kept: only U+0130 would become two characters."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("İ", "I").lower()


def _secrets(text: str, lowered: str) -> list[Finding]:
    runs = long_runs(text)
    found = [Finding("secret", "private-key", *span) for span in key_blocks(text)]
    for shape in (*_lines(text, lowered), *_tokens(runs)):
        found += [Finding("secret", shape.name, *span) for span in shape.find(text)]
    found += [Finding("secret", *hit) for hit in named_secrets(text, lowered, bool(runs.wide))]
    found += [Finding("secret", *hit) for hit in seeds(text, lowered, bool(runs.wide))]
    return _apart(found) if found else found


def _lines(text: str, lowered: str) -> list[Shape]:
    """The lines with a secret that ``text`` may hold, by their literals alone."""
    shapes = [shape for rare, literal, shape in ALWAYS if rare in text and literal in lowered]
    if "-" in text and " -" in text and OPTION.search(text):
        shapes += [shape for literal, shape in COMMANDS if literal in lowered]
    return shapes


def _tokens(runs: Runs) -> list[Shape]:
    """The tokens that a text with these long runs may hold."""
    shapes: list[Shape] = []
    for before in runs.before & BEHIND.keys():
        shapes += BEHIND[before]
    if runs.narrow and IN_RUNS_ANY.search(runs.narrow):
        shapes += [one for one in IN_RUNS if any(each in runs.narrow for each in one.literals)]
    if runs.wide and IN_WIDE_RUNS_ANY.search(runs.wide):
        shapes += IN_WIDE_RUNS
    return shapes


def _apart(found: list[Finding]) -> list[Finding]:
    """Overlapping findings as one, under the name of the one that starts first (the longest)."""
    apart: list[Finding] = []
    for finding in sorted(found, key=lambda one: (one.start, -one.end)):
        if apart and finding.start < apart[-1].end:
            last = apart[-1]
            end = max(last.end, finding.end)
            apart[-1] = Finding("secret", last.pattern, last.start, end)
        else:
            apart.append(finding)
    return apart


_OLD = r"(?:previous|prior|above|earlier|preceding|foregoing)"
_SAID = r"(?:instructions?|prompts?|rules|directions|directives|messages|guidelines|commands)"
_SHOW = r"(?:reveal|print|show|repeat|output|leak)"
_SPOILS = r"(?:data|secrets?|keys?|credentials?|files?|tokens?|conversation)"
_UNBOUND = r"(?:dan|jailbroken|unrestricted|unfiltered|developer mode|root)\b"


def _phrase(name: str, literal: str, phrase: str) -> tuple[str, str, re.Pattern[str]]:
    """A row for lower-case text: a space is any white space, ``…`` up to four words."""
    expression = phrase.replace("… ", r"(?:\w{1,12}\s{1,8}){0,4}").replace(" ", r"\s{1,8}")
    return name, literal, re.compile(expression)


#: (name, literal in lower case, expression); several expressions may share a literal.
_INJECTIONS = (
    _phrase("override", "ignore", f"ignore … {_OLD} {_SAID}"),
    _phrase("override", "disregard", f"disregard … {_OLD} {_SAID}"),
    _phrase("override", "forget", f"forget … {_OLD} {_SAID}"),
    _phrase("override", "override", f"override … (?:system|safety) {_SAID}"),
    _phrase("override", "تجاهل", "تجاهل … (?:التعليمات|الأوامر|الاوامر) السابقة"),
    _phrase("reveal", "prompt", f"{_SHOW} … system prompt"),
    _phrase("reveal", "developer", f"{_SHOW} … developer message"),
    _phrase("reveal", "hidden", f"{_SHOW} … hidden instructions"),
    _phrase("marker", "begin system prompt", "begin system prompt"),
    _phrase("marker", "<|", r"<\|(?:im_start|im_end|system|endoftext|start_header_id|eot_id)\|>"),
    _phrase("marker", "system", r"</?system(?:-reminder|_prompt)?>|\[/?(?:system|sys)\]"),
    _phrase("script", "<script", r"<script\b"),
    _phrase("exfiltrate", "exfiltrat", f"exfiltrat(?:e|ing) … {_SPOILS}"),
    _phrase("persona", "you are now", f"you are now … {_UNBOUND}"),
    _phrase("conceal", "tell the user", r"(?:do not|don't|never) tell the user"),
)


def _injections(lowered: str) -> Iterator[Finding]:
    for name, literal, expression in _INJECTIONS:
        if literal in lowered:
            yield from (Finding("injection", name, *m.span()) for m in expression.finditer(lowered))


_ALLOWED_ASCII = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_JOINERS = frozenset("\u200c\u200d")


def _invisible(text: str) -> Iterator[Finding]:
    if text.isascii() and not text.encode().translate(None, _ALLOWED_ASCII):
        return
    for match in _INVISIBLE.finditer(text):
        if match[0] not in _JOINERS or not _joins(text, match.start()):
            yield Finding("invisible", f"u+{ord(match[0]):04x}", match.start(), match.end())


def _joins(text: str, at: int) -> bool:
    """Whether the joiner at ``at`` is spelling: in an emoji or an Arabic or Indic word."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if not before or not after:
        return False
    emoji = unicodedata.category(after) == "So" and (
        unicodedata.category(before) in {"So", "Sk"} or before == "\ufe0f"
    )
    script = all("\u0600" <= letter <= "\u0dff" for letter in (before, after))
    return emoji or script
