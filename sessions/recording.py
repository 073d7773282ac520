"""Recording one batch of a transcript inside a transaction of the caller's.

Decides for each message whether it is known (by id, or as the next of its equals), a copy of
another session's, or new; only a new one gets a ``seq``. One whose id is known and whose words are
others is newer: it takes the place of the first, unless that was distilled. Nothing here commits.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from dataclasses import replace

from memoryd.sessions import schema
from memoryd.sessions.stored import Batch, Event, Keep, Recorded, RollBack, Saved

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: How many messages of the session forked from may be missing here before the copy counts as ended.
_FORK_GAP = 50
#: How far ahead of the time it is read a message's own time may be, and still be believed.
_AHEAD_MS = 3600 * 1000


class Recording:
    """One batch going into one session's rows."""

    def __init__(
        self,
        cursor: sqlite3.Cursor,
        agent: str,
        session_id: int,
        last_seq: int,
        batch: Batch,
        now_ms: int,
        distilled_seq: int = 0,
    ) -> None:
        self._cursor = cursor
        self._agent = agent
        self._session_id = session_id
        self._last_seq = last_seq
        #: The message that was said last, as far as this batch tells.
        self._latest = last_seq
        self._batch = batch
        self._now_ms = now_ms
        #: Up to here a cursor has passed: those words stand, whatever the agent makes of them.
        self._distilled_seq = distilled_seq
        self._forked_from: list[str] | None = None
        self.done = Recorded(last_seq=last_seq)

    def run(self) -> Recorded:
        """Apply the batch's events in order. Raises ``sqlite3.Error``; then nothing may commit."""
        if self._batch.state.kind != "root":
            self._cursor.execute(schema.DROP_MESSAGES, (self._session_id,))
            return self.done
        for event in self._batch.events:
            self._record(event)
        return self.done

    def _record(self, event: Event) -> None:
        if isinstance(event, Keep):
            self._keep(event)
        elif isinstance(event, RollBack):
            self._roll_back(event.turns)
        elif isinstance(event, Saved):
            call = hashlib.sha256(event.call.encode()).digest()
            row = (self._session_id, call, self._latest, event.line_end)
            self._cursor.execute(schema.SAVE, row)
        else:
            cited = (self._session_id, json.dumps(event.notes), event.at_ms)
            self._cursor.execute(schema.CITE, cited)

    def _keep(self, message: Keep) -> None:
        if message.id:
            self._keep_by_id(message)
        else:
            self._keep_by_base(message)

    def _keep_by_id(self, message: Keep) -> None:
        """One look-up serves both questions: is it known here, and does it stand elsewhere?"""
        found = self._cursor.execute(schema.KNOWN, (message.id,)).fetchall()
        for session_id, seq, parts, reading, role in found:
            if session_id == self._session_id and role == message.role:
                if not self._renewed(message, seq, parts, reading):
                    self._meet(message, seq, parts, reading)
                return
            if session_id == self._session_id:  # an id that both sides use tells nothing
                self._keep_by_base(message)
                return
        if (found and self._copied_by_id(message)) or self._copied_by_fork(message):
            self.done.copied += 1
        else:
            self._add(message, message.id, None, None)

    def _keep_by_base(self, message: Keep) -> None:
        base = _base(message)
        found = self._one(schema.EQUAL, (self._session_id, base, self._batch.reading))
        if found is not None:
            self._meet(message, *found)
        elif self._copied_by_fork(message):
            self.done.copied += 1
        else:
            ordinal = self._next_ordinal(base)
            known_as = hashlib.sha256(b"%s/%d" % (base, ordinal)).hexdigest()
            self._add(message, known_as, base, ordinal)

    def _renewed(self, message: Keep, seq: int, parts: int, met_in: int) -> bool:
        """Whether the agent changed a message that nobody has distilled yet: the newest counts.

        It keeps its place where it fits there, else it is the last that was said.
        """
        span = (self._session_id, seq, seq + parts - 1)
        said = self._cursor.execute(schema.SAID, span).fetchall()
        texts = tuple(text for text, *_ in said)
        if seq <= self._distilled_seq or texts == message.parts or "" in texts:
            return False
        self._cursor.execute(schema.TAKE_AWAY, span)
        fits = len(message.parts) <= parts or span[2] == self._last_seq
        _, state, line_end = said[0]
        if met_in != self._batch.reading:
            state = "live"
        elif fits:
            # A job whose cutoff lies between the two must not pass its cursor over an unseen place.
            message = replace(message, line_end=line_end)
        self._put(message, message.id, seq - 1 if fits else self._last_seq, state=state)
        return True

    def _meet(self, message: Keep, seq: int, parts: int, met_in: int) -> None:
        """The message stands already; say that this reading has met it."""
        reading = self._batch.reading
        self._latest = seq + parts - 1
        if met_in != reading:
            span = (seq, seq + parts - 1)
            said = (reading, message.line_end, self._session_id)
            self._cursor.execute(schema.MEET, (*said, *span))

    def _copied_by_id(self, message: Keep) -> bool:
        """Only an id that is unique in the world says that two sessions hold one message."""
        if not _UUID.match(message.id):
            return False
        said = (message.role, message.parts[0], len(message.parts))
        key = (message.id, self._session_id, self._agent)
        return self._one(schema.COPY, (*key, *said)) is not None

    def _copied_by_fork(self, message: Keep) -> bool:
        """Without ids, a fork copies its origin as long as its messages are equal, in order.

        What that was forked from itself stands there: its own copy was not kept. Where the fork
        was read first, it has what both begin with.
        """
        state = self._batch.state
        if state.copied_seq < 0:
            return False
        said = (message.role, message.parts[0], len(message.parts))
        origins = self._origins()
        at = origins.index(state.copied_from) if state.copied_from in origins else 0
        for origin in origins[at:]:
            after = state.copied_seq if origin == state.copied_from else 0
            key = (self._agent, origin, after, after + _FORK_GAP)
            found = self._one(schema.COPY_OF_FORK, (*key, *said))
            if found:
                state.copied_from, state.copied_seq = origin, found[0]
                return True
        state.copied_seq = -1
        return False

    def _origins(self) -> list[str]:
        """The sessions that this one was forked from, the eldest first; of none, its forks."""
        if self._forked_from is None:
            origin = self._batch.state.forked_from
            if origin:
                key: tuple[str, ...] = (self._agent, origin, self._agent)
                rows = self._cursor.execute(schema.ORIGINS, key).fetchall()
            else:
                key = (self._agent, self._batch.state.session)
                rows = self._cursor.execute(schema.FORKS, key).fetchall()
            self._forked_from = [session for (session,) in rows]
        return self._forked_from

    def _next_ordinal(self, base: bytes) -> int:
        key = (self._session_id, base, self._batch.reading)
        found = self._one(schema.LAST_EQUAL, key)
        return found[0] + 1 if found else 0

    def _add(self, message: Keep, known_as: str, base: bytes | None, ordinal: int | None) -> None:
        self._put(message, known_as, self._last_seq, base, ordinal)
        self.done.messages += 1
        self.done.user_messages += message.role == "user"
        self.done.first_seq = self.done.first_seq or self._last_seq - len(message.parts) + 1

    def _put(
        self,
        message: Keep,
        known_as: str,
        after: int,
        base: bytes | None = None,
        ordinal: int | None = None,
        *,
        state: str = "live",
    ) -> None:
        """Store the message with the ``seq`` that follow ``after``."""
        total = len(message.parts)
        at_ms = message.at_ms
        if at_ms is not None and at_ms > self._now_ms + _AHEAD_MS:
            at_ms = None  # a wrong clock: when it was said is not known
        for part, text in enumerate(message.parts, 1):
            first = part == 1
            row = (
                *(self._session_id, after + part, known_as if first else f"{known_as}#{part}"),
                *(part, total, base if first else None, ordinal if first else None),
                *(self._batch.reading, message.role, text, at_ms),
                *(message.cwd, message.project, message.line_end, state),
            )
            self._cursor.execute(schema.ADD, row)
        self._latest = after + total
        self.done.last_seq = self._last_seq = max(self._last_seq, self._latest)

    def _roll_back(self, turns: int) -> None:
        reading = self._batch.reading
        found = self._one(schema.TURN, (self._session_id, reading, turns - 1))
        since = found[0] if found else 0
        self._cursor.execute(schema.ROLL_BACK, (self._session_id, since, reading))

    def _one(self, statement: str, values: tuple[object, ...]) -> tuple[int, ...] | None:
        row: tuple[int, ...] | None = self._cursor.execute(statement, values).fetchone()
        return row


def _base(message: Keep) -> bytes:
    """sha256 of role, time and text: what makes two messages without ids equal."""
    said = "\0".join((message.role, str(message.at_ms), *message.parts))
    return hashlib.sha256(said.encode()).digest()
