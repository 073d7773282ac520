"""Settings files on disk: edited once, kept safe, restored to the byte; the hook really runs."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from shapes import SHAPES, UNFIT

from memoryd.jobs import envelope
from memoryd.memory.errors import IntegrationError, UsageError
from memoryd.memory.home import Home
from memoryd.sessions import agents
from memoryd.sessions.integration import files, integrating
from memoryd.sessions.integration.entries import ours
from memoryd.sessions.integration.integrating import Outcome, Wanted, hook_program
from memoryd.sessions.integration.table import AGENTS, SILENT, Agent

CLAUDE, CODEX, *_ = AGENTS
SESSION = "01234567-89ab-7def-8123-456789abcdef"

#: What each agent's session end holds, as the agent documents it.
SAID: dict[str, dict[str, object]] = {
    "claude-code": {"hook_event_name": "SessionEnd", "reason": "clear", "permission_mode": "plan"},
    "codex": {"hook_event_name": "SessionEnd", "reason": "other", "model": "m"},
    "gemini-cli": {"hook_event_name": "SessionEnd", "reason": "exit", "timestamp": "2026-01-05"},
    "qwen-code": {"hook_event_name": "SessionEnd", "reason": "logout"},
    "cursor": {"hook_event_name": "sessionEnd", "reason": "completed", "duration_ms": 5},
}


@pytest.fixture
def every_agent_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each agent's transcripts could be read."""
    monkeypatch.setattr(agents, "known", lambda: tuple(agent.name for agent in AGENTS))


def settings_of(agent: Agent, data: bytes | None = None) -> Path:
    """Where the agent of this test's person has its settings; made with ``data``."""
    path = agent.settings(os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    if data is not None:
        path.write_bytes(data)
    return path


def run(
    home: Home, agent: Agent = CLAUDE, *, remove: bool = False, dry_run: bool = False, to: str = ""
) -> Outcome:
    """Integrate ``agent``, with the program that is installed here or with ``to``."""
    wanted = Wanted(home, os.environ, to or hook_program(), remove, dry_run)
    return integrating.integrate(wanted, agent)


@pytest.mark.usefixtures("every_agent_is_read")
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("shape", [None, *SHAPES])
def test_what_is_put_in_and_taken_out_leaves_the_same_bytes(
    home: Home, agent: Agent, shape: str | None
) -> None:
    """In every shape, also where there was no file; a second run writes nothing."""
    before = None if shape is None else SHAPES[shape]
    path = settings_of(agent, before)

    assert run(home, agent).state == "added"
    written = path.read_bytes()
    assert run(home, agent).state == "current"
    assert path.read_bytes() == written
    assert run(home, agent, remove=True).state == "removed"

    assert (path.read_bytes() if path.exists() else None) == before
    assert run(home, agent, remove=True).state == "current"


@pytest.mark.parametrize("shape", UNFIT)
def test_settings_that_are_not_understood_are_left_alone(home: Home, shape: str) -> None:
    """What is wrong is said, and what to add by hand."""
    path = settings_of(CLAUDE, UNFIT[shape])

    outcome = run(home)

    assert path.read_bytes() == UNFIT[shape]
    assert outcome.state == "refused"
    assert str(path) in outcome.problem
    assert set(json.loads(outcome.by_hand)["hooks"]) == set(CLAUDE.events)
    assert run(home, remove=True).by_hand == "take out every hook that calls memoryd-hook"


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """Not even a home; the diff shows what would be."""
    path = settings_of(CLAUDE, b'{"a": 1}\n')

    outcome = run(Home(tmp_path / "none"), dry_run=True)

    assert (outcome.state, path.read_bytes()) == ("added", b'{"a": 1}\n')
    assert "+" in outcome.diff and "memoryd-hook claude-code stop" in outcome.diff
    assert not (tmp_path / "none").exists()


def test_the_mode_stays_and_the_copy_is_private(home: Home) -> None:
    """Settings may hold keys: the copy of them is for the person alone."""
    path = settings_of(CLAUDE, b'{"a": 1}\n')
    path.chmod(0o640)

    run(home)

    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    kept = [each for each in (home.backups / "settings").iterdir() if each.suffix == ".bak"]
    assert [each.read_bytes() for each in kept] == [b'{"a": 1}\n']
    assert {stat.S_IMODE(each.stat().st_mode) for each in kept} == {0o600}


def test_an_edit_of_ours_leaves_no_other_file_behind(home: Home) -> None:
    """Beside the settings, and among the copies however often it is done and undone."""
    path = settings_of(CLAUDE, b"{}")
    for _ in range(3):
        run(home)
        run(home, remove=True)

    assert list(path.parent.iterdir()) == [path]
    assert len(list((home.backups / "settings").iterdir())) == 3


def test_what_was_edited_since_keeps_the_edit(home: Home) -> None:
    """Then the entries are taken out one by one, and the old file does not come back."""
    path = settings_of(CLAUDE, b'{\n  "a": 1\n}\n')
    run(home)
    path.write_bytes(path.read_bytes().replace(b'"a": 1', b'"a": 2'))

    run(home, remove=True)

    assert path.read_bytes() == b'{\n  "a": 2\n}\n'


def test_a_moved_installation_is_updated_and_still_restores_the_bytes(home: Home) -> None:
    """The first copy counts, not the one between."""
    path = settings_of(CLAUDE, SHAPES["empty list"])
    run(home, to="/old/bin/memoryd-hook")

    assert run(home).state == "updated"
    assert b"/old/bin" not in path.read_bytes()
    run(home, remove=True)

    assert path.read_bytes() == SHAPES["empty list"]


def test_an_entry_from_before_the_first_copy_does_not_come_back(home: Home) -> None:
    """A person had put one in by hand: it is ours too, and goes."""
    line = '{"hooks": {"Stop": [{"hooks": [{"command": "/x/memoryd-hook claude-code stop"}]}]}}'
    path = settings_of(CLAUDE, line.encode())
    assert run(home).state == "updated"

    run(home, remove=True)

    assert ours(path.read_text(), CLAUDE) == []


def test_a_link_is_followed_and_stays(home: Home, tmp_path: Path) -> None:
    """Whoever keeps settings in a repository of their own finds the edit there."""
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}\n")
    path = settings_of(CLAUDE)
    path.symlink_to(kept)

    run(home)
    assert path.is_symlink() and b"memoryd-hook" in kept.read_bytes()
    run(home, remove=True)

    assert path.is_symlink() and kept.read_text() == "{}\n"


