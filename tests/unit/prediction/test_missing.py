"""Who reports less is not given more certainty.

That is a law of averages, and no law of single jobs: what is reported may be a surprise, such as much exposed
communication where parameters are few, and then it rightly makes a prediction less sure than silence would. What holds:

- Over jobs as the model takes jobs to be, with whatever else is known of each, the mean variance does not fall when any
  one item is removed, nor does the sd of a typical job. Few jobs lose much of it.
- For counters of one chip it holds job by job: test_sizes.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rightpool.api.choices import Batch
from rightpool.api.placement import Placement
from rightpool.api.traits import ModelTraits
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.prediction.features import features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.profiles.profile import Profile, Reading
from rightpool.profiles.sample import Field, Quality
from tests.unit.prediction.fixtures import pool, profile

CHIPS = [load_catalog().get(key) for key in ("L4-24GB", "A100-SXM4-80GB", "H100-SXM5-80GB", "L40S-48GB")]
POOLS = [
    pool(chip.key.lower(), chip, intra=chip.intra_link.bytes_per_second, inter=chip.inter_link.bytes_per_second)
    for chip in CHIPS
]
MACHINES = Machines.of(POOLS)
SIZES = (1, 2, 4, 8)
JOBS = 1500
# Bytes are one of three values and the loss one of four, and what was seen is matched with those.
NODES = 0.06

COUNTERS = (
    Field.CHIP_BUSY,
    Field.COMPUTE_ACTIVE,
    Field.MEMORY_BANDWIDTH,
    Field.EXPOSED_COMMUNICATION,
    Field.INPUT_WAIT,
)
ITEMS = ("parameters", "precision", "seen", *(field.value for field in COUNTERS))


@dataclass(frozen=True)
class Known:
    """A job, all that there is to know of it, and where it would be."""

    chips: int
    home: Pool
    readings: dict[Field, float]
    traits: ModelTraits
    seen: dict[Placement, float]
    target: Placement

    def without(self, item: str) -> Known:
        """One item less."""
        kept = {field: value for field, value in self.readings.items() if field.value != item}
        traits = self.traits if item not in ("parameters", "precision") else replace(self.traits, **{item: None})
        return replace(self, readings=kept, traits=traits, seen={} if item == "seen" else self.seen)

    def mistrust(self) -> float:
        """What the last doubling adds to the sd: at most half of what it lacked for each doubling beyond. 0 for sizes
        up to the largest that was seen."""
        ((size, rate),) = ((place.chips, rate) for place, rate in self.seen.items())
        gain = math.log(rate / 100.0) / math.log2(size / self.chips)
        beyond = math.log2(self.target.chips / max(self.chips, size))
        return 0.5 * max(math.log(2.0) - gain, 0.0) * max(beyond, 0.0)

    def profile(self) -> Profile:
        made = profile(self.chips, 100.0)
        readings = {field: Reading(value, value, value, Quality.MEASURED) for field, value in self.readings.items()}
        return replace(made, readings={**made.readings, **readings}, traits=self.traits)


def step(volume: float, waiting: float, chips: int, where: Pool) -> tuple[float, float]:
    """The work of a step on so many chips, for 1 on one, and the part of it that is no communication."""
    if chips == 1:
        return 1.0, 1.0
    memory, link = 0.9 * where.accelerator.memory_bandwidth, where.intra_link.bytes_per_second
    busy = 1.0 + 4.0 * min(volume, memory / 6.0) / memory
    sync = volume * 2.0 * (chips - 1) / chips / link
    return math.hypot(busy, sync) * math.exp(waiting * (1.0 + 0.2 * (math.log2(chips) - 1.0))), busy


def drawn(draw: np.random.Generator) -> Known:
    """A job as the model takes jobs to be: bytes, waiting for each other, loaders; and what a profiler would see."""
    chips, home, there = int(draw.choice(SIZES)), POOLS[draw.integers(len(POOLS))], POOLS[draw.integers(len(POOLS))]
    volume = 0.9e9 * math.exp(1.9 * draw.normal())
    waiting = float(draw.choice([0.01, 0.06, 0.15, 0.35], p=[0.55, 0.25, 0.14, 0.06]))
    whole, busy = step(volume, waiting, chips, home)
    idle = 0.6 * draw.random() ** 3
    work = 1.0 - idle
    exposed = work * (1.0 - busy / whole) * draw.uniform(0.6, 1.0)
    loads, prefetches = draw.random() < 0.25, draw.random() > 0.02 / (0.02 + idle)
    seconds = math.exp(draw.uniform(math.log(0.02), math.log(2.0)))
    summed = volume * work / whole * seconds * math.exp(0.35 * draw.normal())
    other = int(draw.choice([size for size in SIZES if size != chips]))
    time = work * step(volume, waiting, other, home)[0] / whole
    if loads and prefetches:
        time = (time**4 + (1.0 - work**4) * (other / chips) ** 4) ** 0.25
    else:
        time += idle * (other / chips if loads else 1.0)
    size = int(draw.choice([size for size in (*SIZES, 16) if there is not home or size != chips]))
    return Known(
        chips,
        home,
        {
            Field.STEP_SECONDS: seconds,
            Field.CHIP_BUSY: work,
            Field.COMPUTE_ACTIVE: (work - exposed) * draw.uniform(0.4, 0.95),
            Field.MEMORY_BANDWIDTH: (work - exposed) * draw.uniform(0.05, 0.8),
            Field.EXPOSED_COMMUNICATION: exposed,
            Field.INPUT_WAIT: idle if loads else 0.0,
        },
        ModelTraits(str(draw.choice(["bf16", "tf32"], p=[0.6, 0.4])), "fp32", max(int(summed / 4.0), 1)),
        {Placement(home.name, other, 1): 100.0 * other / chips / time * math.exp(0.03 * draw.normal())},
        Placement(there.name, size, max(1, size // 8)),
    )


def doubts(jobs: list[Known]) -> np.ndarray:
    """The standard deviation of each prediction."""
    made_from = features(
        [job.profile() for job in jobs],
        [Placement(job.home.name, job.chips, 1) for job in jobs],
        [Batch.PER_CHIP] * len(jobs),
        MACHINES,
        {number: job.seen for number, job in enumerate(jobs)},
    )
    rows = Destinations.of([(number, job.target) for number, job in enumerate(jobs)], MACHINES)
    return StepModelPredictor().predict(made_from, MACHINES, rows).sd


@pytest.mark.parametrize("item", ITEMS)
@settings(max_examples=1)
@given(seed=st.integers(0, 2**32 - 1), known=st.sampled_from([1.0, 0.6]))
@example(seed=2, known=1.0)
def test_on_average_nobody_gains_certainty_by_reporting_less(item: str, seed: int, known: float) -> None:
    draw = np.random.default_rng(seed)
    jobs = [drawn(draw) for _ in range(JOBS)]
    if item == Field.EXPOSED_COMMUNICATION.value:
        jobs = [job for job in jobs if job.chips > 1]
    for other in ITEMS:
        if other != item:
            jobs = [job if draw.random() < known else job.without(other) for job in jobs]
    more, less = doubts(jobs), doubts([job.without(item) for job in jobs])
    if item == "seen":
        added = np.array([job.mistrust() for job in jobs])
        assert np.mean(less**2) > (1.0 - NODES) * np.mean(more**2 - added**2)
        within = added == 0.0
        assert np.mean(within) > 0.5
        more, less = more[within], less[within]
    assert np.mean(less**2) > (1.0 - NODES) * np.mean(more**2)
    assert np.mean(np.log(less / more)) > -NODES / 2.0
    assert np.mean(less < 0.9 * more) < 0.12 and np.mean(less < 0.75 * more) < 0.08


@pytest.mark.parametrize("seed", range(4))
def test_the_doubt_of_the_next_doubling_is_what_makes_the_difference(seed: int) -> None:
    """Without it taken off, those who have shown two sizes would be less sure beyond them than who has shown one."""
    draw = np.random.default_rng(seed)
    jobs = [job for job in (drawn(draw) for _ in range(JOBS)) if job.mistrust() > 0.0]
    more, less = doubts(jobs), doubts([job.without("seen") for job in jobs])
    added = np.array([job.mistrust() for job in jobs])
    assert np.mean(more**2 - added**2) < np.mean(less**2) < np.mean(more**2)
