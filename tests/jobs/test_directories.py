"""Sessions that name their directory by a hash alone, as Gemini CLI's older ones do."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from archives import RULE, Past, touch
from world import NOTHING, World

from memoryd.jobs.letting_go import let_go
from memoryd.memory.config import Config, PrivacySettings, ProviderSettings
from memoryd.memory.projects import NOWHERE, Resolver, record
from memoryd.memory.testing import FakeClock
from memoryd.sessions.listing import Which, choose

SESSION = "0199c3a0-0000-7000-8000-00000000abcd"
WORD = "xylophonic"
DAY_MS = 24 * 3600 * 1000


def hashed(world: World, directory: Path, *, days: float = 10) -> Path:
    """A session of the older kind that was held in ``directory``."""
    name = hashlib.sha256(str(directory).encode()).hexdigest()
    path = world.folder / "person/.gemini/tmp" / name / "chats" / "session-2026-01-01T10-00-ab.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    said = [("user", f"{WORD}: {RULE}"), ("gemini", "Understood.")]
    messages = [
        {"id": f"m{number}", "type": kind, "content": text, "timestamp": "2026-01-01T10:00:00Z"}
        for number, (kind, text) in enumerate(said)
    ]
    path.write_text(json.dumps({"sessionId": SESSION, "projectHash": name, "messages": messages}))
    touch(path, world.clock.now_ms() - int(days * DAY_MS))
    return path


def excluding(*globs: str) -> Config:
    """A configuration that excludes these."""
    return Config(provider=ProviderSettings(), privacy=PrivacySettings(exclude=globs))


def finalize(world: World, path: Path) -> None:
    """What a hook, the command or the sweep asks for, worked."""
    asked = {"cutoff": 2, "transcript": str(path), "trigger": "hook", "reason": "end"}
    world.ledger.enqueue("finalize", "gemini-cli", SESSION, cwd="", **asked)
    world.work()


def kept(world: World) -> list[tuple[str, str]]:
    """The project and the directory of each message whose words are kept."""
    found = world.place.history.messages("gemini-cli", SESSION, 0, 10)
    return [(each.project, each.cwd) for each in found if each.text]


def skipped(world: World) -> dict[str, int]:
    """What ingestion left out, by reason."""
    found = world.place.history.session("gemini-cli", SESSION)
    return dict(found.skipped) if found else {}


def known_by_session(world: Past, directory: Path) -> None:
    """Another agent was there, in a folder of it."""
    world.aged(world.transcript("s1", cwd=directory / "src"), "Hello there.", days=20)


def known_by_project(world: Past, directory: Path) -> None:
    """It has a memory of its own."""
    record(world.home, Resolver(world.home).resolve(str(directory)))


def known_by_gemini(world: Past, directory: Path) -> None:
    """Gemini CLI has it in its list of projects."""
    listed = world.folder / "person/.gemini/projects.json"
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text(json.dumps({"projects": {str(directory): "secret"}}))


def known_by_trust(world: Past, directory: Path) -> None:
    """A person said that they trust it."""
    listed = world.folder / "person/.gemini/trustedFolders.json"
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text(json.dumps({str(directory): "TRUST_FOLDER"}))


@pytest.mark.parametrize(
    "learn", [known_by_session, known_by_project, known_by_gemini, known_by_trust]
)
def test_discovery_finds_the_directory_among_those_that_are_known(
    tmp_path: Path, clock: FakeClock, learn: object
) -> None:
    """Whoever knows it; also when that is learned after the session was found."""
    past = Past(tmp_path, clock)
    place = tmp_path / "secret"
    (place / "src").mkdir(parents=True)
    hashed(past, place)
    past.discover()
    assert past.ledger.archive.known("gemini-cli")[SESSION].cwd == ""

    learn(past, place)  # type: ignore[operator]
    past.discover()
    past.discover()

    assert past.ledger.archive.known("gemini-cli")[SESSION].cwd == str(place)
    assert past.discover().written == 0


@pytest.mark.parametrize("glob", ["{}/secret", "{}/secret/**", "{}/sec*", "{}/*"])
def test_an_excluded_directory_is_known_by_its_exclusion(
    tmp_path: Path, clock: FakeClock, glob: str
) -> None:
    """No other session was ever held in it: backfill leaves it, and says why."""
    past = Past(tmp_path, clock, config=excluding(glob.format(tmp_path)))
    (tmp_path / "secret").mkdir()
    hashed(past, tmp_path / "secret")

    past.mine()

    assert past.backfills() == []
    assert WORD.encode() not in b"".join(data for _, data in past.bytes_of_home())


def test_a_finalize_of_an_excluded_directory_keeps_nothing(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Whoever asked for it, with no discovery before."""
    world = World(tmp_path, clock, config=excluding(f"{tmp_path}/secret"))

    finalize(world, hashed(world, tmp_path / "secret"))

    assert kept(world) == [] and skipped(world)["excluded"] == 2
    assert world.model.requests == []


