"""Our entries in settings of every shape: put in once, taken out without a trace."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))

from shapes import SHAPES, UNFIT

from memoryd.sessions.integration.entries import Unfit, command, ours, put_in, take_out
from memoryd.sessions.integration.jsonc import Node, parse
from memoryd.sessions.integration.table import AGENTS, Agent

PROGRAM = "/opt/m/bin/memoryd-hook"
CLAUDE, CODEX, *_ = AGENTS
CURSOR = AGENTS[-1]

#: Shapes that are said the same in other white space once an entry came and went.
RESPACED = {
    "nothing",
    "only a line end",
    "byte order mark alone",
    "empty object over lines",
    "empty object with space",
    "empty hooks",
    "a comment in a line",
    "empty list",
    "windows",
    "a key twice",
}


def plain(node: Node) -> Any:
    """What an agent reads."""
    if node.kind == "object":
        return {child.key: plain(child.node) for child in node.children}
    if node.kind == "array":
        return [plain(child.node) for child in node.children]
    return node.value


def read(text: str) -> Any:
    """The settings as an agent reads them; none are the same as empty ones."""
    body = text.lstrip("\ufeff")
    return plain(parse(body)) if body.strip() else {}


def texts(shape: str) -> str:
    """A shape as text."""
    return SHAPES[shape].decode("utf-8")


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_event_gets_one_entry_and_a_second_time_changes_nothing(
    agent: Agent, shape: str
) -> None:
    """Whatever is there already, it stays, in its order, with its comments."""
    before = texts(shape)

    after = put_in(before, agent, PROGRAM)

    assert {each.event: each.command for each in ours(after, agent)} == {
        event: command(agent, event, PROGRAM) for event in agent.events
    }
    assert put_in(after, agent, PROGRAM) == after
    comments = [line.partition("//")[2] for line in before.splitlines()]
    assert [each for each in comments if each not in after] == []
    assert list(read(after))[: len(read(before))] == list(read(before))
    assert {**read(after), "hooks": 0} == {
        **(agent.members or {}),
        **read(before),
        "hooks": 0,
    }


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("shape", SHAPES)
def test_taking_out_what_was_put_in_leaves_what_was_there(agent: Agent, shape: str) -> None:
    """Byte for byte, but for white space in brackets that held nothing else."""
    before = texts(shape)
    if agent.members and shape not in RESPACED:
        before = before.replace("{", '{"version": 1, ', 1) if '"' in before else before

    after = take_out(put_in(before, agent, PROGRAM), agent)

    assert ours(after, agent) == []
    if shape not in RESPACED and not agent.members:
        assert after == before
    gone = read(before) | {"version": 1} if agent.members else read(before)
    assert _filled(read(after)) == _filled(gone)


def _filled(settings: Any) -> Any:
    """Without hooks that are empty: no agent sees them."""
    hooks = settings.get("hooks") or {}
    events = {event: listed for event, listed in hooks.items() if listed}
    rest = {key: value for key, value in settings.items() if key != "hooks"}
    return rest | ({"hooks": events} if events else {})


@pytest.mark.parametrize("shape", UNFIT)
def test_what_is_not_understood_is_refused(shape: str) -> None:
    """Nothing is guessed; what is no text never comes this far."""
    with pytest.raises(Unfit):
        put_in(UNFIT[shape].decode("utf-8", "replace"), CLAUDE, PROGRAM)


def test_the_form_is_the_one_of_the_file() -> None:
    """Its indentation and its line ends."""
    tabs = put_in(texts("tabs"), CLAUDE, PROGRAM)
    windows = put_in(texts("windows"), CLAUDE, PROGRAM)

    assert '\n\t"hooks": {\n\t\t"SessionEnd": [\n\t\t\t{\n\t\t\t\t"hooks": [' in tabs
    assert "\n" not in windows.replace("\r\n", "")
    assert put_in(texts("minified"), CLAUDE, PROGRAM).count("\n") == 0


def test_a_comment_stays_beside_what_it_is_about() -> None:
    """What is added comes behind it, not between."""
    assert '"a": 1, // one\n  "hooks"' in put_in(texts("a comment last"), CLAUDE, PROGRAM)


def test_a_moved_installation_is_followed() -> None:
    """The entry says the new path, and is not doubled."""
    old = put_in(texts("others, comments, commas at the end"), CLAUDE, "/old place/memoryd-hook")

    new = put_in(old, CLAUDE, PROGRAM)

    assert new == put_in(texts("others, comments, commas at the end"), CLAUDE, PROGRAM)


@pytest.mark.parametrize(
    "program", ["/a b/memoryd-hook", "/it's/memoryd-hook", '/q"\\/memoryd-hook']
)
def test_a_path_is_quoted_where_a_shell_would_split_it(program: str) -> None:
    """Agents hand the command to a shell: it must come out as three words."""
    after = put_in("{}", CLAUDE, program)

    said = json.loads(after)["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert shlex.split(said) == [program, "claude-code", "stop"]
    assert take_out(after, CLAUDE) == "{}"


def test_what_a_person_made_of_our_entry_stays() -> None:
    """A timeout and a matcher of theirs; with the entry goes the group that held nothing else."""
    text = json.dumps(
        {
            "hooks": {
                "Stop": [
                    {"hooks": [{"type": "command", "command": "mine"}]},
                    {
                        "matcher": "x",
                        "hooks": [
                            {
                                "type": "command",
                                "command": f"{PROGRAM} claude-code stop",
                                "timeout": 9,
                            }
                        ],
                    },
                ]
            }
        }
    )

    after = put_in(text, CLAUDE, PROGRAM)

    assert read(after)["hooks"]["Stop"] == read(text)["hooks"]["Stop"]
    left = read(take_out(after, CLAUDE))
    assert left == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}


def test_an_entry_beside_a_persons_hook_in_one_group_goes_alone() -> None:
    """First, between and last."""
    mine = [{"type": "command", "command": name} for name in "ab"]
    us = {"type": "command", "command": f"{PROGRAM} claude-code stop"}
    for listed in ([us, *mine], [mine[0], us, mine[1]], [*mine, us]):
        for indent in (None, 2):
            text = json.dumps({"hooks": {"Stop": [{"hooks": listed}]}}, indent=indent)

            after = take_out(text, CLAUDE)

            assert after == json.dumps({"hooks": {"Stop": [{"hooks": mine}]}}, indent=indent)


def test_doubled_entries_become_one() -> None:
    """Two installations wrote theirs; one word per session is enough."""
    groups = [
        {"hooks": [{"type": "command", "command": f"/{place}/memoryd-hook claude-code stop"}]}
        for place in ("one", "two")
    ]

    after = put_in(json.dumps({"hooks": {"Stop": groups}}), CLAUDE, PROGRAM)

    assert [each.command for each in ours(after, CLAUDE) if each.event == "Stop"] == [
        f"{PROGRAM} claude-code stop"
    ]


def test_an_entry_under_a_key_that_stands_twice_counts_only_where_it_is_read() -> None:
    """Agents read the last; an entry in the first would never run."""
    dead = '{"hooks": {"Stop": [{"hooks": [{"command": "/x/memoryd-hook claude-code stop"}]}]}, '

    after = put_in(dead + '"hooks": {"Stop": [], "Stop": []}}', CLAUDE, PROGRAM)

    assert [each.command for each in ours(after, CLAUDE) if each.event == "Stop"] == [
        f"{PROGRAM} claude-code stop"
    ]
    assert json.loads(after)["hooks"]["Stop"][0]["hooks"][0]["type"] == "command"


def test_a_million_comments_are_read_in_one_pass() -> None:
    """A line end is looked for no further than the line."""
    text = "//\n" * 300_000 + "{}"

    assert parse(text).end == len(text)


def test_a_timeout_above_the_cap_is_lowered() -> None:
    """Codex takes three seconds at a session's end and warns at each start about more."""
    handler = {"type": "command", "command": f"{PROGRAM} codex session-end", "timeout": 5}

    after = put_in(json.dumps({"hooks": {"SessionEnd": [{"hooks": [handler]}]}}), CODEX, PROGRAM)

    assert read(after)["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 3


@pytest.mark.parametrize(
    "said",
    [
        "memoryd-hook",
        "/x/memoryd-hook codex stop",
        "/x/memoryd-hook claude-code stop && rm x",
        "/x/my-memoryd-hook claude-code stop",
        "sh -c '/x/memoryd-hook claude-code stop'",
        "/x/memoryd-hook 'claude-code stop",
    ],
)
def test_what_only_looks_like_ours_is_a_persons(said: str) -> None:
    """Another agent's, a script around it, half a quote: not ours to touch."""
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": said}]}]}})

    assert ours(text, CLAUDE) == []
    assert take_out(text, CLAUDE) == text


def test_an_old_spelling_is_taken_out_with_the_rest() -> None:
    """By its name alone, at an event we no longer ask for, and in what README once said."""
    events = {
        "Stop": [{"hooks": [{"type": "command", "command": "memoryd-hook claude-code stop"}]}],
        "Notification": [
            {"matcher": "", "hooks": [{"command": "'/old/memoryd-hook' claude-code stop"}]}
        ],
    }

    assert take_out(json.dumps({"hooks": events, "a": 1}), CLAUDE) == '{"a": 1}'


def test_a_comment_in_a_box_of_ours_keeps_the_box() -> None:
    """A person's words are not ours to delete."""
    text = '{\n  "hooks": {\n    "Stop": [\n      // keep\n    ]\n  }\n}\n'

    after = take_out(put_in(text, CLAUDE, PROGRAM), CLAUDE)

    assert "// keep" in after
    assert ours(after, CLAUDE) == []


def test_cursor_is_told_its_versions_number() -> None:
    """Its file must say it; its hooks stand in the list without a group."""
    settings = json.loads(put_in("", CURSOR, PROGRAM))

    assert settings["version"] == 1
    assert settings["hooks"]["stop"] == [{"command": f"{PROGRAM} cursor stop"}]
