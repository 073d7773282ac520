"""The stage of ``memoryd demo``: one temporary folder with a home, a project and two sessions.

Everything is real but the person: the children of the demo (``demo_processes.py``) are shown a
home, agents' folders and a project that all lie in that folder, and nothing of the person's own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import click

from memoryd.memory.errors import MemorydError
from memoryd.memory.home import SOCKET_PATH_BYTES, Home

#: File in the examples -> the agent whose format it has.
EXAMPLES = {"claude-code.jsonl": "claude-code", "codex.jsonl": "codex"}
#: What the examples have in place of the project's directory and of a key.
PROJECT_MARK, TOKEN_MARK = b"{{project}}", b"{{token}}"
#: Never passed on: what would show the children the person's own settings, sessions or keys.
_NOT_PASSED = ("MEMORYD_", "CLAUDE", "CODEX", "OPENAI", "ANTHROPIC", "GIT_", "XDG_", "NOTIFY_")


def made_up_token() -> str:
    """What looks like a provider's key and is none, in pieces so that no scanner trips on it."""
    return "-".join(("sk", "proj", "x8Kq2LmZ0vTn4RbW7cYd1HsJ"))


@dataclass(frozen=True)
class Staged:
    """One bundled session, copied to where its agent would have written it."""

    agent: str
    session: str
    transcript: Path
    lines: int


@dataclass
class Stage:
    """The folders of one demo and the processes it started."""

    root: Path
    daemon: subprocess.Popen[bytes] | None = None
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Home:
        """The temporary home."""
        return Home(self.root / "home")

    @property
    def project(self) -> Path:
        """The temporary project: a git repository of its own."""
        return self.root / "greenhouse"

    @property
    def log(self) -> Path:
        """What the daemon wrote to its standard error."""
        return self.root / "daemon.log"

    def run(self, *arguments: str) -> str:
        """What ``memoryd ARGUMENTS`` prints on the temporary home. Raises where it fails."""
        command = [sys.executable, "-m", "memoryd.cli.main", "--home", str(self.home.root)]
        done = subprocess.run(
            [*command, *arguments], env=self.environ, cwd=self.project, capture_output=True
        )
        if done.returncode != 0:
            raise MemorydError(
                f"`memoryd {' '.join(arguments)}` failed: {last_line(done.stderr)}",
                hint="run `memoryd demo --keep` and look into the home it names",
            )
        return done.stdout.decode("utf-8", "replace").rstrip()


@contextmanager
def stage(examples: Path | None, *, keep: bool) -> Iterator[tuple[Stage, list[Staged]]]:
    """A stage with the sessions in place; at the end the folder is removed.

    ``examples`` is a folder with transcripts in place of the bundled ones. Raises
    ``MemorydError`` where the stage cannot be set.
    """
    made = Stage(Path(tempfile.mkdtemp(prefix="memoryd-demo-")).resolve())
    with _removed(made.root) if not keep else _kept(made.root):
        _refuse_long_path(made.home)
        made.environ = _environ(made.root)
        _make_project(made)
        folder = examples or Path(str(files("memoryd.examples")))
        yield made, [_place(made, folder / name, agent) for name, agent in EXAMPLES.items()]


# -- folders and sessions ------------------------------------------------------------------------


@contextmanager
def _removed(root: Path) -> Iterator[None]:
    try:
        yield
    finally:
        shutil.rmtree(root)


@contextmanager
def _kept(root: Path) -> Iterator[None]:
    """Where it all is must be known above all when something went wrong."""
    try:
        yield
    except BaseException:  # passed on: whoever looks into it needs the folder
        click.echo(f"memoryd: the demo's folder is kept: {root}", err=True)
        raise


def _refuse_long_path(home: Home) -> None:
    if len(os.fsencode(home.root / "run" / "memoryd.sock")) > SOCKET_PATH_BYTES:
        raise MemorydError(
            f"the path of the temporary folder is too long for a socket: {home.root}",
            hint="set TMPDIR to a shorter folder, such as TMPDIR=/tmp",
        )


def _environ(root: Path) -> dict[str, str]:
    """The children's environment: this one, with no way to the person's own things."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_NOT_PASSED) and not name.upper().endswith("_PROXY")
    }
    person = root / "person"
    person.mkdir()
    return kept | {
        "HOME": str(person),
        # Where packages of `pip install --user` are, which would move with HOME.
        "PYTHONUSERBASE": site.getuserbase(),
        "MEMORYD_HOME": str(root / "home"),
        "CLAUDE_CONFIG_DIR": str(person / ".claude"),
        "CODEX_HOME": str(person / ".codex"),
        "XDG_RUNTIME_DIR": str(root),
        "TMPDIR": str(root),
    }


def _make_project(made: Stage) -> None:
    """A small repository with one commit, so that the project is found as a real one is."""
    from memoryd.memory.gitprogram import Git

    made.project.mkdir()
    (made.project / "README.md").write_text("# greenhouse\n\nPlans beds.\n", encoding="utf-8")
    git = Git(made.project)
    git.ok("init", "--quiet", "-b", "main")
    git.ok("add", "README.md")
    who = {"GIT_AUTHOR_NAME": "demo", "GIT_AUTHOR_EMAIL": "demo@localhost"}
    who |= {"GIT_COMMITTER_NAME": "demo", "GIT_COMMITTER_EMAIL": "demo@localhost"}
    git.ok("commit", "--quiet", "-m", "Plan beds", env=who)


def _place(made: Stage, example: Path, agent: str) -> Staged:
    """Copy one session to where its agent keeps its own, said in the temporary project."""
    marks = {PROJECT_MARK: _inside_json(str(made.project)), TOKEN_MARK: made_up_token().encode()}
    try:
        text = example.read_bytes()
    except OSError as error:
        raise MemorydError(
            f"the transcript {example} cannot be read: {error.strerror}",
            hint=f"the folder must hold {' and '.join(EXAMPLES)}",
        ) from error
    for mark, value in marks.items():
        text = text.replace(mark, value)
    session = _session(text, example)
    transcript = _agents_path(made, agent, session)
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(text)
    return Staged(agent, session, transcript, text.count(b"\n"))


def _agents_path(made: Stage, agent: str, session: str) -> Path:
    if agent == "claude-code":
        folder = re.sub(r"[^A-Za-z0-9]", "-", str(made.project))[:200]
        return Path(made.environ["CLAUDE_CONFIG_DIR"]) / "projects" / folder / f"{session}.jsonl"
    day = Path(made.environ["CODEX_HOME"]) / "sessions" / "2026" / "01" / "06"
    return day / f"rollout-2026-01-06T14-00-00-{session}.jsonl"


def _session(text: bytes, example: Path) -> str:
    """The session's id, as the first line that has one says it."""
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
            payload = found.get("payload") if isinstance(found, dict) else None
            session = found.get("sessionId") if isinstance(found, dict) else None
            if session is None and isinstance(payload, dict) and found["type"] == "session_meta":
                session = payload.get("id")
            if isinstance(session, str) and re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z-]{0,99}", session):
                return session
    raise MemorydError(
        f"no line of {example} says the session's id",
        hint="Claude Code's lines have `sessionId`, Codex's first line has `payload.id`",
    )


def _inside_json(text: str) -> bytes:
    return json.dumps(text)[1:-1].encode()


def last_line(data: bytes) -> str:
    """The last line of a process's output, at most 300 characters."""
    lines = data.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""
