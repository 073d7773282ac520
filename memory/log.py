"""One way to log: structured lines on standard error, event names as ``noun.verb``.

Never transcript or memory text, only codes, counts, ids and paths. ``configure`` is called once by
whoever owns the process; a library user who does not call it gets structlog's own defaults.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def configure(stream: TextIO | None = None, *, verbose: bool = False) -> None:
    """Write one JSON object a line to ``stream`` (standard error); ``verbose`` adds debug."""
    import structlog

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if verbose else logging.INFO
        ),
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    for name in ("huey", "huey.consumer", "git", "watchdog"):
        logging.getLogger(name).setLevel(logging.WARNING)


def logger() -> FilteringBoundLogger:
    """The process's logger."""
    import structlog

    return structlog.get_logger()  # type: ignore[no-any-return]


@contextmanager
def about(**values: object) -> Iterator[None]:
    """Every line logged inside, in this thread, carries ``values``."""
    import structlog

    with structlog.contextvars.bound_contextvars(**values):
        yield
