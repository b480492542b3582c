"""The simulator: one clock, pools and jobs, and the operator's cycle as the loop runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rightpool.api.migration import Phase
from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.allocate.allocator import Allocator
from rightpool.planning.allocate.breaker import Outcomes, outcomes_of
from rightpool.planning.allocate.plan import Plan, plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.judge.spot_count import SpotCount
from rightpool.planning.moves.beginning import Why
from rightpool.planning.moves.commands import commands
from rightpool.planning.moves.transitions import advance
from rightpool.prediction.predictor import Predictor
from rightpool.simulation.chips import SimulatedPool
from rightpool.simulation.simulated_job import SimulatedJob
from rightpool.simulation.trials import SimulatedTrials

# Seconds between cycles while a migration is under way, and otherwise. The operator's own interval is 10.
BUSY_CYCLE: Final = 20.0
CYCLE: Final = 60.0

Watch = Callable[[Job, Job, float], None]
"""Called with a job before and after each step of the state machine, and the time."""


@dataclass(slots=True)
class Simulator:
    """A fleet in virtual time."""

    pools: Mapping[str, SimulatedPool]
    """By name."""
    policy: PlacementPolicySpec
    """That of the cluster."""
    predictor: Predictor
    """Predicts throughput, as in the operator."""
    allocator: Allocator
    """Gives chips to jobs, as in the operator."""
    why: Why
    """Says why a migration begins, as in the operator."""
    now: float
    """Unix seconds."""
    watch: Watch | None = None
    """Called where a step changes a job: with the job before and after it, and the time."""
    jobs: dict[JobKey, SimulatedJob] = field(default_factory=dict)
    """Those that are there, by namespace and name."""
    outcomes: Outcomes = field(default_factory=dict)
    """How moves to each pool ended, as the statuses of the pools keep it."""
    spot: SpotCount = field(default_factory=SpotCount)
    """What jobs have met on spot capacity, as the operator has it in memory."""
    busy_cycle: float = BUSY_CYCLE
    """Seconds between cycles while a migration is under way."""
    idle_cycle: float = CYCLE
    """The same otherwise."""
    trials: SimulatedTrials | None = None
    """Trials of its jobs; None where there are none."""
    _plan: Plan | None = None

    def add(self, jobs: Iterable[SimulatedJob]) -> None:
        """They exist from now on."""
        for job in jobs:
            self.jobs[job.job.key] = job

    def run(self, until: float) -> None:
        """Cycle after cycle."""
        while self.now < until:
            busy = any(self._busy(job.job) for job in self.jobs.values())
            self.now = min(self.now + (self.busy_cycle if busy else self.idle_cycle), until)
            self.cycle()

    def cycle(self) -> None:
        """What the planner's loop does in one: observe, plan, advance, store, carry out."""
        now = self.now
        for simulated in self.jobs.values():
            simulated.live(self.pools, now)
        if self.trials is not None:
            self.trials.live(self.jobs, self.pools, now)
        pools = {name: pool.seen(now) for name, pool in self.pools.items() if not pool.gone}
        jobs = {key: simulated.observed(pools, now) for key, simulated in self.jobs.items()}
        fleet = Fleet(jobs, pools, self.policy, now, outcomes=self.outcomes)
        self._plan = plan(fleet, self.predictor, self.allocator, self._plan)
        if self.trials is not None:
            self.trials.plan(fleet, self._plan.assessments, self.pools, now)
        for key, job in jobs.items():
            self._step(self.jobs[key], job)
        self.outcomes = outcomes_of(jobs.values(), self.outcomes, now, pools)
        kept = {name: pool.pool.spot_uses for name, pool in self.pools.items()}
        self.spot = self.spot.after(jobs.values(), kept, now)
        uses = self.spot.to_keep(kept)
        for name, pool in self.pools.items():
            pool.remember(now, uses[name])

    def restart_operator(self) -> None:
        """All that the operator has in memory is gone."""
        self._plan, self.spot = None, SpotCount()
        for simulated in self.jobs.values():
            simulated.restart_operator()

    def _step(self, simulated: SimulatedJob, job: Job) -> None:
        assert self._plan is not None
        on_trial = self.trials is not None and job.key in self.trials.under_way
        # Nothing is decided on a job while its program is tried.
        assessment = None if on_trial else self._plan.assessments.get(job.key)
        after = advance(job, assessment, self.policy, self.now, self.why)
        if after is not job:
            simulated.store(after.state)
            if self.watch is not None:
                self.watch(job, after, self.now)
            job = after
        for command in commands(job):
            simulated.carry_out(command, self.now)

    @staticmethod
    def _busy(job: Job) -> bool:
        """Whether seconds count."""
        migration = job.state.migration
        moving = migration is not None and migration.phase not in (Phase.WARMING_UP, Phase.VERIFYING)
        revision = job.state.revision
        return moving or (job.state.finished is None and (revision is None or revision.since is None))
