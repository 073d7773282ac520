"""Envelopes become rows: once each, whatever lies in the inbox and whoever else looks."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from world import Stopped, World, answer, fact

from memoryd.jobs.intake import BATCH, Taken, take_in
from memoryd.jobs.sweep import take_in_envelopes
from memoryd.memory import own_calls, seams
from memoryd.memory.errors import LedgerError, UsageError
from memoryd.memory.testing import FakeClock

RULE = "Always run the linter before you commit."


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home whose model takes the rule for a fact."""
    return World(tmp_path, clock, [answer(fact(RULE))])


def drop(world: World, session: str = "s1", *, at: int = 0, **changes: object) -> Path:
    """An envelope in the inbox, as the hook writes it; ``at`` orders it among others."""
    path = world.folder / "person" / ".claude" / "projects" / "-project" / f"{session}.jsonl"
    envelope = {
        "version": 1,
        "agent": "claude-code",
        "event": "session-end",
        "session": session,
        "transcript": str(path),
        "cwd": str(world.project),
        "reason": "clear",
        "cutoff": 0,
        "time_ms": world.clock.now_ms(),
        "switches": [],
        **changes,
    }
    file = world.home.inbox / f"{1_767_603_600_000_000_000 + at}-{session}.json"
    file.write_text(json.dumps(envelope))
    return file


def left(world: World) -> list[str]:
    """What is in the inbox still, except ``bad``."""
    return sorted(path.name for path in world.home.inbox.iterdir() if not path.is_dir())


def bad(world: World) -> list[str]:
    """What was set aside."""
    return sorted(path.name for path in (world.home.inbox / "bad").iterdir())


def test_a_finished_session_goes_from_envelope_to_notes(world: World) -> None:
    """The row says what the hook saw; the envelope is gone; the session is distilled."""
    said = world.transcript().user(RULE)
    drop(world, cutoff=said.size)

    assert take_in_envelopes(world.place) == Taken(1, 1, 0, 0)

    (job,) = world.ledger.records.jobs()
    assert (job.kind, job.cutoff, job.trigger, job.reason) == ("finalize", said.size, "hook", "end")
    assert json.loads(job.payload) == {"why": "clear"}
    rollout = world.ledger.records.rollout("claude-code", "s1")
    assert rollout is not None
    assert (rollout.transcript, rollout.cwd) == (str(said.path), str(world.project))
    assert left(world) == []
    world.work()
    assert world.bodies() == [RULE]


