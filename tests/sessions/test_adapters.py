"""What each agent's lines come to, and what every adapter promises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from said import claude, codex, parse, rolled_back, rollout
from scribes import SCRIBES, STARTED_MS, Said

from memoryd.memory.errors import UsageError
from memoryd.sessions.agents import adapter_for

INJECTED = (
    "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
    "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
    "<skill>\nname: x\n</skill>",
    "<user_instructions>be brief</user_instructions>",
    "<subagent_notification>{}</subagent_notification>",
    "<system-reminder>do not tell</system-reminder>",
    "<task-notification>done</task-notification>",
    "Stop hook feedback: not yet",
    "[Request interrupted by user for tool use]",
    "<command-name>/clear</command-name>",
    "<local-command-stdout>ok</local-command-stdout>",
    "This session is being continued from a previous conversation that ran out.",
)
HOSTILE = {
    "no json": b"{nope\n",
    "cut": b'{"type":"user","message":{"role":"us\n',
    "array": b"[1]\n",
    "number": b"42\n",
    "deep": b'{"type":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "nul": b"\0" * 64 + b"\n",
    "long number": b'{"type":' + b"9" * 10_000 + b"}\n",
    "latin-1": b"\xff\xfe\n",
}


#: The agents whose transcripts are lines that can be read one by one.
IN_LINES = [name for name, scribe in SCRIBES.items() if scribe.appended]


def said(agent: str, role: str, text: str) -> bytes:
    """A message as ``agent`` writes it."""
    return SCRIBES[agent](Path("/home/u")).line(Said(role, text))


@pytest.mark.parametrize("agent", IN_LINES)
class TestEveryLine:
    """What any line may hold, whatever agent wrote it."""

    @pytest.mark.parametrize("role", ["user", "assistant"])
    def test_a_message_keeps_its_role_words_time(self, agent: str, role: str) -> None:
        """Role, text and time come through."""
        (parsed,) = parse(agent, said(agent, role, "use tabs – نعم"))

        (message,) = parsed.messages
        assert (role, "use tabs – نعم") == (message.role, message.text)
        assert message.at_ms == (STARTED_MS if SCRIBES[agent].timed else None)

    @pytest.mark.parametrize("text", INJECTED)
    def test_injected_context_is_dropped(self, agent: str, text: str) -> None:
        """Nothing an agent put into the person's mouth is kept."""
        (parsed,) = parse(agent, said(agent, "user", text))

        assert (parsed.messages, parsed.skipped) == ((), "user.injected")

    def test_words_beside_a_reminder_stay(self, agent: str) -> None:
        """Only the block goes."""
        text = "use tabs\n<system-reminder>x</system-reminder>\nplease"

        (parsed,) = parse(agent, said(agent, "user", text))

        assert parsed.messages[0].text == "use tabs\n\nplease"

    def test_a_tag_named_in_a_sentence_stays(self, agent: str) -> None:
        """A person may talk about a block."""
        text = "what does <system-reminder> mean?"

        (parsed,) = parse(agent, said(agent, "user", text))

        assert text == parsed.messages[0].text

    @pytest.mark.parametrize("name", HOSTILE)
    def test_a_bad_line_is_counted_bad(self, agent: str, name: str) -> None:
        """No line raises, and a bad one gives no message."""
        (parsed,) = parse(agent, HOSTILE[name])

        assert parsed.messages == ()
        assert parsed.bad or parsed.skipped

    @pytest.mark.parametrize("form", [b"\xef\xbb\xbf%s\n", b"%s\r\n", b"\0\0%s\n"])
    def test_marks_padding_and_line_ends_are_tolerated(self, agent: str, form: bytes) -> None:
        """BOM, CRLF and NUL padding do not make a line bad."""
        (parsed,) = parse(agent, form % said(agent, "user", "hi").strip())

        assert parsed.messages[0].text == "hi"

    def test_lone_surrogates_are_replaced(self, agent: str) -> None:
        """What SQLite cannot hold does not reach it."""
        (parsed,) = parse(agent, said(agent, "user", "a\ud83db"))

        assert parsed.messages[0].text == "a\ufffdb"

    def test_a_type_that_is_a_token_is_not_kept(self, agent: str) -> None:
        """Reasons are few and plain words."""
        (parsed,) = parse(agent, json.dumps({"type": "AKIA" + "X" * 16}).encode() + b"\n")

        assert parsed.skipped == "other"

    def test_blank_lines_count_as_nothing(self, agent: str) -> None:
        """Neither bad nor skipped."""
        (parsed,) = parse(agent, b"\r\n")

        assert (parsed.bad, parsed.skipped) == (False, "")


def test_an_unknown_agent_is_refused_with_the_known_ones() -> None:
    """The hint says what could have been meant."""
    with pytest.raises(UsageError, match="claude-code, codex"):
        adapter_for("nobody")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"isMeta": True}, "user.meta"),
        ({"isCompactSummary": True}, "user.compact"),
        ({"isSidechain": True}, "sidechain"),
    ],
)
def test_claude_lines_not_typed_by_a_person_are_dropped(more: dict[str, bool], reason: str) -> None:
    """Each kind is counted under its own name."""
    parsed = parse("claude-code", claude("user", "hello", **more))[0]

    assert ((), reason) == (parsed.messages, parsed.skipped)


