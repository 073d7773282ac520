"""Named points on both sides of each effect, where a test may stop the process or raise.

``before("plan.recorded")`` stands right before the effect and ``reach("plan.recorded")`` right
after it. Neither does anything in production. The crash tests replace ``prior`` and ``hook`` in a
child process of their own and kill it there, so no switch for it exists in the product.

``POINTS`` are those that the work on a job goes by, in about the order of a job's life; the crash
matrix (``tests/crash``) stops at each of them. ``ASIDE`` are those of what a person asks for, of
the daemon's start and of its index.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "envelope.inserted",
    "envelope.removed",
    "sessions.found",
    "job.enqueued",
    "job.rescued",
    "job.claimed",
    "messages.committed",
    "citations.credited",
    "citations.settled",
    "session.ingested",
    "gates.asked",
    "slice.begun",
    "edits.committed",
    "call.reserved",
    "call.answered",
    "call.settled",
    "call.counted",
    "breaker.tripped",
    "breaker.resumed",
    "slice.read",
    "store.read",
    "plan.recorded",
    "file.begun",
    "file.synced",
    "file.placed",
    "file.set-aside",
    "written.noted",
    "store.replaced",
    "baseline.made",
    "objects.written",
    "commit.made",
    "branch.moved",
    "index.moved",
    "store.committed",
    "written.forgotten",
    "project.recorded",
    "snapshot.moved",
    "cursor.advanced",
    "plan.finished",
    "job.snoozed",
    "job.failed",
    "job.released",
    "job.throttled",
    "job.completed",
)

ASIDE = (
    "daemon.opened",
    "index.batch",
    "project.merging",
    "candidate.written",
    "candidate.forgotten",
)


def _nothing(point: str) -> None:
    """The hook of production."""


prior: Callable[[str], None] = _nothing
hook: Callable[[str], None] = _nothing


def before(point: str) -> None:
    """Say that ``point`` (``noun.verb``) is about to happen."""
    prior(point)


def reach(point: str) -> None:
    """Say that ``point`` (``noun.verb``) has just happened."""
    hook(point)
