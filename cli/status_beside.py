"""What ``memoryd status`` looks at beside the ledger, where no daemon answers that would tell."""

from __future__ import annotations

from typing import Any

from memoryd.memory.home import Home

#: A session history is looked through for so long: a large one would keep a person waiting.
GLANCE_SECONDS = 0.1


def seen_beside(home: Home, *, alone: bool) -> dict[str, Any]:
    """Why no daemon answers, and what keeps the next one from starting; nothing where one does.

    ``service_stopped``: a person stopped the service; ``worker_died``: who last worked the home
    died at it; ``history_trouble``: what is wrong with the session history, as far as a short look
    tells, empty where nothing was seen.
    """
    if not alone:
        return {"service_stopped": False, "worker_died": False, "history_trouble": ""}
    from memoryd.daemon import service_record
    from memoryd.jobs.checks_work import holder_died
    from memoryd.memory.database_files import glance

    return {
        "service_stopped": service_record.read(home).stopped,
        "worker_died": holder_died(home),
        "history_trouble": glance(home.session_history, GLANCE_SECONDS),
    }
