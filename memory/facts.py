"""Facts: what a model or the rules extracted from the messages of a slice.

(The answer's parser and the evidence check live here too.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["user", "assistant"]


@dataclass(frozen=True)
class SliceMessage:
    """One message of a slice as the prompt shows it: ``[m3] user: ...``.

    ``label`` is unique in the slice (``m1``, ``m2``, ... over the whole slice, not the chunk);
    ``id`` and ``seq`` are the session history's; ``at_ms`` is wall time or None when the agent
    did not say; ``project`` is the key of the project the message was said in.
    """

    label: str
    seq: int
    id: str
    role: Role
    text: str
    at_ms: int | None
    project: str
