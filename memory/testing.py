"""The fakes memoryd is tested with: the clock and the scripted model. Public for your own tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoryd.memory.providers.base import Reply, Request


class FakeClock:
    """A clock that moves only when told. Starts on 2026-01-05 09:00:00 UTC."""

    def __init__(self, now_ms: int = 1_767_603_600_000) -> None:
        self._now_ms = now_ms
        self._monotonic = 1_000.0
        self._guard = threading.Lock()

    def now_ms(self) -> int:
        """The wall time it was set to, in milliseconds."""
        with self._guard:
            return self._now_ms

    def monotonic(self) -> float:
        """Seconds; moves with ``advance`` and never with ``step``."""
        with self._guard:
            return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass on both clocks."""
        with self._guard:
            self._now_ms += int(seconds * 1000)
            self._monotonic += seconds

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back, as NTP or a person does."""
        with self._guard:
            self._now_ms += int(seconds * 1000)


_NOTHING = {"extract": '{"facts": []}', "consolidate": '{"merges": []}'}


class ScriptedModel:
    """A provider that answers from a queue of replies, exceptions or functions of the request.

    Each element is a string (the answer), an exception (raised) or a callable that takes the
    ``Request`` and returns a string. When the queue is empty the last element is used again;
    with no script at all every answer finds nothing: ``{"facts": []}``, or for a consolidation
    ``{"merges": []}``. ``requests`` keeps what was asked.
    """

    name = "scripted"
    costs = True
    consolidates = True

    def __init__(self, script: Iterable[str | Exception | Callable[[Request], str]] = ()) -> None:
        self._script = list(script)
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Reply:
        """Answer ``request`` from the script."""
        from memoryd.memory.providers.base import Reply

        self.requests.append(request)
        step: str | Exception | Callable[[Request], str] = _NOTHING[request.purpose]
        if self._script:
            step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(step, Exception):
            raise step
        text = step if isinstance(step, str) else step(request)
        return Reply(
            text=text,
            input_tokens=len(request.system + request.prompt) // 4,
            output_tokens=len(text) // 4,
        )
