"""A server's part of an evaluation: the pools where it would keep its limit, by dollars for a million requests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.estimate import Estimate, normal_cdf
from rightpool.api.placement import Placement
from rightpool.api.status import PlaceSize
from rightpool.api.units import HOUR
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.planning.jobs.sizing import Sizing
from rightpool.planning.jobs.time_limits import sized_by_tokens
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.enumerate import options
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.offers.evidence import Bill
from rightpool.planning.offers.experience import known_by_trial, waiting_for
from rightpool.planning.offers.gates import avoided
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.offers import Offers
from rightpool.planning.offers.pool_gates import home_vendor, placed_vendor
from rightpool.planning.offers.register import NONE, Register
from rightpool.planning.offers.rejection import (
    BelowMinSavings,
    DoesNotPayBack,
    MemoryShort,
    MemoryUnknown,
    NotBetter,
    PrecisionUnsupported,
    PriceUnknown,
    Rejection,
    SpecificationsMissing,
    Uncertain,
)
from rightpool.planning.offers.running import MIN_PROBABILITY, WAITING_SHARE
from rightpool.planning.offers.servers.refusal import LatencyNotHeld, TooSlowAlone
from rightpool.planning.offers.servers.sizing import LatencyTarget, why_not_held
from rightpool.planning.offers.shape import Shape
from rightpool.planning.offers.start_order import MEMORY_HEADROOM
from rightpool.planning.offers.targets.hourly_cost import HourTooDear
from rightpool.planning.offers.targets.registry import dollar_target
from rightpool.planning.work.outlook import outlook
from rightpool.planning.work.server import beside_seconds, pods_at
from rightpool.prediction.cost import MILLION
from rightpool.prediction.precision import lacks
from rightpool.prediction.predictor import Origin
from rightpool.profiles.sample import Field

SURE: Final = 1.2816
"""Standard deviations that 90% of a normal distribution are below."""
_CLEARLY: Final = 0.1  # share of its time that a batch must save for a move, where no place keeps the limit
_UNHELD: Final = (TooSlowAlone, LatencyNotHeld)


class Side(NamedTuple):
    """One placement of a server."""

    placement: Placement
    """Where."""
    rejection: Rejection | None
    """What rules it out; None where nothing does."""
    size: PlaceSize | None = None
    """What it would be there; None where that is not known."""
    hourly: float | None = None
    """Dollars an hour; None where the price is unknown."""
    probability: float | None = None
    """That a million requests cost less there."""

    @property
    def cost(self) -> float:
        """Dollars for a million requests of the recorded week; NaN where that is not known, or the limit not kept."""
        if self.size is None or self.hourly is None or self.size.hours is None:
            return math.nan
        return self.hourly / self.placement.replicas * self.size.hours


class ServerOffers(NamedTuple):
    """Everywhere a server could be."""

    here: Side
    """Where it is."""
    sides: tuple[Side, ...]
    """Elsewhere, the cheapest first, those that are ruled out last."""
    intent: Intent
    """What a move would be for."""
    wanted: tuple[int, ...]
    """Those that it would be moved to, the best first."""
    decision: Decision | None
    """What is decided where it is moved to none of them."""
    nears: bool = False
    """Whether none of those keeps the limit either, and it is missed by less there."""


def server_offers(job: Job, shape: Shape, register: Register, disallowed: Rejection | None) -> ServerOffers:
    """disallowed: why the user does not allow where it is."""
    ref, sizing = job.state.revision, job.observed.sizing
    assert ref is not None and sizing is not None
    home, now = register.machines.named[ref.placement.pool], register.now
    target = limit_of(job, sizing)
    own = sizing.at(home.name)
    here = Side(ref.placement, disallowed or _refusal(own, target), own, home.price.hourly(ref.placement))
    found = [
        _against(side, here) for side in _sides(job, shape, register, home, target) if side.placement != ref.placement
    ]
    holds = here.rejection is None
    intent = Intent.LEAVE if disallowed is not None else Intent.SAVE if holds else Intent.REPAIR
    if intent is Intent.SAVE and here.hourly is None:
        return ServerOffers(here, tuple(found), Intent.NONE, (), Decision(Action.HOLD, Reason.PRICE_UNKNOWN))
    bill: Bill | None = None
    unheld = intent is Intent.REPAIR and all(side.rejection is not None for side in found)
    if intent is Intent.SAVE:
        waiting, judged = waiting_for(job), []
        horizon = outlook(job, math.nan, now).horizon
        for side in found:
            slack = WAITING_SHARE if waiting is not None and waiting.pool == side.placement.pool else 1.0
            why, bill_here = _not_wanted(job, side, here, slack, horizon)
            bill = bill or bill_here
            judged.append(side if side.rejection is not None else side._replace(rejection=why))
        eligible = [one.rejection is None for one in found]
        wanted = [one.rejection is None for one in judged]
    else:
        judged = [_nearer(side, here, target) for side in found] if unheld else found
        eligible = [one.rejection is None for one in judged]
        wanted = eligible
    order = sorted(range(len(judged)), key=lambda number: (not eligible[number], *_worth(judged[number]), number))
    sides = tuple(judged[number] for number in order)
    chosen = tuple(place for place, number in enumerate(order) if wanted[number])
    return ServerOffers(here, sides, intent, chosen, _staying(job, intent, sides, bill), unheld)


def limit_of(job: Job, sizing: Sizing) -> LatencyTarget:
    """What is wanted of a server."""
    server = job.spec.workload.server
    assert server is not None
    return LatencyTarget.of(sizing.targets, server.least, server.most)


def _sides(job: Job, shape: Shape, register: Register, home: Pool, target: LatencyTarget) -> list[Side]:
    ref, sizing = job.state.revision, job.observed.sizing
    assert ref is not None and sizing is not None
    pools, each = register.machines.pools, ref.placement.chips_per_replica
    vendor, tried = home_vendor(shape, pools, placed_vendor(ref, home)), avoided(job, register.now)
    found = []
    for pool in pools:
        pods = pods_at(job, pool.name, ref.placement.replicas)
        there = shape._replace(replicas=pods, low=each * pods, high=each * pods)
        for option in options(there, (pool,), vendor):
            if pool is home and (option.elsewhere or option.placement.capacity is ref.placement.capacity):
                continue
            size, hourly = sizing.at(pool.name), pool.price.hourly(option.placement)
            why = option.rejection or _memory(job, home, pool) or _terms(job, pool, hourly)
            why = why or next((entry for entry in tried if entry.pool == pool.name), None)
            if why is None and size is None:
                why = SpecificationsMissing(home.accelerator.key, pool.accelerator.key)
            found.append(Side(option.placement, why or _refusal(size, target), size, hourly))
    return found


def _refusal(size: PlaceSize | None, target: LatencyTarget) -> Rejection | None:
    return None if size is None else why_not_held(size, target)


def _memory(job: Job, home: Pool, pool: Pool) -> Rejection | None:
    """Whether a chip has the memory and the arithmetic that the program uses."""
    profile, declared = job.observed.profile, job.spec.placement.memory_per_chip
    precision = None if profile is None else profile.traits.precision
    chip, used = pool.accelerator, None if profile is None else profile.value(Field.MEMORY_USED)
    if sized_by_tokens(job.spec.targets):
        used = None  # of keys and values it holds as many as there is memory for
    if lacks(chip, precision):
        return PrecisionUnsupported(pool.name, chip.key, precision or "", tuple(sorted(chip.peak_flops)))
    if chip.key == home.accelerator.key:
        return None
    needed = used if used is not None else None if declared is None else float(declared)
    if needed is None:
        smaller = chip.memory_bytes < home.accelerator.memory_bytes
        return MemoryUnknown(pool.name, chip.memory_bytes) if smaller else None
    if needed * MEMORY_HEADROOM > chip.memory_bytes:
        return MemoryShort(pool.name, chip.memory_bytes, needed, measured=used is not None)
    return None


def _terms(job: Job, pool: Pool, hourly: float | None) -> Rejection | None:
    targets = job.spec.targets
    if hourly is None:
        return PriceUnknown(pool.name, dollar_target(targets), targets.objective)
    most = targets.max_cost_per_hour
    return HourTooDear(hourly, float(most)) if most is not None and hourly > float(most) else None


def _against(side: Side, here: Side) -> Side:
    """With how likely it is cheaper than where the server is: replicas there are as many as hold with 90%."""
    if math.isnan(side.cost) or math.isnan(here.cost) or side.size is None or not side.cost > 0.0:
        return side
    apart = math.log(here.cost / side.cost) if here.cost > 0.0 else -math.inf
    return side._replace(probability=normal_cdf(apart / max(side.size.doubt, 1e-6) + SURE))


def _saving(side: Side, here: Side) -> float:
    return 1.0 - side.cost / here.cost if here.cost > 0.0 else 0.0


def _not_wanted(job: Job, side: Side, here: Side, slack: float, horizon: float) -> tuple[Rejection | None, Bill | None]:
    """Why it is not moved there, though it would keep its limit there; None where it is."""
    saved, objective = _saving(side, here), job.spec.targets.objective
    rate, both = 0.0, beside_seconds(job)
    if not saved > 0.0:  # not known, too
        return NotBetter(objective, rate), None
    if saved < float(job.spec.adaptation.min_savings) * slack:
        return BelowMinSavings(objective, rate), None
    if (side.probability or 0.0) < MIN_PROBABILITY * slack:
        return Uncertain(objective, rate), None
    gain = (here.hourly or 0.0) * saved * horizon / HOUR
    cost = (side.hourly or 0.0) * both / HOUR
    if gain > cost:
        return None, None
    bill = Bill(gain, cost, both, horizon, beside=True)
    return DoesNotPayBack(objective, rate), (bill if side.rejection is None else None)


def _worth(side: Side) -> tuple[float, float]:
    alone = math.inf if side.size is None else side.size.alone
    return (math.inf if math.isnan(side.cost) else side.cost), alone


def _nearer(side: Side, here: Side, target: LatencyTarget) -> Side:
    """Where no place keeps the limit: one that misses it by less than where the server is, however late its requests
    are there. With as many replicas that is so where batches of any size surely take less time. They do not tell how
    long first tokens take."""
    size, own, more = side.size, here.size, side.placement.replicas >= here.placement.replicas
    missed = more and all(isinstance(one.rejection, _UNHELD) for one in (side, here))
    if size is None or own is None or not missed or target.first is not None:
        return side
    faster = min(own.alone / size.alone, own.each / size.each)
    surely = math.exp(SURE * size.doubt) / (1.0 - _CLEARLY)
    # What its batches have to spare, by which the move is judged: until they take as long as where it is.
    return side._replace(rejection=None, size=replace(size, spare=faster)) if faster > surely else side


_STAYS: Final[Mapping[type[Rejection], Reason]] = {
    BelowMinSavings: Reason.BELOW_MIN_SAVINGS,
    Uncertain: Reason.UNCERTAIN_SAVING,
    DoesNotPayBack: Reason.DOES_NOT_PAY_BACK,
}


def _staying(job: Job, intent: Intent, sides: tuple[Side, ...], bill: Bill | None) -> Decision:
    if intent is not Intent.SAVE:
        return Decision(Action.HOLD, Reason.NO_FEASIBLE_POOL)
    first = sides[0].rejection if sides else None
    reason = Reason.CHEAPEST if first is None else _STAYS.get(type(first), Reason.CHEAPEST)
    if reason is Reason.DOES_NOT_PAY_BACK:
        return Decision(Action.KEEP, reason, evidence=bill)
    return Decision(Action.KEEP, reason)


def as_offers(found: ServerOffers, register: Register) -> Offers:
    """In columns, as others have them."""
    sides, here = found.sides, found.here
    option = np.array([register.option(side.placement) for side in sides], dtype=np.int64)
    gate = np.array([NONE if s.rejection is None else register.code(s.rejection) for s in sides], dtype=np.int64)
    saving = np.array([_saving(side, here) for side in sides], dtype=np.float64)
    return replace(Offers.unmeasured(option, gate), saving=np.nan_to_num(saving))


@dataclass(frozen=True, slots=True, eq=False)
class SizedServer(Evaluated):
    """One whose record says what it would be elsewhere."""

    found: ServerOffers = field(kw_only=True)
    """In the order of its entries."""

    def candidate(self, entry: int) -> Candidate:
        """With the replicas that keep its limit."""
        return self._candidate(self.found.sides[entry - self.entries.start])

    def made_current(self) -> Candidate | None:
        """Where it is."""
        return self._candidate(self.found.here)

    def best(self) -> Candidate | None:
        """The cheapest that keeps its limit."""
        sides, here = self.found.sides, self.found.here
        number = next((n for n, side in enumerate(sides) if side.rejection is None or _compares(side.rejection)), None)
        return None if number is None or math.isnan(here.cost) else self.candidate(self.entries.start + number)

    def _candidate(self, side: Side) -> Candidate:
        made, here, stays = self._unmeasured(side.placement, side.rejection), self.found.here, side is self.found.here
        size, hourly, cost = side.size, side.hourly, side.cost
        if size is None or hourly is None or not cost > 0.0:
            return replace(made, size=size) if self.nears and side.rejection is None else made
        doubt = 0.0 if stays else size.doubt
        saving = None if math.isnan(here.cost) else _saving(side, here)
        return replace(
            made,
            throughput=Estimate(hourly / HOUR * MILLION / cost, doubt),
            cost_per_million=Estimate(cost, doubt),
            score=cost,
            saving=saving,
            probability=None if stays else side.probability,
            origin=_origin(self.job, size, stays),
            unit=unit_of(self.job),
            size=size,
        )


def _origin(job: Job, size: PlaceSize, stays: bool) -> Origin:
    if stays:
        return Origin.MEASURED_NOW
    if not size.measured:
        return Origin.PREDICTED
    return Origin.MEASURED_IN_TRIAL if known_by_trial(job, size.pool) else Origin.MEASURED_BEFORE


def _compares(rejection: Rejection) -> bool:
    return isinstance(rejection, (NotBetter, *_STAYS))
