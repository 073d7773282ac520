"""Codex's rollouts through all that happens to them: resumed, compacted, archived, reverted."""

from __future__ import annotations

from pathlib import Path

import zstandard
from said import Reader, codex, rolled_back, rollout
from scribes import CodexScribe

from memoryd.sessions.agents import adapter_for
from memoryd.sessions.history import History
from memoryd.sessions.ingest import Ingested, ingest

META = rollout("session_meta", {"id": "s1", "cwd": "/a", "source": "cli"})


def test_a_resumed_rollout_adds_what_is_new(rollouts: Reader) -> None:
    """It goes on in the same file, says its meta again, and may be elsewhere by now."""
    begun = [META, codex("user", "a"), codex("assistant", "b")]
    rollouts.write(*begun)
    rollouts.read()
    resumed = rollout("session_meta", {"id": "s1", "cwd": "/b", "source": "exec"})
    rollouts.write(*begun, resumed, codex("user", "c"))

    assert rollouts.read().new_messages == 1

    found = rollouts.history.messages("codex", "s1", 0, 9)
    assert [(each.text, each.cwd) for each in found] == [("a", "/a"), ("b", "/a"), ("c", "/b")]


def test_what_a_compaction_repeats_is_not_said_again(rollouts: Reader) -> None:
    """The summary is nobody's words; the messages it keeps stand before it already."""
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}
    compacted = {"message": "They spoke of a.", "replacement_history": [kept]}
    rollouts.write(
        META,
        codex("user", "a"),
        codex("assistant", "b"),
        rollout("compacted", compacted),
        rollout("event_msg", {"type": "context_compacted"}),
        rollout("response_item", {"type": "compaction", "encrypted_content": "x"}),
        codex("user", "c"),
    )

    found = rollouts.read()

    assert rollouts.texts() == ["a", "b", "c"]
    assert (found.skipped["compacted"], found.bad_lines) == (1, 0)


def test_turns_taken_back_after_a_compaction_and_a_resume_are_the_last_ones(
    rollouts: Reader,
) -> None:
    """In two readings as in one."""
    said = [META, codex("user", "a"), codex("user", "b"), rollout("compacted", {"message": "x"})]
    rollouts.write(*said)
    rollouts.read()
    more = [META, codex("user", "c"), codex("assistant", "d"), rolled_back(2), codex("user", "e")]
    rollouts.write(*said, *more)

    rollouts.read()

    assert rollouts.texts() == ["a", "e"]


def test_more_turns_taken_back_than_there_are_leave_none(rollouts: Reader) -> None:
    """A rollout may have lost its beginning."""
    rollouts.write(META, codex("user", "a"), codex("user", "b"), rolled_back(9), codex("user", "c"))

    rollouts.read()

    assert rollouts.texts() == ["c"]


def test_a_fork_of_a_fork_keeps_only_its_own(rollouts: Reader) -> None:
    """Each begins with what it was forked from; a roll-back in one takes nothing from another."""
    rollouts.write(META, codex("user", "a"), codex("user", "b"), name="s1")
    rollouts.read("s1")
    for number, new in ((2, "c"), (3, "d")):
        about = {"id": f"s{number}", "cwd": "/a", "forked_from_id": f"s{number - 1}"}
        copied = [codex("user", "a"), codex("user", "b")]
        lines = [rollout("session_meta", about), META, *copied, codex("user", new)]
        rollouts.write(*lines, rolled_back(1), codex("user", new * 2), name=f"s{number}")
        rollouts.read(f"s{number}")

    assert [rollouts.texts(f"s{number}") for number in (1, 2, 3)] == [["a", "b"], ["cc"], ["dd"]]


def test_a_fork_that_is_read_first_has_what_both_begin_with(rollouts: Reader) -> None:
    """A thread goes on while what was forked from it has ended; each message stands once."""
    begun = [codex("user", "a"), codex("assistant", "b")]
    fork = rollout("session_meta", {"id": "s2", "cwd": "/a", "forked_from_id": "s1"})
    rollouts.write(fork, META, *begun, codex("user", "c"), name="s2")
    rollouts.read("s2")
    for more in ([codex("user", "d")], [codex("user", "d"), codex("user", "c")]):
        rollouts.write(META, *begun, *more)
        rollouts.read()

    assert (rollouts.texts("s2"), rollouts.texts()) == (["a", "b", "c"], ["d", "c"])
    rollouts.write(rollout("turn_context", {"cwd": "/x"}), META, *begun, *more)
    assert rollouts.read().new_messages == 0


def test_a_rollout_is_followed_into_the_archive_and_back(tmp_path: Path, history: History) -> None:
    """Moved, compressed there, taken out to go on with: one session, each message once."""
    scribe = CodexScribe(tmp_path)
    adapter, session = adapter_for("codex"), scribe.session
    live = scribe.path(session)
    archived = tmp_path / ".codex/archived_sessions" / live.name
    packed = archived.with_name(f"{archived.name}.zst")
    live.parent.mkdir(parents=True)
    archived.parent.mkdir(parents=True)
    data = [rollout("session_meta", {"id": session, "cwd": "/a", "source": "cli"})]

    def said(text: str) -> Ingested:
        """Somebody speaks where the rollout is now; it is found, and read there."""
        data.append(codex("user", text))
        place.write_bytes(b"".join(data) if place != packed else zstandard.compress(b"".join(data)))
        (found,) = adapter.discover(scribe.environ)
        assert (found.session, found.path) == (session, place)
        return ingest(
            history,
            adapter,
            "codex",
            session,
            found.path,
            None,
            resolver=str,
            exclude=lambda cwd: False,
        )

    for text, place in (("a", live), ("b", archived), ("c", packed), ("d", live)):
        for other in {live, archived, packed} - {place}:
            other.unlink(missing_ok=True)
        assert said(text).new_messages == 1

    found = history.messages("codex", session, 0, 9)
    assert [message.text for message in found] == ["a", "b", "c", "d"]
    progress = history.progress("codex", session)
    assert progress is not None and progress.reading == 1


def test_a_reverted_thread_is_the_session_it_was(tmp_path: Path) -> None:
    """Its newest rollout has a name of its own; the older one is not a second session."""
    scribe = CodexScribe(tmp_path)
    first = scribe.write([])
    newer = f"rollout-2026-01-06T09-00-00-{scribe.session}_{scribe.sessions[1]}.jsonl"
    reverted = first.parent / newer
    reverted.write_bytes(first.read_bytes())

    (found,) = adapter_for("codex").discover(scribe.environ)

    assert (found.session, found.path) == (scribe.session, reverted)
