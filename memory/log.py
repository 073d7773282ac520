"""One way to log: structured lines on standard error, event names as ``noun.verb``.

Never transcript or memory text, only codes, counts, ids and paths. ``configure`` is called once by
whoever owns the process; a library user who does not call it gets structlog's own defaults.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TextIO

from memoryd.memory.text import clip

if TYPE_CHECKING:
    import logging

    from structlog.typing import EventDict, FilteringBoundLogger

#: Exceptions of one chain, and frames of each, that are logged at most.
_CHAIN = 5
_FRAMES = 20
#: Of a line that a library logs.
_SAID_CHARACTERS = 200
#: A library whose warnings we turn into lines of our own (``watch.*``).
_HEARD_ELSEWHERE = "watchdog"
#: How long the same complaint is not logged again, and how many are remembered.
AGAIN_SECONDS = 60.0
_KNOWN = 500
#: Controls that are no ASCII, and marks of direction.
_OBEYED = {
    number: f"\\u{number:04x}"
    for number in (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
_COMPLAINTS = {"warning", "error", "critical"}

#: What was asked for and is done once somebody logs: most commands say nothing, and structlog takes
#: a tenth of their time.
_asked: Callable[[], None] | None = None


def configure(stream: TextIO | None = None, *, verbose: bool = False, quiet: bool = False) -> None:
    """Write one JSON object a line to ``stream`` (standard error).

    ``verbose`` adds debug, ``quiet`` leaves only errors. Done with the first line.
    """
    global _asked
    _asked = partial(_configure, stream or sys.stderr, verbose, quiet)


def forget() -> None:
    """Let what was asked for and not done yet be forgotten: a test begins as a process does."""
    global _asked
    _asked = None


def _configured() -> None:
    """Do what was asked for, once; two threads that do it together do the same."""
    global _asked
    if _asked is not None:
        _asked()
        _asked = None


def _configure(stream: TextIO, verbose: bool, quiet: bool) -> None:
    import logging

    import structlog

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            _where_it_failed,
            Seldom(),
            _without_secrets,
            _line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if verbose else logging.ERROR if quiet else logging.INFO
        ),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    _take_over(logging.getLogger())
    for name in ("huey", "huey.consumer", "git", "watchdog"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _take_over(root: logging.Logger) -> None:
    """Have what the libraries say be lines of ours: one JSON object each, like any other.

    Their words stand as they are in their code, without what they put into them.
    """
    import logging

    class Ours(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            """Say it as a line of ours."""
            if record.name.startswith(_HEARD_ELSEWHERE):
                return
            said = {"logger": record.name, "message": clip(str(record.msg), _SAID_CHARACTERS)}
            error = record.exc_info[1] if record.exc_info else None
            if record.levelno >= logging.ERROR:
                logger().error("library.said", exc_info=error, **said)
            else:
                logger().warning("library.said", exc_info=error, **said)

    for each in list(root.handlers):
        if type(each).__qualname__ == Ours.__qualname__:
            root.removeHandler(each)
    root.addHandler(Ours(logging.WARNING))


class Seldom:
    """A processor: the same complaint is logged once a while, for it may last for days.

    What is a warning or worse and was logged with the same values within ``AGAIN_SECONDS`` is
    dropped; the next one that is not says in ``again`` how many were. ``now`` is monotonic.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._guard = threading.Lock()
        #: By what is said: when it was logged last, and how often it was dropped since.
        self._known: dict[str, tuple[float, int]] = {}

    def __call__(self, _: object, __: str, event: EventDict) -> EventDict:
        """``event``, perhaps with ``again``. Raises ``structlog.DropEvent``."""
        if event.get("level") not in _COMPLAINTS:
            return event
        said = repr(sorted((key, str(event[key])) for key in event if key != "time"))
        now = self._now()
        with self._guard:
            at, dropped = self._known.pop(said, (now - AGAIN_SECONDS, 0))
            is_again = now - at < AGAIN_SECONDS
            self._known[said] = (at, dropped + 1) if is_again else (now, 0)
            if len(self._known) > _KNOWN:
                del self._known[next(iter(self._known))]
        if is_again:
            import structlog

            raise structlog.DropEvent
        if dropped:
            event["again"] = dropped
        return event


def _where_it_failed(_: object, __: str, event: EventDict) -> EventDict:
    """An exception as its types and places in our code.

    Its message and its variables stay out: they quote what the code choked on.
    """
    import traceback

    given = event.pop("exc_info", None)
    error = given if isinstance(given, BaseException) else sys.exc_info()[1]
    if not given or error is None:
        return event
    chain: list[dict[str, object]] = []
    while error is not None and len(chain) < _CHAIN:
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        at = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        chain.append({"type": type(error).__name__, "at": at})
        error = error.__cause__ or error.__context__
    event["exception"] = chain
    return event


def _without_secrets(_: object, __: str, event: EventDict) -> EventDict:
    """A session, a path or a reason may hold one, wherever it came from."""
    from memoryd.memory.scanner import redact_all

    return {key: redact_all(value) for key, value in event.items()}


def _line(_: object, __: str, event: EventDict) -> str:
    """The event as JSON; what that lets stand and a terminal obeys, or turns around, is escaped."""
    import structlog

    line = structlog.processors.JSONRenderer(ensure_ascii=False)(None, "", event)
    return str(line).translate(_OBEYED)


def logger() -> FilteringBoundLogger:
    """The process's logger."""
    import structlog

    _configured()
    return structlog.get_logger()  # type: ignore[no-any-return]


def failed(event: str, error: Exception, **values: object) -> None:
    """Log what the top of a thread caught, in the ``except`` block that did.

    What we raise on purpose, and what the system refused, say what they are; anything else is a
    fault of ours and is logged with its places in our code.
    """
    from memoryd.memory.errors import MemorydError

    if isinstance(error, MemorydError):
        logger().error(event, code=error.code, reason=str(error), **values)
    elif isinstance(error, OSError):
        code = f"os.{error.errno}"
        logger().error(event, code=code, reason=error.strerror, path=error.filename, **values)
    else:
        logger().exception(event, **values)


@contextmanager
def about(**values: object) -> Iterator[None]:
    """Every line logged inside, in this thread, carries ``values``."""
    import structlog

    with structlog.contextvars.bound_contextvars(**values):
        yield
