"""Backfill: the archive of old sessions, a few jobs at a time and never in the way.

``plan`` makes the next few jobs: those first that their agent deletes soonest, then the newest.
``room`` says how many jobs may run in the home for one of them to be taken up (``Ledger.claim``).
``makes_way`` is asked after each slice. A person starts and pauses it (``Archive.say``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memoryd.jobs.archive import DAY_MS, HOUR_MS, home_made_ms
from memoryd.jobs.archived import Archived, Limits, stage
from memoryd.jobs.calls import millionths, never_fits
from memoryd.jobs.discovery import adapters
from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.workplace import Workplace
from memoryd.memory.config import Config, switched_off
from memoryd.memory.errors import TranscriptBusy, TranscriptError, TranscriptGone
from memoryd.memory.excluded_places import ExcludedPlaces
from memoryd.memory.home import Home
from memoryd.memory.log import logger
from memoryd.memory.projects import Resolver
from memoryd.sessions.retention import Retention, retention_of

if TYPE_CHECKING:
    from memoryd.sessions.adapter import Adapter

#: Jobs that wait in the ledger at most; the rest of the archive waits in ``rollout``.
WAITING_JOBS = 16
#: Sessions that their agent deletes within so many days go first.
AT_RISK_DAYS = 60
#: What a session may be still for where calls cost and ``max_age_days`` is 0.
COSTLY_MAX_AGE_DAYS = 90
#: Tokens that a call takes at least: with fewer left of the share, none is begun.
SMALLEST_CALL_TOKENS = 4_000
#: How backfill stands while none can be begun.
_NO_CALL = frozenset({"backfill.share-spent", "budget.too-small"})


@dataclass(frozen=True)
class Standing:
    """Whether the archive is being mined, and why not, as a code; ``since`` a person said so."""

    state: Literal["on", "off", "paused"]
    reason: str = ""
    since: int | None = None


def standing(
    ledger: Ledger, config: Config, environ: Mapping[str, str], *, costs: bool
) -> Standing:
    """How backfill stands; on with a reason: not before tomorrow. ``costs`` is the provider's."""
    if config.backfill.enabled is False:
        return Standing("off", "backfill.disabled")
    said, since = ledger.archive.state() or ("", None)
    if said == "paused":
        return Standing("paused", "backfill.paused", since)
    if config.backfill.enabled == "auto" and costs and said != "started":
        return Standing("off", "backfill.not-started")
    off = _switched_off(config, environ)
    if off:
        return Standing("off", off, since)
    if costs and not _share_left(ledger, config):
        small = never_fits(config.provider, SMALLEST_CALL_TOKENS, share=config.backfill.share)
        return Standing("on", "budget.too-small" if small else "backfill.share-spent", since)
    if ledger.archive.made_today() >= config.backfill.per_day:
        return Standing("on", "backfill.day-full", since)
    return Standing("on", "", since)


def _switched_off(config: Config, environ: Mapping[str, str]) -> str:
    """Under these a session would be passed over: it waits instead."""
    if switched_off(environ, "EXTRACTION"):
        return "extraction.switched-off"
    if not config.memory.auto_extract:
        return "extraction.off"
    return "curation.manual" if config.curation.mode == "manual" else ""


def _share_left(ledger: Ledger, config: Config) -> bool:
    """Whether a call of the backfill may be begun today."""
    spent, daily = ledger.budget.today(config.provider.name), config.provider
    money = millionths(daily.daily_cost)

    def left(bound: int, of_all: int, of_this: int) -> float:
        return config.backfill.share * (bound - (of_all - of_this)) - of_this

    return (
        left(daily.daily_calls, spent.calls, spent.backfill_calls) >= 1
        and left(daily.daily_tokens, spent.tokens, spent.backfill_tokens) >= SMALLEST_CALL_TOKENS
        and (not money or left(money, spent.cost, spent.backfill_cost) > 0)
    )


# -- never in the way ----------------------------------------------------------------------------


def _standing_at(place: Workplace) -> Standing:
    costs = place.calls.provider.costs
    return standing(place.ledger, place.config, place.environ, costs=costs)


def room(place: Workplace) -> int:
    """How many jobs may run for a backfill to be taken up.

    Never so many that it takes the last free worker, or the last call that may be made at once.
    """
    now = _standing_at(place)
    if now.state != "on" or now.reason in _NO_CALL:
        return 0
    at_once = place.config.queue.workers
    if place.calls.provider.costs:
        at_once = min(at_once, place.config.provider.max_concurrency)
    return max(1, at_once - 1)


def makes_way(place: Workplace, job: Job) -> bool:
    """Whether a running ``job`` is to be given back after its slice: it is a backfill, and it was
    paused or something better waits for a worker."""
    if job.kind != "backfill":
        return False
    paused = _standing_at(place).state != "on"
    return paused or place.ledger.better_waits(job, place.config.queue.workers)


