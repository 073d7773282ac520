"""Standing rules in the plain words people use for them, and what only sounds like one.

Both lists were written before the rules that read them, and nothing was tuned on them but on
sentences of the same kinds; a statement that is missed may be, one that is invented may not.
"""

from __future__ import annotations

from memoryd.memory.facts import Fact, SliceMessage, check_evidence, parse_answer
from memoryd.memory.prompt import build
from memoryd.memory.providers.rules import RulesProvider

#: Each is meant to last.
STANDING = (
    "Don't use global variables in the core package.",
    "Do not use wildcard imports.",
    "Don't add docstrings to test functions.",
    "Do not write comments that repeat the code.",
    "don't mix tabs and spaces",
    "Please don't use abbreviations in identifiers.",
    "Do not commit generated files.",
    "Use semantic versioning for all releases.",
    "Use a feature branch for every change.",
    "Write a changelog entry for each pull request.",
    "use type hints in all Python files",
    "Add a test for every bug fix.",
    "Put unit tests next to the code in every package.",
    "Stop using print statements for debugging.",
    "Stop apologizing in your answers.",
    "please stop adding comments to the code",
    "Keep lines under 100 characters.",
    "Keep commit messages under 72 characters.",
    "Limit functions to 30 lines.",
    "We release every second Tuesday.",
    "We cut releases on the first Monday of the month.",
    "We freeze the main branch every Friday.",
    "Changed my mind: never use semicolons in TypeScript.",
    "Actually, scratch that: always use tabs in Makefiles.",
    "I'd like you to always run the linter before committing.",
    "I would like you to never touch the migrations folder.",
    "I want you to use metric units in all examples.",
    "Note that the minimum Node version is 20.",
    "Please note that production runs on Debian 12.",
    "Note that the database schema is owned by the platform team.",
)

#: None of these is.
PASSING = (
    "Don't use the cache for this run.",
    "Don't use that function.",
    "Do not use it.",
    "Don't add the header yet.",
    "don't worry about tests",
    "Do not commit the file I just opened.",
    "Don't forget to push.",
    "Don't use mocks, I said? Why not?",
    "Use the staging server for now.",
    "Use the second argument for all of it.",
    "Use this for every test you just wrote.",
    "Write a test for each function in this file.",
    "Add a column for every month to the report.",
    "Use a loop for each row.",
    "Stop the server.",
    "Stop running the tests, they hang.",
    "Stop.",
    "stop doing that",
    "Keep going.",
    "Keep it under 10 lines.",
    "Keep the summary under 200 words.",
    "We deploy on Thursdays, right?",
    "We meet on Monday to talk about the bug.",
    "They deploy on Thursdays.",
    "We deployed on Thursday.",
    "Changed my mind: use the first option.",
    "I'd like you to fix the typo in the readme.",
    "Note that the test failed.",
    "Note that this is only a draft.",
    "Note that I am on my phone.",
)


def _facts(text: str) -> tuple[SliceMessage, tuple[Fact, ...]]:
    message = SliceMessage("m1", 1, "id-m1", "user", text, 1, "p")
    return message, parse_answer(RulesProvider().complete(build([message], ())).text).facts
