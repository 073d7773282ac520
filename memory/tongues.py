"""In which script and language a text seems to be, and its words in forms that can be compared.

Rough on purpose: it only decides whether two texts can be held against each other by their words.
Nothing is guessed where too little stands there to tell.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from memoryd.memory.memo import kept_for_short
from memoryd.memory.pairs import COMMON
from memoryd.memory.text import words

#: Letters of a script; Han counts for Chinese and, where kana stand beside it, for Japanese.
_SCRIPTS: dict[str, re.Pattern[str]] = {
    "latin": re.compile("[a-z\u00c0-\u024f\u1e00-\u1eff]+", re.IGNORECASE),
    "cyrillic": re.compile("[\u0400-\u052f]+"),
    "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]+"),
    "hebrew": re.compile("[\u0590-\u05ff]+"),
    "arabic": re.compile("[\u0600-\u06ff]+"),
    "hangul": re.compile("[\uac00-\ud7af]"),
    "kana": re.compile("[\u3040-\u30ff]"),
    "han": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
}
#: Characters of these scripts that weigh as much as one word of the others.
_CHARACTERS_A_WORD = {"hangul": 2, "kana": 2, "han": 2}
#: The words that a text of some length cannot do without, and no other language writes so.
_LITTLE_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(text.split())
    for language, text in {
        "en": "the is are was were be been and or to of for with not this that these it its they"
        " their he she his her i we you my our your me should must can don doesn never always only"
        " when before after while have has had do does did will would if as at by from on into use"
        " uses used using want wants prefer prefers like likes love loves hate hates keep keeps"
        " please than instead every all any no but so there what which who how run runs make let",
        "nl": "het een ik wij je jij jullie mijn ons onze niet geen en maar voor met zijn wordt"
        " worden moet moeten wil graag liever altijd nooit dat deze dit bij naar ook als wel nog"
        " gebruik gebruiken gebruikt van op aan uit heeft hebben alleen elke houdt zonder",
        "de": "der das ein eine einen einem ich wir du ihr mein unser nicht kein keine und aber"
        " mit ist sind wird werden muss soll bitte immer nie niemals dass diese dieser bei nach"
        " auch als wenn noch vor zum zur im den dem von auf benutze verwende lieber bevorzugt nur",
        "fr": "le les une des du je nous vous il elle mon notre pas ne et mais pour avec est sont"
        " doit toujours jamais que qui cette ce ces dans sur aux par plus sans utilise utiliser"
        " toutes tous avant chaque",
        "es": "el los las una unos yo nosotros usted mi nuestro y pero con es son debe siempre"
        " nunca que esta este en del al sin usa usar prefiero prefiere antes cada todas todos",
        "pt": "os um uma eu meu nosso e mas com sempre nunca esta este em do da dos das no na"
        " sem usa usar prefiro prefere antes cada todas todos deve",
        "it": "il lo gli uno io noi mio nostro non ma con sono deve sempre mai che questa questo"
        " di della del nel nella senza usa usare preferisco preferisce prima ogni tutti tutte",
    }.items()
}
#: Words from which on one that has none of the little words of any of them is in another language.
_TELLING_WORDS = 5
_LETTERS_COMPARED = 4
#: Arabic words are compared without what is written together with them in front and behind.
_ARABIC_HEAD = re.compile("^(?:[وف]?(?:[بكل]?ال|لل)|[وف](?=.{4}))(?=.{2})")
_ARABIC_TAIL = re.compile("(?<=.{3})(?:ها|هم|نا|ات|ون|ين|ه|ة|ي|ى)$")
_ARABIC = re.compile("[\u0621-\u064a]")
_PAIR = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
#: Pairs of nothing but kana endings, Korean endings, and what Chinese cannot do without.
_LITTLE_PAIR = re.compile(
    "[\u3040-\u309f]+$|.*(?:니다|하는|하고|에서|으로|해요|세요)|.?[的了是在我你他们這这那和就都要请請不也]"
)
_BETWEEN = re.compile(
    "(?<=[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef])(?=[!-~])"
    "|(?<=[!-~])(?=[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef])"
)
#: What statements are made with, whatever they say: who it is about, and that they want it so.
_FRAMES = frozenset(
    words(
        "user person people they their team project prefer prefers preferred preference want wants"
        " wanted like likes liked love loves loved hate hates hated dislike dislikes need needs"
        " needed think thinks going get gets got really thing things one ones way ways work works"
        " working good great please say says said know time also instead rather"
        " gebruiker persoon project wil graag liever houdt altijd nooit gebruikt"
        " nutzer person bevorzugt immer nie verwendet benutzt lieber möchte"
        " utilisateur projet préfère toujours jamais utilise aime veut"
        " usuario proyecto prefiere siempre nunca usa quiere gusta"
        " المستخدم المشروع يفضل افضل يحب احب يريد اريد دائما ابدا يستخدم استخدم"
    )
)
#: Words that statements are made of for one another, by their stems.
_SYNONYMS = {
    other: first
    for first, *others in (
        ("shor", "conc", "brie", "ters", "succ"),
        ("answ", "repl", "resp"),
        ("deta", "verb", "thor"),
    )
    for other in others
}
_DIGITS = {
    zero + digit: str(digit) for zero in (0x660, 0x6F0, 0x966, 0xFF10) for digit in range(10)
}


def apart(text: str) -> str:
    """``text`` in ASCII digits, with a space where a script without spaces meets one with them."""
    if text.isascii():
        return text
    return _BETWEEN.sub(" ", unicodedata.normalize("NFC", text).translate(_DIGITS))


def script(text: str) -> str:
    """The script most of ``text`` is in; "" where it has no letters of any that is known."""
    weights = {
        name: len(letters.findall(text)) / _CHARACTERS_A_WORD.get(name, 1)
        for name, letters in _SCRIPTS.items()
    }
    if weights["kana"]:
        weights["kana"] += weights.pop("han")
    best = max(weights, key=lambda name: weights[name])
    return best if weights[best] else ""


@kept_for_short
def language(text: str) -> str:
    """The language of ``text``, ``?`` for one that is not known, "" where too little tells.

    Only Latin script is looked at more closely: any other counts as one language.
    """
    written = script(text)
    if written != "latin":
        return written
    found = _SCRIPTS["latin"].findall(text.casefold())
    said = Counter(
        {name: sum(word in little for word in found) for name, little in _LITTLE_WORDS.items()}
    )
    (first, most), (_, second) = said.most_common(2)
    if most > second:
        return first
    return "?" if not most and len(found) >= _TELLING_WORDS else ""


def comparable(statement: str, said: str) -> bool:
    """Whether some word of ``statement`` must be found again in ``said``, if it is true.

    Not where it seems to be a translation: then nothing but values and names stays. Into English,
    that is, or into another script: who speaks English is answered in it.
    """
    if script(statement) != script(said):
        return False
    return language(said) in {"", "en", language(statement)}


def in_one_language(statement: str, said: str) -> bool:
    """Whether both are in one language, as far as can be told."""
    return comparable(statement, said) and language(statement) in {"", language(said)}


@kept_for_short
def telling_stems(text: str) -> frozenset[str]:
    """The words of ``text`` that say something, in a form that their other forms share."""
    return telling(words(apart(text)))


def telling(said: Iterable[str]) -> frozenset[str]:
    """The stems of those of ``said``, words as ``words`` gives them, that say something."""
    return frozenset(
        stem(word)
        for word in said
        if word not in COMMON and word not in _FRAMES and not _is_little(word)
    )


def stem(word: str) -> str:
    """The beginning of a word as ``words`` gives it, by which it is compared."""
    if _ARABIC.search(word):
        bare = _ARABIC_TAIL.sub("", _ARABIC_HEAD.sub("", word))
        return bare[:_LETTERS_COMPARED]
    if word.isdigit() or _PAIR.search(word):
        return word
    if len(word) == _LETTERS_COMPARED and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    begin = word[:_LETTERS_COMPARED]
    return _SYNONYMS.get(begin, begin)


def _is_little(word: str) -> bool:
    if _PAIR.search(word):
        return _LITTLE_PAIR.match(word) is not None
    return len(word) < 2
