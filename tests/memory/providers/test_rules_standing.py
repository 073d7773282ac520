"""Standing rules in the plain words people use for them, and what only sounds like one.

Both lists were written before the rules that read them: 27 were kept at first and nothing invented.
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

#: So is each of these, written later.
LATER = (
    "Don't use mocks in integration tests.",
    "Do not use default exports.",
    "Use conventional commits for every commit message.",
    "Stop adding emojis to commit messages.",
    "Please keep functions under 40 lines.",
    "We deploy on Thursdays.",
    "I changed my mind: always use pnpm for packages.",
    "I'd like you to always write docstrings.",
    "Note that the API version is v3.",
    "Please do not use inline styles in React components.",
    "Avoid nested ternaries in JSX.",
    "Do not push merge commits to main.",
    "Don't use magic numbers in the pricing code, they confuse everyone.",
    "Use ISO 8601 dates in all API responses.",
    "Stop creating helper files for small functions.",
    "We deploy to production on Tuesdays and Thursdays.",
    "We ship releases every two weeks.",
    "Note that staging uses Postgres 15.",
    "Note that all prices are in cents.",
    "Use bun, not pnpm.",
    "We moved from yarn to pnpm.",
    "Don't deploy on Fridays",
    "Stop adding comments.",
)

#: Meant to last, and left out all the same: the form is that of a task.
MISSED = ("Put unit tests next to the code in every package.",)

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
    "Fix the parser. Don't use regular expressions.",
    "Don't use regular expressions in parse_header().",
    "Write a script that counts lines. Do not use external libraries.",
    "Don't run tests on the server yet",
    "Do not touch tests in test_auth.py",
    "Don't use the old parser in the new tests.",
    "Don't push changes to origin",
    "Add type hints to all functions.",
    "Add logging to every endpoint.",
    "Use the new logger in all modules.",
    "Make a list with all changes",
    "Create a branch for each feature we discussed",
    "Stop printing logs",
    "Limit results to 10 lines.",
    "We push on Friday",
    "We run into this every day",
    "I want you to stop adding the header",
    "Note that production is down",
    "Note that the API returns 500",
    "Note that the server is running on port 3001",
    "Note that the build uses 3 workers now",
    "Use foo, not bar",
    "We moved from the old file to the new one",
    "Add comments to all commits",
    "Open pull requests for all branches",
    "Stop writing tests",
    "Limit requests to 10 seconds",
    "Note that the limit is 5",
    "Fix it. We moved from foo to bar.",
    "He says don't use mocks in integration tests.",
)


def _facts(text: str) -> tuple[SliceMessage, tuple[Fact, ...]]:
    message = SliceMessage("m1", 1, "id-m1", "user", text, 1, "p")
    return message, parse_answer(RulesProvider().complete(build([message], ())).text).facts


def test_each_standing_rule_gives_one_statement_that_stands_on_it() -> None:
    """Whatever words it comes out in."""
    wrong = []
    for text in STANDING + LATER:
        message, facts = _facts(text)
        if len(facts) != 1 or isinstance(check_evidence(facts[0], [message]), str):
            wrong.append((text, [fact.statement for fact in facts]))

    assert wrong == []


def test_nothing_is_invented_of_what_passes() -> None:
    """A task beside the order makes the order one of its own."""
    found = {text: [fact.statement for fact in _facts(text)[1]] for text in PASSING}

    assert {text: facts for text, facts in found.items() if facts} == {}


def test_what_is_missed_on_purpose_is_known() -> None:
    """A form that is read one day moves to the other list."""
    assert [text for text in MISSED if _facts(text)[1]] == []
