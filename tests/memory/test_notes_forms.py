"""Every form of a header that people and other programs write: read, or refused with its file.

The forms are those of FreeCode's parser; each test says where this one reads more, or
refuses what that one misread.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memoryd.memory import header
from memoryd.memory.errors import NoteError
from memoryd.memory.notes import Note, new_note, parse, update


def read(text: str | bytes) -> Note:
    """The note in ``project/x.md``."""
    return parse(text if isinstance(text, bytes) else text.encode(), "project/x.md")


# -- fences --------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["\n", " ", "text\n", "\ufeff\n"])
def test_a_header_starts_with_the_first_byte(start: str) -> None:
    """After a blank line or anything else there is none: all is body."""
    text = f"{start}---\nname: a\n---\nB"

    assert (read(text).name, read(text).body) == ("x", text.removeprefix("\ufeff").strip())


@pytest.mark.parametrize("fence", ["----", "--", "-- -", "***", "— — —"])
def test_only_three_hyphens_are_a_fence(fence: str) -> None:
    """Anything else that looks like a rule is body."""
    assert read(f"{fence}\nname: a\n{fence}\nB").name == "x"


def test_a_byte_order_mark_and_crlf_are_read() -> None:
    """The reference took such files for files without a header."""
    note = read("\ufeff---\r\nname: a\r\ntags: b, c\r\n---\r\nOne\r\ntwo\r\n")

    assert (note.name, note.tags, note.body) == ("a", ("b", "c"), "One\ntwo")


def test_white_space_behind_a_fence_is_no_fault() -> None:
    """Editors leave it there."""
    assert read("--- \nname: a\n---\t\nB").name == "a"


def test_an_empty_header_is_a_header() -> None:
    """The reference took its fences for body."""
    assert (read("---\n---\nB").name, read("---\n---\nB").body) == ("x", "B")


def test_a_closing_fence_may_end_the_file() -> None:
    """The reference saw no header there."""
    assert (read("---\nname: a\n---").name, read("---\nname: a\n---").body) == ("a", "")


def test_the_first_closing_fence_ends_the_header() -> None:
    """A later one is a rule in the body."""
    assert read("---\nname: a\n---\nB\n---\nname: b\n---\nC").body == "B\n---\nname: b\n---\nC"


@pytest.mark.parametrize("text", ["---", "---\n", "---\nname: a\n", "---\nname: a\n----\nB"])
def test_a_header_that_is_not_closed_is_refused(text: str) -> None:
    """The reference took the whole for body, and would have written a second header."""
    with pytest.raises(NoteError, match="not closed"):
        read(text)


# -- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["name:a", "name: a", "name :  a  ", "name:\ta\t"])
def test_a_line_is_split_at_its_first_colon_and_trimmed(line: str) -> None:
    """With or without white space around it."""
    assert read(f"---\n{line}\n---\n").name == "a"


def test_a_later_colon_is_part_of_the_value() -> None:
    """As in addresses and times."""
    assert read("---\ndescription: at 10:30: see http://x\n---\n").description == (
        "at 10:30: see http://x"
    )


@pytest.mark.parametrize("line", ["just words", ": a", "name a", "\0: a", "name: a\0"])
def test_a_line_that_is_no_key_is_refused(line: str) -> None:
    """The reference dropped it; a rewrite would have lost it."""
    with pytest.raises(NoteError, match=r"project/x\.md"):
        read(f"---\n{line}\n---\nB")


def test_the_last_of_a_repeated_key_counts() -> None:
    """As in the reference; an update leaves one."""
    text = b"---\nname: a\nodd: 1\nname: b\n---\n"

    assert read(text).name == "b"
    assert update(text, name="c") == b"---\nodd: 1\nname: c\n---\n"


def test_what_is_nested_belongs_to_its_key() -> None:
    """The reference ignored indentation and read it as the note's own."""
    note = read("---\nname: a\nmetadata:\n  name: b\n  tags: c\n---\n")

    assert (note.name, note.tags) == ("a", ())


