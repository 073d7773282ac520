"""A server that says what it is told to, byte by byte: also what no HTTP library would send."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Talk:
    """One connection. ``request`` is what was sent, ``over`` is set when the test is."""

    def __init__(self, sock: socket.socket, over: threading.Event) -> None:
        self.sock = sock
        self.over = over
        self.request = b""

    def read(self) -> bytes:
        """The whole request, as far as its length is told."""
        while b"\r\n\r\n" not in self.request and (data := self.sock.recv(1 << 16)):
            self.request += data
        head, _, body = self.request.partition(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                missing = int(line.split(b":")[1]) - len(body)
                while missing > 0 and (data := self.sock.recv(1 << 16)):
                    self.request, missing = self.request + data, missing - len(data)
        return self.request

    def send(self, data: bytes) -> None:
        """These bytes and nothing else."""
        self.sock.sendall(data)

    def silent(self) -> None:
        """Say nothing until the test is over."""
        self.over.wait(60)


#: What a server does with one connection; it is closed afterwards.
Script = Callable[[Talk], None]


class Wire:
    """A listening socket of this machine that works ``script`` for each connection."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[bytes] = []
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Wire:
        self._threads[0].start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        with suppress(OSError):  # wakes the accept
            socket.create_connection(("127.0.0.1", self.port)).close()
        for thread in self._threads:
            thread.join(60)
        self._socket.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            sock, _ = self._socket.accept()
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        # A client that has had enough closes on us: that is its right.
        with sock, suppress(OSError):
            talk = Talk(sock, self._over)
            self.script(talk)
            if talk.request:
                self.asked.append(talk.request)


def head(status: int, **headers: object) -> bytes:
    """A status line and headers; underscores become hyphens."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} Said", *lines, "", ""]).encode()


def says(status: int, body: bytes = b"", **headers: object) -> Script:
    """Answer with a whole response, and close."""
    kind = {"content_type": "application/json"} | headers
    length = {"content_length": len(body), "connection": "close"}

    def script(talk: Talk) -> None:
        talk.read()
        talk.send(head(status, **(length | kind)) + body)

    return script


def sends(*pieces: bytes) -> Script:
    """Read the request, send these bytes, and close."""

    def script(talk: Talk) -> None:
        talk.read()
        for piece in pieces:
            talk.send(piece)

    return script


def error(message: str = "no") -> bytes:
    """The body of an error, as both services write it."""
    return json.dumps({"type": "error", "error": {"message": message, "type": "x"}}).encode()


def answer(name: str, text: str, **usage: object) -> bytes:
    """The body of an answer of ``name``, openai or anthropic."""
    body: dict[str, Any] = {"id": "x", "model": "m"}
    if name == "openai":
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        counted = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16} | usage
        body |= {"object": "chat.completion", "created": 1, "choices": [choice]}
    else:
        counted = {"input_tokens": 11, "output_tokens": 5} | usage
        body |= {"type": "message", "role": "assistant", "stop_reason": "end_turn"}
        body |= {"content": [{"type": "text", "text": text}], "stop_sequence": None}
    return json.dumps(body | {"usage": counted}).encode()
