"""Trials: whether to run a job's own program for some minutes on free chips elsewhere before deciding on a move.

A trial is worth what is gained by deciding after it, less what is gained by deciding now: over what it may show, each
by how likely that is. What a move would bring there is lognormal, and so is what a trial leaves unknown of it; how
surely a trial tells the rate follows from how the job's own windows differ. Deciding now counts as what the operator
does now: a move that it makes is undone where it fails, which costs two restarts and what is lost until then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from rightpool.api.placement import Placement
from rightpool.api.tried import Tried
from rightpool.api.units import HOUR
from rightpool.planning.jobs.job import Job, throttled_now, unit_of
from rightpool.planning.offers.evaluated import MeasuredJob
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.running import MIN_PROBABILITY
from rightpool.planning.work.outlook import pace_of
from rightpool.prediction.columns import Floats, cumulative_normal, floats
from rightpool.profiles.steadiness import pace, variance_between_places

LEAST_LIKELY: Final = 0.02
"""What is better with less probability is not tried."""
MOST_LIKELY: Final = 0.98
"""Nor what is better with more."""
WAIT_FOR_VERDICT: Final = 12
"""Windows until a move that fails is undone, about."""
SHARES: Final = (0.25, 0.5, 1.0)
"""Of the seconds that may be measured, what a trial may take."""
# What a trial may show, in standard deviations, and how likely each is: also what is hardly ever shown, and pays then.
_Z: Final = np.linspace(-4.0, 4.0, 65)
_LIKELY: Final = np.exp(-(_Z**2) / 2.0) / np.sum(np.exp(-(_Z**2) / 2.0))


class TrialOffer(NamedTuple):
    """A trial that pays."""

    placement: Placement
    """Where."""
    measured: float
    """Seconds from its first step on."""
    seconds: float
    """For which its pods have chips, their start included."""
    cost: float
    """Dollars for these chips, and for the wait of a move that would be made at once."""
    worth: float
    """Dollars, expected, that deciding after it gains over deciding now."""
    cost_per_hour: float | None = None
    """Dollars for these chips; None where their price is not known."""
    vendor: str | None = None
    """Whose variant of the program runs there; None where none does."""
    chip: str | None = None
    """Key of these chips in the catalog."""
    load: int = 0
    """Requests at once, at most, that a server gets there; 0 of what answers none."""

    @property
    def gain(self) -> float:
        """Dollars that are left of it."""
        return self.worth - self.cost


class Stakes(NamedTuple):
    """Dollars of a move of one job to one place."""

    work: float
    """What the work of the horizon costs where the job is."""
    tried: float
    """What it costs until a move that fails is undone."""
    restart: float
    """Of each way."""

    def move(self, mean: Floats, sd: float) -> Floats:
        """What moving brings, expected, undone where it fails. mean, sd: of the log of what a unit costs there ÷
        here."""
        if sd <= 0.0:
            share: Floats = -np.expm1(mean)
            return np.where(mean < 0.0, self.work * share, self.tried * share - self.restart) - self.restart
        better = cumulative_normal(-mean / sd)
        whole = np.exp(mean + sd**2 / 2.0)
        gained = better - whole * cumulative_normal(-mean / sd - sd)
        lost = 1.0 - whole - gained
        found: Floats = self.work * gained + self.tried * lost - self.restart * (2.0 - better)
        return found


class Deciding(NamedTuple):
    """What is decided without a trial, and what it takes to decide otherwise after it."""

    savings: float
    """Share that a move must save at least."""
    now: float
    """Dollars that the move brings which would be made now; 0 where none would."""
    other: float
    """Dollars that the best move elsewhere brings."""

    def worth(self, stakes: Stakes, mean: float, sd: float, noise: float) -> float:
        """Dollars, expected, that deciding after a trial gains. mean, sd: as of `Stakes.move`; noise: standard
        deviation of the log of what the trial shows, around what is so."""
        left = remaining(sd, noise)
        shown = mean + math.sqrt(max(sd**2 - left**2, 0.0)) * _Z
        gain = stakes.move(shown, left)
        saved: Floats = -np.expm1(shown)
        sure = cumulative_normal(-shown / left) >= MIN_PROBABILITY if left > 0.0 else shown < 0.0
        acts = (saved >= self.savings) & sure & (stakes.work * saved > stakes.restart)
        # What is wanted elsewhere is given up only for what brings more.
        return float(_LIKELY @ np.where(acts, np.maximum(gain, self.other), self.other)) - self.now


def remaining(sd: float, noise: float) -> float:
    """Standard deviation of a log that a trial leaves."""
    return sd * noise / math.hypot(sd, noise) if sd > 0.0 else 0.0


def trial_offers(evaluated: MeasuredJob, longest: float) -> list[TrialOffer]:
    """Trials of a job that pay, the best first. longest: seconds that may be measured."""
    job, offers = evaluated.job, evaluated.offers
    if evaluated.intent is not Intent.SAVE or job.state.migration is not None or throttled_now(job):
        return []
    failed = failed_there(job)
    wanted = {entry: float(_moved(evaluated, entry)) for entry in evaluated.wanted}
    found = []
    for entry in evaluated.entries:
        likely = float(offers.probability[entry])
        if not LEAST_LIKELY <= likely <= MOST_LIKELY or not float(offers.saving[entry]) < 1.0:
            continue
        if evaluated.placement(entry) in failed or not _may_pay(evaluated, entry, longest):
            continue
        lengths = [longest * share for share in SHARES]
        best = max((_of_length(evaluated, entry, wanted, seconds) for seconds in lengths), key=lambda one: one.gain)
        if best.gain > 0.0:
            found.append(best)
    return sorted(found, key=lambda one: -one.gain)


def asked_offers(evaluated: MeasuredJob, pool: str | None, seconds: float) -> list[TrialOffer]:
    """Trials of a length that a user asks for, whether they pay or not, the best first. pool: in this alone."""
    offers, wanted = evaluated.offers, {entry: float(_moved(evaluated, entry)) for entry in evaluated.wanted}
    found = [
        _of_length(evaluated, entry, wanted, seconds)
        for entry in evaluated.entries
        if pool in (None, evaluated.placement(entry).pool)
        and float(offers.probability[entry]) >= 0.0  # what no gate rules out
        and float(offers.saving[entry]) < 1.0
    ]
    return sorted(found, key=lambda one: -one.gain)


def tried_there(
    job: Job,
    there: Placement,
    rates: Sequence[float],
    seconds: float,
    chips: tuple[str | None, str | None],
    now: float,
    against: float | None = None,
) -> Tried | None:
    """What a trial that is over has measured; None where the job itself has no rate to compare with any more: nothing
    was measured, or a fault throttles its chips. rates: units of work a second from its first step on, readings that
    are equally far apart; seconds: over which they are; chips: keys of those here and there; against: the rate here,
    where the job's pace does not compare."""
    revision, rate = job.state.revision, pace_of(job)[0] if against is None else against
    if revision is None or throttled_now(job) or (rates and not rate > 0.0):
        return None
    mean = sum(rates) / len(rates) if rates else 0.0
    ratio = mean / rate if mean > 0.0 else None
    doubt = _doubt(job, seconds / job.spec.profiling.window.total_seconds())
    return Tried(revision.placement, there, ratio, doubt, now, job.workload_hash, *chips)