def test_what_is_found_to_be_said_somewhere_belongs_to_that_project(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Lists and searches by project reach it, and the ledger knows from then on."""
    world = World(tmp_path, clock, [NOTHING])
    path = hashed(world, world.project)
    known_by_gemini(world, world.project)  # type: ignore[arg-type]

    finalize(world, path)

    key = Resolver(world.home).resolve(str(world.project)).key
    assert kept(world) == [(key, str(world.project))] * 2
    assert choose(world.place.history, Which(project=key), 5) == [("gemini-cli", SESSION)]
    rollout = world.ledger.records.rollout("gemini-cli", SESSION)
    assert rollout is not None and rollout.cwd == str(world.project)


def test_what_a_hook_told_is_where_words_without_a_directory_were_said(
    tmp_path: Path, clock: FakeClock
) -> None:
    """No message of such a session says one."""
    world = World(tmp_path, clock, [NOTHING])
    path = hashed(world, tmp_path / "elsewhere")
    asked = {"cutoff": 2, "transcript": str(path), "trigger": "hook", "reason": "end"}
    world.ledger.enqueue("finalize", "gemini-cli", SESSION, cwd=str(world.project), **asked)

    world.work()

    assert [cwd for _, cwd in kept(world)] == [str(world.project)] * 2


def test_while_anything_is_excluded_words_of_nowhere_are_not_kept(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Nobody can say that they are not from there; they are counted."""
    world = World(tmp_path, clock, config=excluding("/somewhere/else"))

    finalize(world, hashed(world, tmp_path / "unknown"))

    assert kept(world) == [] and skipped(world)["no-directory"] == 2
    assert world.model.requests == []


def test_words_of_nowhere_that_were_kept_go_when_something_is_excluded(
    tmp_path: Path, clock: FakeClock
) -> None:
    """As those of a directory that is excluded by now do."""
    world = World(tmp_path, clock, [NOTHING])
    finalize(world, hashed(world, tmp_path / "unknown"))
    assert kept(world) == [(NOWHERE, "")] * 2
    assert let_go(world.place) == 0

    world.restart(config=replace(world.config, privacy=PrivacySettings(exclude=("secret",))))

    assert let_go(world.place) == 2


def test_words_kept_before_their_directory_was_known_are_told_it(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The next job of the session tells them, whatever is new."""
    world = World(tmp_path, clock, [NOTHING, NOTHING])
    path = hashed(world, world.project)
    finalize(world, path)
    assert kept(world) == [(NOWHERE, "")] * 2

    known_by_gemini(world, world.project)  # type: ignore[arg-type]
    asked = {"cutoff": 3, "transcript": str(path), "trigger": "sweep", "reason": "idle"}
    world.ledger.enqueue("finalize", "gemini-cli", SESSION, cwd="", **asked)
    world.work()

    assert [cwd for _, cwd in kept(world)] == [str(world.project)] * 2
    world.restart(config=excluding("elsewhere"))
    assert let_go(world.place) == 0


def test_a_listed_directory_that_holds_a_secret_stays_unknown(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its hash tells it, but it reaches no row and no file."""
    past = Past(tmp_path, clock)
    place = tmp_path / ("ghp_" + "Zx9Qw7Er" * 5)
    hashed(past, place)
    known_by_gemini(past, place)

    past.discover()

    assert past.ledger.archive.known("gemini-cli")[SESSION].cwd == ""
    kept_bytes = b"".join(path.read_bytes() for path in past.home.root.rglob("*") if path.is_file())
    assert place.name.encode() not in kept_bytes
