"""One protocol for every provider: a request goes in, the text of one answer comes out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from memoryd.memory.errors import BadAnswer
from memoryd.memory.facts import SliceMessage

#: An answer with more characters for each token it may have is none: what it cost would be far
#: beyond what was reserved for it, and looking at it could take for ever.
CHARACTERS_A_TOKEN = 8


@dataclass(frozen=True)
class ShownNote:
    """An existing note as the prompt shows it. ``path`` is relative to the store ``store``."""

    store: str
    path: str
    type: str
    name: str
    description: str
    body: str


class CallOff:
    """Says, from any thread and once for all, that nobody wants the answer any more."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self._called = False

    @property
    def called(self) -> bool:
        """Whether it was said."""
        return self._called

    def call(self) -> None:
        """Say it: the call that is being made is stopped in this thread; none: the next one is."""
        with self._guard:
            self._called = True
            if self._stop is not None:
                self._stop()

    @contextmanager
    def stops(self, stop: Callable[[], None]) -> Iterator[None]:
        """While inside, ``call`` runs ``stop``; at once where it was called before.

        ``stop`` makes the call end, as one that failed, and never runs after the end of the block.
        """
        with self._guard:
            self._stop = stop
            if self._called:
                stop()
        try:
            yield
        finally:
            with self._guard:
                self._stop = None


@dataclass(frozen=True)
class Request:
    """One call. ``messages`` and ``notes`` are what ``prompt`` shows, for providers without words.

    ``max_tokens`` bounds the answer; ``timeout_seconds`` the whole call. ``purpose`` says which
    answer is expected: facts, or the proposals of a consolidation. ``off`` stops the call before.
    """

    system: str
    prompt: str
    messages: tuple[SliceMessage, ...]
    notes: tuple[ShownNote, ...]
    max_tokens: int
    timeout_seconds: float
    purpose: Literal["extract", "consolidate"] = "extract"
    off: CallOff = field(default_factory=CallOff, compare=False, repr=False)


@dataclass(frozen=True)
class Reply:
    """The answer's text and what it cost."""

    text: str
    input_tokens: int
    output_tokens: int


def bounded(reply: Reply, request: Request) -> Reply:
    """``reply``; raises ``BadAnswer`` where it is far longer than it may be."""
    if len(reply.text) > request.max_tokens * CHARACTERS_A_TOKEN:
        raise BadAnswer(
            f"the provider answered {len(reply.text)} characters, which is no answer to this"
            " question",
            hint="a program should print the answer and nothing else",
        )
    return reply


class Provider(Protocol):
    """Anything that answers a request.

    ``complete`` raises ``ProviderUnavailable``, ``ProviderLimited``, ``ProviderPermanent`` or
    ``BadAnswer`` (errors.py says what each means), one of them soon after the request was called
    ``off``, and never retries by itself.
    ``costs`` is False for a provider that needs no budget.
    """

    @property
    def name(self) -> str:
        """What stands in the commit trailer ``Memoryd-Provider``."""
        ...

    @property
    def costs(self) -> bool:
        """Whether its calls are counted against the day's budget."""
        ...

    @property
    def consolidates(self) -> bool:
        """Whether it can say how a store of notes is to be consolidated."""
        ...

    def complete(self, request: Request) -> Reply:
        """Answer one request; see the class for what it raises."""
        ...
