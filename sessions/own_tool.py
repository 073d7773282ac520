"""Whether an agent saved or deleted memory of ours itself: in its tool calls and their results.

It may have done so through our MCP tool or on our command line, ``memory save`` and such. Arguments
are looked at only where they can be such a call; a call counts once its result is there and tells
of no failure.
"""

from __future__ import annotations

import re

import msgspec

from memoryd.sessions.adapter import ID_CHARACTERS, State, is_object

#: Calls whose results are still to come, remembered at most.
SAVING_LIMIT = 4
#: Longest arguments and results looked into, in bytes: longer ones are no call of ours.
CALL_BYTES = 1024 * 1024
#: Places in one command where memoryd may be named, looked at most.
_PLACES = 64
_WINDOW = 200

#: ``memory`` alone takes an action; agents put the server's name before it in ways of their own.
_OWN_TOOL = re.compile(r"(?:.*[^a-zA-Z0-9])?memory(?:_(save|delete|forget))?", re.DOTALL)
_ACTIONS = ("save", "delete")
_COMMAND_KEYS = ("command", "cmd")
#: What may stand before the program's name: where a command begins, variables, its folder.
_BEFORE = re.compile(r"(?:\A|[;&|(`\n\"'])\s*(?:\w+=[^\s;&|]*\s+)*(?:[^\s;&|()'\"]*/)?\Z")
_AFTER = re.compile(
    r"memoryd[\"']?\s+(?:--home(?:=|\s+)\S+\s+)?memory\s+(?:save|delete|forget)(?![\w-])"
)
_EXIT_CODE = re.compile(r"(?:exited with code|[Ee]xit code:?) (-?[0-9]{1,6})")
_CODEX_ERRORS = ("tool call error", "tool call failed", "unsupported call")
_HEAD = 512


def note_call(state: State, call: str, tool: str, arguments: bytes) -> None:
    """Remember the tool call ``call`` in ``state`` when it is to save or delete memory.

    ``arguments`` are its JSON: an object, or a string that holds one.
    """
    if 0 < len(call) <= ID_CHARACTERS and _saves(tool, arguments):
        state.saving = [*state.saving, call][-SAVING_LIMIT:]


def awaited(state: State, line: bytes) -> bool:
    """Whether ``line`` can hold the result of a call that was remembered."""
    return any(call.encode() in line for call in state.saving)


def take_result(state: State, call: str | None, *, failed: bool) -> tuple[str, ...]:
    """The call, when it was remembered and did not fail; it is remembered no longer."""
    if call is None or call not in state.saving:
        return ()
    state.saving = [other for other in state.saving if other != call]
    return () if failed else (call,)


def tells_failure(output: bytes) -> bool:
    """Whether a result as Codex writes it (JSON: text, or an object) tells that its call failed."""
    value = _decoded(output)
    if isinstance(value, str):
        found = _EXIT_CODE.search(value, 0, _HEAD)
        if found:
            return int(found[1]) != 0
        if value.startswith(_CODEX_ERRORS):
            return True
        value = _decoded(value.encode("utf-8", "replace")) if value.startswith("{") else None
    if not is_object(value):
        return False
    metadata = value.get("metadata")
    code = metadata.get("exit_code") if is_object(metadata) else None
    if isinstance(code, int) and code != 0:
        return True
    return value.get("success") is False or value.get("isError") is True


def _saves(tool: str, arguments: bytes) -> bool:
    own = _OWN_TOOL.fullmatch(tool) if len(tool) <= ID_CHARACTERS else None
    if own and own[1]:
        return True
    if not own and b"memoryd" not in arguments:
        return False
    given = _decoded(arguments)
    if isinstance(given, str):
        given = _decoded(given.encode("utf-8", "replace"))
    if not is_object(given):
        return False
    if own:
        return given.get("action") in _ACTIONS
    return any(_runs_memoryd(given.get(key)) for key in _COMMAND_KEYS)


def _runs_memoryd(command: object) -> bool:
    """Whether a shell command (text, or its words) runs our ``memory save`` or such."""
    if isinstance(command, list):
        command = "\n".join(word for word in command if isinstance(word, str))
    if not isinstance(command, str):
        return False
    place = -1
    for _ in range(_PLACES):
        place = command.find("memoryd", place + 1)
        if place < 0:
            return False
        before = command[max(0, place - _WINDOW) : place]
        if _AFTER.match(command, place, place + _WINDOW) and _BEFORE.search(before):
            return True
    return False


def _decoded(data: bytes) -> object:
    if len(data) > CALL_BYTES:
        return None
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value
