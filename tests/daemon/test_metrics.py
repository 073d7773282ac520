"""Metrics: what Prometheus reads of a daemon, and that every one is told in the documents."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.counters import Counters
from memoryd.daemon.metrics import METRICS, Snapshot, render
from memoryd.jobs.accounts import Account
from memoryd.jobs.report import report
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.config import Config, ProviderSettings
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock

ROOT = Path(__file__).parents[2]
_SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
DONE = Account(
    "finalize", "completed", "notes.written", "completed", 1.5, 2, 40, 3, 900, 60, {"apply": 2}, 1
)  # fmt: skip


def daemon(clock: FakeClock) -> dict[str, Any]:
    """What a daemon says of itself."""
    now = clock.now_ms()
    looks = {"last_sweep_at": now, "last_rescue_at": None, "last_discovery_at": now - 60_000}
    state = {"working": ["a"], "busy": 1, "free": 1, "workers": 2, "reloads": 3}
    return {"version": "0.1.0", "started_at": now - 90_000} | looks | state


def snapshot(home: Home, clock: FakeClock, counters: Counters, **of: Any) -> Snapshot:
    """One look at a home in which something of everything is."""
    config = Config(provider=ProviderSettings(name="openai", model="m", daily_cost=2.5))
    ledger = open_ledger(home, config, clock)
    for session in ("s1", "s2"):
        ledger.enqueue(
            "finalize",
            "claude-code",
            session,
            cutoff=1,
            transcript="/t",
            cwd="/c",
            trigger="cli",
        )
    job = ledger.claim("w")
    assert job is not None
    ledger.snooze(job, clock.now_ms() + 1000, "budget.spent")
    ledger.breakers.stop("anthropic", "provider.permanent", "401")
    ledger.budget.reserve("openai", 50, 10, 1000, cost=400_000)
    ledger.daily_runs.ran("tidy")
    values = asdict(report(home, ledger, config, {})) | {"daemon": daemon(clock)} | of
    ledger.close()
    now, since, duties = clock.now_ms() + 5000, clock.now_ms() - 70_000, {"sweep": (7, 1)}
    return Snapshot(values, counters.read(), now, 1, since, 4, duties)


def read(text: str) -> dict[str, dict[str, float]]:
    """Name -> labels -> value, as strict as a scraper: each line is a comment or a sample."""
    found: dict[str, dict[str, float]] = {}
    told: list[str] = []
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            assert what in {"HELP", "TYPE"} and rest
            told.append(f"{what} {name}")
            found.setdefault(name, {})
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample is not None, line
        name, labels, number = sample.groups()
        assert "".join(match[0] for match in _LABEL.finditer(labels or "")) == (labels or "")
        assert (labels or "") not in found[name], f"{line} stands there twice"
        found[name][labels or ""] = float(number)
    assert len(told) == len(set(told)) == 2 * len(found)
    return found


@pytest.fixture
def counters() -> Counters:
    """Counters of which each has counted."""
    made = Counters()
    made.count(DONE, "openai", 1_500_000)
    made.count(replace(DONE, ending="failed", code="attempt.error", calls=0), "openai", 0)
    return made


def test_every_metric_stands_in_the_text(home: Home, clock: FakeClock, counters: Counters) -> None:
    """In the format's own grammar, each with its help, its type and a number that is one."""
    found = read(render(snapshot(home, clock, counters)))

    assert list(found) == [metric.name for metric in METRICS]
    assert all(found.values())
    assert all(math.isfinite(number) for values in found.values() for number in values.values())


def test_the_metrics_say_what_there_is(home: Home, clock: FakeClock, counters: Counters) -> None:
    """In base units: seconds, bytes, units of money."""
    found = read(render(snapshot(home, clock, counters)))

    said = {f"{name}{{{labels}}}": n for name, of in found.items() for labels, n in of.items()}
    assert (
        said.items()
        >= {
            'memoryd_build_info{version="0.1.0"}': 1,
            'memoryd_jobs{kind="finalize",status="waiting"}': 1,
            'memoryd_jobs_waiting{reason="budget.spent"}': 1,
            'memoryd_oldest_job_age_seconds{status="pending"}': 5,
            'memoryd_oldest_job_age_seconds{status="running"}': 0,
            'memoryd_attempts_total{kind="finalize",ending="completed"}': 1,
            'memoryd_attempt_seconds_total{kind="finalize"}': 3,
            'memoryd_failures_total{code="attempt.error"}': 1,
            "memoryd_rescues_total{}": 4,
            "memoryd_unclaimed_seconds{}": 75,
            'memoryd_facts_total{decision="apply"}': 4,
            'memoryd_provider_tokens_total{provider="openai",direction="input"}': 900,
            'memoryd_provider_cost_total{provider="openai"}': 1.5,
            'memoryd_provider_breaker{provider="openai",state="closed"}': 1,
            'memoryd_provider_breaker{provider="anthropic",state="stopped"}': 1,
            'memoryd_provider_breaker{provider="anthropic",state="closed"}': 0,
            'memoryd_budget_used{provider="openai",unit="cost"}': 0.4,
            'memoryd_budget_limit{provider="openai",unit="cost"}': 2.5,
            'memoryd_workers{state="free"}': 1,
            'memoryd_duty_failures_total{duty="sweep"}': 1,
            'memoryd_last_look_timestamp_seconds{look="sweep"}': clock.now_ms() / 1000,
            'memoryd_daily_run_timestamp_seconds{name="tidy"}': clock.now_ms() / 1000,
            "memoryd_configuration_reloads_total{}": 3,
        }.items()
    )
    assert 'memoryd_last_look_timestamp_seconds{look="rescue"}' not in said


def test_what_stands_in_a_label_is_escaped(
    home: Home, clock: FakeClock, counters: Counters
) -> None:
    """Quotes, backslashes and new lines cannot end it, and no line begins in it."""
    odd = 'a"b\\c\nmemoryd_jobs 7'
    waits = [{"reason": odd, "jobs": 1}]

    found = read(render(snapshot(home, clock, counters, waits=waits)))

    assert found["memoryd_jobs_waiting"] == {'reason="a\\"b\\\\c\\nmemoryd_jobs 7"': 1}


def test_names_follow_the_rules_of_prometheus() -> None:
    """Base units, counters that say so, and labels that are none of the reserved ones."""
    for metric in METRICS:
        assert re.fullmatch(r"memoryd(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.type == "counter")
        assert not re.search(r"millis|_ms\b|minutes|hours|_kb|percent", metric.name)
        assert all(re.fullmatch(r"[a-z]+", label) for label in metric.labels)
        assert not {"session", "path", "project", "job", "le"} & set(metric.labels)
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_counters_only_grow_and_what_was_read_stands_still(counters: Counters) -> None:
    """A reading is a copy."""
    before = counters.read()
    counters.count(DONE, "anthropic", 0)
    after = counters.read()

    assert (before.notes, after.notes) == (2, 3)
    assert before.attempts["finalize", "completed"] == 1
    assert all(after.attempts[key] >= count for key, count in before.attempts.items())
    assert before.facts["apply"] == 4 and set(after.calls) == {"openai", "anthropic"}


def test_each_metric_is_documented_and_only_those() -> None:
    """docs/metrics.md has a line for each, with its type and its labels."""
    text = (ROOT / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(memoryd_\w+)` \| (\w+) \|([^|]*)\| [^|]+ \|$", text, re.MULTILINE)

    told = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert told == {metric.name: (metric.type, metric.labels) for metric in METRICS}
    assert set(re.findall(r"memoryd_\w+", text)) == set(told)
