"""``memoryd memory forget``: what a person wants gone, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, open_queue, project_option, say, store_of
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.ledger import Ledger
    from memoryd.jobs.records import KeptCandidate
    from memoryd.memory.forget import Forgot
    from memoryd.memory.notes import Note
    from memoryd.memory.store import Store
    from memoryd.memory.tombstones import Forgotten, Span


@click.command(epilog="Example: memoryd memory forget --matching 'staging server' --yes")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--matching", metavar="TEXT", help="All that tells TEXT: shown first, see --yes.")
@click.option("--statement", metavar="TEXT", help="Never learn TEXT, though no note says it yet.")
@click.option("--anyway", is_flag=True, help="Also an unsaved version with a secret, for good.")
@click.option("--yes", is_flag=True, help="Forget what --matching finds.")
@project_option
@home_option
@json_option
def forget(
    names: tuple[str, ...],
    matching: str | None,
    statement: str | None,
    anyway: bool,
    yes: bool,
    project: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Forget notes by NAME or by what they tell, for good.

    With a note go its older versions in the archive and what waits in review and says the same
    (`memory delete` takes one note only). Nothing of it is learned again from what was said until
    now. One commit; `memory undo` brings the notes back.
    """
    from memoryd.jobs.scrub import in_history, rewrite, scrub_notes

    if not names and not (matching or "").strip() and not (statement or "").strip():
        raise click.UsageError("say what to forget: a NAME, --matching TEXT or --statement TEXT")
    store = store_of(home, project)
    ledger, _ = open_queue(home)
    notes = _chosen(store, names, matching)
    candidates = _candidates(ledger, store, notes, matching, statement)
    values: dict[str, object] = {
        "forgotten": [_values(store, note) for note in notes],
        "candidates": [{"id": each.id, "statement": each.statement} for each in candidates],
        "done": False,
        "commit": None,
        "undo": None,
        "left": [],
    }
    lines = [f"{note.path}: {note.description}" for note in notes]
    lines += [f"in review: {each.statement}" for each in candidates]
    if matching and not yes:
        told = "nothing was written; --yes forgets these" if lines else "nothing tells that"
        say(values, "\n".join([*lines, told]), as_json)
        return
    if not (notes or candidates or statement):
        say(values, "nothing tells that", as_json)
        return
    said = list(_said(ledger, store, candidates, statement))
    done = _do(ledger, store, notes, said, anyway)
    ledger.forget_candidates(each.id for each in candidates)
    scrub_notes(ledger, store, notes, matching, statement)
    left = [*in_history([store] if notes else []), *rewrite(ledger)]
    undo = None if done.lost else done.id
    values.update(done=True, commit=done.commit, undo=undo, left=left)
    back = f"forgotten; `memoryd memory undo {done.id[-8:]}` brings it back"
    if done.lost:
        back = f"forgotten; nothing brings {', '.join(done.lost)} back as it was"
    say(values, "\n".join([*lines, back, *left]), as_json)


def forget_at(ledger: Ledger, store: Store, paths: Iterable[str]) -> Forgot:
    """Forget the notes at ``paths``, as the command does: with their older versions in the archive
    and what waits in review and says the same. Raises as ``memory.forget.forget`` does.
    """
    from memoryd.jobs.scrub import scrub_notes
    from memoryd.memory.forget import with_versions

    every, wanted = store.notes(), set(paths)
    notes = with_versions(every, [note for note in every if note.path in wanted])
    candidates = _candidates(ledger, store, notes, None, None)
    done = _do(ledger, store, notes, list(_said(ledger, store, candidates, None)), False)
    ledger.forget_candidates(each.id for each in candidates)
    scrub_notes(ledger, store, notes)
    return done


def _do(
    ledger: Ledger,
    store: Store,
    notes: Sequence[Note],
    said: Sequence[Forgotten],
    anyway: bool,
) -> Forgot:
    """Forget the notes and what was said."""
    from memoryd.cli.common import heard_ms
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.forget import forget as forget_notes

    def spans(path: str) -> list[Span]:
        before = path.removeprefix("archive/")
        known = ledger.records.evidence(store.key, path)
        return known if before == path else known + ledger.records.evidence(store.key, before)

    done = forget_notes(
        store,
        [note.path for note in notes],
        clock=SystemClock(),
        spans=spans,
        said=said,
        heard_ms=heard_ms(store.home, store.key),
        anyway=anyway,
    )
    for note in notes:
        if not note.archived:
            ledger.usage.forget_usage(store.key, note.id)
    return done


def _said(
    ledger: Ledger, store: Store, candidates: Iterable[KeptCandidate], statement: str | None
) -> Iterable[Forgotten]:
    """What is said by no note. A merge says nothing that the notes it names do not."""
    from memoryd.jobs.reviewing import waiting
    from memoryd.memory.proposals import MergeProposal
    from memoryd.memory.tombstones import Forgotten

    merges = {
        each.id
        for each in waiting(ledger, store.key)
        if isinstance(each.proposed.proposal, MergeProposal)
    }

    if statement and statement.strip():
        yield Forgotten("", (statement,))
    for each in candidates:
        if each.id in merges:
            continue
        spans = tuple((message, span) for message, _, span in each.evidence)
        yield Forgotten("", (each.statement,), spans)


def _chosen(store: Store, names: Sequence[str], matching: str | None) -> list[Note]:
    """The notes that were named or that tell the text, and all their older versions."""
    from memoryd.memory.forget import tells, with_versions

    every = store.notes()
    found = [_named(every, name) for name in names]
    found += [note for note in every if matching and tells(note, matching)]
    chosen = {note.path: note for note in found}
    return with_versions(every, chosen.values())


def _named(notes: Sequence[Note], name: str) -> Note:
    """The one note called ``name`` (or ``type/name``, or by its path), the archive last."""
    wanted = name.removesuffix(".md")
    live = [note for note in notes if not note.archived]
    for among in (live, notes):
        found = [note for note in among if wanted in (note.name, note.id, note.path[:-3])]
        if len(found) == 1:
            return found[0]
        if found:
            both = " and ".join(note.path for note in found)
            raise UsageError(f"{name[:80]!r} names {both}", hint="put the type before the name")
    raise UsageError(
        f"no note of this project is called {name[:80]!r}",
        hint="`memoryd memory list` shows the names; --project looks in another project",
    )


def _candidates(
    ledger: Ledger,
    store: Store,
    notes: Sequence[Note],
    matching: str | None,
    statement: str | None,
) -> list[KeptCandidate]:
    """What waits in review and says the same as the notes or the texts."""
    from memoryd.jobs.reviewing import waiting
    from memoryd.jobs.scrub import tells
    from memoryd.memory.forget import proposes

    proposed = {each.id: each.proposed.proposal for each in waiting(ledger, store.key)}
    texts = [text for text in (matching, statement) if text and text.strip()]

    def meant(each: KeptCandidate) -> bool:
        return (
            any(each.path == note.path for note in notes)
            or tells(each.statement, notes, matching, statement)
            or (each.id in proposed and proposes(proposed[each.id], notes, texts))
        )

    return [each for each in ledger.records.in_review(store.key) if meant(each)]


def _values(store: Store, note: Note) -> dict[str, object]:
    return {
        "project": store.key,
        "type": note.type,
        "name": note.name,
        "path": str(store.root / note.path),
        "archived": note.archived,
    }
