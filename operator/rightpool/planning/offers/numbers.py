"""What the gates take from jobs, in columns."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from rightpool.api.choices import Batch, ModelState
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job, parallelism_of
from rightpool.planning.offers.offers import Numbers
from rightpool.planning.offers.targets.registry import TARGETS, needs_price
from rightpool.planning.work.outlook import interruption_seconds, outlook
from rightpool.planning.work.registry import work_of
from rightpool.prediction.columns import Bools, Floats, Ints, floats
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field


def numbers_of(jobs: Sequence[Job], rates: Floats, prices: Floats, home: Ints, now: float) -> Numbers:
    """The columns of these jobs. rates: units of work a second now; prices: dollars an hour where they are; home:
    their pools."""
    rests = [outlook(job, rate, now) for job, rate in zip(jobs, rates.tolist(), strict=True)]
    profiles = [_profile(job) for job in jobs]
    return Numbers(
        memory=floats([_memory(job, profile) for job, profile in zip(jobs, profiles, strict=True)]),
        memory_measured=_bools(Field.MEMORY_USED in profile.readings for profile in profiles),
        keeps_batch=_bools(job.spec.batch is not Batch.PER_CHIP for job in jobs),
        steps_differ=_bools(
            profile.unit is WorkUnit.STEPS and job.spec.batch is Batch.PER_CHIP
            for job, profile in zip(jobs, profiles, strict=True)
        ),
        sharded=_bools(map(_sharded, jobs)),
        chips=np.array([_chips(job) for job in jobs], dtype=np.int64),
        home=home,
        price=prices,
        needs_price=_bools(needs_price(job.spec.targets) for job in jobs),
        limits={
            target.field: floats([target.limit(job, rest) for job, rest in zip(jobs, rests, strict=True)])
            for target in TARGETS
        },
        demand=floats([work_of(job.spec).demand(job) for job in jobs]),
        work_left=floats([rest.work_left for rest in rests]),
        restart=floats([rest.restart for rest in rests]),
        recovery=floats([interruption_seconds(job) for job in jobs]),
        horizon=floats([rest.horizon for rest in rests]),
        savings=floats([float(job.spec.adaptation.min_savings) for job in jobs]),
    )


def _bools(values: Iterable[bool]) -> Bools:
    return np.array(list(values), dtype=np.bool_)


def _profile(job: Job) -> Profile:
    assert job.observed.profile is not None
    return job.observed.profile


def _chips(job: Job) -> int:
    assert job.state.revision is not None
    return job.state.revision.placement.chips


def _memory(job: Job, profile: Profile) -> float:
    used, declared = profile.readings.get(Field.MEMORY_USED), job.spec.placement.memory_per_chip
    return used.value if used is not None else math.nan if declared is None else float(declared)


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
