"""Thirty days in the life of one project's memory, on a fake clock.

Sessions, edits by hand, consolidations, crashes, an undo, a forget: what is there at the end is
what the person would expect, and the history reads as the diary in ``docs/diary.md``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from world import DAY, SECRET, Transcript, World, answer, fact

from memoryd.jobs.daily import check_stores
from memoryd.jobs.job import Job
from memoryd.jobs.stores import take_in_edits
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import StoreHeld
from memoryd.memory.forget import delete_note
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock
from memoryd.memory.undo import undo

HOUR = 3600
DIARY = Path(__file__).parent.parent.parent / "docs" / "diary.md"

PNPM = "We use pnpm for the packages of this repository."
BUN = "From today on we use bun for the packages, pnpm is gone."
SHORT = "I like short answers without any preamble."
STAGING = "The staging database lives at db1.staging.internal, port 5432."
MOVED = "The staging database has moved to db2.staging.internal, port 5433."
OLD_HOST = "The staging database lives at db0.staging.internal, port 5431."
LINT = "Run make lint before every commit, the gate is strict."
LINT_AGAIN = "Before a commit always run make lint: the gate is strict."
THURSDAY = "Releases are cut on Thursdays, never on a Friday."
STANDUP = "The standup of the team is at 9:15 every day."
DARK = "I want every mock-up in a dark theme."
BRANCH = "Branches are named after the ticket, like SHOP-123."
CURRENCY = "Prices are kept in cents, as integers, everywhere."
LOCALE = "Dates in the reports are written as day, month, year."
PASSWORD = f"The token for the registry is {SECRET}, use it when you publish."

#: What the model makes of a sentence: type, name, category.
KNOWN: dict[str, tuple[str, str, str]] = {
    PNPM: ("project", "package-manager", "technical-default"),
    BUN: ("project", "bun-for-packages", "technical-default"),
    SHORT: ("feedback", "short-answers", "preference"),
    STAGING: ("reference", "staging-database", "project"),
    MOVED: ("reference", "staging-database-moved", "project"),
    OLD_HOST: ("reference", "first-staging-database", "project"),
    LINT: ("project", "lint-before-commit", "technical-default"),
    LINT_AGAIN: ("project", "lint-gate", "technical-default"),
    THURSDAY: ("project", "release-day", "work"),
    STANDUP: ("project", "standup", "work"),
    DARK: ("user", "dark-mock-ups", "preference"),
    BRANCH: ("project", "branch-names", "technical-default"),
    CURRENCY: ("project", "prices-in-cents", "technical-default"),
    LOCALE: ("project", "dates-in-reports", "technical-default"),
    PASSWORD: ("reference", "registry-token", "project"),
}
#: How it stands to a note, where that one is shown.
RELATED = {
    BUN: ("contradicts", "package-manager"),
    MOVED: ("updates", "staging-database"),
    OLD_HOST: ("contradicts", "staging-database"),
}


#: A model that has lost its mind, or was talked into it by what it read.
HOSTILE: dict[str, object] = {
    "merges": [
        {
            "into": "staging-database",
            "supersedes": ["branch-names", "prices-in-cents", "release-day"],
            "description": "All there is to know",
            "content": "There is a staging database.",
        },
        {
            "into": "never-seen",
            "supersedes": ["short-answers"],
            "description": "x",
            "content": "x",
        },
    ],
    "episode": {
        "name": "the-token",
        "description": "The token was shared",
        "content": f"The registry's token is {SECRET}.",
    },
    "promote": [
        {
            "type": "project",
            "name": "standup",
            "description": STANDUP,
            "content": STANDUP,
        },
    ],
}


RELEASE: dict[str, object] = {
    "merges": [],
    "episode": {
        "name": "release-of-january",
        "description": "The release of January was prepared.",
        "happened_at": "2026-01-25",
        "content": "The work left for the release was listed on three days.",
    },
    "promote": [],
}


class Model:
    """A provider that knows these sentences, and what to say of a store on a given day."""

    name = "scripted"
    costs = True
    consolidates = True

    def __init__(self) -> None:
        self.plans: list[dict[str, object]] = []
        self.requests: list[Request] = []

    def complete(self, request: Request):  # type: ignore[no-untyped-def]
        """Facts of what was said, or the next plan for the store."""
        from memoryd.memory.providers.base import Reply

        self.requests.append(request)
        text = self._facts(request) if request.messages else self._plan()
        return Reply(text, len(request.prompt) // 4, len(text) // 4)

    def _plan(self) -> str:
        empty = {"merges": [], "episode": None, "promote": []}
        return json.dumps(self.plans.pop(0) if self.plans else empty)

    def _facts(self, request: Request) -> str:
        said = " ".join(message.text for message in request.messages)
        shown = {note.name for note in request.notes}
        found = []
        for sentence, (kind, name, category) in KNOWN.items():
            if sentence not in said:
                continue
            relation, other = RELATED.get(sentence, ("new", None))
            if other not in shown:
                relation, other = "new", None
            draft = {"type": kind, "name": name, "description": sentence, "content": sentence}
            found.append(
                fact(
                    sentence,
                    category=category,
                    note=draft,
                    relation={"kind": relation, "name": other},
                )
            )
        return answer(*found)


class Month:
    """The days, one after the other."""

    def __init__(self, world: World, model: Model) -> None:
        self.world = world
        self.model = model
        self.day = 0
        self.sessions = 0

    def next_day(self, *said: str) -> list[Job]:
        """A day: a session of two runs for each thing said; its jobs, at work's end."""
        self.day += 1
        jobs = [self.session(sentence) for sentence in said]
        return jobs

    def session(self, *said: str, at_ms: int | None = None) -> Job:
        """One finished session, distilled."""
        job = self.start(*said, at_ms=at_ms)
        self.world.work_to_rest()
        return self.world.job(job)

    def start(self, *said: str, at_ms: int | None = None) -> Job:
        """One finished session, waiting in the ledger."""
        transcript = self.transcript(at_ms)
        for sentence in said:
            transcript.user(sentence).assistant("Understood.")
        transcript.user("Thanks, that is all for now.").assistant("Good.")
        made = self.world.enqueue(transcript).job
        assert made is not None
        return made

    def transcript(self, at_ms: int | None = None) -> Transcript:
        """An empty transcript of a session of now, or of long ago."""
        self.sessions += 1
        made = self.world.transcript(f"session-{self.sessions}")
        made.at_ms = at_ms or self.world.clock.now_ms()
        self.world.clock.advance(60)
        return made

    def night(self, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
        """What a person did is taken in; the daily check; the next morning.

        With ``monkeypatch`` the process dies once, between a commit and what the ledger says.
        """
        self.world.clock.advance(12 * HOUR)
        self.take_in()
        made = check_stores(self.world.place)
        if made and monkeypatch:
            self.world.die_at("store.committed", monkeypatch)
        self.world.work_to_rest()
        self.world.clock.advance(12 * HOUR - 60 * 5)

    def take_in(self) -> None:
        """A minute after a person's last keystroke."""
        take_in_edits(self.world.place, [self.world.store().key])

    def by_hand(self, path: str, edit: Callable[[str], str | None]) -> None:
        """A person changes, or deletes, a file in their editor, and leaves it alone."""
        place = self.world.store().root / path
        text = edit(place.read_text())
        if text is None:
            place.unlink()
        else:
            place.write_text(text)
        at = self.world.clock.now_ms() / 1000
        for touched in (place, place.parent):
            if touched.exists():
                os.utime(touched, (at, at))
        self.world.clock.advance(120)
        self.take_in()


def names(world: World, *, archived: bool = False) -> list[str]:
    """The notes there are, by type and name."""
    return sorted(note.id for note in world.store().notes() if note.archived is archived)


def diary(world: World) -> str:
    """The store's history, oldest first: the day, whose it is, what it did."""
    lines = []
    for made in reversed(Baseline(world.store()).log()):
        day = datetime.fromtimestamp(made.at_ms / 1000, UTC).date()
        lines.append(f"{day}  {made.author:<8}  {made.subject}")
    return "\n".join(lines)


@pytest.fixture
def month(tmp_path: Path, clock: FakeClock) -> Month:
    """A home, a project, and a model that knows what will be said."""
    model = Model()
    return Month(World(tmp_path, clock, provider=model), model)


def live(month: Month, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thirty days."""
    _first_week(month, monkeypatch)
    _second_week(month)
    _third_week(month, monkeypatch)
    _last_days(month)


def _first_week(month: Month, monkeypatch: pytest.MonkeyPatch) -> None:
    world = month.world
    month.next_day(PNPM, SHORT)
    month.night()
    month.next_day(STAGING)
    month.night()
    month.next_day(PNPM)  # said again: nothing new
    month.night()
    month.day += 1
    month.start(THURSDAY)
    world.die_at("store.replaced", monkeypatch)  # killed between the file and the commit
    world.work_to_rest()
    month.night()
    month.day += 1
    month.by_hand(
        "feedback/short-answers.md", lambda text: text.rstrip() + "\nExcept in release notes.\n"
    )
    month.night()
    month.next_day(LINT, BRANCH)
    month.night()
    month.next_day(LINT_AGAIN, CURRENCY)
    month.model.plans.append(
        {
            "merges": [
                {
                    "into": "lint-before-commit",
                    "supersedes": ["lint-gate"],
                    "description": "Run make lint before a commit",
                    "content": LINT + "\n" + "Always run make lint.",
                }
            ],
            "episode": {
                "name": "first-week-of-the-shop",
                "description": "The shop's rules for packages, commits and releases were set.",
                "happened_at": "2026-01-11",
                "content": "Packages, commits, branches and releases got their rules.",
            },
            "promote": [],
        }
    )
    month.night()


def _second_week(month: Month) -> None:
    world = month.world
    month.next_day(BUN)  # contradicts the first day
    month.night()
    wrong = month.next_day(STANDUP)[0]
    undo(world.home, wrong.id, clock=world.clock, evidence=world.ledger.records.evidence)
    month.night()
    month.next_day(DARK)
    month.night()
    month.day += 1
    store = world.store()
    spans = world.ledger.records.evidence(store.key, "user/dark-mock-ups.md")
    delete_note(world.home, store, "dark-mock-ups", clock=world.clock, spans=spans)
    month.night()
    month.next_day(LOCALE)
    month.model.plans.append(HOSTILE)
    month.night()
    month.day += 1
    month.by_hand("project/dates-in-reports.md", lambda text: None)
    month.night()
    month.next_day(MOVED)
    month.night()


def _third_week(month: Month, monkeypatch: pytest.MonkeyPatch) -> None:
    world = month.world
    month.day += 1
    long_ago = world.clock.now_ms() - 60 * DAY * 1000
    month.session(OLD_HOST, LOCALE, at_ms=long_ago)  # a session found late
    month.night()
    month.next_day(PASSWORD)
    month.night()
    month.day += 1
    _gone_and_back(month)
    month.night()
    month.next_day(DARK)  # said anew by the person: learned anew
    month.night()
    for _ in range(3):
        month.next_day("What is left to do for the release?")
        month.model.plans = [RELEASE]
        month.night(monkeypatch)


def _gone_and_back(month: Month) -> None:
    """A sync tool takes the notes away, and brings them back an hour later."""
    world = month.world
    root = world.store().root
    away = world.folder / "away"
    (root / "project").rename(away)
    world.clock.advance(300)
    with pytest.raises(StoreHeld):
        month.take_in()
    away.rename(root / "project")
    world.clock.advance(HOUR)
    month.take_in()


def _last_days(month: Month) -> None:
    for _ in range(8):
        month.next_day("Please look at the failing build.")
        month.night()
    month.day += 1
    month.night()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_month_ends_in_the_store_a_person_would_expect(
    month: Month, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every note that must be there is, none that must not, and the diary tells how."""
    world = month.world
    live(month, monkeypatch)
    store = world.store()
    bodies = {note.name: note.body for note in store.notes()}

    assert month.day == 30
    assert names(world) == [
        "episode/first-week-of-the-shop",
        "episode/release-of-january",
        "feedback/short-answers",
        "project/branch-names",
        "project/bun-for-packages",
        "project/lint-before-commit",
        "project/prices-in-cents",
        "project/release-day",
        "reference/staging-database",
        "user/dark-mock-ups",  # forgotten, and said anew by the person since
    ]
    # Not there: standup (undone), dates-in-reports (deleted by hand, and told again only by an
    # old session), registry-token (a secret), never-seen and the-token (a model's inventions).
    assert names(world, archived=True) == [
        "project/lint-gate",  # merged away
        "project/package-manager",  # contradicted
        "reference/first-staging-database",  # an old session's word, older than what is known
    ]
    assert bodies["short-answers"].endswith("Except in release notes.")
    assert MOVED in bodies["staging-database"]
    assert LINT in bodies["lint-before-commit"]
    assert Baseline(store).changed_paths() == []
    assert not any(SECRET.encode() in data for _, data in world.bytes_of_home())
    assert sorted(_refusals(world)) == HOSTILE_REASONS
    assert diary(world) == DIARY.read_text().partition("```\n")[2].partition("\n```")[0]


#: Why each of the hostile proposals came to nothing.
HOSTILE_REASONS = ["forgotten", "merge.unknown", "merge.unrelated", "scanner.secret"]


def _refusals(world: World) -> list[str]:
    """The reasons of the consolidation that was answered with nonsense."""
    for job in world.ledger.records.jobs(kind="consolidate", limit=100):
        reasons = [kept.reason for kept in world.candidates(job) if kept.state == "ignored"]
        if len(reasons) > 1:
            return reasons
    return []
