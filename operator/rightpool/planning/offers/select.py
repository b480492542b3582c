"""Select: the best wanted placement of a job that has room at this moment, and the decision that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rightpool.api.action import Action
from rightpool.api.choices import AdaptationMode, Objective
from rightpool.api.conditions import Reason
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.jobs.approval import approves, effective_mode
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment, first_given
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.evaluated import Evaluated, MeasuredJob
from rightpool.planning.offers.evidence import Bill, FleetGain, Restart
from rightpool.planning.offers.intent import Intent, demanded
from rightpool.planning.offers.scores import payback
from rightpool.planning.offers.targets.registry import target_missed
from rightpool.planning.work.registry import work_of
from rightpool.prediction.columns import floats

_UNDER_WAY: Final = {
    Action.RESIZE: Reason.RESIZING,
    Action.UPDATE: Reason.UPDATING,
    Action.START: Reason.STARTING,
}


def select(
    job: Job,
    evaluated: Evaluated,
    policy: PlacementPolicySpec,
    fits: Sequence[bool],
    *,
    kept: Sequence[bool] = (),
    way_back: bool | None = None,
    offers: frozenset[int] | None = None,
) -> Assessment:
    """The decision on a job. fits: which of its wanted entries have room now; kept: which would have, were it not kept
    free for an older job; way_back: of a move that has left, whether there is room where it came from; offers:
    positions of those that are given to it, None for all."""
    wanted = evaluated.wanted
    taken = first_given(wanted, fits, offers)
    crowded = tuple(entry for entry, room in zip(wanted, fits, strict=True) if not room)
    migration = job.state.migration
    if migration is not None:
        decision = _under_way(job)
    elif taken is not None:
        decision = _act(job, evaluated, evaluated.candidate(taken), policy)
    elif crowded:
        best = evaluated.candidate(crowded[0])
        purpose = None if evaluated.intent is Intent.START else _purpose(job, evaluated, best)
        older = any(so for so, room in zip(kept, fits, strict=False) if not room)
        reason = Reason.WAITING_FOR_OLDER_JOB if older else Reason.WAITING_FOR_CAPACITY
        decision = Decision(Action.HOLD, reason, best, purpose)
    else:
        decision = evaluated.decision or _otherwise(job, evaluated)
    return Assessment(
        decision=decision,
        intent=evaluated.intent,
        saved_per_hour=0.0 if taken is None else evaluated.hour * evaluated.saving(taken),
        withdrawn=_withdrawn(job, evaluated, crowded),
        evaluated=evaluated,
        fits=tuple(fits),
        kept=tuple(kept),
        offers=offers,
        way_back=way_back,
    )


def given(alone: Assessment, evaluated: Evaluated, place: Placement, gain: float) -> Assessment:
    """The decision on a job that the plan of the fleet moves. gain: dollars an hour that it itself gains by that."""
    entry = next(entry for entry in evaluated.entries if evaluated.placement(entry) == place)
    revision, candidate = evaluated.job.state.revision, replace(evaluated.candidate(entry), rejection=None)
    resizes = revision is not None and revision.placement.pool == place.pool
    action = Action.RESIZE if resizes else Action.MOVE
    decision = Decision(action, Reason.FLEET_GAINS, candidate, Reason.FLEET_GAINS, FleetGain(gain))
    return replace(alone, decision=decision, given=entry, saved_per_hour=gain)


def adaptation_mode(job: Job, policy: PlacementPolicySpec) -> AdaptationMode:
    """The mode in force: the job's own, else the policy's."""
    return job.spec.adaptation.mode or policy.default_adaptation_mode


def _withdrawn(job: Job, evaluated: Evaluated, crowded: Sequence[int]) -> bool:
    """Whether a migration that has promised something, and waits, is not to begin after all."""
    migration = job.state.migration
    if migration is None or migration.phase is not Phase.PLANNED or not migration.promises or not evaluated.entries:
        return False
    if migration.reason is Reason.FLEET_GAINS:
        return False  # others count on it, and it is begun at once
    if job.awaits_approval:
        crowded = ()  # it has been promised nothing until then
    target = migration.target.placement
    scales = work_of(job.spec).scales
    there = (evaluated.placement(entry) for entry in evaluated.wanted if entry not in crowded)
    return not any(_is_there(place, target, scales) for place in there)


def _is_there(place: Placement, target: Placement, scales: bool) -> bool:
    """scales: whether how many pods it has changes meanwhile."""
    return place == target or (scales and (place.pool, place.capacity) == (target.pool, target.capacity))


def _under_way(job: Job) -> Decision:
    migration = job.state.migration
    assert migration is not None
    reason = Reason.ROLLING_BACK if migration.rolling_back else _UNDER_WAY.get(migration.action, Reason.MOVING)
    return Decision(Action.HOLD, reason)


def _act(job: Job, evaluated: Evaluated, taken: Candidate, policy: PlacementPolicySpec) -> Decision:
    """Act on a candidate that has room, where the user and the platform team let it."""
    intent, revision = evaluated.intent, job.state.revision
    if intent is Intent.START and job.starts_itself(taken.placement):
        return Decision(Action.START, Reason.STARTING, taken)
    kept = _kept(job, taken)
    if kept is not None:
        return Decision(Action.HOLD, kept, taken, None if intent is Intent.START else _purpose(job, evaluated, taken))
    if intent is Intent.START:
        if revision is None:
            return Decision(Action.START, Reason.STARTING, taken)
        restart = Restart(revision.placement, job.obstacle)
        return Decision(Action.START, Reason.START_DEADLINE_EXCEEDED, taken, evidence=restart)
    if intent is Intent.UPDATE:
        return Decision(Action.UPDATE, Reason.UPDATING, taken)
    why = _purpose(job, evaluated, taken)
    mode = AdaptationMode.AUTO if demanded(job, intent) else adaptation_mode(job, policy)
    mode = effective_mode(job, taken.placement, mode)
    if mode is AdaptationMode.OFF:
        return Decision(Action.KEEP, Reason.ADAPTATION_OFF, taken, why)
    if mode is AdaptationMode.RECOMMEND:
        return Decision(Action.HOLD, Reason.POLICY_RECOMMEND_ONLY, taken, why)
    if work_of(job.spec).loses_all(job.spec) and intent is not Intent.LEAVE:
        return Decision(Action.HOLD, Reason.NOT_CHECKPOINTABLE, taken, why)
    assert revision is not None
    action = Action.RESIZE if revision.placement.pool == taken.placement.pool else Action.MOVE
    return Decision(action, why, taken, why)


def _kept(job: Job, taken: Candidate) -> Reason | None:
    """Why nothing is done to an object that somebody else has made; None where it may be."""
    if job.spec.only_watched and job.spec.adaptation.mode is not AdaptationMode.OFF:
        return Reason.ADOPTION_RECOMMEND_ONLY
    undone = job.overruled is not None and not approves(job, taken.placement)
    return Reason.CHANGE_UNDONE if undone else None


def _purpose(job: Job, evaluated: Evaluated, candidate: Candidate) -> Reason:
    """Why the candidate would be taken, in one word."""
    current, repairs = evaluated.current(), evaluated.intent is Intent.REPAIR or evaluated.unreachable is None
    missed = None if current is None or current.rejection is None else target_missed(current.rejection)
    if repairs and missed is not None:
        return missed.missed
    if evaluated.intent is Intent.UPDATE:
        return Reason.UPDATING
    if evaluated.intent is Intent.LEAVE:
        return Reason.PLACEMENT_DISALLOWED
    if evaluated.unreachable is not None or evaluated.nears:
        return Reason.BETTER_TARGET_UNREACHABLE
    return _better(current, candidate, job.spec.targets.objective)


def _better(current: Candidate | None, candidate: Candidate, objective: Objective) -> Reason:
    """What a candidate has over the current placement, in one word."""
    same_pool = current is not None and current.placement.pool == candidate.placement.pool
    if current is not None and current.cost_per_million is not None and candidate.cost_per_million is not None:
        if candidate.cost_per_million.median >= current.cost_per_million.median:
            return Reason.FASTER_PLACEMENT_MEETS_TARGETS
    elif objective is Objective.MINIMIZE_TIME:
        return Reason.FASTER_PLACEMENT_MEETS_TARGETS
    return Reason.CHEAPER_SIZE_MEETS_TARGETS if same_pool else Reason.CHEAPER_POOL_MEETS_TARGETS


def _otherwise(job: Job, evaluated: Evaluated) -> Decision:
    """The decision on a job that was measured where no placement is wanted."""
    assert isinstance(evaluated, MeasuredJob), "any other has one where nothing is wanted"
    running, number, intent = evaluated.evaluation.running, evaluated.number, evaluated.intent
    if running.unpriced[number]:
        return Decision(Action.HOLD, Reason.PRICE_UNKNOWN)
    if intent is Intent.LEAVE:
        return Decision(Action.HOLD, Reason.NO_FEASIBLE_POOL)
    first = int(running.best[number])
    if evaluated.unreachable is not None:
        target = evaluated.unreachable
        holding = int(running.holding[number])
        best = None if holding < 0 else replace(evaluated.candidate(holding), rejection=None)
        return Decision(Action.HOLD, target.unreachable, best, target.missed)
    if first < 0:
        return Decision(Action.KEEP, Reason.NOT_PREDICTABLE if running.unknown[number] else Reason.CHEAPEST)
    saved = evaluated.saving(first)
    if not saved > 0.0:
        return Decision(Action.KEEP, Reason.CHEAPEST)
    if saved < running.offers.numbers.savings[number]:
        return Decision(Action.KEEP, Reason.BELOW_MIN_SAVINGS)
    unsure = int(running.unsure[number])
    if unsure >= 0:
        candidate = replace(evaluated.candidate(unsure), rejection=None)
        purpose = _better(evaluated.current(), candidate, job.spec.targets.objective)
        return Decision(Action.HOLD, Reason.UNCERTAIN_SAVING, candidate, purpose)
    return Decision(Action.KEEP, Reason.DOES_NOT_PAY_BACK, evidence=_bill(evaluated, first))


def _bill(evaluated: MeasuredJob, entry: int) -> Bill:
    """What the best entry would bring and cost."""
    running, number = evaluated.evaluation.running, evaluated.number
    numbers = running.offers.numbers
    candidate, current = evaluated.candidate(entry), evaluated.current()
    now = 0.0 if current is None else current.cost_per_hour or 0.0
    horizon, restart = float(numbers.horizon[number]), float(numbers.restart[number])
    gain, cost = payback(
        floats(running.value[number]),
        floats(now),
        floats(candidate.cost_per_hour or 0.0),
        floats(running.offers.lasting[entry]),
        floats(horizon),
        floats(restart),
    )
    fades = float(running.offers.lasting[entry]) < evaluated.saving(entry)
    return Bill(float(gain), float(cost), restart, horizon, fades=fades)
