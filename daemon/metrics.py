"""The metrics of a running daemon, in the text that Prometheus reads.

``METRICS`` is the whole list; docs/metrics.md has a line for each. Counters count from the start of
the process; all else is looked up when it is asked for. Labels are names of ours and codes: never a
session, a path or a project.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text, 0.0.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memoryd.daemon.counters import Counted

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_MILLION = 1_000_000


@dataclass(frozen=True)
class Metric:
    """One metric: its name, how it moves, the names of its labels, and what it says."""

    name: str
    type: Literal["counter", "gauge"]
    labels: tuple[str, ...]
    help: str


METRICS: tuple[Metric, ...] = (
    Metric("memoryd_build_info", "gauge", ("version",), "Always 1; the version that runs"),
    Metric("memoryd_process_start_time_seconds", "gauge", (), "When the daemon started"),
    Metric("memoryd_jobs", "gauge", ("kind", "status"), "Jobs in the ledger"),
    Metric("memoryd_jobs_ready", "gauge", (), "Jobs that are due and not taken, backfill aside"),
    Metric("memoryd_unclaimed_seconds", "gauge", (), "How long a worker could have taken a job"),
    Metric("memoryd_jobs_waiting", "gauge", ("reason",), "Jobs that wait, by why"),
    Metric(
        "memoryd_oldest_job_age_seconds", "gauge", ("status",), "Age of the oldest job, 0 for none"
    ),
    Metric("memoryd_attempts_total", "counter", ("kind", "ending"), "Attempts that ended"),
    Metric("memoryd_attempt_seconds_total", "counter", ("kind",), "Time that attempts took"),
    Metric("memoryd_failures_total", "counter", ("code",), "Attempts that failed, by why"),
    Metric("memoryd_rescues_total", "counter", (), "Attempts that were given up for dead"),
    Metric("memoryd_messages_total", "counter", (), "Messages that were distilled"),
    Metric("memoryd_facts_total", "counter", ("decision",), "Facts, by what the policy decided"),
    Metric("memoryd_notes_written_total", "counter", (), "Files that facts changed"),
    Metric("memoryd_candidates_in_review", "gauge", (), "Candidates that wait for a person"),
    Metric("memoryd_provider_calls_total", "counter", ("provider",), "Calls that were answered"),
    Metric("memoryd_provider_tokens_total", "counter", ("provider", "direction"), "Tokens of them"),
    Metric("memoryd_provider_cost_total", "counter", ("provider",), "Money, in its own currency"),
    Metric("memoryd_provider_breaker", "gauge", ("provider", "state"), "1 for the state it is in"),
    Metric("memoryd_budget_used", "gauge", ("provider", "unit"), "Booked today"),
    Metric("memoryd_budget_limit", "gauge", ("provider", "unit"), "Bound of a day, if there is"),
    Metric("memoryd_inbox_envelopes", "gauge", ("state",), "Envelopes in the inbox"),
    Metric("memoryd_leases_held", "gauge", (), "Attempts alive in this process"),
    Metric("memoryd_workers", "gauge", ("state",), "Workers, busy or free"),
    Metric("memoryd_duty_runs_total", "counter", ("duty",), "Times a duty of the clock was done"),
    Metric("memoryd_duty_failures_total", "counter", ("duty",), "Times a duty failed"),
    Metric("memoryd_last_look_timestamp_seconds", "gauge", ("look",), "When a look was last made"),
    Metric("memoryd_daily_run_timestamp_seconds", "gauge", ("name",), "When daily work last ran"),
    Metric("memoryd_locks_held", "gauge", (), "Locks of the home that are held, its own included"),
    Metric("memoryd_store_lock_age_seconds", "gauge", (), "Of the store held longest, 0 for none"),
    Metric("memoryd_disk_bytes", "gauge", ("part",), "What the home takes of the disk"),
    Metric("memoryd_disk_free_bytes", "gauge", (), "What is free on its disk"),
    Metric("memoryd_configuration_reloads_total", "counter", (), "Times it was read again"),
)

#: One value with the values of its metric's labels.
_Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True)
class Snapshot:
    """What the metrics are made of: the report with the daemon's state, and the counters."""

    report: Mapping[str, Any]
    counted: Counted
    now_ms: int
    ready: int
    #: Since when a free worker could have taken a job (wall ms), None where there is none.
    unclaimed_since: int | None
    rescued: int
    #: Duty -> (times it ran, times it failed).
    duties: Mapping[str, tuple[int, int]]


def render(snapshot: Snapshot) -> str:
    """All metrics as text. Every metric has its ``HELP`` and ``TYPE``, also one without a value."""
    samples = _samples(snapshot)
    return "".join(line for metric in METRICS for line in _lines(metric, samples[metric.name]))


def _lines(metric: Metric, samples: Iterable[_Sample]) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.help, quotes=False)}\n"
    yield f"# TYPE {metric.name} {metric.type}\n"
    for values, number in samples:
        pairs = zip(metric.labels, values, strict=True)
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
        yield f"{metric.name}{f'{{{labels}}}' if labels else ''} {_number(number)}\n"


