"""Asking the provider: breaker, budget, concurrency, and what each refusal means for the job."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from memoryd.jobs.breaker import Breaker
from memoryd.jobs.control import Snooze, safe_detail
from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.retry import (
    BUSY_FIRST_SECONDS,
    BUSY_MAX_SECONDS,
    UNAVAILABLE_FIRST_SECONDS,
    UNAVAILABLE_MAX_SECONDS,
    doubling,
)
from memoryd.memory import seams
from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import (
    LeaseLost,
    ProviderError,
    ProviderLimited,
    ProviderPermanent,
    ProviderUnavailable,
)
from memoryd.memory.providers.base import CallOff, Provider, Reply, Request
from memoryd.memory.text import counted

#: How long a job waits between two looks at a provider that a person has to mend.
STOPPED_WAIT_MS = 3600 * 1000
#: How long a limit lasts that the provider gave no time for.
LIMITED_WAIT_MS = 3600 * 1000
#: A call is not begun with less time than this, or than it may take where that is less.
LEAST_CALL_SECONDS = 60.0
#: Characters of one token, on the low side, so that a reservation is never too small.
CHARACTERS_A_TOKEN = 3


class Calls:
    """All calls to one provider; share one object among the workers of a process."""

    def __init__(
        self,
        ledger: Ledger,
        provider: Provider,
        settings: ProviderSettings,
        *,
        share: float = 0.5,
    ) -> None:
        self.ledger = ledger
        self.provider = provider
        self.settings = settings
        #: Of what the day's other work leaves, how much a backfill may take.
        self.share = share
        self._slots = threading.BoundedSemaphore(settings.max_concurrency)
        #: The attempts alive for which something was sent.
        self._asked: set[tuple[str, int]] = set()
        #: What stops the call of each attempt alive.
        self._offs: dict[tuple[str, int], CallOff] = {}

    def ask(
        self,
        job: Job | None,
        request: Request,
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> Reply:
        """One answer. The call is booked before it is sent and settled after.

        It is counted in the log of the attempt at ``job``; None for a call that no job makes. It
        ends within ``seconds_left()``, whatever ``request`` allows. Raises ``Snooze`` when the
        provider is away, limited, stopped, the budget is spent or no time is left for a call,
        ``LeaseLost`` when the attempt was called off before it answered, and ``BadAnswer`` when it
        answered with nothing usable.
        """
        if not self.provider.costs:
            return self.provider.complete(request)
        with self._slot(job, request, seconds_left) as bounded:
            probed = self._pass_breaker()
            if job is not None:
                self._asked.add((job.id, job.attempt))
            try:
                reply = self._send(bounded, job is not None and job.kind == "backfill")
            except (ProviderUnavailable, ProviderLimited) as error:
                raise Snooze(self._trip(job, error), error.code, str(error)) from error
            except ProviderPermanent as error:
                detail = safe_detail(str(error))
                self.ledger.breakers.stop(self.provider.name, error.code, detail)
                raise self._stopped(detail) from error
            except ProviderError:
                self._close(probed)  # a bad answer is an answer: it is not away
                raise
        self._close(probed)
        if job is not None:
            self.ledger.count_call(job, reply.input_tokens, reply.output_tokens)
        return reply

    def begun(self, job: Job) -> CallOff:
        """The attempt begins. What comes back stops its calls, the one being made and any later.

        What was sent then stays booked, and says nothing about the provider.
        """
        return self._offs.setdefault((job.id, job.attempt), CallOff())

    def asked(self, job: Job) -> bool:
        """Whether this attempt sent anything: if it ends with nothing recorded, it was in vain."""
        return (job.id, job.attempt) in self._asked

    def ended(self, job: Job) -> None:
        """The attempt is over."""
        self._asked.discard((job.id, job.attempt))
        self._offs.pop((job.id, job.attempt), None)

    def look(self) -> None:
        """Raise ``Snooze`` where asking is known to be in vain: before any work is done for it."""
        breaker = self.ledger.breakers.of(self.provider.name) if self.provider.costs else None
        if breaker is not None and breaker.state == "stopped":
            raise self._stopped(breaker.detail)
        if breaker is not None and not self.ledger.breakers.is_time(breaker):
            raise Snooze(breaker.until, breaker.reason, breaker.detail)

    @contextmanager
    def _slot(
        self, job: Job | None, request: Request, seconds_left: Callable[[], float]
    ) -> Iterator[Request]:
        """One of the calls that may be made at once; ``request`` as it fits into the time left.

        Raises ``Snooze`` where none gets free in time: waiting must not use up the slice;
        ``LeaseLost`` where nobody wants it by then.
        """
        off = self._offs.get((job.id, job.attempt), request.off) if job else request.off
        spare = max(0.0, seconds_left() - request.timeout_seconds)
        if not self._slots.acquire(timeout=min(spare, threading.TIMEOUT_MAX)):
            raise self._busy(job, "all calls that may be made at once are being made")
        try:
            if off.called:
                raise _lost()
            if not has_time(request, seconds_left()):
                raise self._busy(job, "no time was left for a call in this slice")
            limit = min(request.timeout_seconds, seconds_left())
            yield replace(request, timeout_seconds=limit, off=off)
        finally:
            self._slots.release()

    def _busy(self, job: Job | None, detail: str) -> Snooze:
        wait = doubling(BUSY_FIRST_SECONDS, BUSY_MAX_SECONDS, job.snoozes if job else 0)
        return Snooze(self.ledger.clock.now_ms() + wait * 1000, "provider.busy", detail)

    def _trip(self, job: Job | None, error: ProviderUnavailable | ProviderLimited) -> int:
        """Hold the whole queue; when ``job`` itself may go on, in wall ms.

        That is after all that wait, and later each time: it may be its own question that gets no
        answer, and those of the others would.
        """
        now, lifts = self.ledger.clock.now_ms(), 0
        if isinstance(error, ProviderLimited):
            lifts = error.until_ms or now + LIMITED_WAIT_MS
        detail = safe_detail(error.message)
        seams.before("breaker.tripped")
        until = self.ledger.breakers.trip(self.provider.name, error.code, detail, lifts)
        seams.reach("breaker.tripped")
        times = job.snoozes if job else 0
        own = doubling(UNAVAILABLE_FIRST_SECONDS, UNAVAILABLE_MAX_SECONDS, times)
        return max(until, now + own * 1000) + 1

    def _send(self, request: Request, backfill: bool) -> Reply:
        """Book the call, send it, and book what it really took. Raises ``Snooze``, ``LeaseLost``.

        What was sent and brought no answer keeps its reservation, since nobody says what it took;
        only where nothing can have been spent it costs nothing.
        """
        seams.before("call.reserved")
        booked = self._book(request, backfill)
        seams.reach("call.reserved")
        spent, paid = booked.tokens, booked.cost
        try:
            seams.before("call.answered")
            reply = self.provider.complete(request)
            seams.reach("call.answered")
            spent = reply.input_tokens + reply.output_tokens
            paid = price(self.settings, reply.input_tokens, reply.output_tokens)
        except ProviderError as error:
            if error.free:
                spent = paid = 0
            if request.off.called:
                raise _lost() from error
            raise
        finally:
            seams.before("call.settled")
            self.ledger.budget.settle(
                self.provider.name,
                booked.tokens,
                spent,
                booked.day,
                cost=booked.cost,
                paid=paid,
                backfill=backfill,
            )
            seams.reach("call.settled")
        return reply

    def _close(self, probed: Breaker | None) -> None:
        """The provider answers: where a breaker was open, everybody may ask again."""
        if probed is not None:
            seams.before("breaker.resumed")
            self.ledger.breakers.answered(probed)
            seams.reach("breaker.resumed")

    def _pass_breaker(self) -> Breaker | None:
        """The open breaker that this call is the probe of, if any. Raises ``Snooze`` if not so."""
        breaker = self.ledger.breakers.of(self.provider.name)
        if breaker is None:
            return None
        if breaker.state == "stopped":
            raise self._stopped(breaker.detail)
        if not self.ledger.breakers.may_probe(breaker):
            raise Snooze(breaker.until, breaker.reason, breaker.detail)
        return breaker

    def _stopped(self, detail: str) -> Snooze:
        until = self.ledger.clock.now_ms() + STOPPED_WAIT_MS
        return Snooze(until, ProviderPermanent.code, detail)

    def _book(self, request: Request, backfill: bool) -> _Booked:
        """Reserve one call; what was reserved comes back. Raises ``Snooze``."""
        characters = len(request.system) + len(request.prompt)
        read = characters // CHARACTERS_A_TOKEN
        settings = self.settings
        tokens = read + request.max_tokens
        cost = price(settings, read, request.max_tokens)
        day = self.ledger.budget.reserve(
            self.provider.name,
            tokens,
            settings.daily_calls,
            settings.daily_tokens,
            cost=cost,
            max_cost=millionths(settings.daily_cost),
            share=self.share if backfill else None,
        )
        if day is None:
            self._require_fit(tokens, cost, backfill)
            raise self._spent(backfill)
        return _Booked(tokens, cost, day)

    def _require_fit(self, tokens: int, cost: int, backfill: bool) -> None:
        """Raise ``Snooze`` where no day's budget holds the call: waiting alone helps nothing."""
        share = self.share if backfill else 1.0
        if wrong := never_fits(self.settings, tokens, cost, share):
            until = self.ledger.budget.next_day_ms()
            raise Snooze(until, "budget.too-small", f"a call of about {tokens} tokens: {wrong}")

    def _spent(self, backfill: bool) -> Snooze:
        settings = self.settings
        money = f" and {settings.daily_cost:g} of money" if settings.daily_cost else ""
        calls = counted(settings.daily_calls, "call")
        what = f"budget of {calls} and {counted(settings.daily_tokens, 'token')}{money}"
        until = self.ledger.budget.next_day_ms()
        if backfill:
            return Snooze(until, "backfill.share-spent", f"its share of today's {what} is spent")
        return Snooze(until, "budget.spent", f"today's {what} is spent")


