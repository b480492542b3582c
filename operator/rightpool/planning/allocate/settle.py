"""Settle: what an allocator chose, carried over into one decision a job, with what no choice can change.

Whatever the allocator: migrations that were decided before and wait to begin are confirmed first, the oldest first, or
withdrawn. Then the choice is gone through in its order: what has no room any more or is held back by a limit holds, for
a reason; a move goes without return where holding what it leaves costs more than a way back is worth.

A start that finds no room for longer than the policy's startDeadline has nodes kept free for it, the first of each
pool, until it fits: later jobs get what is left beside them, and the kept chips themselves where they end before those
that run there do, as far as ends are declared or measured (EASY backfill).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.planning.allocate.allocator import AllocationProblem, Allocator, Ask, Choice, Grant, Turn
from rightpool.planning.allocate.leaving import coming_free, latest_end, leaving
from rightpool.planning.allocate.limits import (
    FleetLimits,
    asks_first,
    job_limit,
    save_limit,
    windows_limit,
)
from rightpool.planning.allocate.members import gives_way, lacking_nodes, members_of
from rightpool.planning.allocate.room import NO_NODES, Nodes, Room
from rightpool.planning.allocate.untaken import elsewhere, given_up, untaken
from rightpool.planning.allocate.way_back import price_of_return
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.kept_target import kept_too_long, waits_for_save
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.decision import MIGRATING_ACTIONS, Decision, Held
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.offers.evidence import Gathering, Limit, Outbid, SourceNotHeld, Suspected
from rightpool.planning.offers.intent import Intent, demanded
from rightpool.planning.offers.select import given, select
from rightpool.planning.work.outlook import ends_at


@dataclass(frozen=True, slots=True)
class Allocation:
    """Who gets which chips, and who holds, for a reason."""

    assessments: Mapping[JobKey, Assessment]
    """One for each evaluated job. The very same object as before where nothing has changed."""
    limits: FleetLimits = field(repr=False)
    """What the fleet's limits allow, with what has been decided."""
    choice: Choice = field(default=Choice(), repr=False)
    """What the allocator chose."""
    alone: Mapping[JobKey, Assessment] = field(default_factory=dict, repr=False)
    """What each job would get by itself: the memory of how it came to the assessments."""
    gathering: Mapping[JobKey, Nodes] = field(default_factory=dict, repr=False)
    """Nodes that are kept free for jobs that wait."""
    untaken: Mapping[JobKey, float] = field(default_factory=dict, repr=False)
    """Unix seconds since when there has been room for adopted objects that Kubernetes does not start."""
    supply: Mapping[str, object] = field(default_factory=dict, repr=False)
    """What each pool had for a job by itself: the memory of what `fits` depends on."""


def settle(
    fleet: Fleet, evaluated: Mapping[JobKey, Evaluated], allocator: Allocator, previous: Allocation | None
) -> Allocation:
    """Assessments that fit together. previous: of the last cycle.

    Nothing depends on the order in which jobs or pools come.
    """
    return _Settlement(fleet, evaluated, previous).allocation(allocator)


