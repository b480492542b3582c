"""Conditions: what is said of a job, made from real assessments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.account import Account
from rightpool.planning.migration import Phase
from rightpool.planning.plan import plan
from rightpool.planning.revision import RevisionState
from rightpool.planning.snapshot import JobState
from rightpool.planning.transitions import advance
from rightpool.profiles.sample import Field
from rightpool.runtime.conditions import Circumstances, conditions_of
from rightpool.runtime.jobs import StoredJob
from rightpool.runtime.status import draft_status
from tests.unit.planning.jobs import AUTO, NOW, POOLS, fleet, running, spec
from tests.unit.prediction.fixtures import A10G, A100, A100_CHIP, pool, without

ALONE = {"a100": A100}


def around(job: JobState, pools: dict[str, Pool], policy: PlacementPolicySpec = AUTO, **fields: Any) -> Circumstances:
    assessment = plan(fleet([job], pools, policy)).assessments[job.key]
    home = None if job.ref is None else pools.get(job.ref.placement.pool)
    return Circumstances(
        **({"assessment": assessment, "pool": home, "refusal": None, "telemetry": True, "now": NOW} | fields)
    )


def said(
    kind: ConditionType,
    job: JobState,
    pools: dict[str, Pool] = POOLS,
    policy: PlacementPolicySpec = AUTO,
    **fields: Any,
) -> tuple[str, str]:
    condition = told(kind, job, pools, policy, **fields)
    return condition.status, condition.reason


def told(
    kind: ConditionType,
    job: JobState,
    pools: dict[str, Pool] = POOLS,
    policy: PlacementPolicySpec = AUTO,
    **fields: Any,
) -> Condition:
    found = find_condition(list(conditions_of(job, around(job, pools, policy, **fields))), kind)
    assert found is not None
    return found


# --- Placed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocked", "reason"),
    [
        ("0/4 nodes are available: 4 Insufficient nvidia.com/gpu.", Reason.WAITING_FOR_CAPACITY),
        ('0/4 nodes are available: persistentvolumeclaim "ckpt" not found.', Reason.STARTING),
        ("0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims.", Reason.STARTING),
    ],
)
def test_who_lacks_a_volume_does_not_wait_for_chips(blocked: str, reason: Reason) -> None:
    pending = RevisionState(1, exists=True, active=1, blocked=f"Unschedulable: {blocked}")
    condition = told(ConditionType.PLACED, replace(running(), revisions={1: pending}))
    assert (condition.status, condition.reason) == ("False", reason)
    assert blocked in condition.message


# --- CostEfficient, and what is recommended --------------------------------------------------------------------------

CHEAPER = Reason.CHEAPER_SIZE_MEETS_TARGETS


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({}, ("False", CHEAPER)),
        ({"adaptation": {"mode": "Off"}}, ("False", CHEAPER)),
        ({"adaptation": {"mode": "Recommend"}}, ("False", CHEAPER)),
        ({"adaptation": {"maxMoves": 0}}, ("False", CHEAPER)),
        ({"checkpoint": {"mode": "None"}}, ("False", CHEAPER)),
        ({"adaptation": {"minSavings": "0.60"}}, ("True", Reason.NEAR_CHEAPEST)),
        ({"progress": {"totalSamples": 86_400_000 + 20_000}}, ("True", Reason.DOES_NOT_PAY_BACK)),
        ({"elasticity": {"minChips": 4, "maxChips": 4}}, ("True", Reason.CHEAPEST)),
        ({"targets": {"maxCostPerMillionSamples": "0.01"}}, ("False", Reason.COST_TARGET_UNREACHABLE)),
        ({"targets": {"maxCostPerHour": "5"}}, ("False", Reason.MAX_COST_PER_HOUR_EXCEEDED)),
    ],
)
def test_cost_efficient_says_what_is_so(sections: dict[str, Any], expected: tuple[str, str]) -> None:
    assert said(ConditionType.COST_EFFICIENT, running(made=spec(**sections)), ALONE) == expected


def test_what_is_cheaper_and_full_is_still_cheaper() -> None:
    little = {"a100": A100, "a10g": replace(A10G, price=replace(A10G.price, on_demand=0.2), free=0)}
    dear = running(Placement("a100", 1, 1), 100.0, made=spec(chips=1, elasticity={"minChips": 1, "maxChips": 1}))
    assert said(ConditionType.COST_EFFICIENT, dear, little) == ("False", Reason.CHEAPER_POOL_MEETS_TARGETS)


def test_a_saving_that_is_not_sure_is_not_called_one() -> None:
    cheap = replace(A10G, price=replace(A10G.price, on_demand=0.95))
    job = running(Placement("a100", 1, 1), 100.0, ratios={"chip_busy": None})
    assert said(ConditionType.COST_EFFICIENT, job, {"a100": A100, "a10g": cheap}) == (
        "Unknown",
        Reason.UNCERTAIN_SAVING,
    )


def test_without_prices_nothing_is_claimed() -> None:
    free = {"a100": pool("a100", A100_CHIP, None), "a10g": A10G}
    assert said(ConditionType.COST_EFFICIENT, running(), free) == ("Unknown", Reason.PRICE_UNKNOWN)


def test_a_price_that_goes_missing_says_at_what_the_meter_runs() -> None:
    free = {"a100": pool("a100", A100_CHIP, None), "a10g": A10G}
    condition = told(ConditionType.DEGRADED, running(), free)
    assert (condition.status, condition.reason) == ("True", Reason.PRICE_UNKNOWN)
    assert "set spec.price" in condition.message and "$16.00/h" in condition.message
    never = told(ConditionType.DEGRADED, running(pools=free), free)
    assert "not counted" in never.message
    assert said(ConditionType.DEGRADED, running()) == ("False", Reason.HEALTHY)


def test_what_runs_where_the_pool_is_gone_says_so_and_what_to_do() -> None:
    absent = "pool a100 is gone: declare it again"
    job = running(absent=absent)
    without = {"a10g": A10G}
    assert said(ConditionType.PLACED, job, without) == ("True", Reason.RUNNING)
    for kind in (ConditionType.DEGRADED, ConditionType.MIGRATING, ConditionType.COST_EFFICIENT):
        assert absent in told(kind, job, without).message
    waits = replace(job, revisions={}, profile=None)
    placed = told(ConditionType.PLACED, waits, without)
    assert (placed.status, placed.reason) == ("False", Reason.NO_FEASIBLE_POOL)
    assert f"{absent}, or allow other pools" in placed.message


def test_what_waits_for_approval_is_cheaper_all_the_time() -> None:
    job = running(made=spec(adaptation={"requireApproval": True}))
    job = advance(job, plan(fleet([job], ALONE)).assessments[job.key], AUTO, NOW)
    assert job.migration is not None and job.migration.phase is Phase.PLANNED
    assert said(ConditionType.COST_EFFICIENT, job, ALONE) == ("False", CHEAPER)
    assert said(ConditionType.MIGRATING, job, ALONE) == ("False", Reason.AWAITING_APPROVAL)


@pytest.mark.parametrize(
    ("sections", "held_by"),
    [
        ({"adaptation": {"mode": "Recommend"}}, Reason.POLICY_RECOMMEND_ONLY),
        ({"adaptation": {"maxMoves": 0}}, Reason.MOVE_LIMIT_REACHED),
        ({"checkpoint": {"mode": "None"}}, Reason.NOT_CHECKPOINTABLE),
        ({"adaptation": {"requireApproval": True}}, Reason.AWAITING_APPROVAL),
        ({}, None),
    ],
)
def test_a_recommendation_says_what_it_would_bring_and_why_it_is_only_one(
    sections: dict[str, Any], held_by: Reason | None
) -> None:
    job = running(made=spec(**sections))
    circumstances = around(job, ALONE)
    job = advance(job, circumstances.assessment, AUTO, NOW)
    draft = draft_status(StoredJob(job, b"{}", None, ""), job, circumstances)
    recommendation = draft.body["recommendation"]
    assert recommendation["reason"] == CHEAPER
    assert recommendation.get("heldBy") == held_by


@pytest.mark.parametrize(
    "sections", [{"adaptation": {"minSavings": "0.60"}}, {"progress": {"totalSamples": 86_400_000 + 20_000}}]
)
def test_what_does_not_pay_is_not_recommended(sections: dict[str, Any]) -> None:
    job = running(made=spec(**sections))
    draft = draft_status(StoredJob(job, b"{}", None, ""), job, around(job, ALONE))
    assert "recommendation" not in draft.body


# --- Profiled --------------------------------------------------------------------------------------------------------


def with_template(container: dict[str, Any], **pod: Any) -> Any:
    template = {"spec": {"containers": [{"name": "trainer", "image": "x"} | container], **pod}}
    return spec(workload={"job": {"chipsPerReplica": 4, "replicas": 1, "template": template}})


@pytest.mark.parametrize(
    ("container", "pod", "reason", "remedy"),
    [
        ({}, {"hostNetwork": True}, Reason.HOST_NETWORK, "Remove hostNetwork"),
        ({"env": [{"name": "PYTHONUSERBASE", "value": "/x"}]}, {}, Reason.USER_BASE_TAKEN, "Set PYTHONPATH"),
        ({"env": [{"name": "PYTHONNOUSERSITE", "value": "1"}]}, {}, Reason.USER_SITE_OFF, "Set PYTHONPATH"),
        ({"command": ["python", "-I", "x.py"]}, {}, Reason.PYTHON_ISOLATED, "Remove that option"),
        ({}, {}, Reason.PARTIAL_TELEMETRY, "virtual environment"),
    ],
)
def test_what_keeps_the_profiler_out_is_said_with_its_remedy(
    container: dict[str, Any], pod: dict[str, Any], reason: Reason, remedy: str
) -> None:
    job = running(made=with_template(container, **pod))
    assert job.profile is not None
    blind = replace(job, profile=without(job.profile, Field.SAMPLES_PER_SECOND, Field.STEPS))
    condition = told(ConditionType.PROFILED, blind)
    assert (condition.status, condition.reason) == ("False", reason)
    assert remedy in condition.message
    assert said(ConditionType.PROFILED, job) == ("True", Reason.MEASURED), "what is measured all the same is measured"


def test_a_pod_without_a_profiler_is_not_waited_for() -> None:
    silent = replace(running(made=with_template({}, hostNetwork=True)), profile=None)
    assert said(ConditionType.PROFILED, silent) == ("False", Reason.HOST_NETWORK)


# --- the columns of kubectl get --------------------------------------------------------------------------------------


def test_columns_are_for_people_and_the_account_is_exact() -> None:
    job = running(account=Account(spent=1.5, saved=-0.00000001, since=NOW, cost_per_hour=32.7726))
    body = draft_status(StoredJob(job, b"{}", None, ""), job, around(job, ALONE)).body
    assert body["columns"] == {"perHour": "32.77", "perMillionSamples": "4.44", "saved": "0.00"}
    assert float(body["cost"]["saved"]) == pytest.approx(-0.00000001)


# --- Placed ----------------------------------------------------------------------------------------------------------


def test_who_is_stopped_says_how_many_pods_still_hold_chips() -> None:
    for job, why in (
        (running(made=spec(suspend=True)), "spec.suspend"),
        (replace(running(), deleting=True), "being deleted"),
    ):
        condition = told(ConditionType.PLACED, job)
        assert (condition.status, condition.reason) == ("False", Reason.STOPPING)
        assert why in condition.message and "1 pod is still ending" in condition.message
    ended = replace(running(made=spec(suspend=True)), revisions={})
    assert said(ConditionType.PLACED, ended) == ("False", Reason.SUSPENDED)


def test_the_operators_own_failure_is_called_one_and_what_runs_is_said_to_run() -> None:
    problem = "KeyError: 'x'"
    assert said(ConditionType.PLACED, running(), problem=problem) == ("True", Reason.RUNNING)
    waits = replace(running(), revisions={})
    for kind, status in ((ConditionType.PLACED, "Unknown"), (ConditionType.DEGRADED, "True")):
        condition = told(kind, waits, problem=problem)
        assert (condition.status, condition.reason) == (status, Reason.OPERATOR_FAILED)
        assert problem in condition.message and "Report it" in condition.message
    unplaced = replace(waits, ref=None, profile=None)
    assert said(ConditionType.DEGRADED, unplaced, problem=problem) == ("True", Reason.OPERATOR_FAILED)
