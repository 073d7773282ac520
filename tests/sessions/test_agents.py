"""What is particular to one agent: the forms its transcripts take, and what in them nobody said."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from scribes import (
    SCRIBES,
    CodexScribe,
    CodexZstdScribe,
    FreeCodeScribe,
    GeminiScribe,
    HermesScribe,
    Said,
    line,
    talk,
)
from test_conformance import Bench, bench_of, words

from memoryd.memory.errors import TranscriptError
from memoryd.sessions import compressed, documents
from memoryd.sessions.adapter import Parsed
from memoryd.sessions.agents import adapter_for
from memoryd.sessions.cursor import directory_named
from memoryd.sessions.history import History

TALK = talk(("user", "use tabs"), ("assistant", "All right."), ("user", "thanks"))


def parsed(agent: str, *items: dict[str, Any]) -> list[Parsed]:
    """What each item comes to, in one session."""
    adapter = adapter_for(agent)
    state = adapter.start("s1", Path("/nowhere/x/y/s1.jsonl")) if agent in IN_FILES else None
    assert state is not None
    return [adapter.parse(line(item), state) for item in items]


#: Agents whose sessions begin without a database being asked.
IN_FILES = {"copilot-cli", "cursor", "freecode", "gemini-cli", "generic", "openclaw", "qwen-code"}


def texts(found: list[Parsed]) -> list[str]:
    """The words that were kept."""
    return [message.text for each in found for message in each.messages]


def reasons(found: list[Parsed]) -> list[str]:
    """Why others were not."""
    return [each.skipped for each in found if each.skipped]


def execute(path: Path, *statements: str) -> None:
    """Change a database as its agent would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


# -- Codex ----------------------------------------------------------------------------------------


def test_a_rollout_is_read_on_whichever_way_it_is_kept(tmp_path: Path, history: History) -> None:
    """Compressed by its agent, and decompressed to go on: nothing is read twice."""
    bench = bench_of("codex", tmp_path, history)
    plain = bench.scribe.write(TALK[:1])
    position = bench.read(plain).position
    packed = plain.with_name(f"{plain.name}.zst")
    packed.write_bytes(zstandard.compress(plain.read_bytes()))

    assert bench.adapter.end(packed, bench.scribe.session) == position
    assert (bench.read(packed).position, bench.kept()) == (position, words(TALK[:1]))
    bench.scribe.write(TALK)
    progress = history.progress("codex", bench.scribe.session)
    assert progress is not None
    assert (bench.read(plain).new_messages, progress.reading) == (2, 1)


def test_a_plain_rollout_comes_before_its_compressed_one(tmp_path: Path) -> None:
    """Both are there for a moment."""
    plain, packed = CodexScribe(tmp_path), CodexZstdScribe(tmp_path)
    path = plain.write(TALK)
    beside = path.with_name(f"{path.name}.zst")
    beside.write_bytes(packed.write(TALK).read_bytes())

    (found,) = adapter_for("codex").discover(plain.environ)

    assert found.path == path


