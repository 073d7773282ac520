"""What backfill has done and would do: counts, the next sessions, their price, and who is late.

Estimates are from the size of a transcript alone: nothing is read for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from memoryd.jobs import backfill
from memoryd.jobs.archive import DAY_MS, home_made_ms
from memoryd.jobs.archived import Archived, Limits, Stage, counts, row_of, stage
from memoryd.jobs.backfill import Standing
from memoryd.jobs.budget import Spent
from memoryd.jobs.calls import millionths, price
from memoryd.jobs.discovery import survey
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import local_date, next_local_midnight_ms
from memoryd.memory.config import Config
from memoryd.memory.home import Home
from memoryd.memory.prompt import CHUNK_CHARACTERS, SYSTEM
from memoryd.sessions.retention import Retention

#: Of a transcript's bytes, how many are words that are kept: most are tools' output.
KEPT_SHARE = 0.1
#: What a compressed transcript grows to.
COMPRESSED = 6
#: Bytes of a session in a database, whose size nobody knows without reading it.
UNKNOWN_BYTES = 120_000
CHARACTERS_A_TOKEN = 4
#: Tokens of an answer, most of which find nothing; and of the notes that are shown with a chunk.
ANSWER_TOKENS = 150
NOTES_TOKENS = 500


@dataclass(frozen=True)
class Price:
    """Sessions, and what reading them would take. ``cost`` is in millionths of the currency."""

    sessions: int = 0
    calls: int = 0
    tokens: int = 0
    cost: int = 0

    def __add__(self, other: Price) -> Price:
        """Both together."""
        return Price(
            self.sessions + other.sessions,
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.cost + other.cost,
        )


@dataclass(frozen=True)
class Turn:
    """A session that waits, what it would take, and in how many days it is its turn.

    ``day`` is 0 for today, ``turn_at`` the end of that day, both None for never; ``deletes_at`` is
    when its agent deletes it, None for never. Wall milliseconds.
    """

    row: Archived
    price: Price
    day: int | None
    turn_at: int | None
    deletes_at: int | None

    @property
    def comes_late(self) -> bool:
        """Whether its agent deletes it before its turn; what is read today is not late."""
        if self.deletes_at is None or self.day == 0:
            return False
        return self.turn_at is None or self.deletes_at < self.turn_at


@dataclass(frozen=True)
class AtRisk:
    """Sessions that their agent deletes before they are read, as things stand."""

    agent: str
    sessions: int
    first_at: int
    keeps_days: float
    setting: str


def deletes_when(first_at: int, now_ms: int) -> str:
    """When the first session goes, to a person: an agent that is late may delete any time."""
    if first_at <= now_ms:
        return "any day now"
    return local_date(first_at)


@dataclass(frozen=True)
class Forecast:
    """How backfill stands, and what it would do next."""

    standing: Standing
    #: By agent and stage.
    counts: dict[str, dict[Stage, int]]
    #: Root sessions that are the hooks' and the sweep's, by agent.
    fresh: dict[str, int]
    turns: list[Turn]
    aside: list[Archived]
    #: When the last one is read at this pace; None where nothing waits, or never.
    through_at: int | None
    at_risk: list[AtRisk]


@dataclass(frozen=True)
class Asked:
    """Whose archive is looked at: the provider ``costs`` or not."""

    home: Home
    config: Config
    environ: Mapping[str, str]
    now_ms: int

    @property
    def costs(self) -> bool:
        """Whether the calls of the configured provider cost."""
        return self.config.provider.name != "rules"

    @property
    def limits(self) -> Limits:
        """Which sessions may be read."""
        return backfill.limits_of(self.home, self.config, self.now_ms, costs=self.costs)


def forecast(home: Home, ledger: Ledger, config: Config, environ: Mapping[str, str]) -> Forecast:
    """What the ledger's archive says; changes nothing, and looks at no transcript."""
    asked = Asked(home, config, environ, ledger.clock.now_ms())
    now = backfill.standing(ledger, config, environ, costs=asked.costs)
    made_ms = home_made_ms(home)
    rows = ledger.archive.rows(made_ms)
    pace = Pace.of(config, ledger.budget.today(config.provider.name), ledger.archive.made_today())
    fresh = ledger.archive.fresh(made_ms)
    return _forecast(asked, now, rows, fresh, pace)


