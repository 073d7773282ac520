"""Our entries in an agent's settings: found, put in, moved and taken out, as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from memoryd.sessions.integration.editing import appended, replaced, without
from memoryd.sessions.integration.jsonc import Child, Node, NotJson, parse
from memoryd.sessions.integration.table import Agent

PROGRAM = "memoryd-hook"
_BOM = "\ufeff"
#: Steps above a group: to "hooks", to the event, to the group.
_GROUP_DEPTH = 3


class Unfit(Exception):
    """The settings are not in the shape the agent documents; the argument says what is not."""


@dataclass(frozen=True)
class Entry:
    """One entry of ours: the agent's event, what it calls, and where it stands."""

    event: str
    command: str
    handler: Node
    #: From the outside in: each box and which of its children leads on, the entry itself last.
    path: tuple[tuple[Node, Child], ...]

    @property
    def program(self) -> str:
        """The program that is called."""
        return shlex.split(self.command)[0]


def command(agent: Agent, event: str, program: str) -> str:
    """What the agent is to run at its ``event``: three words, quoted where they need it."""
    return shlex.join([program, agent.name, agent.events[event][0]])


def entry(agent: Agent, event: str, program: str) -> dict[str, object]:
    """What is added to the list of ``event``."""
    handler: dict[str, object] = {"command": command(agent, event, program)}
    if not agent.grouped:
        return handler
    handler = {"type": "command", **handler}
    if timeout := agent.events[event][1]:
        handler["timeout"] = timeout
    return {"hooks": [handler]}


def whole(agent: Agent, program: str) -> dict[str, object]:
    """What a file of settings says that says nothing else."""
    events = {event: [entry(agent, event, program)] for event in agent.events}
    return {**(agent.members or {}), "hooks": events}


def ours(text: str, agent: Agent) -> list[Entry]:
    """Every entry of ours in ``text``, whatever path its program has. Raises ``Unfit``."""
    _, body = _split(text)
    return list(_entries(_root(body), agent)) if body.strip() else []


def is_switched_off(text: str) -> bool:
    """Whether the settings switch off every hook, ours too. Raises ``Unfit``."""
    _, body = _split(text)
    switch = _root(body).get("disableAllHooks") if body.strip() else None
    return switch is not None and switch.value is True


def put_in(text: str, agent: Agent, program: str) -> str:
    """``text`` with one entry of ours for each event, calling ``program``; what is right stays.

    Raises ``Unfit``.
    """
    mark, body = _split(text)
    end = "" if body.strip() else "\n"
    body = body if body.strip() else "{}"
    for key, value in (agent.members or {}).items():
        if (root := _root(body)).get(key) is None:
            body = appended(body, root, root, value, key)
    if (root := _root(body)).get("hooks") is None:
        body = appended(body, root, root, whole(agent, program)["hooks"], "hooks")
    for event in agent.events:
        body = _put_in(body, agent, event, program)
    return mark + body + end


def take_out(text: str, agent: Agent) -> str:
    """``text`` without our entries and what they alone filled. Raises ``Unfit``."""
    mark, body = _split(text)
    if not body.strip():
        return text
    while found := list(_entries(_root(body), agent)):
        body = _take_out(body, found[-1])
    return mark + body


def _put_in(body: str, agent: Agent, event: str, program: str) -> str:
    root = _root(body)
    found = [each for each in _entries(root, agent) if each.event == event]
    read = [each for each in found if _is_read(root, each)]
    for each in reversed(found):
        if each not in read[:1]:
            body = _take_out(body, each)
            return _put_in(body, agent, event, program)
    if read:
        return _corrected(body, agent, read[0], program)
    hooks = root.get("hooks")
    if hooks is None:
        return appended(body, root, root, {event: [entry(agent, event, program)]}, "hooks")
    new = entry(agent, event, program)
    standing = hooks.get(event)
    if standing is None:
        return appended(body, root, hooks, [new], event)
    return appended(body, root, standing, new)


