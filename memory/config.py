"""The configuration: one frozen object, built and checked once from ``config.toml``.

Only keys that something reads are known; an unknown key is an error that names the nearest known
one. ``load`` reports every problem of a file at once.
"""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from memoryd.memory.errors import ConfigError
from memoryd.memory.exclusions import usable

#: What opening says of a path at which no file can be, however odd the path is.
_NO_SUCH_PLACE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})

PROJECT_FILE = ".memoryd.toml"
#: What a project file may set.
_OF_PROJECTS = "a project file may set only [memory] and exclude under [privacy]"
#: The agents whose sessions can be read: ``memoryd.sessions.agents.known()``, by a test.
AGENTS = (
    "claude-code",
    "codex",
    "copilot-cli",
    "cursor",
    "estacoda",
    "freecode",
    "gemini-cli",
    "generic",
    "hermes",
    "openclaw",
    "opencode",
    "qwen-code",
)


@dataclass(frozen=True)
class MemorySettings:
    """``[memory]``: when a session is distilled."""

    #: Distil sessions at their end and between runs. Off: nothing is asked and nothing is written.
    auto_extract: bool = True
    #: Runs of one session between two extractions (at least 1).
    extract_every_n_runs: int = 8
    #: Answer a prompt that asks back to earlier sessions with what was said there.
    auto_recall: bool = True
    #: Consolidate a project's notes by itself, at most once a day.
    auto_consolidate: bool = True
    #: Hours between two consolidations of a project.
    consolidate_min_hours: float = 24
    #: Sessions of two runs or more that must have been since the last one (at least 1).
    consolidate_min_sessions: int = 5


@dataclass(frozen=True)
class CurationSettings:
    """``[curation]``: which facts are written without asking."""

    #: auto writes what the policy allows; review keeps all for a person; manual distils on request.
    mode: Literal["auto", "review", "manual"] = "auto"
    #: Distil before an agent compacts a session.
    audit_on_compact: bool = True
    #: Distil when a session ends.
    audit_on_session_end: bool = True
    #: Facts below this confidence (0..1) go to review.
    auto_apply_min_confidence: float = 0.7
    #: Facts above this risk go to review.
    auto_apply_max_risk: Literal["low", "medium", "high"] = "low"


@dataclass(frozen=True)
class ProviderSettings:
    """``[provider]``: who reads a session."""

    name: Literal["rules", "openai", "anthropic", "command"] = "rules"
    model: str = ""
    #: Where an OpenAI-compatible server listens; empty for the service's own address.
    base_url: str = ""
    #: Name of the environment variable that holds the key; empty for the SDK's usual one.
    api_key_env: str = ""
    #: A 0600 file that holds the key.
    api_key_file: str = ""
    #: The program and its arguments, for ``name = "command"``.
    command: tuple[str, ...] = ()
    timeout_seconds: float = 60.0
    #: Calls a local day, for providers that cost.
    daily_calls: int = 200
    #: Tokens a local day, in and out together.
    daily_tokens: int = 500_000
    #: Calls at the same time.
    max_concurrency: int = 2
    #: What a million tokens cost, read and written, in any one currency; 0 where nobody knows.
    price_input: float = 0.0
    price_output: float = 0.0
    #: Money a local day, in that currency; 0 for no bound.
    daily_cost: float = 0.0


@dataclass(frozen=True)
class QueueSettings:
    """``[queue]``: how jobs are worked."""

    workers: int = 2
    lease_seconds: int = 300
    #: At most a third of the lease.
    heartbeat_seconds: int = 30
    retry_base_seconds: int = 15
    #: How long a stop waits for attempts to finish.
    drain_seconds: int = 60
    #: Finished jobs kept.
    keep_finished: int = 1000


@dataclass(frozen=True)
class BackfillSettings:
    """``[backfill]``: how the sessions from before memoryd are read."""

    #: auto: by itself where calls cost nothing, else once a person started it. true, false.
    enabled: Literal["auto", True, False] = "auto"
    #: Sessions still for longer than this are left out; 0 for none (where calls cost: 90 days).
    max_age_days: int = 0
    #: Sessions must have been still for so long.
    min_idle_hours: float = 6
    #: Sessions a local day.
    per_day: int = 200
    #: Of what the day's other work leaves of the budget, how much it may take (0..1).
    share: float = 0.5


@dataclass(frozen=True)
class SessionSettings:
    """``[sessions]``: which transcripts are read, and how long words are kept."""

    #: Keep what was said, for search. Off: only digests stay once a job has ended.
    store: bool = True
    #: Days after which words that are distilled go from the session history; 0 keeps them for ever.
    keep_days: int = 0
    #: A transcript still this long, and longer than any job read, is taken for ended.
    idle_minutes: int = 30
    #: Agents to read; empty for all that are known.
    agents: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProjectSettings:
    """``[projects]``: what counts as one project."""

    #: together: a git worktree belongs to its main repository. apart: each is its own project.
    worktrees: Literal["together", "apart"] = "together"


