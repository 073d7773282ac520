"""What becomes of words that a gate sends away, and how often a session asks a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from world import NOTHING, Transcript, World

from memoryd.jobs.records import Rollout
from memoryd.memory.config import Config, CurationSettings, MemorySettings
from memoryd.memory.providers.rules import RulesProvider
from memoryd.memory.testing import FakeClock

LONG = "the parser of the configuration file is what we are talking about here, again and again "


def rollout(world: World, said: Transcript) -> Rollout:
    """What the session's row counts."""
    found = world.ledger.records.rollout(said.agent, said.session)
    assert found is not None
    return found


def stop(world: World, said: Transcript) -> None:
    """A run ends: the agent's hook asks for an extract, and a worker looks at it."""
    world.enqueue(said, "extract", reason="stop")
    world.work()


def test_a_throttled_extract_leaves_no_row_and_is_counted(tmp_path: Path, clock: FakeClock) -> None:
    """Only the session's row says how often."""
    world = World(tmp_path, clock)
    said = world.transcript()

    for _ in range(3):
        stop(world, said.user(LONG).assistant(LONG))

    assert world.ledger.records.jobs() == []
    assert world.ledger.db.rows("select count(*) from attempt_log") == [(0,)]
    row = rollout(world, said)
    assert (row.throttled, row.last_cutoff, world.cursor(said)) == (3, 0, 0)
    assert world.model.requests == []


ENGLISH = (
    "paint the garden shed",
    "cook rice and beans",
    "migrate that database table",
    "book two flights tomorrow",
    "write unit tests quickly",
    "explain quantum physics simply",
    "rename every css class",
    "deploy on friday evening",
    "translate this french poem",
    "measure memory usage precisely",
)
ARABIC = (
    "اطبخ العشاء مع الرز",
    "أصلح قاعدة البيانات القديمة",
    "احجز رحلتين يوم الغد",
    "اكتب اختبارات سريعة جدا",
)
CJK = (
    "明日の天気を教えてください",
    "데이터베이스를 이전해 주세요",
    "请翻译这首法国诗歌",
    "テストを早く書いてください",
)
SESSIONS = {
    "one topic": (LONG,),
    "another topic each time": ENGLISH,
    "Arabic": ARABIC,
    "CJK": CJK,
    "two topics in turn": ENGLISH[:2],
    "mixed": (*ENGLISH[:3], *ARABIC[:2], LONG, LONG, *CJK[:2], "yes", "👍"),
}


@pytest.mark.parametrize("topics", SESSIONS.values(), ids=SESSIONS)
def test_twenty_runs_of_one_session_take_three_calls_and_lose_nothing(
    tmp_path: Path, clock: FakeClock, topics: tuple[str, ...]
) -> None:
    """Whatever they are about; every word of every run is shown once."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript()
    for number in range(20):
        said.user(f"{topics[number % len(topics)]} asked{number:02}")
        stop(world, said.assistant(f"{LONG} {LONG} answered{number:02}"))

    world.finalize(said)

    assert len(world.model.requests) <= 3
    for number in range(20):
        assert world.prompts().count(f"asked{number:02}") == 1
        assert world.prompts().count(f"answered{number:02}") == 1
    row = rollout(world, said)
    assert row.extracts == len(world.model.requests) - 1
    assert row.throttled == 20 - row.extracts


def test_a_steady_session_is_read_every_eight_runs(tmp_path: Path, clock: FakeClock) -> None:
    """After 8, 16, 24, 32 and 40: the bound never stands in the way of the interval."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript()

    read = []
    for number in range(1, 41):
        stop(world, said.user(LONG).assistant(LONG))
        if len(world.model.requests) > len(read):
            read.append(number)

    assert read == [8, 16, 24, 32, 40]


def test_a_change_of_topic_is_read_at_once(tmp_path: Path, clock: FakeClock) -> None:
    """The first in a session; the counter of the interval then starts anew."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript()
    stop(world, said.user(LONG).assistant(LONG))
    assert world.model.requests == []

    stop(world, said.user(f"{ENGLISH[0]} and nothing else").assistant(LONG))

    assert len(world.model.requests) == 1
    assert world.cursor(said) == 4
    for _ in range(7):
        stop(world, said.user(LONG).assistant(LONG))
    assert len(world.model.requests) == 1


def test_what_a_free_provider_is_asked_counts_against_nothing(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The bound is there for calls that cost: a changed topic is read each time."""
    world = World(tmp_path, clock, provider=RulesProvider())
    said = world.transcript()

    read = []
    for number, topic in enumerate(ENGLISH):
        stop(world, said.user(topic).assistant(LONG * 3).user(f"and {topic}").assistant(LONG))
        read.append(world.cursor(said))
        stop(world, said.user(f"{LONG} {number}").assistant(LONG))

    assert rollout(world, said).extracts == 0
    assert len(set(read)) > 3


