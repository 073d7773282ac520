"""What an agent's prompt hook is told: what was said before, when a person asks back to it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import PATIENCE_SECONDS
from processes import World as Processes

from memoryd.daemon.prompts import answer
from memoryd.memory.config import Config, PrivacySettings
from memoryd.memory.errors import UsageError
from memoryd.memory.own_blocks import CONTEXT_CLOSE, CONTEXT_OPEN, strip_own_blocks
from memoryd.memory.testing import FakeClock

sys.path.append(str(Path(__file__).parent.parent / "jobs"))

from world import NOTHING, World

ASKED = "What did we decide about the zebra lease?"
DECIDED = "We decided that the zebra lease is extended by the heartbeat every 30 seconds."


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:  # type: ignore[override]  # of processes
    """A home whose history holds one session in which something was decided."""
    made = World(tmp_path, clock, [NOTHING] * 9)
    made.finalize(made.transcript("old").user(DECIDED).assistant("Noted, thirty seconds."))
    made.place.history.index.catch_up()
    return made


def event(world: World, prompt: object = ASKED, **more: object) -> bytes:
    """What Claude Code says when a person sends a prompt."""
    said = {
        "session_id": "now",
        "transcript_path": None,
        "cwd": str(world.project),
        "hook_event_name": "UserPromptSubmit",
        "prompt": prompt,
        **more,
    }
    return json.dumps(said).encode()


def told(found: dict[str, Any]) -> str:
    """The words that go into the prompt."""
    return str(found["hookSpecificOutput"]["additionalContext"])


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-code", "UserPromptSubmit"),
        ("codex", "UserPromptSubmit"),
        ("qwen-code", "UserPromptSubmit"),
        ("gemini-cli", "BeforeAgent"),
    ],
)
def test_a_prompt_that_asks_back_gets_what_was_said(world: World, agent: str, name: str) -> None:
    """In the agent's own form, as a block of ours that is no instruction and is never learned."""
    found = answer(world.place, agent, event(world))

    block = told(found)
    assert set(found) == {"hookSpecificOutput"}
    assert found["hookSpecificOutput"]["hookEventName"] == name
    assert DECIDED in block
    assert block.startswith(CONTEXT_OPEN)
    assert block.endswith(CONTEXT_CLOSE)
    assert "untrusted" in block
    assert strip_own_blocks(block) == ""


@pytest.mark.parametrize(
    "prompt", ["Extend the zebra lease.", "Remember that I use pnpm", "", 7, None], ids=repr
)
def test_any_other_prompt_gets_nothing(world: World, prompt: object) -> None:
    """What was said long ago is not let into a conversation unasked."""
    assert answer(world.place, "claude-code", event(world, prompt)) == {}


def test_the_session_that_asks_is_not_quoted_to_itself(world: World) -> None:
    """Nor a sub-agent told anything."""
    assert answer(world.place, "claude-code", event(world, session_id="old")) == {}
    assert answer(world.place, "claude-code", event(world, agent_id="a1")) == {}


def test_another_projects_words_stay_there(world: World, tmp_path: Path) -> None:
    """A prompt is answered from its own project, and outside of any not at all."""
    other = tmp_path / "other"
    other.mkdir()

    assert answer(world.place, "claude-code", event(world, cwd=str(other))) == {}
    assert answer(world.place, "claude-code", event(world, cwd="relative")) == {}
    assert answer(world.place, "claude-code", event(world, cwd=None)) == {}


def test_a_switch_a_setting_and_an_exclusion_each_keep_it_silent(world: World) -> None:
    """The daemon's switch, the project's file, one that cannot be read, an excluded place."""
    place = world.place
    settings = world.project / ".memoryd.toml"
    for text in ("[memory]\nauto_recall = false\n", "[memory\n"):
        settings.write_text(text)
        assert answer(place, "claude-code", event(world)) == {}
    settings.unlink()
    assert answer(place, "claude-code", event(world)) != {}

    world.restart(config=Config(privacy=PrivacySettings(exclude=(str(world.project),))))
    assert answer(world.place, "claude-code", event(world)) == {}
    world.restart(config=Config(), environ={"MEMORYD_DISABLE_RECALL": "1"})
    assert answer(world.place, "claude-code", event(world)) == {}


