"""One commit of a baseline as it is written and read: whose, when, its subject and its trailers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from memoryd.memory.scanner import redact

Author = Literal["memoryd", "person"]

#: For ``git log --format``; ``parse_commit`` reads what comes between two ``\\0\\x1e``.
FORMAT = "%H%x00%an <%ae>%x00%at%x00%s%x00%(trailers:only=true,unfold=true)%x00%x1e"


@dataclass(frozen=True)
class Commit:
    """One commit: its id, whose it is, when (ms), its subject and its trailers in order."""

    id: str
    author: Author
    at_ms: int
    subject: str
    trailers: tuple[tuple[str, str], ...]

    def values(self, key: str) -> tuple[str, ...]:
        """The values of one trailer."""
        return tuple(value for name, value in self.trailers if name == key)


def message(subject: str, trailers: Iterable[tuple[str, str]] | Mapping[str, str]) -> bytes:
    """The text of a commit: a subject of one line, redacted, and its trailers."""
    pairs = trailers.items() if isinstance(trailers, Mapping) else trailers
    text = redact(" ".join(subject.split()))[0] + "\n"
    if lines := [trailer(key, value) for key, value in pairs]:
        text += "\n" + "\n".join(lines) + "\n"
    return text.encode()


def identity(author: Author, now_ms: int | None) -> dict[str, str]:
    """The environment in which git makes a commit of this author, at this time (None: now)."""
    who: dict[str, str] = {"AUTHOR": author, "COMMITTER": "memoryd"}
    env = {f"GIT_{role}_NAME": name for role, name in who.items()}
    env |= {f"GIT_{role}_EMAIL": f"{name}@localhost" for role, name in who.items()}
    if now_ms is not None:
        env |= {f"GIT_{role}_DATE": f"@{now_ms // 1000} +0000" for role in who}
    return env


def trailer(key: str, value: str) -> str:
    """One trailer line; what would break the line, and ``%``, is written as %XX."""
    parts = (
        letter
        if (letter.isprintable() and letter != "%") or letter == " "
        else "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))
        for letter in value
    )
    text = "".join(parts)
    if text != text.strip():
        text = text.replace(" ", "%20")
    return f"{key}: {text}"


def _untrailer(text: str) -> str:
    raw = re.sub(rb"%([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return raw.decode("utf-8", "surrogatepass")


def parse_commit(record: str) -> Commit:
    """What ``FORMAT`` gave for one commit."""
    made, who, at, subject, trailers = record.split("\0")[:5]
    pairs = [line.partition(": ") for line in trailers.splitlines() if ": " in line]
    return Commit(
        id=made,
        author="memoryd" if who == "memoryd <memoryd@localhost>" else "person",
        at_ms=int(at) * 1000,
        subject=subject,
        trailers=tuple((key, _untrailer(value)) for key, _, value in pairs),
    )
