"""Whatever memoryd can say in a word of its own is explained in docs/, and nothing else is.

The words are taken from the code: from its constants, and from the calls that write a code down, so
that a new one fails here until it has its line.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from memoryd.jobs import candidates
from memoryd.jobs.accounts import ENDINGS
from memoryd.jobs.breaker import Breaker
from memoryd.jobs.candidates import FATES
from memoryd.jobs.daily_runs import DailyRun
from memoryd.jobs.figures import Done, Oldest, Spending, Waits
from memoryd.jobs.report import Brief, Report
from memoryd.jobs.schema import MIGRATIONS
from memoryd.memory import config, errors
from memoryd.memory.config import Config
from memoryd.memory.disk import Disk, Use
from memoryd.memory.holders import Holder
from memoryd.memory.policy import REASONS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FOLDERS = ("memory", "sessions", "jobs", "daemon", "cli")
CODE = re.compile(r"[a-z][a-z0-9]*(\.[a-z0-9][a-z0-9_-]*)+")
#: Where the codes of rows are made.
OF_ROWS = ("jobs/*.py", "memory/consolidation.py", "memory/policy.py")
#: What is said at points where a test may stop a process, and to the log, stands in no row.
SPOKEN = {"before", "reach", "debug", "info", "warning", "error", "exception", "failed"}
#: Constants of jobs/ that look like a code and are none: types of file systems.
NO_CODES = {"fuse.sshfs", "fuse.s3fs"}


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the product, by its path."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8"))
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def of_rows() -> list[ast.Module]:
    """The modules in which the codes of rows are made."""
    paths = {path for pattern in OF_ROWS for path in ROOT.glob(pattern)}
    return [trees()[path.relative_to(ROOT).as_posix()] for path in sorted(paths)]


@dataclass
class Said:
    """What a module says, gathered in one walk: its calls by name, and its string constants."""

    calls: list[tuple[str, ast.Call]] = field(default_factory=list)
    constants: list[ast.Constant] = field(default_factory=list)


@cache
def said_in(tree: ast.AST) -> Said:
    """All of it."""
    found = Said()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
            found.calls.append((str(name), node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.constants.append(node)
    return found


def calls(modules: Iterable[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
    """Each call with the name of what it calls: ``complete`` of ``ledger.complete(...)``."""
    for tree in modules:
        yield from said_in(tree).calls


def texts(nodes: Iterable[ast.AST]) -> set[str]:
    """The string constants below these nodes."""
    return {str(constant.value) for node in nodes for constant in said_in(node).constants}


def row_codes(modules: list[ast.Module]) -> set[str]:
    """Codes that these modules may write into a row: whole constants, and literals of their SQL."""
    spoken = {
        id(part)
        for name, call in calls(modules)
        if name in SPOKEN
        for argument in call.args
        for part in said_in(argument).constants
    }
    constants = {
        str(each.value)
        for tree in modules
        for each in said_in(tree).constants
        if id(each) not in spoken
    }
    in_sql = {found for text in constants for found in re.findall(r"'([a-z][a-z0-9.-]+)'", text)}
    return {text for text in constants | in_sql if CODE.fullmatch(text)} - NO_CODES


def findings(modules: Iterable[ast.Module]) -> set[str]:
    """Codes of what the doctor finds and repairs, and of its checks that find nothing."""
    firsts = [
        call.args[0]
        for name, call in calls(modules)
        if name in {"Finding", "Check", "Step", "found_by"} and call.args
    ]
    named = [
        word.value
        for name, call in calls(modules)
        if name == "found_by"
        for word in call.keywords
        if word.arg == "code"
    ]
    return {text for text in texts([*firsts, *named]) if CODE.fullmatch(text)}


def events(modules: Iterable[ast.Module]) -> set[str]:
    """Names of what is logged: the first argument of ``failed``, ``logger().info`` and its like."""
    return {
        text
        for name, call in calls(modules)
        if name == "failed"
        or (
            name in SPOKEN - {"before", "reach"}
            and isinstance(call.func, ast.Attribute)
            and ast.unparse(call.func.value) in {"logger()", "log.logger()"}
        )
        for text in texts(call.args[:1])
    }


def error_codes() -> set[str]:
    """The code of every error of ours."""
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    return {each.code for each in kinds if issubclass(each, errors.MemorydError)}


def rows_of(document: str, heading: str) -> list[list[str]]:
    """The rows of every table below a heading, cell by cell; up to the next one."""
    text = (DOCS / document).read_text("utf-8")
    assert f"\n{heading}\n" in text, f"{document} has no {heading}"
    level = heading.split(" ", 1)[0]
    after = text.partition(f"\n{heading}\n")[2]
    section = re.split(rf"^#{{1,{len(level)}}} ", after, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [
        line
        for line, below in pairwise([*section.splitlines(), ""])
        if line.startswith("| `") and not below.startswith("|---")
    ]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines]


def told(document: str, heading: str) -> set[str]:
    """What stands in the first cells of those tables as code."""
    return {text for row in rows_of(document, heading) for text in re.findall(r"`([^`]+)`", row[0])}


OF_JOBS = [
    "## Outcomes",
    "## Why a job waits",
    "## What counts as a failure",
    "## Errors that stand in no row",
    "## Candidates",
]


def undocumented(codes: set[str]) -> list[str]:
    """Those that no table about jobs has."""
    known = set().union(*(told("jobs.md", heading) for heading in OF_JOBS))
    return sorted(codes - known)


def test_every_code_of_a_row_is_documented() -> None:
    """Outcomes, reasons to wait, errors, exclusions: whatever `memoryd list` can show."""
    found = row_codes(of_rows()) - findings(of_rows()) - set(REASONS)

    assert undocumented(found - {"memory.saved"}) == []


def test_every_error_is_documented() -> None:
    """Each may end an attempt, be found by the doctor, or end a command."""
    assert undocumented(error_codes()) == []


def test_every_reason_and_state_of_a_candidate_is_documented() -> None:
    """And what a person or a forget makes of it."""
    states = {state for state, _, _ in FATES.values()} | set(candidates._FIRST_STATE.values())
    states |= {
        text
        for _, call in calls(of_rows())
        for word in call.keywords
        if word.arg == "state"
        for text in texts([word.value])
    }
    in_sql = texts([trees()["jobs/candidates.py"]])
    states |= {found for text in in_sql for found in re.findall(r"\bstate = '([a-z]+)'", text)}
    text = (DOCS / "jobs.md").read_text("utf-8").partition("## Candidates")[2]

    assert undocumented(set(REASONS) | {reason for _, reason, _ in FATES.values() if reason}) == []
    assert [state for state in sorted(states) if f"`{state}`" not in text] == []


def test_every_code_that_is_documented_exists() -> None:
    """A code that nothing says any more is taken out of its table."""
    said = texts(trees().values())
    in_sql = {found for text in said for found in re.findall(r"'([a-z][a-z0-9.-]+)'", text)}
    known = set().union(*(told("jobs.md", heading) for heading in OF_JOBS))
    # Made of a session's kind: `session.{kind}`.
    made = {"session.child", "session.internal"}

    assert sorted(known - said - in_sql - made - error_codes()) == []


def test_every_ending_of_an_attempt_is_documented() -> None:
    """Those of the log too, and no others."""
    assert told("jobs.md", "## Attempts") == set(ENDINGS)


def test_an_attempt_ends_as_documented_wherever_the_ledger_ends_one() -> None:
    """Each call that ends an attempt names one of them."""
    named: set[str] = set()
    parts = [tree for path, tree in trees().items() if path.startswith("jobs/ledger")]
    for name, call in calls(parts):
        if name == "_end_attempt":
            named |= texts([call.args[1]])
        named |= texts(word.value for word in call.keywords if word.arg == "ending")

    assert named == set(ENDINGS) - {"lost", "throttled"}


def test_every_trigger_is_documented() -> None:
    """Whatever a call gives for who made a job."""
    from memoryd.cli.words import MADE_BY

    given = {
        text
        for _, call in calls(trees().values())
        for word in call.keywords
        if word.arg == "trigger"
        for text in texts([word.value])
    }

    assert given <= set(MADE_BY) == told("jobs.md", "## Who made a job")


def test_every_state_of_a_breaker_is_documented() -> None:
    """As the table's own check has them; a provider without a row is simply asked."""
    schema = "".join(MIGRATIONS)
    checked = re.search(r"create table breaker .*?state in \(([^)]*)\)", schema, re.DOTALL)
    assert checked is not None

    assert told("jobs.md", "## Breakers") == set(re.findall(r"'(\w+)'", checked[1]))


