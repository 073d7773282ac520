"""Work that runs once per local date, whatever clocks, zones and processes do."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from builders import open_ledger

from memoryd.jobs.daily_runs import KEPT, DailyRun, DailyRuns
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import local_date, next_local_midnight_ms
from memoryd.memory.testing import FakeClock

HOUR = 3600
DAY = 24 * HOUR
Done = dict[str, list[str]]


@pytest.fixture
def runs(tmp_path: Path, clock: FakeClock) -> DailyRuns:
    """The daily runs of an empty ledger."""
    return open_ledger(tmp_path, clock).daily_runs


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Local time that the test may set; what it was before comes back."""
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


def at(instant: str) -> FakeClock:
    """A clock that stands at an instant of UTC."""
    return FakeClock(int(datetime.fromisoformat(f"{instant}+00:00").timestamp() * 1000))


# Each begins at an instant of UTC, in a zone: POSIX rules, so that no machine's zone files matter.
BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
#: Clocks change at midnight: on one day of the year 00:00 does not exist, on one it comes twice.
SAO_PAULO_2018 = "<-03>3<-02>,M11.1.0/0,M2.3.0/0"
BEIRUT = "EET-2EEST,M3.5.0/0,M10.5.0/0"
CAIRO = "EET-2EEST,M4.5.5/0,M10.5.4/24"

EDGES = {
    "a day of 24 hours": (BERLIN, "2026-01-04T23:00:00", 24),
    "a day of 23 hours": (BERLIN, "2026-03-28T23:00:00", 23),
    "a day of 25 hours": (BERLIN, "2026-10-24T22:00:00", 25),
    "no midnight in Sao Paulo": (SAO_PAULO_2018, "2018-11-04T03:00:00", 23),
    "two midnights in Sao Paulo": (SAO_PAULO_2018, "2018-02-17T02:00:00", 25),
    "no midnight in Beirut": (BEIRUT, "2024-03-30T22:00:00", 23),
    "two midnights in Beirut": (BEIRUT, "2024-10-25T21:00:00", 25),
    "no midnight in Cairo": (CAIRO, "2024-04-25T22:00:00", 23),
    "two midnights in Cairo": (CAIRO, "2024-10-30T21:00:00", 25),
}


#: All that counts by the date. Each says whether it did its work when it was asked to.
DAILY: dict[str, Callable[[Ledger], bool]] = {
    "tidy": lambda ledger: ledger.daily_runs.once("tidy", lambda: None),
    "backup": lambda ledger: ledger.daily_runs.once("backup", lambda: None),
    "budget": lambda ledger: ledger.budget.reserve("p", 1, max_calls=1, max_tokens=9) is not None,
    "backfill": lambda ledger: not ledger.archive.made_today() and not ledger.archive.count_made(),
    "consolidation": lambda ledger: (
        ledger.enqueue_store(
            "consolidate", "-code", key=local_date(ledger.clock.now_ms()), trigger="daily"
        ).created
    ),
}


def hour_by_hour(ledger: Ledger, clock: FakeClock, hours: int) -> tuple[Counter[str], Done]:
    """The dates that were seen, by hours, and on which of them each thing was done."""
    dates: Counter[str] = Counter()
    done: Done = {name: [] for name in DAILY}
    for _ in range(hours):
        today = local_date(clock.now_ms())
        dates[today] += 1
        for name, do in DAILY.items():
            if do(ledger):
                done[name].append(today)
        clock.advance(HOUR)
    return dates, done


@pytest.mark.parametrize("edge", EDGES)
def test_each_date_gets_one_of_everything_at_whatever_hour(
    edge: str, tmp_path: Path, zone: pytest.MonkeyPatch
) -> None:
    """Over five days; the one in question has its own length, and its midnight is known."""
    rules, begins, hours = EDGES[edge]
    zone.setenv("TZ", rules)
    time.tzset()
    clock = at(begins)
    day, ends = local_date(clock.now_ms()), clock.now_ms() + hours * HOUR * 1000
    midnights = {
        next_local_midnight_ms(clock.now_ms() + hour * HOUR * 1000) for hour in range(hours)
    }
    clock.advance(-2 * DAY)

    dates, done = hour_by_hour(open_ledger(tmp_path, clock), clock, 5 * 24)

    assert done == {name: sorted(dates) for name in DAILY}
    assert (dates[day], midnights) == (hours, {ends})


