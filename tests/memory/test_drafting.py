"""Decided facts become operations that lose no word of a note and none of a person's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from memoryd.memory.config import CurationSettings
from memoryd.memory.drafting import Draft, Stock, draft, with_line
from memoryd.memory.facts import (
    Answer,
    Evidence,
    Fact,
    NoteDraft,
    Relation,
    SliceMessage,
)
from memoryd.memory.files import sha256
from memoryd.memory.known import known_in
from memoryd.memory.notes import Note, new_note, parse
from memoryd.memory.policy import decide
from memoryd.memory.proposals import FactProposal, from_json
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.text import slug
from memoryd.memory.values import distinct_values, loses

_NOW = 1_767_603_600_000
_OLD = "2026-01-01T00:00:00Z"
_MESSAGE = SliceMessage("m1", 4, "id-1", "user", "I prefer pnpm, version 9", _NOW, "p")
_NO_NOTE = NoteDraft("feedback", "", "", "")


class _Store:
    """The files of one store ``p``, in memory: what a plan is drafted on."""

    def __init__(self, **files: bytes) -> None:
        self.files = {path.replace("__", "/") + ".md": data for path, data in files.items()}

    def notes(self, store: str) -> list[Note]:
        return [parse(data, path) for path, data in self.files.items()] if store == "p" else []

    def read(self, store: str, path: str) -> bytes | None:
        return self.files.get(path) if store == "p" else None

    def shown(self) -> list[ShownNote]:
        return [
            ShownNote("p", n.path, n.type, n.name, n.description, n.body) for n in self.notes("p")
        ]


def _note(name: str, body: str, **more: Any) -> bytes:
    values = {"valid_from": _OLD, "created": _OLD, **more}
    return new_note(name=name, description=f"About {name}", type="feedback", body=body, **values)


def _fact(statement: str, relation: Relation | None = None, content: str | None = None) -> Fact:
    note = None
    if content is not None:
        note = NoteDraft("feedback", "package-manager", "Which package manager", content)
    return Fact(
        statement,
        "preference",
        (Evidence("m1", "I prefer pnpm"),),
        "explicit",
        "none",
        0.9,
        note,
        relation or Relation("new"),
    )


def _draft(
    store: _Store,
    *facts: Fact,
    message: SliceMessage = _MESSAGE,
    messages: Sequence[SliceMessage] = (),
    by_person: Callable[[str, str], bool] = lambda store, path: False,
    shown: list[ShownNote] | None = None,
    paths: Sequence[str] = (),
) -> Draft:
    numbers = count()
    told = "\n".join((one.note or _NO_NOTE).content + "\n" + one.statement for one in facts)
    before = SliceMessage("m0", 3, "id-0", "assistant", f"The package manager: {told}", None, "p")
    judged = decide(
        [Answer(facts, (), whole=True)],
        [before, *(messages or [message])],
        CurationSettings(),
        new_id=lambda: f"c{next(numbers)}",
    )
    notes = store.shown() if shown is None else shown
    stock = Stock(store.notes, store.read, by_person, notes, "s1 job j1", _NOW, lambda store: paths)
    return draft(judged, stock)


def _reasons(drafted: Draft) -> list[str]:
    return [one.candidate.reason for one in drafted.judged]


def _after(drafted: Draft) -> dict[str, Note | None]:
    return {
        one.path: None if one.content is None else parse(one.content.encode(), one.path)
        for one in drafted.operations
    }


def test_a_new_fact_becomes_a_new_note() -> None:
    """The file is new, dated by its evidence, and says where it comes from."""
    drafted = _draft(_Store(), _fact("Prefer pnpm.", content="Prefer pnpm.\n\nSaid once."))

    (operation,) = drafted.operations
    note = _after(drafted)["feedback/package-manager.md"]
    assert note is not None
    assert (operation.store, operation.before, operation.line) == ("p", None, "")
    assert operation.after == sha256((operation.content or "").encode())
    assert (note.valid_from, note.source) == ("2026-01-05T09:00:00Z", "s1 job j1")
    assert drafted.judged[0].candidate.path == "feedback/package-manager.md"


def test_a_fact_without_a_note_gets_one_of_its_statement() -> None:
    """Type by category, name and description by the statement."""
    drafted = _draft(_Store(), _fact("Prefer pnpm over npm."))

    (note,) = _after(drafted).values()
    assert note is not None
    assert (note.path, note.body) == ("feedback/prefer-pnpm-over-npm.md", "Prefer pnpm over npm.")


def test_a_name_that_is_taken_gets_a_number() -> None:
    """Two new facts with one name, and a note that has it already, are three files."""
    store = _Store(user__x=_note("package-manager", "Something else."))
    facts = [_fact("Prefer pnpm.", content="One."), _fact("Prefer uv.", content="Two.")]

    drafted = _draft(store, *facts)

    assert list(_after(drafted)) == [
        "feedback/package-manager-2.md",
        "feedback/package-manager-3.md",
    ]


@pytest.mark.parametrize("body", ["prefer  PNPM", "Some words.\n- Prefer pnpm.", "Prefer pnpm"])
def test_what_a_note_says_already_is_not_written_again(body: str) -> None:
    """Case, bullets and the final stop do not make it new."""
    store = _Store(feedback__x=_note("x", body))

    drafted = _draft(store, _fact("Prefer pnpm."))

    assert drafted.operations == ()
    assert drafted.judged[0].candidate.reason == "same"


def test_the_opposite_in_longer_words_is_not_the_same() -> None:
    """A statement that is only a part of a line is not said by it."""
    known = known_in(_Store(feedback__x=_note("x", "Never use tabs.")).notes)
    (judged,) = decide(
        [Answer((_fact("use tabs"),), (), whole=True)],
        [replace(_MESSAGE, text="I prefer pnpm, and please use tabs.")],
        CurationSettings(),
        new_id=lambda: "c",
        known=known,
    )

    assert judged.candidate.decision == "apply"


_UPDATE = Relation("updates", "pm")


def test_an_update_that_loses_nothing_replaces_the_body() -> None:
    """The new body stands, the name and unknown keys stay, the line is kept for a person's edit."""
    data = _note("pm", "Use pnpm in `web/`.").replace(b"type:", b"mood: calm\ntype:")
    store = _Store(feedback__pm=data)
    body = "Use pnpm in `web/`, with frozen lockfiles."

    drafted = _draft(store, _fact("Use frozen lockfiles.", _UPDATE, body))

    (operation,) = drafted.operations
    note = _after(drafted)["feedback/pm.md"]
    assert note is not None
    assert (note.name, note.body, note.description) == ("pm", body, "Which package manager")
    assert (operation.before, operation.line) == (sha256(data), "Use frozen lockfiles.")
    assert "mood: calm" in (operation.content or "")
    assert note.valid_from == "2026-01-05T09:00:00Z"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Port 8080 is used.", "Port 80 is used."),
        ("Keep logs in /var/log/app for a while.", "Keep logs somewhere for a while."),
        ("Set snake_case_name before you run it.", "Set the name before you run it."),
        ("Deadline is 2026-03-01 for all of us.", "Deadline is in March for all of us."),
        ("One two three four five six seven eight.", "One two three four."),
        ("Use `--frozen` with it.", "Use the flag with it."),
    ],
)
def test_an_update_that_would_lose_something_is_appended(old: str, new: str) -> None:
    """A lost number, path, name, date or more than a quarter: the statement becomes a line."""
    store = _Store(feedback__pm=_note("pm", old))

    drafted = _draft(store, _fact("New words.", _UPDATE, new))

    note = _after(drafted)["feedback/pm.md"]
    assert note is not None
    assert note.body == f"{old}\nNew words."
    assert note.description == "About pm"


