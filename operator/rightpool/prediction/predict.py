"""Samples/s of a job on another placement, with an interval, before it has run there."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rightpool.api.choices import Batch
from rightpool.hardware.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.prediction.decompose import StepShares, decompose
from rightpool.prediction.estimate import Z80, Estimate, Loadings
from rightpool.prediction.layout import Layout
from rightpool.prediction.scaling import StepModel
from rightpool.prediction.transfer import Transfer, static_rule
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field

# A host of another class under a step that waits for its host.
OTHER_HOST_SD: Final = 0.15
HOST_MATTERS: Final = 0.10

# Where the job itself was measured on the placement before, only drift is in doubt.
SEEN_BEFORE_SD: Final = 0.05

WINDOW: Final = "window"  # the doubt that every prediction from one profile shares
HOST: Final = "host"

_INSTANCE_LABELS: Final = ("node.kubernetes.io/instance-type", "cloud.google.com/machine-family")


class Missing(StrEnum):
    """What a prediction lacks."""

    PROFILE = "Profile"
    THROUGHPUT = "Throughput"
    SPECIFICATIONS = "Specifications"


@dataclass(frozen=True, slots=True)
class Unpredictable:
    """Why nothing can be said about a placement."""

    reason: Missing
    message: str


@dataclass(frozen=True, slots=True)
class _PoolSpeed:
    slowdown: float
    chip_sd: float
    own_sd: float
    source: str  # names the shared doubt about this pool's chips
    basis: tuple[str, ...]


class Predictor:
    """One job's profile on one placement, ready to be asked about many others.

    transfer: the rule between chips; the static one until a learned one takes its place. seen: samples/s that this job
    was measured at elsewhere, which is worth more than any rule.
    """

    __slots__ = ("_measured", "_model", "_seen", "_shares", "_source", "_source_pool", "_speeds", "_transfer")

    def __init__(
        self,
        profile: Profile,
        source: tuple[Placement, Pool],
        batch: Batch,
        *,
        transfer: Transfer = static_rule,
        seen: Mapping[Placement, float] | None = None,
    ) -> None:
        """profile must hold SAMPLES_PER_SECOND above 0; `predict` checks that."""
        self._source, self._source_pool = source
        layout = Layout.of(self._source, self._source_pool)
        self._shares = decompose(profile, layout)
        self._model = StepModel(self._shares, layout, self._source_pool, batch)
        self._measured = measured(profile)
        self._transfer = transfer
        self._seen = seen or {}
        self._speeds: dict[str, _PoolSpeed | Unpredictable] = {}

    @property
    def current(self) -> Estimate:
        """What was measured, with the window's own noise."""
        return self._measured

    @property
    def shares(self) -> StepShares:
        """Where the step's time goes now."""
        return self._shares

    def at(self, placement: Placement, pool: Pool) -> Estimate | Unpredictable:
        """Samples/s on `placement`, which is on `pool`."""
        if pool.name == self._source.pool and placement == self._source:
            return self._measured
        if self._seen and (seen := self._seen.get(placement)) is not None:
            return Estimate(seen, SEEN_BEFORE_SD, ("measured there before",))
        speed = self._speed(pool)
        if isinstance(speed, Unpredictable):
            return speed
        step = self._model.at(Layout.of(placement, pool), pool, speed.slowdown)
        median = self._measured.median * self._growth(placement) / step.time
        noise, own = self._measured.sd, speed.own_sd
        if speed.slowdown == 1.0 and speed.chip_sd == 0.0:
            sd = math.sqrt(noise * noise + own * own + step.sd * step.sd)
            return Estimate(median, sd, speed.basis, self._measured.shared)
        chip = speed.chip_sd * step.chip_part
        host = self._shares.host_sd * step.host_part
        sd = math.sqrt(noise * noise + chip * chip + host * host + own * own + step.sd * step.sd)
        shared: Loadings = (*self._measured.shared, (speed.source, chip), (HOST, host))
        return Estimate(median, sd, speed.basis, shared)

    def one_chip(self, pool: Pool) -> float | None:
        """Median samples/s on one chip of `pool`, the measure of scaling efficiency. None where not predictable.

        Where one chip was measured, that is what counts: an efficiency that is guessed differently from either side
        would send the job back and forth.
        """
        for placement, rate in self._seen.items():
            if placement.pool == pool.name and placement.chips == 1:
                return rate
        speed = self._speed(pool)
        if isinstance(speed, Unpredictable):
            return None
        alone = Layout(1, 1)
        growth = self._growth(Placement(pool.name, 1, 1))
        return self._measured.median * growth / self._model.at(alone, pool, speed.slowdown).time

    def _growth(self, placement: Placement) -> float:
        """Samples a step against now: PerChip grows the batch with the chips, Global keeps it."""
        return 1.0 if self._model.keeps_batch else placement.chips / self._source.chips

    def _speed(self, pool: Pool) -> _PoolSpeed | Unpredictable:
        known = self._speeds.get(pool.name)
        if known is None:
            known = self._speeds[pool.name] = self._judge(pool)
        return known

    def _judge(self, pool: Pool) -> _PoolSpeed | Unpredictable:
        here = self._source_pool
        if pool.name == here.name:
            return _PoolSpeed(1.0, 0.0, 0.0, "chips of " + pool.name, self._shares.basis)
        shares = self._shares
        speed = self._transfer(here.accelerator, pool.accelerator, shares.compute_weight, shares.compute_weight_sd)
        if speed is None:
            return Unpredictable(
                Missing.SPECIFICATIONS,
                f"{here.accelerator.key} and {pool.accelerator.key} have no precision in common in the catalog, "
                "or one has no memory bandwidth there",
            )
        other_host = shares.host > HOST_MATTERS and _host_class(pool) != _host_class(here)
        basis = (*shares.basis, speed.basis)
        return _PoolSpeed(
            slowdown=math.exp(-speed.log),
            chip_sd=speed.sd,
            own_sd=OTHER_HOST_SD if other_host else 0.0,
            source="chips of " + pool.name,
            basis=(*basis, "another kind of host") if other_host else basis,
        )


