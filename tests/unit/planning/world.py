"""A small world to drive the state machine in: children with pods, an executor that may be killed anywhere.

It mirrors what the real executor promises: the persisted state is written before its commands run, and a Revision is
created only after a look at the world itself shows that no other one has pods.
"""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.estimate import Estimate
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.variation import SpanDifference, Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.revision_state import Crash, EndingPod, PodFailure, RevisionState
from rightpool.planning.moves.commands import Command, EndRevision, EnsureRevision, RequestCheckpoint, commands
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.intent import Intent
from rightpool.planning.work.progress import progress_of
from rightpool.profiles.health import NOT_THROTTLED, throttling
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey, Sample
from rightpool.profiles.track import Track
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import changed

TEMPLATE = {"spec": {"containers": [{"name": "trainer", "image": "x"}]}}
A100 = Placement("a100", 8, 1)
A10G = Placement("a10g", 8, 2)
GRACE = 30.0
ALLOWED = 6  # failures of a child's pods
PRICES = {"a100": 5.0, "a10g": 1.0}


def spec(**overrides: Any) -> ProfiledJobSpec:
    """A spec with 8 chips on one replica and a 60 s checkpoint timeout."""
    document: dict[str, Any] = {
        "workload": {"job": {"chipsPerReplica": 8, "replicas": 1, "template": TEMPLATE}},
        "checkpoint": {"timeout": "60s"},
        "profiling": {"interval": "5s", "window": "30s"},
    }
    return ProfiledJobSpec.model_validate(document | overrides)


def candidate(placement: Placement, rate: float, sd: float = 0.1, unit: WorkUnit = WorkUnit.SAMPLES) -> Candidate:
    """An eligible candidate that promises `rate` units a second."""
    hourly = PRICES[placement.pool] * placement.chips
    return Candidate(
        placement=placement,
        throughput=Estimate(rate, sd),
        cost_per_hour=hourly,
        cost_per_million=Estimate(hourly / 3600 / rate * 1e6, sd),
        unit=unit,
    )


