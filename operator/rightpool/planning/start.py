"""Where a job goes for which nothing was measured: its first start, an edit by the user, a pool that it must leave."""

from collections.abc import Mapping

from rightpool.api.choices import Objective
from rightpool.api.conditions import Reason
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.accelerator import Vendor
from rightpool.hardware.placement import Placement, hourly_cost
from rightpool.hardware.pool import Pool
from rightpool.planning import gates, messages
from rightpool.planning.candidate import Candidate, Rejection, RejectionReason
from rightpool.planning.decision import Action, Decision
from rightpool.planning.sizes import nearest, sizes
from rightpool.planning.snapshot import JobState
from rightpool.planning.survey import Intent, Survey
from rightpool.planning.wording import dollars
from rightpool.prediction.transfer import nominal_rate


def survey_start(job: JobState, pools: Mapping[str, Pool], now: float) -> Survey:
    """Every pool at the asked size, then smaller ones, in the order in which they would be taken; without the place
    where the job already is.

    Pools named in placement.pools.allow come in that order. Otherwise the objective ranks them by what a chip can do by
    its specifications for its price; pools without a price come last.
    """
    return _survey(job, pools, now, Intent.START, None)


def survey_update(job: JobState, pools: Mapping[str, Pool], now: float) -> Survey:
    """The user changed the workload: at the size that the user asks for now, where the job is if that is possible."""
    return _survey(job, pools, now, Intent.UPDATE, _wish(job, pools))


def survey_leave(job: JobState, pools: Mapping[str, Pool], now: float, why: Rejection) -> Survey:
    """The user does not allow the current placement any more, and there is no profile to choose by."""
    survey = _survey(job, pools, now, Intent.LEAVE, None)
    assert job.ref is not None
    price = hourly_cost(job.ref.placement, pools[job.ref.placement.pool])
    current = Candidate(job.ref.placement, None, price, None, rejection=why)
    if survey.wanted:
        return Survey(Intent.LEAVE, current, survey.candidates, survey.wanted, survey.otherwise)
    message = messages.stuck(why, survey.candidates)
    return Survey(Intent.LEAVE, current, survey.candidates, (), Decision(Action.HOLD, Reason.NO_FEASIBLE_POOL, message))


def late(job: JobState, policy: PlacementPolicySpec, now: float) -> bool:
    """Whether a job can't start where it was placed, and that for long enough: it has never run there and its pods say
    why, or it has none and can't, because the pool is gone.

    Being slow is no reason. Its queue and its user's suspending do not count: Kubernetes begins to run it after them.
    """
    if job.ref is None or job.migration is not None or job.spec.suspend:
        return False
    if (job.ref.since is not None and job.absent is None) or job.obstacle is None:
        return False
    state = job.revision(job.ref.revision)
    if not state.exists:
        began: float | None = job.ref.created_at
    elif job.ref.since is not None or state.suspended or state.deleting:
        return False
    else:
        began = state.started_at
    return began is not None and now - began > policy.start_deadline.total_seconds()


def forbidden(job: JobState, pools: Mapping[str, Pool]) -> Rejection | None:
    """Why the user no longer allows the current placement; None where it is fine."""
    if job.ref is None:
        return None
    here = job.ref.placement
    home = pools[here.pool]
    vendor = gates.home_vendor(pools.values(), home)
    return (
        gates.pool_gate(job.spec, home, vendor)
        or gates.capacity_type_gate(job.spec, home, here.capacity)
        or gates.bounds_gate(job.spec, here.chips)
    )


def _wish(job: JobState, pools: Mapping[str, Pool]) -> Placement | None:
    """The current pool at the size that the user asks for; the current size where that was not edited."""
    assert job.ref is not None
    here, workload = job.ref.placement, job.spec.workload.job
    if job.ref.requested == (workload.chips, workload.replicas):
        return here
    pool = pools.get(here.pool)
    return None if pool is None else nearest(job, pool, here.capacity)


