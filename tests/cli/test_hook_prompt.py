"""The prompt event of the hook: what the daemon answers is printed, anything else is silence."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import in_memory
import pytest

from memoryd.cli import hook, hook_prompt
from memoryd.memory.home import Home

HOOK = Path(sys.executable).with_name("memoryd-hook")
SAID = {
    "session_id": "s-1",
    "cwd": "/work/code",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "What did we decide about the lease? «ç»",
}


@pytest.fixture
def root() -> Iterator[Path]:
    """A home with a path short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="h", dir=in_memory.place()) as made:
        yield Path(made)


@contextmanager
def listening(path: Path, answer: bytes | None) -> Iterator[list[bytes]]:
    """A socket at ``path`` that takes one request and gives ``answer``; None: it never says a word.

    What it was asked is in the list once the hook has gone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(60)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                if not (said := _whole(connection)):
                    return  # nobody asked: this is the test, leaving
                asked.append(said)
                if answer is not None:
                    connection.sendall(answer)
                else:
                    connection.recv(1)  # until the hook leaves

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield asked
        finally:
            with suppress(OSError), socket.socket(socket.AF_UNIX) as leaving:
                leaving.connect(str(path))
            thread.join()


def _whole(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (block := connection.recv(65536)):
            return b""
        data += block
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    """An answer as the daemon's server writes it."""
    said = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {said}\r\n\r\n".encode() + body


def fire(root: Path, said: object = SAID, **environ: str) -> bytes:
    """What the installed hook prints for a prompt; it must exit 0 and say nothing on stderr."""
    done = subprocess.run(
        [str(HOOK), "claude-code", "prompt"],
        input=said if isinstance(said, bytes) else json.dumps(said).encode(),
        env={**os.environ, "MEMORYD_HOME": str(root), **environ},
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def test_what_the_daemon_answers_is_printed_as_it_came(root: Path) -> None:
    """The event goes to the daemon whole, with the agent's name; its answer comes back whole."""
    answer = json.dumps({"hookSpecificOutput": {"additionalContext": "x" * 9000}}).encode()

    with listening(root / "run" / "memoryd.sock", http(answer)) as asked:
        printed = fire(root)

    head, _, body = asked[0].partition(b"\r\n\r\n")
    assert printed == answer
    assert head.startswith(b"POST /v1/prompt?agent=claude-code ")
    assert json.loads(body) == SAID
    assert not (root / "inbox").exists()


@pytest.mark.parametrize(
    "answer",
    [
        http(b"{}"),
        http(b'{"error": "x"}', "500 Internal Server Error"),
        http(b'{"cut', length=400),
        http(b"x" * (hook_prompt.ANSWER_BYTES + 1)),
        http(b"not json at all <script>"),
        http(b'["a list"]'),
        b"",
        b"nonsense",
        b"HTTP/1.1\r\n\r\n",
    ],
    ids=[
        "nothing to say",
        "error",
        "cut",
        "huge",
        "no JSON",
        "no object",
        "empty",
        "nonsense",
        "no status",
    ],
)
def test_any_other_answer_prints_nothing(root: Path, answer: bytes) -> None:
    """Nothing to say, an error, half an answer, too much of one."""
    with listening(root / "run" / "memoryd.sock", answer):
        assert fire(root) == b""


def test_a_daemon_that_says_nothing_is_not_waited_for(root: Path) -> None:
    """The hook leaves at its deadline; being late is no failure of anybody's."""
    with listening(root / "run" / "memoryd.sock", None):
        assert fire(root) == b""

    assert not (root / "logs").exists()


def test_without_a_daemon_nothing_is_printed_and_nothing_made(root: Path) -> None:
    """A prompt does without; not even the home is made for it."""
    assert fire(root / "absent") == b""
    (root / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(root / "run" / "memoryd.sock"))
    assert fire(root) == b""

    assert [path.name for path in root.iterdir()] == ["run"]


@pytest.mark.parametrize("switch", hook.NO_RECALL)
def test_with_recall_switched_off_nobody_is_asked(root: Path, switch: str) -> None:
    """The switch of the agent's environment counts before anything is said."""
    with listening(root / "run" / "memoryd.sock", http(b'{"a": 1}')) as asked:
        assert fire(root, **{switch: "1"}) == b""

    assert asked == []


@pytest.mark.parametrize("said", [b"", b"[1]", b'{"half": '], ids=repr)
def test_what_is_no_event_is_not_passed_on(root: Path, said: bytes) -> None:
    """A line in the hook's log, as for any event."""
    with listening(root / "run" / "memoryd.sock", http(b'{"a": 1}')) as asked:
        assert fire(root, said) == b""

    assert asked == []
    assert "claude-code prompt input." in (root / "logs" / "hook-errors.log").read_text()


@pytest.mark.parametrize("runtime", ["", "/run/user/7"])
@pytest.mark.parametrize("name", ["home", "h" * 120, "é" * 45])
def test_the_socket_is_looked_for_where_the_daemon_listens(
    name: str, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the home, or in the runtime or temp folder where that path is too long."""
    environ: Mapping[str, str] = {"XDG_RUNTIME_DIR": runtime} if runtime else {}
    home = f"/somewhere/{name}"

    assert hook_prompt.socket_of(home, environ) == str(Home(Path(home)).socket(environ))
