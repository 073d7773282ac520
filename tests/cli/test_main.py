"""What holds for every command: one clear line for a fault, its exit code, output that is whole."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from processes import MEMORYD, PATIENCE_SECONDS, TABS, World

from memoryd.memory.text import without_surrogates

#: Commands that need nothing but a home, and the keys their JSON has: a contract with scripts.
KEYS = {
    ("status",): {
        "home",
        "counts",
        "waiting",
        "oldest_pending_at",
        "next_due_at",
        "inbox",
        "bad_envelopes",
        "provider",
        "calls_today",
        "tokens_today",
        "daily_calls",
        "daily_tokens",
        "breaker",
        "switches",
        "daemon",
        "kinds",
        "waits",
        "oldest",
        "done",
        "spending",
        "breakers",
        "daily_runs",
        "locks",
        "disk",
    },
    ("list",): {"jobs"},
    ("prune",): {"pruned", "by_status", "kept", "freed_bytes", "dry_run"},
    ("run", "--once"): {"by", "attempts", "rested"},
    ("memory", "list", "--all"): {"notes"},
    ("config", "show"): {"memory", "curation", "provider", "queue", "sessions", "projects"},
    ("config", "check"): {"path", "usable", "problems"},
    ("config", "path"): {"path", "exists"},
}
JOB = {"id", "kind", "agent", "session", "status", "outcome_code", "error_code", "error_detail"}
JOB |= {"wait_reason", "attempt", "failures", "cutoff", "run_at", "created_at", "finished_at"}
NOTE = {"project", "type", "name", "description", "path", "source", "valid_from"}
DAEMON = {"pid", "started_at", "ready", "watching", "last_sweep_at", "working", "reloads"}
DAEMON |= {"version", "last_rescue_at", "last_discovery_at", "workers", "busy", "free"}


@pytest.mark.parametrize("words", KEYS, ids=" ".join)
def test_json_keeps_its_keys(world: World, words: tuple[str, ...]) -> None:
    """One object on standard output, with at least the keys scripts rely on."""
    world.home.prepare()
    assert set(world.answer(*words)) >= KEYS[words]


def test_jobs_notes_and_the_daemon_keep_their_keys(world: World) -> None:
    """Wherever one is printed."""
    world.hook(world.claude(TABS))
    words = ("enqueue", "finalize", "--agent", "claude-code", "--session", "s-1", "--wait")
    made = world.answer(*words)
    (note,) = world.answer("memory", "list")["notes"]
    shown = world.answer("show", made["job"]["id"])
    with world.daemon():
        status = world.answer("status")

    assert set(made) == {"created", "job"}
    assert set(made["job"]) >= JOB
    assert set(shown) == {"job", "attempts", "candidates", "transcript", "undone"}
    assert set(note) >= NOTE
    assert set(status["daemon"]) >= DAEMON


@pytest.mark.parametrize("words", KEYS, ids=" ".join)
@pytest.mark.parametrize(
    ("home", "told"),
    [("~nobody-of-that-name/x", "no user of that name"), ("/dev/null", "is a file")],
)
def test_a_home_that_cannot_be_is_one_line_and_a_hint(
    world: World, words: tuple[str, ...], home: str, told: str
) -> None:
    """Exit code 1 for every command, with what to do next, and nothing on standard output."""
    done = world.run(*words, "--home", home)

    assert (done.returncode, done.stdout) == (1, "")
    line, hint = done.stderr.splitlines()
    assert line.startswith("memoryd: ")
    assert told in line
    assert "--home" in hint


@pytest.mark.parametrize("words", [("run",), ("run", "--once"), ("enqueue",)])
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write")
def test_a_home_nobody_can_write_is_one_line_and_a_hint(
    world: World, words: tuple[str, ...]
) -> None:
    """As on a read-only disk; the person is told of the way out."""
    if words == ("enqueue",):
        world.claude(TABS)
        words = ("enqueue", "finalize", "--agent", "claude-code", "--session", "s-1")

    done = world.run(*words, "--home", "/proc/memoryd")

    assert (done.returncode, done.stdout) == (1, "")
    line, hint = done.stderr.splitlines()
    assert line.startswith("memoryd: the home /proc/memoryd cannot be used")
    assert "--home" in hint


@pytest.mark.parametrize(
    "words",
    [
        ("nothing",),
        ("list", "--status", "done"),
        ("list", "--limit", "0"),
        ("list", "--colour"),
        ("show",),
        ("enqueue", "consolidat", "--agent", "codex"),
        ("enqueue", "finalize", "--agent", "codex"),
        ("prune", "--keep", "-1"),
        ("prune", "--older-than", "30"),
        ("prune", "--status", "running"),
    ],
    ids=" ".join,
)
def test_a_request_that_makes_no_sense_is_2(world: World, words: tuple[str, ...]) -> None:
    """The usage, and what is wrong with it; nothing is made."""
    done = world.run(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: " in done.stderr
    assert not world.home.root.exists()


def test_a_reader_that_has_seen_enough_is_no_fault(world: World) -> None:
    """``memoryd ... | head`` ends without a complaint of Python's."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*MEMORYD, "config", "show"],
        env=world.environ,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_SECONDS,
    )
    os.close(write)

    assert (done.returncode, done.stderr) == (1, b"")


def test_bytes_that_are_no_text_are_shown_as_such(world: World) -> None:
    """A path that is not UTF-8, and one that would drive the terminal."""
    for name in (b"/no/\xff\xfe", b"/no/\x1b[2J\xe2\x80\xae"):
        words = ["enqueue", "finalize", "--agent", "codex", "--transcript", os.fsdecode(name)]
        done = world.run(*words)

        assert done.returncode == 1
        assert done.stderr.startswith(
            "memoryd: there is no transcript /no/\N{REPLACEMENT CHARACTER}"
        )
        assert done.stderr == without_surrogates(done.stderr)
        assert not set(done.stderr) & set("\x1b\u202e")


def test_json_is_whole_whatever_was_said(world: World) -> None:
    """Control characters, turned lines and Arabic come back as they are, and print as ASCII."""
    name = 'a "b"\x9b2J\u202e \u0646'
    done = world.run("config", "path", "--json", "--home", str(world.root / name))

    assert json.loads(done.stdout)["path"].endswith(f"{name}/config.toml")
    assert not set(done.stdout) & set("\x9b\u202e")


def test_a_locked_ledger_is_said_with_what_to_do(world: World) -> None:
    """Another program holds the write lock for too long."""
    world.run("status")
    with world.ledger() as ledger, ledger.db.writing():
        world.claude(TABS)
        done = world.run("enqueue", "finalize", "--agent", "claude-code", "--session", "s-1")

    assert (done.returncode, done.stdout) == (1, "")
    assert "is locked" in done.stderr
    assert "try again" in done.stderr
