"""What no row of the ledger can hold is refused before anything is written: pure checks."""

from __future__ import annotations

import json
from collections.abc import Mapping

from memoryd.jobs.envelope import path_is_secret, session_is_secret
from memoryd.jobs.job import KINDS, TEXT_CHARACTERS, Kind, is_keepable
from memoryd.memory.errors import UsageError
from memoryd.memory.text import clip

PAYLOAD_CHARACTERS = 4096


def require_session(session: str) -> None:
    """Raise ``UsageError`` where a session is named by a secret."""
    if session_is_secret(session):
        raise UsageError(
            "the session is named by a secret, which is never kept",
            hint="name it with --session by something else",
        )


def require_transcript(path: str) -> None:
    """Raise ``UsageError`` where the path of a transcript holds a secret."""
    if path_is_secret(path):
        raise UsageError(
            "the transcript's path holds a secret, which is never kept",
            hint="rename the folder or the file it is in",
        )


def checked_kind(kind: str, about: str, cutoff: int, texts: tuple[str, ...]) -> Kind:
    """The properties of ``kind``. Raises ``UsageError`` for a request that no row can hold."""
    properties = KINDS.get(kind)
    if properties is None or properties.about != about:
        kinds = [name for name, known in KINDS.items() if known.about == about]
        raise UsageError(
            f"there is no kind of job about a {about} {clip(kind, 40)!r}",
            hint=f"one of: {', '.join(kinds)}",
        )
    if not 0 <= cutoff < 1 << 63:
        raise UsageError(f"a cutoff is a number of bytes, not {clip(str(cutoff), 40)}")
    for text in texts:
        if not is_keepable(text):
            raise UsageError(
                f"{clip(ascii(text), 60)} cannot be kept in the ledger",
                hint=f"names and paths are valid UTF-8, at most {TEXT_CHARACTERS} characters",
            )
    return properties


def small_json(payload: Mapping[str, object]) -> str:
    """A payload as a row keeps it, keys sorted. Raises ``UsageError`` where it is too long."""
    text = json.dumps(dict(payload), sort_keys=True)
    if len(text) > PAYLOAD_CHARACTERS:
        raise UsageError(f"a payload has at most {PAYLOAD_CHARACTERS} characters of JSON")
    return text
