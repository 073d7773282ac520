"""The life of a finished session, from its transcript to its notes, in one process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from world import NOTHING, World, answer, fact

from memoryd.jobs.sweep import finalize_idle
from memoryd.memory.own_blocks import CONTEXT_CLOSE, CONTEXT_OPEN
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock
from memoryd.sessions.stored import StoredSession

FIRST = "Always run the linter before you commit."
SECOND = "We deploy on Fridays only, never else."
CODEX = "0199c3a0-0000-7000-8000-000000000001"


def finds(*statements: str) -> str:
    """An answer that holds these facts."""
    return answer(*map(fact, statements))


def everything(request: Request) -> str:
    """A model that takes each message of the person for a rule."""
    return finds(*(message.text for message in request.messages if message.role == "user"))


def ingested(world: World, session: str = "s1") -> StoredSession:
    """The session as the history knows it."""
    found = world.place.history.session("claude-code", session)
    assert found is not None
    return found


# -- what a session may hold ---------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "session"), [("claude-code", "s1"), ("codex", CODEX)])
def test_a_finished_session_becomes_notes(
    tmp_path: Path, clock: FakeClock, agent: str, session: str
) -> None:
    """One commit, the words as they were said, the job's row says so; nothing is left to do."""
    world = World(tmp_path, clock, [finds(FIRST, SECOND)])
    said = world.transcript(session, agent=agent).user(FIRST).assistant("Noted.").user(SECOND)

    job = world.finalize(said)

    assert (job.status, job.outcome_code, job.failures) == ("completed", "notes.written", 0)
    assert job.project == world.store().key
    assert world.bodies() == [FIRST, SECOND]
    assert len(world.commits()) == 1
    assert world.ledger.standing_plan(job) is None
    assert world.ledger.idle()
    (note, _) = world.store().notes()
    assert note.source == f"{agent}/{session} {job.id}"


