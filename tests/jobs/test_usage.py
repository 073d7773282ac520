"""What was shown to agents and what they say they used: counted where it was shown, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import open_ledger
from world import NOTHING, World

from memoryd.jobs.ledger import Ledger
from memoryd.jobs.usage import INJECTION_DAYS, follow_edits
from memoryd.memory.decay import NEVER, Use
from memoryd.memory.edits import EditsOutcome
from memoryd.memory.errors import UsageError
from memoryd.memory.testing import FakeClock
from memoryd.memory.vanished import Moved

DAY = 24 * 3600
TABS, DB = ("-code", "user/tabs"), ("-code", "project/db")
TAG = "<memory-used>user/tabs</memory-used>"


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """A ledger on a file of its own."""
    return open_ledger(tmp_path, clock)


def show(ledger: Ledger, message: str = "m1", *notes: tuple[str, str], session: str = "s1") -> int:
    """Show notes with a message; the tabs when none are named."""
    return ledger.usage.record_injection("codex", session, message, notes or (TABS,))


def cite(ledger: Ledger, *notes: str, session: str = "s1", at_ms: int | None = None) -> list[str]:
    """The agent says it used these."""
    return ledger.usage.credit("codex", session, notes, at_ms=at_ms)


def tabs(ledger: Ledger) -> Use:
    """The counters of the note about tabs."""
    return ledger.usage.usage_of("-code").get("user/tabs", NEVER)


# -- shown ---------------------------------------------------------------------------------------


def test_a_note_is_shown_once_for_each_message(ledger: Ledger) -> None:
    """Told twice it counts once; used is another counter."""
    assert show(ledger, "m1", TABS, DB, TABS) == 2
    assert show(ledger, "m1", TABS, DB) == 0
    assert show(ledger, "m2", TABS) == 1

    assert ledger.usage.usage_of("-code") == {"user/tabs": Use(2), "project/db": Use(1)}
    assert ledger.usage.usage_of("-other") == {}


def test_an_unknown_note_reads_as_zeros(ledger: Ledger) -> None:
    """There is nothing to make first."""
    assert (tabs(ledger), NEVER) == (Use(0, 0, 0), Use())


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", "x" * 2000])
def test_what_a_row_cannot_hold_is_refused_whole(ledger: Ledger, bad: str) -> None:
    """Nothing of the message is counted then."""
    with pytest.raises(UsageError):
        show(ledger, "m1", TABS, ("-code", bad))
    with pytest.raises(UsageError):
        show(ledger, bad)
    with pytest.raises(UsageError):
        cite(ledger, "user/tabs", session=bad)

    assert ledger.usage.usage_of("-code") == {}


# -- cited ---------------------------------------------------------------------------------------


def test_only_what_was_shown_in_the_session_is_credited(ledger: Ledger, clock: FakeClock) -> None:
    """In the order it was cited; the time is that of the citation."""
    show(ledger, "m1", TABS, DB)
    show(ledger, "m1", ("-code", "user/else"), session="s2")

    assert cite(ledger, "project/db", "user/else", "user/tabs", "\ud800/x", "project/db") == [
        "project/db",
        "user/tabs",
    ]
    assert tabs(ledger) == Use(1, 1, clock.now_ms())
    assert ledger.usage.usage_of("-code")["user/else"] == Use(1)
    assert ledger.usage.credit("claude-code", "s1", ["user/tabs"]) == []


def test_several_replies_to_one_message_credit_once(ledger: Ledger, clock: FakeClock) -> None:
    """Shown again, it can be credited again; what was shown before is not credited late."""
    show(ledger, "m1")
    clock.advance(1)
    show(ledger, "m2")
    assert cite(ledger, "user/tabs") == ["user/tabs"]
    assert cite(ledger, "user/tabs") == []

    clock.advance(1)
    show(ledger, "m3")

    assert cite(ledger, "user/tabs") == ["user/tabs"]
    assert tabs(ledger) == Use(3, 2, clock.now_ms())


def test_a_reply_that_is_read_again_later_credits_nothing(ledger: Ledger, clock: FakeClock) -> None:
    """Even where the note was shown again meanwhile: that was after the reply."""
    show(ledger, "m1")
    clock.advance(1)
    said = clock.now_ms()
    assert cite(ledger, "user/tabs", at_ms=said) == ["user/tabs"]
    clock.advance(1)
    show(ledger, "m2")

    assert cite(ledger, "user/tabs", at_ms=said) == []
    assert tabs(ledger) == Use(2, 1, said)


def test_a_reply_from_before_the_note_was_shown_credits_nothing(
    ledger: Ledger, clock: FakeClock
) -> None:
    """It cannot have used it."""
    show(ledger)

    assert cite(ledger, "user/tabs", at_ms=clock.now_ms() - 1) == []


def test_a_time_ahead_of_ours_counts_as_now(ledger: Ledger, clock: FakeClock) -> None:
    """An agent's clock is its own."""
    show(ledger)

    cite(ledger, "user/tabs", at_ms=clock.now_ms() + DAY * 1000)

    assert tabs(ledger).last_used_at_ms == clock.now_ms()


