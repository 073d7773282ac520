"""The socket: this user's, strict about requests, and not troubled by clients that go away."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import in_memory
import pytest

from memoryd.daemon import api
from memoryd.daemon.api import Answers, Api
from memoryd.daemon.client import Client, _Connection
from memoryd.jobs.endings import Endings
from memoryd.memory.errors import HomeError, LedgerError, UsageError
from memoryd.memory.home import SOCKET_PATH_BYTES, Home


@dataclass
class Daemon:
    """What the socket asks, answered by the test; ``fault`` is raised instead of any answer."""

    rings: int = 0
    fault: Exception | None = None
    endings: Endings = field(default_factory=Endings)
    at_rest: bool = False
    told: list[dict[str, Any]] = field(default_factory=list)
    prompts: list[tuple[str, bytes]] = field(default_factory=list)
    waited: list[tuple[str | None, float]] = field(default_factory=list)
    waiting: threading.Event = field(default_factory=threading.Event)
    done: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def status(self) -> dict[str, Any]:
        """A report."""
        if self.fault:
            raise self.fault
        return {"home": "/h", "note": "naïve"}

    def ring(self) -> None:
        """Count."""
        self.rings += 1

    def prompt(self, agent: str, said: bytes) -> dict[str, Any]:
        """What the hook is to print."""
        self.prompts.append((agent, said))
        return {"say": agent}

    def events(self, after: int, seconds: float) -> list[dict[str, Any]]:
        """Those that were told, once there is one."""
        self.waiting.set()
        self.endings.wait(lambda: any(each["id"] > after for each in self.told), seconds)
        return [each for each in self.told if each["id"] > after]

    def changes(self, after: int, seconds: float) -> int:
        """How often the bell rang, once it is another."""
        self.waiting.set()
        self.endings.wait(lambda: self.endings.count != after, seconds)
        return self.endings.count

    def wait(self, job: str | None, seconds: float) -> bool:
        """Wait as the daemon does: until something ends."""
        self.waited.append((job, seconds))
        if job == "nobody":
            raise UsageError("no job ends in nobody", hint="look at `memoryd list`")
        self.waiting.set()
        return self.endings.wait(lambda: self.at_rest, seconds)


def answers_of(daemon: Daemon, done: Callable[[], None] = lambda: None) -> Answers:
    """What the socket is lent."""
    return Answers(
        daemon.status,
        daemon.ring,
        daemon.wait,
        daemon.events,
        daemon.prompt,
        done,
        daemon.changes,
        lambda: "memoryd_jobs 3\n",
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="a", dir=in_memory.place()) as made:
        yield Path(made)


@pytest.fixture
def daemon() -> Daemon:
    """What stands behind the socket."""
    return Daemon()


@pytest.fixture
def path(folder: Path, daemon: Daemon) -> Iterator[Path]:
    """A listening socket."""
    path = folder / "run" / "memoryd.sock"
    answers = answers_of(daemon, daemon.done.release)
    served = Api(path, answers)
    served.start()
    yield path
    daemon.endings.close()
    served.stop()


def ask(path: Path, method: str, target: str, body: bytes = b"") -> tuple[int, dict[str, Any]]:
    """One request on a connection of its own."""
    connection = _Connection(path, 60.0)
    try:
        connection.request(method, target, body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_only_this_user_may_connect(path: Path) -> None:
    """The socket is 0600 in a folder that is 0700, whatever the umask."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_another_user_is_not_answered(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the mode of the socket has become wrong, the kernel's word on the peer counts."""
    monkeypatch.setattr(api, "_peer_uid", lambda connection: os.getuid() + 1)

    assert Client(path).status() is None


def test_status_is_the_daemons_report(path: Path) -> None:
    """As JSON, in UTF-8."""
    assert Client(path).status() == {"home": "/h", "note": "naïve"}


def test_a_ring_reaches_the_workers(path: Path, daemon: Daemon) -> None:
    """Once a request."""
    assert Client(path).ring()

    assert daemon.rings == 1


def test_a_prompt_is_handed_on_whole_and_answered(path: Path, daemon: Daemon) -> None:
    """The agent's name and the bytes as they came."""
    said = b'{"prompt": "' + b"x" * 100_000 + b'"}'

    assert ask(path, "POST", "/v1/prompt?agent=codex", said) == (200, {"say": "codex"})
    assert daemon.prompts == [("codex", said)]


def test_a_prompt_without_a_length_or_too_long_is_refused(path: Path, daemon: Daemon) -> None:
    """Nothing of it is read."""
    for length in (b"", b"Content-Length: -1\r\n", b"Content-Length: 4194305\r\n"):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(str(path))
            client.sendall(b"POST /v1/prompt?agent=codex HTTP/1.0\r\n" + length + b"\r\n")
            assert b" 400 " in client.recv(4096)

    assert daemon.prompts == []


