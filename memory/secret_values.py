"""What a secret's value looks like, and what only says where one would stand."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]+")
#: Where one kind of character follows another as generated text does and camelCase does not.
_TURNS = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
#: Turns a character that a generated key has at least; measured: keys 0.3 to 0.5, names under 0.15.
_TURNS_MIN = 0.18

_PLACEHOLDER = re.compile(
    r"(?:[$%<{*.\[#]|:\w+$|@\w+$|(?:your|my|the|some|a|insert|enter|replace|put|paste)[-_ ]|x{3,}"
    r"|example|change.?(?:me|it)|placeholder|dummy|fake|sample|op://|arn:|vault:|ssm:|env:|file:"
    r"|(?:redacted|none|null|nil|undefined|true|false|string|str|bytes|varchar|text|todo|tbd|foo"
    r"|password|passwd|pass|pwd|secret|token|required|optional|unset|empty|default|missing|invalid"
    r"|disabled|enabled|mandatory|incorrect|expired|unchanged|protected|rejected|accepted|generated"
    r"|encrypted|hashed|unknown|boolean|authentication|authorization|configured|rotated|hidden"
    r"|passphrase|process|os|settings|config|secretstr|plaintext|correct|wrong)\b(?![^\s]))",
    re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Whether ``value`` only says where a secret would stand: ``$KEY``, ``<key>``, ``your-key``.

    The keys of the providers' own documents count, which say ``EXAMPLE`` in capitals.
    """
    return (
        _PLACEHOLDER.match(value) is not None
        or not value.strip("*.xX-_•…")
        or "EXAMPLE" in value
        or "xxxxxx" in value.lower()
    )


def is_real(value: str) -> bool:
    """Whether ``value`` is no placeholder."""
    return not is_placeholder(value)


def is_no_port(value: str) -> bool:
    """Whether ``value`` is neither a placeholder nor a number, a port or a pair of them."""
    return is_real(value) and not re.fullmatch(r"[\d.:/]+(?:tcp|udp)?", value)


def entropy(text: str) -> float:
    """Shannon entropy of the characters of ``text``, bits a character."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def looks_random(value: str) -> bool:
    """Whether ``value`` (20 characters or more) reads like a generated key and not like words."""
    if len(value) < 20 or value.isdigit() or UUID.fullmatch(value) or is_placeholder(value):
        return False
    if _HEX.fullmatch(value):
        return len(value) >= 32 and entropy(value) >= 3.0
    turns = sum(1 for _ in _TURNS.finditer(value)) / len(value)
    if turns < _TURNS_MIN or entropy(value) < 3.6:
        return False
    digits = sum(letter.isdigit() for letter in value)
    mixed = any(c.islower() for c in value) and any(c.isupper() for c in value)
    return (
        (mixed or digits * 5 >= len(value))
        if digits >= 3
        else mixed and (turns >= 0.2 or len(value) >= 32)
    )


def has_letter_and_digit(value: str) -> bool:
    """Whether a letter and a digit are in ``value``."""
    return _DIGIT.search(value) is not None and _LETTER.search(value) is not None


def is_mixed(value: str) -> bool:
    """Whether ``value`` has letters and digits, or small letters and capitals."""
    return has_letter_and_digit(value) or not (value.islower() or value.isupper())


def has_password(value: str) -> bool:
    """Whether ``value`` is base64 of ``user:password``, as HTTP's Basic scheme sends it."""
    plain = _decoded(value)
    return b":" in plain and plain.isascii()


def has_private_key(value: str) -> bool:
    """Whether ``value`` is base64 of a PEM block that is a private key."""
    return b"PRIVATE KEY" in _decoded(value)[:80]


def _decoded(value: str) -> bytes:
    value = value[:4096].rstrip("=")
    value = value[: len(value) - (len(value) % 4 == 1)]
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
