"""What stands between a merge of two stores and two stores again: begun, carried out, taken back.

A merge is a commit in the store that takes notes in and, later, one in the store that hands them
over, both with one ``Memoryd-Job``. Each may have been undone, and each step may have died.
"""

from __future__ import annotations

from memoryd.memory.baseline import Baseline, Commit
from memoryd.memory.changing import Change, lift
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.tombstones import Forgotten
from memoryd.memory.undo import MERGED, undone_commits


def merges(source: Store, target: Store) -> list[Commit]:
    """The commits by which ``target`` took in notes of ``source``, newest first, undone or not."""
    baseline = Baseline(target)
    every = baseline.with_trailer(MERGED) if baseline.exists() else []
    return [
        made
        for made in every
        if any(each.startswith(f"{source.key} ") for each in made.values(MERGED))
    ]


def job_of(made: Commit) -> str:
    """What ``undo`` takes for both sides of the merge."""
    return made.values("Memoryd-Job")[0]


def begun(source: Store, target: Store) -> Commit | None:
    """The newest merge, where it died before ``source`` handed its notes over; it stands."""
    newest = next(iter(merges(source, target)), None)
    if newest is None or newest.id in undone_commits(Baseline(target)):
        return None
    handed = Baseline(source).exists() and Baseline(source).commits_of(job_of(newest))
    return None if handed else newest


def to_take_back(source: Store, target: Store, *, half: bool = False) -> str | None:
    """The job of the newest merge of which anything stands; ``half``: and anything is undone."""
    undone = undone_commits(Baseline(target)) | undone_commits(Baseline(source))
    for job in dict.fromkeys(map(job_of, merges(source, target))):
        commits = [made for each in (source, target) for made in Baseline(each).commits_of(job)]
        taken = [made for made in commits if made.id in undone]
        if len(taken) < len(commits):
            return job if taken or not half else None
    return None


def put_back(source: Store, target: Store) -> None:
    """Have ``source`` whole again where a merge died while its files went, before their commit.

    The caller holds the writer lock of ``source``.
    """
    if begun(source, target) is None or not Baseline(source).exists():
        return
    head = Baseline(source)
    for path in head.files():
        if path != TOMBSTONES and source.read(path) is None:
            data = head.show("HEAD", path)
            if data is not None:
                source.replace(path, data, found=None)


def let_return(source: Store, target: Store, now_ms: int) -> None:
    """Lift what undoing a merge made ``target`` forget: ``source`` has those notes again.

    The caller holds the writer lock of ``target``.
    """
    back = ((path, source.read(path)) for path in source.paths() if path != TOMBSTONES)
    again = [Forgotten.of_file(path, data) for path, data in back if data is not None]
    change = Change(Baseline(target), now_ms)
    if lift(change, *again):
        change.carry_out(f"Know again what went back to {source.key}")