@dataclass(frozen=True)
class PrivacySettings:
    """``[privacy]``: what is never read."""

    #: Globs of directories; a session or message from inside one is never kept.
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """The whole configuration with its defaults."""

    memory: MemorySettings = field(default_factory=MemorySettings)
    curation: CurationSettings = field(default_factory=CurationSettings)
    provider: ProviderSettings = field(default_factory=ProviderSettings)
    queue: QueueSettings = field(default_factory=QueueSettings)
    backfill: BackfillSettings = field(default_factory=BackfillSettings)
    sessions: SessionSettings = field(default_factory=SessionSettings)
    projects: ProjectSettings = field(default_factory=ProjectSettings)
    privacy: PrivacySettings = field(default_factory=PrivacySettings)


#: Inclusive bounds of the numbers, by section and key.
_BOUNDS: dict[tuple[str, str], tuple[float, float]] = {
    ("memory", "extract_every_n_runs"): (1, 10_000),
    ("memory", "consolidate_min_hours"): (0, 10_000),
    ("memory", "consolidate_min_sessions"): (1, 10_000),
    ("curation", "auto_apply_min_confidence"): (0, 1),
    ("provider", "timeout_seconds"): (1, 540),
    ("provider", "daily_calls"): (0, 1_000_000),
    ("provider", "daily_tokens"): (0, 10_000_000_000),
    ("provider", "max_concurrency"): (1, 64),
    ("provider", "price_input"): (0, 100_000),
    ("provider", "price_output"): (0, 100_000),
    ("provider", "daily_cost"): (0, 1_000_000),
    ("queue", "workers"): (1, 64),
    ("queue", "lease_seconds"): (3, 3600),
    ("queue", "heartbeat_seconds"): (1, 1200),
    ("queue", "retry_base_seconds"): (1, 3600),
    ("queue", "drain_seconds"): (0, 600),
    ("queue", "keep_finished"): (0, 1_000_000),
    ("backfill", "max_age_days"): (0, 100_000),
    ("backfill", "min_idle_hours"): (0, 10_000),
    ("backfill", "per_day"): (0, 1_000_000),
    ("backfill", "share"): (0, 1),
    ("sessions", "idle_minutes"): (1, 100_000),
    ("sessions", "keep_days"): (0, 100_000),
}


def load(path: Path) -> Config:
    """The configuration in ``path``; the defaults where there is no such file.

    Raises ``ConfigError`` with every problem, one line each.
    """
    raw = _read_toml(path)
    problems: list[str] = []
    sections = {name: hint for name, hint in get_type_hints(Config).items()}
    values: dict[str, Any] = {}
    for name, content in raw.items():
        if name not in sections:
            problems.append(_unknown(name, content, sections))
        elif not isinstance(content, dict):
            problems.append(f"[{name}] is not a section: write [{name}] on a line of its own")
        else:
            values[name] = _section(name, sections[name], content, problems)
    _check_together(values, problems)
    if "privacy" in values:
        values["privacy"] = _exclusions(values["privacy"], None, problems)
    if problems:
        raise ConfigError(
            f"{path} cannot be used: {problems[0]}",
            hint="run `memoryd config check` to see every problem",
            problems=tuple(problems),
        )
    return Config(**values)


def load_project(directory: Path, base: Config) -> Config:
    """``base`` with what the project's ``.memoryd.toml`` may set: ``[memory]`` and exclusions.

    Raises ``ConfigError`` when the file exists and cannot be used; such a project is not mined.
    """
    if not directory.is_absolute():
        return base  # of another system, or nobody knows it: no file of it can be here
    path = directory / PROJECT_FILE
    raw = _read_toml(path)
    problems: list[str] = []
    sections = {name: _own_section(name, content, problems) for name, content in raw.items()}
    memory = _section("memory", MemorySettings, sections.get("memory", {}), problems, base.memory)
    privacy = _section("privacy", PrivacySettings, sections.get("privacy", {}), problems)
    privacy = _exclusions(privacy, directory, problems)
    if problems:
        raise ConfigError(
            f"{path} cannot be used: {problems[0]}",
            hint="mend or remove the file; the project is not read until then",
            problems=tuple(problems),
        )
    exclude = (*base.privacy.exclude, *privacy.exclude)
    return dataclasses.replace(base, memory=memory, privacy=PrivacySettings(exclude=exclude))


