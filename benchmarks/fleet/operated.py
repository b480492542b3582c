"""The operator's whole plan, driven through the rounds: evaluation, members, limits and the nodes of each pool.

Its jobs are asked for with a node of eight chips and may have 1 to 24; all let the fleet move them. Of one that has
begun to work it is told the true rates everywhere; of one that has not, nothing, as in a cluster: what others of its
application do is known to the operator while one of them runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from benchmarks.fleet.application import Application
from benchmarks.fleet.published import CLUSTER
from benchmarks.fleet.tiers import PLAN_SECONDS
from benchmarks.fleet.work import BestBatch
from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import MAX_HISTORY, LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.progress import JobProgress
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.allocate.plan import Plan, plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey, Observed
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.offers.decision import MIGRATING_ACTIONS
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.columns import Floats
from rightpool.prediction.features import Features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations, Missing, Origin, Prediction
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey
from rightpool.simulation.chips import SimulatedPool
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
class _Stored:
    """What the operator keeps of a job, and the nodes of its pods."""

    spec: ProfiledJobSpec
    revision: Revision | None = None
    nodes: tuple[int, ...] = ()
    history: tuple[LedgerEntry, ...] = ()


@dataclass(slots=True)
class Operated:
    """The operator's planning, in rounds."""

    pools: dict[str, SimulatedPool] = field(default_factory=lambda: _pools())
    """With the free chips of each node."""
    last: Plan | None = None
    """The last plan."""
    rates: TrueRates = field(default_factory=TrueRates)
    """The model."""
    stored: dict[str, _Stored] = field(default_factory=dict)
    """By name of the job."""
    due: int = 0
    """When the next plan is made at the latest."""

    def __call__(self, now: int, there: Sequence[RoundJob], changed: bool) -> Mapping[str, Placement | None]:
        """What each job gets. What a move leaves is free for others in the next round, in which is planned again."""
        ended = self.stored.keys() - {job.name for job in there}
        for name in sorted(ended):
            self._release(self.stored.pop(name))
        given = {job.name: job.place for job in there}
        if not changed and now < self.due:
            return given
        at = BEGAN + now
        seen = [self._seen(job, at) for job in there]
        pools = {name: pool.seen(at) for name, pool in self.pools.items()}
        fleet = Fleet({job.key: job for job in seen}, pools, POLICY, at)
        self.last = plan(fleet, self.rates, FleetAllocator(), self.last)
        self.due = now + PLAN_SECONDS
        for job, was in zip(there, seen, strict=True):
            decision = self.last.assessments[was.key].decision
            if decision.action is Action.START or decision.action in MIGRATING_ACTIONS:
                assert decision.target is not None
                if self._placed(job, decision.target, at):
                    given[job.name] = decision.target
                self.due = now
        return given

    def _seen(self, job: RoundJob, at: float) -> Job:
        assert isinstance(job.work, BestBatch)
        application, key = job.work.application, JobKey("team", job.name)
        stored = self.stored.get(job.name)
        if stored is None:
            stored = self.stored[job.name] = _Stored(_spec(application))
        ref, observed, progress = stored.revision, Observed(), None
        if ref is not None and job.place is not None:
            works = job.restarting == 0
            if works and ref.since is None:
                ref = stored.revision = _since(ref, at)
            rate = job.work.rate(job.place, job.epoch) * application.smallest
            self.rates.know(rate, application, job.epoch)
            pods: dict[str, int] = {}
            for node in stored.nodes:
                pods[f"node-{node}"] = pods.get(f"node-{node}", 0) + 1
            count = job.place.replicas
            child = RevisionState(
                ref.revision,
                True,
                active=count,
                on_nodes=count,
                running=count if works else 0,
                nodes=pods,
                bound_at=ref.created_at,
                started_at=ref.created_at,
            )
            profile = _profile(key, ref, rate, at) if works else None
            observed = Observed(profile=profile, revisions={ref.revision: child})
            done = round(job.progress * application.smallest)
            progress = JobProgress(done=done, since=at, revision=ref.revision, rate=rate)
        state = JobState(revision=ref, progress=progress, history=stored.history, moves=max(job.restarts, 0))
        program = application.name
        return Job(key, job.name, 1, BEGAN + job.came, stored.spec, program, state=state, observed=observed)

    def _placed(self, job: RoundJob, target: Placement, at: float) -> bool:
        """Whether nodes were found for it; if not it stays where it is."""
        assert isinstance(job.work, BestBatch)
        stored, pool = self.stored[job.name], self.pools[target.pool]
        before, nodes = stored.revision, stored.nodes
        self._release(stored)
        found = pool.bind(target)
        if found is None:
            if before is not None:
                again = self.pools[before.placement.pool]
                for node in nodes:
                    again.free[node] -= before.placement.chips_per_replica
                stored.nodes = nodes
            return False
        stored.nodes = found
        number = 1 if before is None else before.revision + 1
        stored.revision = Revision(
            number,
            target,
            job.work.application.name,
            ASKED,
            1,
            at,
            pool.pool.price.hourly(target),
            chip=pool.pool.accelerator.key,
        )
        if before is not None:
            entry = LedgerEntry(
                id=f"d-{number}",
                action=Action.RESIZE if before.placement.pool == target.pool else Action.MOVE,
                source=before.placement,
                target=target,
                started_at=at,
                finished_at=at + job.work.restart,
                outcome=Outcome.CARRIED_OUT,
                reason=Reason.FLEET_GAINS,
                lost_seconds=float(job.work.restart),
            )
            stored.history = (*stored.history, entry)[-MAX_HISTORY:]
        return True

    def _release(self, stored: _Stored) -> None:
        if stored.revision is not None:
            self.pools[stored.revision.placement.pool].release(stored.revision.placement, stored.nodes)
            stored.nodes = ()


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


def _since(ref: Revision, at: float) -> Revision:
    return Revision(
        ref.revision,
        ref.placement,
        ref.workload_hash,
        ref.requested_chips,
        ref.requested_replicas,
        ref.created_at,
        ref.cost_per_hour,
        at,
        chip=ref.chip,
    )


def _profile(key: JobKey, ref: Revision, rate: float, at: float) -> Profile:
    """Complete from the first step on."""
    reading = Reading(rate, rate, rate, Quality.MEASURED)
    pods = ref.placement.replicas
    return Profile(
        RevisionKey(*key, ref.revision),
        ref.placement.chips,
        Steadiness.STEADY,
        300.0,
        1.0,
        at,
        pods,
        pods,
        {Field.SAMPLES_PER_SECOND: reading},
    )
