"""What another size, and other links, do to a step.

T = T_host + (T_chip^γ + T_sync^γ)^(1/γ). γ says how well communication hides behind computation: 1 not at all, large
entirely. T_sync is a ring all-reduce: 2(r−1)/r bytes per byte over the fast
link among the r chips of a group, 2(m−1)/m over the slow one between m groups. Times are in units of the step now.

Growth within one fabric is shrunk towards the usual loss of 1.8% a doubling, four parts to one: one observation of one
size says little about a slope.
"""

import math
from dataclasses import dataclass
from typing import Final

from rightpool.api.choices import Batch
from rightpool.hardware.pool import Pool
from rightpool.prediction.decompose import (
    ACROSS_GROUPS_SD,
    DOUBLING_LOSS,
    DOUBLING_SD,
    StepShares,
    scaling_loss,
)
from rightpool.prediction.layout import Layout

# Traces of three models on two and four chips, on fast links and slow ones, imply 1.3 to 2.2 (median 1.9). The broad
# prior's mean of 2.5 takes a little exposed communication for a lot of hidden one: another link is then off by 19% in
# the median, and by 8% with this.
OVERLAP: Final = 1.8
OVERLAP_LOW: Final = 1.2
OVERLAP_HIGH: Final = 3.0
SHRINK: Final = 0.2  # weight of the physical slope against the prior's

# Two sizes of one job differ by this much in ways that no share of the step tells.
SIZE_SD: Final = 0.03

# Of what is exposed, some waits for stragglers and not for bytes: doubt for each e-fold of change in the links.
LINKS_SD: Final = 0.10

# Down to one chip, hidden collectives no longer slow the kernels beside them (−10 to +8% over twelve cases).
ONE_CHIP_SD: Final = 0.06

# Crossing from one group of chips to several for the first time: nothing observed speaks of the new fabric.
NEW_FABRIC_SD: Final = ACROSS_GROUPS_SD

# Chip time against the chip's share of the batch: exponents 0.62–0.85 were seen on one chip for 4- to 8-fold changes,
# because optimizer steps and small kernels do not shrink with the batch.
BATCH_EXPONENT: Final = 0.8
BATCH_EXPONENT_SD: Final = 0.12

# Traces do not resolve less exposed communication than this share of a step.
RESOLUTION: Final = 0.002


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step elsewhere in units of the step now. chip_part: the share of it that goes with the chip's speed (0–1).

    host_part: d log(time) / d host share. sd: of log(time), from size and links alone.
    """

    time: float
    chip_part: float
    host_part: float
    sd: float


class StepModel:
    """The step of one job on its source, ready to be asked about many targets."""

    __slots__ = ("_batch", "_pool", "_reference", "_shares", "_source", "_sync")

    def __init__(self, shares: StepShares, source: Layout, pool: Pool, batch: Batch) -> None:
        self._shares = shares
        self._source = source
        self._pool = pool
        self._batch = batch
        self._reference = source.seconds_per_byte(pool)
        self._sync: tuple[float, float, float] | None = None

    @property
    def keeps_batch(self) -> bool:
        """Whether a step has as many samples at every size."""
        return self._batch is Batch.GLOBAL

    def _hidden(self) -> tuple[float, float, float]:
        """T_sync, hidden part included, such that each of the three overlaps leaves exposed what was observed."""
        if self._sync is None:
            chip, comm = self._shares.chip, max(self._shares.comm, RESOLUTION)
            low, middle, high = (
                ((chip + comm) ** overlap - chip**overlap) ** (1.0 / overlap)
                for overlap in (OVERLAP_LOW, OVERLAP, OVERLAP_HIGH)
            )
            self._sync = (low, middle, high)
        return self._sync

    def at(self, target: Layout, pool: Pool, slowdown: float) -> StepTime:
        """The step on `target` of `pool`, whose chips take `slowdown` times as long for the same work."""
        shares, source = self._shares, self._source
        host, chip, sd = shares.host, shares.chip * slowdown, 0.0
        weak_chip = chip
        if target.chips != source.chips:
            sd = SIZE_SD
        if self._batch is Batch.GLOBAL and target.chips != source.chips:
            share = source.chips / target.chips
            chip *= share**BATCH_EXPONENT
            sd = math.hypot(sd, BATCH_EXPONENT_SD * math.log(share))
            host += shares.input * (share - 1.0)
        alone = host + chip
        if target.chips == 1:
            if source.chips > 1:
                sd = math.sqrt(sd * sd + shares.comm_sd * shares.comm_sd + ONE_CHIP_SD * ONE_CHIP_SD)
            return self._result(alone, alone, chip, slowdown, sd)
        if source.chips == 1:
            loss, loss_sd = scaling_loss(target.chips, target.groups)
            time = alone + math.expm1(loss) * (shares.host + weak_chip)
            return self._result(time, alone, chip, slowdown, math.hypot(sd, loss_sd))

        if target == source and pool is self._pool:
            stretch, growth_sd, prior = 1.0, 0.0, 0.0
        else:
            on_their_links = source.seconds_per_byte(pool)
            growth = target.seconds_per_byte(pool) / on_their_links
            doublings = math.log2(target.chips / source.chips)
            if (target.groups > 1) is (source.groups > 1):
                growth **= SHRINK
                prior = (1.0 - SHRINK) * DOUBLING_LOSS * doublings
                growth_sd = DOUBLING_SD * abs(doublings)
            else:
                prior, growth_sd = 0.0, math.hypot(NEW_FABRIC_SD, DOUBLING_SD * doublings)
            stretch = on_their_links / self._reference * growth
        if not shares.comm_observed:
            # How much is hidden can't be told from what was not seen: the usual loss, moved half way with the links.
            time = alone + shares.comm * math.sqrt(stretch)
            links_sd = shares.comm_sd if stretch != 1.0 or slowdown != 1.0 or prior != 0.0 else 0.0
            links_sd = math.hypot(links_sd, 0.5 * shares.comm * math.sqrt(stretch) * abs(math.log(stretch)) / time)
            sd = math.sqrt(sd * sd + growth_sd * growth_sd + links_sd * links_sd)
            return self._result(time * math.exp(prior), alone, chip, slowdown, sd)
        low, middle, high = self._hidden()
        time = host + _overlapped(chip, middle * stretch, OVERLAP)
        if stretch != 1.0 or chip != shares.chip:
            early = host + _overlapped(chip, low * stretch, OVERLAP_LOW)
            late = host + _overlapped(chip, high * stretch, OVERLAP_HIGH)
            overlap_sd = 0.5 * math.log(early / late)
            links_sd = LINKS_SD * math.log(stretch)
            sd = math.sqrt(sd * sd + growth_sd * growth_sd + overlap_sd * overlap_sd + links_sd * links_sd)
        return self._result(time * math.exp(prior), alone, chip, slowdown, sd)

    @staticmethod
    def _result(time: float, alone: float, chip: float, slowdown: float, sd: float) -> StepTime:
        if alone <= 0.0:
            return StepTime(time, 1.0, 0.0, sd)
        return StepTime(time, chip / alone, (1.0 - slowdown) / alone, sd)


def _overlapped(chip: float, sync: float, overlap: float) -> float:
    return float((chip**overlap + sync**overlap) ** (1.0 / overlap))
