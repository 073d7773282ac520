"""``memoryd-hook AGENT EVENT``: leave one envelope in the inbox and be gone.

An agent waits for this process, so it imports only what every Python has loaded anyway, plus the C
parts of ``json`` and ``signal``: the public ones pull in ``re`` and ``enum`` and double the
start-up. It never opens the ledger and never talks to the daemon: the new file is the ring.

Whatever stands still, it prints nothing and exits 0 within 300 ms. Waiting for a turn on a busy
processor is no standing still: an empty Python waits as long, and the event would be lost for
nothing. At the deadline what was read is left unsynced rather than dropped. A failure leaves one
line, without a word of the input, in ``logs/hook-errors.log`` of the home, if that can be written.

The event ``prompt`` is another thing: ``hook_prompt.py`` asks the daemon what belongs into the
prompt and prints that; it leaves no envelope, and being late is no failure.
"""

import _signal  # type: ignore[import-not-found]  # the public one pulls in enum
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

VERSION = 1
AGENTS = (
    "claude-code",
    "codex",
    "copilot-cli",
    "cursor",
    "estacoda",
    "freecode",
    "gemini-cli",
    "generic",
    "hermes",
    "openclaw",
    "opencode",
    "qwen-code",
)
PROMPT = "prompt"
EVENTS = ("session-end", "stop", "pre-compact", PROMPT)
#: With any of them set an agent is told nothing.
NO_RECALL = ("MEMORYD_DISABLE", "MEMORYD_DISABLE_RECALL")
SWITCHES = (
    "MEMORYD_DISABLE",
    "MEMORYD_DISABLE_EXTRACTION",
    "MEMORYD_DISABLE_CONSOLIDATION",
    "MEMORYD_DISABLE_RECALL",
    "MEMORYD_DISABLE_JUDGE",
    "MEMORYD_OWN_CALL",  # the session is the answer to a question of ours
)

#: After standing still or working for so long it leaves what it has read; so much later it leaves
#: at once, which is within 300 ms of the start.
DEADLINE_SECONDS = 0.24
GRACE_SECONDS = 0.03
#: Where Linux says how long this process has waited for a processor, in ns: the second number.
SCHEDULED = "/proc/self/schedstat"
INPUT_BYTES = 4 << 20
BLOCK_BYTES = 64 << 10
#: How far back the end of the last whole line is looked for before the cutoff is left open.
TAIL_BYTES = 8 << 20
PATH_CHARACTERS = 4096
ID_CHARACTERS = 128
REASON_CHARACTERS = 40
LOG_BYTES = 64 << 10

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_LETTERS = _LOWER + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_ON = ("1", "true", "yes", "on")


class Refused(Exception):
    """The event cannot become an envelope; the argument is the code the trace shows."""


class _Guard:
    """What the alarm has to know: where we are, and whether it has rung before."""

    #: When it was armed, on the monotonic clock, and what ``_queued`` said then; seconds.
    armed = 0.0
    queued = 0.0
    #: What is to be left, once the agent has said it all; None again when it is left.
    content: "dict[str, object] | None" = None
    #: The file it is being written to, its name in the end, and whether it holds every byte.
    temporary = ""
    path = ""
    whole = False
    label = "- -"
    rung = False
    #: Whether it leaves an envelope, and so being late is worth a line.
    keeps = True


def main() -> "NoReturn":
    """Run the hook with ``sys.argv`` and end the process with status 0."""
    try:
        os.umask(0o077)
        _open_closed()
        _arm()
        run(sys.argv[1:])
    except Refused as refused:
        _trace(str(refused))
    except OSError as error:
        _trace(f"os.{error.errno}")
    except BaseException as error:  # noqa: BLE001 - whatever it is, the agent must not see it
        _trace(f"bug.{type(error).__name__}")
    finally:
        os._exit(0)


