"""``memoryd consolidate`` as a person runs it: due or not, as a diff, and for good."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import forking
import pytest
from processes import PATIENCE_SECONDS

from memoryd.memory.baseline import Baseline
from memoryd.memory.home import Home
from memoryd.memory.notes import new_note
from memoryd.memory.projects import Resolver
from memoryd.memory.store import Store

PORT = "The staging server of the shop listens on port 8443 behind the proxy."


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A project's store in which one thing is said twice."""
    home = Home(tmp_path / "home")
    home.prepare()
    (tmp_path / "project").mkdir()
    made = Store.for_project(home, Resolver(home).resolve(str(tmp_path / "project")).key)
    baseline = Baseline(made)
    baseline.ensure()
    (made.root / "project").mkdir()
    for day, name in enumerate(("port", "port-again"), 1):
        created = f"2026-01-0{day}"
        data = new_note(name=name, description=PORT, type="project", body=PORT, created=created)
        (made.root / "project" / f"{name}.md").write_bytes(data)
    baseline.commit(["project/port.md", "project/port-again.md"], "Remember")
    return made


def memoryd(store: Store, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in the project's directory."""
    return forking.run(
        ["--home", str(store.home.root), *arguments],
        environ={**os.environ, "HOME": str(store.home.root.parent)},
        cwd=store.home.root.parent / "project",
        seconds=PATIENCE_SECONDS,
    )


@pytest.mark.slow
def test_a_store_that_is_not_due_says_which_gate_says_no(store: Store) -> None:
    """And how to have it all the same."""
    said = memoryd(store, "consolidate")

    assert said.returncode == 0
    assert "consolidate_min_sessions" in said.stdout
    assert "--now" in said.stdout


@pytest.mark.slow
def test_a_dry_run_shows_a_diff_and_writes_nothing(store: Store) -> None:
    """The plan, file by file, and why."""
    before = Baseline(store).head()

    said = memoryd(store, "consolidate", "--now", "--dry-run")
    as_json = json.loads(memoryd(store, "consolidate", "--now", "--dry-run", "--json").stdout)

    assert said.returncode == 0
    assert "+++ b/archive/project/port-again.md" in said.stdout
    assert "archive/project/port-again.md" in [each["path"] for each in as_json["changes"]]
    assert [each["reason"] for each in as_json["candidates"]] == ["duplicate.notes"]
    assert Baseline(store).head() == before
    assert Baseline(store).changed_paths() == []
    assert json.loads(memoryd(store, "list", "--json").stdout)["jobs"] == []


@pytest.mark.slow
def test_a_dry_run_shows_its_diff_whether_it_is_due_or_not(store: Store) -> None:
    """And says behind it which gate says no."""
    said = memoryd(store, "consolidate", "--dry-run").stdout
    as_json = json.loads(memoryd(store, "consolidate", "--dry-run", "--json").stdout)

    assert said.index("+++ b/archive/project/port-again.md") < said.index("not due: ")
    assert (as_json["due"], as_json["reason"]) == (False, "consolidation.too-few-sessions")
    assert as_json["changes"] != []


@pytest.mark.slow
def test_now_consolidates_without_a_daemon_and_undo_takes_it_back(store: Store) -> None:
    """One job, one commit."""
    said = memoryd(store, "consolidate", "--now", "--json")
    merged = [note.name for note in store.notes() if not note.archived]
    job = json.loads(said.stdout)["job"]
    shown = memoryd(store, "show", job["id"]).stdout
    undone = memoryd(store, "memory", "undo", job["id"])

    assert (job["status"], job["outcome_code"]) == ("completed", "store.consolidated")
    assert merged == ["port"]
    assert store.key in shown
    assert undone.returncode == 0
    assert sorted(note.name for note in store.notes()) == ["port", "port-again"]


@pytest.mark.slow
def test_a_project_without_notes_says_so(store: Store, tmp_path: Path) -> None:
    """It is no success."""
    (tmp_path / "empty").mkdir()

    said = memoryd(store, "consolidate", "--project", str(tmp_path / "empty"))

    assert said.returncode == 1
    assert "no notes yet" in said.stderr
