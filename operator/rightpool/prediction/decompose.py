"""Where the time of a step goes now: host, exposed communication, chip. The first step of every prediction.

Only the chip's share changes with the chip. Scaling the host's share by chip specifications is the costliest mistake
there is: over 648 measured pairs of small-batch jobs it takes the mean error from 34% to 84%.
"""

import math
from dataclasses import dataclass
from typing import Final

from rightpool.prediction.layout import Layout
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field
from rightpool.profiles.shares import decompose as split

# Without both counters a job may be anything between bandwidth-bound and compute-bound.
UNKNOWN_WEIGHT: Final = 0.5
UNKNOWN_WEIGHT_SD: Final = 0.25
MEASURED_WEIGHT_SD: Final = 0.10

# Without a busy counter: most training steps wait little for the host, some wait for most of the step.
UNKNOWN_HOST: Final = 0.10
UNKNOWN_HOST_SD: Final = 0.15
MEASURED_HOST_SD: Final = 0.03

# Weak scaling where no communication was observed: log of the efficiency lost. One chip to eight of a node keeps 0.905,
# each doubling within one fabric costs 1.8% ± 2%; the rest of the way to 0.905 is the first doubling. There programs
# differ far more than that: of 66 measured ones the middle half keeps 0.73–0.99 on eight chips.
DOUBLING_LOSS: Final = 0.018
DOUBLING_SD: Final = 0.02
FIRST_DOUBLING_LOSS: Final = -math.log(0.905) - 2 * DOUBLING_LOSS
FIRST_DOUBLING_SD: Final = 0.15
ACROSS_GROUPS_SD: Final = 0.25
# A step that were nothing but communication would have no length on one chip.
LEAST_WORK: Final = 0.01


@dataclass(frozen=True, slots=True)
class StepShares:
    """Shares of one step, 0–1, host + comm + chip = 1.

    host: what the chip waits for that is not another chip: input, Python, launches. input: the part of host that waits
    for data. comm: communication that nothing hides. host_sd: standard deviation of host (what is not host is chip).
    compute_weight: 0 bound by memory bandwidth, 1 bound by arithmetic. comm_observed: False where comm is the prior.
    """

    host: float
    comm: float
    chip: float
    input: float
    host_sd: float
    comm_sd: float
    compute_weight: float
    compute_weight_sd: float
    comm_observed: bool
    basis: tuple[str, ...]


def scaling_loss(chips: int, groups: int) -> tuple[float, float]:
    """Prior of the log-efficiency that `chips` chips lose against one (≥ 0), and its standard deviation.

    groups: on how many fast links they are; more than one and the network has a say.
    """
    if chips <= 1:
        return 0.0, 0.0
    doublings = math.log2(chips)
    later = max(doublings - 1.0, 0.0)
    first = min(doublings, 1.0)
    loss = FIRST_DOUBLING_LOSS * first + DOUBLING_LOSS * later
    sd = math.hypot(FIRST_DOUBLING_SD * first, DOUBLING_SD * later)
    return loss, math.hypot(sd, ACROSS_GROUPS_SD) if groups > 1 else sd


def decompose(profile: Profile, layout: Layout) -> StepShares:
    """The shares of a step on `layout`, where the profile was taken.

    What was measured is split by profiles/shares.py. Where chip activity or communication was not, the usual share
    stands in for it, with the doubt that goes with that: what is not measured is not zero.
    """
    basis: list[str] = []
    measured = split(profile)
    busy = profile.value(Field.CHIP_BUSY)
    exposed = profile.value(Field.EXPOSED_COMMUNICATION) if layout.chips > 1 else 0.0
    comm_sd = 0.0
    if measured is not None:
        host, comm, data = measured.idle, measured.communication, measured.input
    else:
        loss = 0.0
        if exposed is None:
            loss, comm_sd = scaling_loss(layout.chips, layout.groups)
        comm = _ratio(exposed) if exposed is not None else -math.expm1(-loss)
        data = _ratio(profile.value(Field.INPUT_WAIT) or 0.0)
        host = 1.0 - _ratio(busy) if busy is not None else max(UNKNOWN_HOST, data)
        host = min(host, 1.0 - comm)
        data = min(data, host)
    comm = min(comm, 1.0 - LEAST_WORK)
    if layout.chips > 1:
        basis.append("usual communication" if exposed is None else "measured communication")
    basis.append("chip activity unknown" if busy is None else "measured chip activity")

    weight = measured.roofline.compute_weight if measured is not None else None
    if weight is not None:
        basis.append("measured arithmetic and memory traffic")
    return StepShares(
        host=host,
        comm=comm,
        chip=max(1.0 - host - comm, 0.0),
        input=data,
        host_sd=UNKNOWN_HOST_SD if busy is None else MEASURED_HOST_SD,
        comm_sd=comm_sd,
        compute_weight=UNKNOWN_WEIGHT if weight is None else weight,
        compute_weight_sd=UNKNOWN_WEIGHT_SD if weight is None else MEASURED_WEIGHT_SD,
        comm_observed=exposed is not None,
        basis=tuple(basis),
    )


def _ratio(value: float) -> float:
    return min(max(value, 0.0), 1.0)
