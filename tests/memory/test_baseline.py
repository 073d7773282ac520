"""The baseline commits exactly what it is given, whatever the person's git is like."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from store_builders import git, make_store, note_bytes, write_bytes, write_note

from memoryd.memory import gitprogram, seams
from memoryd.memory.baseline import Baseline, blob_id
from memoryd.memory.errors import BaselineError, BaselineLocked
from memoryd.memory.gitprogram import Git
from memoryd.memory.home import Home
from memoryd.memory.store import Store


def test_a_commit_holds_exactly_its_paths(home: Home) -> None:
    """What else changed in the store stays uncommitted."""
    store = make_store(home, a="One")
    write_note(store, "user/a.md", "Two")
    write_note(store, "user/b.md", "Other")

    made = Baseline(store).commit(["user/a.md"], "Change a")

    assert Baseline(store).paths_of(made) == ["user/a.md"]
    assert Baseline(store).changed_paths() == ["user/b.md"]
    assert Baseline(store).show(made, "user/a.md") == note_bytes("user/a.md", "Two")
    assert Baseline(store).show(made, "user/b.md") is None


def test_git_in_the_store_sees_a_clean_tree_after_a_commit(home: Home) -> None:
    """The ``.git`` file is found, the index follows, derived files are ignored."""
    store = make_store(home, a="One", b="Two")
    store.write_index()
    (store.root / "user/b.md").unlink()

    Baseline(store).commit(["user/b.md"], "Without b")

    assert git(store, "status", "--porcelain") == ""
    assert git(store, "log", "--format=%s") == "Without b\nStart"
    assert (store.root / ".git").read_text().startswith("gitdir: ../")


def test_each_setting_stands_once_and_a_person_may_change_it(home: Home) -> None:
    """`git config` refuses to change what a file says twice."""
    store = make_store(home, a="One")

    said = git(store, "config", "--local", "--name-only", "--list").lower().splitlines()
    git(store, "config", "core.fileMode", "true")

    assert len(said) == len(set(said))
    assert {"core.bare", "core.filemode", "core.autocrlf", "gc.auto"} <= set(said)
    assert git(store, "config", "--bool", "core.bare") == "false"


def test_a_commit_that_died_before_the_index_followed_is_made_good(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next look at the store finds its scratch folder, and `git status` is clean again."""
    store = make_store(home, a="One", b="Two")
    write_note(store, "user/b.md", "Three")

    def die(reached: str) -> None:
        if reached == "branch.moved":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(seams, "hook", die)
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)  # nor did it clean up
        Baseline(store).commit(["user/b.md"], "Change b")
    assert git(store, "status", "--porcelain") != ""

    Baseline(store).ensure()

    assert git(store, "status", "--porcelain") == ""
    assert list(store.git_dir.glob("scratch-*")) == []


def test_a_moved_home_keeps_its_history(home: Home, tmp_path: Path) -> None:
    """Nothing in the repository says where the home is."""
    make_store(home, a="One")

    home.root.rename(tmp_path / "elsewhere")

    moved = Store.for_project(Home(tmp_path / "elsewhere"), "home-ada-app")
    assert git(moved, "log", "--format=%s") == "Start"
    assert Baseline(moved).changed_paths() == []


def test_a_deletion_and_an_empty_commit_are_commits(home: Home) -> None:
    """A plan whose operations were all dropped still leaves its trailer."""
    store = make_store(home, a="One")
    (store.root / "user/a.md").unlink()

    deleted = Baseline(store).commit(["user/a.md"], "Gone")
    empty = Baseline(store).commit([], "Nothing", {"Memoryd-Job": "j"})

    assert Baseline(store).files(deleted) == {}
    assert Baseline(store).paths_of(empty) == []
    assert Baseline(store).head() == empty


