"""Any server that speaks OpenAI's chat completions, through the official SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memoryd.memory.clock import Clock, SystemClock
from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import BadAnswer, ProviderPermanent
from memoryd.memory.providers.base import Reply, Request, bounded
from memoryd.memory.providers.keys import read_key
from memoryd.memory.providers.remote import ask, load_sdk, status_error, tokens, within
from memoryd.memory.providers.wire import HEADERS, http_client, timeouts

if TYPE_CHECKING:
    from openai import OpenAI

#: Sent first; what a server refuses by name is left out, or renamed, and remembered.
_OPTIONS = ("response_format", "temperature", "max_tokens")


class OpenAIProvider:
    """Chat completions of ``base_url`` (or OpenAI itself). The SDK's retries are off."""

    name = "openai"
    costs = True
    consolidates = True

    def __init__(
        self, settings: ProviderSettings, environ: Mapping[str, str], clock: Clock | None = None
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._clock = clock or SystemClock()
        self._refused: frozenset[str] = frozenset()

    def complete(self, request: Request) -> Reply:
        """Answer one request; see ``Provider`` for what it raises."""
        if not self._settings.model:
            raise ProviderPermanent("no model is configured", hint="set provider.model")
        openai = load_sdk("openai")
        key = read_key(self._settings, self._environ, "OPENAI_API_KEY")
        client = openai.OpenAI(
            api_key=key or "none",
            base_url=self._settings.base_url or None,
            max_retries=0,
            timeout=timeouts(openai, request.timeout_seconds),
            default_headers=HEADERS,
            http_client=http_client(openai, request.timeout_seconds),
        )
        with client:
            reply = within(
                request,
                lambda: ask(openai, lambda: self._complete(client, request), self._clock),
                client.close,
            )
        return bounded(reply, request)

    def _complete(self, client: OpenAI, request: Request) -> Reply:
        import openai

        while True:
            refused = self._refused
            try:
                return _reply(client.chat.completions.create(**self._body(request)))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                said = f"{error.message} {error.param}".lower()
                named = {option for option in _OPTIONS if option in said} - refused
                if not named:
                    raise status_error(error, self._clock) from error
                self._refused = refused | named

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._settings.model,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.prompt},
            ],
        }
        if "response_format" not in self._refused:
            body["response_format"] = {"type": "json_object"}
        if "temperature" not in self._refused:
            body["temperature"] = 0
        limit = "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens"
        return {**body, limit: request.max_tokens}


def _reply(completion: Any) -> Reply:
    """The text of the first choice. Raises ``BadAnswer`` for anything that has none."""
    choices = getattr(completion, "choices", None)
    message = getattr(choices[0], "message", None) if choices else None
    text = getattr(message, "content", None)
    if not isinstance(text, str) or not text.strip():
        raise BadAnswer("the provider's answer is empty or is no chat completion")
    usage = getattr(completion, "usage", None)
    return Reply(
        text=text,
        input_tokens=tokens(getattr(usage, "prompt_tokens", 0)),
        output_tokens=tokens(getattr(usage, "completion_tokens", 0)),
    )
