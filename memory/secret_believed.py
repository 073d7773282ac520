"""Whether what stands behind a secret-like name is a secret, or code, or words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memoryd.memory.secret_values import UUID, has_letter_and_digit, is_placeholder, looks_random

_WORDS_OF_THE_TRADE = re.compile(
    r"base-?64|sha-?\d+|md5|oauth2?|utf-?8|[rhe]s\d{3}|ed25519|x509|bcrypt|argon2|pbkdf2|aes|k8s"
    r"|hs256|gpt-?\w+|http2?|ipv[46]|\bv?\d+(?:\.\d+)+",
    re.IGNORECASE,
)
_LONGER_THAN_WORDS = 32
_SPECIAL = re.compile(r"[A-Za-z0-9][@#$%^&*!?+~=][A-Za-z0-9]|[@#$%^*+~!]{2}|[A-Za-z0-9][!#$%^*]$")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|\?\.|->|::)[A-Za-z_]\w*)+")
_OF_THE_NAME = re.compile(
    r"pass|pwd|token|secret|key|cred|config|settings|args|env|input", re.IGNORECASE
)
_CAMEL = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]+)+")
_PATHS = ("http", "/", "./", "../", "~/", "s3://", "gs://")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[a-z]{2,}")


@dataclass(frozen=True)
class Value:
    """What stands behind a name, and how it stands there.

    ``follows`` are the two characters after it; ``sign`` is what ties it (empty for a verb or a
    space), ``tight`` an equals sign without a space. ``wordy`` names are used in prose ("token"),
    ``exact`` ones end with the secret-like word, ``upper`` ones are written in capitals.
    """

    text: str
    follows: str
    sign: str
    tight: bool
    wordy: bool
    exact: bool
    upper: bool


def is_believed(value: Value) -> bool:
    """Whether the value is taken for a secret."""
    text = value.text
    if is_placeholder(text) or text.startswith(_PATHS) or _is_code(value):
        return False
    if _strong(text):
        return True
    return bool(value.sign) and (_by_shape(value) or _weak(value))


def is_quoted_secret(text: str, wordy: bool) -> bool:
    """The same for a value in quotes: one piece of 8 or more, or strong.

    ``wordy`` names stand in front of words as often ("token": "see-the-wiki-page").
    """
    if is_placeholder(text) or text.startswith(_PATHS) or " " in text.strip():
        return False
    if UUID.fullmatch(text) or _strong(text):
        return True
    if len(text) < 8 or re.fullmatch(r"[A-Z0-9_]+", text) or _EMAIL.fullmatch(text):
        return False
    return not (wordy and re.fullmatch(r"[^\W\d_]+(?:[-_.:/ ][^\W\d_]+)*", text)) or looks_random(
        text
    )


def _strong(value: str) -> bool:
    """Letters and digits in one piece of 6 or more that is no version or known word.

    ``value`` is neither a placeholder nor a path.
    """
    if len(value) < 6 or not has_letter_and_digit(value):
        return False
    short = len(value) < _LONGER_THAN_WORDS
    if short and not has_letter_and_digit(_WORDS_OF_THE_TRADE.sub("", value)):
        return False
    if _EMAIL.fullmatch(value):
        return False
    return looks_random(value) or not re.search(r"[/.(]|::|\w-\w+-\w", value)


def _is_code(value: Value) -> bool:
    """Whether it is an expression of a program: a variable, an attribute, an argument."""
    text = value.text
    if value.upper and value.tight:
        return False
    if _DOTTED.fullmatch(text):
        return not looks_random(text)
    if not re.fullmatch(r"[A-Za-z_]\w*", text):
        return False
    if value.tight and (value.follows[:1] == ")" or value.follows in (", ", ",\n")):
        return not any(c.isdigit() for c in text) or bool(_OF_THE_NAME.search(text))
    if value.wordy and re.fullmatch(r"[A-Z]+(?:_[A-Z]+)+\d?", text):
        return True
    about = re.fullmatch(r"[a-z_]+\d?", text) and ("_" in text or value.wordy)
    return bool(about and _OF_THE_NAME.search(text))


def _by_shape(value: Value) -> bool:
    """Digits alone, a UUID or special characters behind a name that ends with the word."""
    text = value.text
    if UUID.fullmatch(text):
        return value.exact
    if value.wordy or not value.exact or _EMAIL.fullmatch(text):
        return False
    if text.isdigit():
        return 6 <= len(text) <= 32 and not value.follows.strip()
    return len(text) >= 6 and _SPECIAL.search(text) is not None and "/" not in text


def _weak(value: Value) -> bool:
    """A value of letters only: believed behind ``NAME=`` and, for a password, alone on its line."""
    text = value.text
    if len(text) < 8:
        return False
    if value.upper and value.tight and not value.wordy:
        return not re.search(r"[/(:]", text)
    if re.search(r"[/(:]|\w\.\w", text):
        return False
    if value.tight:
        return True
    alone = value.follows[:1] in {"", "\n", "\r"}
    return alone and not value.wordy and not re.search(r"[-_]", text) and not _CAMEL.fullmatch(text)
