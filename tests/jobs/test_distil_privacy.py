"""Secrets and words: what must never leave a transcript, in files, prompts and logs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import structlog
from world import SECRET, World, answer, fact

from memoryd.memory.errors import (
    BadAnswer,
    ProviderError,
    ProviderLimited,
    ProviderPermanent,
    ProviderUnavailable,
)
from memoryd.memory.log import configure
from memoryd.memory.providers.base import Reply, Request
from memoryd.memory.testing import FakeClock

RULE = "Always run the linter before you commit."
#: A word that stands in the transcripts of these tests and nowhere else.
WORD = "xylophonic"
PASSWORD = "hunter2" + "-Vx9q!kQz"


@pytest.fixture
def log() -> io.StringIO:
    """What is logged, as a daemon would write it."""
    written = io.StringIO()
    configure(written, verbose=True)
    yield written
    structlog.reset_defaults()


class Echo:
    """A provider that quotes what it was asked, in its answer or in what it raises."""

    name = "scripted"
    costs = True
    consolidates = True

    def __init__(self, error: type[Exception] | None = None) -> None:
        self.error = error
        self.asked: list[Request] = []

    def complete(self, request: Request) -> Reply:
        """Quote the request."""
        self.asked.append(request)
        if self.error is not None:
            raise self.error(f"could not read: {request.messages[0].text}")
        statement = request.messages[0].text[:400]
        return Reply(answer(fact(statement)), 1, 1)


def secrets_in(text: str) -> list[str]:
    """Which of the secrets stand in ``text``."""
    return [secret for secret in (SECRET, PASSWORD) if secret in text]


def session(world: World) -> str:
    """A session in which secrets were pasted in every place there is; the transcript's bytes."""
    said = world.transcript()
    said.user(f"{RULE} The key is {SECRET} by the way.")
    said.assistant(f"I have put {SECRET} into the environment.")
    said.user(f"postgres://admin:{PASSWORD}@db.example/main is the address")
    said.tool_result(f"export TOKEN={SECRET}")
    world.finalize(said)
    return said.path.read_text()


def test_a_secret_reaches_no_file_and_no_prompt_and_no_log(
    tmp_path: Path, clock: FakeClock, log: io.StringIO
) -> None:
    """All bytes of the home, sqlite pages and git objects laid open; the words around it do."""
    provider = Echo()
    world = World(tmp_path, clock, provider=provider)

    assert secrets_in(session(world)) == [SECRET, PASSWORD]

    (job,) = world.ledger.records.jobs()
    assert job.outcome_code == "notes.written"
    assert any(RULE in body for body in world.bodies())
    world.ledger.db.rows("pragma wal_checkpoint")
    world.place.close()
    looked = list(world.bytes_of_home())
    assert any(b"run the linter" in data for path, data in looked if "objects" in path.parts)
    assert [path for path, data in looked if secrets_in(data.decode("latin-1"))] == []
    for request in provider.asked:
        assert secrets_in(request.system + request.prompt) == []
        assert secrets_in("".join(message.text for message in request.messages)) == []
    assert secrets_in(log.getvalue()) == []


@pytest.mark.parametrize("error", [None, ValueError, KeyError, ProviderLimited])
def test_no_word_of_a_transcript_is_logged(
    tmp_path: Path, clock: FakeClock, log: io.StringIO, error: type[Exception] | None
) -> None:
    """Whatever happens to the job: not by an event, an error's message or a frame's variables."""
    world = World(tmp_path, clock, provider=Echo(error))

    job = world.finalize(world.transcript().user(f"{RULE} And {WORD} it is."))

    assert job.attempt == 1
    assert '"event": "attempt.ended"' in log.getvalue()
    if error in (ValueError, KeyError):
        assert job.error_code == "attempt.error"
        assert error.__name__ in log.getvalue()
        assert "test_distil_privacy.py" in log.getvalue()
    assert WORD not in log.getvalue()
    assert "linter" not in log.getvalue()


def test_an_error_that_quotes_a_secret_is_redacted_in_the_ledger(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The row holds the kind of error and the rest of its words, bounded."""

    def complains(request: Request) -> str:
        raise ValueError(f"bad token {SECRET} " + "x" * 5000)

    world = World(tmp_path, clock, [complains])

    job = world.finalize(world.transcript().user(RULE))

    assert job.failures == 1
    assert str(job.error_detail).startswith("ValueError: bad token ")
    assert secrets_in(str(job.error_detail)) == []
    assert len(str(job.error_detail)) <= 500


@pytest.mark.parametrize(
    "kind", [ProviderLimited, ProviderUnavailable, ProviderPermanent, BadAnswer]
)
def test_a_secret_in_a_providers_refusal_is_redacted_in_the_ledger(
    tmp_path: Path, clock: FakeClock, kind: type[ProviderError]
) -> None:
    """A server may quote the key it refused; the row that waits and the breaker must not."""
    world = World(tmp_path, clock, [kind(f"no quota for {SECRET}")])

    world.finalize(world.transcript().user(RULE))

    world.place.close()
    assert [path for path, data in world.bytes_of_home() if SECRET.encode() in data] == []


def test_a_secret_in_a_directorys_name_does_not_stop_the_session(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Paths are not words: they are kept, and the notes are written."""
    folder = tmp_path / "token=abc"
    folder.mkdir()
    world = World(tmp_path, clock, [answer(fact(RULE))])

    world.finalize(world.transcript(cwd=folder).user(RULE))

    assert world.bodies(folder) == [RULE]
