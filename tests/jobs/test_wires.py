"""Both SDKs on a real wire, through a worker: what the job, the queue and the budget make of it."""

from __future__ import annotations

import email.utils
import gzip
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from wires import Script, Talk, Wire, answer, error, head, says, sends
from world import NOTHING, World

from memoryd.memory.config import ProviderSettings
from memoryd.memory.providers import wire as wire_module
from memoryd.memory.providers.anthropic import AnthropicProvider
from memoryd.memory.providers.base import Reply, Request
from memoryd.memory.providers.openai import OpenAIProvider
from memoryd.memory.testing import FakeClock

DAY = 86_400
SAID = "Always run the linter before you commit."
_BOTH = pytest.mark.parametrize("name", ["openai", "anthropic"])
_PATIENT = 60.0
_HURRIED = 0.25


@dataclass(frozen=True)
class End:
    """What one call left behind; ``wait`` in seconds, None for a retry with its jitter."""

    status: str
    code: str
    wait: int | None
    breaker: str | None
    spent: str


def away(spent: str = "nothing", wait: int = 15) -> End:
    """No answer: the job waits at no cost, and the queue with it."""
    return End("waiting", "provider.unavailable", wait, "open provider.unavailable", spent)


def limited(wait: int) -> End:
    """The service said that it is too much."""
    return End("waiting", "provider.limited", wait, "open provider.limited", "nothing")


STOPPED = End("waiting", "provider.permanent", 3600, "stopped provider.permanent", "nothing")
BAD = End("retrying", "answer.unusable", None, None, "kept")
DONE = End("completed", "nothing.durable", 0, None, "told")


def _date(seconds: int) -> str:
    return email.utils.formatdate(FakeClock().now_ms() / 1000 + seconds, usegmt=True)


def _drip(talk: Talk) -> None:
    talk.read()
    talk.send(head(200, content_type="application/json", content_length=1_000_000))
    while not talk.over.wait(0.02):
        talk.send(b" ")


def _gigabytes(talk: Talk) -> None:
    talk.read()
    talk.send(head(200, content_type="application/json", transfer_encoding="chunked"))
    piece = b" " * (1 << 16)
    while not talk.over.is_set():
        talk.send(b"10000\r\n" + piece + b"\r\n")


def _endless(piece: bytes) -> Script:
    """Say the same again and again, as long as anybody listens."""

    def script(talk: Talk) -> None:
        talk.read()
        talk.send(b"HTTP/1.1 200 Said\r\n" if b": " in piece else b"")
        while not talk.over.is_set():
            talk.send(piece)

    return script


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _silent(talk: Talk) -> None:
    talk.read()
    talk.silent()


_HTML = b"<html><body>Welcome to the hotel. Please log in.</body></html>"
_CHUNKED = head(200, content_type="application/json", transfer_encoding="chunked")


