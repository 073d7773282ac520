"""Anthropic's messages, through the official SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoryd.memory.clock import Clock, SystemClock
from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import BadAnswer, ProviderPermanent
from memoryd.memory.providers.base import Reply, Request, bounded
from memoryd.memory.providers.keys import read_key
from memoryd.memory.providers.remote import ask, load_sdk, tokens, within
from memoryd.memory.providers.wire import HEADERS, http_client, timeouts


class AnthropicProvider:
    """The messages API of Anthropic, or of ``base_url``. The SDK's retries are off."""

    name = "anthropic"
    costs = True
    consolidates = True

    def __init__(
        self, settings: ProviderSettings, environ: Mapping[str, str], clock: Clock | None = None
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._clock = clock or SystemClock()

    def complete(self, request: Request) -> Reply:
        """Answer one request; see ``Provider`` for what it raises."""
        if not self._settings.model:
            raise ProviderPermanent("no model is configured", hint="set provider.model")
        anthropic = load_sdk("anthropic")
        key = read_key(self._settings, self._environ, "ANTHROPIC_API_KEY")
        client = anthropic.Anthropic(
            api_key=key or "none",
            base_url=self._settings.base_url or None,
            max_retries=0,
            timeout=timeouts(anthropic, request.timeout_seconds),
            default_headers=HEADERS,
            http_client=http_client(anthropic, request.timeout_seconds),
        )

        def call() -> Reply:
            """Send it; what the SDK raises is sorted by ``ask``."""
            return _reply(
                client.messages.create(
                    model=self._settings.model,
                    system=request.system,
                    messages=[{"role": "user", "content": request.prompt}],
                    max_tokens=request.max_tokens,
                )
            )

        with client:
            reply = within(request, lambda: ask(anthropic, call, self._clock), client.close)
        return bounded(reply, request)


def _reply(message: Any) -> Reply:
    """The text blocks as one. Raises ``BadAnswer`` for anything that has none."""
    blocks = getattr(message, "content", None)
    texts = [getattr(block, "text", None) for block in blocks] if isinstance(blocks, list) else []
    text = "".join(text for text in texts if isinstance(text, str))
    if not text.strip():
        raise BadAnswer("the provider's answer is empty or is no message")
    usage = getattr(message, "usage", None)
    return Reply(
        text=text,
        input_tokens=tokens(getattr(usage, "input_tokens", 0)),
        output_tokens=tokens(getattr(usage, "output_tokens", 0)),
    )
