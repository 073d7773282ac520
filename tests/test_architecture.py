"""The rules of the house that a machine can see: who imports what, and what nobody does."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from memoryd.memory.home import Home

ROOT = Path(__file__).resolve().parents[1]

#: Folder -> the folders it may know, itself included. Imports point one way.
KNOWS = {
    "memory": {"memory"},
    "sessions": {"memory", "sessions"},
    "jobs": {"memory", "sessions", "jobs"},
    "daemon": {"memory", "sessions", "jobs", "daemon"},
    "cli": {"memory", "sessions", "jobs", "daemon", "cli"},
}
#: What a command may import before it knows what to do: the base that starts fast.
CLI_BASE = {"clock", "config", "errors", "files", "home", "ids", "text"}
#: Libraries that cost tens of milliseconds or megabytes; `--help` needs none of them.
HEAVY = {"anthropic", "fastembed", "git", "huey", "numpy", "openai", "peewee", "watchdog"}
#: Tops of threads and of the hook, where nobody is left to catch. How many each file may have.
TOPS = {
    "cli/hook.py": 1,
    "daemon/discovering.py": 1,
    "daemon/schedule.py": 1,
    "daemon/stores.py": 1,
    "daemon/watcher.py": 1,
    "jobs/doctor.py": 1,
    "jobs/keeper.py": 1,
    "jobs/worker.py": 2,
    "memory/providers/remote.py": 1,
}


@dataclass(frozen=True)
class Import:
    """One import statement: ``memoryd.jobs.ledger`` in ``cli/list.py``, line 9."""

    file: str
    line: int
    module: str
    #: At the top of the module, and not only for the type checker.
    eager: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.module}"


def sources() -> Iterator[Path]:
    """Every module of the product."""
    for folder in KNOWS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def relative(path: Path) -> str:
    """``path`` as people write it."""
    return path.relative_to(ROOT).as_posix()


def imports_of(path: Path) -> Iterator[Import]:
    """Every import in ``path``, those for the type checker included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    eager = set(_eager(tree.body))
    for node in ast.walk(tree):
        for module in _modules(node, relative(path)):
            yield Import(relative(path), node.lineno, module, node in eager)  # type: ignore[attr-defined]