def test_what_swells_beyond_measure_is_not_read_on(
    tmp_path: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file may say that it is terabytes."""
    monkeypatch.setattr(compressed, "DECOMPRESSED_LIMIT", 1000)
    bench = bench_of("codex zstd", tmp_path, history)
    path = bench.scribe.write([*TALK, *talk(*[("user", "x" * 100)] * 50)])

    assert bench.read(path).position <= 1000


# -- Gemini CLI -----------------------------------------------------------------------------------


def test_the_last_version_of_a_message_counts(tmp_path: Path, history: History) -> None:
    """Gemini appends a message again when it changed."""
    bench = bench_of("gemini-cli", tmp_path, history)
    grown = Said("assistant", "All right: tabs everywhere.", 1)
    path = bench.scribe.write([*TALK[:2], grown, TALK[2]])

    bench.read(path)

    assert bench.kept() == words([TALK[0], grown, TALK[2]])


def test_turns_that_gemini_rewound_are_taken_back(tmp_path: Path, history: History) -> None:
    """Also when they were read before."""
    bench = bench_of("gemini-cli", tmp_path, history)
    path = bench.scribe.write(TALK)
    bench.read(path)
    with path.open("ab") as file:
        file.write(line({"$rewindTo": TALK[2].id}) + bench.scribe.line(Said("user", "no", 9)))

    assert bench.read(path).new_messages == 1
    assert bench.kept() == [*words(TALK[:2]), ("user", "no")]


def test_a_rewind_to_nothing_known_is_counted() -> None:
    """And takes nothing back."""
    (found,) = parsed("gemini-cli", {"$rewindTo": "m9"})

    assert (found.rolled_back, found.skipped) == (0, "rewind")


def test_thoughts_notices_and_metadata_are_not_said() -> None:
    """Nor what Gemini puts before a turn."""
    found = parsed(
        "gemini-cli",
        {"$set": {"summary": "x"}},
        {"id": "1", "type": "info", "content": "Request cancelled."},
        {"id": "2", "type": "gemini", "content": "", "thoughts": [{"description": "hm"}]},
        {"id": "3", "type": "gemini", "content": [{"text": "hm", "thought": True}, {"text": "ok"}]},
    )

    assert texts(found) == ["ok"]
    assert reasons(found) == ["metadata", "info", "assistant.no-text"]


def test_a_session_that_was_moved_to_lines_is_one(tmp_path: Path, history: History) -> None:
    """The older document stays beside it."""
    bench = bench_of("gemini-cli document", tmp_path, history)
    document = bench.scribe.write(TALK[:2])
    bench.read(document)
    lines = GeminiScribe(tmp_path).write(TALK)

    (found,) = bench.adapter.discover(bench.scribe.environ)
    assert found.path == lines
    assert bench.read(lines).new_messages == 1
    assert bench.kept() == words(TALK)


def test_a_document_too_large_is_an_error(
    tmp_path: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never held in memory."""
    monkeypatch.setattr(documents, "DOCUMENT_LIMIT_BYTES", 100)
    bench = bench_of("gemini-cli document", tmp_path, history)
    path = bench.scribe.write(TALK)

    with pytest.raises(TranscriptError, match="larger than 100 bytes"):
        bench.read(path)


# -- Qwen Code, Copilot CLI, OpenClaw, Cursor -----------------------------------------------------


def test_what_qwen_wrote_itself_is_not_said() -> None:
    """But what was typed in the middle of a turn is."""

    def record(**more: Any) -> dict[str, Any]:
        return {"type": "user", "message": {"parts": [{"text": str(more)}]}, **more}

    found = parsed(
        "qwen-code",
        record(subtype="cron"),
        record(provenance="goal_runtime"),
        record(type="system", subtype="chat_compression"),
        record(subtype="mid_turn_user_message", provenance="real_user"),
    )

    assert reasons(found) == ["user.cron", "user.injected", "system.chat_compression"]
    assert len(texts(found)) == 1


def test_what_a_sub_agent_of_copilot_says_is_left_out() -> None:
    """It speaks inside its parent's events; so do skills, in the person's name."""
    found = parsed(
        "copilot-cli",
        {"type": "assistant.message", "data": {"content": "x", "parentToolCallId": "t"}},
        {"type": "user.message", "data": {"content": "x", "source": "skill-pdf"}},
        {"type": "user.message", "data": {"content": "x"}, "ephemeral": True},
        {"type": "assistant.message", "data": {"content": "said"}},
    )

    assert texts(found) == ["said"]
    assert reasons(found) == ["sidechain", "user.injected", "user.message"]


def test_copilots_directory_stands_in_its_workspace_file(tmp_path: Path) -> None:
    """Where no event names one."""
    (tmp_path / "workspace.yaml").write_text("id: x\ncwd: /code/demo\nbranch: main\n")

    state = adapter_for("copilot-cli").start("s1", tmp_path / "events.jsonl")

    assert state.cwd == "/code/demo"


def test_scheduled_runs_of_openclaw_are_no_sessions(tmp_path: Path) -> None:
    """A reset archive is, and a deleted one is not."""
    scribe = SCRIBES["openclaw"](tmp_path)
    path = scribe.write(TALK, "cron-run")
    for name in ("put-away.jsonl.reset.2026-01-05", "gone.jsonl.deleted.2026-01-05"):
        (path.parent / name).write_bytes(path.read_bytes())
    entries = {"agent:main:cron:nightly": {"sessionId": "cron-run"}}
    (path.parent / "sessions.json").write_text(json.dumps(entries))

    found = [each.session for each in adapter_for("openclaw").discover(scribe.environ)]

    assert found == ["put-away"]
    assert adapter_for("openclaw").start("cron-run", path).kind == "internal"


def test_a_fork_of_openclaw_keeps_only_its_own(tmp_path: Path, history: History) -> None:
    """It repeats the session it came from, with ids that are no UUIDs."""
    bench = bench_of("openclaw", tmp_path, history)
    first, second, _ = bench.scribe.sessions
    origin = bench.scribe.write(TALK[:2], first)
    bench.read(origin, first)
    fork = bench.scribe.write(TALK, second)
    head = {"type": "session", "id": second, "parentSession": str(origin)}
    fork.write_bytes(line(head) + fork.read_bytes().partition(b"\n")[2])

    assert bench.read(fork, second).skipped["copied"] == 2
    assert bench.kept(second) == words(TALK[2:])


def test_cursors_directory_is_the_one_that_exists(tmp_path: Path) -> None:
    """A dash may be a separator, a dot or a dash; two that fit are none."""
    (tmp_path / "my-app").mkdir()
    name = "-".join([*tmp_path.parts[1:], "my-app"]).replace("_", "-").replace(".", "-")

    assert directory_named(name) == str(tmp_path / "my-app")

    (tmp_path / "my" / "app").mkdir(parents=True)
    assert directory_named(name) == ""
    assert directory_named("no-such-place") == ""


def test_only_the_query_of_cursors_message_was_typed() -> None:
    """Files and rules stand around it."""
    text = "<attached_files>x</attached_files>\n<user_query>\nuse tabs\n</user_query>"
    message = {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}

    assert texts(parsed("cursor", message, {"role": "turn_ended"})) == ["use tabs"]


# -- FreeCode -------------------------------------------------------------------------------------


def freecode(tmp_path: Path, history: History) -> Bench:
    """A bench of FreeCode."""
    return bench_of("freecode", tmp_path, history)


def test_only_the_branch_in_use_was_the_conversation(tmp_path: Path, history: History) -> None:
    """FreeCode's messages are a tree; the leaf stands in its metadata."""
    bench = freecode(tmp_path, history)
    path = bench.scribe.write(TALK)
    branch = {"id": "b1", "role": "user", "parts": [{"type": "text", "content": "spaces"}]}
    with path.open("ab") as file:
        file.write(line({**branch, "parentId": TALK[1].id}))

    bench.read(path)

    assert bench.kept() == [*words(TALK[:2]), ("user", "spaces")]

    (path.parent / "meta.json").write_text(json.dumps({"leafId": TALK[2].id}))
    assert read_anew(path) == words(TALK)


def read_anew(path: Path) -> list[tuple[str, str]]:
    """What a new reader makes of the session."""
    adapter = adapter_for("freecode")
    state = adapter.start("s1", path)
    with adapter.open(path, "s1") as opened:
        found = [adapter.parse(data or b"", state) for _, data in opened.read(0, None)]
    return [(message.role, message.text) for each in found for message in each.messages]


def test_turns_that_freecode_made_up_are_not_the_persons() -> None:
    """Steering is; a sub-agent is known by how it is told to begin."""

    def turn(text: str, **more: str) -> dict[str, Any]:
        return {"role": "user", "parts": [{"type": "text", "content": text}], **more}

    found = parsed(
        "freecode",
        turn("go on", synthetic="auto_poke"),
        turn("use tabs", synthetic="steer"),
        {"role": "assistant", "parts": [{"type": "tool", "content": "x"}]},
    )
    assert (texts(found), reasons(found)) == (
        ["use tabs"],
        ["user.synthetic", "assistant.no-text"],
    )

    adapter = adapter_for("freecode")
    state = adapter.start("s1", Path("/nowhere/s1/messages.jsonl"))
    adapter.parse(line(turn("You are a reviewer subagent. Look at it.")), state)
    assert state.kind == "child"


def test_a_session_deleted_in_freecode_is_not_discovered(tmp_path: Path) -> None:
    """Nor read, then."""
    scribe = FreeCodeScribe(tmp_path)
    path = scribe.write(TALK)
    (path.parent / "meta.json").write_text('{"status": "deleted"}')

    assert list(adapter_for("freecode").discover(scribe.environ)) == []


def test_the_rollout_log_tells_that_freecode_is_still_at_work(
    tmp_path: Path, history: History
) -> None:
    """A tool may run for an hour without a message."""
    bench = freecode(tmp_path, history)
    session = bench.scribe.session
    path = bench.scribe.write(TALK)
    before = bench.adapter.look(path, session)
    log = tmp_path / ".freecode/rollout/sessions" / session / "events.jsonl"
    log.parent.mkdir(parents=True)
    log.touch()
    os.utime(log, (2_000_000_000, 2_000_000_000))

    after = bench.adapter.look(path, session)

    assert before is not None
    assert after is not None
    assert (after.active_ms, after.at_most) == (2_000_000_000_000, before.at_most)


# -- Hermes, EstaCoda, OpenCode -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["hermes", "estacoda"])
def test_a_session_goes_on_in_a_child_once_it_is_compressed(
    tmp_path: Path, history: History, form: str
) -> None:
    """Which is no sub-agent, and keeps only what its parent does not have."""
    bench = bench_of(form, tmp_path, history)
    first, second, _ = bench.scribe.sessions
    path = bench.scribe.write(TALK[:2], first)
    bench.scribe.write(TALK, second, parent=first)
    metadata = json.dumps({"compactedFromSessionId": first})
    execute(path, f"UPDATE sessions SET end_reason = 'compression' WHERE id = '{first}'")
    if form == "estacoda":
        execute(path, f"UPDATE sessions SET metadata_json = '{metadata}' WHERE id = '{second}'")

    assert sorted(bench.discovered()) == [first, second]
    bench.read(path, first)
    assert bench.read(path, second).skipped["copied"] == 2
    assert bench.kept(second) == words(TALK[2:])


def test_hermes_reads_parts_and_leaves_scheduled_runs(tmp_path: Path, history: History) -> None:
    """A message with an image is JSON behind a mark."""
    bench = bench_of("hermes", tmp_path, history)
    parts = "\0json:" + json.dumps([{"type": "image_url"}, {"type": "text", "text": "use tabs"}])
    path = bench.scribe.write([Said("user", parts)])

    bench.read(path)
    assert bench.kept() == [("user", "use tabs")]

    execute(path, "UPDATE sessions SET source = 'cron'")
    assert bench.discovered() == []


def test_an_older_hermes_without_directories_is_read(tmp_path: Path, history: History) -> None:
    """Columns come and go."""
    bench = bench_of("hermes", tmp_path, history)
    path = bench.scribe.write(TALK)
    execute(path, "ALTER TABLE sessions DROP COLUMN cwd", "ALTER TABLE messages DROP tool_calls")

    bench.read(path)

    assert bench.kept() == words(TALK)


def test_a_message_that_hermes_rewrote_is_not_doubled(tmp_path: Path, history: History) -> None:
    """It has a new row, and the time and words of the old one."""
    bench = bench_of("hermes", tmp_path, history)
    scribe = bench.scribe
    assert isinstance(scribe, HermesScribe)
    path = scribe.write(TALK)
    bench.read(path)
    execute(path, "DELETE FROM messages")
    scribe.write(TALK)

    assert bench.read(path).new_messages == 0


def test_an_answer_that_opencode_is_writing_waits(tmp_path: Path, history: History) -> None:
    """Until it is done, failed, or something else was said."""
    bench = bench_of("opencode", tmp_path, history)
    path = bench.scribe.write(TALK[:2])
    execute(path, "UPDATE message SET data = json_remove(data, '$.time.completed')")

    bench.read(path)
    assert bench.kept() == words(TALK[:1])

    execute(path, "UPDATE message SET data = json_set(data, '$.error', json('{}'))")
    bench.read(path)
    assert bench.kept() == words(TALK[:2])


def test_parts_that_opencode_made_up_are_not_the_persons(tmp_path: Path, history: History) -> None:
    """Synthetic and ignored ones; a summary is nobody's answer. The directory may change."""
    adapter = adapter_for("opencode")
    bench = bench_of("opencode", tmp_path, history)
    state = adapter.start(bench.scribe.session, bench.scribe.write(TALK))
    parts = [
        {"type": "text", "text": "made up", "synthetic": True},
        {"type": "text", "text": "hidden", "ignored": True},
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "said"},
    ]
    said = {"id": "m", "info": {"role": "assistant", "path": {"cwd": "/b"}}, "parts": parts}
    summary = {**said, "info": {"role": "assistant", "summary": True}}

    found = [adapter.parse(line(item), state) for item in (said, summary)]

    assert [(m.text, m.cwd) for each in found for m in each.messages] == [("said", "/b")]
    assert reasons(found) == ["assistant.compact"]


