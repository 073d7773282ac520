"""What people say in the archive: statements that must be remembered, and talk that must not.

Every statement has four words that stand nowhere else in the archive, so that a note can be told by
them alone, whatever the rules made of the sentence.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

_CONSONANTS, _VOWELS = "bdfgklmnprtvz", "aeiou"
_SYLLABLES = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]
_WORDS = len(_SYLLABLES) ** 4
#: Prime to ``_WORDS``: words that follow each other have nothing in common.
_STEP = 7_654_321

#: Each in a form that the rules keep; the first word of four is early enough to name the note.
STATEMENTS = (
    "Always run the {} check before changing {}, since {} depends on {}.",
    "Never rename the {} tables without telling {}, because {} reads {} from them.",
    "We decided to use {} for {} because {} kept losing {}.",
    "From now on, tag {} releases with {} and announce {} in {}.",
    "Remember that the {} gateway hands {} requests to {} through {}.",
    "I prefer {} over {} when {} meets {}.",
    "The project uses {} for {} and {} for {}.",
    "The {} runbook of {} lives in docs/{}/{}.md.",
)
LEAD_INS = ("", "", "", "By the way, ", "Also, ", "One more thing: ")

#: What a person says and nobody should remember: questions, tasks, thanks.
ASKED = (
    "Can you look at {file} and tell me why the second case fails?",
    "What does the log say around line {number}?",
    "Please rerun the failing case and show me the last {number} lines.",
    "Why is {file} imported twice?",
    "Could you move the helper in {file} next to its only caller?",
    "Thanks, that looks right.",
    "Hm, the output still has {number} rows too many. What changed?",
    "Open {file} at line {number} and explain the loop to me.",
    "Does the test in {file} fail without the patch?",
    "Try it again with {number} workers and compare the two runs.",
    "Is there a reason why {file} is read before the lock is taken?",
    "Fix the typo in {file}, then run the tests again.",
)
#: What the assistant says, in the form of a statement too: it is not the person's.
ANSWERED = (
    "I read {file} and the failure comes from line {number}, where the buffer is reused.",
    "The run took {number} ms; most of that is spent in {file}.",
    "I moved the helper, updated its {number} callers and ran the suite again: everything passes.",
    "The log shows {number} retries before the connection is given up, which is what you saw.",
    "There are two ways to go on: keep {file} as it is and wrap it, or split it in {number} parts.",
    "That is expected: {file} is generated, and the generator writes {number} rows a block.",
    "Done. The diff touches {file} and nothing else.",
    "I could reproduce it with {number} workers, but not with one.",
)
_FOLDERS = ("src", "lib", "tests", "tools", "app/core", "pkg/io")
_FILES = ("reader.py", "queue.go", "index.ts", "lease.rs", "table.sql", "window.c", "render.tsx")


@dataclass(frozen=True)
class Fact:
    """One statement and the four words by which it is known."""

    words: tuple[str, str, str, str]
    text: str


def word(number: int) -> str:
    """The word of that number: four syllables, each number another word."""
    rest, found = number * _STEP % _WORDS, []
    for _ in range(4):
        rest, at = divmod(rest, len(_SYLLABLES))
        found.append(_SYLLABLES[at])
    return "".join(found)


def fact(number: int) -> Fact:
    """The fact of that number; no two have a word in common."""
    words = (word(4 * number), word(4 * number + 1), word(4 * number + 2), word(4 * number + 3))
    return Fact(words, STATEMENTS[number % len(STATEMENTS)].format(*words))


def talk(chance: random.Random, phrases: tuple[str, ...], characters: int) -> str:
    """At least so many characters of ordinary talk, in paragraphs of some sentences."""
    said: list[str] = []
    size = 0
    while size < characters or not said:
        phrase = phrases[int(chance.random() * len(phrases))]
        said.append(phrase.format(file=_file(chance), number=int(chance.random() * 900) + 7))
        size += len(said[-1]) + 1
    lines = [" ".join(said[at : at + 4]) for at in range(0, len(said), 4)]
    return "\n\n".join(lines)


def _file(chance: random.Random) -> str:
    folder = _FOLDERS[int(chance.random() * len(_FOLDERS))]
    return f"{folder}/{_FILES[int(chance.random() * len(_FILES))]}"
