"""Both SDKs against a real server on this machine: what each status and each nonsense becomes."""

from __future__ import annotations

import email.utils
import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memoryd.memory.clock import Clock
from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import (
    BadAnswer,
    ProviderError,
    ProviderLimited,
    ProviderPermanent,
    ProviderUnavailable,
)
from memoryd.memory.providers.anthropic import AnthropicProvider
from memoryd.memory.providers.base import CallOff, Provider, Reply, Request
from memoryd.memory.providers.openai import OpenAIProvider
from memoryd.memory.providers.registry import make
from memoryd.memory.testing import FakeClock

_KEY = "test-" + "key-1"
_REQUEST = Request("the system", "the prompt", (), (), 77, 60)

#: (status, headers, body) for a request body, in the server's words.
_Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def authorities() -> ssl.SSLContext:
    """The certificates of the world."""
    return ssl.create_default_context()


@pytest.fixture(autouse=True)
def known_authorities(monkeypatch: pytest.MonkeyPatch, authorities: ssl.SSLContext) -> None:
    """The certificates of the world are read once: that is most of what a call here costs."""
    monkeypatch.setattr(ssl, "create_default_context", lambda *what, **more: authorities)


class _Server:
    def __init__(self, answer: Callable[[dict[str, Any]], _Answer]) -> None:
        self.seen: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        seen, headers = self.seen, self.headers

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                seen.append(body)
                headers.append({name.lower(): value for name, value in self.headers.items()})
                status, more, data = answer(body)
                self.send_response(status)
                for name, value in {"content-type": "application/json", **more}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Keep the test's output clean."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    @contextmanager
    def running(self) -> Iterator[_Server]:
        thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            thread.join()
            self._http.server_close()


def _openai(text: Any) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
    return json.dumps(
        {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
         "usage": usage}
    ).encode()  # fmt: skip


def _anthropic(text: Any) -> bytes:
    content = [{"type": "text", "text": text}] if text is not None else []
    usage = {"input_tokens": 11, "output_tokens": 5}
    return json.dumps(
        {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": content,
         "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    ).encode()  # fmt: skip


def _provider(name: Any, url: str, clock: Clock | None = None) -> Provider:
    settings = ProviderSettings(name=name, model="m", base_url=url, api_key_env="THE_KEY")
    environ = {"THE_KEY": _KEY}
    if name == "openai":
        return OpenAIProvider(settings, environ, clock)
    return AnthropicProvider(settings, environ, clock)


def _call(
    name: str, answer: _Answer | Callable[[dict[str, Any]], _Answer], clock: Clock | None = None
) -> tuple[Reply | ProviderError, _Server]:
    server = _Server(answer if callable(answer) else lambda body: answer)
    with server.running():
        try:
            return _provider(name, server.url, clock).complete(_REQUEST), server
        except ProviderError as error:
            return error, server


_BOTH = pytest.mark.parametrize("name", ["openai", "anthropic"])


@pytest.mark.parametrize(("name", "body"), [("openai", _openai), ("anthropic", _anthropic)])
def test_an_answer_comes_back_with_its_tokens(name: str, body: Callable[[Any], bytes]) -> None:
    """System, prompt, model, limit and key are sent; text and usage come back."""
    reply, server = _call(name, (200, {}, body('{"facts": []}')))

    assert reply == Reply('{"facts": []}', 11, 5)
    (sent,) = server.seen
    assert (sent["model"], sent["max_tokens"]) == ("m", 77)
    assert "the system" in json.dumps(sent)
    assert "the prompt" in json.dumps(sent)
    assert any(_KEY in value for value in server.headers[0].values())


@_BOTH
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadAnswer),
        (401, ProviderPermanent),
        (402, ProviderPermanent),
        (403, ProviderPermanent),
        (404, ProviderPermanent),
        (408, ProviderUnavailable),
        (409, ProviderUnavailable),
        (413, BadAnswer),
        (429, ProviderLimited),
        (500, ProviderUnavailable),
        (503, ProviderUnavailable),
        (529, ProviderUnavailable),
    ],
)
def test_each_status_has_its_error_and_is_asked_once(
    name: str, status: int, kind: type[ProviderError]
) -> None:
    """The retry policy is ours: the SDK asks once and the status decides."""
    body = json.dumps({"error": {"message": "no", "type": "x"}}).encode()

    error, server = _call(name, (status, {}, body))

    assert type(error) is kind
    assert len(server.seen) == 1
    assert str(status) in str(error)
    assert error.free is (status in {401, 402, 403, 404, 409, 429, 503, 529})
    if isinstance(error, ProviderPermanent):
        assert error.hint


