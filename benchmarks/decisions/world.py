"""What the stories are made of: pools, jobs whose true rates are known, and what they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from rightpool.api.choices import Batch
from rightpool.api.placement import CapacityType, Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.pool import LinkKind
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.hardware.accelerator import Link, Price
from rightpool.hardware.catalog import Catalog, load_catalog
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.greedy import GreedyAllocator
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.prediction.columns import Floats
from rightpool.prediction.features import features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey
from rightpool.reporting.decision_texts import decision_text
from rightpool.simulation.child import SimulatedChild
from rightpool.simulation.chips import SimulatedPool
from rightpool.simulation.noise import BY_POOL, NOISES
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.simulator import Simulator

BEGAN: Final = 1_800_000_000.0
STEP: Final = 10.0
HOUR: Final = 3600.0
PREDICTOR: Final = StepModelPredictor()
# Nothing of the fleet's limits hides what a job's own evidence would lead to.
OPEN: Final = {
    "defaultAdaptationMode": "Auto",
    "maxConcurrentMigrations": 1000,
    "maxMovesPerHour": 10_000,
    "circuitBreaker": {"maxRolledBackShare": "1"},
}
SHOWN: Final = {
    Field.CHIP_BUSY: 0.95,
    Field.SLOWEST_CHIP_BUSY: 0.94,
    Field.EXPOSED_COMMUNICATION: 0.03,
    Field.MATRIX_ACTIVE: 0.35,
    Field.MEMORY_BANDWIDTH: 0.40,
    Field.COMPUTE_ACTIVE: 0.80,
    Field.MEMORY_USED: 12e9,
    Field.INPUT_WAIT: 0.01,
}

_CATALOG: Final[list[Catalog]] = []


def catalog() -> Catalog:
    """Read once."""
    if not _CATALOG:
        _CATALOG.append(load_catalog())
    return _CATALOG[0]


def pool(
    name: str, chip: str, price: float, chips: int = 1024, per_node: int = 8, *, spot: bool = False
) -> SimulatedPool:
    """A pool with all of its chips free. spot: whether they are spot capacity, at that price."""
    accelerator = catalog().get(chip)
    intra, inter = accelerator.intra_link, Link(LinkKind.ETHERNET, 20e9)
    return SimulatedPool(
        Pool(
            name,
            accelerator,
            per_node,
            "nvidia.com/gpu",
            {},
            intra,
            inter,
            Price(spot=price) if spot else Price(price),
            total=chips,
            free=chips,
            nodes=chips // per_node,
        )
    )


def world(pools: Sequence[SimulatedPool], policy: Mapping[str, Any] | None = None) -> Simulator:
    """A simulator at the beginning, without jobs."""
    return Simulator(
        {made.pool.name: made for made in pools},
        PlacementPolicySpec.model_validate(OPEN if policy is None else policy),
        PREDICTOR,
        GreedyAllocator(),
        decision_text,
        BEGAN,
    )


@dataclass(slots=True)
class Maker:
    """Makes jobs whose noise and errors follow from one seed."""

    seed: int
    noise: str
    pools: Sequence[SimulatedPool]
    hours: float
    error: float = 0.0
    """How far true rates on other chips are from the model's: in standard deviations of the model's own doubt."""
    count: int = field(default=0)
    step: float = STEP
    """Seconds between readings."""

    def job(
        self,
        home: str,
        chips: int,
        *,
        total: float | None = None,
        delay: float = 0.0,
        started: bool = True,
        **spec: Any,
    ) -> SimulatedJob:
        """A job that has just begun on its home; it comes `delay` seconds later, and is not placed yet if `started`
        is not."""
        number, self.count = self.count, self.count + 1
        draw = np.random.default_rng([self.seed, number])
        document: dict[str, Any] = {
            "workload": {"job": {"chipsPerReplica": chips, "template": {"spec": {"containers": [{"name": "main"}]}}}},
            **({} if total is None else {"progress": {"totalSamples": int(total)}}),
        }
        made = ProfiledJobSpec.model_validate(document | spec)
        key = JobKey("team", f"job-{number:04d}")
        base = 200.0 * chips * float(draw.uniform(0.5, 2.0))
        pools = {pool.pool.name: pool.pool for pool in self.pools}
        bought = CapacityType.ON_DEMAND if pools[home].price.spot is None else CapacityType.SPOT
        start = Placement(home, chips, 1, bought)
        job = Job(key, f"{key}-{self.seed}", 1, BEGAN + delay, made, "h")
        simulated = SimulatedJob(
            job=job,
            rate=self._rates(base, start, pools, draw),
            noise=self._noises(number),
            began=BEGAN,
            step=self.step,
            readings=SHOWN,
            total=np.inf if total is None else total,
        )
        if started:
            revision = Revision(1, start, "h", chips, 1, BEGAN, pools[home].price.hourly(start), generation=1)
            simulated.store(JobState(revision=revision))
            simulated.children[1] = SimulatedChild(1, start, BEGAN)
        return simulated

    def _rates(
        self, base: float, home: Placement, pools: Mapping[str, Pool], draw: np.random.Generator
    ) -> Callable[[Placement], float]:
        """What the model says of another chip, times an error that pools of one chip share."""
        machines = Machines.of(pools.values())
        places = [Placement(name, home.chips, 1) for name in sorted(pools)]
        columns = features([_profile(base, home.chips)], [home], [Batch.PER_CHIP], machines)
        found = PREDICTOR.predict(columns, machines, Destinations.of([(0, place) for place in places], machines))
        errors = {key: float(draw.standard_normal()) for key in sorted({p.accelerator.key for p in pools.values()})}
        own = pools[home.pool].accelerator.key
        rates: dict[str, float] = {}
        for place, median, sd in zip(places, found.median.tolist(), found.sd.tolist(), strict=True):
            key = pools[place.pool].accelerator.key
            error = 0.0 if key == own else self.error * sd * errors[key]
            rates[place.pool] = median * float(np.exp(error))
        return lambda placement: rates[placement.pool] * placement.chips / home.chips

    def _noises(self, number: int) -> Callable[[str], Floats]:
        count = int(self.hours * HOUR / self.step) + 1
        made: dict[str, Floats] = {}
        process = NOISES[self.noise]

        def noise(name: str) -> Floats:
            where = sum(map(ord, name)) if self.noise in BY_POOL else 0
            key = name if where else ""
            if key not in made:
                made[key] = process(np.random.default_rng([self.seed, number, 1, where]), count, self.step)
            return made[key]

        return noise


def _profile(rate: float, chips: int) -> Profile:
    values = {**SHOWN, Field.SAMPLES_PER_SECOND: rate}
    readings = {name: Reading(value, value, value, Quality.MEASURED) for name, value in values.items()}
    key = RevisionKey("team", "job", 1)
    return Profile(key, chips, Steadiness.STEADY, 300.0, 1.0, BEGAN, 1, 1, readings)