#: What the server does, and how that ends.
TABLE: dict[str, tuple[Script, End]] = {
    "400": (says(400, error()), BAD),
    "400 no credit": (says(400, error("Your credit balance is too low")), STOPPED),
    "401": (says(401, error()), STOPPED),
    "402": (says(402, error()), STOPPED),
    "403": (says(403, error()), STOPPED),
    "404 model": (says(404, error("model not found")), STOPPED),
    "405": (says(405, error()), STOPPED),
    "407": (says(407, error()), away()),
    "408": (says(408, error()), away("kept")),
    "413": (says(413, error()), BAD),
    "422": (says(422, error()), BAD),
    "429": (says(429, error()), limited(3600)),
    "429 in 90 s": (says(429, error(), retry_after=90), limited(90)),
    "429 in 1 ms": (says(429, error(), retry_after_ms=1), limited(15)),
    "429 at once": (says(429, error(), retry_after=0), limited(15)),
    "429 negative": (says(429, error(), retry_after=-5), limited(3600)),
    "429 infinite": (says(429, error(), retry_after="1e999"), limited(3600)),
    "429 absurd": (says(429, error(), retry_after="9" * 400), limited(3600)),
    "429 in 30 years": (says(429, error(), retry_after=999_999_999), limited(DAY - 1)),
    "429 words": (says(429, error(), retry_after="later"), limited(3600)),
    "429 date": (says(429, error(), retry_after=_date(90)), limited(90)),
    "429 past date": (says(429, error(), retry_after=_date(-90)), limited(15)),
    "429 date in a year": (says(429, error(), retry_after=_date(365 * DAY)), limited(DAY - 1)),
    "500": (says(500, error()), away("kept")),
    "502 as HTML": (says(502, _HTML, content_type="text/html"), away("kept")),
    "503": (says(503, error(), retry_after=3), away()),
    "503 compressed": (says(503, b"\x1f\x8b\x08", content_encoding="gzip"), away()),
    "529": (says(529, error()), away()),
    "HTML": (says(200, _HTML, content_type="text/html; charset=utf-8"), away()),
    "HTML said to be JSON": (says(200, _HTML), BAD),
    "redirect": (says(307, location="http://127.0.0.1:9/elsewhere"), away()),
    "no content": (sends(head(204)), BAD),
    "invalid UTF-8": (says(200, b'{"choices": "\xff\xfe", "content": "\xc3"}'), BAD),
    "deep": (says(200, b"[" * 100_000), BAD),
    "gzip bomb": (says(200, gzip.compress(b" " * 9_000_000), content_encoding="gzip"), BAD),
    "gigabytes": (_gigabytes, BAD),
    "endless headers": (_endless(b"x-more: " + b"x" * 4_000 + b"\r\n"), away("kept")),
    "endless promises": (_endless(b"HTTP/1.1 100 Continue\r\n\r\n"), away("kept")),
    "closed at once": (lambda talk: None, away("kept")),
    "closed after the request": (sends(), away("kept")),
    "cut in the headers": (sends(head(200)[:-9]), away("kept")),
    "cut in the body": (sends(head(200, content_length=5_000) + b'{"id": "x",'), away("kept")),
    "longer than told": (sends(head(200, content_length=9) + b'{"id": "x", "choices": []}'), BAD),
    "cut in a chunk": (sends(_CHUNKED, _chunk(b'{"id":'), b"fff\r\n{"), away("kept")),
    "no HTTP": (sends(b"220 mail.example ESMTP\r\n"), away("kept")),
    "silent": (_silent, away("kept")),
    "drip": (_drip, away("kept")),
}
_SLOW = {"silent", "drip", "endless promises"}


class Line:
    """The real provider of one address, which each call looks up anew; it can be hurried."""

    costs = True
    consolidates = True

    def __init__(self, name: str, clock: FakeClock) -> None:
        self.name = name
        self.clock = clock
        self.url = ""
        self.seconds = _PATIENT

    def complete(self, request: Request) -> Reply:
        """Ask the address there is now."""
        settings = ProviderSettings(
            name=self.name,  # type: ignore[arg-type]
            model="m",
            base_url=self.url,
            api_key_env="K",
        )
        one = OpenAIProvider if self.name == "openai" else AnthropicProvider
        provider = one(settings, {"K": "test-" + "key"}, self.clock)
        return provider.complete(replace(request, timeout_seconds=self.seconds))


class Asking:
    """One home whose sessions are read over the wire, a new one for each call."""

    def __init__(self, folder: Path, clock: FakeClock, name: str) -> None:
        self.line = Line(name, clock)
        self.world = World(folder, clock, provider=self.line)
        self.sessions = 0

    def end(self, url: str, seconds: float = _PATIENT) -> End:
        """How a session ends that is read at ``url``; the queue is as before afterwards."""
        self.line.url, self.line.seconds = url, seconds
        self.sessions += 1
        ledger = self.world.ledger
        before = ledger.budget.today(self.line.name)
        job = self.world.finalize(self.world.transcript(f"s{self.sessions}").user(SAID))
        spent = ledger.budget.today(self.line.name)
        assert spent.calls == before.calls + 1
        breaker = ledger.breakers.of(self.line.name)
        if breaker is not None and breaker.state == "open":
            assert breaker.until == job.run_at - 1
            assert breaker.detail
        found = End(
            job.shown_status,
            job.outcome_code or job.wait_reason or str(job.error_code),
            None if job.failures else (job.run_at - self.world.clock.now_ms()) // 1000,
            breaker and f"{breaker.state} {breaker.reason}",
            {0: "nothing", 16: "told"}.get(spent.tokens - before.tokens, "kept"),
        )
        ledger.breakers.resume(self.line.name)
        ledger.cancel(job)
        return found


@pytest.fixture(scope="module")
def authorities() -> ssl.SSLContext:
    """The certificates of the world."""
    return ssl.create_default_context()


@pytest.fixture
def known_authorities(monkeypatch: pytest.MonkeyPatch, authorities: ssl.SSLContext) -> None:
    """The certificates of the world are read once: that is most of what a call here costs."""
    monkeypatch.setattr(ssl, "create_default_context", lambda *what, **more: authorities)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.usefixtures("known_authorities")
