"""What notes were shown to agents, and which of them the agents say they used.

An injection is one note shown with one message of a session. A citation is credited to the newest
injection of its note shown before it was said, and only once: a reply that is read again, or
several that repeat a tag, change nothing. Counters are kept by store and note; they may be lost
without harm, and go with their note.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memoryd.jobs import statements as sql
from memoryd.jobs.database import Database
from memoryd.memory.clock import Clock
from memoryd.memory.decay import Use
from memoryd.memory.errors import UsageError
from memoryd.memory.ids import uuid7
from memoryd.memory.text import clip, without_surrogates

if TYPE_CHECKING:
    from memoryd.memory.edits import EditsOutcome

#: How long an injection can be credited, and is kept.
INJECTION_DAYS = 90
TEXT_CHARACTERS = 1024
PRUNE_BATCH = 1000


class Usage:
    """The injections and counters of one ledger. All methods raise ``LedgerError``."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self.db = db
        self.clock = clock

    def record_injection(
        self, agent: str, session: str, message: str, notes: Iterable[tuple[str, str]]
    ) -> int:
        """Note that these notes (store, ``type/name``) were shown with ``message``; how many anew.

        Told twice it counts once. Raises ``UsageError`` for what a row cannot hold.
        """
        wanted = dict.fromkeys(notes)
        _check(agent, session, message, *(text for note in wanted for text in note))
        now = self.clock.now_ms()
        shown = 0
        with self.db.writing():
            for store, note in wanted:
                which = {"store": store, "note": note, "now": now}
                where = {"agent": agent, "session": session, "message": message}
                if self.db.change(sql.SHOW, **which, **where, id=uuid7(now)):
                    self.db.change(sql.COUNT_SHOWN, store=store, note=note)
                    shown += 1
        return shown

    def credit(
        self, agent: str, session: str, ids: Iterable[str], *, at_ms: int | None = None
    ) -> list[str]:
        """Credit the notes cited in a session, by ``type/name``; those credited now come back.

        ``at_ms`` is when they were cited, now where nobody knows: only what was shown before then,
        with the newest message that showed it, and was not credited for that, is.
        """
        now = self.clock.now_ms()
        at = now if at_ms is None else min(at_ms, now)
        _check(agent, session)
        return [note for note in dict.fromkeys(ids) if self._credit(agent, session, note, at)]

    def _credit(self, agent: str, session: str, note: str, at: int) -> bool:
        where = {"agent": agent, "session": session, "note": without_surrogates(note)}
        if not self.db.rows(sql.UNCREDITED, **where, at=at):
            return False
        with self.db.writing():
            rows = self.db.rows(sql.CREDIT, **where, at=at)
            for (store,) in rows:
                self.db.change(sql.COUNT_USED, store=store, note=where["note"], at=at)
        return bool(rows)

    def usage_of(self, store: str) -> dict[str, Use]:
        """The counters of a store's notes, by ``type/name``; one that is missing was
        never shown (``decay.NEVER``)."""
        rows = self.db.rows(
            "select note, shown, used, last_used_at from usage where store = :store", store=store
        )
        return {str(note): Use(*counters) for note, *counters in rows}

    def stores(self) -> list[str]:
        """The keys of the stores of which any note was ever shown."""
        return [str(key) for (key,) in self.db.rows("select distinct store from usage order by 1")]

    def forget_usage(self, store: str, note: str) -> None:
        """The note is gone: its counters and injections go too."""
        with self.db.writing():
            self.db.change(sql.FORGET_USAGE, store=store, note=note)
            self.db.change(sql.FORGET_INJECTIONS, store=store, note=note)

    def rename_usage(self, store: str, old: str, new: str) -> None:
        """The note is called ``new`` now; its counters are added to what ``new`` has."""
        if old == new:
            return
        with self.db.writing():
            self.db.change(sql.RENAME_USAGE, store=store, old=old, new=new)
            self.db.change(sql.RENAME_INJECTIONS, store=store, old=old, new=new)
            self.forget_usage(store, old)

    def prune(self) -> int:
        """Delete the injections older than ``INJECTION_DAYS``; how many. Counters stay."""
        before = self.clock.now_ms() - INJECTION_DAYS * 24 * 3600 * 1000
        pruned = 0
        while True:
            with self.db.writing():
                gone = self.db.change(sql.PRUNE_INJECTIONS, before=before, batch=PRUNE_BATCH)
            pruned += gone
            if gone < PRUNE_BATCH:
                return pruned


def follow_edits(usage: Usage, store: str, edits: EditsOutcome) -> None:
    """Let the counters follow what a person did in ``store``: deleted notes, and moved ones.

    A note goes by the name in its header, or by its file's where that cannot be read: a file that
    only got another name keeps its counters. One that left the store is none of its notes any more.
    """
    for path in edits.forgotten:
        usage.forget_usage(store, _note_at(path))
    for moved in edits.moved:
        if moved.names is not None:
            usage.rename_usage(store, *moved.names)
        elif not moved.store and moved.to in edits.edited:
            usage.rename_usage(store, _note_at(moved.path), _note_at(moved.to))
        else:
            usage.forget_usage(store, _note_at(moved.path))


def _note_at(path: str) -> str:
    """``type/name`` of the note whose file ``path`` is, as notes are named when written."""
    return "/".join(path.removesuffix(".md").split("/")[-2:])


def _check(*texts: str) -> None:
    for text in texts:
        if len(text) > TEXT_CHARACTERS or "\0" in text or text != without_surrogates(text):
            raise UsageError(
                f"{clip(ascii(text), 60)} cannot be kept in the ledger",
                hint=f"names are valid UTF-8, at most {TEXT_CHARACTERS} characters",
            )
