"""The roofline model of the chips that a job could be on, and the job on them.

What is not known is left out, and a note says why.

Source of the model: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rightpool.api.value_object import value_object
from rightpool.api.wording import short_place
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.pool import Pool
from rightpool.planning.offers.candidate import Candidate
from rightpool.prediction.precision import HALF, PLAIN, UNKNOWN_PRECISION, class_of, falls_back, peak
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field

_CLASSES: Final = ("half precision", "single precision", "8 bits", "plain fp32")


@value_object
class Roof:
    """What one chip of a pool can do at most: min(flops, bandwidth · intensity)."""

    pool: str
    """The AcceleratorPool's name."""
    accelerator: str
    """The catalog's key of the chip."""
    flops: float
    """FLOP/s in the job's class of precision."""
    bandwidth: float
    """Bytes a second."""
    measured: bool
    """Whether by a calibration of the pool."""

    @property
    def ridge(self) -> float:
        """The intensity from which on it is flat: FLOP for each byte."""
        return self.flops / self.bandwidth

    def at(self, intensity: float) -> float:
        """FLOP/s at most at this intensity."""
        return min(self.flops, self.bandwidth * intensity)


@value_object
class RooflinePoint:
    """What the job does on one chip, its waiting included."""

    pool: str
    """The name of the AcceleratorPool that the chip is of."""
    where: str
    """The placement, for a reader."""
    intensity: float
    """FLOP for each byte of memory traffic."""
    flops: float
    """FLOP/s."""
    low: float
    """See `high`."""
    high: float
    """80% interval of flops; both are flops where it was measured."""
    predicted: bool
    """Whether it is another chip than the job has."""


@value_object
class RooflinePlot:
    """The chips of the pools that the job could be on, and the job on them."""

    precision: str
    """The job's class of precision, for a reader."""
    roofs: tuple[Roof, ...]
    """One a pool, of those whose chips have figures."""
    points: tuple[RooflinePoint, ...]
    """The job's own first."""
    notes: tuple[str, ...]
    """What is left out, and why."""


def roofline_of(
    profile: Profile | None, current: Candidate | None, candidates: Sequence[Candidate], pools: Mapping[str, Pool]
) -> RooflinePlot:
    """The job on its own chip by its counters, and where it is predicted at the same size on others.

    Elsewhere a unit of work is taken to need the same FLOP and bytes, so points differ in height alone.
    """
    precision = None if profile is None else profile.traits.precision
    known = class_of(precision)
    kind = HALF if known == UNKNOWN_PRECISION else known
    home = None if current is None else pools.get(current.placement.pool)
    predicted = [] if current is None else list(_same_size(current, candidates))
    names = [] if home is None else [home.name]
    names += [each.placement.pool for each in predicted if each.placement.pool not in names]
    roofs = tuple(roof for name in names if name in pools and (roof := _roof(pools[name], kind)) is not None)
    words = _CLASSES[kind] if precision is None or known == UNKNOWN_PRECISION else precision
    point, note = _own_point(profile, current, home, kind)
    if point is None or current is None:
        return RooflinePlot(words, roofs, (), (note,))
    if known == UNKNOWN_PRECISION:
        return RooflinePlot(words, roofs, (), ("the program's precision is not known: its point is left out",))
    points = [point, *_elsewhere(point, current, predicted)]
    return RooflinePlot(words, roofs, tuple(points), ())


def roof_of(pool: Pool, precision: str | None) -> Roof | None:
    """Of one chip of a pool; None where the precision, or a figure of the chip, is not known."""
    kind = class_of(precision)
    return None if kind == UNKNOWN_PRECISION else _roof(pool, kind)


def _same_size(current: Candidate, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """The first candidate of each other pool with as many chips."""
    seen = {current.placement.pool}
    for each in candidates:
        place = each.placement
        if place.chips == current.placement.chips and place.pool not in seen and each.throughput is not None:
            seen.add(place.pool)
            yield each


def _roof(pool: Pool, kind: int) -> Roof | None:
    chip = pool.accelerator
    flops = peak(chip, kind)
    if flops is None or chip.memory_bandwidth <= 0.0:
        return None
    return Roof(pool.name, chip.key, flops, chip.memory_bandwidth, chip.measured is not None)


def _own_point(
    profile: Profile | None, current: Candidate | None, home: Pool | None, kind: int
) -> tuple[RooflinePoint | None, str]:
    if profile is None or current is None or home is None:
        return None, "the job was not measured: its point is left out"
    active, traffic = _arithmetic(profile, home.accelerator, kind), profile.value(Field.MEMORY_BANDWIDTH)
    flops = peak(home.accelerator, kind)
    if flops is None:
        return None, f"{home.accelerator.key} has no figure for this precision: the job's point is left out"
    if active is None or traffic is None:
        lacking = " and ".join(
            name for name, value in (("arithmetic units", active), ("memory traffic", traffic)) if value is None
        )
        return None, f"no counter of {lacking}: the job's point is left out"
    if active <= 0.0 or traffic <= 0.0:
        return None, "its counters show no arithmetic or no memory traffic: a logarithmic axis has no place for it"
    rate = min(active, 1.0) * flops
    intensity = rate / (min(traffic, 1.0) * home.accelerator.memory_bandwidth)
    return RooflinePoint(home.name, short_place(current.placement), intensity, rate, rate, rate, predicted=False), ""


def _arithmetic(profile: Profile, chip: Accelerator, kind: int) -> float | None:
    """Activity of the units that compute in this precision."""
    plain = kind == PLAIN or falls_back(chip, kind)
    return profile.value(Field.FP32_ACTIVE if plain else Field.MATRIX_ACTIVE)


def _elsewhere(own: RooflinePoint, current: Candidate, predicted: Sequence[Candidate]) -> Iterator[RooflinePoint]:
    now = current.throughput
    if now is None or now.median <= 0.0:
        return
    for each in predicted:
        there = each.throughput
        if there is not None:
            place, scale = each.placement, own.flops / now.median
            low, high = scale * there.low, scale * there.high
            yield RooflinePoint(
                place.pool, short_place(place), own.intensity, scale * there.median, low, high, predicted=True
            )
