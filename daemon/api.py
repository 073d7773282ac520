"""The unix socket: HTTP and JSON, for this user only.

| request | answer |
|---|---|
| ``GET /v1/status`` | the report of the home, with the daemon's own state |
| ``POST /v1/ring`` | ``{"rung": true}``; looks into the inbox first, then rings the workers |
| ``GET /v1/wait?job=ID&seconds=N`` | ``{"held": true}`` once the job is at rest |
| ``GET /v1/wait?seconds=N`` | the same for the whole queue: nothing runs, nothing is ready |
| ``POST /v1/prompt?agent=NAME`` | what the agent's prompt hook is to print, ``{}`` for nothing |
| ``GET /v1/events?after=ID&seconds=N`` | ``{"events": [...], "last": ID}``, once there is one |
| ``GET /v1/changes?after=N&seconds=S`` | ``{"changes": M}``, once it is another than N |
| ``GET /v1/metrics`` | the metrics, as text for Prometheus |

Every error is ``{"error": "...", "hint": "..."}`` with a fitting status.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from memoryd.daemon.metrics import CONTENT_TYPE as METRICS_TYPE
from memoryd.memory.errors import HomeError, MemorydError, UsageError
from memoryd.memory.files import make_directory
from memoryd.memory.home import user

#: Longest wait one request may ask for.
WAIT_LIMIT_SECONDS = 3600.0
_NO_WAKE_UPS_SECONDS = 3600.0
#: How long the thread that listens is waited for.
_CLOSE_SECONDS = 2.0
#: Longest request; what an agent says of a prompt holds the prompt.
BODY_BYTES = 4 << 20


@dataclass(frozen=True)
class Answers:
    """What the daemon lends to the socket."""

    status: Callable[[], dict[str, Any]]
    ring: Callable[[], None]
    #: (job id or None for the whole queue, seconds) -> whether it came to rest in time.
    wait: Callable[[str | None, float], bool]
    #: (id, seconds) -> the events later than it, once there is one or the time is over.
    events: Callable[[int, float], list[dict[str, Any]]]
    #: (agent, what it said at its prompt event) -> what its hook is to print, empty for nothing.
    prompt: Callable[[str, bytes], dict[str, Any]]
    #: Called when a request's thread ends, so that it closes what it opened.
    done: Callable[[], None]
    #: (count, seconds) -> how many changes there were, once it is another or the time is over.
    changes: Callable[[int, float], int]
    metrics: Callable[[], str]


class Api:
    """The server. A service: ``start`` returns when it listens, ``stop`` when it is closed."""

    def __init__(self, path: Path, answers: Answers) -> None:
        self.path = path
        self.answers = answers
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._is_at: tuple[int, int] | None = None

    def start(self) -> None:
        """Listen on the socket, replacing what a crash left there. Raises ``HomeError``.

        The caller holds the home's lock, so a socket file found here belongs to nobody.
        """
        try:
            make_directory(self.path.parent)
            _refuse_foreign_folder(self.path.parent)
            self._server = _bound(self.path, self.answers)
        except OSError as error:
            raise HomeError(
                f"the socket {self.path} cannot be opened: {error.strerror or error}",
                hint=_in_the_way(self.path),
            ) from error
        self._is_at = _identity(self.path)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_NO_WAKE_UPS_SECONDS,), name="api", daemon=True
        )
        self._thread.start()

    def renew(self) -> bool:
        """Listen anew where the socket was removed or replaced; whether it was.

        Requests that are being answered go on. Raises ``HomeError`` where it cannot listen.
        """
        if self._is_at is not None and self._is_at == _identity(self.path):
            return False
        self._close()
        self.start()
        return True

    def stop(self) -> None:
        """Stop listening and remove the socket; safe unstarted and twice."""
        if self._is_at is not None and self._is_at == _identity(self.path):
            self.path.unlink(missing_ok=True)
        self._close()

    def _close(self) -> None:
        """Stop listening; what still answers then is left to the end of the process."""
        if self._server is None or self._thread is None:
            return
        stopper = threading.Thread(target=self._server.shutdown, name="api-stop", daemon=True)
        stopper.start()
        # The server looks at its stop flag only when something happens to its socket: this does.
        # (macOS refuses it; the socket is closed below, and the thread is left to the process.)
        with suppress(OSError):
            self._server.socket.shutdown(socket.SHUT_RDWR)
            self._thread.join(_CLOSE_SECONDS)
        self._server.server_close()
        self._server = self._thread = self._is_at = None


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, path: str, answers: Answers) -> None:
        self.answers = answers
        super().__init__(path, _Handler)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """As the base class, with the address that ``http.server`` wants to log."""
        request, _ = super().get_request()
        return request, ("local", 0)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Only this user and root, whatever the mode of the socket has become."""
        return _peer_uid(request) in {None, os.getuid(), 0}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away or fell silent is no event; anything else is logged."""
        import sys

        from memoryd.memory.log import logger

        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            logger().exception("api.failed")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    #: A client that says nothing does not keep its thread for ever.
    timeout = 60

    def do_GET(self) -> None:
        """Answer a look."""
        self._answer(
            {
                "/v1/status": self._status,
                "/v1/wait": self._wait,
                "/v1/events": self._events,
                "/v1/changes": self._changes,
                "/v1/metrics": self._metrics,
            }
        )

    def do_POST(self) -> None:
        """Answer a ring, or a prompt."""
        self._answer({"/v1/ring": self._ring, "/v1/prompt": self._prompt})

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: a ring a second would drown what matters."""

    def _answer(
        self, routes: Mapping[str, Callable[[dict[str, list[str]]], dict[str, Any] | str]]
    ) -> None:
        path, _, query = self.path.partition("?")
        route = routes.get(path)
        if route is None:
            self._send(HTTPStatus.NOT_FOUND, {"error": f"no such path: {path[:100]}"})
            return
        try:
            self._send(HTTPStatus.OK, route(parse_qs(query)))
        except UsageError as error:
            self._send(HTTPStatus.BAD_REQUEST, {"error": error.message, "hint": error.hint})
        except MemorydError as error:
            self._send(
                HTTPStatus.INTERNAL_SERVER_ERROR, {"error": error.message, "hint": error.hint}
            )
        finally:
            self.server.answers.done()

    def _status(self, query: dict[str, list[str]]) -> dict[str, Any]:
        return self.server.answers.status()

    def _ring(self, query: dict[str, list[str]]) -> dict[str, Any]:
        self.server.answers.ring()
        return {"rung": True}

    def _prompt(self, query: dict[str, list[str]]) -> dict[str, Any]:
        said = self._body()
        return self.server.answers.prompt(query.get("agent", [""])[0], said)

    def _body(self) -> bytes:
        """What the request carries. Raises ``UsageError`` for a length not said, or too long."""
        told = self.headers.get("Content-Length", "").strip()
        if not (told.isascii() and told.isdigit() and len(told) < 19 and int(told) <= BODY_BYTES):
            raise UsageError(f"a request has a length, of {BODY_BYTES} bytes at most")
        return self.rfile.read(int(told))

    def _wait(self, query: dict[str, list[str]]) -> dict[str, Any]:
        job = query.get("job", [None])[0]
        return {"held": self.server.answers.wait(job, _seconds(query, "60"))}

    def _events(self, query: dict[str, list[str]]) -> dict[str, Any]:
        after = _after(query, "the id of an event")
        found = self.server.answers.events(after, _seconds(query, "0"))
        return {"events": found, "last": found[-1]["id"] if found else after}

    def _changes(self, query: dict[str, list[str]]) -> dict[str, Any]:
        after = _after(query, "what was answered before")
        return {"changes": self.server.answers.changes(after, _seconds(query, "0"))}

    def _metrics(self, query: dict[str, list[str]]) -> str:
        return self.server.answers.metrics()

    def _send(self, status: HTTPStatus, content: dict[str, Any] | str) -> None:
        """Answer with JSON, or with text as it is: metrics hold names of ours and numbers."""
        from memoryd.memory.scanner import redact_all

        kind = METRICS_TYPE if isinstance(content, str) else "application/json"
        text = content if isinstance(content, str) else json.dumps(redact_all(content))
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self._sent_a_body():
            # Nobody reads it; on a connection kept open it would pass for the next request.
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _sent_a_body(self) -> bool:
        length = self.headers.get("Content-Length", "0").strip()
        return length != "0" or "Transfer-Encoding" in self.headers


