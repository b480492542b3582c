"""One job at a time: which gates rule what out, and what is decided."""

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.units import HOUR
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal, Crash
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.profiles.profile import Reading, Steadiness
from rightpool.profiles.sample import Field, Quality
from rightpool.reporting.candidate_texts import verdict_text
from tests.unit.planning.jobs import (
    AUTO,
    NOW,
    assess,
    changed,
    decision_and_text,
    entry,
    find,
    fresh,
    judged,
    reason,
    running,
    spec,
)
from tests.unit.prediction.fixtures import A10G, A10G_CHIP, A100, A100_CHIP, TPU, pool, without

FOUR = Placement("a100", 4, 1)
ONE = Placement("a100", 1, 1)


# --- a job that runs -------------------------------------------------------------------------------------------------


def test_half_communication_on_four_chips_goes_down_to_one() -> None:
    result = judged(running())
    decision, text = decision_and_text(result)
    assert (decision.action, decision.reason) == (Action.RESIZE, Reason.CHEAPER_SIZE_MEETS_TARGETS)
    assert decision.target == Placement("a100", 1, 1)
    assert decision.candidate is not None and decision.candidate.throughput is not None
    assert decision.candidate.throughput.median == pytest.approx(490.0, rel=0.06)
    assert decision.candidate.saving == pytest.approx(0.49, abs=0.03)
    assert "1 chip of a100: " in text
    assert "% less than now" in text
    assert "now 1000 samples/s for $4.44 per million" in text
    assert result.saved_per_hour == pytest.approx(7.8, abs=0.5)


def test_candidates_come_best_first_and_all_but_the_taken_one_say_why_not() -> None:
    result = judged(running())
    scores = [c.score for c in result.candidates if c.score is not None]
    assert scores == sorted(scores)
    assert [c.placement for c in result.candidates if c.eligible] == [result.decision.target]
    assert all(c.rejection is not None and verdict_text(c) for c in result.candidates if not c.eligible)
    assert result.current is not None and result.current.placement == FOUR
    assert FOUR not in [c.placement for c in result.candidates]


def test_a_job_that_is_well_placed_stays() -> None:
    pools = {"a100": A100}
    result = judged(running(ratios={"exposed_communication": 0.0}), pools)
    assert (result.decision.action, result.decision.reason) in {
        (Action.KEEP, Reason.CHEAPEST),
        (Action.KEEP, Reason.BELOW_MIN_SAVINGS),
    }
    assert result.saved_per_hour == 0.0


def test_who_had_to_go_goes_home_whatever_it_saves() -> None:
    """A pool that was gone for a while is where its jobs were by choice."""
    had_to = entry(
        Outcome.CARRIED_OUT,
        NOW - HOUR,
        reason=Reason.START_DEADLINE_EXCEEDED,
        action=Action.START,
        source=ONE,
        target=FOUR,
    )
    job = running(made=spec(adaptation={"minSavings": "0.60"}), history=(had_to,))
    decision = judged(job, {"a100": A100}).decision
    assert (decision.action, decision.target) == (Action.RESIZE, ONE)
    chosen = replace(job.state.history[0], reason=Reason.CHEAPER_POOL_MEETS_TARGETS)
    decision = judged(changed(job, history=(chosen,)), {"a100": A100}).decision
    assert decision.reason is Reason.BELOW_MIN_SAVINGS


def test_a_saving_below_the_users_least_is_named() -> None:
    made = spec(adaptation={"minSavings": "0.60"})
    decision, text = decision_and_text(judged(running(made=made), {"a100": A100}))
    assert (decision.action, decision.reason) == (Action.KEEP, Reason.BELOW_MIN_SAVINGS)
    assert "below adaptation.minSavings 60%" in text
    assert reason(judged(running(made=made), {"a100": A100}), "a100", 1) is RejectionReason.BELOW_MIN_SAVINGS


def test_an_uncertain_saving_is_not_acted_on() -> None:
    cheap = replace(A10G, price=replace(A10G.price, on_demand=0.95))
    job = running(Placement("a100", 1, 1), 100.0, ratios={"chip_busy": None})
    decision, text = decision_and_text(judged(job, {"a100": A100, "a10g": cheap}))
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.UNCERTAIN_SAVING)
    assert decision.candidate is not None and (decision.candidate.saving or 0) >= 0.1
    assert "80% is needed" in text
    assert decision.purpose is Reason.CHEAPER_POOL_MEETS_TARGETS
    unsure = decision.candidate.placement
    assert reason(judged(job, {"a100": A100, "a10g": cheap}), "a10g", unsure.chips) is RejectionReason.UNCERTAIN


