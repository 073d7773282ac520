"""How the end of a tool's run is read from the few small fields of a line, whatever it put out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from said import AT, claude, codex, parse, rollout

from memoryd.memory.testing import FakeClock
from memoryd.sessions import claude_code
from memoryd.sessions.adapter import CALLS_LIMIT, ToolRun, is_known
from memoryd.sessions.agents import adapter_for
from memoryd.sessions.history import History
from memoryd.sessions.ingest import ingest

HELLO = claude("user", "hello", "u0")


def call(tool: str, known_as: str = "t1") -> bytes:
    """Claude Code's assistant calls a tool."""
    return claude("assistant", [{"type": "tool_use", "id": known_as, "name": tool, "input": {}}])


def result(*fields: tuple[str, Any], **more: Any) -> bytes:
    """A line with one result, its fields in this order."""
    return claude("user", [dict(fields)], "u9", **more)


def runs(agent: str, *lines: bytes) -> list[ToolRun]:
    """The tools that ended on the lines, in order."""
    return [run for parsed in parse(agent, *lines) for run in parsed.tools]


TYPE, CALL = ("type", "tool_result"), ("tool_use_id", "t1")
FAILED, FINE = ("is_error", True), ("is_error", False)
#: What looks like the fields of a line, in what a tool put out.
LIKE_FIELDS = '"}]},"is_error":true}]},"tool_use_id":"t2"'


@pytest.mark.parametrize("more", [{}, {"toolUseResult": {"stdout": "x", "is_error": True}}])
@pytest.mark.parametrize(
    "output",
    ["ok", "", "}" * 40, LIKE_FIELDS, "\\", [{"type": "text", "text": LIKE_FIELDS}], "x" * 9000],
    ids=["short", "empty", "braces", "like fields", "a backslash", "parts", "long"],
)
@pytest.mark.parametrize(
    ("end", "order"),
    [
        ("ok", (CALL, TYPE, "output")),
        ("ok", (CALL, TYPE, "output", FINE)),
        ("failed", (CALL, TYPE, "output", FAILED)),
        ("ok", (TYPE, "output", CALL)),
        ("failed", (TYPE, "output", FAILED, CALL)),
        ("failed", (TYPE, CALL, "output", FAILED)),
        ("failed", (TYPE, FAILED, CALL, "output")),
        ("failed", (CALL, TYPE, FAILED, "output")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_result_of_claude_code_is_read_in_any_order(
    end: str, order: tuple[Any, ...], output: Any, more: dict[str, Any]
) -> None:
    """Whether the line is decoded or not; what the tool put out never counts."""
    fields = [("content", output) if each == "output" else each for each in order]

    assert runs("claude-code", HELLO, call("Bash"), result(*fields, **more)) == [("Bash", end)]


def test_several_results_on_one_line_count_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions wrote them together."""
    blocks = [
        {"tool_use_id": "t1", "type": "tool_result", "content": "x"},
        {"tool_use_id": "t2", "type": "tool_result", "content": "y", "is_error": True},
    ]
    lines = (HELLO, call("Bash"), call("Read", "t2"), claude("user", blocks))

    assert runs("claude-code", *lines) == [("Bash", "ok"), ("Read", "failed")]


def test_most_results_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is what makes reading cheap."""
    adapter = adapter_for("claude-code")
    state = adapter.start("s1", Path("s1.jsonl"))
    adapter.parse(HELLO, state)
    adapter.parse(call("Bash"), state)
    monkeypatch.setattr(claude_code, "_decoder", None)

    parsed = adapter.parse(result(CALL, TYPE, ("content", "3 passed"), FINE), state)

    assert (parsed.tools, parsed.skipped) == ((("Bash", "ok"),), "user.tool-result")


def test_a_side_chains_results_are_not_the_sessions() -> None:
    """A sub-agent's tools, in an older transcript."""
    line = result(CALL, TYPE, ("content", "x"), isSidechain=True)

    assert runs("claude-code", HELLO, line) == []


def test_a_result_of_a_call_that_was_not_seen_counts_as_none() -> None:
    """Also where too many calls wait for their results."""
    calls = [call("Bash", f"c{n}") for n in range(CALLS_LIMIT + 1)]
    first, last = (("tool_use_id", f"c{n}") for n in (0, CALLS_LIMIT))
    ends = [result(known, TYPE, ("content", "x")) for known in (first, last)]

    assert runs("claude-code", HELLO, *calls, *ends) == [("Bash", "ok")]


def codex_run(output: Any, kind: str = "function_call") -> list[ToolRun]:
    """What one call of Codex and its output come to."""
    called = {"type": kind, "call_id": "c1", "name": "shell", "arguments": "{}"}
    ended = {"type": f"{kind}_output", "call_id": "c1", "output": output}
    return runs(
        "codex",
        codex("user", "hello"),
        rollout("response_item", called),
        rollout("response_item", ended),
    )


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
@pytest.mark.parametrize(
    ("output", "end"),
    [
        ("Wall time: 1 s\nProcess exited with code 0\nOutput:\nexit code: 1", "ok"),
        ("Process exited with code 2\nOutput:\n", "failed"),
        (json.dumps({"output": "x" * 5000, "metadata": {"exit_code": 0}}), "ok"),
        (json.dumps({"output": "x" * 5000, "metadata": {"exit_code": 1}}), "failed"),
        ("tool call error: no such tool", "failed"),
        ("Plan updated", "unknown"),
        ("x" * 300 + "Process exited with code 1" + "x" * 200, "unknown"),
        ([{"type": "input_text", "text": "a picture"}], "unknown"),
        ("", "unknown"),
    ],
)
def test_how_a_run_of_codex_ended(output: Any, end: str, kind: str) -> None:
    """As Codex itself says it at the beginning of an output, or behind it."""
    assert codex_run(output, kind) == [("shell", end)]


def test_a_message_that_gemini_writes_again_counts_its_tools_once(
    tmp_path: Path, history: History, clock: FakeClock
) -> None:
    """Read before it was finished, and after."""
    path = tmp_path / "session-1.jsonl"
    head = {"sessionId": "s1", "kind": "main"}
    first = {"id": "t1", "name": "shell", "args": {}, "status": "executing"}
    second = {"id": "t2", "name": "read", "args": {}, "status": "cancelled"}
    versions = [[first], [{**first, "status": "success"}], [{**first, "status": "success"}, second]]
    lines = [head] + [
        {"id": "m1", "timestamp": AT, "type": "gemini", "content": "", "toolCalls": calls}
        for calls in versions
    ]
    for count in range(1, len(lines) + 1):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines[:count]))
        ingest(
            history,
            adapter_for("gemini-cli"),
            "gemini-cli",
            "s1",
            path,
            None,
            resolver=lambda cwd: cwd,
            exclude=lambda cwd: False,
        )

    stored = history.session("gemini-cli", "s1")
    assert stored is not None
    assert stored.tools == {"shell": {"ok": 1}, "read": {"failed": 1}}


@pytest.mark.parametrize("agent", ["claude-code", "codex", "copilot-cli", "qwen-code", "openclaw"])
def test_what_an_agent_is_known_to_write_is_no_unknown_type(agent: str) -> None:
    """And what nobody has seen is."""
    adapter = adapter_for(agent)

    assert adapter.passed_over and all(is_known(adapter, each) for each in adapter.passed_over)
    assert is_known(adapter, "user.injected")
    assert not is_known(adapter, "novelty") and not is_known(adapter, "other")