class _Settlement:
    """One cycle's settlement."""

    __slots__ = (
        "alone",
        "evaluated",
        "fleet",
        "free_at",
        "leaving",
        "limits",
        "previous",
        "prices",
        "room",
        "same",
        "supply",
        "untaken",
        "waiting",
    )

    def __init__(self, fleet: Fleet, evaluated: Mapping[JobKey, Evaluated], previous: Allocation | None) -> None:
        self.fleet, self.previous = fleet, previous
        self.evaluated = evaluated if previous is None else elsewhere(evaluated, previous.untaken, fleet)
        self.room = Room(
            fleet.pools, (job for job in fleet.jobs.values() if not _waits(job) and not _promised_too_long(job, fleet))
        )
        self.limits = FleetLimits(
            fleet.jobs.values(), fleet.policy, fleet.now, outcomes=fleet.outcomes, pools=fleet.pools
        )
        self.alone: dict[JobKey, Assessment] = {}
        self.supply: Mapping[str, object] = {}
        self.untaken: dict[JobKey, float] = {}
        """As the allocation has it."""
        self.same: frozenset[str] = frozenset()
        """Pools that have for a job by itself what they had in the last cycle."""
        self.waiting: dict[str, int] = {}
        """Jobs without a place that wait for chips of each pool."""
        self.free_at: dict[str, float] = {}
        """By pool, Unix seconds when the nodes that are kept free are likely to be."""
        self.leaving: Mapping[str, Mapping[JobKey, int]] | None = None
        """By pool, chips that jobs are about to leave for others; None until somebody waits for some."""

    def allocation(self, allocator: Allocator) -> Allocation:
        """The assessments of all jobs, as the allocator shares out the chips."""
        waiting = self._confirmed()
        fleet, room, old = self.fleet, self.room, {} if self.previous is None else self.previous.alone
        self.supply = supply = room.supply()
        if self.previous is not None:
            before = self.previous.supply
            self.same = frozenset(name for name, had in supply.items() if before.get(name) == had)
        for key, evaluated in self.evaluated.items():
            if key in waiting:
                self.alone[key] = waiting[key]
                continue
            job = fleet.jobs[key]
            self.alone[key] = self._selected(job, evaluated, old.get(key))
            if job.state.migration is not None and _promised_too_long(job, fleet):
                taken = not room.fits(job, (job.state.migration.target.placement,))[0]
                self.alone[key] = replace(self.alone[key], withdrawn=taken)
        room.touched.clear()
        self.untaken = untaken(self.alone, fleet, {} if self.previous is None else self.previous.untaken)
        problem = AllocationProblem(
            asks := {ask.key: ask for ask in self._asks()},
            lambda: {name: room.free(name) for name in sorted(fleet.pools)},
            lambda: members_of(asks.values(), self.alone, fleet, room, self.limits, self._forbidden),
            lambda ask: room.fits(ask.job, ask.offers),
            self._forbidden,
            lambda changes: lacking_nodes(changes, fleet, room),
        )
        choice = allocator.share(problem, None if self.previous is None else self.previous.choice)
        changed = self._settled(problem, choice)
        assessments = self.alone | changed if changed else self.alone
        nodes = self.room.kept_nodes()
        return Allocation(assessments, self.limits, choice, self.alone, nodes, self.untaken, self.supply)

    def _confirmed(self) -> dict[JobKey, Assessment]:
        """Migrations that wait to begin: time has passed since they were decided, and others may have got the chips."""
        waiting = sorted(
            (job.state.migration.created_at, key)
            for key in self.evaluated
            if _waits(job := self.fleet.jobs[key]) and job.state.migration is not None
        )
        found: dict[JobKey, Assessment] = {}
        old = {} if self.previous is None else self.previous.alone
        for _, key in waiting:
            job, evaluated = self.fleet.jobs[key], self.evaluated[key]
            self.room.promise(job)
            found[key] = self._selected(job, evaluated, old.get(key))
            if found[key].withdrawn:
                self.room.withdraw(job)
            elif asks_first(job) and not job.awaits_approval:
                found[key] = self._in_turn(job, found[key])
        return found

    def _in_turn(self, job: Job, assessment: Assessment) -> Assessment:
        """A migration that was approved, which may be one of many at once."""
        migration, concurrency_limit = job.state.migration, self.limits.concurrency_limit(job)
        assert migration is not None
        if concurrency_limit is None:
            self.limits.admit(job, migration.target.placement, demanded=False)
            return replace(assessment, waits_for=None) if assessment.waits_for is not None else assessment
        if assessment.waits_for == concurrency_limit:
            return assessment
        under_way = Decision(Action.HOLD, Reason.MOVING)
        held = Decision(Action.HOLD, concurrency_limit.reason, evidence=Held(concurrency_limit, under_way))
        return replace(assessment, decision=held, waits_for=concurrency_limit)

    def _selected(self, job: Job, evaluated: Evaluated, before: Assessment | None) -> Assessment:
        """What the job would get by itself. before: what it got in the last cycle, kept where nothing has changed."""
        if before is not None and (before.evaluated is not evaluated or before.waits_for is not None):
            before = None
        migration = job.state.migration
        # `fits` goes by the pools, by what is promised in them, and by what an evaluation is kept for.
        same = migration is None and self.same.issuperset(place.pool for place in evaluated.places)
        if before is not None and before.way_back is None and same:
            return before
        fits, back = self.room.fits(job, evaluated.places), None
        if migration is not None and migration.returns:
            back = self.room.fits(job, (migration.source.placement,))[0]
        if before is not None and (before.fits, before.way_back) == (fits, back):
            return before
        return select(job, evaluated, self.fleet.policy, fits, way_back=back)

    def _asks(self) -> Iterator[Ask]:
        """The jobs that ask for chips."""
        for key, assessment in self.alone.items():
            action, job = assessment.decision.action, self.fleet.jobs[key]
            if action is Action.START or _lacks_room(assessment):
                turn = Turn.START
                if given_up(self.untaken.get(key), self.fleet) and job.starts_itself(self.evaluated[key].places[0]):
                    continue
            elif action not in MIGRATING_ACTIONS:
                continue
            elif action is Action.UPDATE or assessment.intent is Intent.LEAVE:
                turn = Turn.DEMAND
            else:
                turn = Turn.MOVE
            yield Ask(job, turn, self.evaluated[key], assessment.saved_per_hour)

    def _forbidden(self, ask: Ask, offer: int) -> Limit | None:
        """Why a job may not have an offer now, whatever others get."""
        alone = self.alone[ask.key]
        fits = (True,) * len(alone.fits)
        given = select(
            ask.job, ask.evaluated, self.fleet.policy, fits, way_back=alone.way_back, offers=frozenset((offer,))
        )
        return self._limit_on(ask.job, given) if given.decision.action in MIGRATING_ACTIONS else None

    def _settled(self, problem: AllocationProblem, choice: Choice) -> dict[JobKey, Assessment]:
        """Assessments that differ from what each job by itself would get. Who was not chosen comes last, with
        nothing."""
        changed: dict[JobKey, Assessment] = {}
        named = {grant.key for grant in choice.grants}
        grants: list[tuple[Grant, frozenset[int] | None]] = [(grant, self._offers(grant)) for grant in choice.grants]
        grants += [(Grant(key), frozenset()) for key in sorted(problem.asks.keys() - named)]
        for grant, offers in grants:
            key, alone = grant.key, self.alone[grant.key]
            unasked = grant.place is not None and not offers
            assessment = self._moved_for_all(grant, alone) if unasked else self._admit(key, alone, offers, choice)
            if assessment is not alone:
                changed[key] = assessment
        return changed

    def _offers(self, grant: Grant) -> frozenset[int] | None:
        """Positions of what was granted among what the job wants; None: all."""
        places = self.evaluated[grant.key].places
        return None if grant.place is None else frozenset(n for n, place in enumerate(places) if place == grant.place)

    def _admit(self, key: JobKey, assessment: Assessment, offers: frozenset[int] | None, choice: Choice) -> Assessment:
        """offers: those that it may have; None: all."""
        job, evaluated = self.fleet.jobs[key], self.evaluated[key]
        if offers is not None and not offers and key in choice.outbid and assessment.intent is not Intent.START:
            return self._held(key, assessment, choice.outbid[key])
        assessment = self._with_what_is_left(job, evaluated, assessment)
        if _lacks_room(assessment):
            return self._kept(key, self._gathered(job, assessment))
        if not _acts(assessment):
            return self._kept(key, assessment)
        if offers is not None:
            wanted = assessment
            assessment = select(
                job,
                evaluated,
                self.fleet.policy,
                wanted.fits,
                kept=wanted.kept,
                way_back=wanted.way_back,
                offers=offers,
            )
            if assessment.taken is None and offers:
                return self._coming(key, assessment, evaluated.places[min(offers)], choice)
            if assessment.taken is None:
                assert wanted.decision.target is not None
                return self._held(key, wanted, choice.outbid.get(key) or Outbid(wanted.decision.target.pool))
            if not _acts(assessment):
                return self._kept(key, assessment)
        limit = self._limit_on(job, assessment)
        if isinstance(limit, Suspected):
            assessment, limit = self._elsewhere(job, assessment, limit)
        if limit is not None:
            return self._held(key, assessment, limit)
        action, target = assessment.decision.action, assessment.decision.target
        assert target is not None
        assessment = self._returning(job, assessment)
        if assessment.taken is not None and any(assessment.kept) and not self.room.fits(job, (target,))[0]:
            self.room.lend(job, target)
        else:
            self.room.take(job, target)
        if action in MIGRATING_ACTIONS:
            self.limits.admit(job, target, demanded=demanded(job, assessment.intent))
        return self._kept(key, assessment)

    def _coming(self, key: JobKey, assessment: Assessment, place: Placement, choice: Choice) -> Assessment:
        """A job that was given a place which others have to leave first."""
        if self.leaving is None:
            self.leaving = leaving(self.fleet, {one.key: one.place for one in choice.grants if one.place is not None})
        limit = coming_free(self.leaving, place.pool, key)
        if limit is None:
            return self._kept(key, assessment)
        fits = (True,) * len(assessment.fits)
        then = select(self.fleet.jobs[key], self.evaluated[key], self.fleet.policy, fits, offers=assessment.offers)
        return self._held(key, replace(assessment, decision=then.decision), limit)

    def _moved_for_all(self, grant: Grant, alone: Assessment) -> Assessment:
        """A job that does not ask for a move, and that the plan of the fleet moves. It stays while there is no room."""
        job, evaluated, place = self.fleet.jobs[grant.key], self.evaluated[grant.key], grant.place
        if place is None or not self.room.fits(job, (place,))[0]:
            return self._kept(grant.key, alone)
        assessment = given(alone, evaluated, place, grant.gain)
        limit = self.limits.limit_on(Intent.SAVE, job, place)
        if limit is not None:
            return self._held(grant.key, assessment, limit)
        self.room.take(job, place)
        self.limits.admit(job, place, demanded=False)
        return self._kept(grant.key, assessment)

    def _with_what_is_left(self, job: Job, evaluated: Evaluated, assessment: Assessment) -> Assessment:
        """What it would get after those before it."""
        if not self.room.touched or all(place.pool not in self.room.touched for place in evaluated.places):
            return assessment
        fits, kept = self.room.fits(job, evaluated.places), self.room.kept(job, evaluated.places)
        if assessment.intent is Intent.START and any(kept):
            fits = self._with_lent(job, evaluated.places, fits, kept)
        if fits == assessment.fits and not any(kept):
            return assessment
        return select(job, evaluated, self.fleet.policy, fits, kept=kept, way_back=assessment.way_back)

    def _gathered(self, job: Job, assessment: Assessment) -> Assessment:
        """A job that finds no room. After long enough nodes are kept free for it."""
        evaluated = self.evaluated[job.key]
        for pool in {place.pool for place in evaluated.places}:
            self.waiting[pool] = self.waiting.get(pool, 0) + 1
        if self.fleet.now - job.waits_since <= self.fleet.policy.start_deadline.total_seconds():
            return assessment
        before = NO_NODES if self.previous is None else self.previous.gathering.get(job.key, NO_NODES)
        place = self.room.keep_free(job, evaluated.places, before)
        if place is None:
            return assessment
        self.free_at[place.pool] = latest_end(self.fleet, place.pool, self.room.kept_nodes()[job.key][place.pool])
        best = evaluated.candidate(evaluated.wanted[evaluated.places.index(place)])
        decision = Decision(Action.HOLD, Reason.WAITING_FOR_CAPACITY, best, evidence=Gathering(place))
        return replace(assessment, decision=decision)

    def _with_lent(
        self, job: Job, places: Sequence[Placement], fits: tuple[bool, ...], kept: tuple[bool, ...]
    ) -> tuple[bool, ...]:
        """Which of the placements a job could have, with what is kept free for another one that it does not delay."""
        end = ends_at(job, self.fleet.now)
        if end is None:
            return fits
        return tuple(
            fit or (lent and end <= self.free_at.get(place.pool, 0.0))
            for place, fit, lent in zip(places, fits, kept, strict=True)
        )

    def _returning(self, job: Job, assessment: Assessment) -> Assessment:
        """A move, without return where holding what it leaves costs those that wait more than a way back is worth."""
        revision, evaluated, decision = job.state.revision, self.evaluated[job.key], assessment.decision
        if revision is None or assessment.intent not in (Intent.SAVE, Intent.REPAIR) or decision.candidate is None:
            return assessment
        waiting = self.waiting.get(revision.placement.pool, 0)
        if not waiting:
            return assessment
        cost, worth, seconds = price_of_return(job, evaluated, decision.candidate)
        if cost <= worth:
            return assessment
        return replace(assessment, decision=replace(decision, evidence=SourceNotHeld(waiting, cost, worth, seconds)))

    def _limit_on(self, job: Job, assessment: Assessment) -> Limit | None:
        intent = assessment.intent
        if assessment.decision.action is Action.START or intent is Intent.UPDATE:
            return None
        unsaved = save_limit(job, self.fleet.now)
        if unsaved is not None or demanded(job, intent):
            return unsaved
        target = assessment.decision.target
        assert target is not None
        evaluated = self.evaluated[job.key]
        # A target of time is missed by more the longer one waits.
        missed = evaluated.unreachable
        met = not evaluated.nears or (missed is not None and missed.yardstick is Yardstick.TIME)
        restart = None if evaluated.outlook is None else evaluated.outlook.restart
        limit = job_limit(job, intent, self.fleet.policy, self.fleet.now, met=met, restart=restart)
        # Others count on what the plan gives to who lets the fleet move it.
        if assessment.offers is None or not gives_way(job, assessment, self.fleet):
            limit = limit or windows_limit(job, assessment, self.fleet.now, met=met)
        return limit or self.limits.limit_on(intent, job, target)

    def _elsewhere(self, job: Job, assessment: Assessment, limit: Limit) -> tuple[Assessment, Limit | None]:
        """The best placement of a job that is on no suspected pool, and why it may not be moved there either; where
        there is none, the first one with what holds it back."""
        first, why, evaluated = assessment, limit, self.evaluated[job.key]
        suspected: set[str] = set()
        while isinstance(limit, Suspected):
            suspected.add(limit.pool)
            places = zip(assessment.fits, evaluated.places, strict=True)
            fits = tuple(room and place.pool not in suspected for room, place in places)
            made = select(
                job, evaluated, self.fleet.policy, fits, way_back=assessment.way_back, offers=assessment.offers
            )
            assessment = replace(made, suspected=frozenset(suspected))
            if assessment.decision.action not in MIGRATING_ACTIONS:
                return first, why
            found = self._limit_on(job, assessment)
            if found is None:
                return assessment, None
            limit = found
        return assessment, limit

    def _held(self, key: JobKey, assessment: Assessment, limit: Limit) -> Assessment:
        decision, before = assessment.decision, self._before(key, assessment)
        known = None if before is None else before.decision.evidence
        if before is not None and isinstance(known, Held) and known.limit == limit and known.decision == decision:
            return before
        held = Decision(Action.HOLD, limit.reason, decision.candidate, decision.purpose, Held(limit, decision))
        return replace(assessment, decision=held)

    def _kept(self, key: JobKey, assessment: Assessment) -> Assessment:
        """The very object of the last cycle where nothing of it has changed, so that readers need not compare it."""
        before = self._before(key, assessment)
        return before if before is not None and before.decision == assessment.decision else assessment

    def _before(self, key: JobKey, assessment: Assessment) -> Assessment | None:
        """What the last cycle gave, where it was taken from the same evaluation with the same room."""
        before = None if self.previous is None else self.previous.assessments.get(key)
        if before is None or before.evaluated is not assessment.evaluated:
            return None
        return before if before.room == assessment.room else None


def _acts(assessment: Assessment) -> bool:
    """Whether it asks for chips, and finds them."""
    return assessment.decision.action is Action.START or assessment.decision.action in MIGRATING_ACTIONS


def _lacks_room(assessment: Assessment) -> bool:
    """Whether a job without a place finds no room for one."""
    return (
        assessment.intent is Intent.START
        and assessment.decision.action is Action.HOLD
        and bool(assessment.fits)
        and not any(assessment.fits)
    )


def _promised_too_long(job: Job, fleet: Fleet) -> bool:
    """Whether a job waits for its save for so long that others may have the chips it is to go to."""
    migration = waits_for_save(job)
    return migration is not None and kept_too_long(migration, fleet.policy, fleet.now)


def _waits(job: Job) -> bool:
    """Whether a migration was decided on and has not begun."""
    migration = job.state.migration
    return migration is not None and migration.phase is Phase.PLANNED and not job.deleting
