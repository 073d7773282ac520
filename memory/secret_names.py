"""Secrets known by the name they stand next to: ``DB_PASSWORD=...``, ``"apiKey": "..."``.

A name alone is no secret, and neither is a name with words after it ("Token: see-the-wiki-page",
"the password policy lives in docs/security.md"): what stands behind it decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memoryd.memory.secret_believed import Value, is_believed, is_quoted_secret
from memoryd.memory.secret_lines import NETRC
from memoryd.memory.secret_phrases import passphrases
from memoryd.memory.secret_values import is_real, looks_random

#: Lower-case stems of secret-like names; those of ``_WHOLE`` must be a word of the name, and
#: ``key`` counts only behind one of ``_KEY_OF``.
#: ``cre`` stands for secret, credential and creds: one look for three.
_STEMS = ("pass", "pwd", "cre", "token", "key")
#: Found only with their sign, being short: (what is looked for, how much of it is the name).
_SIGNED = (("pw:", 2), ("pw=", 2))
#: Names of random things only: a word behind them is no secret.
_RANDOM = ("cookie: ", "seed")
#: The same in other scripts, by a letter each of them has: it alone is looked for first.
_FOREIGN_STEMS = {
    "م": ("كلمة المرور", "كلمة السر", "كلمه السر", "كلمه المرور", "الرقم السري", "الرمز السري",
          "رمز الدخول", "المفتاح السري", "مفتاح api"),
    "و": ("باسورد", "باسوورد", "توكن"),
    "ñ": ("contraseña",), "ş": ("şifre",), "ł": ("hasło",), "о": ("пароль", "токен"),
    "密": ("密码", "密碼", "密钥"), "口": ("口令",), "ワ": ("パスワード",), "밀": ("비밀번호",),
}  # fmt: skip
_WHOLE = frozenset({"pass", "pw", "seed"})
_WORDY = frozenset({"token", "secret", "cred", "key"})
#: What of a name may follow its stem and still end with the secret-like word.
_ENDINGS = frozenset(
    {"", "d", "e", "s", "word", "wd", "wort", "words", "phrase", "code", "_key", "key", "ential"}
)
_PASS_WORDS = ("word", "wd", "wort", "phrase", "code", "e ", "e:", "e=")
_KEY_OF = re.compile(
    r"(?:api|azure|access|secret|private|auth|encryption|decryption|signing|master|account|shared|pre-?"
    r"shared|service|deploy|storage|license|subscription|app|ssh|hmac|jwt|admin|client|consumer"
    r"|bot|ingest|webhook|wallet|recovery|root|gpg)[ _-]?$"
)
_PREFIX = re.compile(
    r"(?:^|[^a-z]|db|pg|my|user|admin|root|smtp|mail|ftp|ssh|redis|sudo|http|proxy)$"
)
#: The rest of the name, the closing quote of a JSON key, and what ties a value to it.
_TIE = re.compile(
    r"(?P<rest>[A-Za-z0-9_-]{0,32})(?:\\?[\"'`*\]]){0,3}"
    r"(?P<about>[ \t](?:for|of|to|on|in|at)\b(?:[ \t][^\s:=]{1,24}){1,6}?)?"
    r"(?:\s{0,4}(?P<sign>=>|>(?=[^<\s])|"
    r"[\"']?,?\s{1,32}[\"']?[Vv]alue[\"']?\s{0,2}[:=]|"
    r"-{1,2}>|(?<=[\"']),|→|⇒|~>|:=|==?|::?|：|＝)\s{0,4}(?:\*\*)?[ \t]{0,2}"
    r"|[ \t]{0,2}(?:是|为|為|は|는|은)[ \t]{0,2}[:：=]?[ \t]{0,4}(?=[!-~]{6})"
    r"|\s{1,4}(?P<verb>is|was|equals|هي|هى|هو|es|ist|est)(?: now| set to)?[ \t]{0,2}:?[ \t]{1,4}"
    r"|(?(about)(?!)|(?P<gap>[ \t]{1,4})))"
)
_FOREIGN_ABOUT = re.compile(
    r"(?:[ \t][^\s:=]{1,24}){1,4}?\s{0,2}(?P<sign>:|=|[ \t](?:هي|هى|هو))[ \t]{1,4}"
)
_QUOTED = re.compile(r"\\?(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote))[^\n\\]){4,512})")
_PLAIN = r"(?:[^\s\"'`,;<>(){}\[\]\\|&，。；、]|&(?!\w{1,40}=))"
_REST = r"(?:[^\s\"'`,;<>\\|&，。；、]|&(?!\w{1,40}=))"
_RUN = re.compile(rf"{_PLAIN}*")
_BARE = re.compile(rf"{_PLAIN}{{4,128}}(?=(?P<next>[(\[{{]?))|{_PLAIN}{{1,3}}(?=[(\[{{])(?P<odd>)")
_WITH_BRACKETS = re.compile(rf"{_REST}{{4,128}}")
#: What stands before a name whose value follows at once: "with password hunter...".
_GIVEN = re.compile(r"\b(?:with|use|using)\s$")
#: What stands before a pass that is no password.
_NTH = re.compile(r"(?:first|second|third|next|last|each|one|single|multi|per)[ -]$")
_NAME = re.compile(r"[A-Za-z_$][\w.$]*")
_NOT_THE_SECRET = re.compile(
    r"(?:file|path|dir|url|uri|name|type|count|limit|length|size|env|ttl|policy|field|header|hash"
    r"|prefix|id|ids|expiry|expires|usage|budget|min|max|kind|manager|store|provider|endpoint"
    r"|izer|ization|s_per_\w+|ref|hint|reset|version|label|arn|column|regex|pattern|strength)$"
)
_PUBLIC = re.compile(
    r"commit|sha|rev|digest|checksum|\bid\b|integrity|hash|fingerprint|etag|version|resolved|uuid"
    r"|image|blob|tree|public|certificate|https?:|\.\w"
)
_NEAR = re.compile(r"[A-Za-z0-9+/_-]{20,200}={0,2}")
_NEAR_WINDOW = 64
_PAIR = re.compile(r"[\w.@+-]{2,40}[ ]?[:/][ ]?(?P<value>[^\s\"'`,;]{5,128})")
_WORDS = re.compile(
    r"(?:seed|recovery|mnemonic|secret)(?:[ _-](?:phrase|words?))?\\?[\"'`]?\s{0,2}[:=]"
    r"\s{0,2}\\?[\"'`]?(?P<secret>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b"
)
_CODES = re.compile(
    r"[^\n]{3,48}?(?<![A-Za-z0-9])(?P<secret>(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{4}"
    r"|(?:[a-z2-7]{4} ){3,15}[a-z2-7]{4}|[A-Z2-7]{16,64})(?![A-Za-z0-9])",
)
_BASE32_DIGITS = "234567"


class _Name(NamedTuple):
    """A secret-like name: the text, where its stem stands in it, and which."""

    text: str
    lowered: str
    at: int
    end: int
    stem: str


def named_secrets(text: str, lowered: str, runs: bool) -> Iterator[tuple[str, int, int]]:
    """(kind, start, end) of what stands next to a secret-like name.

    ``lowered`` is ``text`` in lower case with equal positions; ``runs`` says whether any long run
    of token characters is in it.
    """
    passwords = False
    signed = _SIGNED if ":" in text or "=" in text else ()
    for stem, size in (*_SIZED, *signed, *_foreign(text)):
        at = lowered.find(stem)
        while at >= 0:
            end = at + len(stem)
            name = _named(text, lowered, at, stem[:size])
            if name is not None and _is_name(name):
                if stem == "pass":
                    passwords = True
                span = _behind(name, runs)
                if span is not None:
                    # Going on behind it keeps the whole linear.
                    end = max(end, span[1])
                    yield "assignment", *span
            at = lowered.find(stem, end)
    if passwords:
        yield from (("netrc", *span) for span in NETRC.find(text))
    if runs:
        yield from _random(text, lowered)


_SIZED = tuple((stem, len(stem)) for stem in _STEMS)


def _foreign(text: str) -> list[tuple[str, int]]:
    if text.isascii():
        return []
    found = (stems for letter, stems in _FOREIGN_STEMS.items() if letter in text)
    return [(stem, len(stem)) for stems in found for stem in stems]


def _named(text: str, lowered: str, at: int, stem: str) -> _Name | None:
    if stem != "cre":
        return _Name(text, lowered, at, at + len(stem), stem)
    if lowered.startswith("t", at + 3) and lowered.startswith("se", at - 2):
        return _Name(text, lowered, at - 2, at + 4, "secret")
    if lowered.startswith(("ds", "dential"), at + 3):
        return _Name(text, lowered, at, at + 4, "cred")
    return None


def _random(text: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    """What stands behind the names of things that are random or no secret at all."""
    for stem in _RANDOM:
        at = lowered.find(stem)
        while at >= 0:
            span = _near(_Name(text, lowered, at, at + len(stem), stem))
            if span is not None:
                yield "assignment", *span
            at = lowered.find(stem, span[1] if span else at + len(stem))


def _is_name(name: _Name) -> bool:
    if name.stem == "key":
        return _KEY_OF.search(name.lowered, max(0, name.at - 13), name.at) is not None
    if name.stem not in _WHOLE or name.lowered.startswith(_PASS_WORDS, name.end):
        return True
    after = name.text[name.end : name.end + 1]
    if after.isalpha() and not (after.isupper() and name.text[name.end - 1].islower()):
        return False
    if name.stem == "pass" and _NTH.search(name.lowered, max(0, name.at - 12), name.at):
        return False
    camel = name.text[name.at].isupper() and name.text[name.at - 1 : name.at].islower()
    return camel or _PREFIX.search(name.lowered[max(0, name.at - 6) : name.at]) is not None


def _behind(name: _Name, runs: bool) -> tuple[int, int] | None:
    tie = _TIE.match(name.text, name.end)
    if tie is None or _NOT_THE_SECRET.search(tie["rest"].lower()):
        return None
    found = None if tie["gap"] and not _may_be_bare(name) else _assigned(name, tie)
    return found or _told(name) or (_near(name) if runs else None)


def _assigned(name: _Name, tie: re.Match[str]) -> tuple[int, int] | None:
    quoted = _QUOTED.match(name.text, tie.end())
    if quoted is not None and (not tie["gap"] or _is_given(name)):
        if tie["sign"] == "=" and _is_variable(name) and is_real(quoted["value"]):
            return quoted.span("value")
        wordy = name.stem in _WORDY or tie["sign"] == ","
        kept = is_quoted_secret(quoted["value"], wordy)
        return quoted.span("value") if kept else None
    if tie["sign"] == ",":
        return None
    if name.stem == "cred":
        pair = _PAIR.match(name.text, tie.end())
        if pair is not None and is_believed(_value(name, tie, pair["value"], pair.end())):
            return pair.span("value")
    return _bare(name, tie, tie.end() + (1 if quoted else 0))


def _bare(name: _Name, tie: re.Match[str], start: int) -> tuple[int, int] | None:
    """The value without quotes at ``start``, if it is believed."""
    found = _BARE.match(name.text, start)
    if found is None:
        return None
    end = found.end()
    if found["next"] or found["odd"] is not None:
        if _NAME.fullmatch(found[0]):  # a call, or a part of something
            return None
        longer = _WITH_BRACKETS.match(name.text, start)
        end = longer.end() if longer is not None else end
    value = name.text[start:end].rstrip(".:?" if tie["sign"] else ".:!?")
    while value and value[-1] in ")]}" and value.count(value[-1]) > value.count(_OPENS[value[-1]]):
        value = value[:-1]
    given = _value(name, tie, value, start + len(value))
    # A compiler's pass is told from a password by what stands behind it.
    if not is_believed(given) or (
        not tie["rest"] and name.stem == "pass" and not given.tight and given.follows[:1] == " "
    ):
        return None
    whole = _RUN.match(name.text, end)
    longer_end = whole.end() if whole is not None and whole[0] else start + len(value)
    return start, longer_end


_OPENS = {")": "(", "]": "[", "}": "{"}


def _value(name: _Name, tie: re.Match[str], value: str, end: int) -> Value:
    sign = tie["sign"] or ""
    tight = sign == "=" and tie[0].endswith("=") and not tie["about"]
    before = name.text[tie.end("sign") - 2 : tie.end("sign") - 1]
    return Value(
        text=value,
        follows=name.text[end : end + 2],
        sign=sign,
        tight=tight and before != " ",
        wordy=name.stem in _WORDY,
        exact=tie["rest"].lower() in _ENDINGS and not tie["about"],
        upper=name.text[name.at : name.end].isupper(),
    )


def _may_be_bare(name: _Name) -> bool:
    """Whether a value may stand behind the name with a space alone between them."""
    variable = _is_variable(name) and name.text[name.at - 1 : name.at] == "_"
    return _is_given(name) or variable or _is_flag(name)


def _is_given(name: _Name) -> bool:
    before = max(0, name.at - 12)
    return name.stem == "pass" and _GIVEN.search(name.lowered, before, name.at) is not None


def _is_variable(name: _Name) -> bool:
    return name.stem == "pass" and name.text[name.at : name.end].isupper()


def _is_flag(name: _Name) -> bool:
    """Whether the name ends an option like ``--db-password``."""
    before = name.text[max(0, name.at - 24) : name.at]
    return "--" in (before.rsplit(None, 1)[-1:] or [""])[0] if before else False


def _told(name: _Name) -> tuple[int, int] | None:
    """A value behind words of another language between the name and what ties it."""
    if name.stem.isascii():
        return None
    tie = _FOREIGN_ABOUT.match(name.text, name.end)
    found = _BARE.match(name.text, tie.end()) if tie is not None else None
    if tie is None or found is None:
        return None
    value = found[0].rstrip(".:!?")
    end = found.start() + len(value)
    told = Value(value, name.text[end : end + 2], "", False, False, False, False)
    return (found.start(), end) if is_believed(told) else None


def _near(name: _Name) -> tuple[int, int] | None:
    """A high-entropy run close behind the name, unless it is called a commit or a checksum."""
    window = name.text[name.end : name.end + _NEAR_WINDOW + 200]
    for run in _NEAR.finditer(window):
        if run.start() > _NEAR_WINDOW:
            return None
        before = window[: run.start()].lower() + run[0][:4].lower()
        if looks_random(run[0]) and not _PUBLIC.search(before):
            return name.end + run.start(), name.end + run.end()
    return None


def seeds(text: str, lowered: str, runs: bool) -> Iterator[tuple[str, int, int]]:
    """(kind, start, end) of the words a wallet is restored from, and of seeds of one-time codes."""
    if (":" in text or "=" in text) and ("phrase" in lowered or "mnemonic" in lowered):
        for match in _WORDS.finditer(lowered):
            yield "seed-phrase", *match.span("secret")
        yield from (("assignment", *span) for span in passphrases(lowered))
    if "2" in text:
        yield from _codes(text, lowered, "2fa")
    if runs:
        yield from _codes(text, lowered, "otp")


def _codes(text: str, lowered: str, literal: str) -> Iterator[tuple[str, int, int]]:
    at = lowered.find(literal)
    while at >= 0:
        match = _CODES.match(text, at)
        end = at + len(literal)
        if match is not None and any(digit in match["secret"] for digit in _BASE32_DIGITS):
            yield "one-time-seed", *match.span("secret")
            end = match.end()
        at = lowered.find(literal, end)