def test_hundreds_of_envelopes_share_a_few_transactions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between two of them costs nothing: what was inserted is not made again."""
    for number in range(BATCH + 2):
        drop(world, f"s{number}", at=number)
    drop(world, "s0", at=-1, version=99)
    taken = []
    monkeypatch.setattr(seams, "hook", taken.append)

    assert take_in_envelopes(world.place) == Taken(BATCH + 3, BATCH + 2, 1, 0)

    assert taken.count("envelope.inserted") == 2
    assert world.ledger.records.counts() == {"pending": BATCH + 2}
    assert left(world) == []


def test_what_a_killed_hook_could_not_name_is_taken_in(world: World) -> None:
    """A whole one once no hook can be at it any more; half a one is removed; a new one stays."""
    whole, half, new = (drop(world, session, at=i) for i, session in enumerate(("s1", "s2", "s3")))
    for path in (whole, half, new):
        number = path.name.split("-")[0]
        path.rename(path.with_name(f".{number}-17-0123abcd.json.tmp"))
    unnamed = sorted(path for path in world.home.inbox.iterdir() if path.name[0] == ".")
    unnamed[1].write_text('{"version": 1, "agent"')
    now = world.clock.now_ms() / 1000
    for path, age in zip(unnamed, (61, 61, 59), strict=True):
        os.utime(path, (now - age, now - age))

    assert take_in_envelopes(world.place) == Taken(1, 1, 0, 0)

    assert [job.session for job in world.ledger.records.jobs()] == ["s1"]
    assert left(world) == [unnamed[2].name]


@pytest.mark.parametrize(
    ("event", "kind", "reason"),
    [
        ("session-end", "finalize", "end"),
        ("stop", "extract", "stop"),
        ("pre-compact", "extract", "compact"),
    ],
)
def test_each_event_makes_its_kind_of_job(world: World, event: str, kind: str, reason: str) -> None:
    """What an agent calls the end of a run or of a session."""
    drop(world, event=event)

    take_in_envelopes(world.place)

    (job,) = world.ledger.records.jobs()
    assert (job.kind, job.reason) == (kind, reason)


def test_the_same_end_twice_is_one_job(world: World) -> None:
    """Two hooks, two envelopes, one cutoff."""
    drop(world, at=1)
    drop(world, at=2)

    assert take_in_envelopes(world.place) == Taken(2, 1, 0, 0)


def test_the_runs_of_a_session_are_one_extract_that_reads_further(world: World) -> None:
    """Its cutoff is the furthest."""
    for at, cutoff in enumerate((100, 300, 200)):
        drop(world, at=at, event="stop", cutoff=cutoff)

    assert take_in_envelopes(world.place).created == 1

    (job,) = world.ledger.records.jobs()
    assert job.cutoff == 300


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{" * 100_000, b'{"version": 1}', b"0" * 70_000],
)
def test_what_is_no_envelope_is_set_aside(world: World, content: bytes) -> None:
    """Never deleted, and those after it are taken in all the same."""
    first = world.home.inbox / "1767603600000000000-x.json"
    first.write_bytes(content)
    drop(world, at=9)

    assert take_in_envelopes(world.place) == Taken(2, 1, 1, 0)

    assert (left(world), bad(world)) == ([], [first.name])
    assert (world.home.inbox / "bad" / first.name).read_bytes() == content


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"agent": "nobody-knows-it"},
        {"agent": "nobody-knows-it", "transcript": None},
        {"agent": "../x"},
        {"event": "lunch"},
        {"session": "a/b"},
        {"transcript": "relative.jsonl"},
        {"cutoff": -1},
        {"cutoff": 2**63},
        {"time_ms": "now"},
        {"switches": ["PATH"]},
        {"words": "what the person said"},
    ],
)
def test_an_envelope_that_says_what_none_says_is_set_aside(
    world: World, changes: dict[str, object]
) -> None:
    """An agent nobody here can read among them; the next envelope is not held up."""
    envelope = drop(world, "s1")
    envelope.write_text(json.dumps({**json.loads(envelope.read_text()), **changes}))
    drop(world, "s2", at=9)

    taken = take_in_envelopes(world.place)

    assert (taken.bad, taken.created) == (1, 1)
    assert len(bad(world)) == 1


def test_a_link_or_a_folder_in_place_of_an_envelope_is_set_aside(world: World) -> None:
    """Nothing is followed."""
    target = drop(world)
    outside = world.folder / "outside.json"
    target.rename(outside)
    (world.home.inbox / "1-link.json").symlink_to(outside)
    (world.home.inbox / "2-folder.json").mkdir()

    assert take_in_envelopes(world.place).bad == 2

    assert bad(world) == ["1-link.json", "2-folder.json"]
    assert outside.exists()
    assert world.ledger.records.jobs() == []


def test_what_cannot_be_opened_is_left_and_holds_nobody_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be readable another time."""
    monkeypatch.chdir(world.home.inbox)
    with socket.socket(socket.AF_UNIX) as stuck:
        stuck.bind("1-stuck.json")
        drop(world)

        assert take_in_envelopes(world.place).created == 1

    assert (left(world), bad(world)) == (["1-stuck.json"], [])


def test_half_written_envelopes_are_not_looked_at(world: World) -> None:
    """A hook writes under another name first."""
    (world.home.inbox / ".1-x.json").write_text("{")
    (world.home.inbox / "1-x.tmp").write_text("{")

    assert take_in_envelopes(world.place) == Taken(0, 0, 0, 0)
    assert len(left(world)) == 2


