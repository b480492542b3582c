"""What is compared: of a job, the cluster as the operator sees it; of runs by `rightpool bench`, a fleet of them.

Each accelerator that is named and of which there is no pool gets one that is made up: as many chips as the work has
now, in one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.bench.profile import BenchProfile
from rightpool.cli.compare.rows import Question
from rightpool.cli.connection import WrongInput
from rightpool.hardware.accelerator import Accelerator, Price
from rightpool.hardware.catalog import Catalog, UnknownAcceleratorError
from rightpool.hardware.ownership import CostBook, ownership
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey, Observed
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey
from rightpool.profiles.statistics import tenths

_PROCESSOR: Final = "CPU"
_ROOM: Final = 4096


class NothingToCompare(WrongInput):
    """What was named can't be compared; the message is for the user."""


def of_job(
    fleet: Fleet, job: Job, against: Sequence[str], book: CostBook, catalog: Catalog, kernels: tuple[str, ...]
) -> Question:
    """against: names of pools, or keys of the catalog; empty: the pools there are. Raises NothingToCompare."""
    here = job.state.revision
    if here is None or here.placement.pool not in fleet.pools:
        raise NothingToCompare(f"{job.key} runs in no pool that is known: nothing of it is measured")
    wanted, imagined = [here.placement.pool], {}
    for name in against or fleet.pools:
        own = [pool.name for pool in fleet.pools.values() if name in (pool.name, pool.accelerator.key)]
        if not own:
            made = _pool(_chip(name, catalog), here.placement.chips, book)
            imagined[made.name], own = made, [made.name]
        wanted += own
    return Question(
        fleet=replace(fleet, pools={**fleet.pools, **imagined}),
        job=job.key,
        pools=tuple(dict.fromkeys(wanted)),
        runs={here.placement.pool: job.key},
        imagined=frozenset(imagined),
        named=frozenset(),
        image_known=True,
        kernels=kernels,
        steps={},
    )


def of_runs(
    runs: Mapping[Path, BenchProfile],
    against: Sequence[str],
    book: CostBook,
    catalog: Catalog,
    now: float,
    places: Sequence[Pool] = (),
) -> Question:
    """The first is what others are predicted by. against: keys of the catalog. places: pools that there are; those with
    the chips of a run are taken to be where it ran. Raises NothingToCompare."""
    pools: dict[str, Pool] = {}
    jobs: dict[JobKey, Job] = {}
    steps: dict[str, float] = {}
    where: dict[str, JobKey] = {}
    for path, run in runs.items():
        chip = _measured_chip(path, run, catalog)
        if any(pools[name].accelerator.key == chip.key for name in where):
            raise NothingToCompare(f"{path} is a second run on {chip.key}: give one for each accelerator")
        same = [pool for pool in places if pool.accelerator.key == chip.key and pool.chips_per_node >= run.chips]
        for pool in same or [_pool(chip, run.chips, book)]:
            key = where[pool.name] = JobKey("bench", f"{path} {pool.name}")
            pools[pool.name], jobs[key] = pool, _job(key, run, pool, now)
            if run.step_p99_seconds is not None:
                steps[pool.name] = run.step_p99_seconds
    for pool in places:
        pools.setdefault(pool.name, pool)
    chips = next(iter(runs.values())).chips
    for name in against:
        made = _pool(_chip(name, catalog), chips, book)
        pools.setdefault(made.name, made)
    return Question(
        fleet=Fleet(jobs, pools, PlacementPolicySpec(), now),
        job=next(iter(jobs)),
        pools=tuple(pools),
        runs=where,
        imagined=frozenset(pools),
        named=frozenset(pool.name for pool in places),
        image_known=False,
        kernels=(),
        steps=steps,
    )


def _chip(name: str, catalog: Catalog) -> Accelerator:
    try:
        return catalog.get(name)
    except UnknownAcceleratorError as error:
        raise NothingToCompare(f"--against: {error}") from error


def _measured_chip(path: Path, run: BenchProfile, catalog: Catalog) -> Accelerator:
    try:
        return catalog.get(run.accelerator or _PROCESSOR)
    except UnknownAcceleratorError as error:
        raise NothingToCompare(f"{path}: accelerator: {error}") from error


def free_pool(name: str, chip: Accelerator, chips_per_node: int, nodes: int, book: CostBook) -> Pool:
    """That is taken to be free: who wants chips of it waits for them."""
    made = _pool(chip, chips_per_node, book)
    chips = nodes * made.chips_per_node
    return replace(made, name=name, total=chips, free=chips, nodes=nodes)


def _pool(chip: Accelerator, chips: int, book: CostBook) -> Pool:
    price = Price(ownership(chip, book).dollars_an_hour(1.0))
    if book.of(chip.key).count is not None:
        chips = 1  # each board for itself
    return Pool(
        chip.key.lower(),
        chip,
        chips,
        chip.vendor.resource_name,
        {},
        chip.intra_link,
        chip.inter_link,
        price,
        _ROOM,
        _ROOM,
    )


def _job(key: JobKey, run: BenchProfile, pool: Pool, now: float) -> Job:
    """As if it had run there for the measured time."""
    chips = run.chips
    spec = ProfiledJobSpec.model_validate(
        {
            "workload": {"job": {"chipsPerReplica": chips, "template": {"spec": {"containers": [{"name": "bench"}]}}}},
            "elasticity": {"minChips": 1, "maxChips": chips, "batch": "PerChip"},
        }
    )
    began = now - run.window_seconds * len(run.windows)
    revision = Revision(1, Placement(pool.name, chips, 1), "", chips, 1, began, None, began)
    return Job(
        key=key,
        uid=str(key),
        generation=1,
        created_at=began,
        spec=spec,
        workload_hash="",
        state=JobState(revision=revision),
        observed=Observed(profile=_profile(key, run, now), revisions={1: RevisionState(1, True, active=1, running=1)}),
    )


def _profile(key: JobKey, run: BenchProfile, now: float) -> Profile:
    known = {field.value: field for field in Field}
    readings = {
        known[name]: Reading(value, value, value, Quality.MEASURED)
        for name, value in run.readings.items()
        if name in known
    }
    samples = run.unit is WorkUnit.SAMPLES
    readings.pop(Field.STEPS_PER_SECOND if samples else Field.SAMPLES_PER_SECOND, None)
    low, _, high = tenths(sorted(run.windows))
    counted = Field.SAMPLES_PER_SECOND if samples else Field.STEPS_PER_SECOND
    readings[counted] = Reading(run.rate, min(low, run.rate), max(high, run.rate), Quality.MEASURED)
    if run.memory_bytes is not None:
        readings[Field.MEMORY_USED] = Reading(run.memory_bytes, run.memory_bytes, run.memory_bytes, Quality.MEASURED)
    return Profile(
        key=RevisionKey(key.namespace, key.name, 1),
        chips=run.chips,
        steadiness=Steadiness.STEADY,
        window=run.window_seconds * len(run.windows),
        covered=1.0,
        newest=now,
        pods=1,
        expected=1,
        readings=readings,
        traits=run.model,
    )


def keys_of(text: str) -> tuple[str, ...]:
    """Of an option's value: names with commas between."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def unknown_costs(book: CostBook, catalog: Catalog) -> Iterable[str]:
    """What is wrong with the keys of a file of costs, one sentence each."""
    for key in book.accelerators:
        try:
            catalog.get(key)
        except UnknownAcceleratorError as error:
            yield f"accelerators.{key}: {error}"
