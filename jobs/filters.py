"""Which jobs are meant: what a person may ask of a list, as conditions on a row."""

from __future__ import annotations

from dataclasses import dataclass

#: What each status stands for in a row, named by what its index asks for.
_STATUS = {
    "pending": "status = 'pending'",
    "waiting": "status = 'pending' and wait_reason is not null",
    "retrying": "status = 'pending' and wait_reason is null and failures > 0",
    "running": "status = 'running'",
    "completed": "status = 'completed'",
    "failed": "status = 'failed' and finished_at is not null",
    "cancelled": "status = 'cancelled' and finished_at is not null",
}

#: What a filter asks of a row. The project of what was not read yet is that of its transcript.
_ASKED = {
    "kind": "kind = :kind",
    "agent": "agent = :agent",
    # By the beginning or the ending of its id; the index alone is gone through for that.
    "session": "(agent, session) in (select agent, session from job where :session in"
    " (substr(session, 1, length(:session)), substr(session, -length(:session))))",
    "project": "(project = :project or (project is null and exists (select 1 from rollout"
    " where rollout.agent = job.agent and rollout.session = job.session"
    " and rollout.project = :project)))",
    "since": "created_at >= :since",
    "until": "created_at < :until",
    "reason": ":reason in (outcome_code, wait_reason, error_code)",
}


@dataclass(frozen=True)
class Filter:
    """Which jobs are meant; None: any.

    ``status`` is one of a row, ``waiting`` or ``retrying``; ``since`` and ``until`` are when it was
    made (wall ms, the end not included); ``session`` is the beginning or the ending of an id;
    ``reason`` is the code of its outcome, of its last failure or of why it waits.
    """

    status: str | None = None
    kind: str | None = None
    agent: str | None = None
    session: str | None = None
    project: str | None = None
    since: int | None = None
    until: int | None = None
    reason: str | None = None

    def clauses(self) -> tuple[list[str], dict[str, object]]:
        """The conditions, and the values that are bound in them."""
        values = {name: value for name, value in vars(self).items() if value is not None}
        status = values.pop("status", None)
        clauses = [_ASKED[name] for name in values]
        return [_STATUS[str(status)], *clauses] if status is not None else clauses, values

    def order(self) -> str:
        """The newest first.

        The few of a status are found among a million others by an index of theirs: an order that
        is none of the primary key's keeps that from being gone through.
        """
        return "id desc" if self.status in (None, "completed") else "id || '' desc"
