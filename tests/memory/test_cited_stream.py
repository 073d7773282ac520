"""The ``<memory-used>`` tag: what it names, and an answer without it, whole or in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.memory.cited_stream import (
    CITED_CHARACTERS,
    CITED_LIMIT,
    TAG_CHARACTERS,
    CitedStream,
    without_citations,
)
from memoryd.memory.own_blocks import CONTEXT_CLOSE, CONTEXT_OPEN, cited, strip_own_blocks

TAG = "<memory-used>user/tabs</memory-used>"

#: What a hostile answer is made of.
PIECES = st.sampled_from(
    [
        *("<memory-used>", "</memory-used>", "<MEMORY-used>", "</memory-", "used>", "<memory", "<"),
        *(
            "```",
            "`",
            "```py",
            "\n",
            "\n\n",
            " ",
            "\t",
            "\r\n",
            "user/a",
            ", ",
            "a.b",
            "/",
            ">",
            "ß",
        ),
        *(TAG, f"```\n{TAG}\n```", "é" * 3),
    ]
)
ANSWERS = st.lists(PIECES, max_size=30).map("".join)


def whole(text: str) -> str:
    """What is shown of ``text``."""
    return without_citations(text)[0]


def streamed(pieces: list[str] | str) -> tuple[str, tuple[str, ...]]:
    """What is shown of an answer that comes in ``pieces``, and what it cites."""
    stream = CitedStream()
    shown = "".join(stream.write(piece) for piece in pieces) + stream.flush()
    return shown, stream.cited


# -- the parser ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "notes"),
    [
        ("user/tabs", ["user/tabs"]),
        ("user/tabs, project/db,feedback/x", ["user/tabs", "project/db", "feedback/x"]),
        ("  user/tabs \n,\n project/db ; ", ["user/tabs", "project/db"]),
        ("user/tabs.", ["user/tabs"]),
        ("user/tabs. ;, user/tabs", ["user/tabs"]),
        ("project/db, user/tabs, project/db", ["project/db", "user/tabs"]),
        ("tabs, user/, /tabs, user/a/b, us er/x, user/a b, us3r/x, user/tabs", ["user/tabs"]),
        ("user/تبويب, reference/タブ", ["user/تبويب", "reference/タブ"]),
        (f"user/{'x' * CITED_CHARACTERS}, user/tabs", ["user/tabs"]),
        ("", []),
        (" , ;. ", []),
    ],
)
def test_a_tag_names_notes_in_order_and_drops_what_is_none(inner: str, notes: list[str]) -> None:
    """Separated by commas, trimmed, each once; a malformed one takes no sibling with it."""
    assert cited(f"Done.\n<memory-used>{inner}</memory-used>") == tuple(notes)


def test_the_tag_is_known_in_any_case_and_may_repeat() -> None:
    """Both tags count; the answer keeps neither."""
    text = f"One. <Memory-Used>user/a</MEMORY-USED>\nTwo. {TAG}"

    assert without_citations(text) == ("One.\nTwo.", ("user/a", "user/tabs"))


def test_an_answer_without_a_tag_is_unchanged() -> None:
    """Byte for byte, trailing blanks included."""
    text = "Use <b>tabs</b>, x < y.  \n\n```\ncode\n```\n  "

    assert without_citations(text) == (text, ())
    assert streamed(text) == (text, ())


def test_an_empty_tag_names_nothing_and_goes() -> None:
    """The agent used none and said so."""
    assert without_citations("Done.\n<memory-used></memory-used>\n") == ("Done.", ())


@pytest.mark.parametrize("text", ["See <memory-used>user/tabs", f"a <memory-used> b {TAG[:-1]}"])
def test_an_unclosed_tag_names_nothing_and_its_words_stay(text: str) -> None:
    """In a stream they come with the flush."""
    assert without_citations(text) == (text, ())
    assert streamed(text) == (text, ())
    assert strip_own_blocks(text) == text


def test_an_opening_named_in_the_text_does_not_swallow_it() -> None:
    """Only the last opening before the end is the tag's."""
    text = f"End with `<memory-used>` and names.\n\nYes.\n{TAG}"

    assert without_citations(text) == (
        "End with `<memory-used>` and names.\n\nYes.",
        ("user/tabs",),
    )


def test_what_is_too_long_is_no_tag() -> None:
    """It is shown as soon as that is known."""
    stream = CitedStream()
    shown = stream.write("<memory-used>" + "x" * (TAG_CHARACTERS + 1))

    assert shown.startswith("<memory-used>x")


def test_one_answer_cites_so_many_notes_at_most() -> None:
    """One that names everything names nothing in particular."""
    inner = ",".join(f"user/n{number}" for number in range(100))

    assert len(cited(f"<memory-used>{inner}</memory-used>")) == CITED_LIMIT