@pytest.mark.parametrize("switch", ["MEMORYD_DISABLE", "MEMORYD_DISABLE_EXTRACTION"])
def test_a_session_under_a_kill_switch_is_never_distilled(world: World, switch: str) -> None:
    """No job for it, what was pending is cancelled, and the sweep makes none either."""
    said = world.transcript().user(RULE)
    drop(world, at=1, event="stop", cutoff=said.size)
    drop(world, at=2, cutoff=said.size, switches=[switch])
    drop(world, at=3, cutoff=said.size + 1)

    assert take_in_envelopes(world.place) == Taken(3, 1, 0, 1)
    world.work()

    (job,) = world.ledger.records.jobs()
    assert (job.status, job.outcome_code) == ("cancelled", "session.excluded")
    assert (world.model.requests, world.bodies()) == ([], [])


@pytest.mark.parametrize("told_by", ["variable", "folder"])
def test_a_session_that_answers_a_question_of_ours_is_excluded_for_good(
    world: World, told_by: str
) -> None:
    """By either; the variable says more than the switch it comes with."""
    said = world.transcript().user(RULE)
    ours: dict[str, dict[str, Any]] = {
        "variable": {"switches": ["MEMORYD_DISABLE", "MEMORYD_OWN_CALL"]},
        "folder": {"cwd": str(own_calls.folder(world.home))},
    }
    drop(world, at=1, cutoff=said.size, **ours[told_by])

    assert take_in_envelopes(world.place) == Taken(1, 0, 0, 1)

    (known,) = world.ledger.records.rollouts()
    assert (known.session, known.excluded) == ("s1", "session.own")
    drop(world, at=2, cutoff=said.size)
    assert take_in_envelopes(world.place) == Taken(1, 0, 0, 0)
    assert world.ledger.records.jobs() == []


def test_other_switches_exclude_nothing(world: World) -> None:
    """A session whose agent wants no recall may still be learned from."""
    drop(world, switches=["MEMORYD_DISABLE_RECALL"])

    assert take_in_envelopes(world.place) == Taken(1, 1, 0, 0)


def test_a_crash_between_row_and_unlink_makes_no_second_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are there; the next intake finds the row and takes the envelope away."""
    drop(world)

    def die(point: str) -> None:
        if point == "envelope.inserted":
            raise Stopped(point)

    with monkeypatch.context() as patched, pytest.raises(Stopped):
        patched.setattr(seams, "hook", die)
        take_in_envelopes(world.place)
    assert (len(left(world)), len(world.ledger.records.jobs())) == (1, 1)

    assert take_in_envelopes(world.place) == Taken(1, 0, 0, 0)
    assert (len(left(world)), len(world.ledger.records.jobs())) == (0, 1)


def test_two_intakes_at_once_make_one_job_an_envelope(world: World) -> None:
    """A daemon and a command look into the same inbox."""
    for number in range(12):
        drop(world, f"s{number}", at=number)
    (world.home.inbox / "5-bad.json").write_text("{")
    together = threading.Barrier(2)
    made: list[Taken] = []

    def look() -> None:
        together.wait(60)
        made.append(take_in_envelopes(world.place))
        world.place.close()

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(made) == 2
    assert sum(taken.created for taken in made) == 12
    assert len(world.ledger.records.jobs()) == 12
    assert (left(world), bad(world)) == ([], ["5-bad.json"])


def test_an_extract_that_another_took_in_and_worked_is_not_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both had read its envelope; it has no key that would stop the second."""
    drop(world, event="pre-compact", cutoff=world.transcript().user(RULE).size)

    def be_overtaken(point: str) -> None:
        if point == "envelope.inserted":
            monkeypatch.undo()
            assert take_in_envelopes(world.place).created == 1
            world.work()

    monkeypatch.setattr(seams, "prior", be_overtaken)

    assert take_in_envelopes(world.place) == Taken(1, 0, 0, 0)
    assert [job.outcome_code for job in world.ledger.records.jobs()] == ["notes.written"]