@_BOTH
@pytest.mark.parametrize("form", ["seconds", "milliseconds", "date", "none", "nonsense", "years"])
def test_a_limit_lifts_when_the_server_says(name: str, form: str) -> None:
    """Retry-After in seconds or as a date is wall time of the end; nonsense is unknown."""
    clock = FakeClock()
    now = clock.now_ms()
    date = email.utils.formatdate((now + 90_000) / 1000, usegmt=True)
    headers, until = {
        "seconds": ({"retry-after": "90"}, now + 90_000),
        "milliseconds": ({"retry-after-ms": "1500"}, now + 1_500),
        "date": ({"retry-after": date}, now + 90_000),
        "none": ({}, None),
        "nonsense": ({"retry-after": "soon"}, None),
        "years": ({"retry-after": "999999999"}, now + 7 * 86_400_000),
    }[form]

    error, _ = _call(name, (429, headers, b"{}"), clock)

    assert isinstance(error, ProviderLimited)
    assert error.until_ms == until


_HTML = {"content-type": "text/html"}


@_BOTH
@pytest.mark.parametrize(
    "answer",
    [
        (200, {}, b"<html>not json at all"),
        (200, {}, b"{}"),
        (200, {}, b"[]"),
        (200, {}, b"null"),
        (200, {}, b'"text"'),
        (200, {}, b""),
        (200, {}, b'{"choices": [], "content": []}'),
        (200, {}, b'{"choices": "x", "content": "x"}'),
        (200, {}, b'{"choices": [{"message": {"content": ""}}], "content": [{"text": " "}]}'),
    ],
    ids=range(9),
)
def test_what_is_no_answer_is_a_bad_one(name: str, answer: _Answer) -> None:
    """Broken JSON, the wrong JSON and empty texts are bad answers, not crashes."""
    error, _ = _call(name, answer)

    assert type(error) is BadAnswer


@_BOTH
def test_no_server_is_unavailable(name: str) -> None:
    """A refused connection costs no failure, and no tokens."""
    server = _Server(lambda body: (200, {}, b""))
    with server.running():
        url = server.url

    with pytest.raises(ProviderUnavailable) as away:
        _provider(name, url).complete(_REQUEST)

    assert away.value.free


@_BOTH
def test_a_server_that_drips_is_given_up(name: str) -> None:
    """The limit is of the whole call: a server that never finishes is unavailable."""
    release = threading.Event()

    def hang(body: dict[str, Any]) -> _Answer:
        release.wait(60)
        return 200, {}, b"{}"

    server = _Server(hang)
    with server.running():
        request = Request("s", "p", (), (), 10, 0.3)
        with pytest.raises(ProviderUnavailable) as away:
            _provider(name, server.url).complete(request)
        release.set()
    assert not away.value.free


@_BOTH
def test_a_call_that_is_called_off_is_given_up_at_once(name: str) -> None:
    """Whatever its limit: nobody waits for a server that is not to answer any more."""
    request, release = replace(_REQUEST, off=CallOff()), threading.Event()

    def hang(body: dict[str, Any]) -> _Answer:
        request.off.call()
        release.wait(60)
        return 200, {}, b"{}"

    server = _Server(hang)
    with server.running():
        try:
            with pytest.raises(ProviderUnavailable, match="called off") as away:
                _provider(name, server.url).complete(request)
        finally:
            release.set()
    assert (len(server.seen), away.value.free) == (1, False)


