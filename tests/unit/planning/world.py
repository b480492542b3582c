"""A small world to drive the state machine in: children with pods, an executor that may be killed anywhere.

It mirrors what the real executor promises: the persisted state is written before its commands run, and a Revision is
created only after a look at the world itself shows that no other one has pods.
"""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from rightpool.api.conditions import Reason
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.hardware.placement import Placement
from rightpool.planning.candidate import Candidate
from rightpool.planning.commands import Command, EndRevision, EnsureRevision, RequestCheckpoint
from rightpool.planning.contradiction import contradiction
from rightpool.planning.decision import Action, Decision
from rightpool.planning.revision import RevisionState
from rightpool.planning.snapshot import JobKey, JobState
from rightpool.planning.survey import Intent
from rightpool.planning.transitions import advance, commands
from rightpool.prediction.estimate import Estimate
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey

TEMPLATE = {"spec": {"containers": [{"name": "trainer", "image": "x"}]}}
A100 = Placement("a100", 8, 1)
A10G = Placement("a10g", 8, 2)
PRICES = {"a100": 5.0, "a10g": 1.0}


def spec(**overrides: Any) -> ProfiledJobSpec:
    """A spec with 8 chips on one replica and a 60 s checkpoint timeout."""
    document: dict[str, Any] = {
        "workload": {"job": {"chipsPerReplica": 8, "replicas": 1, "template": TEMPLATE}},
        "checkpoint": {"timeout": "60s"},
        "profiling": {"interval": "5s", "window": "30s"},
    }
    return ProfiledJobSpec.model_validate(document | overrides)


def candidate(placement: Placement, rate: float, sd: float = 0.1) -> Candidate:
    """An eligible candidate that promises `rate` samples/s."""
    hourly = PRICES[placement.pool] * placement.chips
    return Candidate(
        placement=placement,
        samples_per_second=Estimate(rate, sd),
        cost_per_hour=hourly,
        cost_per_million=Estimate(hourly / 3600 / rate * 1e6, sd),
    )


def decide(action: Action, target: Placement, rate: float, current: Candidate | None = None) -> Any:
    """An assessment that asks for `target`."""
    wanted = candidate(target, rate)
    return SimpleNamespace(
        current=current,
        candidates=(wanted,),
        decision=Decision(action, Reason.CHEAPER_POOL_MEETS_TARGETS, "because", wanted),
        intent=Intent.SAVE,
    )


@dataclass
class Child:
    """A child Job and its pods."""

    replicas: int
    pods: int = 0
    running: int = 0
    deleting: bool = False
    suspended: bool = False
    succeeded: bool = False
    failed: bool = False
    stuck: bool = False  # its pods never run
    started_at: float | None = None
    finishing: bool = False  # its pods have ended, and the Job does not say so yet


