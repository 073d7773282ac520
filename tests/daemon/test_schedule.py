"""Duties are done at their intervals, whatever one of them does."""

from __future__ import annotations

from structlog.testing import capture_logs

from memoryd.daemon.schedule import Schedule
from memoryd.memory.testing import FakeClock


def test_a_duty_is_done_when_due_and_a_missed_turn_is_one_turn(clock: FakeClock) -> None:
    """The seconds to the next are what the clock thread waits."""
    done: list[str] = []
    schedule = Schedule(clock)
    schedule.add("often", 10, lambda: done.append("often"))
    schedule.add("later", 60, lambda: done.append("later"), first=30)

    assert schedule.run_due() == 10
    clock.advance(35)
    assert schedule.run_due() == 10
    clock.advance(1000)
    schedule.run_due()

    assert done == ["often", "often", "later", "often", "later"]


def test_after_a_sleep_what_fell_due_meanwhile_is_done_at_once(clock: FakeClock) -> None:
    """Monotonic time stands still while the machine sleeps; the first look after it finds all."""
    done: list[str] = []
    schedule = Schedule(clock)
    schedule.add("sweep", 60, lambda: done.append("sweep"))
    schedule.add("check", 3600, lambda: done.append("check"))
    schedule.add("day", 86400, lambda: done.append("day"))
    schedule.run_due()
    done.clear()

    clock.advance(15)
    clock.step(8 * 3600)

    assert schedule.run_due() == 60
    assert done == ["sweep", "check"]


def test_a_clock_that_is_set_back_puts_nothing_off(clock: FakeClock) -> None:
    """Nor does one that is slewed, or a look that comes late, bring anything forward."""
    done: list[str] = []
    schedule = Schedule(clock)
    schedule.add("sweep", 60, lambda: done.append("sweep"))
    schedule.run_due()

    clock.step(-86400)
    clock.advance(30)
    waits = [schedule.run_due()]
    clock.step(4)
    clock.advance(26)
    waits.append(schedule.run_due())
    clock.advance(4)
    waits.append(schedule.run_due())

    assert (waits, done) == ([30, 4, 60], ["sweep", "sweep"])


def test_a_duty_that_fails_is_logged_and_done_again(clock: FakeClock) -> None:
    """The others go on, and so does it."""
    done: list[str] = []

    def fail() -> None:
        done.append("failing")
        raise ValueError("a fault")

    schedule = Schedule(clock)
    schedule.add("failing", 10, fail)
    schedule.add("other", 10, lambda: done.append("other"))
    with capture_logs() as logs:
        schedule.run_due()
        clock.advance(10)
        schedule.run_due()

    assert done == ["failing", "other", "failing", "other"]
    assert [(entry["event"], entry["duty"]) for entry in logs] == [("duty.failed", "failing")] * 2
