"""Chips, pools and profiles for the tests of prediction and planning."""

import math
from collections.abc import Mapping
from dataclasses import replace

from rightpool.api.choices import Batch
from rightpool.api.estimate import Estimate
from rightpool.api.placement import Placement
from rightpool.api.pool import LinkKind
from rightpool.hardware.accelerator import Accelerator, Link, Price
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.google import GOOGLE
from rightpool.hardware.vendors.nvidia import NVIDIA
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.prediction.features import features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations, Missing
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey

GB = 1e9


def chip(
    key: str,
    flops: float,
    bandwidth: float,
    *,
    memory: float = 80 * GB,
    watts: float | None = 400.0,
    arch: str = "ampere-ga100",
    vendor: Vendor = NVIDIA,
    precision: str = "bf16",
) -> Accelerator:
    """One catalog row."""
    links = Link(LinkKind.NVLINK, 190 * GB), Link(LinkKind.ETHERNET, 20 * GB)
    return Accelerator(key, vendor, arch, {precision: flops}, int(memory), bandwidth, watts, *links, Price(1.0), True)


A100_CHIP = chip("A100-80GB", 312e12, 2.0e12)
A10G_CHIP = chip("A10G-24GB", 70e12, 0.6e12, memory=24 * GB, watts=150.0, arch="ampere-ga102")
TPU_CHIP = chip("TPU-v5e", 197e12, 0.82e12, memory=16 * GB, watts=None, arch="tpu-v5e", vendor=GOOGLE)


def pool(
    name: str,
    accelerator: Accelerator,
    price: float | None = 1.0,
    *,
    spot: float | None = None,
    total: int = 64,
    free: int | None = None,
    growable: int = 0,
    per_node: int = 8,
    intra: float = 190 * GB,
    inter: float = 20 * GB,
    labels: Mapping[str, str] | None = None,
) -> Pool:
    """A pool, all of it free where nothing else is said."""
    return Pool(
        name,
        accelerator,
        per_node,
        "nvidia.com/gpu",
        {},
        Link(LinkKind.NVLINK, intra),
        Link(LinkKind.ETHERNET, inter),
        Price(price, spot),
        total,
        total if free is None else free,
        growable=growable,
        labels=labels or {},
    )


A100 = pool("a100", A100_CHIP, 4.0)
A10G = pool("a10g", A10G_CHIP, 1.0, per_node=4, intra=20 * GB, inter=5 * GB)
TPU = pool("tpu", TPU_CHIP, 1.2, per_node=4)


def at(where: Pool, chips: int, replicas: int = 1) -> tuple[Placement, Pool]:
    """A placement with its pool."""
    return Placement(where.name, chips, replicas), where


def profile(chips: int, rate: float, noise: float = 0.0, *, revision: int = 1, **ratios: float | None) -> Profile:
    """A complete profile; `ratios` by field name in lower case, None leaves a field out."""
    values: dict[Field, float] = {Field[name.upper()]: value for name, value in ratios.items() if value is not None}
    readings = {field: Reading(value, value, value, Quality.MEASURED) for field, value in values.items()}
    readings[Field.SAMPLES_PER_SECOND] = Reading(rate, rate * (1 - noise), rate * (1 + noise), Quality.MEASURED)
    return Profile(RevisionKey("ns", "job", revision), chips, Steadiness.STEADY, 300.0, 1.0, 1000.0, 1, 1, readings)


def without(made: Profile, *fields: Field) -> Profile:
    """The profile with some fields missing."""
    return replace(made, readings={name: value for name, value in made.readings.items() if name not in fields})


def predicted(
    made: Profile | None, source: tuple[Placement, Pool], *targets: tuple[Placement, Pool], batch: Batch
) -> list[Estimate | Missing]:
    """What the step model says of one job: a fleet of one, whose pools are told apart by identity."""
    here, home = source
    pools = {home.name: home} | {pool.name: pool for _, pool in targets if pool.name != home.name}
    assert all(pools[pool.name] == pool for _, pool in targets)
    machines = Machines.of(pools.values())
    rows = Destinations.of([(0, place) for place, _ in targets], machines, [place == here for place, _ in targets])
    made_from = features([made], [here], [batch], machines)
    prediction = StepModelPredictor().predict(made_from, machines, rows)
    return [prediction.estimate(row) for row in range(len(targets))]


def ratio_sd(one: Estimate, other: Estimate) -> float:
    """Standard deviation of log(one / other), their common doubt cancelled."""
    theirs = dict(other.shared)
    common = sum(loading * theirs.get(name, 0.0) for name, loading in one.shared)
    return math.sqrt(max(one.sd**2 + other.sd**2 - 2.0 * common, 0.0))


def predict(
    made: Profile | None, source: tuple[Placement, Pool], target: tuple[Placement, Pool], *, batch: Batch
) -> Estimate | Missing:
    """Samples/s of one job on one placement."""
    return predicted(made, source, target, batch=batch)[0]