def test_what_a_context_block_quotes_is_not_cited() -> None:
    """Its footer shows what a tag looks like."""
    text = f"{CONTEXT_OPEN}\nEnd with {TAG}\n{CONTEXT_CLOSE}\nOk."

    assert strip_own_blocks(text) == "Ok."


# -- what is left --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"Done.  \n\n{TAG}\n\n", "Done."),
        (f"One {TAG} two", "One two"),
        (f"One {TAG}\nTwo", "One\nTwo"),
        (f"One\n\n{TAG}\n\nTwo", "One\n\nTwo"),
        (f"One\n{TAG}\n  code", "One\n  code"),
        (f"One  \n{TAG}\n{TAG}\nTwo", "One\nTwo"),
        (f"{TAG}\nOne", "One"),
        (f"Done.\n```\n{TAG}\n```\n", "Done."),
        (f"Done.\n\n```xml\n\n  {TAG}\n\n```", "Done."),
        (f"Done.\n```\n{TAG}\n{TAG}\n```  \nMore.", "Done.\nMore."),
        (f"Done.\n```\nx = 1\n{TAG}\n```\n", "Done.\n```\nx = 1\n```\n"),
        (f"Done.\n```\n{TAG}\nx = 1\n```\n", "Done.\n```\nx = 1\n```\n"),
        (f"```py\nx = 1\n```\n{TAG}\n```js\ny\n```", "```py\nx = 1\n```\n```js\ny\n```"),
        (f"```py\nx = 1\n```\n{TAG}\n```\ny\n```", "```py\nx = 1\n```\n```\ny\n```"),
        (f"Say ```{TAG}``` so", "Say `````` so"),
        (f"Done.\n```\n{TAG}", "Done.\n```"),
        ("a </memory-used> b", "a b"),
        (f"<memory-used>x </memory-{TAG}used>", "<memory-used>x </memory- used>"),
        ("<memory-u\u017fed>user/a</memory-used>", "<memory-u\u017fed>user/a"),
    ],
)
def test_stripping_leaves_the_answer_as_if_the_tag_had_not_been_there(text: str, left: str) -> None:
    """The larger gap stays between words, none at the ends; a fence of the tag alone goes too."""
    assert whole(text) == left
    assert streamed(text)[0] == left


@settings(deadline=None)
@given(ANSWERS)
def test_stripping_twice_is_stripping_once(text: str) -> None:
    """What is left on both sides of a tag never becomes one."""
    once = whole(text)

    assert without_citations(once) == (once, ())
    assert "</memory-used>" not in once.lower()


@pytest.mark.parametrize(
    "text",
    [
        "<memory-used>" * 20_000,
        "</memory-used>" * 20_000,
        "```\n" * 60_000,
        "<memory-used>a/b</memory-used>" * 10_000,
        "<" * 200_000 + TAG,
        "\n" * 200_000 + TAG + " " * 200_000,
        ("<memory-used>" + "," * TAG_CHARACTERS) * 25 + "</memory-used>",
    ],
    ids=["open", "close", "fence", "tags", "less", "blank", "commas"],
)
def test_a_hostile_answer_takes_time_in_proportion(text: str) -> None:
    """Quadratic work on any of these would take minutes and end at the suite's limit."""
    assert len(whole(text)) <= len(text)


# -- the stream ----------------------------------------------------------------------------------


def test_nothing_is_shown_from_the_opening_on() -> None:
    """Nor the white space before it; what follows the tag is shown again."""
    stream = CitedStream()

    shown = [stream.write(piece) for piece in ("Done. ", "\n<memo", "ry-used>us", "er/tabs")]
    rest = stream.write("</memory-used>\nBye")

    assert shown == ["Done.", "", "", ""]
    assert (rest, stream.flush(), stream.cited) == ("\nBye", "", ("user/tabs",))


def test_a_false_start_is_shown_as_soon_as_it_is_one() -> None:
    """Or with the flush, when the answer ends there."""
    stream = CitedStream()

    assert (stream.write("x <mem"), stream.write("ber>")) == ("x", " <member>")
    assert (stream.write(" y <memory-use"), stream.flush()) == (" y", " <memory-use")


@settings(deadline=None)
@given(ANSWERS)
def test_a_stream_shows_what_the_whole_text_would_char_by_char(text: str) -> None:
    """And cites the same notes."""
    assert streamed(text) == without_citations(text)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=30), st.data())
def test_a_stream_shows_the_same_whatever_the_cuts(parts: list[str], data: st.DataObject) -> None:
    """Where a piece ends says nothing."""
    text = "".join(parts)
    cut = data.draw(st.integers(0, len(text)))

    assert streamed(parts) == streamed([text[:cut], text[cut:]]) == without_citations(text)


@settings(deadline=None)
@given(ANSWERS)
def test_no_word_is_lost_but_those_of_tags(text: str) -> None:
    """What is not in a tag comes out, in its order."""
    letters = [character for character in whole(text) if not character.isspace()]
    rest = iter(text)

    assert all(character in rest for character in letters)
