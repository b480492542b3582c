"""A simulated job: what is true of it, what its pods do, and what the operator gets to see."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rightpool.api.placement import Placement
from rightpool.api.state import JobState
from rightpool.api.tried import Tried
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import NOT_OBSERVED, Job
from rightpool.planning.jobs.revision_window import RevisionWindow, observed_revision
from rightpool.planning.moves.commands import Command, EndRevision, EnsureRevision, RequestCheckpoint
from rightpool.planning.moves.news import look_until, taken_over
from rightpool.prediction.columns import Floats
from rightpool.profiles.sample import Field, Sample
from rightpool.simulation.child import Delays, SimulatedChild
from rightpool.simulation.chips import SimulatedPool

BATCH = 256.0


@dataclass(slots=True)
class Truth:
    """What the operator can't see: amounts since the simulation began."""

    done: float = 0.0
    """Samples that count."""
    saved: float = 0.0
    """Samples in the newest checkpoint."""
    worked: float = 0.0
    """Samples processed, those that were lost included."""
    spent: float = 0.0
    """Dollars for all chips that its pods held."""
    gaps: list[tuple[float, float]] = field(default_factory=list)
    """From when to when it had no running pods, Unix seconds."""
    finished_at: float | None = None
    """Unix seconds; None before its end."""


