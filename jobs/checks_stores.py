"""What the doctor looks at in every store, and where projects are."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from memoryd.jobs.looking import CheckAll, Look
from memoryd.jobs.projects import found_again
from memoryd.memory import health
from memoryd.memory.health import Finding, found_by
from memoryd.memory.identities import is_known, last_place
from memoryd.memory.projects import Resolver
from memoryd.memory.store import Store


def moved_projects(look: Look) -> Iterator[Finding]:
    """Projects that are gone from their place, where a directory fits them."""
    resolver = Resolver(look.home, look.config.projects.worktrees)
    for known, place in found_again(look.home):
        there = resolver.resolve(place)
        if there.key == known.key:  # the next session there says so by itself
            continue
        gone = f"is gone from {last_place(known)}"
        what = f"the project {known.key} {gone}; {place} is the same repository"
        todo = f"`memoryd project mv {known.key} {shlex.quote(place)}` if it moved there"
        if is_known(look.home, there.key):
            todo = f"`memoryd project merge {known.key} {there.key}` if they are one"
        yield Finding("project.gone", "warning", what, todo)


def stale_locks(look: Look) -> Iterator[Finding]:
    """Locks that a git left in a store and that nobody holds any more."""
    return _each(partial(health.stale_locks, now_ms=look.clock.now_ms()), look)


def _each(check: Callable[[Store], Iterable[Finding]], look: Look) -> Iterator[Finding]:
    """``check`` in every store; one that cannot be looked at does not hide the others."""
    for store in look.stores:
        for each in found_by(partial(check, store)):
            named = store.key in each.what or os.fspath(store.root) in each.what
            yield each if named else replace(each, what=f"{store.root}: {each.what}")


def in_each_store(check: Callable[[Store], Iterable[Finding]]) -> CheckAll:
    """The check of a home that looks with ``check`` at each of its stores."""
    return partial(_each, check)
