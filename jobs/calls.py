"""Asking the provider: breaker, budget, concurrency, and what each refusal means for the job."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from memoryd.jobs.control import Snooze, safe_detail
from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import (
    ProviderError,
    ProviderLimited,
    ProviderPermanent,
    ProviderUnavailable,
)
from memoryd.memory.providers.base import Provider, Reply, Request

#: How long a job waits between two looks at a provider that a person has to mend.
STOPPED_WAIT_MS = 3600 * 1000
#: How long a limit lasts that the provider gave no time for.
LIMITED_WAIT_MS = 3600 * 1000
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

    def ask(self, job: Job | None, request: Request) -> Reply:
        """One answer. The call is booked before it is sent and settled after.

        It is counted in the log of the attempt at ``job``; None for a call that no job makes.
        Raises ``Snooze`` when the provider is away, limited, stopped or the budget is spent, and
        ``BadAnswer`` when it answered with nothing usable.
        """
        if not self.provider.costs:
            return self.provider.complete(request)
        with self._slots:
            broken = self._pass_breaker()
            try:
                reply = self._send(request, job is not None and job.kind == "backfill")
            except ProviderUnavailable as error:
                detail = safe_detail(error.message)
                until = self.ledger.breakers.trip(self.provider.name, error.code, detail)
                raise Snooze(until, error.code, str(error)) from error
            except ProviderPermanent as error:
                detail = safe_detail(str(error))
                self.ledger.breakers.stop(self.provider.name, error.code, detail)
                raise self._stopped(detail) from error
            except ProviderError as error:
                self._close(broken)  # a refusal is an answer: it is not away
                if not isinstance(error, ProviderLimited):
                    raise
                until = error.until_ms or self.ledger.clock.now_ms() + LIMITED_WAIT_MS
                raise Snooze(until, error.code, str(error)) from error
        self._close(broken)
        if job is not None:
            self.ledger.count_call(job, reply.input_tokens, reply.output_tokens)
        return reply

    def _send(self, request: Request, backfill: bool) -> Reply:
        """Book the call, send it, and book what it really took. Raises ``Snooze``.

        What was sent and brought no answer keeps its reservation, since nobody says what it took;
        only where nothing can have been spent it costs nothing.
        """
        booked = self._book(request, backfill)
        spent, paid = booked.tokens, booked.cost
        try:
            reply = self.provider.complete(request)
            spent = reply.input_tokens + reply.output_tokens
            paid = price(self.settings, reply.input_tokens, reply.output_tokens)
        except ProviderError as error:
            if error.free:
                spent = paid = 0
            raise
        finally:
            self.ledger.budget.settle(
                self.provider.name,
                booked.tokens,
                spent,
                booked.day,
                cost=booked.cost,
                paid=paid,
                backfill=backfill,
            )
        return reply

    def _close(self, broken: bool) -> None:
        """The provider answers: where a breaker was open, everybody may ask again."""
        if broken:
            self.ledger.breakers.resume(self.provider.name)

    def _pass_breaker(self) -> bool:
        """Whether a breaker is open and this call is its probe. Raises ``Snooze`` otherwise."""
        breaker = self.ledger.breakers.of(self.provider.name)
        if breaker is None:
            return False
        if breaker.state == "stopped":
            raise self._stopped(breaker.detail)
        if not self.ledger.breakers.may_probe(breaker):
            raise Snooze(breaker.until, breaker.reason, breaker.detail)
        return True

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
            raise self._spent(backfill)
        return _Booked(tokens, cost, day)

    def _spent(self, backfill: bool) -> Snooze:
        settings = self.settings
        money = f" and {settings.daily_cost:g} of money" if settings.daily_cost else ""
        what = f"budget of {settings.daily_calls} calls and {settings.daily_tokens} tokens{money}"
        until = self.ledger.budget.next_day_ms()
        if backfill:
            return Snooze(until, "backfill.share-spent", f"its share of today's {what} is spent")
        return Snooze(until, "budget.spent", f"today's {what} is spent")


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
