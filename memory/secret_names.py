"""Secrets known by the name they stand next to: ``DB_PASSWORD=...``, ``"apiKey": "..."``.

A name alone is no secret, and neither is a name with words after it ("Token: see-the-wiki-page",
"the password policy lives in docs/security.md"): what stands behind it decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.memory.secret_shapes import is_placeholder, looks_random

#: Lower-case stems of secret-like names; ``key`` counts only behind one of ``_KEY_OF``.
_STEMS = (
    "passw",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "key",
)
_FOREIGN_STEMS = (
    "كلمة المرور", "كلمة السر", "contraseña", "mot de passe", "пароль", "密码", "密碼",
)  # fmt: skip
_WORDY = ("token", "secret", "credential", "key")
_KEY_OF = re.compile(
    r"(?:api|access|secret|private|auth|encryption|signing|master|account|shared|service|deploy"
    r"|storage|license|subscription|app|ssh)[ _-]?$"
)
#: The rest of the name, the closing quote of a JSON key, and what ties a value to it.
_TIE = re.compile(
    r"(?P<rest>[A-Za-z0-9_-]{0,32})(?:\\?[\"'`\]]){0,2}"
    r"(?:\s{0,4}(?P<sign>=>|:=|==?|:)\s{0,4}|\s{1,4}(?P<verb>is|was|هي|هو)[ \t]{0,2}:?[ \t]{1,4}"
    r"|(?P<gap>[ \t]{1,4}))"
)
_QUOTED = re.compile(r"\\?(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote))[^\n\\]){4,512})")
_RUN = re.compile(r"[^\s\"'`,;<>(){}\[\]\\|]*")
_BARE = re.compile(r"[^\s\"'`,;<>(){}\[\]\\|]{4,128}(?=(?P<next>[(\[{]?))")
_NOT_THE_SECRET = re.compile(
    r"(?:file|path|dir|url|uri|name|type|count|limit|length|size|env|ttl|policy|field|header|hash"
    r"|prefix|id|ids|expiry|expires|usage|budget|min|max|kind|manager|store|provider|endpoint"
    r"|izer|ization|s_per_\w+)$"
)
_WORDS_OF_THE_TRADE = re.compile(
    r"base-?64|sha-?\d+|md5|oauth2?|utf-?8|[rhe]s\d{3}|ed25519|x509|bcrypt|argon2|pbkdf2|aes|k8s"
    r"|\bv?\d+(?:\.\d+)+",
    re.IGNORECASE,
)
_NEAR = re.compile(r"[A-Za-z0-9+/_=-]{20,200}")
_NEAR_WINDOW = 64


def named_secrets(text: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    """(kind, start, end) of what stands next to a secret-like name.

    ``lowered`` is ``text`` in lower case with equal positions.
    """
    for stem in _STEMS if text.isascii() else _STEMS + _FOREIGN_STEMS:
        at = lowered.find(stem)
        while at >= 0:
            end = at + len(stem)
            if stem != "key" or _KEY_OF.search(lowered[max(0, at - 13) : at]):
                span = _behind(text, at, end, stem)
                if span is not None:
                    # Going on behind it keeps the whole linear.
                    end = max(end, span[1])
                    yield "assignment", *span
            at = lowered.find(stem, end)


def _behind(text: str, at: int, end: int, stem: str) -> tuple[int, int] | None:
    tie = _TIE.match(text, end)
    if tie is None or _NOT_THE_SECRET.search(tie["rest"].lower()):
        return None
    return _assigned(text, at, tie, stem) or _near(text, end)


def _assigned(text: str, at: int, tie: re.Match[str], stem: str) -> tuple[int, int] | None:
    quoted = _QUOTED.match(text, tie.end())
    if quoted is not None and tie["sign"]:
        kept = _quoted_secret(quoted["value"])
        return quoted.span("value") if kept else None
    bare = _BARE.match(text, tie.end() + (1 if quoted else 0))
    if bare is None or (bare["next"] and not _strong(bare[0])):
        return None
    if tie["gap"] and not _is_flag(text, at):
        return None
    value = bare[0].rstrip(".:!?")
    if _strong(value) or (tie["sign"] and _weak(text, tie, bare, value, stem)):
        whole = _RUN.match(text, bare.end())
        return bare.start(), whole.end() if whole and whole[0] else bare.start() + len(value)
    return None


def _is_flag(text: str, at: int) -> bool:
    """Whether the name at ``at`` ends an option like ``--db-password``."""
    return "--" in text[max(0, at - 24) : at].rsplit(None, 1)[-1:][0] if at else False


def _quoted_secret(value: str) -> bool:
    if is_placeholder(value) or value.startswith(("http", "/", "./", "~")):
        return False
    if " " in value.strip():
        return False
    return _strong(value) or (len(value) >= 8 and not re.fullmatch(r"[A-Z0-9_]+", value))


def _strong(value: str) -> bool:
    """Letters and digits in one piece of 6 or more that is no path, version or known word."""
    if len(value) < 6 or is_placeholder(value) or value.startswith(("http", "/", "./", "~")):
        return False
    rest = _WORDS_OF_THE_TRADE.sub("", value)
    if not (any(c.isdigit() for c in rest) and any(c.isalpha() for c in rest)):
        return False
    return looks_random(value) or not re.search(r"[/.(]|::|\w-\w+-\w", value)


def _weak(text: str, tie: re.Match[str], bare: re.Match[str], value: str, stem: str) -> bool:
    """A value of letters only: believed behind ``NAME=`` and, for a password, alone on its line."""
    if len(value) < 8 or is_placeholder(value) or re.search(r"[/(:]|\w\.\w", value):
        return False
    tight = tie["sign"] == "=" and tie[0].endswith("=") and text[tie.end("sign") - 2] != " "
    if tight:
        return True
    alone = text[bare.end() : bare.end() + 1] in {"", "\n", "\r"}
    return alone and stem not in _WORDY and "-" not in value and "_" not in value


def _near(text: str, end: int) -> tuple[int, int] | None:
    """A high-entropy run close behind the name, unless it is called a commit or a checksum."""
    window = text[end : end + _NEAR_WINDOW + 200]
    for run in _NEAR.finditer(window):
        if run.start() > _NEAR_WINDOW:
            return None
        before = window[: run.start()].lower()
        if looks_random(run[0]) and not re.search(r"commit|sha|rev|digest|checksum|\bid\b", before):
            return end + run.start(), end + run.end()
    return None