def test_a_body_that_changed_since_it_was_shown_is_only_added_to() -> None:
    """The model decided on other words than stand there now."""
    store = _Store(feedback__pm=_note("pm", "Use pnpm. And a new line."))
    shown = [ShownNote("p", "feedback/pm.md", "feedback", "pm", "About pm", "Use pnpm.")]

    drafted = _draft(store, _fact("More.", _UPDATE, "Use pnpm. More."), shown=shown)

    note = _after(drafted)["feedback/pm.md"]
    assert note is not None
    assert note.body == "Use pnpm. And a new line.\nMore."


def test_two_updates_of_one_note_are_one_operation() -> None:
    """Each file has one operation: from the bytes found to the bytes left."""
    data = _note("pm", "- Use pnpm.")
    store = _Store(feedback__pm=data)

    drafted = _draft(store, _fact("First.", _UPDATE), _fact("Second.", _UPDATE))

    (operation,) = drafted.operations
    note = _after(drafted)["feedback/pm.md"]
    assert note is not None
    assert note.body == "- Use pnpm.\n- First.\n- Second."
    assert (operation.before, operation.line) == (sha256(data), "First.\nSecond.")


@pytest.mark.parametrize("kind", ["updates", "contradicts"])
def test_a_note_that_a_person_changed_last_is_left_to_review(kind: Any) -> None:
    """Nothing is drafted on a person's words."""
    store = _Store(feedback__pm=_note("pm", "Use npm."))

    drafted = _draft(
        store, _fact("Use pnpm.", Relation(kind, "pm")), by_person=lambda store, path: True
    )

    assert drafted.operations == ()
    assert drafted.judged[0].candidate.decision == "review"
    assert drafted.judged[0].candidate.reason == "person"


