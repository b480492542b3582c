"""The operator's whole plan, driven through the rounds: evaluation, members, limits and the nodes of each pool.

Its jobs are asked for with a node of eight chips and may have 1 to 24; all let the fleet move them. Of one that has
begun to work it is told the true rates everywhere; of one that has not, nothing, as in a cluster: what others of its
application do is known to the operator while one of them runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from benchmarks.fleet.application import Application
from benchmarks.fleet.published import CLUSTER
from benchmarks.fleet.tiers import PLAN_SECONDS
from benchmarks.fleet.work import application_of
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.cli.decider import Decider
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.jobs.job import JobKey
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.columns import Floats
from rightpool.prediction.features import Features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations, Missing, Origin, Prediction
from rightpool.simulation.chips import SimulatedPool
from rightpool.simulation.planned_rounds import PlannedRounds
from rightpool.simulation.rounds import RoundJob

BEGAN: Final = 1_800_000_000.0
ASKED: Final = 8
MEMORY: Final = "256Mi"
"""Of each of so many chips: little, since a job makes its batch for the chips that it has and so fits on any."""
POLICY: Final = PlacementPolicySpec.model_validate({"defaultAdaptationMode": "Auto", "fleet": {"mode": "Auto"}})
"""Its limits are those that every fleet has by default."""
_CHIPS: Final = {"aws": "T4-16GB", "rtx": "RTX2080Ti-11GB", "dgx-ext": "A100-SXM4-40GB"}
_MOST: Final = max(kind.total for kind in CLUSTER.values())


class TrueRates:
    """A model that is never wrong: it knows each job by the rate that the job has."""

    version = "true"

    def __init__(self) -> None:
        self._known: dict[float, tuple[Application, int]] = {}

    def know(self, rate: float, application: Application, epoch: int) -> None:
        """A job in this epoch has this rate."""
        self._known[rate] = application, epoch

    def of_fleet(self, experience: Sequence[Comparison]) -> TrueRates:
        """There is nothing to learn."""
        return self

    def predict(self, jobs: Features, machines: Machines, targets: Destinations) -> Prediction:
        """By the tables of the applications."""
        count = len(targets.job)
        if not count:
            tables = np.zeros((0, len(machines.pools), _MOST + 1))
        else:
            tables = np.stack([self._table(rate, machines) for rate in jobs.rate.tolist()])
        median = tables[targets.job, targets.pool, targets.chips]
        return Prediction(
            median=median,
            sd=np.zeros(count),
            shared=np.zeros(count),
            healthy=np.full(count, np.nan),
            missing=np.where(np.isnan(median), Missing.SPECIFICATIONS, Missing.NOTHING),
            origin=np.full(count, Origin.PREDICTED),
            describe=lambda row: ((), ()),
        )

    def _table(self, rate: float, machines: Machines) -> Floats:
        application, epoch = self._known[rate]
        table = np.full((len(machines.pools), _MOST + 1), np.nan)
        for place, rates in zip(application.places, application.best_rates, strict=True):
            table[machines.index[place.pool], place.chips] = rates[epoch] * application.smallest
        return table


@dataclass(slots=True)
class Applications:
    """What is true of the jobs of a trace."""

    rates: TrueRates = field(default_factory=TrueRates)
    """The model, which is told the rates of jobs that work."""

    def key(self, job: RoundJob) -> JobKey:
        """All are of one team."""
        return JobKey("team", job.name)

    def spec(self, job: RoundJob) -> ProfiledJobSpec:
        """By its application."""
        return _spec(application_of(job))

    def program(self, job: RoundJob) -> str:
        """Its application."""
        return application_of(job).name

    def throughput(self, job: RoundJob) -> float:
        """As measured."""
        assert job.place is not None
        application = application_of(job)
        rate = job.work.rate(job.place, job.epoch) * application.smallest
        self.rates.know(rate, application, job.epoch)
        return rate

    def done(self, job: RoundJob) -> int:
        """In samples."""
        return round(job.progress * application_of(job).smallest)


def operated() -> PlannedRounds:
    """The operator's planning, in the rounds of a trace."""
    facts = Applications()
    decide = Decider(facts.rates, FleetAllocator())
    return PlannedRounds(facts, decide, POLICY, _pools(), BEGAN, PLAN_SECONDS)


def _pools() -> dict[str, SimulatedPool]:
    catalog = load_catalog()
    found = {}
    for name, kind in CLUSTER.items():
        chip = catalog.get(_CHIPS[name])
        links = chip.intra_link, chip.inter_link
        price = Price(kind.price)
        made = Pool(name, chip, kind.per_node, "nvidia.com/gpu", {}, *links, price, kind.total, kind.total)
        found[name] = SimulatedPool(replace(made, nodes=kind.nodes))
    return found


def _spec(application: Application) -> ProfiledJobSpec:
    template = {"spec": {"containers": [{"name": "main"}]}}
    return ProfiledJobSpec.model_validate(
        {
            "workload": {"job": {"chipsPerReplica": ASKED, "replicas": 1, "template": template}},
            "elasticity": {
                "minChips": 1,
                "maxChips": _MOST,
                "chipCounts": [1, 2, 4, 8, 12, 16, 20, 24],
                "batch": "Global",
            },
            "placement": {"memoryPerChip": MEMORY},
            "adaptation": {"yield": "Move"},
            "targets": {"objective": "MinimizeTime"},
            "progress": {"totalSamples": round(application.ends[-1] * application.smallest)},
        }
    )
