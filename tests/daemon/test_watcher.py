"""Events are hints that arrive at once, and where there are none the watcher polls."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from watchdog.observers import Observer

from memoryd.daemon import watcher as module
from memoryd.daemon.watcher import Watcher
from memoryd.memory.home import Home

PATIENCE_SECONDS = 60.0


@dataclass
class Seen:
    """What the watcher called, and events to wait for it."""

    inbox: threading.Event = field(default_factory=threading.Event)
    store: threading.Event = field(default_factory=threading.Event)
    keys: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    lost: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def on_store(self, key: str, path: str) -> None:
        """Remember the key."""
        self.keys.append(key)
        self.paths.append(path)
        self.store.set()


@pytest.fixture
def seen() -> Seen:
    """Nothing yet."""
    return Seen()


@pytest.fixture
def watcher(home: Home, seen: Seen) -> Iterator[Watcher]:
    """A watcher of the home, stopped at the end."""
    made = Watcher(home, seen.inbox.set, seen.on_store, seen.lost.release)
    yield made
    made.stop()


def _envelope(home: Home) -> None:
    temporary = home.inbox / ".1-2-3.json.tmp"
    temporary.write_text("{}")
    temporary.rename(home.inbox / "1-2-3.json")


def test_an_envelope_rings_at_once(home: Home, watcher: Watcher, seen: Seen) -> None:
    """Renamed into place as the hook does."""
    watcher.start()

    _envelope(home)

    assert seen.inbox.wait(PATIENCE_SECONDS)
    assert watcher.mode == "events"


def test_a_note_in_a_project_made_later_is_seen(home: Home, watcher: Watcher, seen: Seen) -> None:
    """With temp and rename, as editors save."""
    watcher.start()
    folder = home.projects / "later" / "memory" / "user"
    folder.mkdir(parents=True)

    (folder / "a.md.tmp").write_text("x")
    (folder / "a.md.tmp").rename(folder / "a.md")

    assert seen.store.wait(PATIENCE_SECONDS)
    assert set(seen.keys) == {"later"}


@pytest.mark.parametrize(
    "path",
    [
        "inbox/.1-2-3.json.tmp",
        "inbox/bad/1-2-3.json",
        "projects/p/project.json",
        "projects/p/memory/.git",
        "projects/p/memory/user/.a.md.1234.tmp",
        "elsewhere/user/a.md",
    ],
)
def test_what_is_no_envelope_and_no_note_is_passed_over(
    home: Home, watcher: Watcher, seen: Seen, path: str
) -> None:
    """Temporary files and what lies beside."""
    watcher.saw(home.root / path)

    assert not seen.inbox.is_set() and seen.keys == []


def test_where_the_system_refuses_watches_the_watcher_polls_with_one_warning(
    home: Home, watcher: Watcher, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its limits are often low; an envelope is found all the same."""

    def refuse(self: object) -> None:
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr(Observer, "start", refuse)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)
    with capture_logs() as logs:
        watcher.start()
    _envelope(home)

    assert [entry["event"] for entry in logs] == ["watch.polling"]
    assert watcher.mode == "polling"
    assert seen.inbox.wait(PATIENCE_SECONDS)


@pytest.mark.skipif(sys.platform != "linux", reason="only inotify has a silent limit")
def test_folders_beyond_the_systems_limit_are_polled(
    home: Home, watcher: Watcher, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """inotify refuses them without a word; counting shows it, at the start and later."""
    for number in range(30):
        (home.projects / f"p{number}" / "memory" / "user").mkdir(parents=True)
    watcher.start()
    assert watcher.mode == "events"
    watcher.check()
    assert watcher.mode == "events"
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)
    counted = module._watches
    monkeypatch.setattr(module, "_watches", lambda: counted() - 2)

    with capture_logs() as logs:
        watcher.check()
        watcher.check()
    _envelope(home)

    assert [entry["event"] for entry in logs] == ["watch.polling"]
    assert "2 folders" in logs[0]["reason"]
    assert seen.inbox.wait(PATIENCE_SECONDS)