def test_a_cheaper_chip_that_only_unknown_memory_rules_out_comes_first_in_what_is_said() -> None:
    """Beside other sizes where it is, which do not pay: else nobody would know that more could be had."""
    job = running(made=spec(elasticity={"minChips": 4, "maxChips": 8, "batch": "Global"}), ratios={"memory_used": None})
    cheap, dear = (
        {"a100": A100, "a10g": replace(A10G, price=replace(A10G.price, on_demand=price))} for price in (0.2, 9.0)
    )
    decision, text = decision_and_text(judged(job, cheap))
    assert (decision.action, decision.reason) == (Action.KEEP, Reason.CHEAPEST)
    first, then, *_ = text.split("; ")
    assert first.startswith("chips of a10g have 22.4 GiB") and first.endswith("set placement.memoryPerChip")
    assert "of a10g: " in then and "less than now" in then and "nothing is better than staying" in text
    assert "memoryPerChip" not in decision_and_text(judged(job, dear))[1], "nothing would be gained by it"


def test_a_move_that_does_not_pay_back_is_not_made() -> None:
    made = spec(progress={"totalSamples": 86_400_000 + 20_000})  # 20 seconds are left
    result = judged(running(made=made), {"a100": A100})
    assert (result.decision.action, result.decision.reason) == (Action.KEEP, Reason.DOES_NOT_PAY_BACK)
    assert "restart" in decision_and_text(result)[1]
    assert reason(result, "a100", 1) is RejectionReason.DOES_NOT_PAY_BACK


@pytest.mark.parametrize(
    ("sections", "policy", "action", "why"),
    [
        ({"adaptation": {"mode": "Off"}}, AUTO, Action.KEEP, Reason.ADAPTATION_OFF),
        ({"adaptation": {"mode": "Recommend"}}, AUTO, Action.HOLD, Reason.POLICY_RECOMMEND_ONLY),
        ({}, PlacementPolicySpec(), Action.HOLD, Reason.POLICY_RECOMMEND_ONLY),
        ({"checkpoint": {"mode": "None"}}, AUTO, Action.HOLD, Reason.NOT_CHECKPOINTABLE),
    ],
)
def test_who_may_act(sections: dict[str, Any], policy: PlacementPolicySpec, action: Action, why: Reason) -> None:
    decision, text = decision_and_text(judged(running(made=spec(**sections)), policy=policy))
    assert (decision.action, decision.reason) == (action, why)
    assert decision.purpose is Reason.CHEAPER_SIZE_MEETS_TARGETS
    assert decision.target == Placement("a100", 1, 1)
    assert "% less than now" in text


def test_minimize_time_takes_the_fastest_at_any_price() -> None:
    made = spec(chips=1, targets={"objective": "MinimizeTime"})
    job = running(Placement("a10g", 1, 1), 100.0, made=made)
    decision, text = decision_and_text(judged(job))
    assert decision.target is not None and decision.target.pool == "a100"
    assert decision.reason is Reason.FASTER_PLACEMENT_MEETS_TARGETS
    assert "faster than now" in text


def test_balanced_weighs_both() -> None:
    targets = [
        judged(running(Placement("a10g", 1, 1), 100.0, made=spec(chips=1, targets={"objective": objective}))).decision
        for objective in ("MinimizeCost", "Balanced", "MinimizeTime")
    ]
    chips = [t.target.chips if t.target is not None and t.action is not Action.KEEP else 1 for t in targets]
    assert chips == sorted(chips)


# --- targets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "moves"), [(7200, True), (20, False)])
def test_a_repair_must_pay_back_before_the_job_ends(seconds: int, moves: bool) -> None:
    """One was moved with 20 s of work left, for a restart of 60."""
    made = spec(targets={"maxCostPerMillionSamples": "3"}, progress={"totalSamples": 1000 * 86_400 + 1000 * seconds})
    decision = judged(running(made=made)).decision
    assert (decision.reason is Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED) is moves


