"""Evaluate: what every placement of every job of a fleet would do and cost, by everything but the room that the pools
have at this moment.

Jobs that were measured are evaluated in columns, all together (running.py). The others have an order in which they
would be started, which jobs of equal shape share (start_order.py). What is chosen from it, in select.py, changes with
every chip that is taken or freed, and costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.adopted import AwaitedChips
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.judge.crowding import Crowding
from rightpool.planning.offers.awaited import awaited_start, pools_with
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.enumerate import nearest, sizes
from rightpool.planning.offers.evaluated import Evaluated, MeasuredJob
from rightpool.planning.offers.evaluation import Evaluation, EvaluationBatch
from rightpool.planning.offers.evidence import Failure, NoPoolFits, PoolGone
from rightpool.planning.offers.experience import fleet_experience, ran_last
from rightpool.planning.offers.gates import avoided
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.offers import NO_OFFERS, Offers
from rightpool.planning.offers.pool_gates import placed_vendor
from rightpool.planning.offers.readiness import (
    comparable_elsewhere,
    forbidden,
    late,
    measurement_gap,
    not_evaluated,
    resized_or_edited,
)
from rightpool.planning.offers.register import NONE, Register
from rightpool.planning.offers.rejection import Avoided, Gap, NotMeasured, Rejection
from rightpool.planning.offers.running import evaluate_running
from rightpool.planning.offers.servers.evaluated import ServerOffers, SizedServer, as_offers, server_offers
from rightpool.planning.offers.shape import Shape, Terms
from rightpool.planning.offers.start_order import Start, start_order
from rightpool.planning.offers.targets.registry import TARGETS
from rightpool.planning.work.fading import Faded, faded
from rightpool.planning.work.outlook import good_until
from rightpool.planning.work.registry import work_of
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Predictor

CHUNK: Final = 2_000
"""Jobs that are evaluated together: with more, columns in the making would be most of the operator's memory."""


def evaluate(
    fleet: Fleet,
    predictor: Predictor,
    jobs: Iterable[Job] | None = None,
    crowded: Mapping[str, Crowding] = MappingProxyType({}),
) -> dict[JobKey, Evaluated]:
    """Every job's part. jobs: those that are asked about; all of the fleet by default. crowded: by pool, what it leaves
    of the rate of a job that comes.

    A job that can't be evaluated keeps no other from it: that is a defect, which the job's own decision reports.
    """
    asked = list(fleet.jobs.values() if jobs is None else jobs)
    batch = EvaluationBatch(len(asked))
    found: dict[JobKey, Evaluated] = {}
    for start in range(0, len(asked), CHUNK):
        found |= _isolated(fleet, predictor, asked[start : start + CHUNK], batch, crowded)
    return found


def _isolated(
    fleet: Fleet, predictor: Predictor, jobs: list[Job], batch: EvaluationBatch, crowded: Mapping[str, Crowding]
) -> dict[JobKey, Evaluated]:
    """Halves are tried by themselves where the whole fails."""
    try:
        return _Evaluating(fleet, predictor, batch, crowded).all(jobs)
    except Exception as error:
        if len(jobs) == 1:
            return {jobs[0].key: _Evaluating(fleet, predictor, batch, crowded).failed(jobs[0], error)}
        half = len(jobs) // 2
        halves = (_isolated(fleet, predictor, part, batch, crowded) for part in (jobs[:half], jobs[half:]))
        return {key: found for half in halves for key, found in half.items()}


# Where a job could be that was not measured; the rows that would be acted on, and where they are.
_Start = tuple[Offers, Sequence[int], tuple[Placement, ...]]


@value_object
class _Part:
    """A job's part in the making."""

    job: Job
    shape: Shape | None = None
    """Set where the job was measured."""
    intent: Intent = Intent.NONE
    decision: Decision | None = None
    start: _Start = (NO_OFFERS, (), ())
    shown: bool = False
    disallowed: Rejection | None = None
    served: ServerOffers | None = None
    """Set where the job is a server whose record says what it would be elsewhere."""