def test_a_failing_look_does_not_end_the_watching(home: Home, tmp_path: Path) -> None:
    """It is logged, and the next event is seen."""
    second = threading.Event()
    calls: list[int] = []

    def fail_once() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("a look that fails")
        second.set()

    watcher = Watcher(home, fail_once, lambda key, path: None)
    with capture_logs() as logs:
        watcher.start()
        _envelope(home)
        (home.inbox / "4-5-6.json").write_text("{}")
        assert second.wait(PATIENCE_SECONDS)
        watcher.stop()

    assert "watch.failed" in {entry["event"] for entry in logs}


def test_stop_is_safe_unstarted_and_twice(watcher: Watcher) -> None:
    """As every service's."""
    watcher.stop()
    watcher.start()
    watcher.stop()
    watcher.stop()

    assert watcher.mode == "off"


# -- what is believed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "within"),
    [
        ("projects/p", ""),
        ("projects/p/memory", ""),
        ("projects/p/memory/user", "user"),
        ("projects/p/memory/archive", "archive"),
        ("projects/p/memory/archive/user", "archive/user"),
        ("projects/p/memory/user/a.md", "user/a.md"),
        ("projects/p/memory/archive/user/a.md", "archive/user/a.md"),
        ("projects/p/memory/tombstones.jsonl", "tombstones.jsonl"),
        ("projects/p/memory/MEMORY.md", "MEMORY.md"),
    ],
)
def test_what_can_change_a_store_is_passed_on(
    home: Home, watcher: Watcher, seen: Seen, path: str, within: str
) -> None:
    """Its files, their folders, and the folders it lies in: a whole one may come and go."""
    watcher.saw(home.root / path)

    assert (seen.keys, seen.paths) == (["p"], [within])


@pytest.mark.parametrize(
    "name",
    [
        ".a.md.swp",
        "4913",
        "a.md~",
        "#a.md#",
        ".#a.md",
        "a.md___jb_tmp___",
        "a.md.vsctmp",
        "deeper",
        "deeper/a.md",
        "../graph/a.md",
        "../.graph/a.md",
        "../README.md",
        "../drafts/a.md",
    ],
)
def test_what_editors_and_people_put_beside_the_notes_is_passed_over(
    home: Home, watcher: Watcher, seen: Seen, name: str
) -> None:
    """It changes nothing of what the store holds."""
    watcher.saw(Path(os.path.normpath(home.projects / "p/memory/user" / name)))

    assert seen.keys == []


def test_a_whole_project_that_is_moved_away_and_back_is_seen(
    home: Home, watcher: Watcher, seen: Seen
) -> None:
    """One event for the folder is all there is."""
    (home.projects / "p" / "memory" / "user").mkdir(parents=True)
    watcher.start()

    (home.projects / "p").rename(home.root / "away")
    assert seen.store.wait(PATIENCE_SECONDS)
    seen.store.clear()
    (home.root / "away").rename(home.projects / "p")

    assert seen.store.wait(PATIENCE_SECONDS)
    assert set(seen.keys) == {"p"}


# -- what is watched ----------------------------------------------------------------------------


def _threads() -> int:
    return threading.active_count()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_there_is_one_observer_however_many_projects_there_are(home: Home, seen: Seen) -> None:
    """The same threads for 2 projects and for 300, one inotify, a watch a folder, no baselines."""
    counts = []
    for number in (2, 300):
        for each in range(number):
            (home.projects / f"p{each}" / "memory" / "user").mkdir(parents=True, exist_ok=True)
            (home.baselines / f"p{each}.git" / "objects").mkdir(parents=True, exist_ok=True)
        threads, watches = threading.active_count(), module._watches()
        watcher = Watcher(home, seen.inbox.set, seen.on_store, seen.lost.release)
        watcher.start()
        counts.append(threading.active_count() - threads)
        assert module._watches() - watches == 2 + 1 + 3 * number  # home, inbox; projects
        watcher.stop()
        assert threading.active_count() == threads

    assert counts[0] == counts[1]


