"""Events are hints that arrive at once, and where there are none the watcher polls."""

from __future__ import annotations

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

PATIENCE_SECONDS = 10.0


@dataclass
class Seen:
    """What the watcher called, and events to wait for it."""

    inbox: threading.Event = field(default_factory=threading.Event)
    store: threading.Event = field(default_factory=threading.Event)
    keys: list[str] = field(default_factory=list)

    def on_store(self, key: str) -> None:
        """Remember the key."""
        self.keys.append(key)
        self.store.set()


@pytest.fixture
def seen() -> Seen:
    """Nothing yet."""
    return Seen()


@pytest.fixture
def watcher(home: Home, seen: Seen) -> Iterator[Watcher]:
    """A watcher of the home, stopped at the end."""
    made = Watcher(home, seen.inbox.set, seen.on_store)
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
    watcher.saw(str(home.root / path))

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

    watcher = Watcher(home, fail_once, lambda key: None)
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