def test_a_contradiction_supersedes_and_links_both_ends() -> None:
    """The old note moves to the archive, readable; the new one names it."""
    data = _note("pm", "Use npm.")
    store = _Store(feedback__pm=data)

    drafted = _draft(store, _fact("Use pnpm.", Relation("contradicts", "pm"), "Use pnpm."))

    after = _after(drafted)
    new, old = after["feedback/package-manager.md"], after["archive/feedback/pm.md"]
    assert after["feedback/pm.md"] is None
    assert new is not None
    assert old is not None
    assert (new.supersedes, new.contradicts) == (("pm",), ("pm",))
    assert (old.superseded_by, old.valid_until) == ("package-manager", "2026-01-05T09:00:00Z")
    assert (old.body, old.valid_from) == ("Use npm.", _OLD)
    removal = next(one for one in drafted.operations if one.content is None)
    assert (removal.before, removal.after) == (sha256(data), None)


@pytest.mark.parametrize("kind", ["updates", "contradicts"])
def test_a_fact_older_than_the_note_it_meets_goes_to_the_archive(kind: Any) -> None:
    """Old words never undo newer ones; they stay readable with the end of their validity."""
    store = _Store(feedback__pm=_note("pm", "Use pnpm."))
    past = SliceMessage("m1", 4, "id-1", "user", "I prefer pnpm", 1_600_000_000_000, "p")

    drafted = _draft(store, _fact("Use npm.", Relation(kind, "pm")), message=past)

    (note,) = _after(drafted).values()
    assert note is not None
    assert note.path == "archive/feedback/use-npm.md"
    assert (note.valid_until, note.superseded_by) == (_OLD, "pm")


def test_a_fact_of_unknown_age_asks_a_person() -> None:
    """Without a time nobody can say that it is newer."""
    store = _Store(feedback__pm=_note("pm", "Use npm."))
    undated = SliceMessage("m1", 4, "id-1", "user", "I prefer pnpm", None, "p")

    drafted = _draft(store, _fact("Use pnpm.", _UPDATE), message=undated)

    assert drafted.operations == ()
    assert drafted.judged[0].candidate.reason == "age.unknown"


@pytest.mark.parametrize("name", ["other", "feedback/other", "../../etc/passwd", "pm"])
def test_a_relation_to_a_note_that_was_not_shown_is_new(name: str) -> None:
    """A model cannot touch what it has not seen."""
    store = _Store(feedback__pm=_note("pm", "Use npm."))

    drafted = _draft(store, _fact("Use pnpm.", Relation("contradicts", name)), shown=[])

    assert list(_after(drafted)) == ["feedback/use-pnpm.md"]


