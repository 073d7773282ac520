"""What secrets look like: the token shapes of current providers, key blocks, URLs, command lines.

Every shape starts with a literal, found by ``str.find`` before its expression is tried there, so
text without one costs next to nothing. Most are looked for only in the long runs of letters and
digits of the text, of which prose has none. Time is linear: a match is never looked into again, and
what can fail after a repetition is bounded.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """One shape: its ``name``, the ``literals`` one of which starts it, and the expression there.

    Group ``secret`` is what is hidden, else the whole match; ``check`` has the last word on it.
    ``bounded``: the literal counts only where no word is under way.
    """

    name: str
    literals: tuple[str, ...]
    expression: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    bounded: bool = True

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of ``text`` this shape hides, in order for each of its literals."""
        for literal in self.literals:
            at = text.find(literal)
            while at >= 0:
                end = at + len(literal)
                match = self._match(text, at)
                if match is not None:
                    end = max(end, match.end())
                    yield match.span("secret" if "secret" in match.re.groupindex else 0)
                at = text.find(literal, end)

    def _match(self, text: str, at: int) -> re.Match[str] | None:
        if self.bounded and not _starts(text, at):
            return None
        match = self.expression.match(text, at)
        if match is None or self.check is None:
            return match
        hidden = match["secret"] if "secret" in match.re.groupindex else match[0]
        return match if self.check(hidden) else None


def _starts(text: str, at: int) -> bool:
    """Whether no word is under way at ``at``, or only the escape of a JSON text or of a URL."""
    before = text[at - 1 : at]
    if not before or not (before.isascii() and before.isalnum()):
        return True
    return text[max(0, at - 2) : at] in _ESCAPES or text[max(0, at - 3) : at - 2] == "%"


_ESCAPES = frozenset({"\\n", "\\r", "\\t", "\\b", "\\f"})
#: The shortest run of letters, digits, ``_`` and ``-`` that any shape of ``IN_RUNS`` has.
RUN = 16
_TOKEN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_SAME = bytes(code if code in _TOKEN_BYTES else 0x20 for code in range(256))
_ALIKE = bytes(0x61 if code in _TOKEN_BYTES else 0x20 for code in range(256))


def long_runs(text: str) -> str:
    """The runs of ``RUN`` and more token characters of ``text``, one space between them."""
    raw = text.encode("utf-8", "surrogatepass")
    if b"a" * RUN not in raw.translate(_ALIKE):
        return ""
    return b" ".join(run for run in raw.translate(_SAME).split() if len(run) >= RUN).decode()