def test_a_transcript_of_something_else_fails_and_leaves_the_session_open(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Nothing counts as read: the right words in its place are distilled, and so is a retry."""
    world = World(tmp_path, clock, [finds(FIRST)])
    said = world.transcript().raw(b"root:x:0:0:root:/root:/bin/sh\n" * 9)

    wrong = world.finalize(said, cutoff=10_000)
    again = finalize_idle(world.place)
    said.path.write_bytes(b"")
    said.user(FIRST).assistant("Noted.")
    assert world.ledger.retry(wrong)
    world.work()

    assert (wrong.status, wrong.error_code, wrong.failures) == ("failed", "transcript.foreign", 1)
    assert "is no transcript of claude-code" in wrong.error_detail
    assert again == 0
    assert world.job(wrong).outcome_code == "notes.written"
    assert world.bodies() == [FIRST]


def test_bad_lines_are_counted_and_the_rest_is_read(tmp_path: Path, clock: FakeClock) -> None:
    """Half JSON, binary, wrong types, deep nesting: each is one line that is not read."""
    world = World(tmp_path, clock, [finds(FIRST)])
    said = world.transcript()
    said.raw(b'{"type":"user","message":{"content":"cut\n').raw(b"\x00\xff\xfe\n").raw(b"[]\n")
    said.raw(b'{"a":' * 5000 + b"\n").raw(b"null\n").user(FIRST).raw(b"\n")

    job = world.finalize(said)

    assert (job.outcome_code, world.bodies()) == ("notes.written", [FIRST])
    assert ingested(world).bad_lines == 5


def test_a_cut_tail_is_left_for_later(tmp_path: Path, clock: FakeClock) -> None:
    """The line is read when it is whole, once."""
    world = World(tmp_path, clock, [finds(FIRST), finds(SECOND)])
    said = world.transcript().user(FIRST)
    whole = said.size
    said.user(SECOND)
    line = said.path.read_bytes()[whole:]
    said.path.write_bytes(said.path.read_bytes()[: whole + 40])

    world.finalize(said)
    assert (world.bodies(), ingested(world).position) == ([FIRST], whole)
    said.raw(line[40:])
    world.finalize(said)

    assert world.bodies() == [FIRST, SECOND]
    assert len(world.model.requests) == 2
    assert ingested(world).bad_lines == 0


def test_a_session_of_tool_output_alone_needs_no_call(tmp_path: Path, clock: FakeClock) -> None:
    """Nothing was said; what was passed over is counted."""
    world = World(tmp_path, clock)
    said = world.transcript().tool_result("x" * 1000).tool_result("y" * 1000)

    job = world.finalize(said)

    assert (job.status, job.outcome_code) == ("completed", "nothing.said")
    assert ingested(world).skipped == {"user.tool-result": 2}
    assert world.model.requests == []


def test_an_assistant_alone_says_nothing_worth_a_call(tmp_path: Path, clock: FakeClock) -> None:
    """The cursor stays: what a person says later is read together with it."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript().assistant("I have started.")

    job = world.finalize(said)
    assert (job.outcome_code, world.cursor(said)) == ("nothing.said", 0)

    world.finalize(said.user(FIRST))
    assert "I have started." in world.prompts()


def test_a_person_who_speaks_after_a_thousand_messages_is_heard(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The gate looks at all that waits, not at the first few hundred messages."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript()
    for number in range(1100):
        said.assistant(f"Step {number} is done.")

    job = world.finalize(said.user(FIRST))

    assert job.outcome_code == "nothing.durable"
    assert FIRST in world.prompts()
    assert world.cursor(said) == 1101


def test_our_own_block_alone_is_nothing_said(tmp_path: Path, clock: FakeClock) -> None:
    """A memory that came back in the transcript never confirms itself."""
    world = World(tmp_path, clock, [finds(FIRST)])
    block = f"{CONTEXT_OPEN}\n- {FIRST}\n{CONTEXT_CLOSE}"

    job = world.finalize(world.transcript().user(block).user(block))

    assert (job.outcome_code, ingested(world).skipped) == ("nothing.said", {"own-block": 2})
    assert world.model.requests == []


def test_our_own_block_beside_words_proves_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """What the person said stays; what we had handed out is no evidence."""
    world = World(tmp_path, clock, [finds(FIRST, SECOND)])
    block = f"{CONTEXT_OPEN}\n- {FIRST}\n{CONTEXT_CLOSE}"

    job = world.finalize(world.transcript().user(f"{block}\n{SECOND}"))

    assert world.reasons(job) == ["evidence.not-found", "policy.passed"]
    assert world.bodies() == [SECOND]


def test_an_empty_transcript_is_done_at_once(tmp_path: Path, clock: FakeClock) -> None:
    """A session that said nothing at all."""
    world = World(tmp_path, clock)

    job = world.finalize(world.transcript())

    assert (job.status, job.outcome_code) == ("completed", "nothing.said")


@pytest.mark.slow
def test_two_hundred_mebibytes_of_tool_output_are_read_in_flat_memory(tmp_path: Path) -> None:
    """A whole process stays under 150 MiB, finds the words, and counts the lines."""
    program = Path(__file__).with_name("distil_large.py")

    done = subprocess.run(
        [sys.executable, program, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["outcome"] == "notes.written"
    assert found["skipped"] == {"user.tool-result": 200}
    assert found["bodies"] == [FIRST, SECOND]
    assert found["peak_mib"] < 150


# -- several jobs of one session -----------------------------------------------------------------


def test_the_same_end_told_twice_is_one_job(tmp_path: Path, clock: FakeClock) -> None:
    """Also after it was worked."""
    world = World(tmp_path, clock, [finds(FIRST)])
    said = world.transcript().user(FIRST)

    first, second = world.enqueue(said), world.enqueue(said)
    world.work()
    third = world.enqueue(said)

    assert [made.created for made in (first, second, third)] == [True, False, False]
    assert world.work() == 0
    assert (len(world.model.requests), len(world.commits())) == (1, 1)


def test_a_finalize_after_an_extract_reads_only_what_is_new(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Each word goes to the model once."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    world.finalize(said, kind="extract", reason="compact")
    said.user(SECOND)

    job = world.finalize(said)

    assert [len(asked.messages) for asked in world.model.requests] == [1, 1]
    assert world.bodies() == [FIRST, SECOND]
    assert [kept.statement for kept in world.candidates(job)] == [SECOND]


def test_a_finalize_with_a_lower_cutoff_reads_no_further(tmp_path: Path, clock: FakeClock) -> None:
    """More was said meanwhile, and another job has ingested it: it waits for that one's cutoff."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    early = said.size
    said.user(SECOND)
    world.throttle(said.assistant("Yes."))
    assert ingested(world).messages == 3

    world.finalize(said, cutoff=early)
    assert (world.bodies(), world.cursor(said)) == ([FIRST], 1)

    world.finalize(said)
    assert world.bodies() == [FIRST, SECOND]
    assert [len(asked.messages) for asked in world.model.requests] == [1, 2]


def test_a_finalize_that_comes_too_late_has_nothing_to_do(tmp_path: Path, clock: FakeClock) -> None:
    """Its cutoff lies before the cursor."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    early = said.size
    world.finalize(said.user(SECOND))

    job = world.finalize(said, cutoff=early)

    assert (job.outcome_code, len(world.model.requests)) == ("nothing.new", 1)


def test_a_resumed_session_adds_only_what_is_new(tmp_path: Path, clock: FakeClock) -> None:
    """The agent copies the old words, with their ids, into a new file of a new session."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript("s1").user(FIRST)
    world.finalize(said)
    resumed = world.transcript("s2")
    resumed.raw(said.path.read_bytes()).user(SECOND)

    job = world.finalize(resumed)

    assert world.bodies() == [FIRST, SECOND]
    assert [kept.statement for kept in world.candidates(job)] == [SECOND]
    assert ingested(world, "s2").skipped == {"copied": 1}


def test_a_rewritten_transcript_adds_only_what_is_new(tmp_path: Path, clock: FakeClock) -> None:
    """Same session, same words, new bytes before them."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    world.finalize(said)
    old = said.path.read_bytes()
    said.path.write_bytes(b'{"type":"summary","summary":"x"}\n' + old)

    world.finalize(said.user(SECOND))

    assert world.bodies() == [FIRST, SECOND]
    assert [len(asked.messages) for asked in world.model.requests] == [1, 1]


def test_a_transcript_that_is_gone_ends_the_job(tmp_path: Path, clock: FakeClock) -> None:
    """There is nothing to retry for."""
    world = World(tmp_path, clock)
    said = world.transcript().user(FIRST)
    made = world.enqueue(said).job
    assert made is not None
    said.path.unlink()

    world.work()

    assert (world.job(made).status, world.job(made).outcome_code) == (
        "completed",
        "transcript.gone",
    )


def test_what_was_ingested_before_the_transcript_went_is_distilled(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A throttled extract had read it."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    world.throttle(said)
    made = world.enqueue(said).job
    assert made is not None
    said.path.unlink()

    world.work()

    assert (world.job(made).outcome_code, world.bodies()) == ("notes.written", [FIRST])


def test_a_transcript_that_its_agent_moved_is_found(tmp_path: Path, clock: FakeClock) -> None:
    """Codex archives its threads."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript(CODEX, agent="codex").user(FIRST)
    made = world.enqueue(said).job
    assert made is not None
    archive = tmp_path / "person" / ".codex" / "archived_sessions"
    archive.mkdir()
    said.path.rename(archive / said.path.name)

    world.work()

    assert (world.job(made).outcome_code, world.bodies()) == ("notes.written", [FIRST])


def test_a_transcript_that_may_not_be_read_is_a_failure(tmp_path: Path, clock: FakeClock) -> None:
    """A folder in its place, or a wrong mode: a person can mend it, and the job retries."""
    world = World(tmp_path, clock)
    said = world.transcript().user(FIRST)
    made = world.enqueue(said).job
    assert made is not None
    said.path.unlink()
    said.path.mkdir()

    world.work()

    assert (world.job(made).failures, world.job(made).error_code) == (1, "transcript.unreadable")


def test_the_session_of_a_child_is_not_distilled(tmp_path: Path, clock: FakeClock) -> None:
    """A sub-agent's prompts were written by an agent, not by a person."""
    world = World(tmp_path, clock, [everything])

    job = world.finalize(world.transcript("agent-7").user(FIRST, isSidechain=True, sessionId="s1"))

    assert (job.outcome_code, world.model.requests) == ("session.child", [])
    assert ingested(world, "agent-7").messages == 0
