"""Identifiers that sort by the time they were made (UUID version 7, RFC 9562 section 5.7)."""

from __future__ import annotations

import os
import threading

#: Of a millisecond; the twelve bits after the version number count them.
_MOST = 0xFFF


class _Turns:
    """Numbers what one process makes within a millisecond (RFC 9562 section 6.2, method 1)."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._now_ms = -1
        self._turn = 0

    def take(self, now_ms: int) -> int:
        """0 for the first of a millisecond, then one more each time, as far as the bits go."""
        with self._guard:
            self._turn = min(self._turn + 1, _MOST) if now_ms == self._now_ms else 0
            self._now_ms = now_ms
            return self._turn


_turns = _Turns()


def _random_bits() -> int:
    """62 bits of the system's; ``secrets.randbits`` takes three times as long to ask for them."""
    return int.from_bytes(os.urandom(8), "big") >> 2


def uuid7(now_ms: int) -> str:
    """A version 7 UUID of wall time ``now_ms``, as its canonical 36 characters.

    Those that one process makes within a millisecond sort in the order they were made.
    """
    value = (now_ms & (1 << 48) - 1) << 80 | _turns.take(now_ms) << 64 | _random_bits()
    digits = f"{value | 0x7 << 76 | 0x2 << 62:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def short(identifier: str) -> str:
    """The ending a person sees and may type instead of the whole: its last 8 characters."""
    return identifier[-8:]
