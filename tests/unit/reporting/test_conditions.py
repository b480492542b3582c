"""Conditions: what is said of a job, made from real assessments."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import Crash, RevisionState
from rightpool.planning.moves.transitions import advance
from rightpool.profiles.profile import Reading, Steadiness
from rightpool.profiles.sample import Field, Quality
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.table import conditions_of
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import StoredJob, packed
from tests.unit.planning.jobs import AUTO, NOW, POOLS, changed, fleet, in_steps, plan, running, spec
from tests.unit.prediction.fixtures import A10G, A100, A100_CHIP, pool, without

ALONE = {"a100": A100}


def context(job: Job, pools: dict[str, Pool], policy: PlacementPolicySpec = AUTO, **fields: Any) -> Context:
    assessment = plan(fleet([job], pools, policy)).assessments[job.key]
    home = None if job.state.revision is None else pools.get(job.state.revision.placement.pool)
    price = None if home is None else home.price
    return Context(**({"assessment": assessment, "price": price, "telemetry": True, "now": NOW} | fields))


def status_and_reason(
    kind: ConditionType,
    job: Job,
    pools: dict[str, Pool] = POOLS,
    policy: PlacementPolicySpec = AUTO,
    **fields: Any,
) -> tuple[str, str]:
    condition = condition_of(kind, job, pools, policy, **fields)
    return condition.status, condition.reason


def condition_of(
    kind: ConditionType,
    job: Job,
    pools: dict[str, Pool] = POOLS,
    policy: PlacementPolicySpec = AUTO,
    **fields: Any,
) -> Condition:
    found = find_condition(list(conditions_of(job, context(job, pools, policy, **fields))), kind)
    assert found is not None
    return found


def test_a_million_steps_are_not_shown_as_samples() -> None:
    job = in_steps(running(account=Account(spent=1.5, since=NOW, cost_per_hour=32.7726), made=spec(elasticity={})))
    body = draft_status(StoredJob(job, packed({}), None, ""), job, context(job, ALONE)).body
    assert body["summary"]["perMillion"] == "4.44 steps"
    assert body["profile"]["stepsPerSecond"] == "1000" and "samplesPerSecond" not in body["profile"]


# --- Placed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocked", "reason"),
    [
        ("0/4 nodes are available: 4 Insufficient nvidia.com/gpu", Reason.WAITING_FOR_CAPACITY),
        ('0/4 nodes are available: persistentvolumeclaim "ckpt" not found', Reason.STARTING),
        ("0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims", Reason.STARTING),
    ],
)
def test_who_lacks_a_volume_does_not_wait_for_chips(blocked: str, reason: Reason) -> None:
    pending = RevisionState(1, exists=True, active=1, blocked=f"Unschedulable: {blocked}")
    condition = condition_of(ConditionType.PLACED, changed(running(), revisions={1: pending}))
    assert (condition.status, condition.reason) == ("False", reason)
    assert blocked in condition.message


CRASH = Crash(2, 6, "trainer", 1, "Error", NOW - 30.0, "ModuleNotFoundError: No module named 'torch'", "backoffLimit")


@pytest.mark.parametrize("active", [0, 1])
def test_a_program_that_fails_is_told_with_its_count_exit_code_and_output(active: int) -> None:
    crashing = RevisionState(1, exists=True, active=active, crash=CRASH)
    condition = condition_of(ConditionType.PLACED, changed(running(), revisions={1: crashing}))
    assert (condition.status, condition.reason) == ("False", "CrashLoop")
    for part in ("exited with 1 (Error)", "failed 2 times", "of 6 allowed", "No module named 'torch'"):
        assert part in condition.message


def test_the_first_failure_counts_before_the_job_has_counted_it() -> None:
    failing = changed(running(), revisions={1: RevisionState(1, exists=True, active=1, crash=replace(CRASH, count=0))})
    assert "has failed once" in condition_of(ConditionType.PLACED, failing).message


def test_a_pod_that_is_missing_long_after_a_crash_is_no_crash_loop() -> None:
    old = RevisionState(1, exists=True, crash=replace(CRASH, at=NOW - 3600.0))
    assert status_and_reason(ConditionType.PLACED, changed(running(), revisions={1: old})) == ("False", "Starting")
    again = RevisionState(1, exists=True, active=1, running=1, crash=CRASH)
    assert status_and_reason(ConditionType.PLACED, changed(running(), revisions={1: again})) == ("True", "Running")


def test_chips_that_another_pod_took_during_the_pause_are_waited_for() -> None:
    full = RevisionState(1, exists=True, active=1, crash=CRASH, blocked="Unschedulable: 4 Insufficient nvidia.com/gpu")
    assert status_and_reason(ConditionType.PLACED, changed(running(), revisions={1: full})) == (
        "False",
        "WaitingForCapacity",
    )


def test_an_image_that_cannot_be_pulled_has_a_reason_of_its_own() -> None:
    blocked = "container trainer: ImagePullBackOff: no such image"
    pulling = RevisionState(1, exists=True, active=1, blocked=blocked, refused=True)
    assert status_and_reason(ConditionType.PLACED, changed(running(), revisions={1: pulling})) == (
        "False",
        "ContainerNotStarted",
    )


def test_what_waits_in_a_queue_says_whether_it_ran_before() -> None:
    waiting = RevisionState(1, exists=True, suspended=True)
    stopped = changed(running(made=spec(queueName="research")), revisions={1: waiting})
    assert status_and_reason(ConditionType.PLACED, stopped) == ("False", "WaitingForQuota")
    assert "queue research has not admitted it again yet" in condition_of(ConditionType.PLACED, stopped).message
    condition = condition_of(ConditionType.MIGRATING, stopped)
    assert (condition.status, condition.reason) == ("False", "WaitingForQuota")
    assert condition.message == "the job waits for quota of queue research"
    assert stopped.state.revision is not None
    new = changed(stopped, revision=replace(stopped.state.revision, since=None))
    assert "queue research has not admitted it yet" in condition_of(ConditionType.PLACED, new).message
    alone = changed(running(), revisions={1: waiting})
    assert status_and_reason(ConditionType.PLACED, alone) == ("False", "Starting"), (
        "nobody waits for a queue that is not asked"
    )


# --- CostEfficient, and what is recommended --------------------------------------------------------------------------

CHEAPER = Reason.CHEAPER_SIZE_MEETS_TARGETS
CHEAPER_POOL = Reason.CHEAPER_POOL_MEETS_TARGETS


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
        (
            {"targets": {"maxCostPerMillionSamples": "0.01"}, "elasticity": {"minChips": 4, "maxChips": 4}},
            ("False", Reason.COST_TARGET_UNREACHABLE),
        ),
        ({"targets": {"maxCostPerHour": "5"}}, ("False", Reason.MAX_COST_PER_HOUR_EXCEEDED)),
    ],
)
def test_cost_efficient_says_what_is_so(sections: dict[str, Any], expected: tuple[str, str]) -> None:
    assert status_and_reason(ConditionType.COST_EFFICIENT, running(made=spec(**sections)), ALONE) == expected


def test_what_is_cheaper_and_full_is_still_cheaper() -> None:
    little = {"a100": A100, "a10g": replace(A10G, price=replace(A10G.price, on_demand=0.2), free=0)}
    dear = running(Placement("a100", 1, 1), 100.0, made=spec(chips=1, elasticity={"minChips": 1, "maxChips": 1}))
    assert status_and_reason(ConditionType.COST_EFFICIENT, dear, little) == ("False", Reason.CHEAPER_POOL_MEETS_TARGETS)


def test_a_saving_that_is_not_sure_is_not_called_one() -> None:
    cheap = replace(A10G, price=replace(A10G.price, on_demand=0.95))
    job = running(Placement("a100", 1, 1), 100.0, ratios={"chip_busy": None})
    assert status_and_reason(ConditionType.COST_EFFICIENT, job, {"a100": A100, "a10g": cheap}) == (
        "Unknown",
        Reason.UNCERTAIN_SAVING,
    )


def test_without_prices_nothing_is_claimed() -> None:
    free = {"a100": pool("a100", A100_CHIP, None), "a10g": A10G}
    assert status_and_reason(ConditionType.COST_EFFICIENT, running(), free) == ("Unknown", Reason.PRICE_UNKNOWN)


def test_a_price_that_goes_missing_says_at_what_the_meter_runs() -> None:
    free = {"a100": pool("a100", A100_CHIP, None), "a10g": A10G}
    condition = condition_of(ConditionType.DEGRADED, running(), free)
    assert (condition.status, condition.reason) == ("True", Reason.PRICE_UNKNOWN)
    assert "set spec.price" in condition.message and "$16.00/h counts, its last price" in condition.message
    never = condition_of(ConditionType.DEGRADED, running(pools=free), free)
    assert "not counted" in never.message
    assert status_and_reason(ConditionType.DEGRADED, running()) == ("False", Reason.HEALTHY)


def test_what_runs_where_the_pool_is_gone_says_so_and_what_to_do() -> None:
    absent = "pool a100 is gone: declare it again"
    job = running(pool_problem=absent)
    without = {"a10g": A10G}
    assert status_and_reason(ConditionType.PLACED, job, without) == ("True", Reason.RUNNING)
    for kind in (ConditionType.DEGRADED, ConditionType.MIGRATING, ConditionType.COST_EFFICIENT):
        assert absent in condition_of(kind, job, without).message
    waits = changed(job, revisions={}, profile=None)
    placed = condition_of(ConditionType.PLACED, waits, without)
    assert (placed.status, placed.reason) == ("False", Reason.NO_FEASIBLE_POOL)
    assert f"{absent}, or allow other pools" in placed.message


def test_what_waits_for_approval_is_cheaper_all_the_time() -> None:
    job = running(made=spec(adaptation={"requireApproval": True}))
    job = advance(job, plan(fleet([job], ALONE)).assessments[job.key], AUTO, NOW, decision_text)
    assert job.state.migration is not None and job.state.migration.phase is Phase.PLANNED
    assert status_and_reason(ConditionType.COST_EFFICIENT, job, ALONE) == ("False", CHEAPER)
    assert status_and_reason(ConditionType.MIGRATING, job, ALONE) == ("False", Reason.AWAITING_APPROVAL)
    way = "d-1: 4 chips of a100 → 1 chip of a100"
    assert condition_of(ConditionType.MIGRATING, job, ALONE).message.startswith(way)


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
    situation = context(job, ALONE)
    job = advance(job, situation.assessment, AUTO, NOW, decision_text)
    draft = draft_status(StoredJob(job, packed({}), None, ""), job, situation)
    recommendation = draft.body["recommendation"]
    assert recommendation["reason"] == CHEAPER
    assert recommendation.get("heldBy") == held_by
    assert float(recommendation["savings"]) > 0.0
    assert draft.body["summary"]["saves"].endswith("%")


@pytest.mark.parametrize(
    "sections", [{"adaptation": {"minSavings": "0.60"}}, {"progress": {"totalSamples": 86_400_000 + 20_000}}]
)
def test_what_does_not_pay_is_not_recommended(sections: dict[str, Any]) -> None:
    job = running(made=spec(**sections))
    draft = draft_status(StoredJob(job, packed({}), None, ""), job, context(job, ALONE))
    assert "recommendation" not in draft.body


def test_a_job_whose_first_pods_have_ended_runs() -> None:
    job = running(Placement("a100", 4, 2))
    assert job.child is not None
    states = {1: replace(job.child, running=1, completed=1)}
    condition = condition_of(ConditionType.PLACED, changed(job, revisions=states))
    assert (condition.status, condition.reason) == ("True", Reason.RUNNING)
    assert condition.message.endswith("; 1 of 2 pods have completed")


# --- Profiled --------------------------------------------------------------------------------------------------------


def test_processes_of_others_on_a_chip_are_told() -> None:
    job = running()
    assert job.observed.profile is not None
    orphan = {Field.OTHERS: Reading(0.18, 0.18, 0.18, Quality.MEASURED)}
    beside = changed(job, profile=replace(job.observed.profile, readings={**job.observed.profile.readings, **orphan}))
    condition = condition_of(ConditionType.PROFILED, beside)
    assert (condition.status, condition.reason) == ("False", Reason.SHARED_CHIP)
    assert "take 18% of a chip" in condition.message and "nvidia-smi" in condition.message
    assert status_and_reason(ConditionType.EFFICIENT, beside) == ("Unknown", Reason.PROFILE_NEEDED)


def with_template(container: dict[str, Any], **pod: Any) -> Any:
    template = {"spec": {"containers": [{"name": "trainer", "image": "x"} | container], **pod}}
    return spec(workload={"job": {"chipsPerReplica": 4, "replicas": 1, "template": template}})


@pytest.mark.parametrize(
    ("container", "pod", "reason", "remedy"),
    [
        ({}, {"hostNetwork": True}, Reason.HOST_NETWORK, "remove hostNetwork"),
        ({"env": [{"name": "PYTHONUSERBASE", "value": "/x"}]}, {}, Reason.USER_BASE_TAKEN, "set PYTHONPATH"),
        ({"env": [{"name": "PYTHONNOUSERSITE", "value": "1"}]}, {}, Reason.USER_SITE_OFF, "set PYTHONPATH"),
        ({"command": ["python", "-I", "x.py"]}, {}, Reason.PYTHON_ISOLATED, "remove that option"),
        ({}, {}, Reason.PARTIAL_TELEMETRY, "virtual environment"),
    ],
)
def test_what_keeps_the_profiler_out_is_said_with_its_remedy(
    container: dict[str, Any], pod: dict[str, Any], reason: Reason, remedy: str
) -> None:
    job = running(made=with_template(container, **pod))
    assert job.observed.profile is not None
    blind = changed(job, profile=without(job.observed.profile, Field.SAMPLES_PER_SECOND, Field.STEPS))
    condition = condition_of(ConditionType.PROFILED, blind)
    assert (condition.status, condition.reason) == ("False", reason)
    assert remedy in condition.message
    assert status_and_reason(ConditionType.PROFILED, job) == ("True", Reason.MEASURED), (
        "what is measured all the same is measured"
    )


def test_steps_whose_rate_is_not_known_yet_are_a_warm_up() -> None:
    job = running()
    assert job.observed.profile is not None
    blind = without(job.observed.profile, Field.SAMPLES_PER_SECOND)
    steps = Reading(7.0, 7.0, 7.0, Quality.MEASURED)
    job = changed(job, profile=replace(blind, readings={**blind.readings, Field.STEPS: steps}))
    for condition in (ConditionType.PROFILED, ConditionType.MIGRATING):
        assert status_and_reason(condition, job) == ("False", Reason.WARMING_UP)


def test_a_pod_without_a_profiler_is_not_waited_for() -> None:
    silent = changed(running(made=with_template({}, hostNetwork=True)), profile=None)
    assert status_and_reason(ConditionType.PROFILED, silent) == ("False", Reason.HOST_NETWORK)


# --- the columns of kubectl get --------------------------------------------------------------------------------------


def test_columns_are_for_people_and_the_account_is_exact() -> None:
    job = running(account=Account(spent=1.5, saved=-0.00000001, since=NOW, cost_per_hour=32.7726))
    body = draft_status(StoredJob(job, packed({}), None, ""), job, context(job, ALONE)).body
    assert body["summary"] == {
        "samplesPerSecond": "1000",
        "scalingEfficiency": "0.535",
        "perHour": "32.77",
        "perMillion": "4.44",
        "saved": "0.00",
        "goesTo": "1×a100",
        "saves": "46%",
    }
    assert float(body["cost"]["saved"]) == pytest.approx(-0.00000001)


def test_columns_of_what_the_job_does_are_of_now() -> None:
    job = running()
    assert job.observed.profile is not None
    for seen in (
        changed(job, profile=replace(job.observed.profile, steadiness=Steadiness.WARMING_UP)),
        changed(job, revisions={}),
    ):
        body = draft_status(StoredJob(seen, packed({}), None, ""), seen, context(seen, ALONE)).body
        assert body["profile"]["samplesPerSecond"] == "1000", "what was measured last is kept"
        shown = body.get("summary") or {}
        assert not shown.keys() & {"samplesPerSecond", "stepsPerSecond", "scalingEfficiency", "bottleneck"}


# --- Placed ----------------------------------------------------------------------------------------------------------


def test_who_is_stopped_says_how_many_pods_still_hold_chips() -> None:
    ending = RevisionState(1, exists=True, deleting=True, active=1, running=1)
    for job, why in (
        (running(made=spec(suspend=True)), "spec.suspend"),
        (changed(running(), deleting=True, revisions={1: ending}), "being deleted"),
    ):
        condition = condition_of(ConditionType.PLACED, job)
        assert (condition.status, condition.reason) == ("False", Reason.STOPPING)
        assert why in condition.message and "1 pod is still ending" in condition.message
    ended = changed(running(made=spec(suspend=True)), revisions={})
    assert status_and_reason(ConditionType.PLACED, ended) == ("False", Reason.SUSPENDED)


def test_the_operators_own_failure_is_called_one_and_what_runs_is_said_to_run() -> None:
    problem = "KeyError: 'x'"
    assert status_and_reason(ConditionType.PLACED, running(), problem=problem) == ("True", Reason.RUNNING)
    waits = changed(running(), revisions={})
    for kind, status in ((ConditionType.PLACED, "Unknown"), (ConditionType.DEGRADED, "True")):
        condition = condition_of(kind, waits, problem=problem)
        assert (condition.status, condition.reason) == (status, Reason.OPERATOR_FAILED)
        assert problem in condition.message and "report it" in condition.message
    unplaced = changed(waits, revision=None, profile=None)
    assert status_and_reason(ConditionType.DEGRADED, unplaced, problem=problem) == ("True", Reason.OPERATOR_FAILED)


# --- TargetsMet ------------------------------------------------------------------------------------------------------


def due(hours: float, samples: float = 10_000.0 * 86_400.0) -> Job:
    """A job that has run for a day at 1,000 samples/s, with so many samples in all, due in so many hours."""
    deadline = datetime.fromtimestamp(NOW + hours * 3600, UTC).isoformat()
    return running(made=spec(targets={"deadline": deadline}, progress={"totalSamples": int(samples)}))


def test_a_deadline_is_at_risk_before_it_is_missed() -> None:
    assert status_and_reason(ConditionType.TARGETS_MET, due(hours=24.0 * 30)) == ("True", "TargetsHold")
    risk = condition_of(ConditionType.TARGETS_MET, due(hours=24.0))
    assert (risk.status, risk.reason) == ("False", "DeadlineAtRisk")
    assert "10% of the samples are done" in risk.message and "probability 100%" in risk.message
    late = condition_of(ConditionType.TARGETS_MET, due(hours=-2.0))
    assert (late.status, late.reason) == ("False", "DeadlineMissed")
    assert "the deadline was 2027-01-15T06:00:00Z" in late.message


def test_how_a_job_has_ended_is_said_as_of_its_end() -> None:
    ended = changed(due(hours=2.0), finished="Completed")
    assert condition_of(ConditionType.TARGETS_MET, ended).message == "the job has ended 2.0 h before its deadline"
    late = condition_of(ConditionType.TARGETS_MET, changed(due(hours=-2.0), finished="Completed"))
    assert (late.reason, late.message) == ("DeadlineMissed", "the job has ended 2.0 h after its deadline")
    account = Account(spent=8.0)
    made = spec(targets={"budget": "10"})
    rich = condition_of(ConditionType.TARGETS_MET, changed(running(made=made, account=account), finished="Completed"))
    assert (rich.status, rich.message) == ("True", "the job has ended with $2.00 of its budget left")


def test_how_far_a_job_is_is_in_its_status() -> None:
    job = due(hours=24.0)
    body = draft_status(StoredJob(job, packed({}), None, ""), job, context(job, POOLS)).body
    assert body["outlook"]["progress"] == "0.10"
    assert body["summary"]["progress"] == "10%"
    assert body["outlook"]["finishAt"].startswith("2027-")


# --- approval --------------------------------------------------------------------------------------------------------

RECOMMEND = PlacementPolicySpec.model_validate({"defaultAdaptationMode": "Recommend"})


def test_what_is_recommended_is_carried_out_once_its_id_is_approved() -> None:
    job = running()
    body = draft_status(StoredJob(job, packed({}), None, ""), job, context(job, ALONE, RECOMMEND)).body
    recommendation = body["recommendation"]
    assert (recommendation["id"], recommendation["heldBy"]) == ("d-1-a100-1", "PolicyRecommendOnly")
    approved = replace(job, approved="d-1-a100-1")
    assert plan(fleet([approved], ALONE, RECOMMEND)).assessments[job.key].decision.action is Action.RESIZE


@pytest.mark.parametrize("wrong", ["d-1-a10g-1", "d-7", "yes"])
def test_a_wrong_approval_is_answered_and_moves_nothing(wrong: str) -> None:
    job = running(approved=wrong)
    assert plan(fleet([job], ALONE, RECOMMEND)).assessments[job.key].decision.action is Action.HOLD
    condition = condition_of(ConditionType.MIGRATING, job, ALONE, RECOMMEND)
    assert (condition.status, condition.reason) == ("False", "ApprovalUnknown")
    assert wrong in condition.message and "d-1-a100-1" in condition.message
