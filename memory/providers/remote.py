"""What the two SDKs have in common: one bounded call, and their errors as ours.

Both SDKs are generated from one template, so the exceptions have the same names and attributes:
``APITimeoutError``, ``APIConnectionError``, ``APIStatusError`` with ``status_code`` and
``response``, all below ``APIError``. How the wire itself is bounded: ``wire.py``.
"""

from __future__ import annotations

import email.utils
import importlib
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from memoryd.memory.clock import Clock
from memoryd.memory.errors import (
    BadAnswer,
    ProviderError,
    ProviderLimited,
    ProviderPermanent,
    ProviderUnavailable,
)
from memoryd.memory.providers.base import Request
from memoryd.memory.scanner import redact
from memoryd.memory.text import clip, fold

T = TypeVar("T")

#: The longest wait a server may ask for; more is taken for nonsense and cut to this.
_WAIT_SECONDS = 7 * 86_400
#: 407 is a proxy's: which one stands there changes with the network a laptop is in.
_AWAY = frozenset({407, 408, 409, 425})
#: Statuses that say that the call was not begun; others may come after work that costs.
_BUSY = frozenset({407, 409, 425, 503, 529})
#: What the SDKs' own library calls a connection that never was.
_UNCONNECTED = frozenset({"ConnectError", "ConnectTimeout", "ProxyError"})
#: What it calls an address, or a header, that nothing can be sent with.
_UNSENDABLE = frozenset({"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"})
_HINTS = {
    401: "check the key that [provider] names, as the service sees it",
    402: "the account has no credit left",
    403: "the key may not use this model or endpoint",
    404: "check provider.model and provider.base_url",
    405: "check provider.base_url",
    410: "check provider.model and provider.base_url",
}
#: How a service says with a 400 what others say with a 402.
_NO_CREDIT = "credit balance"
#: More tokens than any call takes: what a server says it counted is not believed beyond this.
_MOST_TOKENS = 100_000_000


def load_sdk(name: str) -> ModuleType:
    """The package ``name``, imported in the first call: it costs time and memory.

    Raises ``ProviderPermanent`` where it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ProviderPermanent(
            f"the provider {name} needs a package that cannot be loaded: {error}",
            hint=f"install it beside memoryd: pip install 'memoryd[{name}]'",
        ) from error


def ask(sdk: ModuleType, call: Callable[[], T], clock: Clock) -> T:
    """Run ``call``; raise our error for the SDK's."""
    try:
        return call()
    except sdk.APITimeoutError as error:
        free = _is_unconnected(error)
        raise ProviderUnavailable("the provider did not answer in time", free=free) from error
    except sdk.APIConnectionError as error:
        raise _connection_error(error) from error
    except sdk.APIStatusError as error:
        raise status_error(error, clock) from error
    except (sdk.APIError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BadAnswer(f"the answer is not of the API: {_words(error)}") from error


def _connection_error(error: Exception) -> ProviderError:
    """What broke the connection: ourselves (``wire.py``), the address, or the network."""
    cause = error.__cause__
    if isinstance(cause, ProviderError):
        return cause
    if type(cause).__name__ in _UNSENDABLE:
        return ProviderPermanent(
            f"nothing can be sent: {_words(cause)}", hint="check provider.base_url and the key"
        )
    why = f" ({_words(cause)})" if cause is not None and str(cause) else ""
    return ProviderUnavailable(f"no connection: {_words(error)}{why}", free=_is_unconnected(error))


def status_error(error: Any, clock: Clock) -> ProviderError:
    """Our error for an HTTP status: see the product's retry policy for what each one costs."""
    status = int(error.status_code)
    said = f"the provider answered {status}: {_words(error)}"
    if status == 400 and _NO_CREDIT in said.lower():
        status = 402
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


def tokens(said: object) -> int:
    """How many tokens a server says it counted: from 0 up, whatever it says."""
    return max(0, min(said, _MOST_TOKENS)) if isinstance(said, int) else 0


def _words(error: Any) -> str:
    """The error's own words: one line, bounded, without secrets."""
    message = getattr(error, "message", None)
    text = message if isinstance(message, str) else str(error)
    return clip(fold(redact(text[:4_000])[0]), 300) or type(error).__name__


def within(request: Request, call: Callable[[], T], give_up: Callable[[], None]) -> T:
    """The result of ``call``; ``ProviderUnavailable`` at the request's limit or when called off.

    The SDK's own timeout counts each read, so a server that drips would hold the call for ever. The
    abandoned thread ends when ``give_up`` closes what it reads from.
    """
    result: list[T] = []
    failed: list[Exception] = []
    over = threading.Event()

    def run() -> None:
        try:
            result.append(call())
        except Exception as error:  # noqa: BLE001 - thread top: the caller raises it
            failed.append(error)
        finally:
            over.set()

    thread = threading.Thread(target=run, name="provider-call", daemon=True)
    thread.start()
    with request.off.stops(over.set):
        over.wait(request.timeout_seconds)
    if failed:
        raise failed[0]
    if result:
        return result[0]
    if over.is_set() and not request.off.called:
        raise BadAnswer("the call ended without an answer")
    give_up()
    if request.off.called:
        raise ProviderUnavailable("the call was called off")
    raise ProviderUnavailable(f"the provider did not answer within {request.timeout_seconds:g} s")
