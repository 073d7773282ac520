"""An import is written once, in one commit a store, and undone in one step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from import_builders import note, preview, put, said, source, target, tree
from store_builders import git, make_store

from memoryd.memory import seams
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import StoreHeld
from memoryd.memory.home import Home
from memoryd.memory.importing.applying import Imported, apply_import
from memoryd.memory.importing.counters import Counted, counted, usage_of
from memoryd.memory.importing.planning import Options, Target, read
from memoryd.memory.projects import Project, identity
from memoryd.memory.testing import FakeClock
from memoryd.memory.undo import undo


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The folder of another memory, with two notes."""
    root = tmp_path / "there"
    put(root, "user/a.md", note("Use tabs.", name="a", description="Tabs"))
    put(root, "project/b.md", "We deploy with make.")
    return root


def run(wanted: Target, clock: FakeClock) -> Imported:
    """Import it."""
    return apply_import([wanted], Options(), clock=clock)


def test_all_that_is_new_is_one_commit(home: Home, clock: FakeClock, there: Path) -> None:
    """With the job and the kind as trailers; the index and the project's record follow."""
    wanted = target(home, source(there))

    done = run(wanted, clock)

    store = wanted.store
    (made,) = Baseline(store).log()
    assert done.commits == {store.key: made.id}
    assert made.author == "memoryd" and made.subject == "Import 2 notes from freecode"
    assert made.values("Memoryd-Job") == (done.id,)
    assert made.values("Memoryd-Source") == ("import freecode",)
    assert sorted(Baseline(store).files()) == ["project/b.md", "user/a.md"]
    assert git(store, "status", "--porcelain") == ""
    assert "(user/a.md)" in (store.root / "MEMORY.md").read_text()
    known = identity(home, store.key)
    assert known is not None and known.path == "/home/ada/app"


def test_what_is_imported_stays_where_it_was(home: Home, clock: FakeClock, there: Path) -> None:
    """The other memory is neither moved nor changed: its agent may still use it."""
    put(there, "MEMORY.md", "# Index\n")
    put(there, ".graph/usage.json", '{"version": 1, "entries": {}}')
    before = tree(there)

    done = run(target(home, source(there)), clock)

    assert done.commits and tree(there) == before


def test_a_second_import_changes_nothing(home: Home, clock: FakeClock, there: Path) -> None:
    """Not even when the person edited, renamed or rewrote what was imported."""
    wanted = target(home, source(there))
    run(wanted, clock)
    store = wanted.store
    path = store.root / "user/a.md"
    path.write_text(path.read_text() + "But not in YAML.\n")
    (store.root / "project/b.md").unlink()
    (store.root / "project/deploy.md").write_text("Mine altogether.\n")
    Baseline(store).commit(
        ["user/a.md", "project/b.md", "project/deploy.md"], "By hand", author="person"
    )
    before = tree(store.root)

    done = run(target(home, source(there)), clock)

    assert done.commits == {}
    assert said(preview(wanted, clock)) == {"user/a.md": "imported", "project/b.md": "imported"}
    assert tree(store.root) == before


def test_notes_out_of_a_folder_are_the_persons(home: Home, clock: FakeClock, there: Path) -> None:
    """So that no machine changes them without asking."""
    wanted = target(home, source(there, "folder", "~/notes"))

    run(wanted, clock)

    assert Baseline(wanted.store).last_author("user/a.md") == "person"


def test_an_import_is_undone_in_one_step_and_stays_undone(
    home: Home, clock: FakeClock, there: Path
) -> None:
    """What undo takes away is forgotten; undoing the undo brings it back."""
    wanted = target(home, source(there))
    done = run(wanted, clock)

    undone = undo(home, done.id, clock=clock)
    assert wanted.store.notes() == []
    assert set(said(preview(wanted, clock)).values()) == {"forgotten"}

    undo(home, undone.id, clock=clock)
    assert set(said(preview(wanted, clock)).values()) == {"imported"}


@pytest.mark.parametrize("point", ["store.replaced", "store.committed"])
def test_an_import_that_crashed_is_finished_by_the_next(
    home: Home, clock: FakeClock, there: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Every note once, all committed, nothing of it taken for a person's."""
    wanted = target(home, source(there))

    def hook(reached: str) -> None:
        if reached == point:
            raise RuntimeError

    monkeypatch.setattr(seams, "hook", hook)
    with pytest.raises(RuntimeError):
        run(wanted, clock)
    monkeypatch.undo()
    run(wanted, clock)

    baseline = Baseline(wanted.store)
    assert sorted(baseline.files()) == ["project/b.md", "user/a.md"]
    assert {made.author for made in baseline.log()} == {"memoryd"}
    assert baseline.changed_paths() == []


def test_nothing_is_written_into_a_store_that_is_held(
    home: Home, clock: FakeClock, there: Path
) -> None:
    """Its folder may be somewhere else at the moment."""
    store = make_store(home, a="A", b="B", c="C")
    wanted = Target(Project(store.key, "/home/ada/app"), store, (read(source(there)),))
    store.root.rename(home.root / "away")

    with pytest.raises(StoreHeld):
        run(wanted, clock)

    assert store.notes() == []


def test_two_sources_of_one_project_are_one_commit(
    home: Home, clock: FakeClock, there: Path
) -> None:
    """What both say is written once."""
    other = there.parent / "other"
    put(other, "tabs.md", "Use tabs.")
    put(other, "spaces.md", "No spaces.")
    wanted = target(home, source(there), source(other, "claude-code", "-home-ada-app"))

    run(wanted, clock)

    (made,) = Baseline(wanted.store).log()
    assert made.values("Memoryd-Source") == ("import claude-code", "import freecode")
    assert len(wanted.store.notes()) == 3


def test_freecodes_counters_come_along(home: Home, clock: FakeClock, there: Path) -> None:
    """Under the names the notes have here; what is no counter counts as none."""
    entries = {
        "user/a": {"useCount": 2, "injectedCount": 5, "lastUsedAt": 1_700_000_000_000},
        "project/b": {"useCount": -1, "injectedCount": "x", "lastUsedAt": True},
        "user/gone": {"useCount": 1, "injectedCount": 1, "lastUsedAt": 0},
        "user/odd": 7,
    }
    put(there, ".graph/usage.json", json.dumps({"version": 1, "entries": entries}))
    wanted = target(home, source(there))

    done = run(wanted, clock)

    expected = [Counted(wanted.store.key, "user/a", 5, 2, 1_700_000_000_000)]
    assert counted(done.plans[0]) == expected
    assert counted(run(wanted, clock).plans[0]) == expected


@pytest.mark.parametrize("text", ["[]", "{", "[" * 100_000, '{"version": 2, "entries": {}}', "5"])
def test_counters_that_cannot_be_read_are_none(there: Path, text: str) -> None:
    """They are only hints."""
    put(there, ".graph/usage.json", text)

    assert usage_of(source(there)) == {}