def test_every_reason_to_wait_is_said_in_words_with_what_to_do() -> None:
    """What `memoryd show` tells a person is never a bare code."""
    from memoryd.cli.words import plain, to_do

    text = (DOCS / "jobs.md").read_text("utf-8").partition("| `wait_reason` |")[2]
    reasons = re.findall(r"^\| `([^`]+)` \|", text.partition("\n\n")[0], re.MULTILINE)

    assert len(reasons) > 10
    assert [code for code in reasons if plain(code) == code or not to_do(code)] == []


def test_every_key_of_the_status_is_documented() -> None:
    """Those of the report, and of what it is made of."""
    (row,) = [row for row in rows_of("jobs.md", "## JSON") if row[0] == "`status`"]
    parts = [Report, Brief, Waits, Oldest, Done, Spending, Breaker, Holder, Disk, Use, DailyRun]
    names = {each.name for part in parts for each in fields(part)}

    assert sorted(name for name in names if f"`{name}`" not in row[1]) == []


def test_every_finding_of_the_doctor_is_documented() -> None:
    """Each check's own, and the errors that a look may end with."""
    known = told("jobs.md", "## What the doctor finds")
    said = texts(trees().values()) | error_codes()

    assert sorted(findings(trees().values()) - known) == []
    assert sorted(known - said) == []


