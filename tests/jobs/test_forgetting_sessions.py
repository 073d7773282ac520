"""Sessions that a person has forgotten: nothing of them stays, and nothing comes back."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from world import NOTHING, Transcript, World, answer, fact

from memoryd.jobs.forgetting import Forgetter, Forgotten
from memoryd.jobs.letting_go import let_go
from memoryd.jobs.reviewing import waiting
from memoryd.jobs.sessions import notes_of
from memoryd.memory import seams
from memoryd.memory.config import Config, CurationSettings, PrivacySettings, SessionSettings
from memoryd.memory.errors import StoreBusy
from memoryd.memory.testing import FakeClock
from memoryd.sessions.stripping import Stripper

RULE = "Always run the linter before you commit."
#: Words that stand in the transcripts of these tests and nowhere else.
WORD, FACT = "xylophonic", "We always deploy the zeppelin on Thursdays."
ONE, TWO = str(uuid.UUID(int=7)), str(uuid.UUID(int=8))


def forgetter(world: World) -> Forgetter:
    """What forgets sessions of this home."""
    place = world.place
    return Forgetter(place.home, place.config, place.environ, place.ledger, place.history)


def forget(world: World, said: Transcript) -> Forgotten:
    """Forget one session, all the way to the disk."""
    made = forgetter(world)
    done = made.forget(said.agent, said.session)
    assert made.finish() == []
    return done


def words_on_disk(world: World, *words: str) -> list[str]:
    """The files of the home that hold any of the words."""
    found = []
    for path, data in world.bytes_of_home():
        if any(word.encode() in data for word in words):
            found.append(path.relative_to(world.home.root).as_posix())
    return found


def texts(world: World, said: Transcript) -> list[str]:
    """The words kept of a session."""
    return [m.text for m in world.place.history.messages(said.agent, said.session, 0, 1000)]


def forked(world: World, said: Transcript) -> Transcript:
    """A session that begins as a copy of one, as its agent makes it."""
    fork = world.transcript(TWO, agent=said.agent)
    data = said.path.read_bytes()
    if said.agent == "codex":
        data = data.replace(b'"source"', b'"forked_from_id": "%s", "source"' % ONE.encode(), 1)
        data = data.replace(f'"id": "{ONE}"'.encode(), f'"id": "{TWO}"'.encode())
    fork.path.write_bytes(data)
    fork.lines = 8
    return fork


def lose_history(world: World) -> None:
    """The session history is moved away, and memoryd started anew."""
    world.place.close()
    for path in world.home.root.glob("sessions.sqlite*"):
        path.unlink()
    world.restart()


def test_the_words_of_a_forgotten_session_are_in_no_file(tmp_path: Path, clock: FakeClock) -> None:
    """Neither what was said nor what a model made of it for a person to look at."""
    review = Config(curation=CurationSettings(mode="review"))
    world = World(tmp_path, clock, [answer(fact(FACT))], config=review)
    said = world.transcript().user(f"{WORD} one").user(FACT)
    assert world.finalize(said).outcome_code == "review.pending"
    assert words_on_disk(world, WORD, "zeppelin")

    done = forget(world, said)

    assert (done.messages, done.cancelled, done.read) == (2, 0, True)
    assert words_on_disk(world, WORD, "zeppelin") == []
    assert waiting(world.ledger) == []


def test_what_older_versions_of_a_row_held_is_gone_too(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan that was applied and cleared lies in free pages of the ledger."""
    body = "the zeppelin on Thursdays\n" * 200
    note = {"type": "project", "name": "n", "description": FACT, "content": body}
    world = World(tmp_path, clock, [answer({**fact(FACT), "category": "project", "note": note})])
    said = world.transcript().user(FACT)
    world.enqueue(said)
    world.die_at("plan.recorded", monkeypatch)
    world.ledger.db.rows("pragma wal_checkpoint(truncate)")
    world.ledger.db.rows("pragma secure_delete = 0")  # as SQLite is built in most places
    world.work_to_rest()
    (written,) = notes_of(world.ledger, said.agent, said.session)

    forget(world, said)

    left = words_on_disk(world, "zeppelin on Thursdays")
    assert not [path for path in left if "sqlite" in path], left
    assert notes_of(world.ledger, said.agent, said.session) == [written]
    assert len(world.bodies()) == 1