def test_who_waits_is_answered_when_it_has_come_to_rest(path: Path, daemon: Daemon) -> None:
    """For a job or the whole queue; nobody polls."""
    answers: list[bool | None] = []
    waiter = threading.Thread(target=lambda: answers.append(Client(path).wait("5f3a9c21", 30)))
    waiter.start()
    assert daemon.waiting.wait(60)

    daemon.at_rest = True
    daemon.endings.rang()
    waiter.join()

    assert answers == [True]
    assert daemon.waited == [("5f3a9c21", 30.0)]
    assert Client(path).wait(None, 0) is True


def test_who_listens_hears_of_an_event_at_once_and_goes_on_from_it(
    path: Path, daemon: Daemon
) -> None:
    """By its id; nobody polls, and nothing is heard twice."""
    heard: list[Any] = []
    listener = threading.Thread(target=lambda: heard.append(Client(path).events(0, 30)))
    listener.start()
    assert daemon.waiting.wait(60)

    daemon.told.append({"id": 7, "kind": "memory.saved"})
    daemon.endings.rang()
    listener.join()

    assert heard == [[{"id": 7, "kind": "memory.saved"}]]
    assert Client(path).events(7, 0) == []


def test_who_watches_is_told_that_something_changed_and_goes_on_from_there(
    path: Path, daemon: Daemon
) -> None:
    """By how many changes there were; another daemon has another count, and says so at once."""
    heard: list[int | None] = []
    watcher = threading.Thread(target=lambda: heard.append(Client(path).changes(0, 30)))
    watcher.start()
    assert daemon.waiting.wait(60)

    daemon.endings.rang()
    watcher.join()

    assert heard == [1]
    assert Client(path).changes(1, 0) == 1
    assert Client(path).changes(99, 30) == 1


def test_metrics_are_text_for_prometheus(path: Path) -> None:
    """With the type of its format, and not JSON."""
    connection = _Connection(path, 60.0)
    connection.request("GET", "/v1/metrics")
    answer = connection.getresponse()

    assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.read().decode() == Client(path).metrics() == "memoryd_jobs 3\n"
    connection.close()


def test_a_wait_ends_in_time_and_with_the_daemon(path: Path, daemon: Daemon) -> None:
    """The answer is then that it did not come to rest."""
    assert Client(path).wait(None, 0) is False

    daemon.endings.close()
    assert Client(path).wait(None, 3600) is False


@pytest.mark.parametrize(
    ("method", "target", "status", "said"),
    [
        ("GET", "/", 404, "no such path"),
        ("GET", "/v1/ring", 404, "no such path"),
        ("POST", "/v1/status", 404, "no such path"),
        ("GET", "//[", 404, "no such path"),
        ("GET", "/v1/wait?seconds=soon", 400, "must be a number"),
        ("GET", "/v1/wait?seconds=nan", 400, "between 0 and 3600"),
        ("GET", "/v1/wait?seconds=-1", 400, "between 0 and 3600"),
        ("GET", "/v1/wait?seconds=1e9", 400, "between 0 and 3600"),
        ("GET", "/v1/events?after=last", 400, "the id of an event"),
        ("GET", "/v1/events?after=-1", 400, "the id of an event"),
        ("GET", "/v1/events?seconds=1e9", 400, "between 0 and 3600"),
        ("GET", "/v1/changes?after=x", 400, "what was answered before"),
        ("GET", "/v1/changes?after=0&seconds=-1", 400, "between 0 and 3600"),
        ("GET", "/v1/wait?job=nobody", 400, "no job ends in nobody"),
    ],
)
def test_a_bad_request_is_answered_with_what_is_wrong(
    path: Path, method: str, target: str, status: int, said: str
) -> None:
    """A status of the right kind and one line; the socket goes on."""
    code, content = ask(path, method, target)

    assert code == status
    assert said in content["error"]
    assert Client(path).status() is not None


def test_a_fault_of_the_daemons_is_said_with_its_hint(path: Path, daemon: Daemon) -> None:
    """500 with the message, for what a person can act on."""
    daemon.fault = LedgerError("the ledger is locked", hint="try again")

    assert ask(path, "GET", "/v1/status") == (
        500,
        {"error": "the ledger is locked", "hint": "try again"},
    )
    assert Client(path).status() is None


