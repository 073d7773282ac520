"""What a rule finds, and the values it may name: commands, places, technical words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memoryd.memory.facts import Category, DraftType


def word_set(words: str) -> frozenset[str]:
    """The words of ``words``."""
    return frozenset(words.split())


_TOOLS = word_set(
    "npm pnpm yarn bun npx bunx make just task tox nox pytest cargo go gradle gradlew mvn uv poetry"
    " pdm hatch rake bundle mix dotnet deno node python python3 ruff mypy pyright jest vitest bazel"
    " nx turbo composer php sbt swift xcodebuild docker ctest cmake meson ninja invoke inv rspec"
    " phpunit mocha playwright cypress eslint prettier biome black flake8 pylint golangci-lint"
    " clippy rustfmt gofmt pre-commit tsc stylelint unittest hypothesis nix zig bundler rails"
    " flutter dart lein clj stack cabal alembic flyway prisma knex"
)
#: What is run with a command, as a group of an expression.
WHAT = (
    r"(?P<what>(?:(?:unit|integration|e2e|end-to-end|all|type|smoke) )?"
    r"(?:tests?|checks?|lint|linters?|linting|formatters?|benchmarks?|builds?|migrations?))"
)
#: What a team does or does not do as a rule.
HABITS = word_set(
    "use deploy release merge squash rebase push commit test review write sign ship run build lint"
    " format tag branch pin document name keep put store log mock force touch edit add prefer pair"
    " ask avoid require return raise catch throw handle validate check import export expose"
    " generate version bump cut freeze roll publish vendor cache commit delete drop migrate open"
    " close assign label backport cherry-pick hotfix start follow create include skip bundle inline"
)
_AND_THEN = re.compile(r"\b(?:and|then|to see|so that|please|first|again|now)\b|[,;]")
_PATH = re.compile(r"(?:~|\.{1,2})?/[\w./@%+~{}*-]*|[\w.@-]+/[\w./@%+~{}*-]*|\.?[\w-]+\.[a-z]{1,5}")
_HOST = re.compile(
    r"(?:[a-z0-9-]+\.)+(?:com|net|org|io|dev|internal|local|lan|corp|cloud|app|ai|co|test|example"
    r"|[a-z]{2})(?::\d{2,5})?(?:/\S*)?|(?=\S*[a-z])[a-z0-9.-]+:\d{2,5}"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?::\d{2,5})?",
    re.IGNORECASE,
)
#: Endings of files that are endings of hosts too.
_SOURCE = re.compile(r".*\.(?:py|rs|ts|js|go|rb|cs|md|sh|pl|kt|hs|ml|mk|so|vi|io)", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,12}://\S+")
_SYSTEM = re.compile(
    r"(?:the |our )?(?:notion|confluence|linear|jira|slack|vault|1password|bitwarden|google drive"
    r"|google docs|sharepoint|s3|github|gitlab|sentry|grafana|datadog|figma|miro|trello|asana"
    r"|airtable|keychain|aws|gcp|azure|vercel|wiki)\b.{0,60}",
    re.IGNORECASE,
)
_TECHNICAL = re.compile(
    r"[A-Za-z][A-Za-z0-9_.+#/-]*|[~./][A-Za-z0-9_~./-]+"
    r"|(?:npm|pnpm|yarn|bun)(?: [A-Za-z0-9_~./:-]+){1,4}"
)


@dataclass(frozen=True)
class Found:
    """One statement worth a note. ``value`` is what a preference prefers, else empty.

    ``alone`` says that its form is that of a task too: it counts in a message of nothing else.
    """

    statement: str
    category: Category
    type: DraftType
    value: str = ""
    alone: bool = False


def tidy(text: str) -> str:
    """White space folded, outer punctuation taken off."""
    return " ".join(text.split()).strip(" ,;:").rstrip(".!؟،")


def sentence(text: str) -> str:
    """``text`` as a sentence: a capital (but for code and Arabic) and a full stop."""
    said = tidy(text)
    first = said.split(" ", 1)[0]
    if first.isascii() and first.replace("'", "").isalpha() and first.islower():
        said = said[0].upper() + said[1:]
    return f"{said}."


def is_tool(text: str) -> bool:
    """Whether ``text`` is the name of a tool that work is done with."""
    return text.lower() in _TOOLS


def command(text: str) -> str | None:
    """The command that ``text`` is, without backticks; None for other words."""
    said = tidy(text)
    ticked = re.fullmatch(r"`([^`]+)`", said)
    if ticked is not None:
        return ticked[1].strip() or None
    first = said.split(" ", 1)[0].rpartition("/")[2]
    known = first.lower() in _TOOLS or said.startswith(("./", "bin/", "scripts/", "script/"))
    return said if known and len(said.split()) <= 8 and not _AND_THEN.search(said) else None


def place(text: str, *, named: bool = False) -> str | None:
    """The path or URL that ``text`` is; with ``named`` also a system that things are kept in."""
    said = tidy(text)
    bare = said.strip("`")
    if _URL.fullmatch(bare):
        return bare
    if host(bare) is not None:
        return bare
    if _PATH.fullmatch(bare):
        return f"`{bare}`"
    return said if named and _SYSTEM.fullmatch(said) else None


def host(text: str) -> str | None:
    """The host (or address, with a port or a path) that ``text`` is; None for other words."""
    bare = tidy(text).strip("`")
    plain = bare.count(".") < 2 and _SOURCE.fullmatch(bare) is not None
    return bare if _HOST.fullmatch(bare) and not plain else None


def technical(text: str) -> str | None:
    """A value of Latin technical words in a sentence of another script, else None."""
    said = tidy(text).strip("`")
    return said if _TECHNICAL.fullmatch(said) else None
