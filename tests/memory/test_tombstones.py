"""What was forgotten stays forgotten, without a word of it on disk."""

from __future__ import annotations

import pytest
from store_builders import make_store, note_bytes, write_bytes

from memoryd.memory.errors import StoreError
from memoryd.memory.home import Home
from memoryd.memory.tombstones import Forgotten, Tombstones, added_and_taken, with_lines

GONE = Forgotten("Tabs_not spaces", ("The person prefers tabs.",), (("m-1", "I like “tabs”"),))


def test_any_one_match_forgets(home: Home) -> None:
    """The name, the statement in other typography, or the words it stood on."""
    tombstones = Tombstones.of(make_store(home)).add(GONE, now_ms=1_000)

    assert tombstones.forgets("tabs-not-spaces", "Something else")
    assert tombstones.forgets("other", "- the person  prefers TABS")
    assert tombstones.forgets("other", "Something else", [("m-1", 'I like  "tabs"')])
    assert not tombstones.forgets("other", "Something else", [("m-2", 'I like "tabs"')])
    assert not tombstones.forgets("", "", [])


def test_no_word_is_kept(home: Home) -> None:
    """The file holds hashes under the home's key only."""
    tombstones = Tombstones.of(make_store(home)).add(GONE, now_ms=1_000)

    text = tombstones.data.decode()
    assert not any(word in text for word in ("tabs", "person", "m-1", "like"))
    other = Tombstones(tombstones.store, b"another key", tombstones.data)
    assert not other.forgets("tabs-not-spaces", "The person prefers tabs.")


def test_saying_it_again_later_lifts(home: Home) -> None:
    """Only a person's own message newer than the tombstone."""
    tombstones = Tombstones.of(make_store(home)).add(GONE, now_ms=1_000)

    def forgets(said: int | None) -> bool:
        return tombstones.forgets("tabs-not-spaces", "x", newest_user_message_ms=said)

    assert [forgets(None), forgets(999), forgets(1_000), forgets(1_001)] == [
        True,
        True,
        True,
        False,
    ]


def test_the_same_tombstone_again_only_becomes_newer(home: Home) -> None:
    """A retry leaves one line."""
    tombstones = Tombstones.of(make_store(home)).add(GONE, now_ms=1_000).add(GONE, now_ms=2_000)

    assert tombstones.data.count(b"\n") == 1
    assert tombstones.forgets("tabs-not-spaces", "x", newest_user_message_ms=1_500)


def test_bad_lines_are_counted_and_kept(home: Home) -> None:
    """A line we cannot read is not ours to drop; the file may lack its last line end."""
    store = make_store(home)
    bad = b'garbage\n{"at": "soon"}\n[]\n\n{"at": 1, "name": "x", "later": "key"}\n\xff\n{"at"'
    write_bytes(store, "tombstones.jsonl", bad)

    tombstones = Tombstones.of(store).add(GONE, now_ms=1_000)

    assert tombstones.bad_lines == 5
    assert tombstones.data.startswith(bad + b"\n")
    assert tombstones.forgets("tabs-not-spaces", "")
    assert tombstones.lift(GONE).data == bad + b"\n"


def test_a_note_put_back_lifts(home: Home) -> None:
    """By its name or by what it says."""
    data = note_bytes("user/a.md", "Use tabs.\n\nNever spaces.")
    forgotten = Forgotten.of_file("user/a.md", data)
    tombstones = Tombstones.of(make_store(home)).add(forgotten, now_ms=1_000)

    assert tombstones.forgets("b", "never spaces")
    assert tombstones.forgets("b", "About a")
    assert tombstones.lift(Forgotten("b", ("Use tabs.\n\nNever spaces.",))).data == b""
    assert Forgotten.of_file("user/x.md", b"---\nopen").name == "x"


def test_unreadable_tombstones_are_an_error(home: Home) -> None:
    """Never "nothing is forgotten"."""
    store = make_store(home)
    (store.root / "tombstones.jsonl").mkdir()

    with pytest.raises(StoreError):
        Tombstones.of(store)


def test_a_change_of_the_file_can_be_taken_back_by_lines() -> None:
    """Lines that came later stay."""
    added, taken = added_and_taken(b"a\nb\n", b"b\nc\n")

    assert (added, taken) == ([b"c"], [b"a"])
    assert with_lines(b"b\nc\nd\n", added=taken, taken=added) == b"b\nd\na\n"


def test_a_shared_line_said_again_lifts_only_itself(home: Home) -> None:
    """What else the forgotten note said, its name and what it stood on stay forgotten."""
    body = "Bob earns five thousand.\n\nSee the README."
    said = [("m-1", "bob earns five thousand")]
    forgotten = Forgotten.of_file("user/bob.md", note_bytes("user/bob.md", body), said)
    tombstones = Tombstones.of(make_store(home)).add(forgotten, now_ms=1_000)

    left = tombstones.lift(Forgotten("build", ("Run make.\n\nSee the README.", "See the README.")))

    assert not left.forgets("x", "See the README.")
    assert left.forgets("x", "Bob earns five thousand.")
    assert left.forgets("bob", "x")
    assert left.forgets("x", "y", said)
    assert left.lift(Forgotten("bob")).data == b""


def test_parts_said_again_one_by_one_leave_nothing_behind(home: Home) -> None:
    """A tombstone of which every part was lifted is none."""
    tombstones = Tombstones.of(make_store(home), b'{"at": 1, "statements": ["x"]}\n')
    key = tombstones.add(Forgotten("", ("One.", "Two.")), now_ms=1_000)

    assert key.lift(Forgotten("", ("Two.",))).forgets("", "One.")
    assert key.lift(Forgotten("", ("One.",))).data == tombstones.data


def test_the_message_it_stands_on_never_lifts_a_tombstone(home: Home) -> None:
    """Whatever time it carries: a clock was wrong. Another message does."""
    tombstones = Tombstones.of(make_store(home)).add(GONE, now_ms=1_000)
    what = Forgotten("tabs-not-spaces")

    assert tombstones.meets(what, said={"m-1": 9_000})
    assert tombstones.meets(what, said={"m-1": 9_000, "m-2": 900})
    assert not tombstones.meets(what, said={"m-1": 9_000, "m-2": 1_001})


def test_one_more_tombstone_is_never_older_than_the_newest(home: Home) -> None:
    """The clock went back in between."""
    tombstones = Tombstones.of(make_store(home)).add(GONE, now_ms=9_000)

    later = tombstones.add(Forgotten("", ("Two.",)), now_ms=1_000)

    assert later.forgets("", "Two.", newest_user_message_ms=9_000)
