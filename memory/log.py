"""One way to log: structured lines on standard error, event names as ``noun.verb``.

Never transcript or memory text, only codes, counts, ids and paths. ``configure`` is called once by
whoever owns the process; a library user who does not call it gets structlog's own defaults.
"""

from __future__ import annotations

import sys
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
            _without_secrets,
            structlog.processors.JSONRenderer(ensure_ascii=False),
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
