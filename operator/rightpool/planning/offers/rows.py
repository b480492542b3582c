"""Rows: every placement of every running job in columns, which the gates of gates.py judge all at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from rightpool.api.choices import Batch, ModelState
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job, parallelism_of
from rightpool.planning.judge.outlook import outlook
from rightpool.planning.offers.shape import needs_price
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.profiles.sample import Field


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the gates take from jobs, one entry a job; NaN where not known or not declared."""

    memory: Floats
    """Bytes that each chip needs."""
    memory_measured: Bools
    """Whether that was measured; else it is declared."""
    keeps_batch: Bools
    """Whether a step has as many samples at every size."""
    steps_differ: Bools
    """Whether throughput is in steps, which have other numbers of samples at other sizes."""
    sharded: Bools
    """Whether model state may be split over the chips."""
    chips: Ints
    """Chips that the job has."""
    home: Ints
    """Its pool, a place among the machines."""
    price: Floats
    """Dollars an hour where it is."""
    needs_price: Bools
    """Whether what has no price can't be compared."""
    hourly: Floats
    """targets.maxCostPerHour."""
    per_million: Floats
    """targets.maxCostPerMillionSamples."""
    efficiency: Floats
    """targets.minScalingEfficiency."""
    utilization: Floats
    """targets.minModelFlopsUtilization."""
    work_left: Floats
    """Work that is left."""
    restart: Floats
    """Seconds of work that a move costs: the pause, and what is missing while the job starts slowly."""
    horizon: Floats
    """Seconds over which a move must pay back."""
    time_left: Floats
    """Seconds to the deadline."""
    budget_left: Floats
    """Dollars."""
    savings: Floats
    """adaptation.minSavings."""


@dataclass(frozen=True, slots=True)
class Rows:
    """One entry for each job and placement; in what is about the current placement, restart is 0."""

    numbers: Numbers
    """Of the jobs."""
    job: Ints
    """A place in `numbers`."""
    pool: Ints
    """A place among the machines."""
    chips: Ints
    """How many."""
    price: Floats
    """Dollars an hour."""
    memory: Floats
    """Bytes of a chip there."""
    home_memory: Floats
    """Bytes of a chip where the job is."""
    same_chip: Bools
    """Whether the chips are of the kind that the job has."""
    seen: Bools
    """Whether the job ran at this very placement before."""
    unsupported: Bools
    """Whether the chips there lack the precision that the job works in."""
    avoided: Bools
    """Whether it was tried and left."""
    left: Bools
    """Whether the job left it while how it scales there is only guessed."""
    rate: Floats
    """Units of work a second; NaN where it can't be predicted."""
    sd: Floats
    """Standard deviation of its log, for the rest of the job."""
    shared: Floats
    """Covariance of that with the doubt about where the job is."""
    least: Floats
    """How likely a target has to hold, for the gate that is asked."""
    cost: Floats
    """Dollars per million units."""
    efficiency: Floats
    """Throughput / (chips × one-chip throughput)."""
    full: Floats
    """Units of work a second at the chips' peak FLOP/s, interruptions included as in rate; NaN where not known."""
    restart: Floats
    """The same of this row; 0 where the job stays."""

    def of(self, chosen: Ints, numbers: Numbers) -> "Rows":
        """Some of the rows, with other numbers of the jobs."""
        columns = {field.name: getattr(self, field.name)[chosen] for field in fields(self) if field.name != "numbers"}
        return Rows(numbers=numbers, **columns)


def numbers_of(jobs: Sequence[Job], rates: Floats, prices: Floats, home: Ints, now: float) -> Numbers:
    """The columns of these jobs. rates: units of work a second now; prices: dollars an hour where they are; home:
    their pools."""
    table = np.array(
        [_row(job, rate, now) for job, rate in zip(jobs, rates.tolist(), strict=True)], dtype=np.float64
    ).reshape(len(jobs), 17)
    columns = iter(table.T.copy())
    memory, measured, keeps, differ, sharded, chips, needs = (next(columns) for _ in range(7))
    hourly, per_million, efficiency, utilization, savings = (next(columns) for _ in range(5))
    work_left, restart, horizon, time_left, budget_left = columns
    return Numbers(
        memory=memory,
        memory_measured=measured > 0.0,
        keeps_batch=keeps > 0.0,
        steps_differ=differ > 0.0,
        sharded=sharded > 0.0,
        chips=chips.astype(np.int64),
        home=home,
        price=prices,
        needs_price=needs > 0.0,
        hourly=hourly,
        per_million=per_million,
        efficiency=efficiency,
        utilization=utilization,
        work_left=work_left,
        restart=restart,
        horizon=horizon,
        time_left=time_left,
        budget_left=budget_left,
        savings=savings,
    )


def _sharded(job: Job) -> bool:
    """Whether state may be split over the chips so that each needs more of it on fewer chips. Where the user says how
    the model is divided, a group of chips keeps its part at any size, and only what is seen to be sharded over groups
    counts; else whatever the program does not deny."""
    elastic, seen = job.spec.elasticity, parallelism_of(job)
    if elastic.state is not ModelState.SHARDED:
        return False
    if elastic.model_parallel is not None:
        return (seen.sharded or 1) > 1
    return not seen.sharded == seen.tensor == seen.pipeline == 1


def _row(job: Job, rate: float, now: float) -> tuple[float, ...]:
    spec, profile, revision = job.spec, job.observed.profile, job.state.revision
    assert profile is not None and revision is not None
    targets = spec.targets
    used, declared = profile.readings.get(Field.MEMORY_USED), spec.placement.memory_per_chip
    return (
        used.value if used is not None else math.nan if declared is None else float(declared),
        used is not None,
        spec.batch is not Batch.PER_CHIP,
        profile.unit is WorkUnit.STEPS and spec.batch is Batch.PER_CHIP,
        _sharded(job),
        revision.placement.chips,
        needs_price(targets),
        math.nan if targets.max_cost_per_hour is None else float(targets.max_cost_per_hour),
        math.nan if targets.max_cost_per_million_samples is None else float(targets.max_cost_per_million_samples),
        math.nan if targets.min_scaling_efficiency is None else float(targets.min_scaling_efficiency),
        math.nan if targets.min_model_flops_utilization is None else float(targets.min_model_flops_utilization),
        float(spec.adaptation.min_savings),
        *outlook(job, rate, now),
    )
