"""What the documents say is what the code does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from memoryd.jobs.job import STATUSES
from memoryd.memory.config import Config
from memoryd.memory.policy import REASONS

ROOT = Path(__file__).parent.parent
JOBS = (ROOT / "docs" / "jobs.md").read_text()
FOLDERS = ("memory", "sessions", "jobs", "daemon", "cli")

#: Codes that only `raise` or log, and never stand in a job's row.
NOT_IN_ROWS = {
    "policy.passed",
    "fuse.sshfs",
    "fuse.s3fs",
    "home.locked",
    "lease.lost",
    "undo.conflict",
    "service.failed",
    "integration.failed",
    "provider.failed",
    "envelope.unreadable",
}
_CODE = re.compile(r"[a-z]+\.[a-z]+(-[a-z]+)*")


def _codes_in(path: Path) -> set[str]:
    """String constants that look like a code, but for those that seams and the log are given."""
    tree = ast.parse(path.read_text())
    spoken = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "")
        in {"before", "reach", "info", "warning", "error", "exception"}
        for argument in node.args
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _CODE.fullmatch(node.value)
        and id(node) not in spoken
    }


def test_every_code_of_a_job_is_documented() -> None:
    """Whatever `memoryd list` can show is explained in docs/jobs.md."""
    elsewhere = [ROOT / "memory" / name for name in ("errors.py", "consolidation.py")]
    paths = [*(ROOT / "jobs").glob("*.py"), *elsewhere]
    codes = set().union(*map(_codes_in, paths)) - NOT_IN_ROWS

    assert sorted(code for code in codes if f"`{code}`" not in JOBS) == []


def test_every_reason_of_a_candidate_is_documented() -> None:
    """Whatever `memoryd show` gives as a reason is explained in docs/jobs.md."""
    assert sorted(code for code in REASONS if f"`{code}`" not in JOBS) == []


@pytest.mark.parametrize("status", sorted(STATUSES))
def test_every_status_is_documented(status: str) -> None:
    """The table of docs/jobs.md has a line for each."""
    assert f"| `{status}` |" in JOBS


def test_no_document_names_a_setting_that_does_not_exist() -> None:
    """Each `key =` of README's configuration is one that is read."""
    block = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    named = set(re.findall(r"^(\w+) =", block[1], re.MULTILINE))
    sections = vars(Config()).values()

    assert named <= {key for section in sections for key in vars(section)}


def test_contributing_fits_in_150_lines() -> None:
    """A guide that nobody finishes guides nobody."""
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 150


def test_every_command_that_a_message_names_exists() -> None:
    """A hint that names a command a person cannot run is worse than none."""
    from memoryd.cli.main import COMMANDS, cli

    named = set()
    for folder in ("memory", "sessions", "jobs", "daemon", "cli"):
        for path in (ROOT / folder).rglob("*.py"):
            named |= set(re.findall(r"`memoryd ([a-z]+)(?: ([a-z]+))?", path.read_text()))
    unknown = []
    for name, below in sorted(named):
        command = cli.get_command(click.Context(cli), name) if name in COMMANDS else None
        if command is None or (
            below and isinstance(command, click.Group) and below not in command.commands
        ):
            unknown.append(f"{name} {below}".strip())

    assert unknown == []


MEMORY = (ROOT / "docs" / "memory.md").read_text()


def test_every_outcome_of_a_save_is_documented() -> None:
    """Each has its place in the table of docs/memory.md."""
    from typing import get_args

    from memoryd.memory.saving import Outcome

    table = MEMORY.partition("| outcome |")[2].partition("\n\n")[0]
    assert [code for code in get_args(Outcome) if f"`{code}`" not in table] == []


@pytest.mark.parametrize("command", ["save", "rename", "review", "apply", "reject"])
def test_every_command_on_notes_is_documented_with_its_json(command: str) -> None:
    """What it does and the keys it prints."""
    assert f"memoryd memory {command}" in MEMORY
    assert f"`memory {command}`" in MEMORY.partition("## JSON")[2]


def test_every_kind_of_secret_is_documented() -> None:
    """A label that can stand in a note is explained in docs/scanner.md, and no other is."""
    from memoryd.memory import secret_lines, secret_tokens

    shapes = [
        *secret_tokens.IN_RUNS,
        *secret_tokens.IN_WIDE_RUNS,
        *(shape for group in secret_tokens.BEHIND.values() for shape in group),
        *(shape for _, _, shape in secret_lines.ALWAYS),
        *(shape for _, shape in secret_lines.COMMANDS),
        secret_lines.NETRC,
    ]
    named = {"private-key", "assignment", "one-time-seed", "seed-phrase"}
    table = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "scanner.md").read_text(), re.MULTILINE)

    told = {kind for row in table for kind in re.findall(r"`([a-z0-9-]+)`", row)}
    assert {shape.name for shape in shapes} | named == told


