"""What is derived from a store's notes, made again after a write.

It is never worth a save: nothing here fails one. A store that is held keeps its last index, whoever
writes into it: the lines of the notes that vanished are what a person may have left of them.
"""

from __future__ import annotations

from memoryd.memory.edits import require_not_held
from memoryd.memory.errors import StoreError, StoreHeld
from memoryd.memory.heads import forget_heads
from memoryd.memory.log import logger
from memoryd.memory.repository import Repository
from memoryd.memory.store import Store


def follow_forget(store: Store) -> None:
    """Have nothing derived hold a word or a name of what was just forgotten. Never raises.

    The caller holds the writer lock.
    """
    follow_index(store)
    forget_heads(store)
    try:
        if store.has_long_index():
            require_not_held(store)
            store.write_index()
        Repository(store).forget_paths()
    except (StoreError, OSError) as error:
        logger().warning("forget.derived-left", store=store.key, reason=str(error))


def follow_index(store: Store) -> None:
    """Have ``MEMORY.md`` follow what was just committed, unless the store is held. Never raises.

    The caller holds the writer lock.
    """
    try:
        if store.has_long_index():
            return
        require_not_held(store)
    except StoreHeld:
        return
    except StoreError as error:  # the files are all there is to go by then
        logger().warning("index.unchecked", store=store.key, reason=str(error))
    store.refresh_index()
