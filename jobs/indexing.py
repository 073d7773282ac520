"""Full text kept up with what was read: a little at a time, beside the work that has a deadline."""

from __future__ import annotations

from collections.abc import Callable

from memoryd.jobs.workplace import Workplace
from memoryd.memory.errors import HistoryError
from memoryd.memory.log import logger
from memoryd.sessions.index import never

#: How long it goes on once it has begun; what is left waits for the next time, or for a search.
INDEX_SECONDS = 2.0


def index_some(place: Workplace, stopping: Callable[[], bool] = never) -> int:
    """Index messages that are not yet, and purge the words of those forgotten; how many.

    With ``store = false`` none is: its words go with its job, and each that stood in the index then
    costs rewriting all of that.

    What stands in the way is logged and left: a search says the same, and no job depends on it.
    """
    until = place.clock.monotonic() + INDEX_SECONDS

    def stop() -> bool:
        return stopping() or place.clock.monotonic() >= until

    try:
        done = place.history.index.catch_up(stop) if place.config.sessions.store else 0
        if not stop() and not place.history.index.purge(stop):
            logger().info("index.purging")
    except HistoryError as error:
        logger().warning("index.left", reason=str(error))
        return 0
    return done
