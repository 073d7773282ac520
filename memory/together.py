"""Several files written as one: all of them as they are wanted, or all as they were.

What each is written over is the bytes it was decided on, never what is there a moment later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.memory import seams
from memoryd.memory.errors import StoreError
from memoryd.memory.files import sha256
from memoryd.memory.store import Store


@dataclass(frozen=True)
class Rewrite:
    """A file of a store, from the bytes it was decided on to those wanted (None: no file)."""

    store: Store
    path: str
    found: bytes | None
    wanted: bytes | None

    def write(self) -> bool:
        """Do it; False, and nothing done, when the file is not as it was found."""
        if self.found == self.wanted:
            return True
        found = None if self.found is None else sha256(self.found)
        if self.wanted is not None:
            return self.store.replace(self.path, self.wanted, found=found)
        return found is None or self.store.remove(self.path, found=found)

    def back(self) -> Rewrite:
        """What takes it back."""
        return Rewrite(self.store, self.path, self.wanted, self.found)


def write_together(rewrites: Sequence[Rewrite]) -> None:
    """Write all, or none. New contents first, then what goes: a crash doubles a file, never
    loses one.

    Raises ``StoreError`` when a file is not as it was found, or cannot be written: what was
    written by then is put back, and where a person has changed that too, theirs stands.
    """
    for each in rewrites:
        if each.store.read(each.path) != each.found:
            raise _changed(each)
    order = sorted(rewrites, key=lambda each: each.wanted is None)
    for at, each in enumerate(order):
        try:
            if not each.write():
                raise _changed(each)
        except StoreError:
            for done in reversed(order[:at]):
                done.back().write()
            raise
        seams.reach("store.replaced")


def _changed(one: Rewrite) -> StoreError:
    return StoreError(f"{one.path} changed at this moment", hint="look at it, then try again")
