"""Trials of servers: one replica elsewhere, which no client reaches and which gets sample requests instead.

It shows what a batch takes there by how many requests are in it, up to as many as a replica has at the peak of the
record. What that is worth follows from what a million requests would cost there, as a trial of a job does.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from rightpool.api.units import HOUR
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.rejection import Compared, SpecificationsMissing
from rightpool.planning.offers.servers.evaluated import SURE, Side, SizedServer
from rightpool.planning.offers.servers.refusal import LatencyNotHeld, LoadExtrapolated, TooSlowAlone
from rightpool.planning.offers.trial import (
    LEAST_LIKELY,
    MOST_LIKELY,
    SHARES,
    WAIT_FOR_VERDICT,
    Deciding,
    Stakes,
    TrialOffer,
    failed_there,
    remaining,
)
from rightpool.planning.work.outlook import outlook
from rightpool.planning.work.server import beside_seconds
from rightpool.planning.work.training import TYPICAL_RESTART_SECONDS
from rightpool.prediction.server import INSIDE_SD

MOST_AT_ONCE: Final = 256
"""Requests at once that a trial sends, at most."""

_LEAST_AT_ONCE: Final = 4
# Of requests that are sent again as they are answered, one batch is answered while the next one gathers.
_BATCHES: Final = 2.0


def server_trials(evaluated: SizedServer, longest: float) -> list[TrialOffer]:
    """Trials of a server that pay, the best first. longest: seconds that may be measured."""
    job = evaluated.job
    if evaluated.found.intent is not Intent.SAVE or job.state.migration is not None:
        return []
    failed = {place.pool for place in failed_there(job)}
    found = []
    for side in evaluated.found.sides:
        likely = side.probability
        if side.size is None or side.size.measured or side.placement.pool in failed or not _asks(side):
            continue
        if likely is None or not LEAST_LIKELY <= likely <= MOST_LIKELY:
            continue
        best = max((_of_length(evaluated, side, longest * share) for share in SHARES), key=lambda one: one.gain)
        if best.gain > 0.0:
            found.append(best)
    return sorted(found, key=lambda one: -one.gain)


def asked_server_trials(evaluated: SizedServer, pool: str | None, seconds: float) -> list[TrialOffer]:
    """Trials of a length that a user asks for, whether they pay or not, the best first. pool: in this alone."""
    sides = [side for side in evaluated.found.sides if pool in (None, side.placement.pool) and _asks(side)]
    return sorted((_of_length(evaluated, side, seconds) for side in sides), key=lambda one: -one.gain)


def requests_at_once(here: Side, there: Side) -> int:
    """As many as show batches that are as full as at the peak."""
    load = max(side.size.load for side in (here, there) if side.size is not None)
    return min(max(math.ceil(_BATCHES * load), _LEAST_AT_ONCE), MOST_AT_ONCE)


def _asks(side: Side) -> bool:
    """Whether what rules it out, if anything does, is what its batches are predicted to take."""
    numbers = Compared, LatencyNotHeld, TooSlowAlone, LoadExtrapolated, SpecificationsMissing
    return side.rejection is None or isinstance(side.rejection, numbers)


def _of_length(evaluated: SizedServer, side: Side, measured: float) -> TrialOffer:
    found = evaluated.found
    place = replace(side.placement, chips=side.placement.chips_per_replica, replicas=1)
    seconds = TYPICAL_RESTART_SECONDS + measured
    hourly = evaluated.price(place)
    waits = max((_saving_an_hour(evaluated, found.sides[number]) for number in found.wanted), default=0.0)
    cost = ((hourly or 0.0) + waits) * seconds / HOUR
    vendor, _ = evaluated.vendors(place)
    worth, load = _worth(evaluated, side), requests_at_once(found.here, side)
    return TrialOffer(place, measured, seconds, cost, worth, hourly, vendor, evaluated.chip(place), load)


def _saving_an_hour(evaluated: SizedServer, side: Side) -> float:
    """Dollars; 0 where what it costs where it is is not known."""
    here = evaluated.found.here
    return max(1.0 - side.cost / here.cost, 0.0) * (here.hourly or 0.0) if here.cost > 0.0 else 0.0


def _worth(evaluated: SizedServer, side: Side) -> float:
    """Dollars; 0 where nobody knows what it would cost there."""
    found = evaluated.found
    if not side.cost > 0.0 or not found.here.cost > 0.0 or side.size is None:
        return 0.0
    sd = side.size.doubt
    left = remaining(sd, INSIDE_SD)
    # There are as many replicas as are surely enough: fewer of them, the less is in doubt.
    mean = math.log(side.cost / found.here.cost) - SURE * (sd - left)
    wanted = {number: _moved(evaluated, found.sides[number]) for number in found.wanted}
    now = next(iter(wanted.values()), 0.0)
    other = next((brings for number, brings in wanted.items() if found.sides[number] is not side), 0.0)
    deciding = Deciding(float(evaluated.job.spec.adaptation.min_savings), now, other)
    return deciding.worth(_stakes(evaluated, side), mean, sd, INSIDE_SD)


def _moved(evaluated: SizedServer, side: Side) -> float:
    """What moving there now brings."""
    saved = 1.0 - side.cost / evaluated.found.here.cost
    stakes = _stakes(evaluated, side)
    return stakes.work * saved - stakes.restart


def _stakes(evaluated: SizedServer, side: Side) -> Stakes:
    job, hour = evaluated.job, evaluated.found.here.hourly or 0.0
    window, horizon = job.spec.profiling.window.total_seconds(), _horizon(job, evaluated.evaluation.now)
    work = hour * horizon / HOUR
    undone = hour * min(WAIT_FOR_VERDICT * window, horizon) / HOUR
    return Stakes(work, min(undone, work), (side.hourly or 0.0) * beside_seconds(job) / 2.0 / HOUR)


def _horizon(job: Job, now: float) -> float:
    return outlook(job, math.nan, now).horizon