@pytest.mark.parametrize("kind", ["dangling", "loop", "folder", "pipe", "huge"])
def test_what_is_no_settings_file_is_refused(home: Home, tmp_path: Path, kind: str) -> None:
    """A link to nothing or to itself, a folder, a pipe, megabytes."""
    path = settings_of(CLAUDE)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        path.touch()
        os.truncate(path, files.SIZE_LIMIT_BYTES + 1)
    else:
        path.symlink_to(path if kind == "loop" else tmp_path / "nothing")

    assert run(home).state == "refused"
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("data", [b"{}", None])
def test_another_users_settings_are_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, data: bytes | None
) -> None:
    """Under sudo the new file would be root's, and the agent could not write it any more."""
    path = settings_of(CLAUDE, data)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)

    assert run(home).state == "refused"
    assert (path.read_bytes() if path.exists() else None) == data


def test_an_edit_in_between_is_not_written_over(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read again and done again; after three times it says so and leaves the file."""
    path = settings_of(CLAUDE, b'{"n": 0}')
    read, edits = files.read, iter(range(1, 9))

    def disturbed(where: Path, until: int) -> files.Settings:
        found = read(where)
        if (number := next(edits)) <= until:
            path.write_bytes(b'{"n": %d}' % number)
        return found

    monkeypatch.setattr(files, "read", lambda where: disturbed(where, 2))
    assert run(home).state == "added"
    assert json.loads(path.read_text())["n"] == 2

    run(home, remove=True)
    monkeypatch.setattr(files, "read", lambda where: disturbed(where, 99))
    assert run(home).state == "refused"
    assert b"memoryd" not in path.read_bytes()


def test_a_home_that_cannot_keep_the_copy_stops_the_edit(tmp_path: Path) -> None:
    """No copy, no edit."""
    (tmp_path / "file").write_text("x")
    path = settings_of(CLAUDE, b"{}")

    outcome = run(Home(tmp_path / "file"))

    assert (outcome.state, path.read_bytes()) == ("refused", b"{}")


@contextmanager
def not_root(*places: Path) -> Iterator[None]:
    """As a user to whom ``places`` belong, and whom modes bind."""
    user = os.geteuid()
    for place in places if user == 0 else ():
        os.chown(place, 65534, -1)
    try:
        if user == 0:
            os.seteuid(65534)
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("data", [b'{"a": 1}', None])
def test_a_folder_that_may_not_be_written_is_left_and_said(
    monkeypatch: pytest.MonkeyPatch, agent: Agent, data: bytes | None
) -> None:
    """What to add is shown, and nothing is left half done."""
    program = hook_program()
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        monkeypatch.setenv("HOME", made)
        for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
            monkeypatch.delenv(variable, raising=False)
        path = settings_of(agent, data)
        with not_root(Path(made), path.parent, *([path] if data else [])):
            path.parent.chmod(0o500)
            outcome = run(Home(Path(made) / "home"), agent, to=program)
            left = sorted(path.parent.iterdir())
            path.parent.chmod(0o700)

        assert (outcome.state, left) == ("refused", [path] if data else [])
        assert str(path) in outcome.problem and "hooks" in outcome.by_hand
        assert (path.read_bytes() if data else None) == data


def test_a_damaged_receipt_costs_nothing_but_white_space(home: Home) -> None:
    """Without one the entries are taken out one by one."""
    path = settings_of(CLAUDE, b'{"a": 1}')
    run(home)
    (home.backups / "settings" / "claude-code.json").write_text('{"path": 3')

    assert run(home, remove=True).state == "removed"
    assert path.read_bytes() == b'{"a": 1}'


def test_the_agents_own_variable_moves_its_settings(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the transcripts are looked for, the settings are."""
    (tmp_path / "moved").mkdir()
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "moved"))

    outcome = run(home, CODEX)

    assert outcome.path == str(tmp_path / "moved/hooks.json")
    assert Path(outcome.path).exists()


