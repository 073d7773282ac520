"""The service files, filled in for the installation that is running."""

from __future__ import annotations

import os
import plistlib
import re
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from xml.parsers.expat import ExpatError
from xml.sax.saxutils import escape

from memoryd.memory.errors import ServiceError
from memoryd.memory.home import Home

UNIT = "memoryd.service"
LABEL = "memoryd.daemon"
#: In every file we write; a file without it belongs to the person.
MARKER = 'Written by "memoryd service install"'

_USUAL_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True)
class Installation:
    """What a service file has to name: absolute paths, because services start in ``/``."""

    #: The ``memoryd`` program.
    program: Path
    home: Home
    #: Where the daemon finds git and the programs of the ``command`` provider.
    path: str
    #: ``HOME``: where the transcripts of the person's agents are.
    person: Path = field(default_factory=Path.home)

    @classmethod
    def running(cls, home: Home, environ: Mapping[str, str]) -> Installation:
        """The installation that this process is. Raises ``ServiceError`` where it has no program.

        ``PATH`` is what the person has now: the folders of it that exist, ours and the usual ones.
        """
        program = _program()
        folders = [str(program.parent), *environ.get("PATH", "").split(os.pathsep), *_USUAL_PATH]
        kept = [folder for folder in folders if _can_be_searched(folder)]
        return cls(program, home, os.pathsep.join(dict.fromkeys(kept)))


def _program() -> Path:
    for candidate in (Path(sys.argv[0]), Path(sys.executable).with_name("memoryd")):
        if candidate.name == "memoryd" and os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate.absolute()
    raise ServiceError(
        "no memoryd program belongs to this Python, so a service could not start it",
        hint="install memoryd with pip, pipx or uv and run that memoryd",
    )


def _can_be_searched(folder: str) -> bool:
    return _is_one_line(folder) and Path(folder).is_absolute() and Path(folder).is_dir()


def log_file(home: Home) -> Path:
    """Where launchd writes what the daemon says; systemd has its journal."""
    return home.logs / "launchd.log"


def render_systemd(installation: Installation) -> str:
    """The user unit. Raises ``ServiceError`` for a path that no unit can hold."""
    return _fill(
        "systemd",
        UNIT,
        {
            "@PROGRAM@": _unit_program(str(installation.program)),
            "@MEMORYD_HOME@": _unit_quoted(f"MEMORYD_HOME={installation.home.root}"),
            "@HOME@": _unit_quoted(f"HOME={installation.person}"),
            "@PATH@": _unit_quoted(f"PATH={installation.path}"),
        },
    )


def render_launchd(installation: Installation) -> str:
    """The launch agent. Raises ``ServiceError`` for a path that no property list can hold."""
    values = {
        "@PROGRAM@": str(installation.program),
        "@MEMORYD_HOME@": str(installation.home.root),
        "@HOME@": str(installation.person),
        "@PATH@": installation.path,
        "@STANDARD_ERROR@": str(log_file(installation.home)),
    }
    quoted = {placeholder: escape(_one_line(value)) for placeholder, value in values.items()}
    return _fill("launchd", f"{LABEL}.plist", quoted)


@dataclass(frozen=True)
class Named:
    """What a standing service file of ours names; empty where it does not (a person's edit)."""

    program: str
    #: ``MEMORYD_HOME``, ``HOME``, ``PATH`` and what else it sets.
    environ: Mapping[str, str]

    @property
    def home(self) -> Home | None:
        """The home it serves."""
        root = self.environ.get("MEMORYD_HOME", "")
        return Home(Path(root)) if root.startswith("/") else None

    @property
    def path(self) -> str:
        """Where it looks for programs."""
        return self.environ.get("PATH", "")


def named_by(text: str) -> Named:
    """What a service file, a unit or a property list, names. Never raises: it may be edited."""
    if not text.lstrip().startswith("<?xml"):
        return _named_by_unit(text)
    try:
        agent = plistlib.loads(text.encode())
        words = agent["ProgramArguments"]
        return Named(str(words[0]), {str(k): str(v) for k, v in _dict(agent).items()})
    except (KeyError, IndexError, TypeError, ValueError, ExpatError):
        return Named("", {})


def _dict(agent: Mapping[str, object]) -> Mapping[object, object]:
    found = agent.get("EnvironmentVariables")
    return found if isinstance(found, dict) else {}


def _named_by_unit(text: str) -> Named:
    program, environ = "", {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        quoted = re.fullmatch(r':?"((?:[^"\\]|\\.)*)"(?: run)?', value)
        if not quoted:
            continue
        plain = re.sub(r"\\(.)", r"\1", quoted[1]).replace("%%", "%")
        if key == "ExecStart":
            program = plain
        elif key == "Environment":
            name, _, rest = plain.partition("=")
            environ[name] = rest
    return Named(program, environ)


def _fill(folder: str, name: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders replaced in one pass: a value may look like one."""
    text = resources.files(f"memoryd.{folder}").joinpath(name).read_text(encoding="utf-8")
    filled = []
    for line in text.splitlines(keepends=True):
        found = next((placeholder for placeholder in values if placeholder in line), None)
        filled.append(line.replace(found, values[found], 1) if found else line)
    return "".join(filled)


def _unit_program(path: str) -> str:
    """``path`` as the program of ``ExecStart``; systemd takes no quote or backslash in one."""
    if any(letter in path for letter in "\\\"'"):
        raise ServiceError(
            f"systemd cannot start {path}: it refuses quotes and backslashes in a program's path",
            hint="install memoryd at a plainer path",
        )
    return _unit_quoted(path)


def _unit_quoted(value: str) -> str:
    """``value`` as one quoted word of a unit file (systemd.syntax(7), systemd.unit(5))."""
    escaped = _one_line(value).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _one_line(value: str) -> str:
    if not _is_one_line(value):
        raise ServiceError(
            f"a service file cannot name {value!r}: it holds a line break or a control character",
            hint="move memoryd or its home to a plainer path",
        )
    return value


def _is_one_line(value: str) -> bool:
    return not any(
        unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} or letter in "\ufffe\uffff"
        for letter in value
    )