def test_a_forgotten_session_is_never_distilled_again(tmp_path: Path, clock: FakeClock) -> None:
    """Whoever asks: its hook, the sweep, a person, a retry; what waited is called off."""
    world = World(tmp_path, clock, [NOTHING] * 9)
    said = world.transcript().user(f"{WORD} one")
    job = world.enqueue(said).job
    assert job is not None

    assert forget(world, said).cancelled == 1

    assert world.job(job).outcome_code == "session.forgotten"
    assert world.enqueue(said.user("more")).excluded == "session.forgotten"
    assert world.enqueue(said, trigger="cli").excluded == "session.forgotten"
    assert world.ledger.retry(world.job(job))
    world.work()
    assert world.job(job).outcome_code == "session.forgotten"
    assert world.model.requests == []
    assert texts(world, said) == []


def test_a_kill_switch_of_its_hook_does_not_hide_that_it_was_forgotten(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The person's word says more."""
    world = World(tmp_path, clock)
    said = world.transcript().user(f"{WORD} one")
    forget(world, said)

    world.ledger.exclude(said.agent, said.session, "session.excluded")

    assert world.enqueue(said).excluded == "session.forgotten"


def test_a_crash_in_the_middle_is_made_good(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next pass goes on, wherever it was."""
    review = Config(curation=CurationSettings(mode="review"))
    world = World(tmp_path, clock, [answer(fact(FACT))], config=review)
    said = world.transcript().user(f"{WORD} one").user(FACT)
    world.finalize(said)
    monkeypatch.setattr(Stripper, "forget", None)
    with pytest.raises(TypeError):
        forgetter(world).forget(said.agent, said.session)
    monkeypatch.undo()
    assert texts(world, said)

    let_go(world.place)

    assert words_on_disk(world, WORD, "zeppelin") == []


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_fork_of_a_forgotten_session_says_only_its_own(
    tmp_path: Path, clock: FakeClock, agent: str
) -> None:
    """Also where the forgotten one had never been read, and grew after its last reading."""
    world = World(tmp_path, clock, [NOTHING] * 9)
    said = world.transcript(ONE, agent=agent).user(f"{WORD} one").assistant(f"{WORD} two")
    assert forget(world, said).read

    fork = forked(world, said)
    job = world.finalize(fork.user("omega three"))

    assert job.status == "completed"
    assert texts(world, fork) == ["omega three"]
    assert WORD not in world.prompts()
    assert words_on_disk(world, WORD) == []


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
@pytest.mark.parametrize("is_history_lost", [False, True])
def test_what_a_forgotten_session_says_later_does_not_come_back_through_a_fork(
    tmp_path: Path, clock: FakeClock, agent: str, is_history_lost: bool
) -> None:
    """Its agent goes on with it and it is forked; also where the history was lost in between."""
    world = World(tmp_path, clock, [NOTHING] * 9)
    said = world.transcript(ONE, agent=agent).user(f"{WORD} one").assistant(f"{WORD} two")
    forget(world, said)
    said.user(f"{WORD} three")
    assert world.enqueue(said).excluded == "session.forgotten"
    if is_history_lost:
        lose_history(world)

    fork = forked(world, said)
    world.finalize(fork.user("omega four"))

    assert texts(world, fork) == ["omega four"]
    assert WORD not in world.prompts()
    assert words_on_disk(world, WORD) == []


def test_a_pass_learns_what_a_forgotten_session_says_by_now(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Before its transcript goes, and its file is opened only where it looks otherwise."""
    world = World(tmp_path, clock, [NOTHING] * 9)
    said = world.transcript(ONE).user(f"{WORD} one")
    forget(world, said)
    said.user(f"{WORD} two")

    assert [forgetter(world).catch_up() for _ in range(2)] == [1, 0]

    said.user(f"{WORD} three")
    let_go(world.place)
    fork = forked(world, said)
    said.path.unlink()
    world.finalize(fork.user("omega four"))
    assert texts(world, fork) == ["omega four"]


def test_a_session_whose_transcript_is_gone_can_be_forgotten(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its words go all the same; that nothing more is known of it is told."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript().user(f"{WORD} one")
    world.finalize(said)
    said.path.unlink()

    done = forget(world, said)

    assert (done.messages, done.read) == (1, False)
    assert words_on_disk(world, WORD) == []


def test_what_is_being_written_is_written_first(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan stands: forgetting says so; once it is settled, no word of the session is left."""
    world = World(tmp_path, clock, [answer(fact(FACT)), NOTHING])
    said = world.transcript().user(FACT).user(f"{WORD} one")
    job = world.enqueue(said).job
    assert job is not None
    world.die_at("plan.recorded", monkeypatch)

    with pytest.raises(StoreBusy, match="not written yet"):
        forgetter(world).forget(said.agent, said.session)
    world.work_to_rest()
    assert world.job(job).outcome_code == "session.forgotten"
    assert len(world.bodies()) == 1

    let_go(world.place)
    left = words_on_disk(world, WORD, "zeppelin on Thursdays")
    assert not [path for path in left if "sqlite" in path], left


def test_a_job_that_reads_at_that_moment_keeps_nothing(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is called off, and what it goes on to read comes in without words."""
    world = World(tmp_path, clock, [answer(fact(FACT))])
    said = world.transcript().user(FACT)
    job = world.enqueue(said).job
    assert job is not None

    def between(reached: str) -> None:
        if reached == "session.ingested":
            monkeypatch.setattr(seams, "hook", lambda point: None)
            said.user(f"{WORD} late")
            forgetter(world).forget(said.agent, said.session)

    monkeypatch.setattr(seams, "hook", between)
    world.work()

    assert world.job(job).outcome_code == "session.forgotten"
    assert world.bodies() == []
    assert texts(world, said) == []
    assert words_on_disk(world, WORD) == []


def test_copies_of_the_ledger_from_before_are_named(tmp_path: Path, clock: FakeClock) -> None:
    """They are a person's way back, and theirs to delete."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript().user(f"{WORD} one")
    world.finalize(said)
    world.home.backups.mkdir(exist_ok=True)
    copy = world.home.backups / "memoryd-schema1-1-1.sqlite"
    copy.write_bytes(b"old")
    made = forgetter(world)
    made.forget(said.agent, said.session)

    assert made.finish() == [f"{copy} is a copy from before; delete it if it must not stay"]


def test_events_of_a_forgotten_session_are_told_no_more(tmp_path: Path, clock: FakeClock) -> None:
    """Names of notes are words too; other sessions' events stay."""
    world = World(tmp_path, clock, [answer(fact(FACT)), answer(fact(RULE))])
    said = world.transcript("s1").user(FACT)
    world.finalize(said)
    world.finalize(world.transcript("s2").user(RULE))
    assert len(world.ledger.events.after(0)) == 2

    forget(world, said)

    assert [each.body["session"] for each in world.ledger.events.after(0)] == ["s2"]


def test_a_forgotten_session_in_an_excluded_directory_says_no_project(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its digests are not read either."""
    settings = Config(
        privacy=PrivacySettings(exclude=("project",)), sessions=SessionSettings(store=False)
    )
    world = World(tmp_path, clock, config=settings)
    said = world.transcript().user(f"{WORD} one")

    forget(world, said)

    assert world.place.history.project_use() == {}


def test_forgotten_words_are_in_no_index(tmp_path: Path, clock: FakeClock) -> None:
    """Nothing finds them, and the index is rewritten before the command says that it is done."""
    world = World(tmp_path, clock, [NOTHING])
    said = world.transcript().user(f"{WORD} one")
    world.finalize(said)
    assert world.place.history.index.catch_up() == 1
    assert "sessions.sqlite" in " ".join(words_on_disk(world, WORD))

    forget(world, said)

    assert words_on_disk(world, WORD) == []
    assert world.place.history.index.catch_up() == 0
