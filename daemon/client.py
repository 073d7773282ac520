"""Talking to a running daemon over its socket."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

#: Longer than any wait the server grants is added to what the caller asked to wait.
_MARGIN_SECONDS = 10.0


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the unix socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Client:
    """One home's daemon, if one runs. Every method returns None when none answers."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def status(self) -> dict[str, Any] | None:
        """The daemon's report."""
        return self._ask("GET", "/v1/status", 5.0)

    def ring(self) -> bool:
        """Tell the workers to look; False when no daemon answers (the sweep will find it)."""
        return self._ask("POST", "/v1/ring", 5.0) is not None

    def wait(self, job: str | None, seconds: float) -> bool | None:
        """Whether the job (or the whole queue) came to rest within ``seconds``."""
        query = {"seconds": f"{seconds:g}"} | ({"job": job} if job else {})
        answer = self._ask("GET", "/v1/wait?" + urlencode(query), seconds + _MARGIN_SECONDS)
        return None if answer is None else bool(answer.get("held"))

    def events(self, after: int, seconds: float) -> list[dict[str, Any]] | None:
        """The events later than the id ``after``; waits up to ``seconds`` for one."""
        query = urlencode({"after": after, "seconds": f"{seconds:g}"})
        answer = self._ask("GET", "/v1/events?" + query, seconds + _MARGIN_SECONDS)
        return None if answer is None else list(answer.get("events", ()))

    def changes(self, after: int, seconds: float) -> int | None:
        """How many changes there were, once it is another than ``after`` or the time is over."""
        query = urlencode({"after": after, "seconds": f"{seconds:g}"})
        answer = self._ask("GET", "/v1/changes?" + query, seconds + _MARGIN_SECONDS)
        return None if answer is None else int(answer.get("changes", 0))

    def metrics(self) -> str | None:
        """The daemon's metrics, as Prometheus reads them."""
        raw = self._fetch("GET", "/v1/metrics", 5.0)
        return None if raw is None else raw.decode("utf-8", "replace")

    def _ask(self, method: str, path: str, timeout: float) -> dict[str, Any] | None:
        try:
            content = json.loads(self._fetch(method, path, timeout) or b"")
        except ValueError:
            return None
        return content if isinstance(content, dict) else None

    def _fetch(self, method: str, path: str, timeout: float) -> bytes | None:
        """What is answered; None where nobody is there, or it is just leaving, or it refuses."""
        connection = _Connection(self.path, timeout)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return raw if response.status == 200 else None