def test_one_name_in_two_stores_is_credited_in_both(ledger: Ledger) -> None:
    """The agent saw both and names no store."""
    show(ledger, "m1", TABS, ("-other", "user/tabs"))

    assert cite(ledger, "user/tabs") == ["user/tabs"]
    assert tabs(ledger).used == ledger.usage.usage_of("-other")["user/tabs"].used == 1


def test_counters_survive_the_process(ledger: Ledger, tmp_path: Path, clock: FakeClock) -> None:
    """There is nothing to flush."""
    show(ledger)
    cite(ledger, "user/tabs")
    ledger.close()

    assert tabs(open_ledger(tmp_path, clock)) == Use(1, 1, clock.now_ms())


# -- with its note -------------------------------------------------------------------------------


def test_a_deleted_note_takes_its_counters_along(ledger: Ledger) -> None:
    """A late citation does not bring them back; its sibling's stay."""
    show(ledger, "m1", TABS, DB)

    ledger.usage.forget_usage(*TABS)

    assert cite(ledger, "user/tabs", "project/db") == ["project/db"]
    assert set(ledger.usage.usage_of("-code")) == {"project/db"}


def test_a_renamed_note_keeps_its_counters(ledger: Ledger, clock: FakeClock) -> None:
    """They are added to what the new name has; citations go by the new name."""
    show(ledger, "m1", TABS, DB)
    show(ledger, "m2", TABS)
    cite(ledger, "user/tabs")
    used = clock.now_ms()

    ledger.usage.rename_usage("-code", "user/tabs", "project/db")
    ledger.usage.rename_usage("-code", "project/db", "project/db")
    ledger.usage.rename_usage("-code", "user/unknown", "project/db")

    assert ledger.usage.usage_of("-code") == {"project/db": Use(3, 1, used)}
    assert cite(ledger, "user/tabs") == []


def test_counters_follow_what_a_person_did_in_the_store(ledger: Ledger) -> None:
    """Deleted, moved to another type or to another store, and renamed in the header."""
    names = ("pnpm", "lost", "file", "named", "gone")
    show(ledger, "m1", TABS, DB, *(("-code", f"user/{name}") for name in names))
    edits = EditsOutcome(
        edited=("feedback/pnpm.md", "user/other.md", "user/anew.md"),
        forgotten=("user/tabs.md",),
        moved=(
            Moved("user/pnpm.md", "feedback/pnpm.md"),
            Moved("user/lost.md", "user/lost.md", "-other"),
            Moved("user/file.md", "user/other.md", names=("user/file", "user/file")),
            Moved("user/named.md", "user/anew.md", names=("user/named", "user/anew")),
            Moved("user/gone.md", "drafts/gone.md"),
        ),
    )

    follow_edits(ledger.usage, "-code", edits)

    assert set(ledger.usage.usage_of("-code")) == {
        "project/db",
        "feedback/pnpm",
        "user/file",
        "user/anew",
    }


