"""Where the time of a step goes now: input, host, work on the chip with its communication. The first part of every
prediction.

Only the work changes with the chip. Scaling the host's share by chip specifications is the costliest mistake there is:
over 648 measured pairs of small-batch jobs it takes the mean error from 34% to 84%. Where no counter tells how long a
chip waits, the whole step is work: the exponents of the chip model were learned from whole steps, waiting included.

What a wait for data says of the loader, and what the loader does to a step that takes another time:

    the host's: T = rest + wait     handed over: T = rest + wait · load     overlapped: T = (rest⁴ + (L · load)⁴)^(1/4)

A loader that prefetches works while the chip does. Its time L, 1 = (1 − wait)⁴ + L⁴, then hides behind the step, and a
wait of 1% may be the tip of a loader that takes 45% of the step, with which a chip of twice the speed would not be
twice as fast. It may as well be what handing over a batch takes, however fast the loader is. The less a chip waits, the
likelier is the second. Where nobody measured what an idle chip waits for, it may be data or the host.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.transfer import latency
from rightpool.profiles.consistency import SLACK
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field
from rightpool.profiles.shares import ATTAINABLE

# Of the share for which a chip waits, as measured.
MEASURED_HOST_SD: Final = 0.03
# A step that were nothing but waiting would have no length on a faster chip.
LEAST_WORK: Final = 0.02
# SMs that are occupied while their arithmetic units do next to nothing wait for memory: gathers, scatters, embedding
# bags, whose integer units make addresses. From the first to the second share of the busy time that SMs are active, and
# below the first to the second closeness to a roof of arithmetic. On an H200 such programs reached 3 to 8%, and
# those that compute 11% at least.
_OCCUPIED: Final = (0.5, 0.7)
_COMPUTES: Final = (0.08, 0.11)

# A wait of this share of the step is as likely the handing over of batches as the tip of a loader.
HAND_OVER: Final = 0.02
# How likely idle chips of which nobody knows what they wait for wait for data.
WAITS_FOR_DATA: Final = 0.25

_NAN: Final = math.nan
_FIELDS: Final = (
    Field.CHIP_BUSY,
    Field.EXPOSED_COMMUNICATION,
    Field.INPUT_WAIT,
    Field.COMPUTE_ACTIVE,
    Field.MEMORY_BANDWIDTH,
    Field.MATRIX_ACTIVE,
    Field.FP32_ACTIVE,
    Field.FP64_ACTIVE,
    Field.FP16_ACTIVE,
)


@value_object
class StepShares:
    """Shares of one step of each job, 0–1; input + host + work = 1."""

    input: Floats
    """The chip waits for data."""
    host: Floats
    """The chip waits for the host for another reason; or for itself, where its counters show that."""
    work: Floats
    """The rest: work on the chip, and communication that nothing hides."""
    unsplit: Floats
    """The part of host that may be a wait for data: nothing tells."""
    exposed: Floats
    """Communication that nothing hides, a part of work; NaN where not measured, 0 on one chip."""
    host_sd: Floats
    """Standard deviation of host; what is not host is work."""
    sm_active: Floats
    """Demand for arithmetic over the step: activity of SMs, or of their arithmetic units where SMs wait for memory;
    NaN where not measured, as below."""
    memory_active: Floats
    """Activity of the memory interface."""
    weight: Floats
    """Compute weight: 0 bound by memory bandwidth, 1 by arithmetic; from matrix and memory activity."""
    busy_known: Bools
    """Whether chip activity was measured."""
    comm_known: Bools
    """Whether communication was."""
    counted: Bools
    """Whether counters show what the job demands of arithmetic units and memory."""
    awaits_memory: Bools
    """Whether SMs wait for memory while they are active, so that their activity is no demand for arithmetic."""


def step_shares(profiles: Sequence[Profile | None], chips: Ints) -> StepShares:
    """The shares of each job's step on so many chips, where its profile was taken. What is not measured is not zero."""
    rows = [_measured(profile) for profile in profiles]
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(_FIELDS))
    # A profile leaves out what contradicts itself. Beyond what a share can be, nothing was measured.
    possible = (table >= -SLACK) & (table <= 1.0 + SLACK)
    busy, exposed, wait, active, memory, matrix, *pipes = np.clip(np.where(possible, table, _NAN).T, 0.0, 1.0)
    exposed = np.where(chips > 1, exposed, 0.0)
    busy_known, comm_known = ~np.isnan(busy), ~np.isnan(exposed)
    # Collectives keep a chip busy; what goes over the host reaches beyond that.
    occupied = np.fmax(busy, exposed)
    idle = np.where(busy_known, 1.0 - occupied, 0.0)
    wait_known = ~np.isnan(wait)
    waiting = np.where(wait_known, wait, 0.0)
    data = np.where(busy_known, np.minimum(waiting, idle), np.minimum(waiting, 1.0 - LEAST_WORK))
    host = np.maximum(idle - data, 0.0)
    unsplit = np.where(wait_known, 0.0, np.maximum(host - MEASURED_HOST_SD, 0.0))
    counted = busy_known & ~np.isnan(active) & ~np.isnan(memory) & (active + memory > 0.0)
    # While communication is exposed, the units wait for links: that is no latency.
    linked = np.where(comm_known, exposed, 0.0)
    host = host + np.where(counted, latency(occupied - linked, active, linked), 0.0)
    host = np.minimum(host, 1.0 - LEAST_WORK - np.minimum(data, 1.0 - LEAST_WORK))
    data = np.minimum(data, 1.0 - LEAST_WORK)
    both = matrix + memory
    computing, awaiting = _awaiting(occupied, active, matrix, pipes)
    return StepShares(
        input=data,
        host=host,
        work=1.0 - data - host,
        unsplit=np.minimum(unsplit, host),
        exposed=np.where(comm_known, np.minimum(exposed, 1.0 - data - host - LEAST_WORK / 2), _NAN),
        host_sd=np.where(busy_known, MEASURED_HOST_SD, 0.0),
        sm_active=np.where(awaiting > 0.0, active + awaiting * (computing - active), active),
        memory_active=memory,
        weight=np.where(both > 0.0, matrix / np.where(both > 0.0, both, 1.0), _NAN),
        busy_known=busy_known,
        comm_known=comm_known,
        counted=counted,
        awaits_memory=awaiting > 0.0,
    )


