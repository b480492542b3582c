"""The step model: where a step's time goes now, the chip model between chips, and what size and links do to it."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.chip_data import shipped
from rightpool.prediction.chip_model import STATIC_RULE, ChipModel, Comparison
from rightpool.prediction.columns import Floats
from rightpool.prediction.features import Features
from rightpool.prediction.machines import Machines
from rightpool.prediction.precision import CLASSES, HALF, SINGLE, UNKNOWN_PRECISION, peak
from rightpool.prediction.predictor import Destinations, Missing, Origin, Prediction
from rightpool.prediction.premises import described
from rightpool.prediction.size_scales import SizeScales, shipped_sizes
from rightpool.prediction.step_time import SizeModel, growth, step_times
from rightpool.prediction.transfer import COUNTED, WEIGHT_SHIFT, Transfer, eased, job_speeds

# A host of another class under a step that waits for its host half of the time or more; less where it waits less.
OTHER_HOST_SD: Final = 0.15
HOST_MATTERS: Final = 0.10

# A rate on another chip, brought to the size of now.
OTHER_CHIP_SD: Final = 0.03

# Whatever was seen elsewhere, a chip is not further from what is known of it than this.
FURTHEST: Final = 3.0

# Of how much faster arithmetic is, what a job gains by it where no counter tells: the static rule at one bandwidth.
ARITHMETIC: Final = STATIC_RULE[0] + STATIC_RULE[2]
ARITHMETIC_SD: Final = 0.25


# The model is taken to be no surer than this, and what a measurement says against it within so many of the
# measurement's standard deviations is taken for noise.
MODEL_SD: Final = 0.05
EXPLAINED: Final = 2.0


class StepModelPredictor:
    """The present implementation of `Predictor`. Without a chip model or scales of sizes it has those that ship."""

    __slots__ = ("_among", "_chips", "_sizes")

    version: Final = "step-model-5"

    def __init__(self, chips: ChipModel | None = None, sizes: SizeScales | None = None) -> None:
        self._chips, self._sizes = chips or shipped(), sizes or shipped_sizes()
        self._among: tuple[list[Accelerator], Transfer] | None = None  # of the last call: a fleet's chips seldom change

    def of_fleet(self, experience: Sequence[Comparison]) -> "StepModelPredictor":
        """The same model after what the fleet's own moves have shown."""
        return type(self)(self._chips.updated(experience), self._sizes) if experience else self

    def predict(self, jobs: Features, machines: Machines, targets: Destinations) -> Prediction:
        """Every target's throughput."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return self._predict(jobs, machines, targets)

    def _predict(self, jobs: Features, machines: Machines, targets: Destinations) -> Prediction:
        job, home, shares = targets.job, jobs.pool[targets.job], jobs.shares
        tables = self._tables([pool.accelerator for pool in machines.pools])
        speed, doubt = _speeds(jobs, tables, targets)
        elsewhere = targets.pool != home
        sizes = SizeModel.of(jobs, machines, self._sizes)
        pools_seen = self._several(jobs, machines, targets, sizes, tables, speed, doubt)
        without_fault, fault_sd = _without_fault(jobs, targets)
        speed = np.where(elsewhere, speed, 0.0) + without_fault
        doubt = np.hypot(np.where(elsewhere, doubt, 0.0), fault_sd)
        other_host = (
            elsewhere
            & (shares.host[job] + shares.input[job] > HOST_MATTERS)
            & (machines.host[targets.pool] != machines.host[home])
        )
        steps = step_times(jobs, machines, sizes, targets, np.exp(-speed))
        noise = jobs.noise[job]
        hosted = OTHER_HOST_SD * np.minimum(2.0 * (shares.host[job] + shares.input[job]), 1.0)
        chip, host = doubt * steps.chip_part, shares.host_sd[job] * steps.host_part
        variance = noise**2 + chip**2 + host**2 + steps.sd**2 + np.where(other_host, hosted**2, 0.0)
        median = jobs.rate[job] * growth(jobs, targets) / np.exp(steps.log)
        sd, shared = np.sqrt(variance), noise**2

        missing = np.where(np.isnan(speed), Missing.SPECIFICATIONS, Missing.NOTHING)
        before = ~np.isnan(targets.seen)
        origin = np.where(before, Origin.MEASURED_BEFORE, Origin.PREDICTED)
        seen, sd_seen = _with_experience(targets, median, variance - noise**2)
        median, sd = np.where(before, seen, median), np.where(before, np.hypot(sd_seen, noise), sd)
        current = targets.current
        healthy = np.where(current & (without_fault > 0.0), median, np.nan)
        origin = np.where(current, Origin.MEASURED_NOW, origin)
        median, sd = np.where(current, jobs.rate[job], median), np.where(current, noise, sd)
        shared = np.where(current, noise**2, shared)
        missing = np.where(before | current, Missing.NOTHING, missing)
        blind = np.isnan(jobs.rate[job]) & ~before
        missing = np.where(blind, np.where(jobs.profiled[job], Missing.THROUGHPUT, Missing.PROFILE), missing)
        absent = missing != Missing.NOTHING
        for column in (median, sd, shared):
            column[absent] = np.nan
        return Prediction(
            median=median,
            sd=sd,
            shared=shared,
            healthy=healthy,
            missing=missing.astype(np.int8),
            origin=origin.astype(np.int8),
            describe=described(
                jobs, machines, targets, origin.astype(np.int8), chip, host, other_host, pools_seen, self._chips
            ),
        )

    def _tables(self, chips: list[Accelerator]) -> Transfer:
        if self._among is None or self._among[0] != chips:
            self._among = (chips, Transfer.among(chips, self._chips))
        return self._among[1]

    def _several(
        self,
        jobs: Features,
        machines: Machines,
        targets: Destinations,
        sizes: SizeModel,
        tables: Transfer,
        speed: Floats,
        doubt: Floats,
    ) -> dict[int, int]:
        """Speeds of jobs that ran on several kinds of chips, in place; on how many, by job.

        Their rates are brought to the size of now by what is known of how they scale.
        """
        accelerators = [pool.accelerator for pool in machines.pools]
        seen = jobs.seen
        other = np.flatnonzero(machines.chip[seen.pool] != machines.chip[jobs.pool[seen.job]])
        if not other.size:
            return {}
        job = seen.job[other]
        rows = Destinations.measured(seen, other)
        usual, _ = _speeds(jobs, tables, rows)
        scaled = step_times(jobs, machines, sizes, rows, np.exp(-usual))
        expected = np.log(jobs.rate[job] * growth(jobs, rows)) - scaled.log
        # What the rate there says of the chip: the speed that was expected of it, and what it was off by.
        off = (np.log(seen.rate[other]) - expected) / np.maximum(scaled.chip_part, 0.1)
        gained = usual + np.clip(off, -FURTHEST, FURTHEST)
        found: dict[int, int] = {}
        order = np.argsort(job, kind="stable")
        bounds = np.flatnonzero(np.diff(job[order], prepend=-1))
        for number, start in enumerate(bounds):
            end = bounds[number + 1] if number + 1 < len(bounds) else len(order)
            which = order[start:end]
            own = int(job[which[0]])
            by_chip: dict[str, float] = {}
            for row in which:
                if np.isfinite(gained[row]):
                    by_chip[accelerators[rows.pool[row]].key] = float(gained[row])
            home = accelerators[jobs.pool[own]]
            chips = {accelerators[pool].key: accelerators[pool] for pool in rows.pool[which]}
            kind = _likely(jobs, own, [home, *chips.values()])
            places = np.flatnonzero(targets.job == own)
            if kind is None or not by_chip or not places.size:
                continue
            there = [accelerators[pool] for pool in targets.pool[places]]
            usable = [number for number, chip in enumerate(there) if peak(chip, kind) is not None]
            one = Comparison((home, *(chips[key] for key in by_chip)), kind, (0.0, *by_chip.values()), OTHER_CHIP_SD)
            # Against the rate of now, which is what it is.
            median, covariance = job_speeds(self._chips, one, [home, *(there[number] for number in usable)])
            variance = covariance.diagonal() + covariance[0, 0] - 2.0 * covariance[0]
            at = places[usable]
            speed[at] = (median - median[0])[1:]
            doubt[at] = np.minimum(np.sqrt(np.maximum(variance[1:], 0.0) + OTHER_CHIP_SD**2), doubt[at])
            found[own] = 1 + len(by_chip)
        return found


def _speeds(jobs: Features, tables: Transfer, targets: Destinations) -> tuple[Floats, Floats]:
    """Log of how much faster the work is on each target's chip, from one pool alone, and its standard deviation."""
    job, shares = targets.job, jobs.shares
    kind, home, pool = jobs.kind[job], jobs.pool[job], targets.pool
    kind = np.where(targets.other_program, UNKNOWN_PRECISION, kind)
    speed = tables.log[kind, home, pool]
    weight = shares.weight[job]
    shift = WEIGHT_SHIFT * (weight - 0.5) * (tables.arithmetic[kind, home, pool] - tables.bandwidth[home, pool])
    speed = np.where(np.isnan(weight), speed, speed + shift)
    counted = np.flatnonzero(shares.counted[job])
    if counted.size:
        own = job[counted]
        speed[counted] = tables.by_counters(
            kind[counted], home[counted], pool[counted], shares.sm_active[own], shares.memory_active[own]
        )
    # What counters leave of doubt was learned from jobs whose SMs compute.
    known = np.where(shares.counted & ~shares.awaits_memory, 2, np.where(shares.busy_known, 1, 0))[job]
    return speed, np.sqrt(tables.variances[known, kind, home, pool])