def failed_there(job: Job) -> set[Placement]:
    """Where this program can't run. It is not tried there again until it is another one."""
    return {one.there for one in job.state.tried if one.ratio is None and one.workload_hash == job.workload_hash}


def _doubt(job: Job, windows: float) -> float:
    """Standard deviation of the log of a rate in so many windows elsewhere against the job's pace."""
    variation, revision = job.observed.variation, job.state.revision
    seen = None if revision is None else pace(variation, revision.revision, unit_of(job))
    here = variance_between_places(variation, 1 if seen is None else seen.windows)
    there = variance_between_places(variation, max(int(windows), 1)) / min(max(windows, 0.01), 1.0)
    return math.sqrt((here + there) / 2.0)


def _stakes(evaluated: MeasuredJob, entry: int) -> Stakes:
    """By the horizon that a move has to pay back in. Where prices do not last, less of the saving does."""
    numbers, number = evaluated.offers.numbers, evaluated.number
    window = evaluated.job.spec.profiling.window.total_seconds()
    horizon, hour = float(numbers.horizon[number]), evaluated.hour
    saved, lasting = evaluated.saving(entry), float(evaluated.offers.lasting[entry])
    lasts = min(max(lasting, 0.0) / saved, 1.0) if saved > 0.0 else 1.0
    here = numbers.price[number]
    there = hour - float(here) + (evaluated.price(evaluated.placement(entry)) or 0.0)
    work = hour * horizon / HOUR * lasts
    undone = hour * min(WAIT_FOR_VERDICT * window, horizon) / HOUR
    return Stakes(work, min(undone, work), there * float(numbers.restart[number]) / HOUR)


