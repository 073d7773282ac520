"""The prompt event of ``memoryd-hook``: ask the daemon what belongs into the prompt, and print it.

The agent waits, so this is as thin as the rest of the hook: what the agent said goes to the socket
as it came, what the daemon answers is printed as it comes. Nothing is written anywhere. Where no
daemon runs, or it is late, nothing is printed and nobody is told: a prompt does without.
"""

import _socket
import os

from memoryd.cli.hook import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: What one answer may hold, headers included.
ANSWER_BYTES = 64 << 10
BLOCK_BYTES = 16 << 10
#: Longest path a unix socket may have; a longer one lies in the runtime folder (``Home.socket``).
SOCKET_PATH_BYTES = 100
#: How long one step of the talk may take; the hook's own deadline ends the whole of it.
STEP_SECONDS = 0.2


def run(agent: str, home: str, said: bytes) -> None:
    """Ask the daemon of ``home`` about the prompt that ``agent`` ``said``; print what it answers.

    Prints nothing where there is no daemon. Raises ``OSError`` for what else the system refuses.
    """
    try:
        answer = ask(socket_of(home, os.environ), agent, said)
    except (FileNotFoundError, ConnectionError, TimeoutError):
        return  # not running, or busy with its start or its end
    while answer:
        answer = answer[os.write(1, answer) :]


def ask(path: str, agent: str, said: bytes) -> bytes:
    """The body of the daemon's answer; empty where it has nothing to say. Raises ``OSError``."""
    head = (
        f"POST /v1/prompt?agent={agent} HTTP/1.0\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
    )
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(STEP_SECONDS)
        connection.connect(path)
        connection.sendall(head.encode("ascii") + said)
        answer = b""
        while len(answer) <= ANSWER_BYTES:
            block = connection.recv(BLOCK_BYTES)
            if not block:
                return body_of(answer)
            answer += block
        return b""
    finally:
        connection.close()


def body_of(answer: bytes) -> bytes:
    """What a whole ``200`` answer holds; empty for any other, one that was cut, and ``{}``.

    Whatever listens there: what is no object of JSON is not handed to an agent.
    """
    head, found, body = answer.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    if not found or lines[0].split(b" ")[1:2] != [b"200"]:
        return b""
    whole = b"content-length: %d" % len(body) in lines
    return body if whole and body != b"{}" and isinstance(parse(body), dict) else b""


def socket_of(home: str, environ: "Mapping[str, str]") -> str:
    """Where the daemon of ``home`` listens, as ``Home.socket`` says it."""
    path = os.path.join(home, "run", "memoryd.sock")
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
        return path
    from hashlib import sha256  # only for a home that lies this deep

    base = environ.get("XDG_RUNTIME_DIR")
    if not base:
        from tempfile import gettempdir

        base = gettempdir()
    name = sha256(os.fsencode(home)).hexdigest()[:16]
    return os.path.join(base, f"memoryd-{os.getuid()}", f"{name}.sock")