def test_of_two_contradictions_of_one_note_the_later_word_wins() -> None:
    """One note is superseded once; the earlier fact is not written at all."""
    store = _Store(feedback__pm=_note("pm", "Use npm."))
    relation = Relation("contradicts", "pm")

    drafted = _draft(store, _fact("Use pnpm.", relation), _fact("Use bun.", relation))

    assert _reasons(drafted) == ["overridden", "policy.passed"]
    after = _after(drafted)
    assert sorted(after) == ["archive/feedback/pm.md", "feedback/pm.md", "feedback/use-bun.md"]
    assert len({one.candidate for one in drafted.operations}) == 1


def test_what_was_said_later_wins_in_whatever_order_it_is_answered() -> None:
    """The newest evidence decides, not the model's order."""
    late = SliceMessage("m2", 9, "id-2", "user", "No: use bun after all", _NOW, "p")
    store = _Store(feedback__pm=_note("pm", "Use npm."))
    relation = Relation("contradicts", "pm")
    later = replace(_fact("Use bun.", relation), evidence=(Evidence("m2", "use bun after all"),))

    drafted = _draft(store, later, _fact("Use pnpm.", relation), messages=[_MESSAGE, late])

    assert _reasons(drafted) == ["policy.passed", "overridden"]


def test_a_fact_that_contradicts_one_of_its_own_slice_takes_its_place() -> None:
    """It is named as it was drafted; the one before is ignored, and what it met is superseded."""
    store = _Store(feedback__pm=_note("pm", "Use npm."))
    first = _fact("Use pnpm.", Relation("contradicts", "pm"), "Use pnpm.")
    second = _fact("Use bun.", Relation("contradicts", "package-manager"))

    drafted = _draft(store, first, second)

    assert _reasons(drafted) == ["overridden", "policy.passed"]
    new = _after(drafted)["feedback/use-bun.md"]
    assert new is not None and new.supersedes == ("pm",)


def test_an_opposite_of_the_same_slice_is_overridden_without_a_word_from_the_model() -> None:
    """Both called new: the later stands alone."""
    drafted = _draft(_Store(), _fact("Always use yarn here."), _fact("Never use yarn here."))

    assert _reasons(drafted) == ["overridden", "policy.passed"]
    assert list(_after(drafted)) == ["feedback/never-use-yarn-here.md"]


def test_an_opposite_of_a_note_supersedes_it_though_it_was_called_new() -> None:
    """The note says nothing else; the two would both be live."""
    store = _Store(feedback__tabs=_note("tabs", "Never use tabs in Makefiles."))

    drafted = _draft(store, _fact("Always use tabs in Makefiles."))

    old = _after(drafted)["archive/feedback/tabs.md"]
    assert old is not None and old.superseded_by == "always-use-tabs-in-makefiles"


def test_an_opposite_of_a_part_of_a_note_is_new() -> None:
    """What else the note says must not be archived with it."""
    store = _Store(feedback__x=_note("x", "Never use tabs in Makefiles.\nRun make -j4."))

    drafted = _draft(store, _fact("Always use tabs in Makefiles."))

    assert list(_after(drafted)) == ["feedback/always-use-tabs-in-makefiles.md"]


def test_a_note_updated_and_contradicted_in_one_slice_asks_a_person() -> None:
    """What the update added must not go to the archive unread."""
    store = _Store(feedback__pm=_note("pm", "Use npm."))

    drafted = _draft(
        store, _fact("Use a lockfile.", _UPDATE), _fact("Use bun.", Relation("contradicts", "pm"))
    )

    assert _reasons(drafted) == ["policy.passed", "conflict"]


def test_an_update_of_a_note_just_superseded_is_a_line_of_its_successor() -> None:
    """The old words do not come back with the new body that was decided on them."""
    store = _Store(feedback__pm=_note("pm", "Use npm."))

    drafted = _draft(
        store,
        _fact("Use bun.", Relation("contradicts", "pm")),
        _fact("Use a lockfile.", _UPDATE, "Use npm. Use a lockfile."),
    )

    after = _after(drafted)
    assert sorted(after) == ["archive/feedback/pm.md", "feedback/pm.md", "feedback/use-bun.md"]
    new = after["feedback/use-bun.md"]
    assert new is not None and new.body == "Use bun.\nUse a lockfile."