@dataclass
class World:
    """The cluster, the operator's persisted state, and time."""

    job: JobState
    children: dict[int, Child] = field(default_factory=dict)
    now: float = 1000.0
    policy: PlacementPolicySpec = field(default_factory=PlacementPolicySpec)
    saves: float | None = None
    answers: bool = True  # the program saves when asked
    rates: dict[str, float] = field(default_factory=dict)  # samples/s that a pool really delivers
    spread: float = 0.01  # of the samples/s in a window, to either side
    stuck_pools: set[str] = field(default_factory=set)
    gone_pools: set[str] = field(default_factory=set)
    created: list[int] = field(default_factory=list)

    @classmethod
    def fresh(cls, **overrides: Any) -> "World":
        """A job that was never placed."""
        job = JobState(
            key=JobKey("ns", "job"),
            uid="u",
            generation=1,
            created_at=1000.0,
            spec=spec(**overrides),
            workload_hash="h1",
        )
        return cls(job)

    def observed(self) -> JobState:
        """The persisted state with what is seen now."""
        revisions = {
            n: RevisionState(
                revision=n,
                exists=True,
                deleting=c.deleting,
                suspended=c.suspended,
                active=c.pods,
                running=c.running,
                succeeded=c.succeeded,
                failed=c.failed,
                started_at=c.started_at,
                blocked="Unschedulable: 0/4 nodes" if c.stuck and not c.running else None,
                finishing=c.finishing,
            )
            for n, c in self.children.items()
        }
        profile = absent = None
        if self.job.ref is not None:
            child = self.children.get(self.job.ref.revision)
            pool = self.job.ref.placement.pool
            if child is not None and child.running >= child.replicas and pool in self.rates:
                profile = complete_profile(self.job.ref.revision, self.rates[pool], self.now, self.spread)
            if pool in self.gone_pools:
                absent = f"pool {pool} is gone: declare it again"
        return replace(self.job, revisions=revisions, profile=profile, checkpoint_at=self.saves, absent=absent)

    def persist(self, job: JobState) -> None:
        """What survives a kill: nothing observed."""
        self.job = replace(job, revisions={}, profile=None, checkpoint_at=None, absent=None)

    def run(self, command: Command) -> None:
        """One command, with the executor's own look at the world."""
        if isinstance(command, EnsureRevision):
            number = command.ref.revision
            if number in self.children:
                self.children[number].suspended = command.suspend
                if command.suspend:
                    self.children[number].pods = self.children[number].running = 0
                return
            if any(c.pods for n, c in self.children.items() if n != number):
                return
            if command.ref.placement.pool in self.gone_pools:
                return
            self.created.append(number)
            stuck = command.ref.placement.pool in self.stuck_pools
            self.children[number] = Child(command.ref.placement.replicas, suspended=command.suspend, stuck=stuck)
        elif isinstance(command, EndRevision):
            child = self.children.get(command.revision)
            if child is not None and not child.succeeded:
                child.deleting = True
        elif isinstance(command, RequestCheckpoint) and self.answers:
            self.saves = self.now

    def live(self, seconds: float = 5.0) -> None:
        """Time passes: pods come up, deleted children go."""
        self.now += seconds
        for number in list(self.children):
            child = self.children[number]
            if child.deleting:
                if child.pods:
                    child.pods = child.running = 0
                else:
                    del self.children[number]
                continue
            if child.suspended or child.succeeded or child.failed or child.finishing:
                child.pods = child.running = 0
                child.started_at = None
                continue
            child.started_at = child.started_at or self.now
            child.running = 0 if child.stuck else child.pods
            child.pods = child.replicas

    def cycle(self, assessment: Any = None, *, killed_before: int | None = None) -> None:
        """One planner cycle. killed_before: the operator dies before that command (0: right after persisting)."""
        job = advance(self.observed(), assessment, self.policy, self.now)
        self.persist(job)
        for index, command in enumerate(commands(replace(self.job, revisions=self.observed().revisions))):
            if killed_before is not None and index >= killed_before:
                return
            self.run(command)

    def settle(self, cycles: int = 40) -> None:
        """Cycles without new decisions."""
        for _ in range(cycles):
            self.live()
            self.cycle()

    def placed(self, placement: Placement, rate: float) -> "World":
        """The job runs on `placement`."""
        self.cycle(decide(Action.START, placement, rate))
        self.settle(4)
        return self

    def check(self) -> None:
        """What must hold at every moment."""
        with_pods = [n for n, c in self.children.items() if c.pods]
        assert len(with_pods) <= 1, f"two Revisions have pods: {with_pods}"
        assert self.job.account.spent >= 0
        assert contradiction(self.observed()) is None


def complete_profile(revision: int, rate: float, now: float, spread: float = 0.01) -> Profile:
    """A steady window at `rate` samples/s."""
    reading = Reading(rate, rate * (1 - spread), rate * (1 + spread), Quality.MEASURED)
    return Profile(
        key=RevisionKey("ns", "job", revision),
        chips=8,
        steadiness=Steadiness.STEADY,
        window=30.0,
        covered=1.0,
        newest=now,
        pods=2,
        expected=1,
        readings={Field.SAMPLES_PER_SECOND: reading},
    )