def test_a_deadline_that_is_missed_is_worth_more_chips() -> None:
    made = spec(
        chips=1,
        progress={"totalSamples": 86_400 * 100 + 3600 * 300},
        targets={"deadline": "2027-01-15T10:00:00Z"},
    )
    job = running(Placement("a100", 1, 1), 100.0, made=made)
    assert made.targets.deadline is not None
    assert made.targets.deadline - NOW == 7200
    decision, text = decision_and_text(judged(job))
    assert decision.action in (Action.RESIZE, Action.MOVE)
    assert decision.reason is Reason.DEADLINE_MISSED
    # Two chips would do at the median; four hold it with the certainty that acting needs.
    assert decision.target == Placement("a100", 4, 4)
    assert "targets.deadline" in text


def test_targets_that_nothing_meets_are_the_users_to_change() -> None:
    made = spec(targets={"maxCostPerMillionSamples": "0.01"}, elasticity={"minChips": 4, "maxChips": 4})
    decision, text = decision_and_text(judged(running(made=made), {"a100": A100}))
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.COST_TARGET_UNREACHABLE)
    assert "maxCostPerMillionSamples" in text


def test_poor_scaling_is_repaired() -> None:
    made = spec(targets={"minScalingEfficiency": "0.85", "objective": "MinimizeTime"})
    decision = judged(running(made=made), {"a100": A100}).decision
    assert decision.reason is Reason.MIN_SCALING_EFFICIENCY_MISSED
    assert decision.target is not None and decision.target.chips < 4


def test_a_spent_budget_is_said() -> None:
    made = spec(targets={"budget": "10"}, elasticity={"minChips": 4, "maxChips": 4})
    job = running(made=made, account=Account(spent=11.0))
    decision = judged(job, {"a100": A100}).decision
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.OVER_BUDGET)


# --- what is not there to judge by -----------------------------------------------------------------------------------


def incomplete(**changes: Any) -> Job:
    job = running()
    assert job.observed.profile is not None
    return changed(job, profile=replace(job.observed.profile, **changes))


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (changed(running(), profile=None), Reason.NO_TELEMETRY),
        (changed(running(made=spec(profiling={"mode": "Off"})), profile=None), Reason.PROFILING_OFF),
        (incomplete(steadiness=Steadiness.ABSENT), Reason.NO_TELEMETRY),
        (incomplete(steadiness=Steadiness.STALE), Reason.STALE_TELEMETRY),
        (incomplete(steadiness=Steadiness.WARMING_UP), Reason.WARMING_UP),
        (incomplete(pods=0), Reason.PARTIAL_TELEMETRY),
        (replace(running(), spec=spec(suspend=True)), Reason.SUSPENDED),
        (replace(running(), invalid="spec.x is wrong"), Reason.INVALID_SPEC),
        (changed(running(), finished="Completed"), Reason.JOB_COMPLETED),
        (changed(running(), finished="Failed"), Reason.JOB_FAILED),
        (running(Placement("gone", 4, 1)), Reason.NO_FEASIBLE_POOL),
    ],
)
def test_without_a_basis_nothing_is_done(job: Job, why: Reason) -> None:
    result = judged(job)
    assert result.decision.action in (Action.HOLD, Action.KEEP)
    assert result.decision.reason is why
    assert decision_and_text(result)[1]
    assert not any(c.eligible for c in result.candidates)


def test_no_telemetry_at_all_is_not_the_jobs_fault() -> None:
    assert judged(running(), telemetry=False).decision.reason is Reason.TELEMETRY_UNAVAILABLE


def test_a_pod_that_failed_once_holds_nothing_while_the_others_run_or_have_completed() -> None:
    job = running(Placement("a100", 4, 2))
    assert job.child is not None
    crash = Crash(1, 6, "trainer", 1, "Error", NOW)
    for completed, why in ((0, True), (1, False)):
        states = {1: replace(job.child, running=1, completed=completed, crash=crash)}
        assert (judged(changed(job, revisions=states)).decision.reason is Reason.CRASH_LOOP) is why


def test_what_was_measured_beside_others_decides_nothing() -> None:
    job = running()
    assert job.observed.profile is not None
    readings = job.observed.profile.readings
    orphan = {Field.OTHERS: Reading(0.18, 0.18, 0.18, Quality.MEASURED)}
    beside = changed(job, profile=replace(job.observed.profile, readings={**readings, **orphan}))
    assert judged(beside).decision.reason is Reason.SHARED_CHIP


