"""Two projects become one, and two again, with all that is kept of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "memory"))

from store_builders import write_note
from world import World, answer, fact

from memoryd.jobs.merging import Merged, Merger
from memoryd.jobs.projects import Projects
from memoryd.memory import seams
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import StoreBusy, UsageError
from memoryd.memory.forget import delete_note
from memoryd.memory.identities import identity, merge_identity
from memoryd.memory.notes import new_note
from memoryd.memory.projects import Project, Resolver
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Tombstones
from memoryd.memory.undo import undo

FIRST = "Always run the linter before you commit."


@dataclass
class Two:
    """Two projects with stores, in directories ``one`` and ``two``; ``one`` is put into ``two``."""

    world: World
    one: Project
    two: Project

    @property
    def stores(self) -> tuple[Store, Store]:
        """Their stores."""
        home = self.world.home
        return Store.for_project(home, self.one.key), Store.for_project(home, self.two.key)

    @property
    def merger(self) -> Merger:
        """What merges them."""
        place = self.world.place
        return Merger(place.home, place.config, place.clock, place.ledger, place.history)

    def merge(self, *, dry_run: bool = False) -> Merged:
        """Put the one into the other."""
        return self.merger.merge(self.one, self.two, dry_run=dry_run)

    def keep(self, at: int, *, author: str = "memoryd", **notes: str) -> None:
        """Commit notes ``user/<name>.md`` in a store."""
        store = self.stores[at]
        paths = [write_note(store, f"user/{name}.md", body) for name, body in notes.items()]
        Baseline(store).ensure()
        Baseline(store).commit(paths, "Keep", author=author)  # type: ignore[arg-type]

    def bodies(self, at: int) -> dict[str, str]:
        """The notes of a store by name."""
        return {note.name: note.body for note in self.stores[at].notes()}


@pytest.fixture
def two(tmp_path: Path, clock: FakeClock) -> Iterator[Two]:
    """Both are recorded; nothing is in them yet."""
    world = World(tmp_path, clock, [answer(fact(FIRST))])
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        resolver = Resolver(world.home)
        found.append(resolver.resolve(str(tmp_path / name)))
        Baseline(Store.for_project(world.home, found[-1].key)).ensure()
        resolver.remember([found[-1].key])
    yield Two(world, *found)
    world.place.close()


def test_all_notes_move_with_one_commit_a_side(two: Two) -> None:
    """What is there already stays once; the histories are kept and name each other."""
    two.keep(0, tabs="Use tabs.", both="The same.")
    two.keep(1, pnpm="Use pnpm.", both="The same.")
    before = [len(Baseline(store).log()) for store in two.stores]

    merged = two.merge()

    assert two.bodies(0) == {}
    assert two.bodies(1) == {"tabs": "Use tabs.", "pnpm": "Use pnpm.", "both": "The same."}
    assert [len(Baseline(store).log()) for store in two.stores] == [each + 1 for each in before]
    assert set(merged.commits) == {two.one.key, two.two.key}
    assert [Baseline(store).changed_paths() for store in two.stores] == [[], []]
    assert two.one.key in Baseline(two.stores[1]).log(1)[0].subject


def test_a_name_that_is_taken_gets_a_number_and_links_follow(two: Two) -> None:
    """Neither note is lost, and the link means the same note as before."""
    two.keep(0, port="It is 1.", server="See [[port]].")
    two.keep(1, port="It is 2.", see="See [[port]].")

    merged = two.merge()

    assert merged.renamed == {"user/port.md": "user/port-2.md"}
    assert two.bodies(1) == {
        "port": "It is 2.",
        "port-2": "It is 1.",
        "server": "See [[port-2]].",
        "see": "See [[port]].",
    }


def test_a_name_that_another_file_has_is_taken_too(two: Two) -> None:
    """Notes are found by name."""
    two.keep(0, port="It is 1.")
    data = new_note(name="port", description="x", type="user", body="It is 2.")
    two.keep(1, other="x")
    (two.stores[1].root / "user/elsewhere.md").write_bytes(data)
    Baseline(two.stores[1]).commit(["user/elsewhere.md"], "Keep")

    two.merge()

    assert {"port", "port-2"} <= set(two.bodies(1))


def test_what_a_person_wrote_stays_theirs(two: Two) -> None:
    """Committed or not."""
    two.keep(0, author="person", theirs="Mine.")
    two.keep(0, ours="Not mine.")
    write_note(two.stores[0], "user/fresh.md", "Mine, too.")

    two.merge()

    baseline = Baseline(two.stores[1])
    authors = {
        name: baseline.last_author(f"user/{name}.md") for name in ("theirs", "ours", "fresh")
    }
    assert authors == {"theirs": "person", "ours": "memoryd", "fresh": "person"}


def test_what_was_forgotten_in_either_is_forgotten_in_both(two: Two) -> None:
    """A note that the other forgot stays where it is, and is named."""
    two.keep(0, tabs="Use tabs.", gone="Drink tea.")
    two.keep(1, tabs="Use tabs.")
    for at, path in ((0, "user/gone.md"), (1, "user/tabs.md")):
        delete_note(two.world.home, two.stores[at], path, clock=two.world.clock)

    merged = two.merge()

    tombstones = Tombstones.of(two.stores[1])
    assert tombstones.forgets("gone", "Drink tea.") and tombstones.forgets("tabs", "Use tabs.")
    assert list(merged.left) == ["user/tabs.md"]
    assert two.bodies(0) == {"tabs": "Use tabs."} and two.bodies(1) == {}
    assert merged.tombstones == 1


def test_tombstones_alone_are_joined(two: Two) -> None:
    """In a commit."""
    two.keep(0, gone="Drink tea.")
    delete_note(two.world.home, two.stores[0], "user/gone.md", clock=two.world.clock)

    two.merge()

    assert Tombstones.of(two.stores[1]).forgets("gone", "Drink tea.")
    assert Baseline(two.stores[1]).changed_paths() == []


def test_counters_candidates_and_jobs_follow_their_notes(two: Two) -> None:
    """Also those of a note that got another name; what both showed is added."""
    two.keep(0, port="It is 1.", both="The same.")
    two.keep(1, port="It is 2.", both="The same.")
    usage, one, other = two.world.ledger.usage, two.one.key, two.two.key
    usage.record_injection("a", "s", "m1", [(one, "user/port"), (one, "user/both")])
    usage.record_injection("a", "s", "m2", [(other, "user/both")])
    job = two.world.ledger.enqueue_store("consolidate", one, key="x", trigger="cli").job
    assert job is not None

    two.merge()

    shown = {note: use.shown for note, use in usage.usage_of(other).items()}
    assert shown == {"user/port-2": 1, "user/both": 2}
    assert usage.usage_of(one) == {}
    assert two.world.job(job).project == other
    assert usage.credit("a", "s", ["user/port-2"]) == ["user/port-2"]


def test_what_was_said_belongs_to_the_other_and_so_does_what_is_said_next(two: Two) -> None:
    """From the first directory too."""
    two.world.finalize(two.world.transcript("s1", cwd=Path(two.one.path)).user(FIRST))
    two.keep(1, pnpm="Use pnpm.")

    told = two.merge(dry_run=True)
    merged = two.merge()

    assert told.messages == 1
    session = two.world.place.history.session("claude-code", "s1")
    assert session is not None and session.projects == (two.two.key,)
    assert merged.messages == 1
    assert Resolver(two.world.home).resolve(two.one.path) == two.two


def test_what_waits_while_a_merge_goes_on_lands_in_the_other(two: Two) -> None:
    """It was read before, and its project says already where its memory is."""
    two.keep(1, pnpm="Use pnpm.")
    transcript = two.world.transcript("s1", cwd=Path(two.one.path))
    for run in range(3):
        transcript.user(FIRST if run == 1 else "Go on.").assistant("Fine.")
    two.world.throttle(transcript)
    merge_identity(two.world.home, two.one.key, two.two.key)

    two.world.finalize(transcript)

    assert two.bodies(0) == {}
    assert FIRST in two.bodies(1).values()


def test_a_dry_run_says_the_same_and_writes_nothing(two: Two) -> None:
    """Not even where the memory will be."""
    two.keep(0, port="It is 1.")
    two.keep(1, port="It is 2.")
    before = {path: path.stat().st_mtime_ns for path in _files(two.world.home.projects)}

    told = two.merge(dry_run=True)

    assert before == {path: path.stat().st_mtime_ns for path in _files(two.world.home.projects)}
    assert not list(two.world.home.backups.glob("merge-*"))
    done = two.merge()
    assert (told.moved, told.renamed, told.left) == (done.moved, done.renamed, done.left)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and ".graph" not in path.parts]


def test_a_merge_is_refused_while_a_job_works_on_either(two: Two) -> None:
    """Nothing was done; afterwards it goes."""
    two.keep(0, tabs="Use tabs.")
    transcript = two.world.transcript("s1", cwd=Path(two.two.path)).user(FIRST)
    two.world.enqueue(transcript, cwd=two.two.path)
    job = two.world.ledger.claim("worker")
    assert job is not None

    with pytest.raises(StoreBusy, match=job.id[-8:]):
        two.merge()

    assert two.bodies(0) == {"tabs": "Use tabs."}
    assert not list(two.world.home.backups.glob("merge-*"))
    two.world.ledger.rescue(everything=True)
    two.merge()


def test_a_job_that_began_meanwhile_refuses_the_merge_and_leaves_two_projects(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have looked before the home said where the memory is."""
    two.keep(0, tabs="Use tabs.")
    two.world.enqueue(two.world.transcript("s1", cwd=Path(two.one.path)), cwd=two.one.path)

    def claim(reached: str) -> None:
        if reached == "project.merging":
            two.world.ledger.claim("worker")

    with monkeypatch.context() as patched, pytest.raises(StoreBusy):
        patched.setattr(seams, "hook", claim)
        two.merge()

    assert two.bodies(0) == {"tabs": "Use tabs."}
    assert Resolver(two.world.home).resolve(two.one.path) == two.one