DIFFERENCES = (ROOT / "docs" / "differences.md").read_text().splitlines()


def test_every_difference_stands_in_one_line_and_is_held_by_tests() -> None:
    """Behind each line of docs/differences.md a comment names tests that exist."""
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    lines = DIFFERENCES[DIFFERENCES.index("## Notes") :]
    told = [line for line in lines if line and not line.startswith("## ")]
    held = [re.fullmatch(r"- [A-Z`\"].*[.)] <!-- (test_[\w ]+) -->", line) for line in told]

    assert [line for line, match in zip(told, held, strict=True) if match is None] == []
    named = {name for match in held if match is not None for name in match[1].split()}
    assert sorted(named - tests) == []


def test_no_section_of_the_differences_is_empty() -> None:
    """A heading promises something below it."""
    headings = [at for at, line in enumerate(DIFFERENCES) if line.startswith("## ")]

    assert len(headings) == 8
    assert all(DIFFERENCES[at + 2].startswith("- ") for at in headings)


def test_the_answers_shown_to_who_writes_a_provider_are_answers() -> None:
    """Each JSON of docs/providers.md is read without a refusal."""
    from memoryd.memory.consolidation import parse_proposals
    from memoryd.memory.facts import parse_answer

    text = (ROOT / "docs" / "providers.md").read_text()
    facts, plan = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    answer, proposals = parse_answer(facts), parse_proposals(plan)

    assert (answer.whole, len(answer.facts), answer.refused) == (True, 1, ())
    assert answer.facts[0].relation.name == "staging-database"
    assert (proposals.whole, proposals.refused) == (True, ())
    assert proposals.merges and proposals.episodes and proposals.promotions


def test_every_line_of_the_unit_has_its_reason() -> None:
    """docs/service.md has each directive of the unit in a table, with its value, and no other."""
    unit = (ROOT / "systemd" / "memoryd.service").read_text()
    lines = re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE)
    apart = {"Description", "WantedBy", "ExecStart", "ExecReload", "Environment"}
    table = (ROOT / "docs" / "service.md").read_text().partition("## The unit, line by line")[2]
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", table.partition("Left out")[0], re.MULTILINE)
    told = {name for cell, _ in rows for name in re.findall(r"`(\w+)`", cell)}
    values = {name: cell for names, cell in rows for name in re.findall(r"`(\w+)`", names)}

    assert told == {name for name, _ in lines} - apart
    assert [
        f"{name}={value}" for name, value in lines if value not in values.get(name, value)
    ] == []


def test_every_finding_about_the_service_is_documented() -> None:
    """Where the others are."""
    codes = _codes_in(ROOT / "daemon" / "service_health.py")

    assert sorted(code for code in codes if f"`{code}`" not in JOBS) == []


def _messages() -> dict[str, str]:
    """Where the product says something (file and line) -> the text; what it means is left out."""
    found = {}
    for path in (each for name in FOLDERS for each in (ROOT / name).rglob("*.py")):
        tree = ast.parse(path.read_text())
        silent = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            said = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if said and id(node) not in silent:
                found[f"{path.relative_to(ROOT)}:{node.lineno}"] = node.value
    return found


def test_no_message_sends_a_person_to_a_file_that_is_not_installed() -> None:
    """The package has no docs/: what is to be known is said."""
    assert [where for where, text in _messages().items() if re.search(r"docs/\w+\.md", text)] == []


def test_the_readme_names_every_document_in_its_table() -> None:
    """Nobody looks for what is linked from nowhere."""
    table = (ROOT / "README.md").read_text().partition("## Documents")[2]

    assert [
        path.name
        for path in (ROOT / "docs").glob("*.md")
        if f"({path.parent.name}/{path.name})" not in table
    ] == []


def test_the_readme_is_short_and_says_early_what_is_done_daily() -> None:
    """The commands come before what is done once."""
    text = (ROOT / "README.md").read_text()

    assert len(text.splitlines()) <= 215
    assert text.index("## Every day") < text.index("## The sessions you had before")
    for command in ("retry JOB", "prune --dry-run", "service logs -f", "status --metrics"):
        assert f"memoryd {command}" in text


def test_a_count_and_its_word_agree() -> None:
    """`counted` says "1 job": a plural behind a number that may be one does not."""
    plural = (
        r"\{[^{}]+\} (attempts|calls|candidates|jobs|times|messages|lines|projects|sessions|runs)\b"
    )

    assert [
        f"{path.name}: {found[0]}"
        for path in sorted((ROOT / "cli").glob("*.py"))
        if not path.name.startswith("demo")
        for found in re.finditer(plural, path.read_text())
    ] == []
