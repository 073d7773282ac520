"""The archive of ``bench/archive``: small ones made, mined by the daemon and held against what they
must give; and that whoever holds them sees a fault."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoryd.memory.providers.rules import find
from memoryd.sessions.agents import adapter_for

sys.path.append(str(Path(__file__).parents[2] / "bench" / "archive"))

import check as checking
import facts as said
import generate as generating
import mining
import plan as planning

PROJECT = "/home/person/code/alder"
ONE, OTHER = said.fact(1), said.fact(2)


# -- what is made --------------------------------------------------------------------------------


def test_the_same_arguments_make_the_same_bytes(tmp_path: Path) -> None:
    """And the same manifest, in a folder of the same name."""
    made = []
    for _ in range(2):
        manifest = generating.generate(tmp_path / "archive", 12, 120_000, seed=7)
        made.append((manifest, _transcripts(tmp_path / "archive")))
        shutil.rmtree(tmp_path / "archive")

    assert made[0] == made[1]
    assert len(made[0][1]) > 8


def test_every_agents_sessions_are_found_as_roots_by_its_reader(tmp_path: Path) -> None:
    """All that is to be mined is discovered, and no sub-agent's session."""
    manifest = generating.generate(tmp_path, 60, 600_000, seed=1)

    environ = {"HOME": str(tmp_path / "person")}
    found = {
        (agent, each.session)
        for agent in planning.AGENTS
        for each in adapter_for(agent).discover(environ)
    }

    kinds = {kind: _names(manifest, kind) for kind in ("root", "fork", "child")}
    assert found == kinds["root"] | kinds["fork"]
    assert kinds["child"] and kinds["fork"]
    assert {agent for agent, _ in found} == set(planning.AGENTS)


def test_each_statement_is_of_a_form_that_is_kept_and_ordinary_talk_is_of_none() -> None:
    """Whatever leads in; no two statements share one of their four words."""
    facts = [said.fact(number) for number in range(64)]
    stated = [found for each in facts for lead in said.LEAD_INS for found in find(lead + each.text)]
    asked = [phrase.format(file="src/a.py", number=7) for phrase in said.ASKED]

    assert len(stated) == 64 * len(said.LEAD_INS)
    assert len({word for each in facts for word in each.words}) == 4 * 64
    assert [found for text in (*asked, "\n\n".join(asked)) for found in find(text)] == []


def _names(manifest: dict[str, Any], kind: str) -> set[tuple[str, str]]:
    sessions = manifest["sessions"]
    return {(each["agent"], each["session"]) for each in sessions if each["kind"] == kind}


