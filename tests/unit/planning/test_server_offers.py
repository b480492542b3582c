"""A server in other pools: replicas that keep its limit there, dollars for a million requests, what rules one out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rightpool.api.action import Action
from rightpool.api.choices import Autoscaler
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome, measured_cost_per_million
from rightpool.api.migration import Phase
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.jobs.sizing import Sizing
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.servers.places import PoolChip, with_places
from rightpool.planning.offers.servers.recorded import line_through, recorded_sizing, with_servable
from rightpool.planning.offers.servers.sizing import LatencyTarget
from rightpool.prediction.columns import Floats, floats
from rightpool.profiles.loads import Points
from rightpool.profiles.served import RequestTime, Sides
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, NOW, auto_policy, changed, decided_text, find, judged, reason, running, spec
from tests.unit.planning.test_server_move import batched, window
from tests.unit.planning.test_surge import TEMPLATE
from tests.unit.prediction.fixtures import A10G, A100, TPU

RATE = 900.0
SEEN = Points(floats([1.0, 2.0, 4.0, 8.0]), floats([0.011, 0.012, 0.014, 0.018]), floats([20.0] * 4))
CHEAP = replace(A10G, price=replace(A10G.price, on_demand=0.5))
POOLS = {"a100": A100, "a10g": CHEAP}


def demand(rate: float = RATE) -> Floats:
    return floats(np.random.default_rng(2).poisson(rate * 15.0, 480))


_SIZED: dict[str, Sizing] = {}


def sized(
    job: Job, pools: Mapping[str, Pool], points: Mapping[str, Points] | None = None, rate: float = RATE
) -> Sizing:
    """What its record says, where its batches were timed where it is, and in these pools. The same is replayed once."""
    ref, latency, server = job.state.revision, job.spec.targets.latency, job.spec.workload.server
    assert ref is not None and latency is not None and server is not None
    here, limit, least = ref.placement.pool, latency.percentile, server.scale.min
    seen = {here: SEEN, **(points or {})}
    key = f"{here} {limit} {least} {sorted(pools)} {seen} {rate}"
    if key not in _SIZED:
        counts, target = demand(rate), LatencyTarget(limit.seconds, limit.share, 1.0, least)
        sizing = with_servable(
            recorded_sizing(counts, seen[here], {RequestTime.WHOLE: limit}, f"{here}/1", NOW), counts
        )
        chips = [PoolChip(name, pool.accelerator) for name, pool in pools.items()]
        _SIZED[key] = with_places(sizing, here, chips, seen.get, counts, target)
    return _SIZED[key]


def server(
    pools: Mapping[str, Pool] = POOLS,
    points: Mapping[str, Points] | None = None,
    *,
    p99: str = "160ms",
    most: int = 40,
    rate: float = RATE,
    **sections: Any,
) -> Job:
    """One that has run on three A100 for a week, whose record is full."""
    job = unsized({"latency": {"p99": p99}}, most, **sections)
    return changed(job, sizing=sized(job, pools, points, rate))


def unsized(targets: Mapping[str, Any], most: int = 40, **sections: Any) -> Job:
    """The same, whose record was not looked at."""
    replicas = {"min": 1, "max": most}
    workload = {"replicas": replicas, "port": 8000, "metrics": {"port": 8002}, "template": TEMPLATE}
    made = spec(
        workload={"server": workload},
        elasticity={},
        checkpoint={},
        progress=None,
        targets=targets,
        **({"placement": {"memoryPerChip": "10Gi"}} | sections),
    )
    job = running(made=made)
    ref = job.state.revision
    assert ref is not None
    place = replace(ref.placement, chips=3, replicas=3)
    ref = replace(ref, placement=place, requested_chips=1, requested_replicas=1, cost_per_hour=12.0, since=NOW - 7e5)
    job = replace(job.with_state(replace(job.state, revision=ref)), created_at=NOW - 7 * 86_400.0)
    up = RevisionState(1, True, active=3, running=3)
    return changed(job, revisions={1: up}, template_checked=True, profile=None)


def test_it_is_offered_fewer_dollars_on_more_replicas_of_a_slower_chip() -> None:
    job = server()
    found = judged(job, POOLS)
    there, here = find(found, "a10g"), found.current
    assert here is not None and here.cost_per_million is not None and there.cost_per_million is not None
    assert there.placement.replicas > 3, "a slower chip takes more of them"
    assert there.cost_per_million.median < here.cost_per_million.median
    assert (found.decision.action, found.decision.reason) == (Action.MOVE, Reason.CHEAPER_POOL_MEETS_TARGETS)
    assert found.decision.target == there.placement
    text = decided_text(found)
    assert "keep the limit with 9" in text and "per million requests; now 3 replicas" in text


def test_in_recommend_it_is_said_and_not_done() -> None:
    found = judged(server(), POOLS, auto_policy(defaultAdaptationMode="Recommend"))
    assert found.decision.action is Action.HOLD
    assert (found.decision.reason, found.decision.purpose) == (
        Reason.POLICY_RECOMMEND_ONLY,
        Reason.CHEAPER_POOL_MEETS_TARGETS,
    )
    assert found.decision.candidate is not None and found.decision.candidate.placement.pool == "a10g"


def test_a_pool_that_costs_as_much_is_none() -> None:
    found = judged(server({"a100": A100, "a10g": A10G}), {"a100": A100, "a10g": replace(A10G, price=A100.price)})
    assert (found.decision.action, found.decision.reason) == (Action.KEEP, Reason.CHEAPEST)
    assert reason(found, "a10g") is RejectionReason.NOT_BETTER


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"most": 3}, RejectionReason.LATENCY_NOT_HELD),
        ({"placement": {"pools": {"deny": ["a10g"]}}}, RejectionReason.POOL_DENIED),
        ({"placement": {"memoryPerChip": "40Gi"}}, RejectionReason.MEMORY),
        ({"placement": {}}, RejectionReason.MEMORY),
        ({"p99": "13ms"}, RejectionReason.TOO_SLOW_ALONE),
    ],
    ids=["more than may be", "denied", "too little memory", "memory unknown", "too slow"],
)
def test_what_rules_it_out_is_said(changes: dict[str, Any], why: RejectionReason) -> None:
    found = judged(server(**changes), POOLS)
    assert reason(found, "a10g") is why
    assert found.decision.action is not Action.MOVE


def test_another_vendor_needs_a_variant() -> None:
    pools = {**POOLS, "tpu": TPU}
    assert reason(judged(server(pools), pools), "tpu") is RejectionReason.VENDOR_NOT_DECLARED


def test_where_it_was_timed_nothing_is_predicted() -> None:
    slow = SEEN._replace(seconds=SEEN.seconds * 4.0)
    dear = {"a100": A100, "a10g": replace(A10G, price=A100.price)}
    assert reason(judged(server(points={"a10g": slow}), dear), "a10g") is RejectionReason.NOT_BETTER
    quick = SEEN._replace(seconds=SEEN.seconds * 1.1)
    found = judged(server(points={"a10g": quick}), POOLS)
    assert find(found, "a10g").placement.replicas <= 4
    assert "measured there before" in decided_text(found)


def test_where_its_limit_is_not_kept_it_goes_where_it_is() -> None:
    """Whatever that costs."""
    job = server({"a100": A100, "a10g": A10G}, p99="30ms")
    ref = job.state.revision
    assert ref is not None
    there = replace(ref, placement=replace(ref.placement, pool="a10g", chips=3, replicas=3), chip="A10G-24GB")
    job = job.with_state(replace(job.state, revision=there))
    job = changed(job, sizing=sized(job, POOLS, {"a10g": SEEN._replace(seconds=SEEN.seconds * 3.0), "a100": SEEN}))
    found = judged(job, POOLS)
    assert (found.intent, found.decision.action) == (Intent.REPAIR, Action.MOVE)
    assert found.decision.target is not None and found.decision.target.pool == "a100"


def test_a_user_who_forbids_where_it_is_gets_the_cheapest_that_holds() -> None:
    found = judged(server(placement={"pools": {"deny": ["a100"]}, "memoryPerChip": "10Gi"}), POOLS)
    assert (found.intent, found.decision.action) == (Intent.LEAVE, Action.MOVE)
    assert found.decision.target is not None and found.decision.target.replicas > 3


def test_without_a_record_it_stays() -> None:
    job = changed(server(), sizing=None)
    assert judged(job, POOLS).decision.reason is Reason.DEMAND_RECORD_SHORT


def test_a_young_server_does_not_pay_for_two_sides() -> None:
    found = judged(replace(server(), created_at=NOW - 3600.0), POOLS)
    assert found.decision.reason is Reason.DOES_NOT_PAY_BACK
    assert "both sides at once cost" in decided_text(found)


def test_the_move_goes_by_steps_of_its_replicas() -> None:
    job = server()
    moved = advance(job, judged(job, POOLS), AUTO, NOW, decision_text)
    migration = moved.state.migration
    assert migration is not None and (migration.phase, migration.action) == (Phase.PLANNED, Action.MOVE)
    assert migration.predicted is not None and migration.baseline_cost is not None
    promised = measured_cost_per_million(migration.predicted.median, migration.target.cost_per_hour)
    assert promised is not None and promised < migration.baseline_cost
    surging = advance(moved, judged(moved, POOLS), AUTO, NOW, decision_text)
    assert surging.state.migration is not None and surging.state.migration.phase is Phase.SURGING


def test_what_it_is_to_have_follows_the_hour_until_it_begins() -> None:
    """An approval may take days."""
    job = server(adaptation={"requireApproval": True})
    moved = advance(job, judged(job, POOLS), AUTO, NOW, decision_text)
    busy = changed(moved, sizing=sized(moved, POOLS, rate=1.5 * RATE))
    again = advance(busy, judged(busy, POOLS), AUTO, NOW + 60.0, decision_text)
    before, after = moved.state.migration, again.state.migration
    assert before is not None and after is not None and after.phase is Phase.PLANNED
    assert after.target.placement.replicas > before.target.placement.replicas
    assert again.state.revision is not None and after.source == again.state.revision


def test_its_line_is_the_one_through_what_was_timed() -> None:
    sizing = server().observed.sizing
    assert sizing is not None and sizing.line is not None
    assert sizing.line.capacity == line_through(SEEN).capacity
    assert {one.pool: one.measured for one in sizing.places} == {"a100": True, "a10g": False}


def test_a_pool_that_is_slower_than_promised_is_left_and_not_tried_again() -> None:
    """Batches there take 1.5 times as long: back before any request is late, and known from then on."""
    job = server()
    for now in (NOW, NOW + 15.0):
        job = advance(job, judged(job, POOLS), AUTO, now, decision_text)
    migration = job.state.migration
    assert migration is not None and migration.phase is Phase.SURGING and migration.batches is not None
    up, old = migration.up or migration.target.placement.replicas, job.observed.revisions[1]
    job = changed(job, revisions={1: old, 2: RevisionState(2, True, active=up, running=up)})
    job = advance(job, judged(job, POOLS), AUTO, NOW + 60.0, decision_text)
    promise, slow = migration.batches, 1.2 * migration.batches.spare
    took = slow * (promise.fixed + 4.0 * promise.each)
    blocks = tuple(Sides(batched(window(100, at=NOW + 90.0 + 15.0 * n), took), None) for n in range(3))
    back = advance(changed(job, sides=blocks), judged(job, POOLS), AUTO, NOW + 130.0, decision_text)
    entry = back.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, Reason.TOO_LATE)
    assert back.state.revision is not None and back.state.revision.revision == 1
    assert reason(judged(back, POOLS), "a10g") is RejectionReason.AVOIDED, "for a day"
    there = SEEN._replace(seconds=slow * (promise.fixed + promise.each * SEEN.load))
    tomorrow = back.with_state(replace(back.state, avoid=()))
    tomorrow = changed(tomorrow, sizing=sized(tomorrow, POOLS, {"a10g": there}))
    assert judged(tomorrow, POOLS).decision.action is not Action.MOVE, "its batches were timed there"


def test_what_somebody_else_scales_moves_with_as_many_as_can_take_what_these_can() -> None:
    job = server()
    workload, sizing, ref = job.spec.workload.server, job.observed.sizing, job.state.revision
    assert workload is not None and sizing is not None and ref is not None
    by_others = workload.model_copy(update={"autoscaler": Autoscaler.EXTERNAL})
    made = job.spec.model_copy(update={"workload": job.spec.workload.model_copy(update={"server": by_others})})
    six = replace(ref, placement=replace(ref.placement, chips=6, replicas=6))
    job = replace(job.with_state(replace(job.state, revision=six)), spec=made)
    here, there = sizing.at("a100"), sizing.at("a10g")
    assert here is not None and there is not None
    target = find(judged(job, POOLS), "a10g").placement
    assert target.replicas == math.ceil(6 * here.servable / there.servable) > 6