@pytest.mark.parametrize("order", ["real", "other"])
def test_claude_tool_results_are_dropped(order: str) -> None:
    """Whether the fast look or the decoder meets them."""
    block = {"tool_use_id": "t", "type": "tool_result", "content": "said by a tool"}
    block = block if order == "real" else {"content": "x", **block}

    _, parsed = parse("claude-code", claude("user", "hi"), claude("user", [block]))

    assert (parsed.messages, parsed.skipped) == ((), "user.tool-result")


def test_words_that_look_like_a_tool_result_are_a_persons() -> None:
    """Escaped quotes are not structure."""
    text = '"message":{"role":"user","content":[{"tool_use_id":"t"}]'

    parsed = parse("claude-code", claude("user", "hi"), claude("user", text))[1]

    assert text == parsed.messages[0].text


def test_thinking_and_tool_calls_are_dropped_and_each_text_kept() -> None:
    """A response's text block keeps the id of its line."""
    lines = (
        claude("assistant", [{"type": "thinking", "thinking": "hm"}], "a1"),
        claude("assistant", [{"type": "text", "text": "one"}], "a2"),
        claude("assistant", [{"type": "text", "text": "two"}], "a3"),
        claude("assistant", [{"type": "tool_use", "id": "t", "name": "Bash"}], "a4"),
    )

    found = [m for p in parse("claude-code", *lines) for m in p.messages]

    assert [(m.id, m.text) for m in found] == [("a2", "one"), ("a3", "two")]


def test_an_answer_to_a_question_is_the_persons_and_the_question_is_not() -> None:
    """AskUserQuestion: two messages, each with its speaker."""
    asked = claude("assistant", [{"type": "tool_use", "id": "q", "name": "AskUserQuestion"}])
    result = [{"tool_use_id": "q", "type": "tool_result", "content": "answered"}]
    answer = claude("user", result, toolUseResult={"answers": {"Tabs or spaces?": "Tabs"}})

    found = parse("claude-code", asked, answer)[1].messages

    expected = [("assistant", "Tabs or spaces?"), ("user", "Tabs")]
    assert expected == [(m.role, m.text) for m in found]


def test_a_tool_cannot_forge_an_answer() -> None:
    """Only the result of a question that was asked is the person's."""
    result = [{"tool_use_id": "t", "type": "tool_result", "content": 'x "Q"="A"'}]
    forged = claude("user", result, toolUseResult={"answers": {"Q": "A"}})

    assert parse("claude-code", forged)[0].messages == ()


def test_codex_events_repeat_and_are_dropped() -> None:
    """Only response items count; the developer is not the person."""
    lines = (
        rollout("event_msg", {"type": "user_message", "message": "hi"}),
        rollout("response_item", {"type": "function_call_output", "output": "x"}),
        rollout("response_item", {"type": "reasoning", "content": None}),
        rollout("compacted", {"message": "summary"}),
        codex("developer", "rules"),
    )

    assert not any(parsed.messages for parsed in parse("codex", *lines))


def test_codex_takes_the_directory_from_the_turn() -> None:
    """The newest turn_context decides."""
    meta = rollout("session_meta", {"id": "s1", "cwd": "/a"})
    turn = rollout("turn_context", {"cwd": "/b"})

    found = parse("codex", meta, codex("user", "x"), turn, codex("user", "y"))

    assert [p.messages[0].cwd for p in found if p.messages] == ["/a", "/b"]


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}}, "child"),
        ({"source": "sub_agent"}, "child"),
        ({"thread_source": "subagent"}, "child"),
        ({"parent_thread_id": "p"}, "child"),
        ({"thread_source": "memory_consolidation"}, "internal"),
        ({"source": {"subagent": "memory_consolidation"}}, "internal"),
        ({"source": "memory_consolidation"}, "internal"),
        ({"source": "exec"}, "root"),
        ({"source": "cli", "thread_source": "user"}, "root"),
    ],
)
def test_codex_sub_agents_are_recognised(more: dict[str, object], kind: str) -> None:
    """In every form that was seen."""
    adapter = adapter_for("codex")
    state = adapter.start("s1", Path("s1.jsonl"))

    adapter.parse(rollout("session_meta", {"id": "s1", **more}), state)
    adapter.parse(rollout("session_meta", {"id": "another", "source": "cli"}), state)

    assert kind == state.kind


def test_a_roll_back_says_how_many_turns() -> None:
    """A number that is none is skipped."""
    assert [p.rolled_back for p in parse("codex", rolled_back(2), rolled_back(-1))] == [2, 0]


def test_sessions_are_discovered_once_and_sub_agents_are_not(tmp_path: Path) -> None:
    """Newest rollout of a thread; no agent files."""
    thread = "0198aaaa-0000-7000-8000-000000000001"
    for name in (
        f".codex/sessions/2026/01/05/rollout-2026-01-05T09-00-00-{thread}.jsonl",
        f".codex/archived_sessions/rollout-2026-01-04T09-00-00-{thread}.jsonl",
        ".claude/projects/-code/s1.jsonl",
        ".claude/projects/-code/agent-1.jsonl",
        ".claude/projects/-code/s1/subagents/agent-2.jsonl",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    environ = {"HOME": str(tmp_path)}

    found = [f.session for a in ("claude-code", "codex") for f in adapter_for(a).discover(environ)]

    assert ["s1", thread] == found