def test_old_injections_are_pruned_and_counters_stay(ledger: Ledger, clock: FakeClock) -> None:
    """However many they are."""
    for number in range(1005):
        show(ledger, f"m{number}")
    clock.advance((INJECTION_DAYS - 1) * DAY)
    show(ledger, "new", DB)
    assert ledger.usage.prune() == 0
    clock.advance(2 * DAY)

    assert ledger.usage.prune() == 1005

    assert cite(ledger, "user/tabs", "project/db") == ["project/db"]
    assert tabs(ledger).shown == 1005


# -- found at ingestion --------------------------------------------------------------------------


def shown_in(world: World, session: str = "s1") -> None:
    """The note was shown two hours ago, before the session's transcript begins."""
    world.clock.step(-2 * 3600)
    world.ledger.usage.record_injection("claude-code", session, "m1", [TABS])
    world.clock.step(2 * 3600)


def test_a_citation_in_a_transcript_is_credited(tmp_path: Path, clock: FakeClock) -> None:
    """At the time of the reply; the model is not shown the tag."""
    world = World(tmp_path, clock, [NOTHING])
    shown_in(world)
    said = world.transcript().user("Use tabs, as always.").assistant(f"Done.\n\n{TAG}")

    world.finalize(said)

    assert tabs(world.ledger) == Use(1, 1, said.at_ms + 2000)
    assert "memory-used" not in world.prompts()
    assert world.place.history.citations("claude-code", "s1", 10) == []


def test_a_citation_of_what_was_not_shown_is_credited_to_nobody(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A person's words cite nothing either."""
    world = World(tmp_path, clock, [NOTHING])
    shown_in(world, "another")
    world.finalize(world.transcript().user(f"Cite {TAG}.").assistant(f"Done. {TAG}"))
    world.finalize(world.transcript("another").user(f"Cite {TAG}."))

    assert tabs(world.ledger) == Use(1, 0, 0)


@pytest.mark.parametrize("point", ["messages.committed", "citations.credited"])
def test_a_crash_between_ingestion_and_credit_loses_and_doubles_nothing(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The citation waits in the session history until the ledger has it."""
    world = World(tmp_path, clock, [NOTHING])
    shown_in(world)
    said = world.transcript().user("Use tabs.").assistant(f"Done. {TAG}").assistant(f"And {TAG}")
    world.enqueue(said)

    world.die_at(point, monkeypatch)
    world.ledger.usage.record_injection("claude-code", "s1", "m2", [TABS])
    world.work_to_rest()

    assert tabs(world.ledger) == Use(2, 1, said.at_ms + 2000)
    assert world.place.history.citations("claude-code", "s1", 10) == []


def test_a_transcript_that_is_read_again_credits_nothing_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Rewritten, or resumed."""
    world = World(tmp_path, clock, [NOTHING])
    shown_in(world)
    said = world.transcript().user("Use tabs.").assistant(f"Done. {TAG}").assistant(TAG)
    world.finalize(said)

    said.path.write_bytes(b'{"type":"summary"}\n' + said.path.read_bytes())
    world.finalize(said.user("Go on."))

    assert tabs(world.ledger) == Use(1, 1, said.at_ms + 2000)


def test_a_throttled_extract_credits_what_was_cited(tmp_path: Path, clock: FakeClock) -> None:
    """Citations do not wait for the model."""
    world = World(tmp_path, clock, [NOTHING])
    shown_in(world)

    world.throttle(world.transcript().user("Use tabs.").assistant(f"Done. {TAG}"))

    assert (world.model.requests, tabs(world.ledger).used) == ([], 1)


def test_a_note_deleted_by_hand_loses_its_counters_at_the_next_job(
    tmp_path: Path, clock: FakeClock
) -> None:
    """With no daemon running."""
    from world import answer, fact

    world = World(tmp_path, clock, [answer(fact("Always use tabs.")), NOTHING])
    world.finalize(world.transcript("s1").user("Always use tabs."))
    (note,) = world.store().notes()
    key = world.store().key
    world.ledger.usage.record_injection("codex", "s9", "m1", [(key, note.id)])
    (world.store().root / note.path).unlink()
    clock.step(10**8)

    world.finalize(world.transcript("s2").user("Something else is said here."))

    assert world.ledger.usage.usage_of(key) == {}