def entropy(text: str) -> float:
    """Shannon entropy of the characters of ``text``, bits a character."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def looks_random(value: str) -> bool:
    """Whether ``value`` (20 characters or more) reads like a generated key and not like words."""
    if len(value) < 20 or _UUID.fullmatch(value):
        return False
    digits = sum(letter.isdigit() for letter in value)
    if digits < 3 or value.isdigit():
        return False
    if re.fullmatch(r"[0-9a-fA-F]+", value):
        return len(value) >= 32 and entropy(value) >= 3.0
    mixed = any(c.islower() for c in value) and any(c.isupper() for c in value)
    return (mixed or digits * 5 >= len(value)) and entropy(value) >= 3.6


def _has_letter_and_digit(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _has_password(value: str) -> bool:
    """Whether ``value`` is base64 of ``user:password``, as HTTP's Basic scheme sends it."""
    try:
        plain = base64.b64decode(value[:4096] + "=" * (-len(value[:4096]) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain and plain.isascii()


_PLACEHOLDER = re.compile(
    r"(?:[$%<{*.\[#]|(?:your|my|the|some|a)[-_ ]|x{3,}|example|change.?me|placeholder|dummy"
    r"|(?:redacted|none|null|nil|undefined|true|false|string|str|bytes"
    r"|password|passwd|pass|pwd|secret|token|required|optional|unset|empty|default|missing|invalid|disabled|enabled|mandatory|incorrect"
    r"|expired|unchanged|protected|rejected|accepted|generated|encrypted|hashed|unknown|boolean"
    r"|authentication|authorization|configured|rotated|hidden)\b(?![^\s]))",
    re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Whether ``value`` only says where a secret would stand: ``$KEY``, ``<key>``, ``your-key``."""
    return _PLACEHOLDER.match(value) is not None or set(value) <= set("*.xX-_•…")


def _real(value: str) -> bool:
    return not is_placeholder(value)


def _shape(
    name: str, literals: str, expression: str, check: Callable[[str], bool] | None = None
) -> Shape:
    return Shape(name, tuple(literals.split()), re.compile(expression), check)


def _inside(
    name: str, literals: str, expression: str, check: Callable[[str], bool] | None = None
) -> Shape:
    """A shape whose literal may stand inside a word."""
    return Shape(name, tuple(literals.split()), re.compile(expression), check, bounded=False)


_TAIL = r"[A-Za-z0-9_-]"
#: Secrets wherever they stand, each with a run of ``RUN`` token characters in its literal's run.
IN_RUNS: tuple[Shape, ...] = (
    _shape("anthropic", "sk-ant-", rf"sk-ant-{_TAIL}{{10,}}"),
    _shape(
        "openai",
        "sk-",
        rf"sk-(?:(?:proj|svcacct|admin|service|None|or-v1|lf)-{_TAIL}{{16,}}|[A-Za-z0-9]{{20,}})",
    ),
    _shape("stripe", "sk_live_ sk_test_ rk_live_ rk_test_", r"[sr]k_\w{4}_[A-Za-z0-9]{10,}"),
    _shape("webhook", "whsec_", r"whsec_[A-Za-z0-9+/]{20,}"),
    _inside("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh._[A-Za-z0-9]{30,}"),
    _inside("github", "github_pat_", r"github_pat_\w{22,}"),
    _shape(
        "gitlab",
        "glpat- gldt- glrt- glptt- glcbt- glsoat-",
        r"gl[a-z]{2,4}-[A-Za-z0-9_.-]{19,}[A-Za-z0-9_-]",
    ),
    _inside("slack", "xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}"),
    _shape("slack", "xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    _shape("google", "AIza", rf"AIza{_TAIL}{{35,}}"),
    _shape("google", "GOCSPX-", rf"GOCSPX-{_TAIL}{{20,}}"),
    _shape("aws-id", "AKIA ASIA", r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape(
        "aws-secret",
        "AKIA ASIA",
        r"A[KS]IA[A-Z0-9]{16}[^A-Za-z0-9]{1,8}(?:[A-Za-z_]{1,24}[^A-Za-z0-9]{1,8}){0,5}"
        r"(?P<secret>(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/])",
    ),
    _shape(
        "jwt",
        "eyJ",
        rf"eyJ{_TAIL}{{8,2048}}\.[A-Za-z0-9_-]{{8,}}(?:\.[A-Za-z0-9_-]*){{0,3}}",
    ),
    _shape("npm", "npm_", r"npm_[A-Za-z0-9]{36,}"),
    _shape("pypi", "pypi-", rf"pypi-{_TAIL}{{40,}}"),
    _shape("huggingface", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    _shape("groq", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    _shape("xai", "xai-", r"xai-[A-Za-z0-9]{20,}"),
    _shape("perplexity", "pplx-", r"pplx-[A-Za-z0-9]{20,}"),
    _shape("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"do._v1_[a-f0-9]{40,}"),
    _shape("shopify", "shpat_ shpca_ shppa_ shpss_", r"shp.._[a-fA-F0-9]{32,}"),
    _shape("docker", "dckr_pat_ dckr_oat_", rf"dckr_.at_{_TAIL}{{20,}}"),
    _shape("databricks", "dapi", r"dapi[a-f0-9]{32,}"),
    _shape("linear", "lin_api_ lin_oauth_", r"lin_[a-z]+_[A-Za-z0-9]{30,}"),
    _shape("atlassian", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{20,}"),
    _shape("age", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
)
#: Looked for anywhere in a text that has a long run at all.
WITH_RUNS: tuple[Shape, ...] = (
    _inside("slack", "hooks.slack.com/", r"hooks\.slack\.com/\w{8,9}/[A-Za-z0-9_/]{20,}"),
    _shape("google", "ya29.", rf"ya29\.{_TAIL}{{20,}}"),
    _shape("sendgrid", "SG.", rf"SG\.{_TAIL}{{16,64}}\.{_TAIL}{{16,}}"),
    _inside("telegram", ":AA", rf"(?<=[0-9]{{8}}):(?P<secret>AA{_TAIL}{{32,}})"),
    _shape("vault", "hvs. hvb.", rf"hv[sb]\.{_TAIL}{{20,}}"),
    _shape("azure", "AccountKey=", r"AccountKey=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    _inside("url-password", "://", r"://(?P<secret>[A-Za-z0-9_-]{20,256})@", _has_letter_and_digit),
)
#: Looked for anywhere in any text; the first string must be in its lower-case form.
ALWAYS: tuple[tuple[str, Shape], ...] = (
    (
        "bearer",
        _shape(
            "bearer",
            "Bearer bearer BEARER",
            r"[A-Za-z]{6}[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,})",
            _has_letter_and_digit,
        ),
    ),
    (
        "basic",
        _shape(
            "basic",
            "Basic basic BASIC",
            r"[A-Za-z]{5}[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}={0,2})",
            _has_password,
        ),
    ),
    (
        "://",
        _inside(
            "url-password",
            "://",
            r"://[^\s/:@\[\"'<>]{0,128}:(?P<secret>[^\s/\"'<>]{1,256})@",
            _real,
        ),
    ),
    (
        "curl",
        _shape(
            "command-line",
            "-u --user",
            r"-[-a-z]{1,5}[ =][\"']?[^\s:\"']{1,64}:(?P<secret>[^\s\"']{3,128})",
            lambda value: _real(value) and not value.isdigit(),
        ),
    ),
    (
        "sshpass",
        _shape("command-line", "sshpass", r"sshpass +-p ?[\"']?(?P<secret>[^\s\"']{3,128})", _real),
    ),
)

_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


def key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Spans of PEM and PGP private key blocks; one without an end reaches to the end of text."""
    if "-----BEGIN " not in text:
        return
    position = 0
    while (start := _BLOCK.search(text, position)) is not None:
        end = _BLOCK_END.search(text, start.end())
        position = end.end() if end else len(text)
        yield start.start(), position
