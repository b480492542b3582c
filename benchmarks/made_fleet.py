"""A made-up fleet of any size, the same for the same seed: pools of three kinds of chips, jobs with profiles."""

import random
from collections.abc import Mapping
from dataclasses import replace

from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.pool import LinkKind
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.hardware.accelerator import Accelerator, Link, Price
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.nvidia import NVIDIA
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey, Observed
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey

NOW = 1_800_000_000.0
SIZES = (1, 2, 4, 8, 16)

# key, vendor, architecture, half precision FLOP/s, memory bytes, bytes/s, watts, all-reduce bytes/s inside and between,
# chips a node, dollars a chip-hour
_KINDS = (
    ("A100-80GB", NVIDIA, "ampere-ga100", 312e12, 80e9, 2.04e12, 400.0, 199e9, 23e9, 8, 3.40),
    ("A100-40GB", NVIDIA, "ampere-ga100", 312e12, 40e9, 1.56e12, 400.0, 190e9, 12e9, 8, 2.75),
    ("A10G-24GB", NVIDIA, "ampere-ga102", 70e12, 24e9, 0.6e12, 300.0, 20e9, 5e9, 4, 1.01),
    ("L4-24GB", NVIDIA, "ada", 121e12, 24e9, 0.3e12, 72.0, 15e9, 5e9, 4, 0.71),
)


def pools(chips_each: int) -> dict[str, Pool]:
    """Four pools with all their chips free."""
    made: dict[str, Pool] = {}
    for key, vendor, arch, flops, memory, bandwidth, watts, inside, between, per_node, price in _KINDS:
        links = Link(LinkKind.NVLINK, inside), Link(LinkKind.ETHERNET, between)
        chip = Accelerator(
            key, vendor, arch, {"fp16": flops, "bf16": flops}, int(memory), bandwidth, watts, *links, Price(price), True
        )
        name = key.lower()
        made[name] = Pool(
            name, chip, per_node, "nvidia.com/gpu", {}, *links, Price(price), total=chips_each, free=chips_each
        )
    return made


def snapshot(count: int, seed: int = 1) -> Fleet:
    """`count` jobs that run, each with a complete profile, each allowed on every pool at five sizes."""
    draw = random.Random(seed)
    machines = pools(count * 8)
    document = {
        "workload": {"job": {"chipsPerReplica": 4, "template": {"spec": {"containers": [{"name": "main"}]}}}},
        "elasticity": {"minChips": 1, "maxChips": SIZES[-1], "chipCounts": list(SIZES), "batch": "PerChip"},
        "adaptation": {"mode": "Auto"},
    }
    spec = ProfiledJobSpec.model_validate(document)
    jobs: dict[JobKey, Job] = {}
    used = dict.fromkeys(machines, 0)
    names = sorted(machines)
    for number in range(count):
        pool = machines[names[number % len(names)]]
        chips = draw.choice(SIZES[:4])
        per_pod = min(chips, pool.chips_per_node)
        placement = Placement(pool.name, chips, chips // per_pod)
        used[pool.name] += chips
        key = JobKey(f"team-{number % 50}", f"job-{number}")
        # As in the operator: of the spec's parts only the workload is each job's own.
        own = spec.model_copy(update={"workload": spec.workload.model_copy()})
        jobs[key] = _job(key, own, placement, pool, draw)
    machines = {name: replace(pool, free=pool.free - used[name]) for name, pool in machines.items()}
    return Fleet(jobs, machines, PlacementPolicySpec(), NOW)


def _job(key: JobKey, spec: ProfiledJobSpec, placement: Placement, pool: Pool, draw: random.Random) -> Job:
    rate = 200.0 * placement.chips * draw.uniform(0.5, 2.0)
    readings = _readings(
        {
            Field.SAMPLES_PER_SECOND: rate,
            Field.CHIP_BUSY: draw.uniform(0.4, 1.0),
            Field.EXPOSED_COMMUNICATION: draw.uniform(0.01, 0.3) if placement.chips > 1 else 0.0,
            Field.MATRIX_ACTIVE: draw.uniform(0.05, 0.5),
            Field.MEMORY_BANDWIDTH: draw.uniform(0.1, 0.6),
            Field.MEMORY_USED: draw.uniform(4e9, 30e9),
            Field.INPUT_WAIT: 0.01,
        }
    )
    profile = Profile(
        RevisionKey(key.namespace, key.name, 1),
        placement.chips,
        Steadiness.STEADY,
        300.0,
        1.0,
        NOW,
        placement.replicas,
        placement.replicas,
        readings,
    )
    age = draw.uniform(1.0, 200.0) * 3600.0
    ref = Revision(1, placement, "h", 4, 1, NOW - age, pool.price.hourly(placement), NOW - age)
    state = RevisionState(1, True, active=placement.replicas, running=placement.replicas)
    observed = Observed(revisions={1: state}, profile=profile)
    return Job(key, str(key), 1, NOW - age, spec, "h", state=JobState(revision=ref), observed=observed)


def _readings(values: Mapping[Field, float]) -> dict[Field, Reading]:
    return {field: Reading(value, value * 0.98, value * 1.02, Quality.MEASURED) for field, value in values.items()}