def decide(action: Action, target: Placement, rate: float, current: Candidate | None = None) -> Any:
    """An assessment that asks for `target`."""
    wanted = candidate(target, rate)
    return SimpleNamespace(
        current=current,
        useful=lambda _: 1.0,
        crowded=False,
        faded=1.0,
        candidates=(wanted,),
        decision=Decision(action, Reason.CHEAPER_POOL_MEETS_TARGETS, wanted),
        intent=Intent.SAVE,
        unreachable=None,
        withdrawn=False,
        price=lambda placement: current.cost_per_hour if current and placement == current.placement else None,
        way_back=None,
        waits_for=None,
        evaluated=None,
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
    silent: bool = False  # its pods never run, and do not say why
    deleted_at: float | None = None
    stuck_since: float | None = None
    started_at: float | None = None
    finishing: bool = False  # its pods have ended, and the Job does not say so yet
    crash: Crash | None = None  # how its program failed last
    ran: float = 0.0  # seconds since all its pods run
    workload_hash: str = ""  # of the template that it was made of
    prevented: bool = False  # whether stuck pods lack what the job itself asks for
    failures_allowed: int | None = None  # where its pods failed more often
    pod_failures: tuple[PodFailure, ...] = ()
    disrupted_at: float | None = None


@dataclass
class World:
    """The cluster, the operator's persisted state, and time."""

    job: Job
    children: dict[int, Child] = field(default_factory=dict)
    now: float = 1000.0
    policy: PlacementPolicySpec = field(default_factory=PlacementPolicySpec)
    saves: float | None = None
    answers: bool = True  # the program saves when asked
    fails: bool = False  # the program fails while it saves; its pods are made anew at once
    asked: list[str] = field(default_factory=list)  # requests for a save that it failed at
    admits: bool = True  # its queue has quota for it, where it is in one
    rates: dict[str, float] = field(default_factory=dict)  # samples/s that a pool really delivers
    units: dict[str, WorkUnit] = field(default_factory=dict)  # what is counted on a pool, where not samples
    spread: float = 0.01  # of the samples/s in a window, to either side
    windows: int = 3  # of a Revision that have been counted
    throttled_pools: set[str] = field(default_factory=set)  # whose chips a fault holds at half of the usual clocks
    stuck_pools: set[str] = field(default_factory=set)
    hung_pools: set[str] = field(default_factory=set)  # where the program runs, and takes no step
    compiling: float = 0.0  # share of the time in which it is seen to compile there
    silent_pools: set[str] = field(default_factory=set)
    nodes_lost: bool = False  # what is ended there stays
    gone_pools: set[str] = field(default_factory=set)
    created: list[int] = field(default_factory=list)
    loading: float = 0.0  # seconds from when pods run until their first step
    counts: bool = False  # whether samples are counted
    tracks: dict[int, Track] = field(default_factory=dict)
    counters: dict[int, float] = field(default_factory=dict)
    paid: float = 0.0  # dollars, by the world's own meter
    held: float = 0.0  # chip-seconds of pods on nodes, by the same
    prices: dict[str, float] = field(default_factory=lambda: dict(PRICES))  # of a chip-hour
    places: dict[int, Placement] = field(default_factory=dict)

    @classmethod
    def fresh(cls, **overrides: Any) -> "World":
        """A job that was never placed."""
        job = Job(
            key=JobKey("ns", "job"),
            uid="u",
            generation=1,
            created_at=1000.0,
            spec=spec(**overrides),
            workload_hash="h1",
        )
        return cls(job)

    def revisions(self) -> dict[int, RevisionState]:
        """What is seen of the children now."""
        return {
            n: RevisionState(
                revision=n,
                exists=True,
                deleting=c.deleting,
                suspended=c.suspended,
                active=c.pods,
                running=c.running,
                on_nodes=0 if c.stuck else c.pods,
                succeeded=c.succeeded,
                failed=c.failed,
                started_at=c.started_at,
                blocked="Unschedulable: 0/4 nodes" if c.stuck and not c.running else None,
                prevented=c.prevented,
                unschedulable_since=c.stuck_since,
                finishing=c.finishing,
                crash=c.crash,
                failures_allowed=c.failures_allowed,
                pod_failures=() if c.deleting else c.pod_failures,  # its pods are being deleted, too
                disrupted_at=c.disrupted_at,
                ending=EndingPod(f"job-r{n}-0", "node-1", c.deleted_at + GRACE)
                if c.deleted_at is not None and c.pods
                else None,
            )
            for n, c in self.children.items()
        }

    def observed(self) -> Job:
        """The persisted state with what is seen now."""
        profile = absent = varies = None
        if self.job.state.revision is not None:
            child = self.children.get(self.job.state.revision.revision)
            pool = self.job.state.revision.placement.pool
            if child is not None and child.running >= child.replicas and pool in self.rates:
                number = self.job.state.revision.revision
                unit = self.units.get(pool, WorkUnit.SAMPLES)
                profile = complete_profile(number, self.rates[pool], self.now, self.spread, unit)
                if pool in self.throttled_pools:
                    hot = {Field.THROTTLE: 1.0, Field.CLOCK: 0.425}
                    hot_readings = {name: Reading(value, value, value, Quality.MEASURED) for name, value in hot.items()}
                    profile = replace(profile, readings={**profile.readings, **hot_readings})
                if pool in self.hung_pools:
                    shares = {Field.CHIP_BUSY: 1.0, Field.COMPILING: self.compiling}
                    busy = {name: Reading(share, share, share, Quality.MEASURED) for name, share in shares.items()}
                    profile = replace(profile, readings=busy, steadiness=Steadiness.WARMING_UP)
                else:
                    varies = variation(number, self.rates[pool], self.now, self.spread, self.windows)
                    varies = replace(varies, unit=unit)
            if pool in self.gone_pools:
                absent = f"pool {pool} is gone: declare it again"
        number = None if self.job.state.revision is None else self.job.state.revision.revision
        track = self.tracks.setdefault(number, Track()) if self.counts and number is not None else None
        if track is not None and profile is not None and throttling(profile) != NOT_THROTTLED:
            track.throttled_at = self.now
        return changed(
            self.job,
            revisions=self.revisions(),
            profile=profile,
            variation=varies,
            checkpoint_at=self.saves,
            pool_problem=absent,
            track=track,
        )

    def persist(self, job: Job) -> None:
        """What survives a kill: nothing observed."""
        self.job = changed(
            job, revisions={}, profile=None, variation=None, checkpoint_at=None, pool_problem=None, track=None
        )

    def run(self, command: Command) -> None:
        """One command, with the executor's own look at the world."""
        if isinstance(command, EnsureRevision):
            number = command.ref.revision
            suspended = command.suspend or (self.job.spec.queue_name is not None and not self.admits)
            if number in self.children:
                self.children[number].suspended = suspended
                return
            if any(c.pods for n, c in self.children.items() if n != number):
                return
            if command.ref.placement.pool in self.gone_pools:
                return
            self.created.append(number)
            stuck = command.ref.placement.pool in self.stuck_pools
            silent = command.ref.placement.pool in self.silent_pools
            self.places[number] = command.ref.placement
            self.children[number] = Child(
                command.ref.placement.replicas,
                suspended=suspended,
                stuck=stuck,
                silent=silent,
                workload_hash=self.job.workload_hash,
            )
        elif isinstance(command, EndRevision):
            child = self.children.get(command.revision)
            if child is not None and not child.succeeded:
                child.deleting = True
                child.deleted_at = self.now if child.deleted_at is None else child.deleted_at
        elif isinstance(command, RequestCheckpoint) and self.fails:
            self.fail(command)
        elif isinstance(command, RequestCheckpoint) and self.answers:
            self.saves = self.now

    def fail(self, request: RequestCheckpoint) -> None:
        """The program ends by an error in the save. Who is started later has not been asked."""
        child = self.children.get(request.revision)
        if child is None or not child.running or request.id in self.asked:
            return
        self.asked.append(request.id)
        failures = 1 if child.crash is None else child.crash.count + 1
        output = "OSError: [Errno 28] No space left on device"
        child.crash = Crash(failures, ALLOWED, "trainer", 1, "Error", float(int(self.now)), output)
        child.running = 0
        child.failed = failures > ALLOWED
        if child.failed:
            child.pods = 0

    def live(self, seconds: float = 5.0) -> None:
        """Time passes: pods come up, deleted children go."""
        self.now += seconds
        for number in list(self.children):
            child = self.children[number]
            self._work(number, child, seconds)
            if child.deleting:
                if self.nodes_lost and child.pods:
                    continue
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
            child.running = 0 if child.stuck or child.silent else child.pods
            child.stuck_since = (child.stuck_since or self.now) if child.stuck else None
            child.pods = child.replicas

    def _work(self, number: int, child: Child, seconds: float) -> None:
        """What the pods that were there have cost and done meanwhile."""
        place = self.places.get(number)
        if place is None:
            return  # not made by this operator
        if not child.stuck:
            self.held += place.chips_per_replica * child.pods * seconds
            self.paid += self.prices[place.pool] * place.chips_per_replica * child.pods * seconds / 3600
        if child.running < child.replicas:
            child.ran = 0.0
            return
        working = max(0.0, min(seconds, child.ran + seconds - self.loading))
        child.ran += seconds
        rate = self.rates.get(place.pool, 0.0)
        self.counters[number] = self.counters.get(number, 0.0) + rate * working
        values = {Field.SAMPLES: self.counters[number], Field.PODS: float(child.replicas)}
        if self.saves is not None:
            values[Field.CHECKPOINT_TIMESTAMP] = self.saves
        self.tracks.setdefault(number, Track()).add(Sample(self.now, values), child.replicas)

    def cycle(self, assessment: Any = None, *, killed_before: int | None = None) -> None:
        """One planner cycle. killed_before: the operator dies before that command (0: right after persisting)."""
        job = advance(self.observed(), assessment, self.policy, self.now, decision_text)
        if self.counts and job.state.finished is None:
            progress = progress_of(job, self.now)  # a status is written with it
            job = job.with_state(replace(job.state, progress=None if progress.since is None else progress))
        self.persist(job)
        for index, command in enumerate(commands(changed(self.job, revisions=self.revisions()))):
            if killed_before is not None and index >= killed_before:
                return
            self.run(command)

    def settle(self, cycles: int = 40) -> None:
        """Cycles without new decisions."""
        for _ in range(cycles):
            self.live()
            self.cycle()

    def reach(self, phase: Phase, *, back: bool = False) -> "World":
        """Cycles without new decisions until the migration is in this phase."""
        for _ in range(400):
            migration = self.job.state.migration
            if migration is not None and migration.phase is phase and migration.rolling_back is back:
                return self
            self.live()
            self.cycle()
        raise AssertionError(f"never {phase}")

    def placed(self, placement: Placement, rate: float) -> "World":
        """The job runs on `placement`."""
        self.cycle(decide(Action.START, placement, rate))
        self.settle(4)
        return self

    def check(self) -> None:
        """What must hold at every moment."""
        with_pods = [n for n, c in self.children.items() if c.pods]
        assert len(with_pods) <= 1, f"two Revisions have pods: {with_pods}"
        revision = self.job.state.revision
        child = None if revision is None else self.children.get(revision.revision)
        if revision is not None and child is not None and child.workload_hash:
            assert child.workload_hash == revision.workload_hash, "it runs another template than it is taken to run"
        assert self.job.state.account.spent >= 0
        assert contradiction(self.observed()) is None


def variation(revision: int, rate: float, now: float, spread: float = 0.01, windows: int = 3) -> Variation:
    """What is known of a job whose windows differ by `spread`."""
    spans = tuple(SpanDifference(length, 60.0, spread**2) for length in (1, 3))
    return Variation(revision, now, (rate,) * windows, spans)


def complete_profile(
    revision: int, rate: float, now: float, spread: float = 0.01, unit: WorkUnit = WorkUnit.SAMPLES
) -> Profile:
    """A steady window at `rate` units a second."""
    field = Field.SAMPLES_PER_SECOND if unit is WorkUnit.SAMPLES else Field.STEPS_PER_SECOND
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
        readings={field: reading},
    )


def on_a100(**overrides: object) -> World:
    """A world whose job runs on the A100 pool, a tenth faster than it would on the A10G pool."""
    world = World.fresh(**overrides)
    world.rates = {"a100": 1000.0, "a10g": 900.0}
    return world.placed(A100, 1000.0)


def moved(world: World, rate: float = 900.0) -> World:
    """The decision to go to the A10G pool, taken and written down."""
    world.cycle(decide(Action.MOVE, A10G, rate, candidate(A100, 1000.0, 0.02)))
    return world
