"""A hooked agent as the provider's program: its sessions become no memory and no more questions."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hooked_agent import RULE
from world import Transcript, World

from memoryd.jobs.sweep import finalize_idle, take_in_envelopes
from memoryd.memory import own_calls
from memoryd.memory.config import Config, ProviderSettings
from memoryd.memory.home import Home
from memoryd.memory.own_calls import CLOSE, OPEN
from memoryd.memory.prompt import SYSTEM
from memoryd.memory.providers.registry import make
from memoryd.memory.testing import FakeClock

AGENT = Path(__file__).with_name("hooked_agent.py")
HOOK = str(Path(sys.executable).with_name("memoryd-hook"))
PROMPT = f"{SYSTEM}\n\n{OPEN}\n[m1] user: I like tea.\n{CLOSE}"


def asking(folder: Path, clock: FakeClock, form: str, kept: str, hook: str = HOOK) -> World:
    """A home whose provider is a hooked agent that only the guards in ``kept`` reach."""
    home = Home(folder / "home")
    environ = {
        "HOME": str(folder / "person"),
        "MEMORYD_HOME": str(home.root),
        "PATH": os.environ["PATH"],
    }
    command = (sys.executable, str(AGENT), form, kept, hook, str(folder / "project"))
    settings = ProviderSettings(name="command", command=command)
    provider = make(settings, environ, own_calls.folder(home))
    config = Config(provider=settings)
    world = World(folder, clock, config=config, environ=environ, provider=provider)
    touch(home.identity, clock.now_ms() - 86_400_000)
    return world


def touch(path: Path, at_ms: int) -> None:
    """Set when ``path`` was last changed."""
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def transcripts(world: World) -> list[Path]:
    """All there are, the person's own among them."""
    return sorted((world.folder / "person").rglob("*.jsonl"))


def rounds(world: World, count: int) -> list[tuple[int, int]]:
    """Let an hour pass, sweep and work, ``count`` times: the transcripts and jobs then."""
    found = []
    for _ in range(count):
        world.clock.advance(3600)
        for path in transcripts(world):
            touch(path, world.clock.now_ms() - 2_400_000)
        take_in_envelopes(world.place)
        finalize_idle(world.place)
        world.work_to_rest()
        found.append((len(transcripts(world)), len(world.ledger.records.jobs())))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("form", ["claude-code", "codex"])
@pytest.mark.parametrize(
    ("kept", "hook"),
    [
        ("environment", HOOK),
        ("directory", HOOK),
        ("directory", ""),
        ("content", HOOK),
        ("content", ""),
        ("environment directory content", HOOK),
    ],
    ids=["environment", "directory", "directory-no-hook", "content", "content-no-hook", "all"],
)
def test_each_guard_alone_stops_a_provider_that_reports_its_own_sessions(
    tmp_path: Path, clock: FakeClock, form: str, kept: str, hook: str
) -> None:
    """One question was asked, one note came of it, and no round of sweeps makes more of either."""
    world = asking(tmp_path, clock, form, kept, hook)
    world.finalize(world.transcript().user(RULE))

    found = rounds(world, 3)

    assert found[-1] == found[0]
    assert found[-1][0] == 2
    assert found[-1][1] <= 3  # its run and its end may each have made one, that asked nothing
    assert world.bodies() == [RULE]
    assert world.place.history.counts().messages == 1


@pytest.mark.slow
def test_without_any_guard_it_would_go_on_for_ever(tmp_path: Path, clock: FakeClock) -> None:
    """Each question makes the next: what the other tests show is not the program's doing."""
    world = asking(tmp_path, clock, "claude-code", "none")
    world.finalize(world.transcript().user(RULE))

    assert [left for left, _ in rounds(world, 3)] == [3, 4, 5]


# -- a person is not taken for us -----------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home with a model that has nothing to say."""
    return World(tmp_path, clock, ['{"facts": []}'] * 9)


def kept(world: World, said: Transcript) -> list[str]:
    """What is kept of the session."""
    world.finalize(said)
    found = world.place.history.messages(said.agent, said.session, 0, 100)
    return [message.text for message in found]


@pytest.mark.parametrize("form", ["claude-code", "codex"])
def test_a_prompt_pasted_into_a_conversation_costs_only_itself(world: World, form: str) -> None:
    """The words beside it stay, and so does what is said after it."""
    said = world.transcript("0199c3a0-0000-7000-8000-000000000001", agent=form)
    said.user("Hello").user(f"What is this?\n\n{PROMPT}\n\nExplain it.").user(PROMPT)
    said.assistant("A question.").user("Thanks")

    assert kept(world, said) == [
        "Hello",
        "What is this?\n\n\n\nExplain it.",
        "A question.",
        "Thanks",
    ]


@pytest.mark.parametrize("form", ["claude-code", "codex"])
def test_a_session_that_begins_with_a_pasted_prompt_and_words_is_a_persons(
    world: World, form: str
) -> None:
    """Only the prompt is taken out of its first message."""
    said = world.transcript("0199c3a0-0000-7000-8000-000000000001", agent=form)
    asked = f"{OPEN}\nfoo\n{CLOSE}"
    said.user(f"I saw this in my log:\n{asked}\nRemember that I like tea.").user("And cake")

    assert kept(world, said) == [
        "I saw this in my log:\n\nRemember that I like tea.",
        "And cake",
    ]


def test_a_sentence_of_the_prompt_that_a_person_begins_with_costs_nothing(world: World) -> None:
    """Nor do the words of the line itself."""
    quoted = f"Why does it say `{OPEN}` and 'You only extract'?"

    assert kept(world, world.transcript().user(quoted).assistant("So.")) == [quoted, "So."]


def test_a_session_that_began_with_our_prompt_stays_ours(world: World) -> None:
    """Whoever goes on with it, and although its transcript was cut at the beginning."""
    said = world.transcript().user(PROMPT).assistant("{}")
    assert kept(world, said) == []
    said.user("And now?")
    assert kept(world, said) == []

    said.path.write_bytes(said.path.read_bytes().partition(b"\n")[2])

    assert kept(world, said.user("I like tea very much.")) == []


def test_a_persons_session_that_was_cut_up_to_a_pasted_prompt_stays_theirs(world: World) -> None:
    """An agent's compaction may leave that as the first message."""
    said = world.transcript().user("Hello").user(PROMPT).user("Thanks")
    assert kept(world, said) == ["Hello", "Thanks"]

    said.path.write_bytes(said.path.read_bytes().partition(b"\n")[2])

    assert kept(world, said.user("Bye")) == ["Hello", "Thanks", "Bye"]


def test_a_visit_to_our_folder_costs_only_what_is_said_there(world: World) -> None:
    """A person may look around."""
    ours = str(own_calls.folder(world.home))
    said = world.transcript().user("Hello").user("What is here?", cwd=ours).user("Back again")

    assert kept(world, said) == ["Hello", "Back again"]


def test_our_folder_counts_where_only_the_hook_knows_the_directory(world: World) -> None:
    """A transcript may name none."""
    said = world.transcript().user("Hello", cwd="")
    world.finalize(said, cwd=str(own_calls.folder(world.home)))

    assert world.place.history.counts().messages == 0


def test_notes_are_worked_on_in_the_project_they_belong_to(world: World) -> None:
    """`cd` into the home is no new project."""
    notes = world.store().root / "feedback"
    world.finalize(world.transcript("s1").user("Hello"))
    world.finalize(world.transcript("s2", cwd=notes).user("What did I write here?"))

    (message,) = world.place.history.messages("claude-code", "s2", 0, 10)
    assert message.project == world.store().key
