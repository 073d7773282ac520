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

    def _ask(self, method: str, path: str, timeout: float) -> dict[str, Any] | None:
        connection = _Connection(self.path, timeout)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            content = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            return None  # nobody there, or it is just leaving: the files say the rest
        finally:
            connection.close()
        return content if response.status == 200 and isinstance(content, dict) else None
