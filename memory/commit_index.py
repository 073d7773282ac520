"""Which commits a store's history has, kept in this process: it is not walked for every save.

A plan asks whether its slice was committed before, ever: by itself before a crash, or by another
plan when the ledger was lost. So no bound in time would do. Instead what was walked once is kept,
by the commit it was walked from: a history only grows, and the next walk is of what was added.
Nothing is believed that is not an ancestor: where the branch went elsewhere (a reset, a history
begun anew, a merge by hand) everything is walked again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from memoryd.memory.commits import FORMAT, Commit, parse_commit
from memoryd.memory.gitprogram import Git

#: Trailers by which commits are found.
MARKS = ("Memoryd-Job", "Memoryd-Slice")
#: Commits kept in all, of whatever stores: some 300 bytes each.
COMMITS = 50_000

#: The parents follow what ``parse_commit`` reads.
_FORMAT = FORMAT.replace("%x1e", "%P%x00%x1e")
_END = "\0\x1e\n"


@dataclass
class CommitIndex:
    """The commits up to ``head``, oldest first, and the places of those that have a mark.

    ``linear`` says that each is the only parent of the next.
    """

    head: str
    ids: list[bytes] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)
    marked: dict[int, list[int]] = field(default_factory=dict)
    linear: bool = True

    def with_mark(self, key: str, value: str) -> list[str]:
        """The ids of the commits that may have this trailer, newest first: ask each."""
        found = self.marked.get(hash((key, value)), ())
        return [self.ids[at].hex() for at in reversed(found)]

    def since(self, at_ms: int) -> str | None:
        """The range of git that holds every commit made at ``at_ms`` or later; None: there is none.

        Also where a clock was set back between two of them.
        """
        first = next((at for at, made_ms in enumerate(self.times_ms) if made_ms >= at_ms), None)
        if first is None:
            return None
        return f"{self.ids[first - 1].hex()}..{self.head}" if first else self.head

    def add(self, commit: Commit, parents: str) -> None:
        """Add the next one."""
        before = self.ids[-1].hex() if self.ids else ""
        self.linear = self.linear and parents == before
        for key in MARKS:
            for value in commit.values(key):
                self.marked.setdefault(hash((key, value)), []).append(len(self.ids))
        self.ids.append(bytes.fromhex(commit.id))
        self.times_ms.append(commit.at_ms)


_guard = threading.Lock()
_kept: OrderedDict[str, CommitIndex] = OrderedDict()
_walking: dict[str, threading.Lock] = {}


def commit_index(git: Git, place: str, head: str) -> CommitIndex:
    """What the history at ``place``, a folder of git's, has up to ``head``.

    Raises ``BaselineError`` where it cannot be read.
    """
    with _guard:
        walking = _walking.setdefault(place, threading.Lock())
    with walking:  # nobody else waits for this git
        with _guard:
            kept = _kept.pop(place, None)
        if kept is None or not _follow(git, kept, head):
            kept = CommitIndex(head)
            for commit, parents in _walked(git.ok(*_log(head))):
                kept.add(commit, parents)
        _keep(place, kept)
        return kept


def _keep(place: str, index: CommitIndex) -> None:
    with _guard:
        _kept[place] = index
        while len(_kept) > 1 and sum(len(each.ids) for each in _kept.values()) > COMMITS:
            _kept.popitem(last=False)


def _follow(git: Git, kept: CommitIndex, head: str) -> bool:
    """Whether ``kept`` reaches to ``head`` now; False, and nothing is kept, where it cannot."""
    if kept.head == head:
        return True
    done = git.run(*_log(f"{kept.head}..{head}"))
    added = _walked(done.out) if done.status == 0 else []
    if not added or not kept.linear or added[0][1] != kept.head:
        return False
    for commit, parents in added:
        kept.add(commit, parents)
    kept.head = head
    return kept.linear


def _log(what: str) -> tuple[str, ...]:
    return ("log", "--reverse", "--encoding=UTF-8", f"--format={_FORMAT}", what)


def _walked(out: bytes) -> list[tuple[Commit, str]]:
    """Each commit and its parents, oldest first."""
    records = out.decode("utf-8", "replace").split(_END)
    return [(parse_commit(each), each.split("\0")[5]) for each in records if each]