STEPS: dict[str, list[tuple[float, float, bool]]] = {
    # (seconds that pass awake, seconds the wall clock alone moves, whether it is due then)
    "a sleep of eight hours within the day": [(0, 0, True), (60, 8 * HOUR, False)],
    "a sleep over midnight": [(0, 0, True), (60, 16 * HOUR, True), (60, 0, False)],
    "a sleep of a week": [(0, 0, True), (0, 7 * DAY, True), (60, 0, False)],
    "back by an hour within the day": [(0, 0, True), (0, -HOUR, False)],
    "back over midnight": [
        *[(0, 0, True), (0, -10 * HOUR, False), (10 * HOUR, 0, False)],
        (15 * HOUR, 0, True),
    ],
    "a year ahead and back at once": [
        *[(0, 0, True), (60, 365 * DAY, True), (60, -365 * DAY, False)],
        (DAY, 0, True),
    ],
    "a year ahead from the start": [(0, 365 * DAY, True), (60, -365 * DAY, True), (60, 0, False)],
    "two days ahead from the start": [(0, 47 * HOUR, True), (60, -47 * HOUR, True)],
    "to 1970 and back": [
        *[(0, 0, True), (0, -56 * 365 * DAY, True), (0, 56 * 365 * DAY, False)],
        (DAY, 0, True),
    ],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
def test_a_clock_that_jumps_neither_repeats_a_date_nor_stops_the_work(
    steps: list[tuple[float, float, bool]], runs: DailyRuns, clock: FakeClock
) -> None:
    """A sleep moves the wall clock alone, as a person or NTP does."""
    seen = []
    for awake, jump, _ in steps:
        clock.advance(awake)
        clock.step(jump)
        seen.append(runs.once("tidy", lambda: None))

    assert seen == [due for *_, due in steps]


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
def test_whatever_the_clock_does_nothing_is_done_twice_for_one_date(
    steps: list[tuple[float, float, bool]], tmp_path: Path, clock: FakeClock
) -> None:
    """Looked for through half a day after each jump, too."""
    ledger = open_ledger(tmp_path, clock)
    all_done: Done = {name: [] for name in DAILY}
    for awake, jump, _ in steps:
        clock.advance(awake)
        clock.step(jump)
        _, done = hour_by_hour(ledger, clock, 12)
        for name, dates in done.items():
            all_done[name] += dates

    assert {name: sorted(set(dates)) for name, dates in all_done.items()} == {
        name: sorted(dates) for name, dates in all_done.items()
    }


TRAVELS = {
    # From an evening in one zone to another within an hour, and the dates that ran within 33 hours.
    "east over a date": ("JST-9", "HST10", ["2026-01-05", "2026-01-06"]),
    "west over a date": ("HST10", "JST-9", ["2026-01-05", "2026-01-06", "2026-01-07"]),
    "from the first zone to the last": ("<+14>-14", "<-12>12", ["2026-01-05", "2026-01-06"]),
    "within a date": ("CET-1", "WET0", ["2026-01-05", "2026-01-06", "2026-01-07"]),
}


@pytest.mark.parametrize("travel", TRAVELS)
def test_a_person_who_travels_gets_each_date_they_see_once(
    travel: str, tmp_path: Path, zone: pytest.MonkeyPatch
) -> None:
    """The process goes on, and sees the zone of where it is."""
    there, here, expected = TRAVELS[travel]
    zone.setenv("TZ", there)
    time.tzset()
    evening = int(time.mktime((2026, 1, 5, 18, 0, 0, 0, 0, -1)))
    clock = FakeClock(evening * 1000)
    runs = open_ledger(tmp_path, clock).daily_runs
    done: list[str] = []

    for quarter in range(4 * 33):
        if quarter == 4:
            zone.setenv("TZ", here)  # nobody calls tzset for the daemon
        runs.once("tidy", lambda: done.append(local_date(clock.now_ms())))
        clock.advance(HOUR / 4)

    assert done == expected


def test_a_restart_knows_what_ran(tmp_path: Path, clock: FakeClock) -> None:
    """A laptop that starts ten times a day tidies once."""
    began = []
    for _ in range(10):
        ledger = open_ledger(tmp_path, clock)
        began.append(ledger.daily_runs.once("tidy", lambda: None))
        ledger.close()
        clock.advance(HOUR)

    assert began == [True] + [False] * 9


def test_work_over_midnight_counts_for_the_date_on_which_it_began(
    runs: DailyRuns, clock: FakeClock
) -> None:
    """The next date is not left out."""
    runs.once("backup", lambda: clock.advance(15 * HOUR + 60))

    assert (runs.due("backup"), [run.day for run in runs.all()]) == (True, ["2026-01-05"])


def test_work_that_fails_is_due_again(runs: DailyRuns) -> None:
    """And what it raised is the caller's."""

    def fail() -> None:
        raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        runs.once("backup", fail)

    assert runs.due("backup")
    assert runs.all() == []


def test_each_name_has_its_last_run_and_a_bounded_past(runs: DailyRuns, clock: FakeClock) -> None:
    """One does not stand for another."""
    runs.ran("tidy")
    for _ in range(KEPT + 10):
        runs.ran("backup")
        clock.advance(DAY)
    last = clock.now_ms() - DAY * 1000

    assert runs.all() == [
        DailyRun("backup", local_date(last), last),
        DailyRun("tidy", "2026-01-05", 1_767_603_600_000),
    ]
    assert runs._db.rows("select count(*) from daily_run") == [(KEPT + 1,)]
