"""What ``status`` says of a home, from its files alone: with or without a daemon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.jobs.archive import Told, home_made_ms
from memoryd.jobs.archived import Stage, counts
from memoryd.jobs.breaker import Breaker
from memoryd.jobs.consolidations import Consolidation
from memoryd.jobs.daily_runs import DailyRun
from memoryd.jobs.figures import Done, Figures, Oldest, Spending, Waits, in_all
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import local_date
from memoryd.memory.config import Config, switched_off
from memoryd.memory.disk import Disk, disk_use
from memoryd.memory.holders import Holder, holders
from memoryd.memory.home import Home

#: Ends that the sweep alone has found before it is said that hooks are not heard.
UNHEARD_ENDS = 3

_SWITCHES = ("", "EXTRACTION", "CONSOLIDATION", "RECALL", "JUDGE")


@dataclass(frozen=True)
class Brief:
    """How backfill stands, and how far the sessions of the archive have come.

    ``mined`` are read; ``waiting`` are to be read or just are; of the others ``STAGES`` says why
    they are not.
    """

    state: str
    reason: str
    waiting: int
    mined: int
    set_aside: int
    young: int
    old: int
    excluded: int
    gone: int


@dataclass(frozen=True)
class Report:
    """One look at the queue. Times are wall milliseconds."""

    home: str
    counts: dict[str, int]
    waiting: dict[str, int]
    #: Extracts that came too soon, over all sessions: their words waited for the next job.
    throttled: int
    #: Candidates that wait for a person's word.
    in_review: int
    oldest_pending_at: int | None
    next_due_at: int | None
    inbox: int
    bad_envelopes: int
    provider: str
    calls_today: int
    tokens_today: int
    daily_calls: int
    daily_tokens: int
    breaker: Breaker | None
    #: The stores that were ever looked at, the longest ago consolidated first.
    consolidations: list[Consolidation]
    switches: tuple[str, ...]
    #: Who told of the ends of sessions in the last seven days, hooks and the sweep apart.
    told: list[Told]
    #: Agents whose hooks are installed and of whom only the sweep has heard in that time.
    unheard: list[str]
    backfill: Brief
    #: Jobs by kind and the status a person sees.
    kinds: dict[str, dict[str, int]]
    #: Why jobs wait and until when, the most frequent reason first.
    waits: list[Waits]
    #: The oldest pending, waiting and running job.
    oldest: list[Oldest]
    #: What was done in the last hour and in the last day.
    done: list[Done]
    #: What was booked today with each provider; ``daily_cost`` bounds the configured one's.
    spending: list[Spending]
    daily_cost: float
    #: Every provider that is not simply asked.
    breakers: list[Breaker]
    #: The locks of the home that are held, the longest held first.
    locks: list[Holder]
    disk: Disk
    #: What runs once a day, and when it last did.
    daily_runs: list[DailyRun]


def report(home: Home, ledger: Ledger, config: Config, environ: Mapping[str, str]) -> Report:
    """Look at the ledger and the inbox."""
    calls, tokens = ledger.budget.spent(config.provider.name)
    figures, now = Figures(ledger.db), ledger.clock.now_ms()
    kinds = figures.by_kind()
    return Report(
        home=str(home.root),
        counts=in_all(kinds.values()),
        waiting=ledger.records.waiting(),
        throttled=ledger.records.throttled(),
        in_review=ledger.records.count_in_review(),
        oldest_pending_at=ledger.records.oldest_pending(),
        next_due_at=ledger.next_due_ms(),
        inbox=_count(home.inbox),
        bad_envelopes=_count(home.inbox / "bad"),
        provider=config.provider.name,
        calls_today=calls,
        tokens_today=tokens,
        daily_calls=config.provider.daily_calls,
        daily_tokens=config.provider.daily_tokens,
        breaker=ledger.breakers.of(config.provider.name),
        consolidations=ledger.consolidations.all(),
        switches=switches_on(environ),
        told=(told := ledger.archive.told()),
        unheard=unheard(told, environ),
        backfill=_brief(home, ledger, config, environ),
        kinds=kinds,
        waits=figures.waits(),
        oldest=figures.oldest(),
        done=[figures.done(now, hours) for hours in (1, 24)],
        spending=figures.spending(local_date(now)),
        daily_cost=config.provider.daily_cost,
        breakers=figures.breakers(),
        locks=holders(home),
        disk=disk_use(home),
        daily_runs=ledger.daily_runs.all(),
    )


def unheard(told: Iterable[Told], environ: Mapping[str, str]) -> list[str]:
    """Agents that have our hooks in their settings, and whose ends the sweep alone has found."""
    quiet = {each.agent for each in told if not each.heard and each.sweep >= UNHEARD_ENDS}
    if not quiet:
        return []
    from memoryd.sessions.integration.integrating import hooked

    return sorted(quiet & hooked(environ))


def _brief(home: Home, ledger: Ledger, config: Config, environ: Mapping[str, str]) -> Brief:
    from memoryd.jobs.backfill import limits_of, standing

    costs = config.provider.name != "rules"
    now = standing(ledger, config, environ, costs=costs)
    limits = limits_of(home, config, ledger.clock.now_ms(), costs=costs)
    come: Counter[Stage] = Counter()
    for of_agent in counts(ledger.archive.rows(home_made_ms(home)), limits).values():
        come.update(of_agent)
    return Brief(
        now.state,
        now.reason,
        waiting=come["waiting"] + come["queued"],
        mined=come["mined"],
        set_aside=come["set-aside"],
        young=come["young"],
        old=come["old"],
        excluded=come["excluded"],
        gone=come["gone"],
    )


def switches_on(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The kill switches that are set in ``environ``, by name."""
    on = []
    for switch in _SWITCHES:
        name = "MEMORYD_DISABLE" + (f"_{switch}" if switch else "")
        if switched_off({name: environ.get(name, "")}, switch or "EXTRACTION"):
            on.append(name)
    return tuple(on)


def _count(folder: Path) -> int:
    try:
        return sum(1 for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return 0
