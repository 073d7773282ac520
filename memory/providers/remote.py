"""What the two SDKs have in common: one bounded call, and their errors as ours.

Both SDKs are generated from one template, so the exceptions have the same names and attributes:
``APITimeoutError``, ``APIConnectionError``, ``APIStatusError`` with ``status_code`` and
``response``, all below ``APIError``.
"""

from __future__ import annotations

import email.utils
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from memoryd.memory.clock import Clock
from memoryd.memory.errors import (
    BadAnswer,
    MemorydError,
    ProviderError,
    ProviderLimited,
    ProviderPermanent,
    ProviderUnavailable,
)
from memoryd.memory.scanner import redact
from memoryd.memory.text import clip, fold

T = TypeVar("T")

#: The longest wait a server may ask for; more is taken for nonsense and cut to this.
_WAIT_SECONDS = 7 * 86_400
_AWAY = frozenset({408, 409, 425})
#: Statuses that say that the call was not begun; others may come after work that costs.
_BUSY = frozenset({409, 425, 503, 529})
#: What the SDKs' own library calls a connection that never was.
_UNCONNECTED = frozenset({"ConnectError", "ConnectTimeout"})
_HINTS = {
    401: "check the key that [provider] names, as the service sees it",
    402: "the account has no credit left",
    403: "the key may not use this model or endpoint",
    404: "check provider.model and provider.base_url",
}


def ask(sdk: ModuleType, call: Callable[[], T], clock: Clock) -> T:
    """Run ``call``; raise our error for the SDK's."""
    try:
        return call()
    except sdk.APITimeoutError as error:
        free = _is_unconnected(error)
        raise ProviderUnavailable("the provider did not answer in time", free=free) from error
    except sdk.APIConnectionError as error:
        free = _is_unconnected(error)
        raise ProviderUnavailable(f"no connection: {_words(error)}", free=free) from error
    except sdk.APIStatusError as error:
        raise status_error(error, clock) from error
    except (sdk.APIError, ValueError, TypeError, AttributeError) as error:
        raise BadAnswer(f"the answer is not of the API: {_words(error)}") from error


def status_error(error: Any, clock: Clock) -> ProviderError:
    """Our error for an HTTP status: see the product's retry policy for what each one costs."""
    status = int(error.status_code)
    said = f"the provider answered {status}: {_words(error)}"
    if status in _HINTS:
        return ProviderPermanent(said, hint=_HINTS[status])
    if status == 429:
        return ProviderLimited(said, until_ms=_until(error.response.headers, clock.now_ms()))
    if status >= 500 or status in _AWAY:
        return ProviderUnavailable(said, free=status in _BUSY)
    return BadAnswer(said)


def _is_unconnected(error: Exception) -> bool:
    """Whether nothing was sent: else the connection broke with the provider at work."""
    return type(error.__cause__).__name__ in _UNCONNECTED


def _until(headers: Mapping[str, str], now_ms: int) -> int | None:
    """When a limit lifts, from ``retry-after-ms`` or ``Retry-After`` (seconds or an HTTP date)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is None:
        seconds = _number(headers.get("retry-after"))
        milliseconds = None if seconds is None else seconds * 1000
    if milliseconds is not None:
        return now_ms + int(min(max(milliseconds, 0), _WAIT_SECONDS * 1000))
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        at_ms = int(date.timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(at_ms, now_ms), now_ms + _WAIT_SECONDS * 1000)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e12 else None


def _words(error: Any) -> str:
    """The error's own words: one line, bounded, without secrets."""
    message = getattr(error, "message", None)
    text = message if isinstance(message, str) else str(error)
    return clip(fold(redact(text[:4_000])[0]), 300) or type(error).__name__


def within(seconds: float, call: Callable[[], T], give_up: Callable[[], None]) -> T:
    """The result of ``call``, or ``ProviderUnavailable`` after ``seconds`` in all.

    The SDK's own timeout counts each read, so a server that drips would hold the call for ever. The
    abandoned thread ends when ``give_up`` closes what it reads from.
    """
    result: list[T] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            result.append(call())
        except (MemorydError, RuntimeError) as error:  # the caller raises it
            failed.append(error)

    thread = threading.Thread(target=run, name="provider-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if result:
        return result[0]
    if not thread.is_alive():
        raise BadAnswer("the call ended without an answer")
    give_up()
    raise ProviderUnavailable(f"the provider did not answer within {seconds:g} s")
