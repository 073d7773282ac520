"""What ingestion notes of an agent's own saves and citations, and where it keeps that."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from said import Reader, claude, codex, parse, rollout

from memoryd.memory.testing import FakeClock
from memoryd.sessions import schema
from memoryd.sessions.adapter import State
from memoryd.sessions.history import History
from memoryd.sessions.own_tool import CALL_BYTES, SAVING_LIMIT, note_call, tells_failure

SAVE = "mcp__memoryd__memory_save"
TAG = "<memory-used>user/tabs, project/db</memory-used>"


def call(name: str, uuid: str, call_id: str = "toolu_1", arguments: Any = None) -> bytes:
    """A line in which Claude Code's assistant calls a tool."""
    block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}}
    return claude("assistant", [block], uuid)


def result(uuid: str, call_id: str = "toolu_1", content: str = "ok", **more: Any) -> bytes:
    """A line with the tool's answer."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}
    return claude("user", [block], uuid)


def rows(reader: Reader) -> list[tuple[bytes]]:
    """What is kept of the calls."""
    with sqlite3.connect(reader.folder / "sessions.sqlite") as database:
        found = database.execute("select call from saved").fetchall()
    database.close()
    return found


# -- saves ---------------------------------------------------------------------------------------


def test_a_save_stands_after_the_message_it_followed(reader: Reader) -> None:
    """In the same transaction as the messages, known up to where its result is."""
    head = claude("user", "Keep this.", "u1") + call(SAVE, "a1")
    reader.write(head, result("u2"), claude("assistant", "Kept.", "a2"))
    reader.read()

    history = reader.history
    assert history.last_saved("claude-code", "s1") == 1
    assert history.last_saved("claude-code", "s1", cutoff=len(head)) == 0
    assert history.runs("claude-code", "s1") == 1
    assert history.runs("claude-code", "s1", cutoff=10) == 0


def test_a_call_and_its_result_may_come_in_two_ingestions(reader: Reader) -> None:
    """What is awaited is kept with the position."""
    head = claude("user", "Keep this.", "u1") + call(SAVE, "a1")
    reader.write(head, result("u2"))

    reader.read(cutoff=len(head))
    assert reader.history.last_saved("claude-code", "s1") == 0
    reader.read()

    assert reader.history.last_saved("claude-code", "s1") == 1


def test_a_save_keeps_its_place_when_the_transcript_is_cut_before_it(reader: Reader) -> None:
    """Read again from the beginning, it is the same call, however little stands before it now."""
    old = [claude("user", "Keep this.", "u1"), call(SAVE, "a1"), result("u2")]
    more = [claude("user", f"More {n}.", f"m{n}") for n in range(5)]
    reader.write(*old, *more)
    reader.read()

    reader.write(*old[1:], *more)
    reader.read()

    assert reader.history.last_saved("claude-code", "s1") == 1


def test_a_save_found_late_stands_where_it_was_made(reader: Reader) -> None:
    """A rewritten transcript may show it among messages that are known."""
    said = [claude("user", f"Word {n}.", f"m{n}") for n in range(6)]
    reader.write(*said)
    reader.read()

    reader.write(*said[:2], call(SAVE, "a1"), result("u2"), *said[2:])
    reader.read()

    assert reader.history.last_saved("claude-code", "s1") == 2


def test_nothing_is_noted_of_what_is_excluded(reader: Reader) -> None:
    """Neither a save nor a citation."""
    said = claude("assistant", f"Done. {TAG}", "a3")
    reader.write(claude("user", "Keep.", "u1"), call(SAVE, "a1"), result("u2"), said)

    found = reader.read(excluded="/home/u/demo")

    assert (found.cited, found.new_messages) == ((), 0)
    assert rows(reader) == []
    assert reader.history.citations("claude-code", "s1", 10) == []


def test_the_id_of_a_call_reaches_no_file(reader: Reader) -> None:
    """An agent may put anything there."""
    odd = "sk-" + "live-" + "Q7w9" * 8
    reader.write(
        claude("user", "Keep.", "u1"), call(SAVE, "a1", odd), result("u2", odd), call(SAVE, "a2")
    )
    reader.read()

    assert [len(row[0]) for row in rows(reader)] == [32]


def test_results_are_not_decoded_while_nothing_is_awaited() -> None:
    """Nor those of other calls while something is: they are told apart by the id."""
    parsed = parse(
        "claude-code",
        claude("user", "Hi", "u1"),
        result("u2", "toolu_0"),
        call(SAVE, "a1"),
        result("u3", "toolu_0", "x" * 100),
        result("u4", is_error=False),
    )

    assert [each.saved for each in parsed] == [(), (), (), (), ("toolu_1",)]
    assert parsed[1] is parsed[3]


def test_a_result_with_wrong_types_still_tells(reader: Reader) -> None:
    """The line is read the patient way."""
    broken = result("u2").replace(b'"uuid":"u2"', b'"uuid":7')

    reader.write(claude("user", "Keep.", "u1"), call(SAVE, "a1"), broken)
    reader.read()

    assert reader.history.last_saved("claude-code", "s1") == 1


def test_few_calls_are_awaited_at_once() -> None:
    """Those whose results never came are forgotten, and nothing large is looked into."""
    state = State()
    for number in range(100):
        note_call(state, f"c{number}", SAVE, b"{}")
    note_call(
        state, "long", "Bash", b'{"command":"memoryd memory save ' + b"x" * CALL_BYTES + b'"}'
    )
    note_call(state, "deep", "Bash", b'{"command":' * 5000 + b'"memoryd memory save"')

    assert state.saving == [f"c{number}" for number in range(100 - SAVING_LIMIT, 100)]


@pytest.mark.parametrize(
    "command",
    ["memoryd " * 100_000, "\n" * 500_000 + "memoryd", ("a=b " * 50 + "memoryd memory x;") * 2000],
    ids=["names", "lines", "variables"],
)
def test_a_hostile_command_is_looked_at_in_little_time(command: str) -> None:
    """A window around few places, whatever its length."""
    state = State()
    note_call(state, "c", "Bash", json.dumps({"command": command}).encode())

    assert state.saving == []


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("Process exited with code 0\nOutput:\nexited with code 1", False),
        ("Process exited with code 1\nOutput:\n", True),
        ('{"output":"no","metadata":{"exit_code":1,"duration_seconds":0.1}}', True),
        ('{"output":"ok","metadata":{"exit_code":0}}', False),
        ({"content": "no", "success": False}, True),
        ({"content": "ok", "success": True}, False),
        ({"content": [], "isError": True}, True),
        ("tool call error: refused", True),
        ("saved user/tabs", False),
        (None, False),
        ([1], False),
    ],
)
def test_codex_tells_a_failure_in_several_ways(output: object, failed: bool) -> None:
    """Where it tells none, the call counts."""
    assert tells_failure(json.dumps(output).encode()) is failed


def test_a_local_shell_call_of_codex_counts(rollouts: Reader) -> None:
    """Its command is an action."""
    action = {"type": "exec", "command": ["memoryd", "memory", "save", "x"]}
    item = {"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": action}
    output = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    rollouts.write(
        codex("user", "Keep."), rollout("response_item", item), rollout("response_item", output)
    )
    rollouts.read()

    assert rollouts.history.last_saved("codex", "s1") == 1


# -- citations -----------------------------------------------------------------------------------


def test_citations_wait_until_they_are_settled(reader: Reader) -> None:
    """Only the assistant's; what is stored of the message has no tag."""
    reader.write(
        claude("user", f"You wrote {TAG}", "u1"),
        claude("assistant", f"Done.\n{TAG}", "a1"),
        claude("assistant", TAG, "a2"),
    )
    found = reader.read()
    history = reader.history

    first, second = history.citations("claude-code", "s1", 10)
    assert (first.notes, first.at_ms) == (("user/tabs", "project/db"), 1_767_603_600_000)
    assert found.cited == first.notes
    assert reader.texts() == ["You wrote", "Done."]

    history.settle_citations("claude-code", "s1", first.number)
    assert history.citations("claude-code", "s1", 10) == [second]
    history.settle_citations("claude-code", "other", second.number)
    assert history.citations("claude-code", "s1", 10) == [second]


# -- the file ------------------------------------------------------------------------------------


def test_a_session_history_of_before_is_opened_and_goes_on(
    tmp_path: Path, clock: FakeClock
) -> None:
    """What it holds stays; the new tables are made."""
    path = tmp_path / "sessions.sqlite"
    with sqlite3.connect(path) as old:
        for statement in schema.MIGRATIONS[0]:
            old.execute(statement)
        old.execute(schema.BEGIN_SESSION, ("claude-code", "old"))
        old.execute("pragma user_version = 1")
    old.close()

    with History(path, clock) as history:
        assert [session.session for session in history.sessions(10)] == ["old"]
        assert history.citations("claude-code", "old", 10) == []
        reader = Reader(history, tmp_path)
        reader.write(claude("user", "Keep.", "u1"), call(SAVE, "a1"), result("u2"))
        reader.read()

        assert history.last_saved("claude-code", "s1") == 1
