"""The plan: what is to be done about every job of the fleet, so that all of it fits together.

Every job is evaluated, then an allocator shares out the chips. Nothing depends on the order in which jobs or pools
come.

A plan remembers what it was made from. Handed to the next call it spares the work for every job whose inputs are the
same: an evaluation is kept for some minutes while the job is the very object and the machines are the same, a selection
while the same wanted placements have room. What the moves of other jobs have shown of the chips reaches a job with its
next evaluation. docs/benchmarks.md has what it costs at 10,000 jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.allocator import Allocator
from rightpool.planning.allocate.breaker import outcomes_of
from rightpool.planning.allocate.settle import Allocation, settle
from rightpool.planning.allocate.trials import Trials, planned_trials
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.judge.crowding import Crowding, crowding
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.evaluate import evaluate
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.offers.evaluation import EvaluationBatch
from rightpool.planning.offers.trial_consent import NO_TRIAL, Trying
from rightpool.prediction.predictor import Predictor

# An evaluation is held whole while one job is kept from it. So many fleets of jobs are held at most: beyond that, the
# evaluations with the smallest share of their jobs left are made anew.
MOST_HELD: Final = 2.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What was decided in one cycle, and the memory of how."""

    allocation: Allocation
    """How the chips were shared out."""
    reused: int = 0
    """Evaluations that were kept from the plan before."""
    evaluated: Mapping[JobKey, Evaluated] = field(default_factory=dict, repr=False)
    """What each assessment was chosen from."""
    context: tuple[object, ...] = field(default=(), repr=False)
    """What all evaluations were made for."""
    crowded: Mapping[str, Crowding] = field(default_factory=dict, repr=False)
    """By pool, what it leaves of the rate of a job that comes, where that is less than is predicted."""

    trials: Trials | None = field(default=None, repr=False)
    """What trials begin and end; None where no job lets its program be tried."""

    @property
    def assessments(self) -> Mapping[JobKey, Assessment]:
        """One for each job of the fleet."""
        return self.allocation.assessments

    def trying(self, key: JobKey) -> Trying:
        """What is done about trials of this job."""
        return NO_TRIAL if self.trials is None else self.trials.of(key)


def plan(fleet: Fleet, predictor: Predictor, allocator: Allocator, previous: Plan | None = None) -> Plan:
    """Evaluate and allocate. previous: the last cycle's plan, whatever has happened since."""
    context = _context(fleet, predictor)
    old = previous if previous is not None and previous.context == context else None
    slow = crowding(outcomes_of(fleet.jobs.values(), fleet.outcomes, fleet.now, fleet.pools), fleet.now)
    kept = {} if old is None else _kept(fleet, old, slow)
    new = evaluate(fleet, predictor, [job for key, job in fleet.jobs.items() if key not in kept], slow)
    evaluated = {key: kept.get(key) or new[key] for key in fleet.jobs}
    allocation = settle(fleet, evaluated, allocator, None if old is None else old.allocation)
    tried = planned_trials(fleet, allocation.assessments, None if old is None else old.trials)
    return Plan(allocation, len(kept), evaluated, context, slow, tried)


def _kept(fleet: Fleet, old: Plan, crowded: Mapping[str, Crowding]) -> dict[JobKey, Evaluated]:
    """Evaluations whose inputs have not changed: what wanted a pool that leaves jobs less or more than before is made
    anew."""
    kept, pools = {}, crowded.keys() | old.crowded.keys()
    changed = {pool for pool in pools if crowded.get(pool) != old.crowded.get(pool)}
    for key, job in fleet.jobs.items():
        before = old.evaluated.get(key)
        if before is not None and before.evaluation.now <= fleet.now < before.until and before.job is job:
            if changed and not changed.isdisjoint(place.pool for place in before.places):
                continue
            kept[key] = before
    left = Counter(before.evaluation.batch for before in kept.values())
    dropped = _dropped(left, len(fleet.jobs))
    return {key: before for key, before in kept.items() if before.evaluation.batch not in dropped} if dropped else kept


def _dropped(left: Mapping[EvaluationBatch, int], jobs: int) -> set[EvaluationBatch]:
    """The batches to make anew, so that those held in a fleet of so many jobs are not too many. left: jobs kept from
    each."""
    held = sum(batch.size for batch in left) + jobs - sum(left.values())
    dropped: set[EvaluationBatch] = set()
    for batch in sorted(left, key=lambda batch: left[batch] / batch.size):
        if held <= MOST_HELD * jobs:
            break
        dropped.add(batch)
        held -= batch.size - left[batch]
    return dropped


def _context(fleet: Fleet, predictor: Predictor) -> tuple[object, ...]:
    """What evaluations of all jobs depend on: the pools without what changes from cycle to cycle, and the model."""
    pools = tuple(_lasting(fleet.pools[name]) for name in sorted(fleet.pools))
    return (predictor.version, fleet.policy, fleet.telemetry, pools)


def _lasting(pool: Pool) -> Pool:
    return replace(pool, free=0, shapes=dict.fromkeys(pool.shapes, 0), open_nodes=())
