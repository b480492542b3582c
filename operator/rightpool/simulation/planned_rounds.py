"""The operator's whole plan, driven through the rounds: evaluation, members, limits and the nodes of each pool.

What is decided is carried out at once and holds: each start and move takes the job's restart, no pod fails, and no move
is undone. Of a job that works, the plan is given a complete profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import MAX_HISTORY, LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.progress import JobProgress
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey, Observed
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.offers.decision import MIGRATING_ACTIONS
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey
from rightpool.simulation.chips import SimulatedPool
from rightpool.simulation.rounds import RoundJob

LONGEST_PAUSE = 16
PLANS = 6
"""In one round at most: one in ten seconds of a minute."""


class JobFacts(Protocol):
    """What is true of the jobs of the rounds, as far as the operator is told."""

    def key(self, job: RoundJob) -> JobKey:
        """Namespace and name."""
        ...

    def spec(self, job: RoundJob) -> ProfiledJobSpec:
        """What its user wants."""
        ...

    def program(self, job: RoundJob) -> str:
        """Names what it runs: of a job that has not begun it is known what others of the same do."""
        ...

    def throughput(self, job: RoundJob) -> float:
        """Units of work a second where it is: the model of the plan knows the job by this number."""
        ...

    def done(self, job: RoundJob) -> int:
        """Units of work that it has done."""
        ...


@dataclass(slots=True)
class _Stored:
    """What the operator keeps of a job, and the nodes of its pods."""

    key: JobKey
    spec: ProfiledJobSpec
    program: str
    revision: Revision | None = None
    nodes: tuple[int, ...] = ()
    history: tuple[LedgerEntry, ...] = ()


@dataclass(slots=True)
class PlannedRounds:
    """The operator's planning, in rounds."""

    facts: JobFacts
    """Of the jobs."""
    decide: Callable[[Fleet], Plan]
    """The operator's."""
    policy: PlacementPolicySpec
    """That of the cluster."""
    pools: dict[str, SimulatedPool]
    """With the free chips of each node."""
    began: float
    """Unix seconds of the first round."""
    every: int
    """Seconds after which is planned again where nothing has happened."""
    slower: bool = False
    """Whether that becomes twice as long each time that a plan has changed nothing, up to LONGEST_PAUSE times."""
    last: Plan | None = None
    """The last plan."""
    stored: dict[str, _Stored] = field(default_factory=dict)
    """By name of the job."""
    due: int = 0
    """When the next plan is made at the latest."""
    _pause: int = 0

    def __call__(self, now: int, there: Sequence[RoundJob], changed: bool) -> Mapping[str, Placement | None]:
        """What each job gets. What a move leaves is free for others at once: it is planned until nothing changes, as
        often as a cluster does in a round."""
        ended = self.stored.keys() - {job.name for job in there}
        for name in sorted(ended):
            self._release(self.stored.pop(name))
        given = {job.name: job.place for job in there}
        if not changed and now < self.due:
            return given
        self._pause = min(2 * self._pause, LONGEST_PAUSE * self.every) if self.slower and not changed else self.every
        self._pause = self._pause or self.every
        self.due = now + self._pause
        for _ in range(PLANS):
            moved = self._moved(there, self.began + now)
            if not moved:
                break
            given |= moved
            self.due, self._pause = now, self.every
        return given

    def _moved(self, there: Sequence[RoundJob], at: float) -> dict[str, Placement | None]:
        """Plan once: who gets something else than it has, and what."""
        seen = [self._seen(job, at) for job in there]
        pools = {name: pool.seen(at) for name, pool in self.pools.items()}
        self.last = self.decide(Fleet({job.key: job for job in seen}, pools, self.policy, at))
        moved: dict[str, Placement | None] = {}
        for job, was in zip(there, seen, strict=True):
            decision = self.last.assessments[was.key].decision
            if decision.action is Action.START or decision.action in MIGRATING_ACTIONS:
                assert decision.target is not None
                if self._placed(job, decision.target, at):
                    moved[job.name] = decision.target
        return moved

    def _seen(self, job: RoundJob, at: float) -> Job:
        stored = self.stored.get(job.name)
        if stored is None:
            stored = self.stored[job.name] = _Stored(self.facts.key(job), self.facts.spec(job), self.facts.program(job))
        ref, observed, progress = stored.revision, Observed(), None
        if ref is not None:
            # In the round in which it is moved it has not been put there yet.
            works = job.restarting == 0 and job.place == ref.placement
            if works and ref.since is None:
                ref = stored.revision = _since(ref, at)
            pods: dict[str, int] = {}
            for node in stored.nodes:
                pods[f"node-{node}"] = pods.get(f"node-{node}", 0) + 1
            count = ref.placement.replicas
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
            rate = None if job.place is None else self.facts.throughput(job)
            profile = _profile(stored.key, ref, rate, at) if works and rate is not None else None
            observed = Observed(profile=profile, revisions={ref.revision: child})
            if rate is not None:
                progress = JobProgress(done=self.facts.done(job), since=at, revision=ref.revision, rate=rate)
        state = JobState(revision=ref, progress=progress, history=stored.history, moves=max(job.restarts, 0))
        created = self.began + job.came
        return Job(stored.key, job.name, 1, created, stored.spec, stored.program, state=state, observed=observed)

    def _placed(self, job: RoundJob, target: Placement, at: float) -> bool:
        """Whether nodes were found for it; if not it stays where it is."""
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
        workload = stored.spec.workload
        stored.revision = Revision(
            number,
            target,
            stored.program,
            workload.chips,
            workload.replicas,
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