def _escaped(text: str, *, quotes: bool = True) -> str:
    """As the format wants a label's value, or a help: backslash, new line and, there, quotes."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def _number(number: float) -> str:
    return str(number) if isinstance(number, int) else repr(float(number))


def _samples(of: Snapshot) -> dict[str, list[_Sample]]:
    """The values of every metric, by its name without the prefix all share."""
    found = _of_jobs(of) | _of_work(of.counted) | _of_providers(of) | _of_daemon(of) | _of_disk(of)
    return {f"memoryd_{name}": samples for name, samples in found.items()}


def _one(number: float) -> list[_Sample]:
    return [((), number)]


def _of_jobs(of: Snapshot) -> dict[str, list[_Sample]]:
    report = of.report
    ages = dict.fromkeys(("pending", "waiting", "running"), 0.0)
    ages |= {each["status"]: _seconds_since(of, each["since"]) for each in report["oldest"]}
    return {
        "jobs": [
            ((kind, status), count)
            for kind, counts in sorted(report["kinds"].items())
            for status, count in sorted(counts.items())
        ],
        "jobs_ready": _one(of.ready),
        "unclaimed_seconds": _one(
            0.0 if of.unclaimed_since is None else _seconds_since(of, of.unclaimed_since)
        ),
        "jobs_waiting": [((each["reason"],), each["jobs"]) for each in report["waits"]],
        "oldest_job_age_seconds": [((status,), seconds) for status, seconds in ages.items()],
        "candidates_in_review": _one(report["in_review"]),
        "inbox_envelopes": [
            (("waiting",), report["inbox"]),
            (("bad",), report["bad_envelopes"]),
        ],
        "rescues_total": _one(of.rescued),
    }


def _of_work(counted: Counted) -> dict[str, list[_Sample]]:
    return {
        "attempts_total": sorted(counted.attempts.items()),
        "attempt_seconds_total": _single(counted.seconds),
        "failures_total": _single(counted.failures),
        "messages_total": _one(counted.messages),
        "facts_total": _single(counted.facts),
        "notes_written_total": _one(counted.notes),
        "provider_calls_total": _single(counted.calls),
        "provider_tokens_total": sorted(counted.tokens.items()),
        "provider_cost_total": _single(counted.cost),
    }


def _single(values: Mapping[str, float]) -> list[_Sample]:
    return [((name,), number) for name, number in sorted(values.items())]


def _of_providers(of: Snapshot) -> dict[str, list[_Sample]]:
    report, name = of.report, of.report["provider"]
    states = {name: "closed"} | {each["provider"]: each["state"] for each in report["breakers"]}
    used = {(name, unit): 0.0 for unit in ("calls", "tokens", "cost")}
    for each in report["spending"]:
        used[each["provider"], "calls"] = each["calls"]
        used[each["provider"], "tokens"] = each["tokens"]
        used[each["provider"], "cost"] = each["cost"] / _MILLION
    limits = {unit: report[f"daily_{unit}"] for unit in ("calls", "tokens", "cost")}
    return {
        "provider_breaker": [
            ((provider, state), int(state == now))
            for provider, now in sorted(states.items())
            for state in ("closed", "open", "stopped")
        ],
        "budget_used": sorted(used.items()),
        # No money is no bound; nor has what costs nothing one.
        "budget_limit": [
            ((name, unit), limit)
            for unit, limit in limits.items()
            if name != "rules" and (limit or unit != "cost")
        ],
    }


def _of_daemon(of: Snapshot) -> dict[str, list[_Sample]]:
    daemon = of.report["daemon"]
    looks = {look: daemon[f"last_{look}_at"] for look in ("sweep", "rescue", "discovery")}
    daily = {each["name"]: each["at"] for each in of.report["daily_runs"]}
    return {
        "build_info": [((daemon["version"],), 1)],
        "process_start_time_seconds": _one(daemon["started_at"] / 1000),
        "leases_held": _one(len(daemon["working"])),
        "workers": [(("busy",), daemon["busy"]), (("free",), daemon["free"])],
        "duty_runs_total": [((duty,), runs) for duty, (runs, _) in sorted(of.duties.items())],
        "duty_failures_total": [((duty,), bad) for duty, (_, bad) in sorted(of.duties.items())],
        "last_look_timestamp_seconds": [
            ((look,), at / 1000) for look, at in looks.items() if at is not None
        ],
        "daily_run_timestamp_seconds": [((name,), at / 1000) for name, at in sorted(daily.items())],
        "configuration_reloads_total": _one(daemon["reloads"]),
    }


def _of_disk(of: Snapshot) -> dict[str, list[_Sample]]:
    disk, locks = of.report["disk"], of.report["locks"]
    ages = [_seconds_since(of, each["since"]) for each in locks if each["lock"] != "daemon"]
    return {
        "locks_held": _one(len(locks)),
        "store_lock_age_seconds": _one(max(ages, default=0.0)),
        "disk_bytes": [((part["what"],), part["size"]) for part in disk["parts"]],
        "disk_free_bytes": _one(disk["free"]),
    }


def _seconds_since(of: Snapshot, then_ms: int) -> float:
    """Never less than 0: a clock may have been set back."""
    return max(0.0, (of.now_ms - then_ms) / 1000)