@pytest.mark.parametrize(
    ("statement", "content"),
    [
        ("Prefers early returns over the nested conditions!", None),
        ("Guard clauses.", "prefer early returns over nested conditions"),
        ("I prefer early returns over nested conditions", None),
    ],
)
def test_a_renamed_duplicate_is_not_born(statement: str, content: str | None) -> None:
    """Called new under another name, it says what a note says."""
    store = _Store(feedback__x=_note("x", "Prefer early returns over nested conditions."))

    drafted = _draft(store, _fact(statement, None, content))

    assert drafted.operations == ()
    assert _reasons(drafted) == ["same"]


@pytest.mark.parametrize(
    "statement",
    [
        "Prefer nested conditions over early returns.",
        "Never prefer early returns over nested conditions.",
        "Prefer early returns over nested loops.",
    ],
)
def test_what_only_looks_like_a_note_is_born(statement: str) -> None:
    """Another order, a negation, another word: another statement."""
    body = "Prefer early returns over nested conditions.\nSince 2026."
    store = _Store(feedback__x=_note("x", body))

    drafted = _draft(store, _fact(statement))

    assert _reasons(drafted) == ["policy.passed"]


@pytest.mark.parametrize("kind", ["updates", "contradicts"])
def test_a_fact_as_old_as_the_note_it_meets_counts_as_newer(kind: Any) -> None:
    """A session that goes on within the same second has the last word."""
    store = _Store(feedback__pm=_note("pm", "Use npm.", valid_from="2026-01-05T09:00:00Z"))

    drafted = _draft(store, _fact("Use pnpm.", Relation(kind, "pm")))

    assert _reasons(drafted) == ["policy.passed"]
    assert "feedback/pm.md" in _after(drafted)


def test_a_note_that_has_no_date_is_superseded_by_a_person_only() -> None:
    """Nobody knows whether the words are newer; they are added to it all the same."""
    store = _Store(feedback__pm=_note("pm", "Use npm.", valid_from=None, created=None))

    contradicted = _draft(store, _fact("Use pnpm.", Relation("contradicts", "pm")))
    updated = _draft(store, _fact("Use a lockfile.", _UPDATE))

    assert _reasons(contradicted) == ["age.unknown"]
    assert list(_after(updated)) == ["feedback/pm.md"]


_ARCHIVED = {
    "valid_until": "2026-01-05T08:00:00Z",
    "superseded_by": "pnpm",
    "valid_from": "2025-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("at_ms", "reason"),
    [
        (_NOW - 24 * 3_600_000, "outdated"),
        (_NOW, "policy.passed"),
        (None, "age.unknown"),
    ],
)
def test_a_superseded_statement_comes_back_only_when_it_was_said_again_later(
    at_ms: int | None, reason: str
) -> None:
    """An old session read late does not bring back what a newer note replaced."""
    store = _Store(archive__feedback__npm=_note("npm", "Use npm.", **_ARCHIVED))
    said = replace(_MESSAGE, at_ms=at_ms)

    drafted = _draft(store, _fact("Use npm."), message=said)

    assert _reasons(drafted) == [reason]


def test_an_old_fact_is_archived_once() -> None:
    """A second old session that says the same adds nothing."""
    past = SliceMessage("m1", 4, "id-1", "user", "I prefer pnpm", 1_600_000_000_000, "p")
    store = _Store(
        feedback__pm=_note("pm", "Use pnpm."),
        archive__feedback__npm=_note("npm", "Use npm.", **_ARCHIVED),
    )

    drafted = _draft(store, _fact("Use npm.", Relation("contradicts", "pm")), message=past)

    assert drafted.operations == ()
    assert _reasons(drafted) == ["outdated"]


@pytest.mark.parametrize("taken", ["feedback/Use-PNPM.md", "archive/feedback/USE-pnpm.md"])
def test_names_that_differ_by_case_only_are_one(taken: str) -> None:
    """Also where the file there is no readable note: a volume may ignore case."""
    store = _Store()

    drafted = _draft(store, _fact("Use pnpm."), paths=[taken])

    assert list(_after(drafted)) == ["feedback/use-pnpm-2.md"]