def test_a_merge_is_refused_while_a_plan_stands(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be written into a store that nobody reads."""
    two.keep(0, tabs="Use tabs.")
    two.world.enqueue(two.world.transcript("s1", cwd=Path(two.one.path)).user(FIRST))
    two.world.die_at("plan.recorded", monkeypatch)

    with pytest.raises(StoreBusy, match="not written yet"):
        two.merge()

    two.world.work()
    assert len(two.merge().moved) == 2


def test_a_store_that_is_being_written_is_waited_for_and_then_refused(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The locks of both are taken."""
    monkeypatch.setattr("memoryd.jobs.merging.WAIT_SECONDS", 0.0)
    for store in two.stores:
        with store.writer_lock(), pytest.raises(StoreBusy, match="being written"):
            two.merge()


def test_a_secret_refuses_the_whole_merge(two: Two) -> None:
    """And both are two projects as before."""
    two.keep(0, tabs="Use tabs.")
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
    write_note(two.stores[0], "user/key.md", f"It is {token}.")

    with pytest.raises(UsageError, match="secret"):
        two.merge()

    assert two.bodies(1) == {} and set(two.bodies(0)) == {"tabs", "key"}
    assert Resolver(two.world.home).resolve(two.one.path) == two.one


class _Died(BaseException):
    """The process died at a seam."""


@pytest.mark.parametrize("time", range(1, 7))
def test_a_merge_that_died_is_finished_by_a_second_call(
    time: int, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every note once, under the names it got."""
    two.keep(0, port="It is 1.", tabs="Use tabs.")
    two.keep(1, port="It is 2.")
    left = time

    def hook(reached: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise _Died

    with monkeypatch.context() as patched:
        patched.setattr(seams, "hook", hook)
        try:
            two.merge()
        except _Died:
            pass
        else:
            pytest.skip("it was over before")

    two.merge()

    assert two.bodies(0) == {}
    assert sorted(two.bodies(1).values()) == ["It is 1.", "It is 2.", "Use tabs."]
    baseline = Baseline(two.stores[1])
    assert baseline.changed_paths() == []
    assert {baseline.last_author(path) for path in two.stores[1].paths()} == {"memoryd"}


def test_a_merge_is_taken_back(two: Two) -> None:
    """Notes, directories and what was said; and it can be done again."""
    two.world.finalize(two.world.transcript("s1", cwd=Path(two.one.path)).user(FIRST))
    two.keep(0, port="It is 1.")
    two.keep(1, port="It is 2.")
    before = [two.bodies(0), two.bodies(1)]
    merged = two.merge()

    undone = two.merger.undo(two.one, two.two)

    assert [two.bodies(0), two.bodies(1)] == before
    assert Resolver(two.world.home).resolve(two.one.path) == two.one
    session = two.world.place.history.session("claude-code", "s1")
    assert session is not None and session.projects == (two.one.key,)
    assert undone.messages == merged.messages == 1
    again = two.merge()
    assert (again.renamed, again.left) == (merged.renamed, {})


def test_a_merge_is_done_and_taken_back_as_often_as_a_person_likes(two: Two) -> None:
    """The notes are where the last word put them, each time; edited meanwhile or not."""
    two.keep(0, port="It is 1.", server="See [[port]].")
    two.keep(1, port="It is 2.")
    before = [two.bodies(0), two.bodies(1)]
    joined = {"port": "It is 2.", "port-2": "It is 1.", "server": "See [[port-2]]."}

    for _ in range(3):
        two.merge()
        assert [two.bodies(0), two.bodies(1)] == [{}, joined]
        two.merger.undo(two.one, two.two)
        assert [two.bodies(0), two.bodies(1)] == before
    write_note(two.stores[0], "user/server.md", "See [[port]], by hand.")
    two.merge()

    assert [two.bodies(0), two.bodies(1)] == [{}, joined | {"server": "See [[port-2]], by hand."}]


def test_undoing_the_commits_of_a_merge_names_the_command_that_takes_it_back(two: Two) -> None:
    """All of them or one: the directories would still lead to the other project."""
    two.keep(0, tabs="Use tabs.")
    merged = two.merge()

    for reference in (merged.id, *merged.commits.values()):
        with pytest.raises(UsageError, match="merged the project") as refused:
            undo(two.world.home, reference, clock=two.world.clock)
        assert f"memoryd project merge {two.one.key} {two.two.key} --undo" in refused.value.hint

    assert [two.bodies(0), two.bodies(1)] == [{}, {"tabs": "Use tabs."}]


def _die_at_commit(number: int, act: Callable[[], object], patch: pytest.MonkeyPatch) -> None:
    left = number

    def hook(reached: str) -> None:
        nonlocal left
        left -= reached == "store.committed"
        if not left:
            raise _Died

    with patch.context() as patched, pytest.raises(_Died):
        patched.setattr(seams, "hook", hook)
        act()


@pytest.mark.parametrize("first", ["merge", "undo"])
@pytest.mark.parametrize("commit", [1, 2])
def test_a_merge_that_died_between_its_commits_is_taken_back_whole(
    first: str, commit: int, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both stores, whether it was finished before or not, and whoever wrote the notes."""
    two.keep(0, port="It is 1.", server="See [[port]].")
    two.keep(0, author="person", mine="Mine.")
    two.keep(1, port="It is 2.")
    before = [two.bodies(0), two.bodies(1)]

    _die_at_commit(commit, two.merge, monkeypatch)
    if first == "merge":
        two.merge()
        assert two.bodies(0) == {} and len(two.bodies(1)) == 4
        authors = {Baseline(two.stores[1]).last_author(f"user/{n}.md") for n in ("mine", "server")}
        assert authors == {"person", "memoryd"}
    two.merger.undo(two.one, two.two)

    assert two.bodies(0) == before[0]
    assert set(two.bodies(1).values()) >= set(before[1].values())
    if commit == 2 or first == "merge":
        assert two.bodies(1) == before[1]


def test_a_merge_that_died_while_its_files_went_is_finished(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And taken back: no file is gone that no commit names."""
    two.keep(0, port="It is 1.", server="See [[port]].")
    two.keep(1, port="It is 2.")
    before = [two.bodies(0), two.bodies(1)]
    remove = Store.remove

    def die(store: Store, path: str, **more: str) -> bool:
        remove(store, path, **more)
        raise _Died

    with monkeypatch.context() as patched, pytest.raises(_Died):
        patched.setattr(Store, "remove", die)
        two.merge()
    two.merge()

    assert two.bodies(0) == {} and len(two.bodies(1)) == 3
    two.merger.undo(two.one, two.two)
    assert [two.bodies(0), two.bodies(1)] == before


@pytest.mark.parametrize("then", ["merge", "undo"])
@pytest.mark.parametrize("commit", [1, 2])
def test_taking_back_that_died_is_finished_by_whatever_is_next(
    then: str, commit: int, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the next is another merge; and that is taken back, too."""
    two.keep(0, tabs="Use tabs.")
    two.keep(1, pnpm="Use pnpm.")
    before = [two.bodies(0), two.bodies(1)]
    two.merge()

    _die_at_commit(commit, lambda: two.merger.undo(two.one, two.two), monkeypatch)
    if then == "merge":
        assert two.merge().left == {}
        assert [two.bodies(0), two.bodies(1)] == [{}, before[0] | before[1]]
    two.merger.undo(two.one, two.two)

    assert [two.bodies(0), two.bodies(1)] == before
    assert two.merge().left == {}


def test_what_undo_gave_back_to_a_project_that_is_merged_is_moved_again(two: Two) -> None:
    """A home where the commits of a merge were undone, which was possible once."""
    two.keep(0, tabs="Use tabs.")
    merged = two.merge()
    undo(two.world.home, merged.id, clock=two.world.clock, merges=True)

    assert two.merge().left == {}

    assert [two.bodies(0), two.bodies(1)] == [{}, {"tabs": "Use tabs."}]


def test_what_is_not_merged_cannot_be_taken_back(two: Two) -> None:
    """Nor can one project be merged with itself, or with what nobody knows."""
    nobody = Project("nobody", "/nobody")

    with pytest.raises(UsageError, match="not merged"):
        two.merger.undo(two.one, two.two)
    with pytest.raises(UsageError, match="both are"):
        two.merger.merge(two.one, two.one)
    with pytest.raises(UsageError, match="nothing is kept"):
        two.merger.merge(two.one, nobody)


def test_a_backup_holds_ledger_identities_and_heads(two: Two) -> None:
    """For whoever wants everything as it was."""
    two.keep(0, tabs="Use tabs.")

    backup = Path(two.merge().backup)

    found = {path.name for path in backup.iterdir()}
    assert found == {"memoryd.sqlite", "heads", f"{two.one.key}.json", f"{two.two.key}.json"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in backup.iterdir())


def test_a_project_follows_its_directory_and_back(two: Two, tmp_path: Path) -> None:
    """What was said in the new place before belongs to it."""
    (tmp_path / "new").mkdir()
    world = two.world
    world.throttle(world.transcript("s1", cwd=tmp_path / "new").user("Hello there."))
    projects = Projects(world.home, world.config, world.place.history)

    moved = projects.move(two.one, tmp_path / "new")

    assert (moved.key, moved.path, moved.messages) == (two.one.key, str(tmp_path / "new"), 1)
    assert Resolver(world.home).resolve(str(tmp_path / "new")).key == two.one.key
    session = world.place.history.session("claude-code", "s1")
    assert session is not None and session.projects == (two.one.key,)
    projects.move(two.one, tmp_path / "one")
    known = identity(world.home, two.one.key)
    assert known is not None
    assert (known.path, known.former_paths) == (two.one.path, (str(tmp_path / "new"),))


def test_a_project_moves_to_no_place_that_is_another_ones(two: Two, tmp_path: Path) -> None:
    """The two are merged instead; and a place must be there, and be another."""
    projects = Projects(two.world.home, two.world.config, two.world.place.history)

    with pytest.raises(UsageError, match="already") as refused:
        projects.move(two.one, tmp_path / "two")
    assert f"memoryd project merge {two.one.key} {two.two.key}" in refused.value.hint
    with pytest.raises(UsageError, match="no directory"):
        projects.move(two.one, tmp_path / "none")
    with pytest.raises(UsageError, match="already"):
        projects.move(two.one, tmp_path / "one")