def _without_fault(jobs: Features, targets: Destinations) -> tuple[Floats, Floats]:
    """Log of how much faster the work is where no fault holds down clocks as it does now, with its standard deviation:
    on other pools, and where jobs are, were their chips healthy. Another size in the same pool may meet the same fault.
    """
    job, shares = targets.job, jobs.shares
    log, sd = np.zeros(len(job)), np.zeros(len(job))
    away = (targets.pool != jobs.pool[job]) | targets.current
    rows = np.flatnonzero(away & (jobs.throttling[job] > 0.0))
    if rows.size:
        own = job[rows]
        fault, counted = jobs.throttling[own], shares.counted[own]
        exact = eased(shares.sm_active[own], shares.memory_active[own], fault)
        log[rows] = np.where(counted, exact, ARITHMETIC * fault)
        share = log[rows] / fault
        sd[rows] = np.hypot(share * jobs.throttling_sd[own], ARITHMETIC_SD * fault * np.where(counted, COUNTED, 1.0))
    return log, sd


def _likely(jobs: Features, job: int, chips: list[Accelerator]) -> int | None:
    """The class of precision that a job's comparison counts in: its own, else the likeliest that all its chips have."""
    kind = int(jobs.kind[job])
    if kind != UNKNOWN_PRECISION:
        return kind if all(peak(chip, kind) is not None for chip in chips) else None
    return next((one for one in (HALF, SINGLE, len(CLASSES) - 1) if all(peak(chip, one) for chip in chips)), None)


def _with_experience(targets: Destinations, median: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Rates and standard deviations of their logs, from what was measured there before and from the model. variance: of
    the log of the model's ratio to the rate now."""
    weight = measured_weight(np.log(targets.seen), targets.seen_sd, np.log(median), variance)
    known = np.where(np.isnan(median), targets.seen, median)
    log = weight * np.log(targets.seen) + (1.0 - weight) * np.log(known)
    return np.exp(log), targets.seen_sd * np.sqrt(weight)


def measured_weight(measured: Floats, sd: Floats, predicted: Floats, variance: Floats) -> Floats:
    """How much the measurement counts, from 0 to 1; the prediction counts the rest.

    measured, predicted: logarithms of the ratio. sd: standard deviation of the measured one. variance: of the predicted
    one; NaN where nothing is predicted. What differs from the prediction by more than the measurement's doubt can
    explain is of the pool, of which the model knows nothing, and the model is the less sure of itself there.
    """
    surprise = (measured - predicted) ** 2 - (EXPLAINED * sd) ** 2
    model = np.maximum(np.maximum(variance, MODEL_SD**2), surprise)
    weight: Floats = np.where(np.isnan(variance) | np.isnan(predicted), 1.0, model / (model + sd**2))
    return weight