def _open_closed() -> None:
    """Standard streams that the agent closed: no file or socket of ours may get their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open("/dev/null", os.O_RDWR)  # the lowest that is free


def run(arguments: list[str]) -> str:
    """Write the envelope for ``arguments`` and standard input; its path comes back.

    The event ``prompt`` writes none, it asks: the path is empty.

    Raises ``Refused`` where the event is not one we can keep, ``OSError`` where it cannot be kept.
    """
    if len(arguments) != 2 or arguments[0] not in AGENTS or arguments[1] not in EVENTS:
        raise Refused("arguments")
    agent, event = arguments
    _Guard.label = f"{agent} {event}"
    said, data = read_object()
    if event == PROMPT:
        _prompt(agent, data)
        return ""
    content = envelope(agent, event, said)
    _Guard.content = content
    content["cutoff"] = last_line_end(str(content["transcript"])) if content["transcript"] else None
    return write(home(), content)


def _prompt(agent: str, data: bytes) -> None:
    _Guard.keeps = False
    if not any(_is_on(os.environ.get(name, "")) for name in NO_RECALL):
        from memoryd.cli import hook_prompt

        hook_prompt.run(agent, home(), data)


def _arm() -> None:
    """Ring at the deadline. A terminal that closes or Ctrl-C must not cost the envelope."""
    for number in (_signal.SIGINT, _signal.SIGHUP, _signal.SIGTERM):
        _signal.signal(number, _signal.SIG_IGN)
    _signal.signal(_signal.SIGALRM, _late)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGALRM,))
    _Guard.armed, _Guard.queued = time.monotonic(), _queued()
    _signal.setitimer(_signal.ITIMER_REAL, DEADLINE_SECONDS, GRACE_SECONDS)


def _queued() -> float:
    """Seconds this process could run and was not let to; 0 where the system does not say."""
    try:
        descriptor = os.open(SCHEDULED, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0.0
    try:
        return int(os.read(descriptor, 100).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
    finally:
        os.close(descriptor)


def _seconds() -> float:
    """How long it has worked or stood still since it was armed.

    A prompt is waited for by a person: there a busy processor counts too.
    """
    passed = time.monotonic() - _Guard.armed
    return passed - (_queued() - _Guard.queued) if _Guard.keeps else passed


def _late(_number: int, _frame: object) -> None:
    """The alarm, again and again once the deadline has passed on the clock."""
    if _seconds() < DEADLINE_SECONDS + GRACE_SECONDS * _Guard.rung:
        return
    try:
        if not _Guard.rung:
            _Guard.rung = True
            _leave_unsynced()
    except OSError:
        pass  # nothing is left to do for a file that can neither be finished nor removed
    finally:
        os._exit(0)


def _leave_unsynced() -> None:
    """Put what was read where it counts without waiting for the disk; a trace says so."""
    if _Guard.content is None:
        if _Guard.keeps and not _Guard.path:
            _trace("deadline")
        return
    if _Guard.whole:
        os.rename(_Guard.temporary, _Guard.path)
    else:
        if _Guard.temporary and os.path.lexists(_Guard.temporary):
            os.unlink(_Guard.temporary)
        write(home(), _Guard.content, durable=False)
    _trace("deadline.unsynced")


# ---------------------------------------------------------------- what the agent says


def read_object() -> tuple[dict[str, object], bytes]:
    """The JSON object on standard input, and its bytes; does not wait for more once it is whole."""
    os.set_blocking(0, True)  # some agents hand over a pipe that would answer "try again"
    data = b""
    while len(data) <= INPUT_BYTES:
        block = os.read(0, BLOCK_BYTES)
        data += block
        ended = not block
        if ended or (len(block) < BLOCK_BYTES and block.rstrip().endswith(b"}")):
            value = parse(data)
            if isinstance(value, dict):
                return value, data
        if ended:
            raise Refused("input.empty" if not data.strip() else "input.not-an-object")
    raise Refused("input.too-large")


class _Reading:
    """What the C scanner asks its context for. Numbers are of no interest and stay unread."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = parse_int = parse_constant = len
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own cache, one process long


def parse(data: bytes) -> object:
    """The JSON value that ``data`` is, or None where it is none (yet)."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff").strip()
    try:
        value, end = _scanner()(text, 0)
    except (StopIteration, ValueError, RecursionError, SystemError):
        # 3.11's scanner looks for json's own exception among the loaded modules, finds none and
        # returns without any, which the interpreter reports as SystemError.
        return None
    return value if end == len(text) else None


def _scanner() -> "Callable[[str, int], tuple[object, int]]":
    try:
        from _json import make_scanner

        return make_scanner(_Reading)  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError):
        from json import JSONDecoder

        return JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined,no-any-return]


def envelope(agent: str, event: str, said: dict[str, object]) -> dict[str, object]:
    """The envelope for what the agent ``said``: six of its keys, typed and bounded, no others.

    Its cutoff is still open: that is read from the disk, which may take its time.

    Cursor calls the session a conversation and the directory a workspace's root. Raises ``Refused``
    for a sub-agent's event (it names its parent's session), for a background agent's, and where no
    usable session id is given or can be read off the transcript's name.
    """
    if str(said.get("hook_event_name")).startswith("Subagent"):
        raise Refused("event.subagent")
    if said.get("is_background_agent") is True:
        raise Refused("event.background")
    cwd = _path(said.get("cwd"), "") or _first_root(said.get("workspace_roots"))
    transcript = _path(said.get("transcript_path"), cwd or "")
    return {
        "version": VERSION,
        "agent": agent,
        "event": event,
        "session": _session(said.get("session_id") or said.get("conversation_id"), transcript),
        "transcript": transcript,
        "cwd": cwd,
        "reason": _code(said.get("reason")) or _code(said.get("trigger")),
        "cutoff": None,
        "time_ms": time.time_ns() // 1_000_000,
        "switches": [name for name in SWITCHES if _is_on(os.environ.get(name, ""))],
    }


def _session(given: object, transcript: str | None) -> str:
    if given is None or given == "":
        given = _id_in_name(transcript or "")
    if not isinstance(given, str) or not _is_id(given, ID_CHARACTERS):
        raise Refused("session.refused")
    return given


def _id_in_name(transcript: str) -> str:
    """The UUID that the agents' transcripts are named by, alone or at the end of a name."""
    stem = os.path.basename(transcript).split(".", 1)[0][-36:]
    parts = stem.split("-")
    hexadecimal = all(letter in "0123456789abcdefABCDEF-" for letter in stem)
    if not hexadecimal or [len(part) for part in parts] != [8, 4, 4, 4, 12]:
        raise Refused("session.missing")
    return stem


