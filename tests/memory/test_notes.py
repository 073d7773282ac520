"""Notes are read as people write them and written so that they read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.memory.errors import NoteError
from memoryd.memory.notes import TYPES, Note, file_name, new_note, parse, update

HOSTILE = st.text(st.characters(codec="utf-8"), max_size=60) | st.text(
    st.sampled_from("ab \n\t:#'\"[]{},-\\|>&*!%@`~\u00a0\u2028\x85\r\0"), max_size=30
)
ITEMS = st.lists(HOSTILE, max_size=4)


def _trimmed(body: str) -> str:
    return body.replace("\r\n", "\n").strip()


def _items(values: list[str]) -> tuple[str, ...]:
    return tuple(value.strip() for value in values if value.strip())


@settings(deadline=None)
@given(name=HOSTILE, description=HOSTILE, body=HOSTILE, tags=ITEMS, supersedes=ITEMS)
def test_every_note_reads_back_as_it_was_written(
    name: str, description: str, body: str, tags: list[str], supersedes: list[str]
) -> None:
    """Whatever stands in a value, ``parse(new_note(...))`` gives it back."""
    data = new_note(
        name=name,
        description=description,
        type="user",
        body=body,
        tags=tags,
        supersedes=supersedes,
        happened_at="2026-01-05",
        source=name,
    )

    note = parse(data, "user/stem.md")

    assert note.name == (name or "stem")
    assert note.description == description
    assert note.body == _trimmed(body)
    assert (note.tags, note.supersedes) == (_items(tags), _items(supersedes))
    assert note.happened_at == "2026-01-05"
    assert note.source == (name or None)


@settings(deadline=None)
@given(description=HOSTILE, body=HOSTILE, crlf=st.booleans(), bom=st.booleans())
def test_an_update_reads_back_and_keeps_every_other_byte(
    description: str, body: str, crlf: bool, bom: bool
) -> None:
    """Changing two values and putting the old ones back gives the old bytes."""
    text = "---\n# mine\nname: x\nodd:  [1,\n  2]\ndescription: old\n\n---\n\nOld body.\n\n"
    old = (b"\xef\xbb\xbf" if bom else b"") + text.replace("\n", "\r\n" if crlf else "\n").encode()

    new = update(old, description=description, body=body)

    note = parse(new, "user/x.md")
    assert (note.description, note.body) == (description, _trimmed(body))
    if description and body.strip():
        assert update(new, description="old", body="Old body.") == old


@settings(deadline=None)
@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: b"---\n" + tail))
def test_any_bytes_are_a_note_or_a_clear_error(data: bytes) -> None:
    """Nothing but ``NoteError`` comes out, and an update without a change keeps all bytes."""
    try:
        note = parse(data, "project/x.md")
    except NoteError as error:
        assert error.hint
    else:
        assert isinstance(note, Note)
        assert update(data) == data


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: a\ntags: x, y\n---\nB",
        "---\nname: a\ntags: [x, y]\n---\nB",
        "\ufeff---\r\nname: a\r\ntags:\r\n  - x\r\n  - 'y'\r\n---\r\nB\r\n",
        '---\nname: "a"\ntags:\n- x # not a comment\n# a comment\n- "y"\n---\nB'.replace(
            " # not a comment", ""
        ),
        "---\nname: 'a'  # the name\ntags: [\"x\",\n  y]\n---\n\n\nB\n\n",
        "---\nname: b\nname: a\ntags: x, , y\nnested:\n  name: c\n---\nB",
    ],
)
def test_the_forms_people_write_are_one_note(text: str) -> None:
    """Comma, flow and block lists, quotes, BOM, CRLF and a repeated key read alike."""
    note = parse(text.encode(), "feedback/a.md")

    assert (note.name, note.tags, note.body) == ("a", ("x", "y"), "B")


def test_the_folder_decides_the_type_and_the_file_a_missing_name() -> None:
    """What the header says of the type is not believed."""
    note = parse(b"---\ntype: user\n---", "archive/reference/where.md")

    assert (note.type, note.name, note.description, note.body) == ("reference", "where", "", "")
    assert note.archived


def test_a_file_without_a_header_is_all_body() -> None:
    """A note made by hand needs no header, and gets one with its first key."""
    note = parse(b"Just a line.\n", "user/plain.md")

    assert (note.name, note.body) == ("plain", "Just a line.")
    assert update(b"Just a line.\n", tags=["a"]) == b"---\ntags: a\n---\nJust a line.\n"


@pytest.mark.parametrize(
    "data",
    [b"---\nname: a\n", b"---\nno key here\n---\n", b"---\n- a\n---\n", b"---\n\xff: a\n---\n"],
)
def test_a_header_that_cannot_be_parsed_is_said_with_its_file(data: bytes) -> None:
    """The error names the file; an update refuses to write it."""
    with pytest.raises(NoteError, match=r"user/a\.md"):
        parse(data, "user/a.md")
    with pytest.raises(NoteError):
        update(data, name="b")


@pytest.mark.parametrize(
    "day", ["2026-8-3", "yesterday", "2026-13-45", "2026-02-30", "2026-01-01T10:00"]
)
def test_a_day_that_does_not_exist_is_no_day(day: str) -> None:
    """It is dropped on reading and refused on writing."""
    assert parse(f"---\nhappened_at: {day}\n---\n".encode(), "episode/a.md").happened_at is None
    with pytest.raises(NoteError):
        new_note(name="a", description="", type="episode", body="", happened_at=day)


def test_the_header_has_the_fixed_order_and_only_what_is_there() -> None:
    """FreeCode reads what we write."""
    data = new_note(
        name="a-b", description="One: two", type="project", body="Text.", tags=["x", "y"],
        valid_from="2026-01-05T09:00:00Z",
    )  # fmt: skip

    assert data.decode() == (
        '---\nname: a-b\ndescription: "One: two"\ntype: project\ntags: x, y\n'
        "valid_from: 2026-01-05T09:00:00Z\n---\nText.\n"
    )


def test_an_omitted_key_is_kept_and_an_empty_one_taken_away() -> None:
    """An update is no replacement of the whole."""
    data = b"---\nname: a\ntags:\n- x\n- y\nmine: 1\n---\nB\n"

    assert update(data, tags=["x", "y"]) == data
    assert update(data, tags=None) == b"---\nname: a\nmine: 1\n---\nB\n"
    assert update(data, superseded_by="b") == (
        b"---\nname: a\ntags:\n- x\n- y\nmine: 1\nsuperseded_by: b\n---\nB\n"
    )


def test_a_body_may_follow_a_fence_at_the_end_of_the_file() -> None:
    """The fence gets the line end it lacked."""
    assert update(b"---\nname: a\n---", body="B") == b"---\nname: a\n---\nB\n"
    assert parse(update(b"plain", body="---\nname: b\n---"), "user/a.md").name == "a"


def test_a_key_that_is_none_is_refused() -> None:
    """A misspelt keyword never reaches a file."""
    with pytest.raises(TypeError):
        update(b"---\nname: a\n---\n", descripton="x")


@settings(deadline=None)
@given(HOSTILE)
def test_file_names_are_safe(name: str) -> None:
    """Kebab case, short, never hidden, never a path."""
    made = file_name(name)

    assert made.endswith(".md") and len(made) < 100
    assert not set(made[:-3]) - set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert file_name("tabs-not-spaces") == "tabs-not-spaces.md"


def test_the_types_have_their_order() -> None:
    """Listings and name collisions go by it."""
    assert TYPES == ("user", "feedback", "project", "reference", "episode")