def _eager(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _eager(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _eager(
                [child for child in ast.walk(node) if isinstance(child, ast.stmt)][1:]
            )
        else:
            yield node


def _modules(node: ast.AST, file: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    assert node.level == 0, f"{file}:{node.lineno} imports are absolute here"
    return [f"{node.module}.{alias.name}" for alias in node.names]


@cache
def all_imports() -> list[Import]:
    """Every import of the product."""
    return [found for path in sources() for found in imports_of(path)]


def owners() -> dict[str, list[str]]:
    """The table of CONTRIBUTING.md: import name -> the files and folders that own it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.MULTILINE)
    return {library: re.findall(r"`([^`]+)`", cell) for library, cell in rows}


def modules_of(*arguments: str, home: Path) -> set[str]:
    """What ``memoryd ARGUMENTS`` imports, from a process of its own."""
    script = "import sys; from memoryd.cli.main import main; sys.argv[0] = 'memoryd'; main()"
    return modules_imported("-c", script, *arguments, home=home)


def modules_imported(*words: str, home: Path, said: str = "") -> set[str]:
    """What a Python run with ``words`` imports; a traceback fails the test."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words],
        input=said,
        env={**os.environ, "MEMORYD_HOME": str(home)},
        cwd=home.parent,
        capture_output=True,
        text=True,
    )
    lines = done.stderr.splitlines()
    assert "Traceback" not in done.stderr, "\n".join(
        line for line in lines if not line.startswith("import time:")
    )
    return {line.rsplit("|", 1)[1].strip() for line in lines if line.startswith("import time:")}


# ---------------------------------------------------------------- who imports what


def test_imports_point_one_way() -> None:
    """memory knows nothing of the others, sessions knows memory, and so on up to cli."""
    wrong = [
        str(found)
        for found in all_imports()
        if found.module.startswith("memoryd.")
        and found.module.split(".")[1] not in KNOWS[found.file.split("/")[0]]
    ]

    assert wrong == []


def test_the_rule_sees_an_import_wherever_it_hides() -> None:
    """In a function, for the type checker, as a whole module: each is found and judged."""
    path = ROOT / "cli" / "service.py"

    found = {(item.module, item.eager) for item in imports_of(path)}

    assert ("click", True) in found
    assert ("memoryd.daemon.service", False) in found
    assert ("memoryd.daemon.service_programs.State", False) in found


def test_folders_are_imported_by_their_package() -> None:
    """``import memory`` works by accident in a checkout and loads a module twice."""
    wrong = [str(found) for found in all_imports() if found.module.split(".")[0] in KNOWS]

    assert wrong == []


def test_each_library_has_one_owner() -> None:
    """A library that CONTRIBUTING.md does not give to the importing file is not imported there."""
    table = owners()
    wrong = []
    for found in all_imports():
        library = found.module.split(".")[0]
        if library in sys.stdlib_module_names or library == "memoryd":
            continue
        if not found.file.startswith(tuple(table.get(library, ["nobody"]))):
            wrong.append(str(found))

    assert wrong == []


def test_memory_works_without_queue_and_commands() -> None:
    """Whatever the table says: as a library, memory needs no database layer, queue or click."""
    found = {item.module.split(".")[0] for item in all_imports() if item.file.startswith("memory/")}

    assert found & {"click", "huey", "peewee", "playhouse"} == set()


def test_every_owner_is_there() -> None:
    """The table names files and folders that exist."""
    missing = [place for places in owners().values() for place in places]

    assert [place for place in missing if not (ROOT / place).exists()] == []


def test_commands_are_lazy() -> None:
    """At its top a module of cli/ imports click, the standard library and the base, no more."""
    wrong = []
    for found in all_imports():
        if not found.eager or not found.file.startswith("cli/"):
            continue
        parts = found.module.split(".")
        own = parts[:2] == ["memoryd", "cli"]
        base = parts[:2] == ["memoryd", "memory"] and parts[2] in CLI_BASE
        if not (own or base or parts[0] == "click" or parts[0] in sys.stdlib_module_names):
            wrong.append(str(found))

    assert wrong == []


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    """``memoryd --help`` answers at once: no database, queue, git, numbers or SDK."""
    modules = modules_of("--help", home=tmp_path / "home")

    assert "memoryd.cli.main" in modules
    assert modules & HEAVY == set()


@pytest.mark.parametrize("command", ["status", "list"])
def test_looking_imports_the_ledger_and_nothing_heavier(home: Home, command: str) -> None:
    """The queue, git, numbers, SDKs and the log stay away; from a list the agents' readers too."""
    modules = modules_of(command, home=home.root)

    assert "peewee" in modules
    assert modules & ((HEAVY | {"structlog"}) - {"peewee"}) == set()
    assert command == "status" or "memoryd.sessions.agents" not in modules


def test_the_hook_imports_what_starts_fast(tmp_path: Path) -> None:
    """A whole run adds only the C parts of json and signal to what every Python loads."""
    script = (
        "import sys; from memoryd.cli import hook; sys.argv[1:] = ['codex', 'stop']; hook.main()"
    )
    home = tmp_path / "home"

    empty = modules_imported("-c", "pass", home=home)
    whole = modules_imported("-c", script, home=home, said='{"session_id": "s1"}')

    added = {name for name in whole - empty if not name.startswith("importlib")}
    assert added <= {"memoryd", "memoryd.cli", "memoryd.cli.hook", "_json", "_signal", "time"}
    assert len(list((home / "inbox").iterdir())) == 1


# ---------------------------------------------------------------- what nobody does


def test_nothing_catches_everything() -> None:
    """Except the tops in the list, each with its reason on the line, and what is raised again."""
    counted: dict[str, int] = {}
    wrong = []
    for path in sources():
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if not isinstance(node, ast.ExceptHandler) or not _is_broad(node):
                continue
            counted[relative(path)] = counted.get(relative(path), 0) + 1
            if not re.search(r"# (noqa: BLE001 - )?\w+ \w", lines[node.lineno - 1]):
                wrong.append(f"{relative(path)}:{node.lineno} gives no reason")

    assert wrong == []
    assert {file: n for file, n in counted.items() if n > TOPS.get(file, 0)} == {}


def _is_broad(handler: ast.ExceptHandler) -> bool:
    names = ast.walk(handler.type) if handler.type else [ast.Name("Exception")]
    broad = any(
        isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"} for name in names
    )
    last = handler.body[-1]
    return broad and not (isinstance(last, ast.Raise) and last.exc is None)


def test_no_test_sleeps() -> None:
    """Time moves by the clock of the tests; processes are waited for by what they do."""
    needle = "sleep" + "("
    files = [path for path in (ROOT / "tests").rglob("*.py") if needle in path.read_text("utf-8")]

    assert [relative(path) for path in files] == []


# ---------------------------------------------------------------- what is packaged


def project() -> dict[str, dict[str, object]]:
    """``[tool.setuptools]`` of pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        tool: dict[str, dict[str, object]] = tomllib.load(file)["tool"]["setuptools"]
    return tool


def test_every_package_is_packaged() -> None:
    """A folder with ``__init__.py`` that pyproject.toml does not name is missing once installed."""
    folders = [*KNOWS, "systemd", "launchd", "examples"]
    found = {
        f"memoryd.{'.'.join(path.parent.relative_to(ROOT).parts)}": relative(path.parent)
        for folder in folders
        for path in (ROOT / folder).rglob("__init__.py")
    }

    assert project()["package-dir"] == found
    assert sorted(project()["packages"]) == sorted(found)


def test_every_module_is_in_a_package() -> None:
    """A folder of modules without ``__init__.py`` would not be installed."""
    wrong = {
        relative(path.parent) for path in sources() if not (path.parent / "__init__.py").exists()
    }

    assert wrong == set()


@pytest.mark.parametrize("folder", sorted(KNOWS))
def test_the_type_checker_sees_the_folder(folder: str) -> None:
    """mypy does not follow editable installs; a link stands in for each package."""
    link = ROOT / ".typing" / "memoryd" / folder

    assert link.resolve() == ROOT / folder
