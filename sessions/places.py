"""Where each session of an agent is: one place of it, though its folders may hold several.

A checkout that moved, or a synchronised folder, leaves transcripts of one session in two places. It
is read where it was last written to; of equals where it is longest, then where the name is first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoryd.sessions.adapter import Adapter, Found


def once_each(adapter: Adapter, environ: Mapping[str, str]) -> Iterator[Found]:
    """Every session of the agent once, in the order it was met."""
    met: dict[str, list[Found]] = {}
    for found in adapter.discover(environ):
        met.setdefault(found.session, []).append(found)
    for each in met.values():
        yield each[0] if len(each) == 1 else _chosen(adapter, each)


def place_of(adapter: Adapter, environ: Mapping[str, str], session: str) -> Path | None:
    """Where one session is, None where it is not."""
    met = [found for found in adapter.discover(environ) if found.session == session]
    return _chosen(adapter, met).path if met else None


def _chosen(adapter: Adapter, met: Iterable[Found]) -> Found:
    def order(found: Found) -> tuple[int, int]:
        look = adapter.look(found.path, found.session)
        if look is None:
            return -1, -1
        active_ms = look.active_ms if found.active_ms is None else found.active_ms
        return active_ms, look.at_most

    return max(sorted(met, key=lambda found: str(found.path)), key=order)
