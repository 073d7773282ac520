"""A note gets another name; what links to it follows, and nothing else changes."""

from __future__ import annotations

import pytest
from store_builders import git, make_store, note_bytes, write_bytes

from memoryd.memory import seams
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import NoteError, UsageError
from memoryd.memory.home import Home
from memoryd.memory.notes import parse
from memoryd.memory.renaming import Renamed, relink, rename_note
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Tombstones
from memoryd.memory.undo import undo

SECRET = "sk-" + "ant-api03-" + "Q7w9" * 12
NOTE = "---\nname: old\n# mine\ntags: [a,\n  b]\nodd: 1\n---\n\nSee [[old]].\n"


@pytest.fixture
def store(home: Home) -> Store:
    """The note ``old``, memoryd's."""
    made = make_store(home)
    put(made, "user/old.md", NOTE)
    return made


def put(store: Store, path: str, text: str, author: str = "memoryd") -> None:
    """A committed file."""
    write_bytes(store, path, text.encode())
    Baseline(store).commit([path], "Put", author=author)  # type: ignore[arg-type]


def rename(store: Store, clock: FakeClock, name: str = "old", new: object = "new") -> Renamed:
    """Rename a note."""
    return rename_note(store, name, new, clock=clock)


def text(store: Store, path: str) -> str:
    """A file as it stands."""
    return (store.read(path) or b"").decode()


def test_the_file_moves_and_only_the_name_changes(store: Store, clock: FakeClock) -> None:
    """In one commit that leaves a clean tree and no tombstone."""
    done = rename(store, clock)

    assert store.paths() == ["user/new.md"]
    assert text(store, "user/new.md") == NOTE.replace("old", "new")
    assert (done.former_path, done.path, done.relinked) == ("user/old.md", "user/new.md", ())
    (commit, _) = Baseline(store).log()
    assert (commit.id, commit.author) == (done.commit, "memoryd")
    assert git(store, "status", "--porcelain") == ""
    assert not Tombstones.of(store).forgets("old", "See [[old]].")


def test_links_follow_wherever_they_are(store: Store, clock: FakeClock) -> None:
    """In bodies, in supersedes, contradicts and superseded_by, in the archive too."""
    put(store, "project/a.md", "---\r\nname: a\r\n---\r\nSee [[ old ]], [[older]], old.\r\n")
    put(store, "project/b.md", '---\nname: b\nsupersedes: ["old", c]\ncontradicts: old\n---\nB\n')
    put(store, "archive/user/c.md", "---\nname: c\nsuperseded_by: old\n---\nC\n")

    done = rename(store, clock)

    assert "See [[ new ]], [[older]], old.\r\n" in text(store, "project/a.md")
    b = parse(store.read("project/b.md") or b"", "project/b.md")
    assert (b.supersedes, b.contradicts) == (("new", "c"), ("new",))
    assert "superseded_by: new\n" in text(store, "archive/user/c.md")
    assert sorted(done.relinked) == ["archive/user/c.md", "project/a.md", "project/b.md"]


def test_a_rename_is_undone_in_one_step(store: Store, clock: FakeClock) -> None:
    """Links and all."""
    put(store, "project/a.md", "---\nname: a\n---\nSee [[old]].\n")
    before = {path: store.read(path) for path in store.paths()}

    done = rename(store, clock)
    undo(store.home, done.id, clock=clock)

    assert {path: store.read(path) for path in store.paths() if path.endswith(".md")} == before


def test_what_cannot_be_written_is_left_and_named(store: Store, clock: FakeClock) -> None:
    """A broken header and a secret stop nothing else."""
    put(store, "project/broken.md", "---\nno key\n---\n[[old]]\n")
    write_bytes(store, "project/s.md", f"---\nname: s\n---\n[[old]] {SECRET}\n".encode())

    done = rename(store, clock)

    assert sorted(done.left) == ["project/broken.md", "project/s.md"]
    assert "[[old]]" in text(store, "project/s.md")
    assert store.read("user/new.md") is not None


def test_a_persons_note_stays_theirs_and_ours_ours(store: Store, clock: FakeClock) -> None:
    """Two commits with one id: a session still changes theirs only through review."""
    put(store, "project/theirs.md", "---\nname: theirs\n---\nSee [[old]].\n", "person")

    done = rename(store, clock)

    baseline = Baseline(store)
    assert baseline.last_author("project/theirs.md") == "person"
    assert baseline.last_author("user/new.md") == "memoryd"
    undo(store.home, done.id, clock=clock)
    assert "[[old]]" in text(store, "project/theirs.md")


