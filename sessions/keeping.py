"""What of a message is kept: not our own words, not what is excluded, never a secret."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from memoryd.memory.own_blocks import take_out_own_blocks
from memoryd.memory.own_calls import is_own_place, is_own_question, without_own_prompts
from memoryd.sessions.adapter import Message, State
from memoryd.sessions.injected import without_recalled
from memoryd.sessions.split import parts
from memoryd.sessions.stored import Cited, Keep

#: Citations noted in one ingestion at most.
CITED_LIMIT = 256

Redact = Callable[[str], tuple[str, int]]


class Keeper:
    """Decides what of a message is kept, and makes it ready to be stored."""

    def __init__(
        self,
        resolver: Callable[[str], str],
        exclude: Callable[[str], bool],
        redact: Redact,
        cwd: str = "",
    ) -> None:
        self._resolver = lru_cache(maxsize=256)(resolver)
        self._exclude = lru_cache(maxsize=256)(exclude)
        self._redact = redact
        #: The directory of what says none.
        self._cwd = cwd
        self.redacted = 0
        self.cited: dict[str, None] = {}
        self._new: list[Cited] = []

    def keep(self, message: Message, state: State, line_end: int) -> Keep | str:
        """The message to store, or the reason why there is none.

        ``line_end`` is where in the transcript the line that said it ends.
        """
        _look_for_own_call(message, state)
        if state.kind != "root":
            return state.kind
        cwd = message.cwd or self._cwd
        if is_own_place(cwd):
            return "own-call"
        if self._exclude(cwd):
            return "excluded" if cwd else "no-directory"
        text, notes = take_out_own_blocks(without_own_prompts(message.text))
        if message.role == "assistant":
            text = without_recalled(text)
        if message.role == "assistant" and notes:
            self._note_citations(notes, message.at_ms)
        text = text.replace("\0", "").strip()
        if not text:
            return "own-block"
        text, secrets = self._redact(text)
        self.redacted += secrets
        said = (message.at_ms, cwd, self._resolver(cwd), line_end)
        return Keep(message.role, tuple(parts(text)), message.id, *said)

    def excluded(self, state: State) -> bool:
        """Whether nothing of what happens now in the session may be kept."""
        cwd = state.cwd or self._cwd
        return state.kind != "root" or is_own_place(cwd) or self._exclude(cwd)

    def new_citations(self) -> list[Cited]:
        """What the messages seen since this was last asked cited."""
        new, self._new = self._new, []
        return new

    def _note_citations(self, notes: tuple[str, ...], at_ms: int | None) -> None:
        safe = tuple(self._redact(note)[0] for note in notes)
        self._new.append(Cited(safe, at_ms))
        for note in safe:
            if len(self.cited) < CITED_LIMIT:
                self.cited[note] = None


def _look_for_own_call(message: Message, state: State) -> None:
    """A session that begins where programs answer for us, or with a question of ours, is an answer.

    Nothing of it was said by a person, whoever goes on with it. A question of ours that turns up
    later, or with words behind it, was pasted: only that is left out.
    """
    if not state.first:
        asked = message.role == "user" and is_own_question(message.text)
        if asked or is_own_place(message.cwd):
            state.first = "own"
        elif message.role == "user":
            state.first = "person"
    if state.first == "own" and state.kind == "root":
        state.kind = "internal"