# -- all ------------------------------------------------------------------------------------------

SAVES = {"name": "memory", "args": {"action": "save"}}
CALLS: dict[str, list[dict[str, Any]]] = {
    "copilot-cli": [
        {
            "type": "assistant.message",
            "data": {
                "toolRequests": [
                    {"toolCallId": "c", "name": "memory", "arguments": {"action": "save"}}
                ]
            },
        },
        {"type": "tool.execution_complete", "data": {"toolCallId": "c", "success": True}},
    ],
    "gemini-cli": [
        {"id": "1", "type": "gemini", "toolCalls": [{"id": "c", **SAVES, "status": "success"}]}
    ],
    "generic": [
        {"type": "tool", "id": "c", "name": "memory", "input": {"action": "save"}},
        {"type": "tool_result", "id": "c", "ok": True},
    ],
    "openclaw": [
        {
            "type": "message",
            "message": {
                "role": "assistant",
                "content": [
                    {
                        "type": "toolCall",
                        "id": "c",
                        "name": "memory",
                        "arguments": {"action": "save"},
                    }
                ],
            },
        },
        {"type": "message", "message": {"role": "toolResult", "toolCallId": "c"}},
    ],
    "qwen-code": [
        {"type": "assistant", "message": {"parts": [{"functionCall": {"id": "c", **SAVES}}]}},
        {"type": "tool_result", "message": {"parts": [{"functionResponse": {"id": "c"}}]}},
    ],
}