def _after(query: dict[str, list[str]], what: str) -> int:
    """Where a listener goes on from, ``what`` it should be. Raises ``UsageError``."""
    told = query.get("after", ["0"])[0]
    if not (told.isascii() and told.isdigit() and len(told) < 19):
        raise UsageError(f"after must be {what}")
    return int(told)


def _seconds(query: dict[str, list[str]], otherwise: str) -> float:
    """How long a request may wait. Raises ``UsageError``."""
    try:
        seconds = float(query.get("seconds", [otherwise])[0])
    except ValueError as error:
        raise UsageError("seconds must be a number") from error
    if not 0 <= seconds <= WAIT_LIMIT_SECONDS:
        raise UsageError(f"seconds must be between 0 and {WAIT_LIMIT_SECONDS:g}")
    return seconds


def _peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end; None where the system does not tell (the 0600 mode stands)."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return int(struct.unpack("3i", raw)[1])


def _bound(path: Path, answers: Answers) -> _Server:
    """A server that listens at ``path``: the socket gets its name when it is this user's alone.

    (The process's umask is every thread's, so it is not touched.) Raises ``OSError``.
    """
    temporary = path.with_suffix(".new")  # no longer than the name itself
    temporary.unlink(missing_ok=True)
    server = _Server(str(temporary), answers)
    try:
        temporary.chmod(0o600)
        temporary.replace(path)
    except OSError:
        server.server_close()
        temporary.unlink(missing_ok=True)
        raise
    return server


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _in_the_way(path: Path) -> str:
    """What to do where no socket can be made at ``path``."""
    for each in (path, path.parent):
        if os.path.lexists(each) and each.is_dir() == (each == path):
            return f"{each} is in the way: move it elsewhere"
    return f"check who owns {path.parent}"


def _refuse_foreign_folder(folder: Path) -> None:
    """A socket in a temp folder that another user made could be theirs tomorrow."""
    owner = folder.stat().st_uid
    if owner != os.getuid():
        raise HomeError(
            f"the folder {folder} belongs to the user {user(owner)}",
            hint="remove it or set XDG_RUNTIME_DIR",
        )
