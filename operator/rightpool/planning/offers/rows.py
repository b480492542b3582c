"""The rows of an evaluation: every placement of every running job, and where the jobs are; with what they would do, as
rates and scaling efficiencies, and what the gates take from the jobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rightpool.api.choices import Batch, ModelState
from rightpool.api.placement import CapacityType, Placement
from rightpool.api.work_unit import WorkUnit
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.jobs.job import Job, parallelism_of
from rightpool.planning.judge.crowding import Crowding
from rightpool.planning.offers.enumerate import options
from rightpool.planning.offers.experience import Experience
from rightpool.planning.offers.offers import Numbers
from rightpool.planning.offers.pool_gates import current_gate, home_vendor, placed_vendor
from rightpool.planning.offers.register import NONE, Options, Register
from rightpool.planning.offers.shape import Shape
from rightpool.planning.offers.targets.registry import TARGETS, needs_price
from rightpool.planning.work.fading import Faded
from rightpool.planning.work.outlook import interruption_seconds, outlook, pace_of
from rightpool.planning.work.registry import work_of
from rightpool.prediction.columns import Bools, Floats, Ints, floats
from rightpool.prediction.features import features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations, Prediction, Predictor
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field


@dataclass(frozen=True, slots=True)
class RowIndex:
    """Rows by job and placement, without those of where the jobs are, where the spec allows them to be there."""

    job: Ints
    """The job, a place among the jobs."""
    option: Ints
    """The placement, by its number in the register."""
    gate: Ints
    """The gate of the pool that rejects it, by its code in the register."""
    current: Ints
    """For each job what the spec has against where it is, by its code."""
    places: Sequence[Placement]
    """Where each job is."""
    home: Ints
    """The pools of these placements, places among the machines."""
    here: Ints
    """Their numbers in the register."""


def row_index_of(jobs: Sequence[Job], shapes: Sequence[Shape], register: Register) -> RowIndex:
    """The rows of jobs of these shapes, whose pools must be among the machines of the register."""
    machines = register.machines
    places = [_placement(job) for job in jobs]
    homes = np.array([machines.index[place.pool] for place in places], dtype=np.int64)
    heres = np.array([register.option(place) for place in places], dtype=np.int64)
    templates: dict[tuple[Shape, Vendor], int] = {}
    columns: list[tuple[list[int], list[int], list[bool]]] = []
    gates: dict[tuple[int, int], int] = {}
    chosen, current = [], []
    for job, shape, place, home, here in zip(jobs, shapes, places, homes.tolist(), heres.tolist(), strict=True):
        pool = machines.pools[home]
        vendor = home_vendor(shape, machines.pools, placed_vendor(job.state.revision, pool))
        number = templates.get((shape, vendor))
        if number is None:
            number = templates[shape, vendor] = len(columns)
            found = options(shape, machines.pools, vendor)
            columns.append(
                (
                    [register.option(option.placement) for option in found],
                    [register.code(option.rejection) for option in found],
                    [option.elsewhere for option in found],
                )
            )
        chosen.append(number)
        gate = gates.get((number, here))
        if gate is None:
            gate = gates[number, here] = register.code(current_gate(shape, pool, place, vendor))
        current.append(gate)
    lengths = np.array([len(column[0]) for column in columns], dtype=np.int64)
    offsets = np.cumsum(lengths) - lengths
    template = np.array(chosen, dtype=np.int64)
    counts = lengths[template]
    row_job = np.repeat(np.arange(len(shapes)), counts)
    at = np.arange(len(row_job)) - np.repeat(np.cumsum(counts) - counts - offsets[template], counts)
    option, gate_column, elsewhere = (
        np.array([value for column in columns for value in column[part]], dtype=kind)[at]
        for part, kind in ((0, np.int64), (1, np.int64), (2, np.bool_))
    )
    pools = np.array([machines.index[placement.pool] for placement in register.placements], dtype=np.int64)
    at_home = pools[option] == homes[row_job]
    kept = ~(at_home & (elsewhere | ((gate_column == NONE) & (option == heres[row_job]))))
    return RowIndex(
        row_job[kept], option[kept], gate_column[kept], np.array(current, dtype=np.int64), places, homes, heres
    )


def _placement(job: Job) -> Placement:
    assert job.state.revision is not None
    return job.state.revision.placement


@dataclass(frozen=True, slots=True)
class RowRates:
    """The prediction and where each row finds itself in it."""

    prediction: Prediction
    """Of all that was asked, one chip alone among it."""
    noise: Floats
    """By job: how its rate varies, standard deviation of the logarithm."""
    rates: Floats
    """By job: units of work a second where it is."""
    predicted: Ints
    """By row: its place in the prediction; -1 of rows that a gate rejects."""
    efficiency: Floats
    """By row: share of perfect scaling; NaN of rows that a gate rejects."""
    seen: Bools
    """By row: whether the job was measured there."""
    other_program: Bools
    """By row: whether another program runs there than the one that was measured."""
    current_predicted: Ints
    """By job: the place of where it is in the prediction."""
    current_efficiency: Floats
    """By job: share of perfect scaling where it is."""


def row_rates(
    jobs: Sequence[Job],
    index: RowIndex,
    options: Options,
    measured: Mapping[int, dict[Placement, Experience]],
    register: Register,
    predictor: Predictor,
    faded: Faded,
    crowded: Mapping[str, Crowding],
) -> RowRates:
    """Rates of all rows that no gate of a pool rules out, of one chip on the same pools, and of where jobs are.

    measured: by job, the placements where it was measured before. faded: what pools make of rates since they are
    slower. crowded: by pool, what it leaves of the rate of a job that comes there.
    """
    machines, count = register.machines, len(jobs)
    home, here = index.home, index.here
    row_job, row_option = index.job, index.option
    everyone = np.arange(count)
    asked = np.flatnonzero(index.gate == NONE)
    job, option = row_job[asked], row_option[asked]
    pool = options.pool[option]
    new = np.ones(len(asked), dtype=np.bool_)
    new[1:] = (job[1:] != job[:-1]) | (pool[1:] != pool[:-1])
    pair_job, pair_pool = job[new], pool[new]
    alone_job, alone_pool = np.concatenate((pair_job, everyone)), np.concatenate((pair_pool, home))
    ones = np.ones(len(alone_job), dtype=np.int64)
    paces = [pace_of(one) for one in jobs]
    seen, seen_alone = np.full(len(asked), np.nan), np.full(len(alone_job), np.nan)
    doubt, doubt_alone = seen.copy(), seen_alone.copy()
    healthy, doubt_healthy = np.full(count, np.nan), np.full(count, np.nan)
    rates_seen: dict[int, dict[Placement, float]] = {}
    for number, places in measured.items():
        rate_here, place_here = paces[number][0], index.places[number]
        rates_seen[number] = {
            place: rate_here * experience.ratio
            for place, experience in places.items()
            if place.capacity is CapacityType.ON_DEMAND
            and experience.of_chips
            and (place.pool, place.chips) != (place_here.pool, place_here.chips)
        }
        if place_here in places:  # as it was before a fault
            healthy[number] = rate_here * places[place_here].ratio
            doubt_healthy[number] = places[place_here].sd
        low, high = np.searchsorted(job, [number, number + 1])
        for place, experience in places.items():
            rows = low + np.flatnonzero(option[low:high] == register.find(place))
            seen[rows], doubt[rows] = rate_here * experience.ratio, experience.sd
        # An efficiency that is guessed differently from either side would send the job back and forth: where one
        # chip was measured, that is what counts.
        low, high = np.searchsorted(pair_job, [number, number + 1])
        pairs = np.append(np.arange(low, high), len(pair_job) + number)
        lone = [(place, places[place]) for place in reversed(places) if place.chips == 1]
        if place_here.chips == 1:
            lone.append((place_here, Experience(1.0, 0.0)))
        for place, experience in lone:
            rows = pairs[alone_pool[pairs] == machines.index.get(place.pool, -1)]
            seen_alone[rows], doubt_alone[rows] = rate_here * experience.ratio, experience.sd
    other = _other_programs(jobs, machines)
    targets = Destinations(
        job=np.concatenate((job, alone_job, everyone)),
        pool=np.concatenate((pool, alone_pool, home)),
        chips=np.concatenate((options.chips[option], ones, options.chips[here])),
        per_group=np.concatenate((options.per_group[option], ones, options.per_group[here])),
        groups=np.concatenate((options.groups[option], ones, options.groups[here])),
        current=np.concatenate((np.zeros(len(asked) + len(alone_job), np.bool_), np.ones(count, np.bool_))),
        seen=np.concatenate((seen, seen_alone, healthy)),
        seen_sd=np.concatenate((doubt, doubt_alone, doubt_healthy)),
        other_program=np.concatenate((other[job, pool], other[alone_job, alone_pool], np.zeros(count, np.bool_))),
    )
    made_from = features(
        [job.observed.profile for job in jobs],
        index.places,
        [job.spec.batch for job in jobs],
        machines,
        rates_seen,
        paces,
        [parallelism_of(job) for job in jobs],
    )
    prediction = predictor.predict(made_from, machines, targets)
    slowed = np.array([faded.jobs.get(job.key, 1.0) for job in jobs])
    prediction = _left(prediction, made_from.noise, targets, home, machines, slowed, faded.pools, crowded)
    median = prediction.median
    begin = len(asked)
    alone = median[begin : begin + len(alone_job)]
    predicted = np.full(len(row_job), -1, dtype=np.int64)
    predicted[asked] = np.arange(begin)
    efficiency = np.full(len(row_job), np.nan)
    efficiency[asked] = median[:begin] / (options.chips[option] * alone[np.cumsum(new) - 1])
    was_seen = np.zeros(len(row_job), dtype=np.bool_)
    was_seen[asked] = ~np.isnan(seen)
    return RowRates(
        prediction=prediction,
        noise=made_from.noise,
        rates=made_from.rate,
        predicted=predicted,
        efficiency=efficiency,
        seen=was_seen,
        other_program=other[row_job, options.pool[row_option]],
        current_predicted=begin + len(alone_job) + everyone,
        current_efficiency=made_from.rate / (options.chips[here] * alone[len(alone_job) - count :]),
    )


def _left(
    prediction: Prediction,
    noise: Floats,
    targets: Destinations,
    home: Ints,
    machines: Machines,
    slowed: Floats,
    faded: Mapping[str, float],
    crowded: Mapping[str, Crowding],
) -> Prediction:
    """What pools leave of it for jobs that come, and were not measured there. What a job's own pool has taken of its
    rate no other pool takes, of jobs that were measured there neither: no noise of their measurements tells that. What
    a pool that has become slower takes counts for as much as a job's own measurement there leaves open."""
    moves = targets.pool != home[targets.job]
    median = np.where(moves, prediction.median / slowed[targets.job], prediction.median)
    for number, pool in enumerate(machines.pools):
        if pool.name in faded:
            comes = moves & (targets.pool == number)
            known = prediction.sd[comes] ** 2 - noise[targets.job[comes]] ** 2
            own = np.nan_to_num(known / targets.seen_sd[comes] ** 2, nan=0.0)
            median[comes] *= faded[pool.name] ** (1.0 - np.clip(own, 0.0, 1.0))
        if pool.name not in crowded:
            continue
        comes = np.flatnonzero(moves & (targets.pool == number) & np.isnan(targets.seen))
        in_use = pool.total - pool.free
        median[comes] *= [crowded[pool.name].at(in_use + chips) for chips in targets.chips[comes].tolist()]
    return replace(prediction, median=median)


def _other_programs(jobs: Sequence[Job], machines: Machines) -> Bools:
    """By job and pool: whether a variant is used on either side of a move, so that another program runs there."""
    vendors = [pool.accelerator.vendor.name for pool in machines.pools]
    found = np.zeros((len(jobs), len(vendors)), dtype=np.bool_)
    for number, job in enumerate(jobs):
        if job.variants:
            ref = job.state.revision
            assert ref is not None
            found[number] = [job.workload_hash_on(vendor) != ref.workload_hash for vendor in vendors]
    return found


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