def test_what_is_no_http_is_refused(path: Path) -> None:
    """Other methods, a request without end, and bytes that are no request."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(60)
        raw.connect(str(path))
        raw.sendall(b"\x00\xff\x16\x03\x01\r\n\r\n")
        assert b"400" in raw.recv(4096)
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(60)
        raw.connect(str(path))
        raw.sendall(b"GET /" + b"a" * 70_000)
        assert b"414" in raw.recv(4096)
    connection = _Connection(path, 60.0)
    connection.request("DELETE", "/v1/status")
    assert connection.getresponse().status == 501
    connection.close()
    assert Client(path).status() is not None


def test_a_body_is_not_taken_for_the_next_request(path: Path, daemon: Daemon) -> None:
    """What a client sends along with a ring is not asked for, and is not read as a request."""
    body = b"POST /v1/ring HTTP/1.1\r\n\r\n"
    head = b"POST /v1/ring HTTP/1.1\r\nHost: local\r\nContent-Length: %d\r\n\r\n" % len(body)
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(path))
        # At once: the server answers without waiting for the body, and closes.
        raw.sendall(head + body)
        answer = http.client.HTTPResponse(raw)
        answer.begin()
        assert answer.read() == b'{"rung": true}'
        assert answer.will_close

    assert Client(path).status() is not None
    assert daemon.rings == 1


def test_a_client_that_hangs_up_does_no_harm(
    path: Path, daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its thread ends when what it waited for does; the others are answered meanwhile."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(path))
        raw.sendall(b"GET /v1/wait?seconds=60 HTTP/1.1\r\n\r\n")
        assert daemon.waiting.wait(60)

    assert Client(path).status() is not None
    daemon.at_rest = True
    daemon.endings.rang()
    for _ in range(2):
        assert daemon.done.acquire(timeout=60)
    assert "Traceback" not in capsys.readouterr().err


def test_what_a_crash_left_is_replaced(folder: Path, daemon: Daemon) -> None:
    """A socket without a listener, and any other file in its place."""
    answers = answers_of(daemon)
    path = folder / "memoryd.sock"
    path.write_text("left over")

    served = Api(path, answers)
    served.start()

    assert Client(path).status() is not None
    served.stop()
    assert not path.exists()


def test_it_starts_and_stops_again_and_again(folder: Path, daemon: Daemon) -> None:
    """Stop is safe unstarted, twice, and where somebody removed the socket."""
    answers = answers_of(daemon)
    served = Api(folder / "memoryd.sock", answers)
    served.stop()
    for _ in range(20):
        served.start()
        assert Client(served.path).ring()
        served.stop()
        served.stop()
    assert daemon.rings == 20

    served.start()
    served.path.unlink()
    served.stop()


def test_a_socket_that_is_removed_is_made_again(folder: Path, daemon: Daemon) -> None:
    """With its folder, and whatever is put in its place; what is as it was is left alone."""
    served = Api(folder / "run" / "memoryd.sock", answers_of(daemon))
    served.start()
    assert not served.renew()

    shutil.rmtree(served.path.parent)
    assert served.renew() and Client(served.path).ring()
    served.path.unlink()
    served.path.mkdir()
    with pytest.raises(HomeError, match=f"{served.path} is in the way"):
        served.renew()
    served.path.rmdir()
    assert served.renew() and Client(served.path).ring()

    assert daemon.rings == 2
    assert [thread.name for thread in threading.enumerate()].count("api") == 1
    assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
    served.stop()


def test_a_path_that_cannot_be_bound_is_an_error_of_ours(folder: Path, daemon: Daemon) -> None:
    """A folder in the socket's place."""
    answers = answers_of(daemon)
    (folder / "memoryd.sock" / "x").mkdir(parents=True)

    with pytest.raises(HomeError, match="cannot be opened"):
        Api(folder / "memoryd.sock", answers).start()


def test_a_folder_of_another_user_is_refused(
    folder: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they made in a temp folder could be changed by them at any time."""
    answers = answers_of(daemon)
    monkeypatch.setattr(os, "getuid", lambda: 12345)

    with pytest.raises(HomeError, match="belongs to the user"):
        Api(folder / "memoryd.sock", answers).start()


def test_a_long_home_has_its_socket_in_the_runtime_or_temp_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of this user's, under a name made from the home; it can be bound."""
    long, other = Home(folder / ("h" * 120)), Home(folder / ("k" * 120))
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temp"))

    in_runtime = long.socket({"XDG_RUNTIME_DIR": str(folder / "run")})
    in_temp = long.socket({})

    assert in_runtime.parent == folder / "run" / f"memoryd-{os.getuid()}"
    assert in_temp.parent == folder / "temp" / f"memoryd-{os.getuid()}"
    assert len(os.fsencode(in_temp)) <= SOCKET_PATH_BYTES
    assert in_temp != other.socket({})
    assert Home(folder / "short").socket({}) == folder / "short" / "run" / "memoryd.sock"


def test_nobody_there_is_no_answer(folder: Path) -> None:
    """A missing socket, and one that answers with what is no JSON."""
    assert Client(folder / "none.sock").status() is None
    assert Client(folder / "none.sock").wait(None, 0) is None

    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(folder / "other.sock"))
        other.listen()

        def babble() -> None:
            connection, _ = other.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[[")
            connection.close()

        thread = threading.Thread(target=babble)
        thread.start()
        assert Client(folder / "other.sock").status() is None
        thread.join()