@_BOTH
def test_whatever_the_wire_says_has_its_class(tmp_path: Path, clock: FakeClock, name: str) -> None:
    """Status, reason, time, failures, breaker and budget, for each answer and each silence."""
    asking = Asking(tmp_path, clock, name)
    more = {
        "an answer": (says(200, answer(name, NOTHING)), DONE),
        "a book": (says(200, answer(name, NOTHING + " " * 16_384)), BAD),
    }
    found, table = {}, TABLE | more

    for what, (script, _) in table.items():
        with Wire(script) as wire:
            found[what] = asking.end(wire.url, _HURRIED if what in _SLOW else _PATIENT)
            assert len(wire.asked) <= 1, f"{what}: asked again by itself"

    assert found == {what: end for what, (_, end) in table.items()}


@contextmanager
def _full() -> Iterator[str]:
    """A socket that accepts nobody any more: a connect waits."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def _refused() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@_BOTH
def test_where_nobody_answers_nothing_is_spent(
    tmp_path: Path, clock: FakeClock, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused, never accepted, no such name, no TLS; and an address nothing can be sent to."""
    asking = Asking(tmp_path, clock, name)
    asked: list[object] = []

    def resolve(host: object, *more: object, **other: object) -> object:
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # Connecting may take little of the time, so that a busy machine does not give up on the whole.
    monkeypatch.setattr(wire_module, "_CONNECTING", 0.1)
    found = {"refused": asking.end(_refused())}
    with _full() as url:
        found["never accepted"] = asking.end(url, 2.5)
    with Wire(lambda talk: talk.send(b"220 mail.example ESMTP\r\n" * 9)) as wire:
        found["no TLS"] = asking.end(wire.url.replace("http:", "https:"))
    with Wire(Talk.silent) as wire:
        found["silent TLS"] = asking.end(wire.url.replace("http:", "https:"), 2.5)
    found["no scheme"] = asking.end("127.0.0.1:9/v1")
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", resolve)
        found["no such name"] = asking.end("http://api.memoryd.invalid")

    assert asked == ["api.memoryd.invalid"]
    assert found.pop("no scheme") == STOPPED
    assert found == dict.fromkeys(found, away())


@_BOTH
def test_neither_key_nor_prompt_follows_a_redirect(
    tmp_path: Path, clock: FakeClock, name: str
) -> None:
    """Whoever answers at the address could else have them sent anywhere."""
    asking = Asking(tmp_path, clock, name)

    other = Wire(says(200, answer(name, NOTHING)))
    with other, Wire(says(307, location=f"{other.url}/elsewhere")) as wire:
        assert asking.end(wire.url) == away()
        assert len(wire.asked) == 1

    assert other.asked == []


@_BOTH
def test_the_proxy_of_the_environment_is_asked(
    tmp_path: Path, clock: FakeClock, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for any program; one that cannot be used is said, and stops the queue."""
    asking = Asking(tmp_path, clock, name)

    with Wire(says(200, answer(name, NOTHING))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        through = asking.end("http://api.memoryd.invalid")
        (asked,) = proxy.asked
        assert b" http://api.memoryd.invalid/" in asked.split(b"\r\n")[0]
    gone = asking.end("http://api.memoryd.invalid")
    monkeypatch.setenv("HTTP_PROXY", "gopher://127.0.0.1:70")
    unusable = asking.end("http://api.memoryd.invalid")
    monkeypatch.delenv("HTTP_PROXY")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere"))
    untrusted = asking.end("https://127.0.0.1:9")

    assert (through, gone, unusable, untrusted) == (DONE, away(), STOPPED, STOPPED)


@pytest.mark.usefixtures("known_authorities")
@_BOTH
@pytest.mark.parametrize("told", [-1_000_000, 10**30, "many", None, 1e400])
def test_a_server_cannot_talk_the_budget_away(
    tmp_path: Path, clock: FakeClock, name: str, told: object
) -> None:
    """What it says it counted is from nothing up, and no number that breaks the ledger."""
    asking = Asking(tmp_path, clock, name)
    keys = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    with Wire(says(500, error())) as wire:
        asking.end(wire.url)
    before = asking.world.ledger.budget.today(name).tokens

    with Wire(says(200, answer(name, NOTHING, **dict.fromkeys(keys, told)))) as wire:
        assert asking.end(wire.url).status == "completed"

    assert asking.world.ledger.budget.today(name).tokens >= before