def test_options_a_server_refuses_are_left_out_and_remembered() -> None:
    """JSON mode, temperature and the old limit are given up by name; the next call knows."""

    def picky(body: dict[str, Any]) -> _Answer:
        for option in ("response_format", "temperature", "max_tokens"):
            if option in body:
                said = {"error": {"message": f"Unsupported parameter: '{option}'", "type": "x"}}
                return 400, {}, json.dumps(said).encode()
        return 200, {}, _openai("{}")

    server = _Server(picky)
    with server.running():
        provider = _provider("openai", server.url)
        provider.complete(_REQUEST)
        first = len(server.seen)
        provider.complete(_REQUEST)

    assert (first, len(server.seen)) == (4, 5)
    assert server.seen[-1]["max_completion_tokens"] == 77


@_BOTH
def test_an_error_never_quotes_a_secret(name: str) -> None:
    """What a server says is redacted and cut to one line."""
    token = "sk-" + "proj-" + "a1B2c3D4" * 5
    said = {"error": {"message": f"bad key {token}\n" + "x" * 5000, "type": "x"}}

    error, _ = _call(name, (401, {}, json.dumps(said).encode()))

    assert token not in str(error)
    assert len(str(error)) < 600


@_BOTH
def test_no_model_and_no_key_are_permanent_with_a_hint(name: Any) -> None:
    """What is missing in the configuration is said by the first call."""
    for settings in (
        ProviderSettings(name=name),
        ProviderSettings(name=name, model="m"),
        ProviderSettings(name=name, model="m", api_key_env="NOT_SET"),
        ProviderSettings(name=name, model="m", api_key_file="/nowhere/key"),
    ):
        with pytest.raises(ProviderPermanent) as caught:
            make(settings, {}, Path("unused")).complete(_REQUEST)
        assert caught.value.hint


def test_a_key_file_must_belong_to_its_owner_alone(tmp_path: Path) -> None:
    """0600 is read; group or world readable is refused with the command that mends it."""
    key = tmp_path / "key"
    key.write_text(f"{_KEY}\n")
    key.chmod(0o600)
    server = _Server(lambda body: (200, {}, _openai("{}")))
    with server.running():
        settings = ProviderSettings(
            name="openai", model="m", base_url=server.url, api_key_file=str(key)
        )
        make(settings, {}, Path("unused")).complete(_REQUEST)
        key.chmod(0o640)
        with pytest.raises(ProviderPermanent) as caught:
            make(settings, {}, Path("unused")).complete(_REQUEST)

    assert server.headers[0]["authorization"] == f"Bearer {_KEY}"
    assert caught.value.hint == f"run: chmod 600 {key}"
    assert _KEY not in str(caught.value)


@_BOTH
@pytest.mark.parametrize("key", ["two words", "line\nbreak", "“quoted”", "tab\tbed", "nul\0"])
def test_a_key_that_no_header_can_hold_is_said_before_it_is_sent(name: Any, key: str) -> None:
    """Pasted with quotes or a line break: asking again cannot help, and it is not repeated."""
    settings = ProviderSettings(
        name=name, model="m", base_url="http://127.0.0.1:9", api_key_env="K"
    )

    with pytest.raises(ProviderPermanent, match="K holds is no key") as caught:
        make(settings, {"K": key}, Path("unused")).complete(_REQUEST)

    assert key not in str(caught.value)


@_BOTH
def test_a_package_that_is_not_installed_is_named(name: Any, monkeypatch: Any) -> None:
    """The queue stops and says what to install, instead of failing each job for good."""
    monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(ProviderPermanent) as caught:
        make(ProviderSettings(name=name, model="m"), {}, Path("unused")).complete(_REQUEST)

    assert f"memoryd[{name}]" in caught.value.hint


@_BOTH
def test_a_fault_in_the_thread_of_a_call_reaches_the_worker(name: Any, monkeypatch: Any) -> None:
    """Whatever it is: a thread that ends without a word looks like an answer that never was."""

    def body(*what: object, **more: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(f"{name}._base_client.SyncAPIClient.post", body)

    with pytest.raises(MemoryError):
        _provider(name, "http://127.0.0.1:9").complete(_REQUEST)
