"""Words of forgotten notes in the ledger: what candidates, proposals and events hold of them goes.

A tombstone knows what was forgotten by keyed hashes; nothing here is needed for that. Older
versions of a row lie in free pages and in the write-ahead log: ``rewrite`` leaves none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator

from memoryd.jobs.backups import renewed
from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import LedgerError
from memoryd.memory.forget import told
from memoryd.memory.known import says_same
from memoryd.memory.notes import ARCHIVE, Note
from memoryd.memory.store import Store
from memoryd.memory.text import statement_key

#: What is planned is settled by whoever applies it, by the tombstone.
_OF_STORE = """
    select id, statement, path from candidate
    where (store = :store or store is null) and state <> 'planned'
"""
#: That there was a candidate, and what became of it, stays.
_SCRUB = """
    update candidate set statement = '', evidence = '[]', detail = '', draft = null, path = null,
        state = case when state = 'pending' then 'ignored' else state end,
        reason = case when state = 'pending' then 'forgotten' else reason end
    where id = :id
"""


def scrub_notes(
    ledger: Ledger,
    store: Store,
    notes: Collection[Note],
    matching: str | None = None,
    statement: str | None = None,
    *,
    paths: Iterable[str] = (),
) -> int:
    """Take what the ledger holds of a store's forgotten notes out of it; how many candidates.

    Also of what ``tells`` the same, and of files at ``paths`` that were no readable notes. Raises
    ``LedgerError``.
    """
    files = {*paths, *(note.path for note in notes)}
    files |= {path.removeprefix(f"{ARCHIVE}/") for path in files}
    ledger.db.rows("pragma secure_delete = 1")
    with ledger.db.writing(durable=True):
        meant = [
            identifier
            for identifier, said, path in ledger.db.rows(_OF_STORE, store=store.key)
            if path in files or (said and tells(said, notes, matching, statement))
        ]
        for identifier in meant:
            ledger.db.change(_SCRUB, id=identifier)
        _scrub_events(ledger, store.key, {path.removesuffix(".md") for path in files})
    return len(meant)


def tells(said: str, notes: Iterable[Note], matching: str | None, statement: str | None) -> bool:
    """Whether ``said`` says the same as one of the notes, tells ``matching``, is ``statement``."""
    return (
        any(says_same(note, said) for note in notes)
        or bool(matching and told(said, matching))
        or bool(statement and statement_key(said) == statement_key(statement))
    )


def rewrite(ledger: Ledger) -> Iterator[str]:
    """Have nothing that was scrubbed stay readable in the ledger's file.

    Where it may, that comes back, as lines for a person.
    """
    try:
        ledger.db.rows("vacuum")
        busy = ledger.db.rows("pragma wal_checkpoint(truncate)")[0][0]
    except LedgerError as error:
        yield f"the ledger could not be rewritten: {error.message}"
    else:
        if busy:
            yield f"{ledger.db.path}-wal is in use: a restart empties it"
        yield from renewed(ledger)


def in_history(stores: Iterable[Store]) -> list[str]:
    """What a person is told of the histories that still have what they forgot."""
    return [
        f"git's history of {store.key} still has the forgotten notes, so that undo can bring them"
        f" back; to let go of all of it, stop the daemon, delete {store.git_dir} and run"
        f" `memoryd memory restore --begin-anew --project {store.key}`: then nothing from before"
        " can be undone, and every note counts as written by you"
        for store in stores
    ]


def _scrub_events(ledger: Ledger, store: str, notes: Collection[str]) -> None:
    """Have no event name the notes; one that tells of nothing else goes."""
    for number, body in ledger.db.rows("select id, body from event"):
        told = json.loads(body)
        every = told.get("notes") or []
        left = [n for n in every if n.get("project") != store or n.get("note") not in notes]
        if every and not left:
            ledger.db.change("delete from event where id = :id", id=number)
        elif len(left) < len(every):
            text = json.dumps(told | {"notes": left}, ensure_ascii=False)
            ledger.db.change("update event set body = :body where id = :id", body=text, id=number)