# -- planning ------------------------------------------------------------------------------------


def plan(place: Workplace) -> int:
    """Make the next few jobs; for how many sessions, those that need none included.

    None while backfill is off, or the day has had its own.
    """
    now = _standing_at(place)
    left = WAITING_JOBS - place.ledger.archive.open_jobs()
    if now.state != "on" or now.reason or left <= 0:
        return 0
    made = 0
    for row in _upcoming(place):
        made += _make(place, row, turn=made)
        if made >= left:
            break
    if made:
        logger().info("backfill.made", jobs=made)
    return made


def _upcoming(place: Workplace) -> Iterator[Archived]:
    """The sessions that wait to be read, in the order of their turns."""
    rows = place.ledger.archive.rows(home_made_ms(place.home), unmade=True)
    if not rows:
        return
    costs = place.calls.provider.costs
    limits = limits_of(place.home, place.config, place.clock.now_ms(), costs=costs)
    # Asking about a directory is the dear part: only those are asked about whose turn it is.
    unasked = replace(limits, excluded=lambda cwd: False)
    waiting = [row for row in rows if stage(row, unasked) == "waiting"]
    kept = retentions(waiting, place.environ)
    for row in in_order(waiting, kept, limits.now_ms):
        if not limits.excluded(row.cwd):
            yield row


def limits_of(home: Home, config: Config, now_ms: int, *, costs: bool) -> Limits:
    """Which sessions may be read now, as the configuration says."""
    days = config.backfill.max_age_days or (COSTLY_MAX_AGE_DAYS if costs else 0)
    places = ExcludedPlaces(Resolver(home, config.projects.worktrees), config)
    idle_ms = int(config.backfill.min_idle_hours * HOUR_MS)
    agents = frozenset(adapter.name for adapter in adapters(config))
    return Limits(agents, now_ms, idle_ms, days * DAY_MS, partial(_left, places))


def retentions(rows: Iterable[Archived], environ: Mapping[str, str]) -> dict[str, Retention]:
    """How long the agents of ``rows`` keep their sessions, of those that delete any."""
    found = {agent: retention_of(agent, environ) for agent in {row.agent for row in rows}}
    return {agent: each for agent, each in found.items() if each is not None}


def in_order(
    rows: Iterable[Archived], kept: Mapping[str, Retention], now_ms: int
) -> list[Archived]:
    """Those first that their agent deletes soon, the soonest first; then the newest first."""
    horizon = now_ms + AT_RISK_DAYS * DAY_MS

    def turn(row: Archived) -> tuple[int, str]:
        known = kept.get(row.agent)
        deleted_at = known.deletes_at(row.active_at) if known else horizon
        return (deleted_at if deleted_at < horizon else NEVER - row.active_at), row.name

    return sorted(rows, key=turn)


#: Beyond every wall time in milliseconds.
NEVER = 1 << 62


def _left(places: ExcludedPlaces, cwd: str) -> bool:
    """Whether nothing said in ``cwd`` may be read now: excluded, switched off, unusable."""
    return bool(cwd) and (places(cwd) or not places.settings(cwd).memory.auto_extract)


def _make(place: Workplace, row: Archived, turn: int) -> int:
    """Make the job of one session, or see that none is needed; 0 where neither can be said yet."""
    from memoryd.sessions.agents import adapter_for

    adapter = adapter_for(row.agent)
    cutoff = _cutoff(place, adapter, row)
    if cutoff is None:
        return 0
    if row.mined_fingerprint is not None and _stands_as_read(place, adapter, row, cutoff):
        return int(place.ledger.archive.still_mined(row))
    per_day = place.config.backfill.per_day
    made = place.ledger.enqueue_backfill(row, cutoff=cutoff, per_day=per_day, turn=turn)
    return int(made is not None)


def _cutoff(place: Workplace, adapter: Adapter, row: Archived) -> int | None:
    """Where the session ends now; None where the next discovery has to look at it first."""
    path = Path(row.transcript)
    still_since = place.clock.now_ms() - int(place.config.backfill.min_idle_hours * HOUR_MS)
    look = adapter.look(path, row.session)
    if look is None or look.active_ms > still_since:
        return None
    try:
        return adapter.end(path, row.session)
    except (TranscriptGone, TranscriptBusy):
        return None
    except TranscriptError:
        return row.at_most  # the job says what is wrong with it, and is set aside


def _stands_as_read(place: Workplace, adapter: Adapter, row: Archived, cutoff: int) -> bool:
    """Whether a session that was mined only looks different: copied, touched, compressed."""
    read = place.history.progress(row.agent, row.session)
    if read is None or read.position != cutoff:
        return False
    try:
        with adapter.open(Path(row.transcript), row.session) as opened:
            return opened.holds(read.position, read.head, read.tail)
    except (TranscriptError, OSError):
        return False