def test_every_event_of_the_log_is_documented() -> None:
    """docs/logs.md has each, and no other."""
    assert told("logs.md", "## Events") == events(trees().values())


def test_every_exit_code_is_documented() -> None:
    """Those with a name in the code, and the two that have none: done, and usage."""
    named = {
        node.value.value
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and any(ast.unparse(target).startswith("EXIT_") for target in node.targets)
    }

    table = (DOCS / "service.md").read_text("utf-8").partition("\n## Exit codes\n")[2]
    rows = re.findall(r"^\| (\d[\d n+]*) \|", table.partition("\n## ")[0], re.MULTILINE)
    assert set(rows) == {str(code) for code in {0, 1, 2, *named}} | {"128 + n"}


def as_typed(value: object) -> str:
    """A default as a person writes it in the file."""
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value)


def test_every_key_of_the_configuration_is_documented_with_its_default() -> None:
    """docs/configuration.md has each with the value that stands without it, and no other."""
    text = (DOCS / "configuration.md").read_text("utf-8")
    sections = re.findall(r"^## `\[(\w+)\]`", text, re.MULTILINE)
    documented = {
        f"{section}.{row[0].strip('`')}": row[1].strip("`")
        for section in sections
        for row in rows_of("configuration.md", f"## `[{section}]`")
    }
    defaults = {
        f"{name}.{key}": as_typed(value)
        for name, section in vars(Config()).items()
        for key, value in vars(section).items()
    }

    assert documented == defaults
    assert sections == list(vars(Config()))


def test_the_bounds_of_a_number_are_documented() -> None:
    """Where the configuration refuses what is over or under."""
    for (section, key), (low, high) in config._BOUNDS.items():
        rows = {row[0]: row[2] for row in rows_of("configuration.md", f"## `[{section}]`")}

        assert f"({low} to {high})" in rows[f"`{key}`"] or f"({low} to {high});" in rows[f"`{key}`"]


@pytest.mark.parametrize(
    ("source", "look"),
    [
        ('place.ledger.complete(job, "brand.new")', row_codes),
        ('return "brand.new" if gone else "nothing.said"', row_codes),
        ("""CANCEL = "update job set outcome_code = 'brand.new' where id = :id" """, row_codes),
        ('raise Snooze(until, "brand.new", detail)', row_codes),
        ('yield Finding("brand.new", "problem", what, todo)', findings),
        ('Check("brand.new", "all is well", look)', findings),
        ('logger().warning("brand.new", store=key)', events),
        ('logger().exception("brand.new" if x else "lease.lost")', events),
    ],
)
def test_a_new_code_is_seen_wherever_it_is_written(source: str, look: object) -> None:
    """And fails the test of its table until it has a line there."""
    assert callable(look)

    found = look([ast.parse(source)])

    assert "brand.new" in found
    assert undocumented(found) and "brand.new" not in told("logs.md", "## Events")