def test_two_sessions_are_throttled_each_by_its_own_runs(tmp_path: Path, clock: FakeClock) -> None:
    """What one has asked is not held against the other."""
    world = World(tmp_path, clock, [NOTHING])
    one, other = world.transcript("s1"), world.transcript("s2")
    for _ in range(8):
        stop(world, one.user(LONG).assistant(LONG))
    stop(world, other.user(LONG).assistant(LONG))

    assert (rollout(world, one).extracts, rollout(world, other).extracts) == (1, 0)
    assert (world.cursor(one), world.cursor(other)) == (16, 0)


def test_a_bad_project_file_keeps_the_words_until_it_is_mended(
    tmp_path: Path, clock: FakeClock
) -> None:
    """It may exclude what it stands in: nothing is read by the defaults meanwhile."""
    world = World(tmp_path, clock, [NOTHING])
    file = world.project / ".memoryd.toml"
    file.write_text("[memory]\nextract_every_n_runs = 'often'\n")
    said = world.transcript()
    for _ in range(8):
        stop(world, said.user(LONG).assistant(LONG))
    assert (world.model.requests, world.ledger.records.waiting()) == (
        [],
        {"project.config-unusable": 1},
    )

    file.write_text("[memory]\nextract_every_n_runs = 8\n")
    world.work_to_rest()

    assert (len(world.model.requests), world.cursor(said)) == (1, 16)


# -- the agent's own saves -----------------------------------------------------------------------

SAVES = [
    ("mcp__memoryd__memory_save", {"name": "x", "content": "y"}),
    ("mcp__memoryd__memory_delete", {"name": "x"}),
    ("mcp__memoryd__memory", {"action": "save", "name": "x"}),
    ("memory", {"action": "delete", "name": "x"}),
    ("Bash", {"command": "memoryd memory save --type user --name x"}),
    ("Bash", {"command": "cd /code && MEMORYD_HOME=/h /opt/bin/memoryd --home /h memory delete x"}),
    ("shell", {"command": ["bash", "-lc", "memoryd memory forget x"]}),
    ("exec_command", {"cmd": "memoryd memory save x < note.md"}),
]
NO_SAVES = [
    ("mcp__memoryd__memory_list", {}),
    ("mcp__memoryd__memory", {"action": "list"}),
    ("memory", {"command": "create", "path": "/memories/x"}),
    ("Bash", {"command": "memoryd memory list --all"}),
    ("Bash", {"command": "grep -rn 'run memoryd memory save now' docs"}),
    ("Bash", {"command": "memoryd memory saved"}),
    ("Write", {"file_path": "/a", "content": "memoryd memory save x"}),
    ("memory_save_all", {"action": "save"}),
    ("Bash", {"command": 7}),
]


def eight_runs(world: World, said: Transcript, tool: str, arguments: dict[str, object]) -> None:
    """Eight runs of one topic; in the last one the agent calls ``tool``."""
    for _ in range(7):
        stop(world, said.user(LONG).assistant(LONG))
    stop(world, said.user(LONG).call(tool, arguments).assistant(LONG))


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
@pytest.mark.parametrize(("tool", "arguments"), SAVES)
def test_a_save_of_the_agents_own_puts_the_extract_off(
    tmp_path: Path, clock: FakeClock, agent: str, tool: str, arguments: dict[str, object]
) -> None:
    """No row, only a count; the words wait, and what was called is kept nowhere."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript(agent=agent)

    eight_runs(world, said, tool, arguments)

    assert (world.model.requests, world.ledger.records.jobs()) == ([], [])
    assert (rollout(world, said).throttled, world.cursor(said)) == (8, 0)


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
@pytest.mark.parametrize(("tool", "arguments"), NO_SAVES)
def test_a_call_that_saves_nothing_puts_nothing_off(
    tmp_path: Path, clock: FakeClock, agent: str, tool: str, arguments: dict[str, object]
) -> None:
    """A list is no save, nor is a command that only names one."""
    world = World(tmp_path, clock, [NOTHING])

    eight_runs(world, world.transcript(agent=agent), tool, arguments)

    assert len(world.model.requests) == 1


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_save_that_failed_puts_nothing_off(tmp_path: Path, clock: FakeClock, agent: str) -> None:
    """The transcript tells: the result is an error."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript(agent=agent)
    for _ in range(7):
        stop(world, said.user(LONG).assistant(LONG))

    stop(world, said.user(LONG).call(*SAVES[4], failed=True).assistant(LONG))

    assert len(world.model.requests) == 1