def _first_root(roots: object) -> str | None:
    return _path(roots[0], "") if isinstance(roots, list) and roots else None


def _is_id(text: str, limit: int) -> bool:
    if not 0 < len(text) <= limit or text[0] not in _LETTERS:
        return False
    return all(letter in _LETTERS or letter in "-_.:+@" for letter in text)


def _code(value: object) -> str | None:
    """``value`` if it is a bare word such as ``clear``, else None.

    A sentence could quote the person, and what has digits or capitals could be a token.
    """
    if not isinstance(value, str) or not 0 < len(value) <= REASON_CHARACTERS:
        return None
    plain = value[0] in _LOWER and all(letter in _LOWER or letter in "-_" for letter in value)
    return value if plain else None


def _path(value: object, base: str) -> str | None:
    """``value`` as an absolute path, ``~`` and relative ones resolved; None where it is none."""
    if not isinstance(value, str) or not value or len(value) > PATH_CHARACTERS or "\0" in value:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None  # half a surrogate pair: no agent's path, and nothing we store could hold it
    path = os.path.abspath(os.path.join(base, os.path.expanduser(value)))
    return path if len(path) <= PATH_CHARACTERS else None


def _is_on(value: str) -> bool:
    return value.strip().lower() in _ON


# ---------------------------------------------------------------- the transcript's tail


def last_line_end(path: str) -> int | None:
    """Bytes up to and including the last newline of ``path``; 0 where it has none.

    None where there is no such file, where positions are not bytes of its lines (a database, a
    document, a compressed file), or where the last line is longer than ``TAIL_BYTES``: then whoever
    makes the job looks.
    """
    if not path.endswith(".jsonl"):
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if status.st_mode & 0o170000 != 0o100000:
            return None
        return _search_back(descriptor, status.st_size)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _search_back(descriptor: int, size: int) -> int | None:
    end = size
    while end > 0:
        if size - end >= TAIL_BYTES:
            return None
        start = max(end - BLOCK_BYTES, 0)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


# ---------------------------------------------------------------- what is written


def home() -> str:
    """The home: ``$MEMORYD_HOME``, else ``~/.memoryd``."""
    return os.path.abspath(os.path.expanduser(os.environ.get("MEMORYD_HOME") or "~/.memoryd"))


def write(root: str, content: dict[str, object], *, durable: bool = True) -> str:
    """Make ``content`` one file in the inbox under ``root``, on the disk; its path comes back.

    Raises ``OSError``; then no temporary file is left.
    """
    inbox = os.path.join(root, "inbox")
    name = f"{time.time_ns()}-{os.getpid()}-{os.urandom(4).hex()}.json"
    temporary, path = os.path.join(inbox, f".{name}.tmp"), os.path.join(inbox, name)
    data = (_dump(content) + "\n").encode("ascii")
    _Guard.whole = False
    _Guard.temporary, _Guard.path = temporary, path
    try:
        _write_new(temporary, data, durable)
        os.rename(temporary, path)
    except BaseException:  # passed on: no half-written envelope stays
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    _Guard.content = None
    if durable:
        _sync(inbox)
    return path


def _write_new(path: str, data: bytes, durable: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        _make_folder(os.path.dirname(path))
        descriptor = os.open(path, flags, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        _Guard.whole = True
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(path: str) -> None:
    """Create ``path`` and its parents (0700), each durable in its own parent."""
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        _make_folder(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    _sync(parent)


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _dump(value: object) -> str:
    """``value`` as JSON in ASCII: objects, lists, strings, integers and null are all there is."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(key)}:{_dump(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dump, value)) + "]"
    return "null" if value is None else str(value) if isinstance(value, int) else _quote(str(value))


def _quote(text: str) -> str:
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)


def _trace(code: str) -> None:
    """Append one line about a failure for a person to find; two files of ``LOG_BYTES`` at most."""
    try:
        folder = os.path.join(home(), "logs")
        if not os.path.isdir(folder):
            _make_folder(folder)
        path = os.path.join(folder, "hook-errors.log")
        if os.path.exists(path) and os.path.getsize(path) >= LOG_BYTES:
            os.replace(path, path + ".1")
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {_Guard.label} {code}\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)
    except OSError:
        pass  # the home cannot be written either: there is nowhere left to say it