def test_who_comes_before_the_envelopes_are_gone_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In vain where that takes too long; the next finds them gone."""
    drop(world, event="stop")
    refused: list[str] = []

    def come(point: str) -> None:
        if point == "envelope.inserted" and not refused:
            refused.append(point)
            with pytest.raises(LedgerError, match=f"taken in by process {os.getpid()}"):
                take_in(world.home, world.ledger, lambda *session: None, wait_seconds=0)

    monkeypatch.setattr(seams, "hook", come)

    assert take_in_envelopes(world.place).created == 1
    assert refused
    assert take_in_envelopes(world.place) == Taken(0, 0, 0, 0)


def test_a_missing_cutoff_is_the_end_of_the_last_whole_line(world: World) -> None:
    """The hook could not tell; what stands there now is as good."""
    said = world.transcript().user(RULE)
    whole = said.size
    said.raw(b'{"type":"user","mess')
    drop(world, cutoff=None)

    take_in_envelopes(world.place)

    (job,) = world.ledger.records.jobs()
    assert job.cutoff == whole


def test_a_missing_transcript_is_looked_for_where_the_agent_keeps_its_own(world: World) -> None:
    """By the session's name."""
    said = world.transcript().user(RULE)
    drop(world, transcript=None, cutoff=None)

    take_in_envelopes(world.place)
    world.work()

    rollout = world.ledger.records.rollout("claude-code", "s1")
    assert rollout is not None
    assert (rollout.transcript, rollout.last_cutoff) == (str(said.path), said.size)
    assert world.bodies() == [RULE]


@pytest.mark.parametrize("transcript", [None, "/nowhere/at/all.jsonl", "/"])
def test_a_session_without_a_transcript_still_becomes_a_row(
    world: World, transcript: str | None
) -> None:
    """What cannot be found or read now may be there when the job runs."""
    drop(world, transcript=transcript, cutoff=None)

    assert take_in_envelopes(world.place) == Taken(1, 1, 0, 0)

    (job,) = world.ledger.records.jobs()
    assert job.cutoff == 0


def test_the_oldest_envelope_comes_first(world: World) -> None:
    """Also where the names have different lengths, and all are taken in within a millisecond."""
    for name, session in (("9", "first"), ("10", "second"), ("100", "third")):
        drop(world, session).rename(world.home.inbox / f"{name}-{session}.json")

    take_in_envelopes(world.place)

    newest_first = [job.session for job in world.ledger.records.jobs()]
    assert newest_first == ["third", "second", "first"]


def test_without_an_inbox_there_is_nothing_to_take_in(world: World) -> None:
    """A hook makes the folder when it needs it."""
    shutil.rmtree(world.home.inbox)

    assert take_in(world.home, world.ledger, lambda agent, session: None) == Taken(0, 0, 0, 0)


def test_an_inbox_that_cannot_be_listed_is_an_error(world: World) -> None:
    """A file in its place: the caller has to say so."""
    shutil.rmtree(world.home.inbox)
    world.home.inbox.write_text("")

    with pytest.raises(OSError, match=os.strerror(20)):
        take_in_envelopes(world.place)


def test_a_secret_that_an_agent_put_into_its_fields_is_nowhere_in_the_home(world: World) -> None:
    """Reason and directory are left out, a transcript named by one is refused; enqueue asks too."""
    token = "ghp_" + "Zx9Qw7Er" * 5
    drop(world, "s1", reason=token, cwd=f"/work/{token}")
    drop(world, "s2", at=1, transcript=f"/t/{token}/s2.jsonl")

    assert take_in_envelopes(world.place) == Taken(2, 1, 1, 0)

    world.enqueue(world.transcript("s3"), cwd=f"/work/{token}")
    with pytest.raises(UsageError, match="path holds a secret"):
        world.ledger.enqueue(
            "finalize", "codex", "s4", cutoff=0, transcript=f"/t/{token}", cwd="", trigger="cli"
        )
    kept = b"".join(path.read_bytes() for path in world.home.root.rglob("*") if not path.is_dir())
    assert token.encode() not in kept
