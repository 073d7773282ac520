"""What a slice, or a store, is to become: operations on files, each tied to the bytes it found.

A plan is recorded in the ledger before anything is written, so that a retry applies it without
asking a model again. It holds whole file contents: what is in it has been redacted and checked.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from memoryd.memory.errors import PlanUnreadable
from memoryd.memory.files import sha256


@dataclass(frozen=True)
class SliceRange:
    """The messages ``first..last`` (``seq``, inclusive) of one session that a plan covers."""

    agent: str
    session: str
    first: int
    last: int

    def __str__(self) -> str:
        """The form in the commit trailer ``Memoryd-Slice``: ``agent/session first..last``."""
        return f"{self.agent}/{self.session} {self.first}..{self.last}"


@dataclass(frozen=True)
class Operation:
    """One file of one store: from the bytes it was decided on to the bytes it leaves.

    ``before`` is the sha256 of the file as the plan found it, None where there was none.
    ``content`` is the whole new text, None to remove the file; ``after`` its sha256.
    ``line`` is the bare statement, appended to a file that a person changed meanwhile when the
    operation was an update; empty when the operation is then dropped with reason ``changed``.
    ``candidate`` is the id of the candidate it came from.
    """

    store: str
    path: str
    before: str | None
    after: str | None
    content: str | None
    line: str
    candidate: str


@dataclass(frozen=True)
class Plan:
    """The operations of one slice, or of one consolidation, in the order in which they are applied.

    A consolidation has no slice (None): its job makes one plan, and ``snapshot`` is the commit it
    was decided on. ``subject`` is the commit's first line; empty: made from the files' names.
    ``at_ms`` is when deciding began (0: unknown): what was forgotten since is not written.
    """

    job: str
    slice: SliceRange | None
    provider: str
    operations: tuple[Operation, ...]
    subject: str = ""
    snapshot: str = ""
    at_ms: int = 0

    @property
    def scope(self) -> SliceRange:
        """What its candidates and its row in the ledger are kept under."""
        return self.slice or SliceRange("", self.job, 0, 0)

    @property
    def digest(self) -> str:
        """The sha256 of ``to_json``: what tells this plan from another for the same scope."""
        return sha256(self.to_json().encode())

    def to_json(self) -> str:
        """The form kept in the ledger."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_json(text: str) -> Plan:
        """Read ``to_json`` back. Raises ``PlanUnreadable`` on anything else."""
        try:
            return msgspec.json.decode(text, type=Plan)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise PlanUnreadable(
                "what a job decided on cannot be read any more",
                hint="the next job of its session reads that part again; `memoryd run --once`",
            ) from error