def _lost() -> LeaseLost:
    return LeaseLost("the attempt was called off")


def has_time(request: Request, seconds_left: float) -> bool:
    """Whether ``seconds_left`` are enough to begin the call at all."""
    return seconds_left >= min(request.timeout_seconds, LEAST_CALL_SECONDS)


def never_fits(settings: ProviderSettings, tokens: int, cost: int = 0, share: float = 1.0) -> str:
    """The setting into which such a call fits on no day, and what to do; "" where it fits.

    ``cost`` is money in millionths; ``share`` is the backfill's part of the day, 1 for other work.
    """
    needs: dict[str, tuple[int, int, float]] = {
        "daily_calls": (1, settings.daily_calls, settings.daily_calls),
        "daily_tokens": (tokens, settings.daily_tokens, settings.daily_tokens),
    }
    if settings.daily_cost:
        needs["daily_cost"] = (cost, millionths(settings.daily_cost), settings.daily_cost)
    for name, (need, bound, said) in needs.items():
        if need > bound:
            return f"{name} = {said:g} under [provider] is too little for it; raise it"
        if need > share * bound:
            part = f"share = {share:g} under [backfill] of {name} = {said:g} under [provider]"
            return f"{part} is too little for it; raise one of them"
    return ""


@dataclass(frozen=True)
class _Booked:
    tokens: int
    cost: int
    day: str


def price(settings: ProviderSettings, read: int, written: int) -> int:
    """What so many tokens cost, in millionths of the prices' currency: prices are for a million."""
    return round(read * settings.price_input + written * settings.price_output)


def millionths(money: float) -> int:
    """An amount of money as budgets count it."""
    return round(money * 1_000_000)
