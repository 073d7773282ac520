"""The wire under the SDKs: bounded in bytes and time, and never led elsewhere.

The SDKs read an answer whole before they look at it, follow redirects with the prompt and with
their own key header, and unpack what is compressed however large that becomes. None of it may
happen: what answers may be anything that stands at the address.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from memoryd.memory.errors import BadAnswer, ProviderPermanent, ProviderUnavailable
from memoryd.memory.scanner import redact
from memoryd.memory.text import clip, fold

#: More than any answer to our questions: a few thousand tokens, and what a server says about them.
ANSWER_BYTES = 4 << 20
#: How much of a call's time connecting may take.
_CONNECTING = 0.75
#: Sent with each call. What is not compressed cannot unpack to gigabytes.
HEADERS = {"Accept-Encoding": "identity"}


def timeouts(sdk: ModuleType, seconds: float) -> Any:
    """The SDK's limits of each step of a call of ``seconds``.

    A connection that is not made in most of them never is: said before the call as a whole is given
    up, so that it is known that nothing was sent.
    """
    return sdk.Timeout(seconds, connect=seconds * _CONNECTING)


def http_client(sdk: ModuleType, seconds: float) -> Any:
    """The HTTP client of ``sdk``, bounded: an answer of ``ANSWER_BYTES`` within ``seconds``.

    Proxies are those of the process's environment, as the SDK reads it. Raises
    ``ProviderPermanent`` where that, or a certificate it names, cannot be used.
    """
    deadline = time.monotonic() + seconds

    def look(response: Any) -> None:
        """Refuse what is no answer before any of it is read, and bound the rest."""
        _refuse(response)
        response.stream = _bounded(response, deadline)

    try:
        return sdk.DefaultHttpxClient(
            timeout=seconds, follow_redirects=False, event_hooks={"response": [look]}
        )
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise ProviderPermanent(
            f"no connection can be prepared: {clip(fold(redact(str(error))[0]), 200)}",
            hint="check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and SSL_CERT_FILE as the service sees"
            " them",
        ) from error


def _refuse(response: Any) -> None:
    """Raise for what cannot be the API's: it is somebody else who answers."""
    kind = response.headers.get("content-type", "").lower()
    if 300 <= response.status_code < 400:
        raise ProviderUnavailable(
            f"the provider sends us elsewhere ({response.status_code})",
            hint="where it has moved for good, set provider.base_url to its new address",
            free=True,
        )
    if response.status_code < 300 and kind.startswith(("text/html", "application/xhtml")):
        raise ProviderUnavailable(
            "a web page came instead of an answer",
            hint="check provider.base_url, and whether the network wants a login",
            free=True,
        )
    if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
        if response.status_code < 300:
            raise BadAnswer("the answer is compressed, which it was asked not to be")
        del response.headers["content-encoding"]  # the status says enough


def _bounded(response: Any, deadline: float) -> Any:
    """The response's stream, ended where it is too long or the monotonic ``deadline`` is past."""
    library, stream = sys.modules[type(response).__module__.partition(".")[0]], response.stream

    class Bounded(library.SyncByteStream):  # type: ignore[name-defined, misc]
        """What the library reads an answer from."""

        def __iter__(self) -> Iterator[bytes]:
            read = 0
            for chunk in stream:
                read += len(chunk)
                if read > ANSWER_BYTES:
                    raise BadAnswer(f"the answer is longer than {ANSWER_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    raise library.ReadTimeout("the answer took too long")
                yield chunk

        def close(self) -> None:
            stream.close()

    return Bounded()
