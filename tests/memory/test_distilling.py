"""From messages to notes with the rules alone: chunks, answers, policy, drafts, and once more."""

from __future__ import annotations

from itertools import count

from memoryd.memory.config import CurationSettings
from memoryd.memory.drafting import Draft, Stock, draft
from memoryd.memory.facts import SliceMessage, parse_answer
from memoryd.memory.known import known_in
from memoryd.memory.nearest import NearestNotes
from memoryd.memory.notes import Note, parse
from memoryd.memory.policy import decide
from memoryd.memory.prompt import build, chunks
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.providers.rules import RulesProvider


def _distil(files: dict[str, bytes], *texts: str) -> Draft:
    """One slice of user messages through the whole way; ``files`` are the store before."""

    def notes(store: str) -> list[Note]:
        return [parse(data, path) for path, data in files.items()]

    shown = [
        ShownNote("p", note.path, note.type, note.name, note.description, note.body)
        for note in notes("p")
        if not note.archived
    ]
    messages = [
        SliceMessage(f"m{n}", n, f"id-{n}", "user", text, 1_767_603_600_000 + n, "p")
        for n, text in enumerate(texts, 1)
    ]
    near, provider = NearestNotes(shown), RulesProvider()
    answers = []
    for chunk in chunks(messages):
        words = "\n".join(message.text for message in chunk)
        answers.append(parse_answer(provider.complete(build(chunk, near.find(words))).text))
    ids = count()
    judged = decide(
        answers,
        messages,
        CurationSettings(),
        new_id=lambda: f"c{next(ids)}",
        known=known_in(notes),
    )
    stock = Stock(notes, lambda store, path: files.get(path), lambda s, p: False, shown, "s j", 9)
    return draft(judged, stock)


def _apply(files: dict[str, bytes], drafted: Draft) -> dict[str, bytes]:
    after = dict(files)
    for operation in drafted.operations:
        if operation.content is None:
            del after[operation.path]
        else:
            after[operation.path] = operation.content.encode()
    return after


def test_what_was_said_becomes_notes_and_is_not_doubled_by_hearing_it_again() -> None:
    """The first session writes; a second that says the same, in other forms too, writes nothing."""
    texts = ("I prefer npm. Fix the login bug!", "المشروع يستخدم TypeScript", "never push to main")
    files = _apply({}, _distil({}, *texts))

    again = _distil(files, *texts, "default to npm", "Please never push to main.")

    assert sorted(files) == [
        "feedback/never-push-main.md",
        "feedback/prefer-npm.md",
        "project/typescript.md",
    ]
    assert again.operations == ()
    assert {one.candidate.reason for one in again.judged} == {"same"}


def test_a_changed_mind_supersedes_and_changes_back() -> None:
    """A, B, A ends with A alone; what was superseded is readable in the archive."""
    files = _apply({}, _distil({}, "I prefer npm"))
    files = _apply(files, _distil(files, "I prefer pnpm"))
    files = _apply(files, _distil(files, "I prefer npm"))

    current = [path for path in files if not path.startswith("archive/")]

    assert [parse(files[path], path).description for path in current] == ["Prefer npm."]
    assert len(files) == 3