def _log(evaluated: MeasuredJob, entry: int) -> float:
    """Logarithm of what a unit costs there ÷ here, time included."""
    return math.log1p(-evaluated.saving(entry))


def _moved(evaluated: MeasuredJob, entry: int) -> float:
    """What moving there now brings."""
    mean = floats([_log(evaluated, entry)])
    return float(_stakes(evaluated, entry).move(mean, evaluated.doubt(entry))[0])


def _may_pay(evaluated: MeasuredJob, entry: int, longest: float) -> bool:
    """Whether the shortest trial would pay that tells all, and which costs next to nothing to ask: none does of most
    jobs. It is worth at most what is gained where the place is better or, of where the job would go now, what is lost
    where it is not."""
    stakes, mean, sd = _stakes(evaluated, entry), _log(evaluated, entry), evaluated.doubt(entry)
    if not sd > 0.0:
        return False
    whole = math.exp(mean + sd**2 / 2.0)
    better = 0.5 * math.erfc(mean / (sd * math.sqrt(2.0)))
    gained = better - whole * 0.5 * math.erfc((mean / sd + sd) / math.sqrt(2.0))
    lost = stakes.tried * (whole - 1.0 + gained) + 2.0 * stakes.restart
    seconds = float(evaluated.offers.numbers.restart[evaluated.number]) + longest * SHARES[0]
    cost = (evaluated.price(evaluated.placement(entry)) or 0.0) * seconds / HOUR
    return cost < (lost if entry in evaluated.wanted[:1] else stakes.work * gained)


def _of_length(evaluated: MeasuredJob, entry: int, wanted: dict[int, float], measured: float) -> TrialOffer:
    """The trial of an entry in which so many seconds are measured."""
    job, numbers, number, hour = evaluated.job, evaluated.offers.numbers, evaluated.number, evaluated.hour
    window = job.spec.profiling.window.total_seconds()
    place = evaluated.placement(entry)
    seconds = float(numbers.restart[number]) + measured
    now = next(iter(wanted.values()), 0.0)
    other = next((value for rival, value in wanted.items() if rival != entry), 0.0)
    first = next(iter(wanted), None)
    waits = 0.0 if first is None else max(evaluated.saving(first), 0.0) * hour * seconds / HOUR
    stakes, mean, sd = _stakes(evaluated, entry), _log(evaluated, entry), evaluated.doubt(entry)
    deciding = Deciding(float(numbers.savings[number]), now, other)
    worth = deciding.worth(stakes, mean, sd, _doubt(job, measured / window))
    cost = (evaluated.price(place) or 0.0) * seconds / HOUR + waits
    there = evaluated.candidate(entry)
    return TrialOffer(place, measured, seconds, cost, worth, there.cost_per_hour, there.vendor, there.chip)