def test_comments_and_blank_lines_are_no_keys() -> None:
    """With a colon in them or not; they are kept."""
    text = b"---\n# name: b\n\nname: a\n  # tags: c\n---\n"

    assert (read(text).name, read(text).tags) == ("a", ())
    assert update(text, tags=["d"]) == b"---\n# name: b\n\nname: a\n  # tags: c\ntags: d\n---\n"


def test_a_key_that_is_not_ours_is_kept_whatever_it_holds() -> None:
    """Lists, maps and blocks of other programs."""
    text = b"---\nmine: {a: [1,\n  2]}\nlong: |\n  One\n\n  two\nname: a\n---\n"

    assert update(text, description="d") == text.replace(b"name: a\n", b"name: a\ndescription: d\n")


def test_a_header_that_is_no_utf8_is_refused_and_a_body_is_put_up_with() -> None:
    """Bytes of a body that are none are shown replaced and kept as they are."""
    with pytest.raises(NoteError, match="UTF-8"):
        read(b"---\nname: \xff\n---\nB")
    data = b"---\nname: a\n---\nB \xff\n"

    assert read(data).body == "B \ufffd"
    assert update(data, tags=["t"]).endswith(b"---\nB \xff\n")


# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("plain words", "plain words"),
        ('"quoted"', "quoted"),
        ("'it''s'", "it's"),
        (r'"a \"b\" \\ \u00e9\n"', 'a "b" \\ é\n'),
        ('"half', '"half'),
        ('"a" b', '"a" b'),
        ("'a'  # said by me", "a"),
        ("a # b", "a # b"),
        ("|\n  One\n  two", "One\ntwo"),
        (">-\n  One\n  two", "One two"),
        ("One\n  two", "One two"),
        ("", ""),
    ],
)
def test_a_text_is_read_in_every_form_of_a_scalar(written: str, value: str) -> None:
    """The reference knew plain ones only and kept their quotes."""
    assert read(f"---\ndescription: {written}\n---\n").description == value


@pytest.mark.parametrize(
    ("written", "items"),
    [
        (" a, b", ("a", "b")),
        (" [a, b]", ("a", "b")),
        (" [ a ,, b, ]", ("a", "b")),
        ("\n- a\n- b", ("a", "b")),
        ("\n  - 'a'\n  # why\n  - \"b\"", ("a", "b")),
        (" [a,\n  b]", ("a", "b")),
        (' ["a, b", c]', ("a, b", "c")),
        (" a b", ("a b",)),
        (" [a", ("a",)),
        (" []", ()),
        (" [ , ]", ()),
        ("", ()),
    ],
)
def test_a_list_is_read_in_every_form(written: str, items: tuple[str, ...]) -> None:
    """Comma and bracket lists parse alike; the reference knew no block lists and no quotes."""
    note = read(f"---\ntags:{written}\nsupersedes:{written}\ncontradicts:{written}\n---\n")

    assert (note.tags, note.supersedes, note.contradicts) == (items, items, items)


@pytest.mark.parametrize("written", ["user", "nonsense", "episode", ""])
def test_the_type_is_the_folders_whatever_the_header_says(written: str) -> None:
    """As in the reference."""
    assert read(f"---\ntype: {written}\n---\n").type == "project"


def test_a_file_in_no_folder_of_notes_is_refused() -> None:
    """It has no type."""
    with pytest.raises(NoteError, match="in no folder"):
        parse(b"B", "diary/x.md")


@pytest.mark.parametrize("day", ["2026-08-03", "2024-02-29"])
def test_a_day_round_trips(day: str) -> None:
    """In the header's own form."""
    data = new_note(name="a", description="", type="episode", body="B", happened_at=day)

    assert parse(data, "episode/a.md").happened_at == day
    assert f"happened_at: {day}\n".encode() in data