def test_an_archived_copy_takes_no_name_that_differs_by_case_only() -> None:
    """The same in the archive."""
    store = _Store(feedback__pm=_note("pm", "Use npm."))

    drafted = _draft(
        store, _fact("Use pnpm.", Relation("contradicts", "pm")), paths=["archive/feedback/PM.md"]
    )

    assert "archive/feedback/pm-2.md" in _after(drafted)


def test_a_candidate_in_review_keeps_what_it_would_write() -> None:
    """Review drafts no operation; the note, its relation and its age wait with the candidate."""
    judged = decide(
        [Answer((_fact("Use pnpm."),), (), whole=True)],
        [_MESSAGE],
        CurationSettings(mode="review"),
        new_id=lambda: "c",
    )
    store = _Store()

    drafted = draft(judged, Stock(store.notes, store.read, lambda s, p: False, [], "s", _NOW))

    assert drafted.operations == ()
    kept = from_json(drafted.judged[0].candidate.draft or "")
    assert isinstance(kept, FactProposal)
    assert (kept.statement, kept.relation.kind) == ("Use pnpm.", "new")
    assert kept.at_ms == _MESSAGE.at_ms


def test_what_has_no_time_of_its_own_is_dated_by_when_it_was_said_at_the_latest() -> None:
    """The note, and what is kept of it for a person to decide on."""
    undated = replace(_MESSAGE, at_ms=None)
    judged = decide(
        [Answer((_fact("Use pnpm."),), (), whole=True)],
        [undated],
        CurationSettings(),
        new_id=lambda: "c",
    )
    store = _Store()
    stock = Stock(
        store.notes, store.read, lambda s, p: False, [], "s", _NOW, said_by=lambda: 86_400_000
    )

    drafted = draft(judged, stock)

    (note,) = _after(drafted).values()
    assert note is not None and note.valid_from == "1970-01-02T00:00:00Z"
    kept = from_json(drafted.judged[0].candidate.draft or "")
    assert isinstance(kept, FactProposal)
    assert (kept.at_ms, kept.said_by_ms) == (None, 86_400_000)


def test_a_line_joins_a_list_as_an_item() -> None:
    """What is appended looks like what it is appended to."""
    assert with_line("* a\n* b\n", "c") == "* a\n* b\nc".replace("\nc", "\n* c")
    assert with_line("", "c") == "c"


@pytest.mark.parametrize(
    ("content", "body"),
    [
        ("The team deploys on Wednesdays.", "The team deploys on Wednesdays."),
        ("On Wednesdays.", "The team deploys on Tuesdays.\nThey deploy on Wednesdays."),
    ],
)
def test_the_words_a_note_stands_on_are_no_words_of_it(content: str, body: str) -> None:
    """An update that loses none of what the note says replaces it, description and all."""
    old = "The team deploys on Tuesdays.\n\nSaid as: fyi, as of v2 we ship each Tuesday at 9:30"
    fact = _fact("They deploy on Wednesdays.", _UPDATE, content)

    note = _after(_draft(_Store(feedback__pm=_note("pm", old)), fact))["feedback/pm.md"]

    assert note is not None
    assert note.body == body
    assert (note.description == "Which package manager") is (body == content)


def test_a_name_of_a_statement_keeps_its_negation() -> None:
    """Cut or not: it never says the opposite, and never ends in a "not" of what was cut."""
    assert slug("Don’t use mocks; can't be trusted") == "do-not-use-mocks-cannot-be-trusted"
    assert slug("Use pnpm everywhere, never npm", 24) == "use-pnpm-everywhere"


def test_distinct_values_are_what_is_exact() -> None:
    """Numbers, dates, paths, identifiers and what is in backticks; not plain words."""
    text = "Run `pnpm test` on 2026-01-05 in src/app with MAX_RETRIES=3, see v1.2.3 and fooBar."

    assert distinct_values(text) == {
        "pnpm test", "2026-01-05", "src/app", "MAX_RETRIES=3", "v1.2.3", "fooBar",
    }  # fmt: skip
    assert not loses("Use 30 of them.", "Use exactly 30 of them, always.")
    assert loses("Use 30 of them.", "Use 300 of them.")