@pytest.mark.parametrize("name", ["projects", "inbox"])
def test_a_folder_that_is_taken_away_and_put_back_is_watched_anew(
    home: Home, watcher: Watcher, seen: Seen, name: str
) -> None:
    """Deleted and made again, or moved off and back; each time everything is looked at."""
    watcher.start()
    folder = home.root / name
    shutil.rmtree(folder)
    assert seen.lost.acquire(timeout=PATIENCE_SECONDS)
    folder.mkdir()
    assert seen.lost.acquire(timeout=PATIENCE_SECONDS)
    folder.rename(home.root / "away")
    assert seen.lost.acquire(timeout=PATIENCE_SECONDS)
    assert not folder.exists()
    (home.root / "away").rename(folder)
    assert seen.lost.acquire(timeout=PATIENCE_SECONDS)

    if name == "inbox":
        _envelope(home)
        assert seen.inbox.wait(PATIENCE_SECONDS)
    else:
        (folder / "p").mkdir()
        assert seen.store.wait(PATIENCE_SECONDS)
    assert watcher.mode == "events"


def test_a_home_that_is_gone_is_said_once_and_watched_again_when_it_is_back(
    home: Home, watcher: Watcher, seen: Seen
) -> None:
    """Nobody tells of its return: it is looked for now and then, and nothing spins."""
    with capture_logs() as logs:
        watcher.start()
        home.root.rename(home.root.with_name("away"))
        for _ in range(3):
            watcher.renew()
        assert watcher.mode == "lost"
        watcher.check()
        home.root.with_name("away").rename(home.root)
        watcher.renew()

    assert [entry["event"] for entry in logs] == ["watch.lost", "watch.renewed"]
    assert watcher.mode == "events"
    _envelope(home)
    assert seen.inbox.wait(PATIENCE_SECONDS)


def test_a_link_to_projects_elsewhere_is_followed(
    home: Home, watcher: Watcher, seen: Seen, tmp_path: Path
) -> None:
    """A person may keep them on another disk; events come under the home's own names."""
    home.projects.rename(tmp_path / "disk")
    home.projects.symlink_to(tmp_path / "disk")
    watcher.start()

    (home.projects / "p").mkdir()

    assert seen.store.wait(PATIENCE_SECONDS)
    assert watcher.mode == "events"


def test_an_overflow_is_one_full_look(home: Home, watcher: Watcher, seen: Seen) -> None:
    """However often the library warns of it; after the end nobody looks."""
    watcher.start()
    record = logging.getLogger("watchdog.observers.inotify_c")
    entered, go = threading.Event(), threading.Event()
    watcher.on_lost = lambda: (entered.set(), go.wait(PATIENCE_SECONDS), seen.lost.release())[0]

    with capture_logs() as logs:
        record.warning("Inotify queue overflowed; filesystem events were lost")
        assert entered.wait(PATIENCE_SECONDS)
        go.set()
        assert seen.lost.acquire(timeout=PATIENCE_SECONDS)
    watcher.stop()
    record.propagate = False
    record.warning("Inotify queue overflowed; filesystem events were lost")
    record.propagate = True

    assert [entry["event"] for entry in logs] == ["watch.overflowed"]
    assert not seen.lost.acquire(blocking=False)


def test_a_real_overflow_is_noticed(
    home: Home, watcher: Watcher, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's own sign for it, as its reader hands it on."""
    from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, InotifyFD, Mask

    watcher.start()
    overflow = InotifyEvent(-1, Mask(InotifyConstants.IN_Q_OVERFLOW), 0, b"")  # type: ignore[arg-type]
    assert watcher._observer is not None
    reader: InotifyFD = watcher._observer._inotify_fd  # type: ignore[attr-defined]
    reader.handle_event(overflow)

    assert seen.lost.acquire(timeout=PATIENCE_SECONDS)


def test_polling_is_said_once_however_often_the_watches_are_made_anew(
    home: Home, watcher: Watcher, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that is low stays low."""

    def refuse(self: object) -> None:
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr(Observer, "start", refuse)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)
    threads = threading.active_count()
    with capture_logs() as logs:
        watcher.start()
        for _ in range(3):
            watcher.check()
        home.projects.rename(home.root / "away")
        watcher.renew()
        (home.root / "away").rename(home.projects)
        watcher.renew()
    (home.projects / "p").mkdir()

    assert [entry["event"] for entry in logs] == ["watch.polling"]
    assert seen.store.wait(PATIENCE_SECONDS)
    watcher.stop()
    assert threading.active_count() == threads
