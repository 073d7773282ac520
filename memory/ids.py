"""Identifiers that sort by the time they were made (UUID version 7, RFC 9562 section 5.7)."""

from __future__ import annotations

import secrets


def uuid7(now_ms: int) -> str:
    """A version 7 UUID of wall time ``now_ms``, as its canonical 36 characters."""
    value = (now_ms & (1 << 48) - 1) << 80 | secrets.randbits(80)
    value &= ~(0xF << 76) & ~(0x3 << 62)
    digits = f"{value | 0x7 << 76 | 0x2 << 62:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def short(identifier: str) -> str:
    """The ending a person sees and may type instead of the whole: its last 8 characters."""
    return identifier[-8:]
