"""Waiting and giving up, as pure decisions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from builders import make_job, open_ledger
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs import retry
from memoryd.jobs.job import Job
from memoryd.memory.testing import FakeClock


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Some job."""
    folder: Path = tmp_path_factory.mktemp("retry")
    return make_job(open_ledger(folder, FakeClock()))


@given(failures=st.integers(0, 500), base=st.integers(1, 3600), seed=st.integers())
def test_a_retry_waits_at_most_an_hour_and_a_tenth(
    job: Job, failures: int, base: int, seed: int
) -> None:
    """``min(1 h, base * 4^(failures-1))``, 10 % either way, for any number of failures."""
    failing = job._replace(failures=failures, max_failures=1000)

    decision = retry.after_failure(failing, 0, random.Random(seed), base)

    expected = min(3600, base * 4**failures) * 1000
    assert decision.status == "pending"
    assert expected * 0.9 - 1 <= decision.run_at <= expected * 1.1


@given(failures=st.integers(0, 20), most=st.integers(1, 10), crashes=st.integers(0, 5))
def test_a_job_is_given_up_with_its_last_failure_whatever_its_kind(
    job: Job, failures: int, most: int, crashes: int
) -> None:
    """A crash and a failure count the same."""
    failing = job._replace(failures=failures, max_failures=most, crashes=min(crashes, failures))
    expected = "failed" if failures + 1 >= most else "pending"

    assert retry.after_failure(failing, 0, random.Random(1)).status == expected
    assert retry.after_crash(failing, 0).status == expected


def test_a_first_crash_is_retried_at_once_even_after_failures(job: Job) -> None:
    """A restart is no reason to keep the person waiting."""
    assert retry.after_crash(job._replace(failures=2, crashes=0), 7).run_at == 7


def test_later_crashes_back_off(job: Job) -> None:
    """Poison must not spin."""
    crashed = [
        job._replace(failures=count, crashes=count, max_failures=99) for count in range(1, 7)
    ]

    waits = [retry.after_crash(each, 0).run_at // 1000 for each in crashed]

    assert waits == [15, 60, 240, 960, 3600, 3600]


@given(st.integers(1, 100), st.integers(100, 5000), st.integers(0, 10**6))
def test_doubling_never_shrinks_and_never_exceeds_its_longest(
    first: int, longest: int, times: int
) -> None:
    """Also after a year of trying."""
    now, then = retry.doubling(first, longest, times), retry.doubling(first, longest, times + 1)

    assert first <= now <= then <= longest