def _transcripts(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.json*")}


# -- mined to the end ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(60)  # two starts of a daemon, on whatever machine
def test_a_small_archive_is_mined_to_its_end_through_a_kill(tmp_path: Path) -> None:
    """Every session's facts once, in its project; nothing else; nothing half done."""
    manifest = generating.generate(tmp_path / "archive", 24, 2_000_000, seed=3)
    home = tmp_path / "mined"
    mining.prepare(home, workers=3)

    environ = mining.environment(tmp_path / "archive" / "person", home)
    mined = mining.mine(home, environ, 24, kills=1, seed=3, log=tmp_path / "daemon.log")

    verdict = checking.check(manifest, home)
    assert verdict.faults() == {}
    assert verdict.kept == manifest["counts"]["facts"] > 24
    assert 0 < mined.peak_mib < 250


# -- who holds it against the manifest sees a fault ----------------------------------------------


@pytest.fixture
def mined_home(tmp_path: Path) -> Path:
    """A home that holds just what ``MANIFEST`` asks for."""
    home = tmp_path / "home"
    store = home / "projects" / "key" / "memory"
    (store / "project").mkdir(parents=True)
    (store.parent / "project.json").write_text(json.dumps({"path": PROJECT}))
    for fact in (ONE, OTHER):
        _note(store, fact.words[0], fact.text)
    with closing(sqlite3.connect(home / "memoryd.sqlite")) as database:
        database.execute("CREATE TABLE job (agent, session, kind, status)")
        database.execute("CREATE TABLE plan (agent, session)")
        database.execute("INSERT INTO job VALUES ('codex', 's-1', 'backfill', 'completed')")
        database.commit()
    (home / "baselines").mkdir()
    _git(home, "init", "-q", "-b", "main")
    _commit(home)
    return home


MANIFEST: dict[str, Any] = {
    "facts": [
        {"words": list(fact.words), "text": fact.text, "project": PROJECT, "sessions": ["s-1"]}
        for fact in (ONE, OTHER)
    ],
    "traps": [list(said.fact(3).words)],
    "sessions": [
        {"agent": "codex", "session": "s-1", "kind": "root"},
        {"agent": "codex", "session": "s-2", "kind": "child"},
    ],
}


def test_a_home_that_gives_what_it_must_has_no_faults(mined_home: Path) -> None:
    """Each statement in one note of its project, all jobs completed, all committed."""
    verdict = checking.check(MANIFEST, mined_home)

    assert (verdict.kept, verdict.faults()) == (2, {})


def test_a_statement_in_two_notes_or_twice_in_one_is_seen(mined_home: Path) -> None:
    """Doubled counts whichever way."""
    store = mined_home / "projects/key/memory"
    _note(store, "again", ONE.text)
    _note(store, OTHER.words[0], f"{OTHER.text}\n- {OTHER.text}")
    _commit(mined_home)

    assert _faults(mined_home) == {"doubled": 2}


def test_a_statement_that_no_current_note_tells_is_seen(mined_home: Path) -> None:
    """One that is gone, and one that stands in the archive of superseded notes alone."""
    store = mined_home / "projects/key/memory"
    (store / f"project/{ONE.words[0]}.md").unlink()
    (store / "archive/project").mkdir(parents=True)
    (store / f"project/{OTHER.words[0]}.md").rename(store / "archive/project/old.md")
    _commit(mined_home)

    assert _faults(mined_home) == {"missing": 2}


def test_a_note_of_what_nobody_said_is_seen(mined_home: Path) -> None:
    """Of a statement of a sub-agent's session, and of ordinary talk."""
    store = mined_home / "projects/key/memory"
    _note(store, "trap", said.fact(3).text)
    _note(store, "talk", "Open src/a.py at line 7.")
    _commit(mined_home)

    assert _faults(mined_home) == {"invented": 2}


def test_a_statement_in_another_project_is_seen(mined_home: Path) -> None:
    """A note counts where it belongs."""
    (mined_home / "projects/key/project.json").write_text(json.dumps({"path": "/elsewhere"}))

    assert _faults(mined_home) == {"misplaced": 2}


def test_what_is_not_through_or_not_committed_is_seen(mined_home: Path) -> None:
    """A failed job, a session without one, a standing plan, a file that git does not have."""
    with closing(sqlite3.connect(mined_home / "memoryd.sqlite")) as database:
        database.execute("UPDATE job SET status = 'failed'")
        database.execute("INSERT INTO plan VALUES ('codex', 's-1')")
        database.commit()
    (mined_home / f"projects/key/memory/project/{ONE.words[0]}.md").write_text(ONE.text)

    assert _faults(mined_home) == {"unmined": 1, "unfinished": 2, "damaged": 1}


def test_a_damaged_history_is_seen(mined_home: Path) -> None:
    """An object that is missing in it."""
    objects = (mined_home / "baselines/key.git/objects").glob("??/*")
    next(path for path in sorted(objects)).unlink()

    assert set(_faults(mined_home)) == {"damaged"}


def _faults(home: Path) -> dict[str, int]:
    """How many faults of each kind the home has."""
    found = checking.check(MANIFEST, home).faults()
    return {name: len(each) for name, each in found.items()}


def _note(store: Path, name: str, text: str) -> None:
    header = f"---\nname: {name}\ndescription: {text[:40]}\ntype: project\n---\n"
    (store / f"project/{name}.md").write_text(f"{header}{text}\n")


def _commit(home: Path) -> None:
    _git(home, "add", "--all")
    who = ("-c", "user.name=memoryd", "-c", "user.email=memoryd@localhost")
    _git(home, *who, "commit", "-q", "-m", "As it is")


def _git(home: Path, *command: str) -> None:
    place = f"--git-dir={home / 'baselines/key.git'}"
    tree = f"--work-tree={home / 'projects/key/memory'}"
    subprocess.run(["git", place, tree, *command], check=True, capture_output=True)