def _awaiting(busy: Floats, active: Floats, matrix: Floats, pipes: Sequence[Floats]) -> tuple[Floats, Floats]:
    """How near arithmetic comes to what the chip sustains, and from 0 to 1 how surely SMs wait for memory; 0 where not
    all of it is counted."""
    known = ~np.isnan(busy + active + matrix + pipes[0]) & (busy > 0.0)
    working = np.where(known, busy, 1.0)
    computing = np.where(known, np.fmax.reduce([matrix, *pipes]) / ATTAINABLE, 0.0)
    occupied = np.interp(np.where(known, active, 0.0) / working, _OCCUPIED, (0.0, 1.0))
    idle = np.interp(computing / working, _COMPUTES, (1.0, 0.0))
    return computing, np.where(known, occupied * idle, 0.0)


def work_share(profile: Profile | None, chips: int) -> float | None:
    """The share of the step that is work on so many chips; None where no counter tells it from waiting."""
    shares = step_shares([profile], np.array([chips], dtype=np.int64))
    return float(shares.work[0]) if shares.busy_known[0] else None


def _measured(profile: Profile | None) -> tuple[float, ...]:
    if profile is None:
        return (_NAN,) * len(_FIELDS)
    readings = profile.readings
    return tuple(_NAN if (reading := readings.get(field)) is None else reading.value for field in _FIELDS)


@value_object
class Loading:
    """What the loader does to the steps of some rows, in units of the step now, over all that it may be."""

    whole: Floats
    """Log of the step, loading included."""
    slope: Floats
    """d log(step) / d log(rest): root of its mean square."""
    variance: Floats
    """Of the log of the step, from what the loader may be alone."""


def loader_chances(shares: StepShares) -> Floats:
    """How likely each of the three forms is for each job: a row a form."""
    wait = shares.input + shares.unsplit
    data = np.where(shares.unsplit > 0.0, WAITS_FOR_DATA, 1.0)
    handed = HAND_OVER / (HAND_OVER + wait)
    return np.array([1.0 - data, data * handed, data * (1.0 - handed)])


def forms(shares: StepShares, job: Ints, rest: Floats, load: Floats) -> tuple[Floats, Floats]:
    """The step in each of the three forms, and d log(step) / d log(rest): a row a form.

    rest: the step without its loading. load: how much more each loader has to load for it.
    """
    unsplit = shares.unsplit[job]
    wait = shares.input[job] + unsplit
    alone = np.maximum(rest - unsplit, 1e-9)  # of which nothing can be loading
    # With as much to load as now, what may be the host's stays. Only more to load, or less, changes it.
    measured = unsplit == 0.0
    base, now = np.where(measured, alone, rest), np.where(measured, 0.0, 1.0)
    loader = (1.0 - _fourth(1.0 - wait)) * (_fourth(load) - now)
    overlapped = np.maximum(_fourth(base) + loader, _fourth(alone))
    times = np.array([alone + wait, alone + wait * load, np.sqrt(np.sqrt(overlapped))])
    slopes = rest * np.array([1.0 / times[0], 1.0 / times[1], np.minimum(base**3 / overlapped, 1.0 / alone)])
    return times, slopes


def loaded(shares: StepShares, chances: Floats, job: Ints, rest: Floats, load: Floats) -> Loading:
    """The steps, over the forms with these chances of each job; arguments as of `forms`."""
    whole, slope, variance = np.log(rest), np.ones(len(rest)), np.zeros(len(rest))
    rows = np.flatnonzero(shares.input[job] + shares.unsplit[job] > 0.0)
    if rows.size:
        own = job[rows]
        times, slopes = forms(shares, own, rest[rows], load[rows])
        chance, logs = chances[:, own], np.log(times)
        mean = (chance * logs).sum(axis=0)
        whole[rows] = mean
        slope[rows] = np.sqrt((chance * slopes**2).sum(axis=0))
        variance[rows] = (chance * (logs - mean) ** 2).sum(axis=0)
    return Loading(whole, slope, variance)


def _fourth(values: Floats) -> Floats:
    """By products: numpy's powers took a quarter of what a fleet's evaluation takes."""
    squared = values * values
    power: Floats = squared * squared
    return power