def test_nobody_who_writes_is_waited_for(world: World) -> None:
    """It is answered while another holds the write lock, and where nothing is indexed."""
    import sqlite3

    with sqlite3.connect(world.home.session_history) as writer:
        writer.execute("begin immediate")
        assert DECIDED in told(answer(world.place, "claude-code", event(world)))
    writer.close()

    with sqlite3.connect(world.home.session_history) as other:
        other.execute("update text_index set version = 0")
        other.execute("drop table full_text")
    other.close()
    assert answer(world.place, "claude-code", event(world)) == {}


def test_what_was_kept_before_it_was_excluded_is_told_to_nobody(world: World) -> None:
    """Neither as what was looked for nor as what was said beside it, until the words are gone."""
    subprocess.run(["git", "init", "-q", str(world.project)], check=True)
    private = world.project / "private"
    private.mkdir()
    said = world.transcript("mixed", cwd=world.project)
    said.user("We decided the falcon schedule is weekly.")
    said.user("The falcon password rota is kept by the blue team.", cwd=str(private))
    world.finalize(said)
    world.place.history.index.catch_up()
    asked = event(world, "what did we decide about the falcon schedule?")
    assert "blue team" in told(answer(world.place, "claude-code", asked))

    (world.project / ".memoryd.toml").write_text('[privacy]\nexclude = ["private"]\n')

    assert "weekly" in told(answer(world.place, "claude-code", asked))
    assert "blue team" not in told(answer(world.place, "claude-code", asked))
    rota = event(world, "what did we decide about the falcon password rota?")
    assert "blue team" not in json.dumps(answer(world.place, "claude-code", rota))


@pytest.mark.parametrize("agent", ["cursor", "opencode", "", "x" * 200])
def test_an_agent_that_takes_nothing_is_refused(world: World, agent: str) -> None:
    """Cursor's hook cannot add to a prompt."""
    with pytest.raises(UsageError, match="no agent that is told"):
        answer(world.place, agent, event(world))


@pytest.mark.parametrize("said", [b"", b"[]", b"\xff\xfe", b"[" * 100_000, b"7"], ids=repr)
def test_what_is_no_event_is_refused(world: World, said: bytes) -> None:
    """Whatever the bytes are."""
    with pytest.raises(UsageError, match="a JSON object"):
        answer(world.place, "claude-code", said)


@pytest.mark.slow
def test_from_the_agents_prompt_to_its_context_and_never_into_memory() -> None:
    """The installed hook asks the running daemon; what it printed is not learned again."""
    from processes import make_world

    with make_world() as processes, processes.daemon():
        settings = Path(processes.environ["HOME"]) / ".claude" / "settings.json"
        settings.parent.mkdir()
        assert processes.answer("integrate", "claude-code")["agents"][0]["state"] == "added"
        transcript = processes.claude(DECIDED, session="old")
        processes.hook(transcript, "old")
        assert processes.run("run", "--once").returncode == 0

        printed = _prompt(processes, ASKED)

        block = told(json.loads(printed))
        assert DECIDED in block
        assert _prompt(processes, "Extend the zebra lease.") == b""

        again = processes.claude(f"{ASKED}\n\n{block}", session="now")
        processes.hook(again, "now")
        assert processes.run("run", "--once").returncode == 0
        shown = processes.answer("sessions", "search", "zebra", "--session", "now")
        assert [hit["excerpt"] for hit in shown["hits"]] == [ASKED]


def _prompt(world: Processes, prompt: str) -> bytes:
    said = {
        "session_id": "now",
        "cwd": str(world.project),
        "hook_event_name": "UserPromptSubmit",
        "prompt": prompt,
    }
    settings = Path(world.environ["HOME"]) / ".claude" / "settings.json"
    ((group,),) = [json.loads(settings.read_text())["hooks"]["UserPromptSubmit"]]
    done = subprocess.run(
        ["/bin/sh", "-c", group["hooks"][0]["command"]],
        input=json.dumps(said).encode(),
        env=world.environ,
        capture_output=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    return done.stdout
