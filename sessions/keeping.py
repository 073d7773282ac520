"""What of a message is kept: not our own words, not what is excluded, never a secret."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from memoryd.memory.own_blocks import cited, strip_own_blocks
from memoryd.sessions.adapter import Message, State
from memoryd.sessions.split import parts
from memoryd.sessions.stored import Keep

#: Citations noted in one ingestion at most.
CITED_LIMIT = 256

Redact = Callable[[str], tuple[str, int]]


class Keeper:
    """Decides what of a message is kept, and makes it ready to be stored."""

    def __init__(
        self, resolver: Callable[[str], str], exclude: Callable[[str], bool], redact: Redact
    ) -> None:
        self._resolver = lru_cache(maxsize=256)(resolver)
        self._exclude = lru_cache(maxsize=256)(exclude)
        self._redact = redact
        self.redacted = 0
        self.cited: dict[str, None] = {}

    def keep(self, message: Message, state: State, line_end: int) -> Keep | str:
        """The message to store, or the reason why there is none.

        ``line_end`` is where in the transcript the line that said it ends.
        """
        if state.kind != "root":
            return state.kind
        if self._exclude(message.cwd):
            return "excluded"
        text = strip_own_blocks(message.text)
        if message.role == "assistant" and text is not message.text:
            self._note_citations(message.text)
        text = text.replace("\0", "").strip()
        if not text:
            return "own-block"
        text, secrets = self._redact(text)
        self.redacted += secrets
        project = self._resolver(message.cwd) if message.cwd else ""
        said = (message.at_ms, message.cwd, project, line_end)
        return Keep(message.role, tuple(parts(text)), message.id, *said)

    def _note_citations(self, text: str) -> None:
        for name in cited(text):
            if len(self.cited) < CITED_LIMIT:
                self.cited[self._redact(name)[0]] = None