def test_an_agent_that_is_not_here_is_not_made(home: Home) -> None:
    """No folder appears for an agent that was never run."""
    assert run(home).state == "absent"
    assert not CLAUDE.directory(os.environ).exists()


def test_an_agent_whose_transcripts_nothing_reads_is_left_to_the_sweep(home: Home) -> None:
    """Its envelopes would be refused; entries of ours are taken out all the same."""
    gemini = next(agent for agent in AGENTS if agent.name not in ("claude-code", "codex"))
    known = agents.known()
    if gemini.name in known:
        pytest.skip("it can be read")
    path = settings_of(gemini, b"{}")

    outcome = run(home, gemini)

    assert (outcome.state, path.read_bytes()) == ("sweep", b"{}")
    assert "sweep once its transcripts can be read" in outcome.problem


def test_agents_without_hooks_say_what_covers_them(home: Home) -> None:
    """Found by their folders; nothing of theirs is edited."""
    for agent in SILENT:
        (Path(os.environ["HOME"]) / agent.folders[0]).mkdir(parents=True)
        wanted = Wanted(home, os.environ, "/x/memoryd-hook")
        outcome = integrating.integrate(wanted, agent)

        assert outcome.state == "sweep"
        assert agent.why in outcome.problem and "sweep" in outcome.problem


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    """A typo is no agent."""
    with pytest.raises(UsageError) as caught:
        integrating.named(["claude"])

    assert "claude-code" in caught.value.hint


def test_switched_off_hooks_are_said(home: Home) -> None:
    """The entries are there and the agent runs none."""
    settings_of(CLAUDE, b'{"disableAllHooks": true}')

    assert any("disableAllHooks" in note for note in run(home).notes)


def test_what_codex_says_elsewhere_about_hooks_is_told(home: Home) -> None:
    """Its config.toml can switch them off, or call ours a second time; it is not edited."""
    path = settings_of(CODEX).with_name("config.toml")
    text = '[features]\nhooks = false\n[[hooks.Stop]]\ncommand = "/x/memoryd-hook codex stop"\n'
    path.write_text(text)

    notes = "\n".join(run(home, CODEX).notes)

    assert "features.hooks" in notes and "once is enough" in notes
    assert path.read_text() == text
    path.write_text("[[[")
    assert str(path) not in "\n".join(run(home, CODEX).notes)


def test_another_link_to_the_same_program_is_no_change(home: Home, tmp_path: Path) -> None:
    """Codex asks a person anew about each command that changed."""
    link = tmp_path / "memoryd-hook"
    link.symlink_to(hook_program())
    settings_of(CODEX)
    run(home, CODEX, to=str(link))

    assert run(home, CODEX).state == "current"


def test_a_program_that_no_file_can_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line break in a path would end the command."""
    with pytest.raises(IntegrationError):
        integrating._speakable("/a\n/memoryd-hook")
    monkeypatch.setattr(sys, "argv", ["/nowhere/memoryd"])
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(IntegrationError):
        hook_program()


@pytest.mark.slow
@pytest.mark.usefixtures("every_agent_is_read")
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_the_command_that_was_put_in_really_leaves_an_envelope(
    home: Home, tmp_path: Path, agent: Agent
) -> None:
    """Run as the agent does: by a shell, with what it says on standard input."""
    transcript = tmp_path / f"{SESSION}.jsonl"
    transcript.write_text('{"a": 1}\n')
    path = settings_of(agent)
    run(home, agent)
    said = {"transcript_path": str(transcript), **SAID[agent.name]}
    if agent.name == "cursor":
        said |= {"conversation_id": SESSION, "workspace_roots": ["/work/code"]}
    else:
        said |= {"session_id": SESSION, "cwd": "/work/code"}

    for each in ours(path.read_text(), agent):
        done = subprocess.run(
            ["/bin/sh", "-c", each.command],
            input=json.dumps(said).encode(),
            env={"HOME": os.environ["HOME"], "MEMORYD_HOME": str(home.root), "PATH": "/nothing"},
            capture_output=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    found = [envelope.read(each) for each in home.inbox.glob("*.json")]
    assert {each.event for each in found} == {"session-end", "stop", "pre-compact"}
    assert {(each.agent, each.session, each.cwd) for each in found} == {
        (agent.name, SESSION, "/work/code")
    }
    assert {each.cutoff for each in found} == {9}


def test_the_hook_knows_every_agent_of_the_table() -> None:
    """And every event: an entry it refuses would be worse than none."""
    from memoryd.cli import hook

    assert {agent.name for agent in AGENTS} <= set(hook.AGENTS)
    events = {event for agent in AGENTS for event, _ in agent.events.values()}
    assert events == set(hook.EVENTS)
    assert all(shlex.quote(agent.name) == agent.name for agent in AGENTS)