@pytest.mark.parametrize(
    "day", ["2026-8-3", "yesterday", "2026-13-45", "2026-02-30", "2023-02-29", "٢٠٢٦-٠١-٠٥", ""]
)
def test_a_day_that_is_none_is_dropped_and_its_file_left(day: str) -> None:
    """The reference took 30 February for a day."""
    data = f"---\nhappened_at: {day}\nname: a\n---\nB".encode()

    assert parse(data, "episode/a.md").happened_at is None
    assert update(data) == data


def test_a_file_of_older_times_is_read_and_left_as_it_is() -> None:
    """No key of ours is added by reading, or by writing what is there already."""
    data = b"---\nname: a\ndescription: d\ntype: project\n---\n\nB\n"

    assert (read(data).created, read(data).valid_from) == (None, None)
    assert update(data, name="a", description="d", body="B") == data


# -- nothing else changes ------------------------------------------------------------------------

_LINES = st.sampled_from(
    [
        "# a comment: with a colon",
        "",
        "odd: {a: 1}",
        "other:\n  - 1\n  - two",
        "deep:\n  name: not mine\n  tags: no",
        "long: |\n  One\n\n  two",
        "name: a",
        "name: b",
        "description: 'it''s'",
        "tags: [x,\n  y]",
        "supersedes: old",
        "happened_at: nonsense",
        "valid_until: 2026-01-05",
        "source:   spaced   ",
        "مفتاح: قيمة",
    ]
)
_BODIES = st.sampled_from(["", "B", "\n\nB\n\n", "B\n---\nname: c\n---\n", "ä\r\nö", "\ufeffB"])
_CHANGES = st.sampled_from(
    [
        ("name", "new"),
        ("description", "two\nlines: 'x'"),
        ("description", None),
        ("tags", ["a, b", "#c"]),
        ("tags", []),
        ("supersedes", ["n"]),
        ("happened_at", "2026-01-05"),
        ("superseded_by", "s"),
        ("valid_from", "2026-01-05T09:00:00Z"),
    ]
)


@settings(deadline=None, max_examples=150)
@given(
    lines=st.lists(_LINES, max_size=8),
    body=_BODIES,
    change=_CHANGES,
    bom=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_a_change_leaves_every_byte_outside_its_key(
    lines: list[str],
    body: str,
    change: tuple[str, str | list[str] | None],
    bom: bool,
    newline: str,
) -> None:
    """Unknown keys, comments, order, BOM, line ends and the body; the value reads back."""
    text = "".join(f"{line}\n" for line in ["---", *lines, "---"]).replace("\n", newline)
    old = (b"\xef\xbb\xbf" if bom else b"") + text.encode() + body.encode()
    key, value = change

    new = update(old, **{key: value})

    assert _without(new, key) == _without(old, key)
    found = getattr(parse(new, "user/x.md"), key)
    assert found == (tuple(value) if isinstance(value, list) else value or "")


def _without(data: bytes, key: str) -> tuple[object, ...]:
    """All there is of a note but one key."""
    parts = header.split(data)
    raw = [entry.raw for entry in parts.entries if entry.key != key]
    return parts.bom, parts.opening, raw, parts.closing, parts.body


@settings(deadline=None, max_examples=100)
@given(lines=st.lists(_LINES, max_size=6), body=_BODIES, one=_CHANGES, two=_CHANGES)
def test_changes_of_two_keys_come_out_the_same_in_either_order(
    lines: list[str],
    body: str,
    one: tuple[str, str | list[str] | None],
    two: tuple[str, str | list[str] | None],
) -> None:
    """Neither sees the other."""
    assume(one[0] != two[0])
    old = "".join(f"{line}\n" for line in ["---", *lines, "---"]).encode() + body.encode()
    first, second = {one[0]: one[1]}, {two[0]: two[1]}

    there = parse(update(update(old, **first), **second), "user/x.md")
    back = parse(update(update(old, **second), **first), "user/x.md")

    assert {**vars(there), "sha256": ""} == {**vars(back), "sha256": ""}