@dataclass(slots=True)
class _Evaluating:
    fleet: Fleet
    predictor: Predictor
    batch: EvaluationBatch
    crowded: Mapping[str, Crowding]
    register: Register = field(init=False)
    faded: Faded = field(init=False)
    slow: dict[str, float] = field(init=False)
    _orders: dict[tuple[object, ...], tuple[list[int], list[tuple[int, int]]]] = field(default_factory=dict)
    _starts: dict[tuple[object, ...], _Start] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.register = Register(
            Machines.of(pool.believed(self.fleet.now) for pool in self.fleet.pools.values()),
            self.fleet.now,
            float(self.fleet.policy.spot_interruptions_per_day),
        )
        fleet = self.fleet
        pools = [pool for pool in fleet.pools.values() if pool.name in self.crowded]
        left = {pool.name: self.crowded[pool.name].at(pool.total - pool.free) for pool in pools}
        self.slow = {name: share for name, share in left.items() if share < 1.0}
        self.faded = faded(fleet.jobs.values(), fleet.now, self.slow)
        experience = fleet_experience(fleet.jobs.values(), fleet.pools, fleet.now, fleet.deleted_moves)
        self.predictor = self.predictor.of_fleet(experience)

    def all(self, jobs: Sequence[Job]) -> dict[JobKey, Evaluated]:
        """Each job by its readiness, then all that were measured together."""
        parts = [self._part(job) for job in jobs]
        measured = [part for part in parts if part.shape is not None]
        shapes = [part.shape for part in measured if part.shape is not None]
        now = self.fleet.now
        running = evaluate_running(
            [part.job for part in measured], shapes, self.register, self.predictor, now, self.faded, self.crowded
        )
        evaluation = Evaluation(self.register, running, now, self.batch)
        deadline = self.fleet.policy.start_deadline.total_seconds()
        found: dict[JobKey, Evaluated] = {}
        number = 0
        for part in parts:
            job, until, revision = part.job, good_until(part.job, now, deadline), part.job.state.revision
            if part.shape is not None:
                found[job.key] = MeasuredJob(
                    evaluation,
                    job,
                    running.intents[number],
                    until,
                    None,
                    running.offers,
                    running.rows[number],
                    running.wanted[number],
                    running.places[number],
                    unreachable=running.unreachable[number],
                    nears=bool(running.nears[number]),
                    hour=float(running.hour[number]),
                    faded=self.faded.jobs.get(job.key, 1.0),
                    crowded=revision is not None and revision.placement.pool in self.slow,
                    number=number,
                )
                number += 1
            elif part.served is not None:
                found[job.key] = self._sized_server(evaluation, part.job, part.served, until)
            else:
                offers, wanted, places = part.start
                rows, why = range(len(offers.option)), part.disallowed
                found[job.key] = Evaluated(
                    evaluation, job, part.intent, until, part.decision, offers, rows, wanted, places, part.shown, why
                )
        return found

    def _sized_server(self, evaluation: Evaluation, job: Job, served: ServerOffers, until: float) -> SizedServer:
        """By what its record says."""
        return SizedServer(
            evaluation,
            job,
            served.intent,
            until,
            served.decision,
            as_offers(served, self.register),
            range(len(served.sides)),
            served.wanted,
            tuple(served.sides[number].placement for number in served.wanted),
            hour=served.here.hourly or 0.0,
            nears=served.nears,
            found=served,
        )

    def failed(self, job: Job, error: Exception) -> Evaluated:
        """Of a job that can't be evaluated."""
        running = evaluate_running([], [], self.register, self.predictor, self.fleet.now)
        evaluation = Evaluation(self.register, running, self.fleet.now, self.batch)
        failure = Failure(f"{type(error).__name__}: {error}")
        decision = Decision(Action.HOLD, Reason.OPERATOR_FAILED, evidence=failure)
        return Evaluated(evaluation, job, Intent.NONE, self.fleet.now, decision, NO_OFFERS, range(0), shown=False)

    # --- one job -----------------------------------------------------------------------------------------------------

    def _part(self, job: Job) -> _Part:
        rest = not_evaluated(job)
        if rest is not None:
            return _Part(job, decision=rest)
        fleet, revision = self.fleet, job.state.revision
        shape = Shape.of(job)
        if revision is None or job.awaits is not None:
            return self._start(job, shape)
        here = revision.placement
        if here.pool not in fleet.pools:
            return self._without_pool(job, shape)
        if job.state.migration is None and resized_or_edited(job) and not self._as_it_is(job, shape):
            return self._without_measurements(job, shape, Intent.UPDATE)
        gap = measurement_gap(job, fleet.telemetry)
        if gap is None and not work_of(job.spec).profiled:
            return self._served(job, shape)
        if gap is None and (job.state.migration is not None or comparable_elsewhere(job)):
            return _Part(job, shape)
        if gap is not None and job.state.migration is not None:
            return _Part(job, decision=Decision(Action.HOLD, gap.reason, evidence=gap), shown=True)
        why = forbidden(job, shape, fleet.pools)
        if why is not None:
            part = self._without_measurements(job, shape, Intent.LEAVE)
            return replace(part, shown=True, disallowed=why)
        if gap is None:
            return _Part(job, shape)
        if late(job, fleet.policy, fleet.now):
            part = self._or_here(job, shape, self._start(job, shape))
            if part.start[1]:
                return part
        hold = Decision(Action.HOLD, gap.reason, evidence=gap)
        return _Part(job, decision=hold, start=self._unmeasured(job, shape, gap), shown=True)

    def _awaiting(self, job: Job, shape: Shape, awaits: AwaitedChips) -> _Part:
        """Of an object that Kubernetes starts: where it may."""
        pools = pools_with(self.register.machines.pools, awaits, job.needs)
        start = self._ordered(awaited_start(shape, awaits, job.spec.targets.objective), None, pools)
        nowhere = Decision(Action.HOLD, Reason.WORKLOAD_NOT_RUNNING)
        return _Part(job, intent=Intent.START, decision=None if start[1] else nowhere, start=start)

    def _or_here(self, job: Job, shape: Shape, elsewhere: _Part) -> _Part:
        """Of a job that is to be started elsewhere: there, or where it waits, where that has room first."""
        if job.lacks is None:
            return elsewhere
        offers, wanted, places = elsewhere.start
        here = tuple(place for place in self._awaiting(job, shape, job.lacks).start[2] if place not in places)
        options = np.array([self.register.option(place) for place in here], dtype=np.int64)
        others = np.isin(offers.option, options, invert=True)  # it need not be a size that the operator may give it
        both = Offers.unmeasured(
            np.concatenate([offers.option[others], options]),
            np.concatenate([offers.gate[others], np.full(len(options), NONE)]),
        )
        more = range(len(both.option) - len(options), len(both.option))
        return replace(elsewhere, start=(both, (*wanted, *more), (*places, *here)), decision=None)

    def _served(self, job: Job, shape: Shape) -> _Part:
        """Of a server whose record says what it would be elsewhere."""
        why = forbidden(job, shape, self.fleet.pools)
        served = server_offers(job, shape, self.register, why)
        if why is not None and not served.wanted:  # it has to go, wherever there is room
            part = self._without_measurements(job, shape, Intent.LEAVE)
            return replace(part, shown=True, disallowed=why)
        return _Part(job, served=served)

    def _without_pool(self, job: Job, shape: Shape) -> _Part:
        """Of a job whose pool is not there. What runs is left alone; what can't start is started elsewhere."""
        revision = job.state.revision
        assert revision is not None
        pool, problem = revision.placement.pool, job.observed.pool_problem
        runs = job.revision(revision.revision).exists
        if not late(job, self.fleet.policy, self.fleet.now):
            gone = PoolGone(pool, problem, runs)
            return _Part(job, decision=Decision(Action.HOLD, Reason.NO_FEASIBLE_POOL, evidence=gone))
        part = self._start(job, shape)
        if part.start[1]:
            return part
        gone = PoolGone(pool, problem, runs, NoPoolFits(tuple(sorted(self.fleet.pools))))
        return replace(part, decision=Decision(Action.HOLD, Reason.NO_FEASIBLE_POOL, evidence=gone))

    def _start(self, job: Job, shape: Shape) -> _Part:
        if job.awaits is not None:
            return self._awaiting(job, shape, job.awaits)
        return self._without_measurements(job, shape, Intent.START)

    def _without_measurements(self, job: Job, shape: Shape, intent: Intent) -> _Part:
        start = self._placements(job, shape, intent)
        if start[1]:
            return _Part(job, intent=intent, start=start)
        no_pool_fits = NoPoolFits(tuple(sorted(self.fleet.pools)))
        return _Part(
            job,
            intent=intent,
            decision=Decision(Action.HOLD, Reason.NO_FEASIBLE_POOL, evidence=no_pool_fits),
            start=start,
        )

    def _unmeasured(self, job: Job, shape: Shape, gap: Gap) -> _Start:
        """Everywhere else, and that nothing is known of it yet."""
        start = self._placements(job, shape, Intent.START)
        key = (id(start), gap)
        found = self._starts.get(key)
        if found is None:
            code = self.register.code(NotMeasured(gap))
            offers = start[0]
            gate = np.where(offers.gate == NONE, code, offers.gate)
            assert job.state.revision is not None
            here = self.register.find(job.state.revision.placement)
            other = offers.option != here
            found = self._starts[key] = (Offers.unmeasured(offers.option[other], gate[other]), (), ())
        return found

    def _placements(self, job: Job, shape: Shape, intent: Intent) -> _Start:
        """In the order in which they would be tried. Jobs whose starts are equal share it."""
        fleet, revision = self.fleet, job.state.revision
        here = None if revision is None else revision.placement
        current = None if here is None else fleet.pools.get(here.pool)
        wish: Placement | None = None
        tried: tuple[Avoided, ...] = ()
        if intent is Intent.UPDATE:
            wish = self._requested_placement(job, shape)
        else:
            wish = ran_last(job) if intent is Intent.START else None
            tried = avoided(job, fleet.now) if job.state.avoid else ()
        bars = (target.bars_start(job, fleet.now) for target in TARGETS if target.declared(job.spec.targets))
        barred = next((rejection for rejection in bars if rejection is not None), None)
        placed = placed_vendor(revision, current)
        terms = Terms.of(job.spec)
        start = Start(shape, terms, placed, wish, tried, barred)
        return self._ordered(start, None if intent is Intent.UPDATE else here)  # an edited job may stay where it is

    def _ordered(self, start: Start, here: Placement | None, pools: tuple[Pool, ...] | None = None) -> _Start:
        """here: where the job is, which is no other place. pools: those that count; None: all."""
        names = None if pools is None else tuple(pool.name for pool in pools)
        key = (start.shape, start.terms, start.placed, start.wish, start.avoided, start.barred, names)
        order = self._orders.get(key)
        if order is None:
            possible, rejected = start_order(start, list(self.register.machines.pools if pools is None else pools))
            option, code = self.register.option, self.register.code
            order = self._orders[key] = (
                [option(placement) for placement in possible],
                [(option(placement), code(rejection)) for placement, rejection in rejected],
            )
        left = -1 if here is None else self.register.find(here)  # once all placements have their numbers
        place = (*key, left)
        found = self._starts.get(place)
        if found is None:
            kept = [number for number in order[0] if number != left]
            offers = Offers.unmeasured(
                np.array([*kept, *(number for number, _ in order[1])], dtype=np.int64),
                np.array([NONE] * len(kept) + [code for _, code in order[1]], dtype=np.int64),
            )
            places = tuple(self.register.placements[number] for number in kept)
            found = self._starts[place] = offers, range(len(kept)), places
        return found

    def _as_it_is(self, job: Job, shape: Shape) -> bool:
        """Whether an edit of the size asks for what the job has already, as far as its pool can give it."""
        revision = job.state.revision
        assert revision is not None
        same = revision.workload_hash == job.workload_hash_of(revision)
        return same and self._requested_placement(job, shape) == revision.placement

    def _requested_placement(self, job: Job, shape: Shape) -> Placement | None:
        """The current pool at the size that the user asks for; the current size where that was not edited."""
        revision, workload = job.state.revision, job.spec.workload
        assert revision is not None
        here = revision.placement
        if revision.requested == (workload.chips, workload.replicas):
            return here
        pool = self.fleet.pools.get(here.pool)
        return None if pool is None else nearest(shape, pool, sizes(shape, pool), here.capacity)
