"""What is wrong with the stores, or the ledger: logged once, and in the status until mended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memoryd.memory.log import logger
from memoryd.memory.store import Unreadable


@dataclass
class Troubles:
    """What a person should know, of the stores by key. Each is logged once."""

    #: Too much vanished at once, with the reason.
    held: dict[str, str] = field(default_factory=dict)
    #: Git or the files refuse, with the reason.
    unusable: dict[str, str] = field(default_factory=dict)
    #: Files in a note's place that are none, with the reason of each.
    unreadable: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Edits in which the scanner found a secret: left uncommitted.
    secret: dict[str, list[str]] = field(default_factory=dict)
    #: Indexes that cannot be written, with the reason.
    index: dict[str, str] = field(default_factory=dict)

    #: Why today's copy of the ledger could not be made: it is not whole, or there is no room.
    uncopied: str = ""

    def hold(self, key: str, reason: str) -> None:
        """The store is held."""
        if key not in self.held:
            logger().warning("store.held", store=key, reason=reason)
        self.held[key] = reason

    def refuse(self, key: str, reason: str) -> None:
        """The store cannot be used."""
        if self.unusable.get(key) != reason:
            logger().warning("store.unusable", store=key, reason=reason)
        self.unusable[key] = reason

    def name_index(self, key: str, reason: str | None) -> None:
        """The index of the store cannot be written, for this reason; None: it can."""
        known = self.index.pop(key, None)
        if reason is None:
            return
        if known != reason:
            logger().warning("index.unusable", store=key, reason=reason)
        self.index[key] = reason

    def name_unreadable(self, key: str, found: list[Unreadable]) -> None:
        """These files of the store are no readable notes, and no others."""
        known = self.unreadable.pop(key, {})
        for each in found:
            if known.get(each.path) != each.reason:
                logger().warning("note.unreadable", store=key, path=each.path, reason=each.reason)
        if found:
            self.unreadable[key] = {each.path: each.reason for each in found}

    def name_secret(self, key: str, paths: tuple[str, ...]) -> None:
        """These edits of the store hold a secret, and no others."""
        known = self.secret.pop(key, [])
        for path in paths:
            if path not in known:
                logger().warning("edit.secret", store=key, path=path)
        if paths:
            self.secret[key] = list(paths)

    def for_status(self) -> dict[str, Any]:
        """All of it as plain values, for another thread to show."""
        return {
            "uncopied_ledger": self.uncopied,
            "held_stores": dict(self.held),
            "unusable_stores": dict(self.unusable),
            "unreadable_notes": {key: dict(found) for key, found in list(self.unreadable.items())},
            "uncommitted_secrets": {key: list(paths) for key, paths in list(self.secret.items())},
        }