def test_after_a_save_of_its_own_the_session_waits_for_eight_more_runs(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Then all that waited is read together, once."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript()
    eight_runs(world, said, *SAVES[0])
    for _ in range(7):
        stop(world, said.user(LONG).assistant(LONG))
    assert world.model.requests == []

    stop(world, said.user(LONG).assistant(LONG))

    assert (len(world.model.requests), world.cursor(said)) == (1, 32)


def test_a_save_of_its_own_does_not_hold_up_the_end_of_a_session(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Nothing would come after it."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript().user(LONG).call(*SAVES[0]).assistant(LONG)

    assert world.finalize(said).outcome_code == "nothing.durable"
    assert len(world.model.requests) == 1


def test_the_log_says_which_gate_sent_an_extract_away(tmp_path: Path, clock: FakeClock) -> None:
    """Nothing else of it is left: the row is gone, and the count tells no reason."""
    world = World(tmp_path, clock, [NOTHING])
    short, steady, saved = (world.transcript(name) for name in ("s1", "s2", "s3"))

    with capture_logs() as logged:
        stop(world, short.user("Use tabs."))
        stop(world, steady.user(LONG).assistant(LONG * 2))
        stop(world, saved.user(LONG).call(*SAVES[0]).assistant(LONG * 2))

    assert [line["reason"] for line in logged if line["event"] == "extract.waits"] == [
        "extract.too-short",
        "extract.throttled",
        "extract.saved-by-agent",
    ]


def test_a_rewritten_transcript_does_not_move_an_old_save(tmp_path: Path, clock: FakeClock) -> None:
    """It is the same call, met again."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript().user(LONG).call(*SAVES[0]).assistant(LONG)
    stop(world, said)
    for _ in range(7):
        stop(world, said.user(LONG).assistant(LONG))

    lines = said.path.read_bytes().splitlines(keepends=True)
    note = json.dumps({"type": "summary", "summary": "a title"}).encode() + b"\n"
    said.path.write_bytes(note + b"".join(lines))
    stop(world, said.user(LONG).assistant(LONG))

    assert len(world.model.requests) == 1


# -- the end of a session ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("off", "code"),
    [
        ({"environ": {"MEMORYD_DISABLE_EXTRACTION": "1"}}, "extraction.switched-off"),
        ({"config": Config(memory=MemorySettings(auto_extract=False))}, "extraction.off"),
        ({"config": Config(curation=CurationSettings(mode="manual"))}, "curation.manual"),
    ],
)
def test_the_end_of_a_session_beats_the_interval_and_no_switch(
    tmp_path: Path, clock: FakeClock, off: dict[str, object], code: str
) -> None:
    """One short run is enough, unless it is switched off."""
    world = World(tmp_path, clock, [NOTHING])
    assert world.finalize(world.transcript("s1").user("Use tabs.")).outcome_code != code
    assert len(world.model.requests) == 1

    world.restart(**off)  # type: ignore[arg-type]

    assert world.finalize(world.transcript("s2").user("Use tabs.")).outcome_code == code
    assert len(world.model.requests) == 1


def test_the_end_of_a_session_told_twice_is_one_call(tmp_path: Path, clock: FakeClock) -> None:
    """Two sessions are two."""
    world = World(tmp_path, clock, [NOTHING])
    one, other = world.transcript("s1").user("Use tabs."), world.transcript("s2").user("Use pnpm.")

    for said in (one, one, other):
        world.finalize(said)

    assert len(world.model.requests) == 2


def test_a_call_that_fails_and_is_made_again_counts_once(tmp_path: Path, clock: FakeClock) -> None:
    """The extract is let through again, and the session's row counts one."""
    world = World(tmp_path, clock, ["no json", "still none", NOTHING])
    said = world.transcript()
    for _ in range(8):
        stop(world, said.user(LONG).assistant(LONG))
    world.work_to_rest()

    assert (len(world.model.requests), world.cursor(said)) == (3, 16)
    assert rollout(world, said).extracts == 1


@pytest.mark.parametrize("point", ["slice.read", "plan.recorded", "cursor.advanced"])
def test_a_crash_around_the_call_counts_the_extract_once(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The count is in the row before the plan is."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript()
    for _ in range(7):
        stop(world, said.user(LONG).assistant(LONG))
    world.enqueue(said.user(LONG).assistant(LONG), "extract", reason="stop")
    world.die_at(point, monkeypatch)

    world.work_to_rest()

    assert rollout(world, said).extracts == 1
    assert world.cursor(said) == 16
    assert world.ledger.idle()


def test_a_projects_own_interval_counts(tmp_path: Path, clock: FakeClock) -> None:
    """``extract_every_n_runs`` of its ``.memoryd.toml``."""
    config = Config(memory=MemorySettings(extract_every_n_runs=50))
    world = World(tmp_path, clock, [NOTHING], config=config)
    (world.project / ".memoryd.toml").write_text("[memory]\nextract_every_n_runs = 2\n")
    said = world.transcript()

    for _ in range(4):
        stop(world, said.user(LONG).assistant(LONG))

    assert len(world.model.requests) == 2