def _survey(job: JobState, pools: Mapping[str, Pool], now: float, intent: Intent, wish: Placement | None) -> Survey:
    spec = job.spec
    current = pools.get(job.ref.placement.pool) if job.ref is not None else None
    selected = [pool for pool in pools.values() if spec.placement.pools.selects(pool.name, pool.labels)]
    vendor = gates.home_vendor(selected, current)
    possible: list[tuple[Placement, Pool]] = []
    rejected: list[Candidate] = []
    for name in sorted(pools):
        pool = pools[name]
        for placement in _placements(job, pool, wish):
            rejection = _gate(job, pool, placement, vendor, intent, now)
            if rejection is None:
                possible.append((placement, pool))
            else:
                rejected.append(_candidate(placement, pool, rejection))
    possible = _ranked(job, possible, wish)
    if intent in (Intent.START, Intent.LEAVE) and job.ref is not None:
        possible = [(placement, pool) for placement, pool in possible if placement != job.ref.placement]
    candidates = tuple(_candidate(placement, pool, None) for placement, pool in possible)
    if not candidates:
        message = messages.nowhere(spec.placement.pools.allow, sorted(pools), rejected)
        decision = Decision(Action.HOLD, Reason.NO_FEASIBLE_POOL, message)
        return Survey(intent, None, tuple(rejected), (), decision)
    return Survey(intent, None, (*candidates, *rejected), tuple(range(len(candidates))), messages.undecided())


def _placements(job: JobState, pool: Pool, wish: Placement | None) -> list[Placement]:
    """The nearest size to the asked one and all smaller ones; one that stands for the pool where it offers none."""
    offered = sizes(job, pool)
    asked = nearest(job, pool)
    if not offered:
        return [asked]
    placements = [
        Placement(pool.name, count, pods, capacity)
        for capacity in gates.capacity_types(job.spec)
        for count, pods in offered
        if count <= asked.chips
    ]
    if wish is not None and wish.pool == pool.name and wish not in placements:
        placements.append(wish)
    return placements


def _gate(
    job: JobState, pool: Pool, placement: Placement, vendor: Vendor, intent: Intent, now: float
) -> Rejection | None:
    spec = job.spec
    hourly = hourly_cost(placement, pool)
    rejection = (
        gates.pool_gate(spec, pool, vendor)
        or gates.node_selector_gate(spec, pool)
        or gates.capacity_type_gate(spec, pool, placement.capacity)
        or (gates.no_size(spec, pool) if not sizes(job, pool) else None)
        or gates.bounds_gate(spec, placement.chips)
        or gates.memory_gate(spec, gates.needed_memory(spec, None), None, placement.chips, pool, False)
        or gates.price_gate(spec, pool, hourly, first_start=True)
        or gates.hourly_gate(spec, hourly)
    )
    if rejection is None and intent is not Intent.UPDATE:
        rejection = gates.avoided_gate(job, placement, now)
    budget = spec.targets.budget
    if rejection is None and budget is not None and job.account.settled(now).spent >= float(budget):
        return Rejection(RejectionReason.BUDGET, f"targets.budget {dollars(float(budget))} is spent")
    return rejection


def _ranked(
    job: JobState, possible: list[tuple[Placement, Pool]], wish: Placement | None
) -> list[tuple[Placement, Pool]]:
    """The wish first, then the asked size on every pool in order of preference, then smaller sizes the same way."""
    allow = job.spec.placement.pools.allow
    order = {name: index for index, name in enumerate(allow)}
    with_power = all(pool.accelerator.power_watts for _, pool in possible)
    asked = wish.chips if wish is not None else job.spec.workload.job.chips
    home = wish.pool if wish is not None else None

    def rank(item: tuple[Placement, Pool]) -> tuple[bool, int, bool, int, bool, float, str, Placement]:
        placement, pool = item
        worth = _worth(job, placement, pool, with_power)
        return (
            placement != wish,
            abs(placement.chips - asked),
            pool.name != home,
            order.get(pool.name, len(order)),
            worth is None,
            worth if worth is not None else 0.0,
            pool.name,
            placement,
        )

    return sorted(possible, key=rank)


def _worth(job: JobState, placement: Placement, pool: Pool, with_power: bool) -> float | None:
    """What the objective minimises, per chip and in arbitrary units, by specifications and price alone."""
    rate = nominal_rate(pool.accelerator, with_power)
    if rate is None:
        return None
    objective = job.spec.targets.objective
    if objective is Objective.MINIMIZE_TIME:
        return 1.0 / rate
    hourly = hourly_cost(placement, pool)
    if hourly is None:
        return None
    price = hourly / placement.chips
    return price / rate if objective is Objective.MINIMIZE_COST else price / (rate * rate)


def _candidate(placement: Placement, pool: Pool, rejection: Rejection | None) -> Candidate:
    return Candidate(placement, None, hourly_cost(placement, pool), None, rejection=rejection)