def test_a_persons_note_that_links_to_itself_stays_theirs(store: Store, clock: FakeClock) -> None:
    """Its new file is as much theirs as the old one was."""
    put(store, "user/old.md", NOTE, "person")
    put(store, "user/old.md", NOTE + "More.\n", "person")

    rename(store, clock)

    assert Baseline(store).last_author("user/new.md") == "person"


def test_a_note_that_holds_a_secret_is_not_renamed(store: Store, clock: FakeClock) -> None:
    """A new file of it would be committed."""
    put(store, "user/s.md", f"---\nname: s\n---\n{SECRET}\n")

    with pytest.raises(UsageError, match="holds a secret as it stands"):
        rename(store, clock, "s", "t")

    assert store.read("user/t.md") is None


def test_of_one_name_in_two_types_links_mean_the_first(store: Store, clock: FakeClock) -> None:
    """Renaming the other leaves them."""
    put(store, "project/old.md", "---\nname: old\n---\nOther.\n")
    put(store, "project/a.md", "---\nname: a\n---\nSee [[old]].\n")

    done = rename(store, clock, "project/old")

    assert (done.path, done.relinked) == ("project/new.md", ())
    assert "[[old]]" in text(store, "project/a.md")


def test_only_the_case_of_a_name_may_change(store: Store, clock: FakeClock) -> None:
    """The file stays where it is."""
    done = rename(store, clock, new="Old")

    assert done.path == "user/old.md"
    assert parse(store.read("user/old.md") or b"", "user/old.md").name == "Old"


@pytest.mark.parametrize(
    ("name", "new", "message"),
    [
        ("old", " ", "name must be a text"),
        ("old", None, "name must be a text"),
        ("old", "old", "called 'old' already"),
        ("old", "Taken", "project/taken has this name"),
        ("old", "b!", "would be one file"),
        ("old", f"a {SECRET}", "holds a secret"),
        ("gone", "new", "no note of this project is called 'gone'"),
        ("both", "new", "names user/both and project/both"),
    ],
)
def test_a_rename_that_cannot_be_is_refused(
    store: Store, clock: FakeClock, name: str, new: object, message: str
) -> None:
    """And nothing is written."""
    put(store, "project/taken.md", "---\nname: taken\n---\nT\n")
    put(store, "user/b.md", "---\nname: b\n---\nB\n")
    for folder in ("user", "project"):
        put(store, f"{folder}/both.md", "---\nname: both\n---\nB\n")
    before = Baseline(store).head()

    with pytest.raises(UsageError, match=message):
        rename(store, clock, name, new)

    assert Baseline(store).head() == before


def test_a_note_that_cannot_be_parsed_is_not_renamed(store: Store, clock: FakeClock) -> None:
    """It is never written."""
    put(store, "user/broken.md", "---\nno key\n---\n")

    with pytest.raises(NoteError):
        rename(store, clock, "broken")


@pytest.mark.parametrize("old", ["a.b", "c++", 'quo"te', "ملف", "two words"])
def test_names_of_any_letters_are_relinked(old: str) -> None:
    """They are no patterns."""
    data = relink(f"---\nname: x\n---\n[[{old}]] [[axb]]\n".encode(), "user/x.md", old, r"\1")

    assert data == b"---\nname: x\n---\n[[\\1]] [[axb]]\n"


@pytest.mark.parametrize("files", [1, 2, 3])
def test_a_rename_that_died_is_finished_by_the_next(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """The file it had written is its own, as the old one was; undo takes all of it back."""
    for name, body in (("a", "One, see [[a]]"), ("b", "See [[a]]"), ("c", "And [[a]]")):
        put(store, f"project/{name}.md", note_bytes(f"project/{name}.md", body).decode())
    before = {path: store.read(path) for path in store.paths()}
    left = iter(range(files - 1))

    def die(_: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(seams, "hook", die)
    with pytest.raises(KeyboardInterrupt):
        rename_note(store, "a", "q", clock=clock)
    monkeypatch.undo()

    done = rename_note(store, "a", "q", clock=clock)

    assert not (store.root / "project/a.md").exists()
    assert Baseline(store).last_author("project/q.md") == "memoryd"
    assert b"[[q]]" in (store.read("project/q.md") or b"")
    if files == 1:
        undo(store.home, done.id, clock=clock)
        assert {path: store.read(path) for path in before} == before