@pytest.mark.parametrize("agent", CALLS)
def test_memory_that_the_agent_saved_itself_is_noticed(agent: str) -> None:
    """Once its call came to a good end."""
    found = parsed(agent, *CALLS[agent])

    assert [call for each in found for call in each.saved] == ["c"]


def test_memory_saved_is_noticed_in_databases(tmp_path: Path, history: History) -> None:
    """In Hermes' tool messages and OpenCode's tool parts."""
    saves = {"action": "save"}
    hermes = bench_of("hermes", tmp_path, history)
    state = hermes.adapter.start(hermes.scribe.session, hermes.scribe.write(TALK))
    function = {"name": "memory", "arguments": json.dumps(saves)}
    items: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": json.dumps([{"id": "c", "function": function}])},
        {"role": "tool", "tool_call_id": "c", "content": "{}"},
    ]
    found = [hermes.adapter.parse(line(item), state) for item in items]
    tool = {"status": "completed", "input": saves}
    part = {"type": "tool", "callID": "d", "tool": "memory", "state": tool}
    item = {"id": "m", "info": {"role": "assistant"}, "parts": [part]}
    found.append(adapter_for("opencode").parse(line(item), state))

    assert [call for each in found for call in each.saved] == ["c", "d"]


@pytest.mark.parametrize(
    ("agent", "items"),
    [
        ("qwen-code", [{"type": "user", "cwd": cwd, "message": {"parts": [{"text": "x"}]}}
                       for cwd in ("/a", "/b")]),
        ("generic", [{"type": "message", "role": "user", "text": "x", "cwd": cwd}
                     for cwd in ("/a", "/b")]),
        ("copilot-cli", [item for cwd in ("/a", "/b") for item in (
            {"type": "session.resume", "data": {"context": {"cwd": cwd}}},
            {"type": "user.message", "data": {"content": "x"}})]),
    ],
)  # fmt: skip
def test_the_directory_is_the_one_of_the_moment(agent: str, items: list[dict[str, Any]]) -> None:
    """A session may change it."""
    found = parsed(agent, *items)

    assert [message.cwd for each in found for message in each.messages] == ["/a", "/b"]


def test_the_generic_format_takes_turns_back() -> None:
    """As many as it says, if it says a number of turns."""
    found = parsed("generic", *({"type": "rollback", "turns": turns} for turns in (2, -1, "x")))

    assert [each.rolled_back for each in found] == [2, 0, 0]