def test_the_persons_settings_hooks_and_environment_do_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Signing, hooks, line ends, ignores and a leaked GIT_DIR never reach a commit."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "post-commit", "reference-transaction", "commit-msg"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/fired\nexit 1\n")
        (hooks / name).chmod(0o755)
    (tmp_path / "ignore").write_text("*.md\n")
    (Path(os.environ["HOME"]) / ".gitconfig").write_text(
        f"[user]\nname = Ada\nemail = ada@example.org\n[commit]\ngpgsign = true\n"
        f"[gpg]\nprogram = /bin/false\n[core]\nhooksPath = {hooks}\nautocrlf = true\n"
        f"excludesFile = {tmp_path}/ignore\n[init]\ntemplateDir = {hooks}\n"
        "defaultBranch = odd\n[safe]\nbareRepository = explicit\n"
    )
    for name in ("DIR", "WORK_TREE", "INDEX_FILE", "OBJECT_DIRECTORY", "NAMESPACE", "COMMON_DIR"):
        monkeypatch.setenv(f"GIT_{name}", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare=true'")

    store = make_store(home, a="One\nTwo")
    write_note(store, "user/b.md", "New")
    baseline = Baseline(store)

    assert baseline.changed_paths() == ["user/b.md"]
    assert baseline.log()[0].author == "memoryd"
    assert baseline.show("HEAD", "user/a.md") == note_bytes("user/a.md", "One\nTwo")
    assert not (tmp_path / "fired").exists()
    assert not (tmp_path / "nowhere").exists()


def test_bytes_are_kept_as_they_are(home: Home) -> None:
    """CRLF, a BOM, no UTF-8 and attributes in the store change nothing."""
    store = make_store(home)
    (store.root / ".gitattributes").write_text("*.md text eol=crlf ident\n")
    data = b"\xef\xbb\xbfa\r\nb\n\xff\x00$Id$"
    write_bytes(store, "user/ünïcode name.md", data)

    made = Baseline(store).commit(["user/ünïcode name.md"], "Odd")

    assert Baseline(store).show(made, "user/ünïcode name.md") == data
    assert Baseline(store).files() == {"user/ünïcode name.md": blob_id(data)}
    assert Baseline(store).changed_paths() == []


def test_a_stale_index_lock_stops_nothing(home: Home) -> None:
    """A git that died in the store is no reason to lose a memory."""
    store = make_store(home, a="One")
    (store.git_dir / "index.lock").touch()
    write_note(store, "user/a.md", "Two")
    write_note(store, "user/b.md", "New")

    assert Baseline(store).changed_paths() == ["user/a.md", "user/b.md"]
    Baseline(store).commit(["user/a.md", "user/b.md"], "Both")

    assert Baseline(store).changed_paths() == []


def test_a_lock_on_the_branch_is_an_error_with_what_to_do(home: Home) -> None:
    """The commit fails as a whole and the next one succeeds."""
    store = make_store(home, a="One")
    (store.git_dir / "refs/heads/main.lock").touch()

    with pytest.raises(BaselineError, match="remove the lock"):
        Baseline(store).commit([], "Locked")

    (store.git_dir / "refs/heads/main.lock").unlink()
    Baseline(store).commit([], "Free")
    assert [made.subject for made in Baseline(store).log()] == ["Free", "Start"]
    assert not list(store.git_dir.glob("scratch-*"))


def test_a_lock_that_a_power_cut_left_on_the_tag_goes_with_its_age(home: Home) -> None:
    """Else no consolidation of the store would ever end again."""
    store = make_store(home, a="One")
    baseline = Baseline(store)
    lock = store.git_dir / "refs/tags/consolidation-baseline.lock"
    lock.touch()
    made_ms = lock.stat().st_mtime_ns // 1_000_000
    head = baseline.head() or ""

    with pytest.raises(BaselineLocked):
        baseline.move_snapshot(head, found=None, now_ms=made_ms + 1000)
    baseline.move_snapshot(head, found=None, now_ms=made_ms + 11 * 60_000)

    assert baseline.snapshot() == head


def test_a_damaged_index_is_made_anew(home: Home) -> None:
    """The index is derived: it never hides a change and never stops a commit."""
    store = make_store(home, a="One")
    write_note(store, "user/b.md", "New")
    (store.git_dir / "index").write_bytes(b"garbage")

    assert Baseline(store).changed_paths() == ["user/b.md"]
    (store.git_dir / "index").write_bytes(b"garbage")
    Baseline(store).commit(["user/b.md"], "More")

    assert git(store, "status", "--porcelain") == ""


def test_what_cannot_be_read_is_never_clean(home: Home) -> None:
    """A broken branch, a missing object and a broken repository raise."""
    store = make_store(home, a="One")
    head = Baseline(store).head()
    assert head is not None

    (store.git_dir / "refs/heads/main").write_text("")
    with pytest.raises(BaselineError):
        Baseline(store).changed_paths()
    (store.git_dir / "refs/heads/main").write_text("1" * 40)
    with pytest.raises(BaselineError):
        Baseline(store).changed_paths()
    (store.git_dir / "HEAD").unlink()
    with pytest.raises(BaselineError) as caught:
        Baseline(store).commit([], "On nothing")
    assert caught.value.hint


def test_a_foreign_git_in_the_store_is_left_alone(home: Home) -> None:
    """Commits go to our baseline, the person's repository is not touched."""
    store = Store.for_project(home, "k")
    store.root.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(store.root)], check=True)
    write_note(store, "user/a.md", "One")
    subprocess.run(["git", "init", "-q", str(store.root / "user")], check=True)

    Baseline(store).commit(["user/a.md"], "Ours")

    assert Baseline(store).changed_paths() == []
    assert (store.root / ".git").is_dir()
    write_note(store, "user/b.md", "Inside the other repository")
    assert Baseline(store).changed_paths() == ["user/b.md"]