def switched_off(environ: Mapping[str, str], switch: str) -> bool:
    """Whether ``MEMORYD_DISABLE`` or ``MEMORYD_DISABLE_<switch>`` is set to something true."""
    names = ("MEMORYD_DISABLE", f"MEMORYD_DISABLE_{switch}")
    return any(
        environ.get(name, "").strip().lower() in {"1", "true", "yes", "on"} for name in names
    )


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        if error.errno in _NO_SUCH_PLACE:
            return {}
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", hint="check its owner and mode"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        said = _with_its_line(path, error)
        raise ConfigError(
            f"{path} is not TOML: {said}",
            hint="mend the line it names; `memoryd config check` reads it again",
            problems=(f"{path}: {said}",),
        ) from error


def _with_its_line(path: Path, error: ValueError) -> str:
    """What is wrong and in which line: of bytes, and of what ends too soon, the parser tells none.

    What was not closed may have begun above the last line.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        line = data.count(b"\n", 0, error.start) + 1
        return f"bytes that are no UTF-8 (at line {line})"
    last = data.rstrip().count(b"\n") + 1
    end = f"(at line {last}, the last: something that begins there or above is not closed)"
    return str(error).replace("(at end of document)", end)


def _own_section(name: str, content: object, problems: list[str]) -> dict[str, Any]:
    """A section of a project's own file; empty where it is none that it may hold."""
    known = {"memory": MemorySettings, "privacy": PrivacySettings}
    if name not in known:
        problems.append(f"{_unknown(name, content, known)}: {_OF_PROJECTS}")
    elif not isinstance(content, dict):
        problems.append(f"[{name}] is not a section: write [{name}] on a line of its own")
    else:
        return content
    return {}


def _unknown(name: str, content: object, sections: Mapping[str, Any]) -> str:
    """What is wrong with a name on the top level that is no section's."""
    if isinstance(content, dict):
        return f"unknown section [{name}]{_nearest(name, sections)}"
    for section, kind in sections.items():
        if name in get_type_hints(kind):
            return f"{name} stands in no section: write [{section}] on the line above it"
    return f"unknown key {name}"


def _exclusions(
    privacy: PrivacySettings, directory: Path | None, problems: list[str]
) -> PrivacySettings:
    """The exclusions in the form that is held against directories, each that means one."""
    entries = []
    for entry in privacy.exclude:
        try:
            entries.append(usable(entry, directory))
        except ValueError as error:
            problems.append(f'privacy.exclude "{entry}" {error}')
    return PrivacySettings(exclude=tuple(entries))


def _section(
    name: str, kind: type, content: dict[str, Any], problems: list[str], base: Any = None
) -> Any:
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, value in content.items():
        if key not in hints:
            problems.append(f"unknown key {name}.{key}{_nearest(key, hints)}")
            continue
        try:
            values[key] = _value(hints[key], value)
        except ValueError as error:
            problems.append(f"{name}.{key} {error}")
            continue
        low, high = _BOUNDS.get((name, key), (None, None))
        if low is not None and high is not None and not low <= values[key] <= high:
            problems.append(f"{name}.{key} must be between {low:g} and {high:g}")
    return dataclasses.replace(base, **values) if base is not None else kind(**values)


def _value(hint: Any, value: Any) -> Any:
    """``value`` as ``hint`` wants it. Raises ``ValueError`` with what it must be."""
    if get_origin(hint) is Literal:
        known = get_args(hint)  # 1 is not true here, although Python holds them equal
        if not any(type(value) is type(each) and value == each for each in known):
            raise ValueError("must be one of " + ", ".join(map(_as_typed, known)))
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError("must be a list of strings")
        return tuple(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
        raise ValueError(f"must be {names[hint]}")
    return value


def _as_typed(value: object) -> str:
    """As a person writes it in the file; text without its quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_together(values: dict[str, Any], problems: list[str]) -> None:
    queue = values.get("queue", QueueSettings())
    if queue.heartbeat_seconds * 3 > queue.lease_seconds:
        problems.append("queue.heartbeat_seconds must be at most a third of queue.lease_seconds")
    provider = values.get("provider", ProviderSettings())
    if provider.name == "command" and not provider.command:
        problems.append('provider.command must name a program when provider.name = "command"')
    if provider.name in {"openai", "anthropic"} and not provider.model:
        problems.append(f'provider.model must be set when provider.name = "{provider.name}"')
    if provider.daily_cost and not (provider.price_input or provider.price_output):
        problems.append("provider.daily_cost needs provider.price_input or price_output")
    for agent in values.get("sessions", SessionSettings()).agents:
        if agent not in AGENTS:
            near = _nearest(agent, dict.fromkeys(AGENTS))
            said = near or f"; the known ones are {', '.join(AGENTS)}"
            problems.append(f"sessions.agents names no agent that is known: {agent!r}{said}")
    if provider.api_key_file and not Path(provider.api_key_file).expanduser().is_absolute():
        problems.append("provider.api_key_file must be an absolute path")


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""