def test_no_throughput_is_said() -> None:
    job = running()
    assert job.observed.profile is not None
    job = changed(job, profile=without(job.observed.profile, Field.SAMPLES_PER_SECOND))
    assert judged(job).decision.reason is Reason.PARTIAL_TELEMETRY


# --- first start, edits, a place that is denied ----------------------------------------------------------------------


def test_the_allow_list_is_the_order_of_preference() -> None:
    for order in (["a100", "a10g"], ["a10g", "a100"]):
        decision = judged(fresh(made=spec(placement={"pools": {"allow": order}}))).decision
        assert decision.action is Action.START
        assert decision.target is not None and decision.target.pool == order[0]
        assert decision.target.chips == 4


def test_without_one_the_objective_chooses_by_specifications() -> None:
    cheap = judged(fresh()).decision.target
    fast = judged(fresh(made=spec(targets={"objective": "MinimizeTime"}))).decision.target
    assert cheap is not None and fast is not None
    assert (cheap.pool, fast.pool) == ("a10g", "a100")


def test_a_full_pool_is_passed_over_and_a_smaller_size_beats_waiting() -> None:
    full = {"a100": pool("a100", A100_CHIP, 4.0, free=0), "a10g": pool("a10g", A10G.accelerator, 1.0, free=4)}
    made = spec(placement={"pools": {"allow": ["a100", "a10g"]}})
    assert judged(fresh(made=made), full).decision.target == Placement("a10g", 4, 1)
    little = {"a100": pool("a100", A100_CHIP, 4.0, free=2)}
    assert judged(fresh(), little).decision.target == Placement("a100", 2, 1)
    rigid = spec(elasticity={"minChips": 4, "maxChips": 4})
    waits, text = decision_and_text(judged(fresh(made=rigid), little))
    assert (waits.action, waits.reason) == (Action.HOLD, Reason.WAITING_FOR_CAPACITY)
    assert "a100 has no room for 4 chips now" in text


def test_where_nothing_is_feasible_each_pool_says_why() -> None:
    decision, text = decision_and_text(judged(fresh(made=spec(placement={"memoryPerChip": "100Gi"}))))
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.NO_FEASIBLE_POOL)
    assert "100.0 GiB" in text and "a100" in text and "placement.pools.allow" in text
    assert "AcceleratorPool" in decision_and_text(assess(fresh(), {}, AUTO, NOW))[1]


def test_a_first_start_does_not_wait_for_a_price() -> None:
    unpriced = {"a100": pool("a100", A100_CHIP, None)}
    assert judged(fresh(), unpriced).decision.action is Action.START
    wants = spec(targets={"maxCostPerHour": "10"})
    assert reason(judged(fresh(made=wants), unpriced), "a100") is RejectionReason.PRICE_UNKNOWN


def test_the_only_vendor_there_is_needs_no_declaration() -> None:
    assert judged(fresh(), {"tpu": TPU}).decision.action is Action.START


def test_an_edit_by_the_user_is_carried_out_where_the_job_is() -> None:
    job = running()
    edited = judged(replace(job, workload_hash="new")).decision
    assert (edited.action, edited.reason, edited.target) == (Action.UPDATE, Reason.UPDATING, FOUR)
    resized = judged(replace(job, spec=spec(chips=8))).decision
    assert (resized.action, resized.target) == (Action.UPDATE, Placement("a100", 8, 1))
    recommend = judged(replace(job, spec=spec(chips=8)), policy=PlacementPolicySpec()).decision
    assert recommend.action is Action.UPDATE


def test_an_edit_is_held_for_a_refusal_of_its_own_child_alone() -> None:
    """A Service of the old child may be refused by a quota, and the edit may be what needs none."""
    job = replace(running(), workload_hash="new", generation=2)
    old = ChildRefusal(1, 2, Reason.INVALID_TEMPLATE, "services is forbidden: exceeded quota: few", NOW)
    assert judged(changed(job, refusal=old)).decision.action is Action.UPDATE
    for why in (Reason.INVALID_TEMPLATE, Reason.NAME_TAKEN):
        held = judged(changed(job, refusal=replace(old, revision=2, reason=why))).decision
        assert (held.action, held.reason) == (Action.HOLD, why)