def first_forecast(home: Home, config: Config, environ: Mapping[str, str], now_ms: int) -> Forecast:
    """The same for a home that is not made yet: all that is on the disk is its archive."""
    asked = Asked(home, config, environ, now_ms)
    by_itself = config.backfill.enabled is True or not asked.costs
    reason = "backfill.not-started" if config.backfill.enabled else "backfill.disabled"
    state = Standing("on") if by_itself and config.backfill.enabled else Standing("off", reason)
    rows = [row_of(seen) for seen in survey(home, config, environ) if seen.kind == "root"]
    return _forecast(asked, state, rows, {}, Pace.of(config, Spent(), 0))


def _forecast(
    asked: Asked, now: Standing, rows: Sequence[Archived], fresh: dict[str, int], pace: Pace
) -> Forecast:
    limits = asked.limits
    waiting = [row for row in rows if stage(row, limits) == "waiting"]
    kept = backfill.retentions(waiting, asked.environ)
    goes_on = now.state == "on"
    turns = list(_turns(backfill.in_order(waiting, kept, asked.now_ms), kept, asked, pace, goes_on))
    return Forecast(
        standing=now,
        counts=counts(rows, limits),
        fresh=fresh,
        turns=turns,
        aside=[row for row in rows if stage(row, limits) == "set-aside"],
        through_at=turns[-1].turn_at if turns else None,
        at_risk=_at_risk(turns, kept),
    )


@dataclass(frozen=True)
class Pace:
    """What a day can take, and what of today's is spent already; a bound of ``inf`` is none."""

    sessions: float
    calls: float
    tokens: float
    cost: float
    spent: Price

    @classmethod
    def of(cls, config: Config, today: Spent, made_today: int) -> Pace:
        """As the configuration says; calls that cost nothing have no bound."""
        provider, share = config.provider, config.backfill.share
        spent = Price(made_today, today.backfill_calls, today.backfill_tokens, today.backfill_cost)
        if provider.name == "rules":
            return cls(config.backfill.per_day, inf, inf, inf, spent)
        cost = share * millionths(provider.daily_cost) if provider.daily_cost else inf
        calls, tokens = share * provider.daily_calls, share * provider.daily_tokens
        return cls(config.backfill.per_day, calls, tokens, cost, spent)

    def day(self, before: Price) -> int | None:
        """In how many days it is the turn of who has ``before`` before them; None for never."""
        bounds = (self.sessions, self.calls, self.tokens, self.cost)
        if min(bounds) <= 0:
            return None
        used = self.spent + before
        taken = (used.sessions, used.calls, used.tokens, used.cost)
        return int(max(have / bound for have, bound in zip(taken, bounds, strict=True)))


def _turns(
    rows: Iterable[Archived],
    kept: Mapping[str, Retention],
    asked: Asked,
    pace: Pace,
    goes_on: bool,
) -> Iterable[Turn]:
    before = Price()
    tomorrow = next_local_midnight_ms(asked.now_ms)
    for row in rows:
        day = pace.day(before) if goes_on else None
        turn_at = None if day is None else tomorrow + day * DAY_MS - 1
        known = kept.get(row.agent)
        takes = price_of(row, asked.config) if asked.costs else Price(sessions=1)
        yield Turn(row, takes, day, turn_at, known.deletes_at(row.active_at) if known else None)
        before += takes


def price_of(row: Archived, config: Config) -> Price:
    """What reading a session would take, by the size of its transcript."""
    size = row.size * (COMPRESSED if Path(row.transcript).suffix == ".zst" else 1)
    words = (size or UNKNOWN_BYTES) * KEPT_SHARE
    calls = max(1, -int(-words // CHUNK_CHARACTERS))
    read = int(words + calls * len(SYSTEM)) // CHARACTERS_A_TOKEN + calls * NOTES_TOKENS
    written = calls * ANSWER_TOKENS
    return Price(1, calls, read + written, price(config.provider, read, written))


def total(turns: Iterable[Turn]) -> Price:
    """What all of them would take."""
    return sum((each.price for each in turns), Price())


def projects_of(turns: Iterable[Turn]) -> dict[str, int]:
    """How many of the sessions began in each project, by its key, the most first."""
    return dict(Counter(each.row.project or "" for each in turns).most_common())


def _at_risk(turns: Sequence[Turn], kept: Mapping[str, Retention]) -> list[AtRisk]:
    late: dict[str, list[int]] = {}
    for each in turns:
        if each.comes_late and each.deletes_at is not None:
            late.setdefault(each.row.agent, []).append(each.deletes_at)
    return [
        AtRisk(agent, len(times), min(times), kept[agent].days, kept[agent].setting)
        for agent, times in sorted(late.items())
    ]