def _is_read(root: Node, found: Entry) -> bool:
    """Whether the agent reads the entry: of a key that stands twice, the last counts."""
    hooks, listed = found.path[0][1].node, found.path[1][1].node
    return root.get("hooks") is hooks and hooks.get(found.event) is listed


def _corrected(body: str, agent: Agent, found: Entry, program: str) -> str:
    """The entry calls what it should, within the agent's cap; else it is a person's to shape.

    A program behind another link is the same one: Codex asks anew about every command that changes.
    """
    if _is_same(found.program, program):
        program = found.program
    wanted, said = command(agent, found.event, program), found.handler.get("command")
    assert said is not None
    edits: list[tuple[Node, object]] = []
    if shlex.split(found.command) != shlex.split(wanted):
        edits.append((said, wanted))
    cap, timeout = agent.caps.get(found.event), found.handler.get("timeout")
    if cap and timeout and isinstance(timeout.value, int | float) and timeout.value > cap:
        edits.append((timeout, cap))
    for node, value in sorted(edits, key=lambda edit: -edit[0].start):
        body = replaced(body, node, value)
    return body


def _is_same(one: str, other: str) -> bool:
    try:
        return Path(one).is_absolute() and Path(one).samefile(other)
    except (OSError, ValueError):
        return False


def _take_out(body: str, found: Entry) -> str:
    """Without the entry, and without the boxes around it that hold nothing else."""
    steps = list(found.path)
    box, child = steps.pop()
    while steps and (_is_group(box, child, steps) or _holds_only(body, box, child)):
        box, child = steps.pop()
    return without(body, box, child)


def _is_group(box: Node, child: Child, steps: list[tuple[Node, Child]]) -> bool:
    """Whether this is a group whose hooks go: its matcher says nothing without them."""
    return child.key == "hooks" and len(steps) == _GROUP_DEPTH and box.kind == "object"


def _holds_only(body: str, box: Node, child: Child) -> bool:
    around = body[box.start + 1 : child.start] + body[child.end : box.end - 1]
    return not around.replace(",", "").strip()


def _entries(root: Node, agent: Agent) -> Iterator[Entry]:
    """In the order in which they stand."""
    for top in root.children:
        if top.key != "hooks":
            continue
        _require(top.node, "object", '"hooks"')
        for event in top.node.children:
            _require(event.node, "array", f'the list of "{event.key}"')
            path = ((root, top), (top.node, event))
            for steps in _handlers(event.node, agent.grouped):
                yield from _mine(agent, str(event.key), (*path, *steps))


def _handlers(listed: Node, grouped: bool) -> Iterator[tuple[tuple[Node, Child], ...]]:
    for each in listed.children:
        if not grouped:
            yield ((listed, each),)
            continue
        for member in each.node.children:
            if member.key == "hooks" and member.node.kind == "array":
                for handler in member.node.children:
                    yield (listed, each), (each.node, member), (member.node, handler)


def _mine(agent: Agent, event: str, path: tuple[tuple[Node, Child], ...]) -> Iterator[Entry]:
    handler = path[-1][1].node
    said = handler.get("command")
    if said is not None and isinstance(said.value, str) and _calls_us(said.value, agent):
        yield Entry(event, said.value, handler, path)


def _calls_us(said: str, agent: Agent) -> bool:
    try:
        words = shlex.split(said)
    except ValueError:
        return False
    return len(words) == 3 and PurePath(words[0]).name == PROGRAM and words[1] == agent.name


def _split(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _root(body: str) -> Node:
    try:
        root = parse(body)
    except NotJson as error:
        raise Unfit(f"it is not JSON ({error})") from error
    _require(root, "object", "the file")
    return root


def _require(node: Node, kind: str, name: str) -> None:
    if node.kind != kind:
        raise Unfit(f"{name} is not an {kind}")
