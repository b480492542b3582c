"""The account of a job: what it has cost, and what moving it has saved."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from rightpool.api.altered import altered
from rightpool.api.counterfactual import Counterfactual
from rightpool.api.estimate import Z80
from rightpool.api.record import PACKED, Record
from rightpool.api.units import (
    NO_MONEY,
    Balance,
    Count,
    Dollars,
    Quantity,
    Seconds,
    Share,
    SignedQuantity,
    UnixTime,
    write_money,
)
from rightpool.api.value_object import value_object


def _free(dollars: float) -> bool:
    return write_money(dollars) == NO_MONEY  # as it would be read


def _is_zero(value: float) -> bool:
    return value < 0.0005  # as it would be written


@value_object
class Account(Record):
    """What the job costs, dollars."""

    cost_per_hour: Annotated[Quantity | None, Field(alias="perHour")] = None
    """Dollars an hour now, for chips. Absent where none are held, and where the price is
    unknown: the time is then in unpricedSeconds."""

    cost_per_million: Annotated[Quantity | None, Field(alias="perMillion")] = None
    """Dollars for a million samples now, or for a million steps where the profile has stepsPerSecond. Nothing is
    computed from it."""

    spent: Dollars = 0.0
    """Dollars since the job's pods first held chips."""

    saved: Balance = 0.0
    """Dollars saved by moves, against what the same work would have cost without them. Negative where moving did not
    pay: moves that were undone cost something and brought nothing."""

    since: Annotated[UnixTime | None, Field(alias="asOf")] = None
    """Until when all this is counted; from then on perHour runs. Absent while the job holds no chips."""

    saving_per_hour: Annotated[SignedQuantity, PACKED] = 0.0
    """Dollars an hour that are saved now."""

    unpriced_seconds: Annotated[Seconds, Field(exclude_if=_is_zero)] = 0.0
    """Seconds on chips whose price is not known; they are not in spent."""

    chips: Annotated[Count, Field(exclude_if=_is_zero)] = 0
    """Chips that its pods hold now, those of starting and ending pods included, and what is kept for an edit that waits
    for a save."""

    chip_seconds: Annotated[Seconds, Field(exclude_if=_is_zero), PACKED] = 0.0
    """Seconds for which chips were held, added up over chips."""

    goodput: Share | None = None
    """Share of the chip-seconds that was useful: the work done at the job's rate, without loading, waiting and
    repeating. Nothing is computed from it."""

    counterfactual: Annotated[Counterfactual | None, PACKED] = None
    """Where the job would be without its moves."""

    saved_doubt: Annotated[Dollars, Field(exclude_if=_free), PACKED] = 0.0
    """Standard deviation of what was saved at places that the job has left."""

    @property
    def saved_sd(self) -> float:
        """Standard deviation of `saved`, dollars: what the job would do without its moves is known so well.

        What one place and the next are compared with is the same, so that their doubts add up.
        """
        there = self.counterfactual
        here = 0.0 if there is None or not there.speed else there.speed_doubt * there.dollars / there.speed
        return self.saved_doubt + here

    @property
    def saved_range(self) -> tuple[float, float]:
        """The 80% interval of `saved`, dollars."""
        half = Z80 * self.saved_sd
        return self.saved - half, self.saved + half

    @property
    def empty(self) -> bool:
        """Whether nothing was ever spent, to the last digit that is kept: a zero would read as a measurement."""
        return (
            self.since is None
            and self.cost_per_hour is None
            and self.cost_per_million is None
            and self.counterfactual is None
            and not (self.saving_per_hour or self.chips)
            and _is_zero(self.unpriced_seconds)
            and _is_zero(self.chip_seconds)
            and write_money(self.spent) == write_money(self.saved) == NO_MONEY
        )

    def settled(self, now: float) -> Account:
        """The account with everything up to now booked; the meter runs on."""
        if self.since is None or now <= self.since:
            return self
        seconds = now - self.since
        hours = seconds / 3600
        spent = (self.cost_per_hour or 0.0) * hours
        counterfactual = self.counterfactual
        if counterfactual is not None:
            counted = counterfactual.per_hour > 0.0 or self.saving_per_hour != 0.0
            counterfactual = replace(
                counterfactual,
                dollars=counterfactual.dollars + counterfactual.per_hour * hours,
                spent_before=counterfactual.spent_before + (0.0 if counted else spent),
            )
        return altered(
            self,
            spent=self.spent + spent,
            saved=self.saved + self.saving_per_hour * hours,
            unpriced_seconds=self.unpriced_seconds + (seconds if self.cost_per_hour is None else 0.0),
            chip_seconds=self.chip_seconds + self.chips * seconds,
            since=now,
            counterfactual=counterfactual,
        )

    def spent_by(self, now: float) -> float:
        """Dollars spent up to now: `spent` of the settled account."""
        if self.since is None or now <= self.since:
            return self.spent
        return self.spent + (self.cost_per_hour or 0.0) * ((now - self.since) / 3600)

    def saved_by(self, now: float) -> float:
        """Dollars saved up to now: `saved` of the settled account."""
        if self.since is None or now <= self.since:
            return self.saved
        return self.saved + self.saving_per_hour * ((now - self.since) / 3600)

    def started(self, cost_per_hour: float | None, now: float, chips: int = 0) -> Account:
        """So many chips are held at this price from now on."""
        return replace(self.settled(now), since=now, cost_per_hour=cost_per_hour, chips=chips)

    def stopped(self, now: float) -> Account:
        """The job holds no chips any more."""
        return replace(self.settled(now), since=None, cost_per_hour=None, saving_per_hour=0.0, chips=0)

    def moved(self, counterfactual: Counterfactual | None, now: float) -> Account:
        """The job's steps have caught up at another place. counterfactual: where it would be without its moves; None
        where it is there."""
        account = self.settled(now).unlinked()
        if counterfactual is not None:
            counterfactual = replace(
                counterfactual,
                since=now,
                dollars=0.0,
                per_hour=0.0,
                spent_before=account.spent,
                saved_before=account.saved,
            )
        return replace(account, counterfactual=counterfactual, saving_per_hour=0.0)

    def unlinked(self) -> Account:
        """The same, compared with no other place from now on."""
        return self if self.counterfactual is None else replace(self, saved_doubt=self.saved_sd, counterfactual=None)

    def measured(self, speed: float, doubt: float, now: float) -> Account:
        """How fast the job would be without its moves, ÷ how fast it is, was measured anew. It counts for all the time
        here. doubt: standard deviation of its logarithm."""
        account = self.settled(now)
        there = account.counterfactual
        if there is None or speed <= 0.0:
            return account
        there = replace(there, speed=speed, speed_doubt=doubt, readings=there.readings + 1)
        saved = there.saved_before + there.dollars / speed - (account.spent - there.spent_before)
        running = 0.0 if account.cost_per_hour is None else there.per_hour / speed - account.cost_per_hour
        return replace(
            account,
            counterfactual=there,
            saved=saved,
            saving_per_hour=running if there.per_hour > 0.0 else account.saving_per_hour,
        )
