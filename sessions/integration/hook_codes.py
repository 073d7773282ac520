"""What a hook could not do, in words: it writes down a code alone, for it has no time for more."""

from __future__ import annotations

import os

_MEANINGS = {
    "arguments": "the agent's settings call memoryd-hook with other words than AGENT EVENT:"
    " `memoryd integrate` mends its own entries",
    "input.empty": "the agent told the hook nothing",
    "input.not-an-object": "what the agent told the hook is no JSON object",
    "input.too-large": "what the agent told the hook is over 4 MiB",
    "session.missing": "the agent named no session",
    "session.refused": "the agent named the session by something that is no id",
    "deadline": "the agent had not said all of it in time",
}


def meaning(code: str) -> str:
    """What the code of a hook's failure (``cli/hook.py``) says."""
    if code.startswith("os."):
        number = code[3:]
        why = f" ({os.strerror(int(number))})" if number.isdigit() and len(number) < 6 else ""
        return f"the system refused{why}"
    return _MEANINGS.get(code, "a fault of the hook's own")