def test_the_branch_moves_by_compare_and_swap(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit made meanwhile is built upon; a branch that keeps moving is an error."""
    store = make_store(home, a="One")
    baseline = Baseline(store)
    run = Git.run
    moves = [1]

    def meanwhile(self: Git, *arguments: str, **options: object) -> gitprogram.Output:
        if arguments[0] == "update-ref" and moves:
            moves.pop()
            git(store, "-c", "user.name=x", "-c", "user.email=x", "commit", "-q",
                "--allow-empty", "-m", f"Meanwhile {len(moves)}")  # fmt: skip
        return run(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "run", meanwhile)
    write_note(store, "user/b.md", "New")
    baseline.commit(["user/b.md"], "Ours")

    assert [made.subject for made in baseline.log()] == ["Ours", "Meanwhile 0", "Start"]
    assert [made.author for made in baseline.log()] == ["memoryd", "person", "memoryd"]
    moves[:] = [1] * 9
    with pytest.raises(BaselineError, match="keeps moving"):
        baseline.commit([], "Never")


@pytest.mark.parametrize(
    "value", ["claude/s 1..2", "é\n\nMemoryd-Job: forged", " 100% ", "a\u2028b"]
)
def test_a_trailer_is_found_by_its_whole_value_only(home: Home, value: str) -> None:
    """No value, however odd, is cut, forged or taken for another that starts like it."""
    store = make_store(home)
    Baseline(store).commit([], "Longer", {"Memoryd-Slice": value + "5"})
    made = Baseline(store).commit([], "x\n\nMemoryd-Slice: y", {"Memoryd-Slice": value})
    Baseline(store).commit([], "Later")

    assert Baseline(store).find_trailer("Memoryd-Slice", value) == made
    assert Baseline(store).find_trailer("Memoryd-Slice", "y") is None
    assert Baseline(store).find_trailer("Memoryd-Job", "forged") is None


def test_jobs_are_found_by_any_ending(home: Home) -> None:
    """A person types the end of an id."""
    store = make_store(home)
    one = Baseline(store).commit([], "1", {"Memoryd-Job": "aaa-111"})
    two = Baseline(store).commit([], "2", {"Memoryd-Job": "aaa-111"})
    Baseline(store).commit([], "3", {"Memoryd-Job": "bbb-211"})

    assert [made.id for made in Baseline(store).commits_of("aaa-111")] == [two, one]
    assert set(Baseline(store).jobs_ending("11")) == {"aaa-111", "bbb-211"}
    assert set(Baseline(store).jobs_ending("-111")) == {"aaa-111"}
    found = Baseline(store).commit_named(one[:10])
    assert found is not None and found.id == one


def test_the_last_author_of_a_note_is_known(home: Home) -> None:
    """A note that a person changed last is treated as theirs."""
    store = make_store(home, a="One", b="Two")
    write_note(store, "user/a.md", "Mine")

    Baseline(store).commit(["user/a.md"], "Edit", author="person", now_ms=1_700_000_000_000)

    assert Baseline(store).last_author("user/a.md") == "person"
    assert Baseline(store).last_author("user/b.md") == "memoryd"
    assert Baseline(store).last_author("user/never.md") is None
    assert Baseline(store).log(1)[0].at_ms == 1_700_000_000_000
    assert git(store, "log", "-1", "--format=%an <%ae>") == "person <person@localhost>"


def test_a_store_without_commits_has_everything_changed(home: Home) -> None:
    """No history is not a clean history."""
    store = make_store(home)
    write_note(store, "user/a.md", "One")

    assert Baseline(store).head() is None
    assert Baseline(store).log() == []
    assert Baseline(store).find_trailer("Memoryd-Job", "x") is None
    assert Baseline(store).changed_paths() == ["user/a.md"]


def test_ignore_files_and_staging_hide_nothing(home: Home) -> None:
    """Neither a person's .gitignore nor what they staged keeps a change from being seen."""
    store = make_store(home, a="One")
    (store.root / ".gitignore").write_text("*.md\nuser/\n")
    write_note(store, "user/b.md", "New")
    write_note(store, "user/c.md", "Staged")
    git(store, "add", "-f", "user/c.md")
    git(store, "rm", "-q", "--cached", "user/a.md")

    assert Baseline(store).changed_paths() == ["user/b.md", "user/c.md"]


def test_missing_git_is_a_clear_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(BaselineError, match=r"not installed.*2\.36"):
        Baseline(Store.for_project(home, "k")).ensure()


def test_an_old_git_is_a_clear_error(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.35 lacks what durability needs."""
    (tmp_path / "git").write_text("#!/bin/sh\necho git version 2.35.9\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(BaselineError, match=r"2\.35 is too old"):
        Baseline(Store.for_project(home, "k")).ensure()


def test_a_git_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    """The limit ends the whole process group, a grandchild that holds the pipe included."""
    script = f"!echo $$ > {tmp_path}/pid; sleep 1000 & wait"

    with pytest.raises(BaselineError, match="killed after"):
        Git(tmp_path, limit_seconds=1).run("-c", f"alias.hang={script}", "hang")

    pid = (tmp_path / "pid").read_text().strip()
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True)
    assert state.stdout.strip()[:1] in {"", "Z"}


def test_the_tag_of_what_consolidation_has_seen_moves_by_compare_and_swap(home: Home) -> None:
    """Two consolidations cannot both believe they moved it."""
    baseline = Baseline(make_store(home, a="One"))
    first, second = baseline.head(), baseline.commit([], "Two")
    assert first is not None

    assert baseline.snapshot() is None
    baseline.move_snapshot(first, found=None)
    with pytest.raises(BaselineError):
        baseline.move_snapshot(second, found=None)
    baseline.move_snapshot(second, found=first)

    assert baseline.snapshot() == second
    assert [made.id for made in baseline.log(since=first)] == [second]
    assert baseline.diff(first, second) == b""
    baseline.collect_garbage()
    assert baseline.head() == second