@dataclass(slots=True)
class SimulatedJob:
    """One job in virtual time."""

    job: Job
    """As it is stored: nothing that is only seen."""
    rate: Callable[[Placement], float]
    """Samples a second on a placement, without noise."""
    noise: Callable[[str], Floats]
    """Factors of its rate on a pool, one a reading."""
    began: float
    """Unix seconds of the first factor."""
    step: float
    """Seconds between readings."""
    readings: Mapping[Field, float]
    """What else its pods show, whatever the rate."""
    shows: Callable[[Placement], Mapping[Field, float]] = lambda _: {}
    """What of that is another one on a placement."""
    total: float = math.inf
    """Samples that it consumes."""
    saves_every: float = math.inf
    """Seconds between saves that nobody asks for."""
    saves: Callable[[Placement], bool] = lambda _: True
    """Whether the program saves on a placement when it is asked to."""
    delays: Delays = field(default_factory=Delays)
    """How long pods take to start, load and end."""
    children: dict[int, SimulatedChild] = field(default_factory=dict)
    """By number of the Revision."""
    truth: Truth = field(default_factory=Truth)
    """What the operator can't see."""
    window: RevisionWindow | None = None
    """What the operator would have measured; None before the first pod."""
    seen: Job | None = None
    """As the operator has it; None before it has looked."""
    seen_until: float = math.nan
    """Unix seconds up to which that may be the same object."""
    saved_at: float | None = None
    """Unix seconds of the newest checkpoint."""
    tried: tuple[Tried, ...] = ()
    """What trials of it have measured."""
    at: float = math.nan
    """Until when it has been simulated."""

    # --- the cluster -------------------------------------------------------------------------------------------------

    def live(self, pools: Mapping[str, SimulatedPool], now: float) -> None:
        """Time passes until `now`, reading by reading."""
        at = self.began if math.isnan(self.at) else self.at
        while at + self.step <= now + 1e-6:
            self._interval(pools, at)
            at += self.step
        self.at = at

    def _interval(self, pools: Mapping[str, SimulatedPool], begin: float) -> None:
        end = begin + self.step
        running = False
        for number in list(self.children):
            child = self.children[number]
            pool = pools[child.placement.pool]
            if child.nodes is not None and (not pool.has_nodes(begin) or (child.bound_at or 0.0) < pool.taken_at):
                self.truth.done = self.truth.saved
                child.lose_nodes(pool, begin)
            if child.nodes is not None:
                self.truth.spent += pool.charged * child.placement.chips * self.step / 3600.0
            if child.deleted_at is not None:
                if child.nodes is None or end >= child.deleted_at + self.delays.end:
                    child.release(pool)
                    del self.children[number]
                    self.truth.done = self.truth.saved
                continue
            if child.succeeded or not child.bind(pool, begin):
                continue
            running = running or child.runs(end, self.delays)
            if begin >= child.works_from(self.delays) and self._finishes(child, begin):
                child.release(pool)
        if not running and self.truth.finished_at is None:
            gaps = self.truth.gaps
            if gaps and gaps[-1][1] == begin:
                gaps[-1] = (gaps[-1][0], end)
            else:
                gaps.append((begin, end))

    def _finishes(self, child: SimulatedChild, begin: float) -> bool:
        """It works until the next reading. Whether that was the last of its work."""
        index = round((begin - self.began) / self.step)
        factors = self.noise(child.placement.pool)
        rate = self.rate(child.placement) * float(factors[min(index, len(factors) - 1)])
        truth, end = self.truth, begin + self.step
        truth.done += rate * self.step
        truth.worked += rate * self.step
        child.steps += rate * self.step / BATCH
        asked = child.save_asked_at is not None and end >= child.save_asked_at + self.delays.save
        if asked or end - max(self.saved_at or 0.0, child.works_from(self.delays)) >= self.saves_every:
            truth.saved, self.saved_at, child.save_asked_at = truth.done, end, None
        if truth.done >= self.total:
            child.succeeded, truth.finished_at, truth.saved = True, end, truth.done
        if self.window is None or self.window.key.revision != child.revision:
            self.window = RevisionWindow.of(self.job, child.revision)
        values = {
            **self.readings,
            **self.shows(child.placement),
            Field.SAMPLES_PER_SECOND: rate,
            Field.STEPS: math.floor(child.steps),
            Field.SAMPLES: child.steps * BATCH,
            Field.PODS: float(child.placement.replicas),
        }
        if rate > 0.0:
            values[Field.STEP_SECONDS] = BATCH / rate
        if self.saved_at is not None:
            values[Field.CHECKPOINT_TIMESTAMP] = self.saved_at
            values[Field.CHECKPOINT_SECONDS] = self.delays.save
        self.window.append(Sample(end, values))
        return child.succeeded

    # --- the operator ------------------------------------------------------------------------------------------------

    def observed(self, pools: Mapping[str, Pool], now: float) -> Job:
        """The job as the operator has it in this cycle."""
        job, number = self.job, observed_revision(self.job)
        revisions = {number: child.seen(now, self.delays) for number, child in self.children.items()}
        observed = NOT_OBSERVED
        if number is not None:
            if self.window is None or self.window.key.revision != number:
                self.window = RevisionWindow.of(job, number)  # heard from now on, whether it counts already or not
            assert job.state.revision is not None
            pool = pools.get(job.state.revision.placement.pool)
            observed = self.window.observe(job, None if pool is None else pool.accelerator, now)
        seen = replace(job, observed=observed._replace(revisions=revisions))
        if self.tried:
            seen = seen.with_state(replace(seen.state, tried=self.tried))
        if self.seen is not None and now < self.seen_until:
            seen = taken_over(self.seen, seen)
        if seen is not self.seen:
            self.seen, self.seen_until = seen, look_until(seen, now)
        return seen

    def store(self, state: JobState) -> None:
        """What is written is read again: nothing else survives."""
        read = JobState.from_dict(state.to_dict())
        self.job = replace(self.job, state=replace(read, finished=state.finished), observed=NOT_OBSERVED)

    def carry_out(self, command: Command, now: float) -> None:
        """As the executor does: no Revision is created while another one has pods."""
        if isinstance(command, EnsureRevision):
            number = command.ref.revision
            if number not in self.children and not any(not child.succeeded for child in self.children.values()):
                self.children[number] = SimulatedChild(number, command.ref.placement, now)
        elif isinstance(command, EndRevision):
            child = self.children.get(command.revision)
            if child is not None and child.deleted_at is None and not child.succeeded:
                child.deleted_at = now
        elif isinstance(command, RequestCheckpoint):
            child = self.children.get(command.revision)
            asked = child is not None and child.save_asked_at is None and child.works_from(self.delays) <= now
            if child is not None and asked and self.saves(child.placement):
                child.save_asked_at = now

    def restart_operator(self) -> None:
        """What the operator has in memory is gone."""
        self.window = self.seen = None