def predict(
    profile: Profile | None,
    source: tuple[Placement, Pool],
    target: tuple[Placement, Pool],
    *,
    batch: Batch,
    transfer: Transfer = static_rule,
) -> Estimate | Unpredictable:
    """Samples/s on `target` of the job whose profile was taken on `source`.

    The current placement is not predicted: it is what was measured, with the noise of its own window.
    """
    gap = unusable(profile)
    if gap is not None:
        return gap
    assert profile is not None
    return Predictor(profile, source, batch, transfer=transfer).at(*target)


def unusable(profile: Profile | None) -> Unpredictable | None:
    """What a profile lacks for a prediction; None where it suffices."""
    if profile is None:
        return Unpredictable(Missing.PROFILE, "nothing has been measured yet")
    rate = profile.value(Field.SAMPLES_PER_SECOND)
    if rate is None or not rate > 0.0 or not math.isfinite(rate):
        return Unpredictable(Missing.THROUGHPUT, "samples per second are not measured")
    return None


def measured(profile: Profile) -> Estimate:
    """The window's throughput: its median, and the spread of its readings as noise."""
    reading = profile.readings[Field.SAMPLES_PER_SECOND]
    noise = 0.0
    if 0.0 < reading.low < reading.high:
        noise = math.log(reading.high / reading.low) / (2.0 * Z80)
    return Estimate(reading.value, noise, ("measured now",), ((WINDOW, noise),))


def _host_class(pool: Pool) -> str:
    """What kind of host the chips sit in: the instance type where it is known, else the accelerator stands for it."""
    for label in _INSTANCE_LABELS:
        kind = pool.node_selector.get(label) or pool.labels.get(label)
        if kind:
            return kind
    return pool.accelerator.key
