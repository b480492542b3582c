"""What a prediction takes from jobs: columns, one entry a job, from its profile and from where it runs and ran."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rightpool.api.choices import Batch
from rightpool.api.placement import Placement
from rightpool.api.traits import Parallelism
from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.machines import Layout, Machines
from rightpool.prediction.precision import UNKNOWN_PRECISION, class_of, observed_class
from rightpool.prediction.step_shares import StepShares, step_shares
from rightpool.profiles.health import NOT_THROTTLED, throttling
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import LARGEST, SMALLEST, Field
from rightpool.profiles.steadiness import window_doubt

_NAN: Final = math.nan
_BYTES: Final = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}


@value_object
class PastRates:
    """Where jobs were measured before, a row a job and placement."""

    job: Ints
    """A place among the features."""
    pool: Ints
    """A place among the machines."""
    chips: Ints
    """How many."""
    per_group: Ints
    """Chips that share a fast link."""
    groups: Ints
    """How many groups of such chips."""
    rate: Floats
    """Units of work a second."""


@value_object
class Features:
    """Rows elsewhere name a job by its place here."""

    pool: Ints
    """Where it runs: a place among the machines."""
    chips: Ints
    """How many it has."""
    per_group: Ints
    """Chips that share a fast link."""
    groups: Ints
    """How many groups of such chips."""
    keeps_batch: Bools
    """Whether a step has as many samples at every size; else the batch grows with the chips."""
    rate: Floats
    """Units of work a second, samples or steps; NaN where not measured."""
    noise: Floats
    """Standard deviation of the log of the rate, which predictions from it share."""
    throttling: Floats
    """Log of how much faster arithmetic would be without the fault that holds down clocks; 0 where there is none."""
    throttling_sd: Floats
    """Its standard deviation, by how clocks were measured."""
    profiled: Bools
    """Whether there is a profile at all."""
    kind: Ints
    """Class of precision."""
    volume: Floats
    """Bytes that each chip sums with the others in a step, for each second of the step; NaN where not known."""
    shares: StepShares
    """Where the time of a step goes."""
    seen: PastRates
    """Other placements that jobs were measured on."""


def features(
    profiles: Sequence[Profile | None],
    places: Sequence[Placement],
    batches: Sequence[Batch],
    machines: Machines,
    seen: Mapping[int, Mapping[Placement, float]] | None = None,
    paces: Sequence[tuple[float, float]] | None = None,
    divisions: Sequence[Parallelism] | None = None,
) -> Features:
    """The columns of jobs with these profiles, taken on these placements, whose pools must be among the machines.

    seen: throughput on other placements, by the place of the job. paces: each job's throughput in the long
    run and the standard deviation of its log; by default what the window alone tells. divisions: how the work of each
    job is divided; by default what its profile says.
    """
    pools = [machines.index[place.pool] for place in places]
    layouts = [Layout.of(place, machines.pools[pool]) for place, pool in zip(places, pools, strict=True)]
    chips = np.array([place.chips for place in places], dtype=np.int64)
    faults = [NOT_THROTTLED if profile is None else throttling(profile) for profile in profiles]
    throttled, throttled_sd = np.array(faults, dtype=np.float64).reshape(len(profiles), 2).T.copy()
    measured = [_throughput(profile) for profile in profiles] if paces is None else paces
    rate, noise = np.array(measured, dtype=np.float64).reshape(len(profiles), 2).T.copy()
    usable = (rate >= SMALLEST) & (rate <= LARGEST)
    return Features(
        pool=np.array(pools, dtype=np.int64),
        chips=chips,
        per_group=np.array([layout.per_group for layout in layouts], dtype=np.int64),
        groups=np.array([layout.groups for layout in layouts], dtype=np.int64),
        keeps_batch=np.array([batch is Batch.GLOBAL for batch in batches], dtype=np.bool_),
        rate=np.where(usable, rate, _NAN),
        noise=np.where(usable, noise, 0.0),
        throttling=throttled,
        throttling_sd=throttled_sd,
        profiled=np.array([profile is not None for profile in profiles], dtype=np.bool_),
        kind=np.array(
            [_class(profile, machines.pools[pool].accelerator) for profile, pool in zip(profiles, pools, strict=True)],
            dtype=np.int64,
        ),
        volume=np.array(_volumes(profiles, divisions), dtype=np.float64),
        shares=step_shares(profiles, chips),
        seen=_seen(seen or {}, machines),
    )


def _class(profile: Profile | None, chip: Accelerator) -> int:
    """As the program tells its precision, else as the chip's units do."""
    if profile is None:
        return UNKNOWN_PRECISION
    if profile.traits.precision is not None:
        return class_of(profile.traits.precision)
    return observed_class(chip, profile.value(Field.MATRIX_ACTIVE), profile.value(Field.COMPUTE_ACTIVE))


def has_rate(profile: Profile) -> bool:
    """Whether the profile holds the throughput that every prediction starts from."""
    rate = profile.throughput
    return rate is not None and SMALLEST <= rate.value <= LARGEST


def _throughput(profile: Profile | None) -> tuple[float, float]:
    reading = None if profile is None else profile.throughput
    return (_NAN, _NAN) if reading is None else (reading.value, window_doubt(reading))


def _volumes(profiles: Sequence[Profile | None], divisions: Sequence[Parallelism] | None) -> list[float]:
    if divisions is None:
        divisions = [Parallelism() if profile is None else profile.traits.parallelism for profile in profiles]
    return [
        _NAN if profile is None else _volume(profile, parallel)
        for profile, parallel in zip(profiles, divisions, strict=True)
    ]


def _volume(profile: Profile, parallel: Parallelism) -> float:
    """What each chip sums: the gradients of its own part of the model, which tensor and pipeline groups divide.

    A sum is two passes over the links. Where state is sharded, gradients are scattered in one, and all parameters are
    gathered in two, those included that are not trained; where their size is not known, as if all were.
    """
    traits = profile.traits
    size = traits.parameter_bytes
    if size is None and traits.parameters is not None:
        size = traits.parameters * _BYTES.get(traits.parameter_dtype or "fp32", 4)
    seconds = profile.value(Field.STEP_SECONDS)
    if not seconds and traits.batch:
        rate = profile.value(Field.SAMPLES_PER_SECOND)
        seconds = traits.batch / rate if rate else None
    if not size or not seconds or seconds <= 0.0:
        return _NAN
    split = (parallel.tensor or 1) * (parallel.pipeline or 1)
    summed = size if (parallel.sharded or 1) == 1 else size / 2.0 + max(size, traits.model_bytes or 0)
    return summed / split / seconds


def _seen(seen: Mapping[int, Mapping[Placement, float]], machines: Machines) -> PastRates:
    rows = [
        (job, machines.index[place.pool], place.chips, layout.per_group, layout.groups, rate)
        for job, rates in seen.items()
        for place, rate in rates.items()
        if place.pool in machines.index and SMALLEST <= rate <= LARGEST
        for layout in (Layout.of(place, machines.named[place.pool]),)
    ]
    job, pool, chips, per_group, groups = np.array([row[:5] for row in rows], dtype=np.int64).reshape(len(rows), 5).T
    return PastRates(job, pool, chips, per_group, groups, np.array([row[5] for row in rows], dtype=np.float64))