def test_an_edit_that_changes_nothing_for_the_placement_restarts_nothing() -> None:
    most = running(Placement("a100", 8, 1), made=spec(chips=8))
    more = replace(most, spec=spec(chips=64))  # of which the job may have 8
    assert judged(more).decision.action is not Action.UPDATE
    assert judged(replace(more, workload_hash="new")).decision.action is Action.UPDATE


def test_a_pool_that_is_denied_is_left_even_without_savings_or_checkpoints() -> None:
    made = spec(placement={"pools": {"deny": ["a100"]}}, checkpoint={"mode": "None"}, adaptation={"minSavings": "0.9"})
    decision = judged(running(made=made)).decision
    assert (decision.action, decision.reason) == (Action.MOVE, Reason.PLACEMENT_DISALLOWED)
    assert decision.target is not None and decision.target.pool == "a10g"
    blind = judged(changed(running(made=made), profile=None)).decision
    assert blind.action is Action.MOVE
    nowhere = judged(running(made=made), {"a100": A100}).decision
    assert (nowhere.action, nowhere.reason) == (Action.HOLD, Reason.NO_FEASIBLE_POOL)


def test_a_size_out_of_bounds_is_changed() -> None:
    made = spec(elasticity={"minChips": 8, "maxChips": 8})
    decision = judged(running(made=made), {"a100": A100}).decision
    assert (decision.action, decision.target) == (Action.RESIZE, Placement("a100", 8, 2))


# --- a migration under way -------------------------------------------------------------------------------------------


def migrating(phase: Phase, target: Placement = ONE) -> Job:
    job = running()
    assert job.state.revision is not None
    there = replace(job.state.revision, revision=2, placement=target, since=None)
    migration = Migration(
        "d-1", Action.RESIZE, phase, job.state.revision, there, NOW - 10, NOW - 5, Reason.RESIZING, "m"
    )
    if phase in (Phase.PLANNED, Phase.CHECKPOINTING, Phase.DRAINING):
        return changed(job, migration=migration)
    arrived = replace(job.observed.revisions[1], revision=2)
    return changed(job, migration=migration, revision=replace(there, since=NOW - 5), revisions={2: arrived})


@pytest.mark.parametrize("phase", list(Phase))
def test_nothing_new_is_begun_while_a_migration_is_under_way(phase: Phase) -> None:
    result = judged(migrating(phase))
    assert (result.decision.action, result.decision.reason) == (Action.HOLD, Reason.RESIZING)


def test_a_target_that_still_pays_is_still_eligible() -> None:
    assert find(judged(migrating(Phase.PLANNED)), "a100", 1).eligible


def test_a_target_that_no_longer_pays_is_no_longer_eligible() -> None:
    assert not find(judged(migrating(Phase.PLANNED, Placement("a100", 8, 1))), "a100", 8).eligible


def test_what_was_measured_beats_what_is_predicted() -> None:
    before = entry(
        Outcome.VERIFIED,
        NOW - 3600.0,
        target=Placement("a100", 1, 1),
        baseline_throughput=1000.0,
        realised_throughput=100.0,
        doubt=0.02,
    )
    result = judged(running(history=(before,)))
    rate = find(result, "a100", 1).throughput
    assert rate is not None and rate.median == pytest.approx(100.0, rel=0.01)
    edited = replace(before, action=Action.UPDATE, realised_throughput=None, doubt=None)
    rate = find(judged(running(history=(before, edited))), "a100", 1).throughput
    assert rate is not None and rate.median == pytest.approx(490.0, rel=0.06)


def test_what_the_user_can_do_is_told_before_pools_that_he_does_not_allow() -> None:
    others = {f"a{number}": pool(f"a{number}", A10G_CHIP) for number in range(10)}
    pools = {**others, "a100": A100, "z": pool("z", A10G_CHIP, None)}
    made = spec(placement={"pools": {"allow": ["a100", "z"]}}, elasticity={"minChips": 4, "maxChips": 4})
    message = decision_and_text(judged(running(made=made), pools))[1]
    assert "z has no price" in message and "set spec.price" in message
    assert "; a0, a1, a2, a3, a4, a5 and 4 more are not in placement.pools.allow: add those" in message
