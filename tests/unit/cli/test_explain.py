"""`rightpool explain`: the operator's own answer, for a person and for a program, with whatever permissions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rightpool.cli import explain as module
from rightpool.cli.connection import CliError
from rightpool.cli.explain import document, explain, explain_all, list_document
from rightpool.cli.explained import Explanation
from rightpool.cli.explanation import print_explanation, print_list
from rightpool.cluster.resources import (
    ACCELERATOR_POOLS,
    NODES,
    PLACEMENT_POLICIES,
    PODS,
    PROFILED_JOBS,
)
from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.sample import Field
from tests.unit.cli.cluster import (
    NOW,
    FakeClient,
    condition,
    job,
    moment,
    placement,
    pod,
    printed,
    profile,
    running_status,
    two_pools,
    view_of,
)
from tests.unit.planning.jobs import assess

KEY = JobKey("vision", "resnet50")


def explained(client: FakeClient, key: JobKey = KEY) -> Explanation:
    return explain(view_of(client, key.namespace), key, NOW)


def output(client: FakeClient, width: int | None = None) -> str:
    page, stream = printed(width)
    print_explanation(page, explained(client))
    return stream.getvalue()


def with_job(status: dict[str, Any] | None = None, **spec: Any) -> FakeClient:
    client = two_pools()
    client.add(PROFILED_JOBS, job(status=status, **spec))
    client.add(PODS, pod("resnet50", "vision", "a100-0"))
    return client


# --- the answer ------------------------------------------------------------------------------------------------------


def test_the_decision_is_that_of_planning() -> None:
    found = explained(with_job())
    again = assess(found.job, found.pools, found.policy, NOW, [found.job])
    assert found.assessment == again
    assert found.assessment.decision.action.value == "Move"
    assert found.assessment.decision.target is not None
    assert found.assessment.decision.target.pool == "a10g"


def test_measurements_come_from_the_status() -> None:
    found = explained(with_job())
    assert found.job.observed.profile is not None and found.job.observed.profile.complete
    assert found.job.observed.profile.value(Field.SAMPLES_PER_SECOND) == 6070
    assert found.job.observed.profile.value(Field.MEMORY_USED) == 11_000_000_000
    assert found.job.observed.profile.value(Field.EXPOSED_COMMUNICATION) is None
    assert found.assessment.current is not None
    assert found.assessment.current.cost_per_million is not None
    assert found.assessment.current.cost_per_million.median == pytest.approx(20.28 / 3600 / 6070 * 1e6)


def test_chips_of_own_and_foreign_pods_are_in_use() -> None:
    client = with_job()
    client.add(
        PODS,
        {
            "metadata": {"name": "foreign", "namespace": "other"},
            "spec": pod("x", "other", "a10g-0")["spec"],
            "status": {"phase": "Running"},
        },
    )
    pools = explained(client).pools
    assert (pools["a100"].free, pools["a10g"].free) == (12, 4)


def test_chips_reserved_for_other_jobs_are_not_free() -> None:
    client = with_job()
    for name in ("first", "second"):
        status = running_status(placement=placement("a10g", cost="4.02") | {"since": None}, profile=None)
        client.add(PROFILED_JOBS, job(name, "other", status=status))
    assert explained(client).assessment.decision.reason.value == "WaitingForCapacity"


def test_another_controllers_job_is_explained_as_such() -> None:
    found = explained(with_job(managedBy="example.com/other"))
    assert any("spec.managedBy is example.com/other" in note for note in found.notes)
    assert found.assessment.decision.action.value == "Move", "what this operator would do"


def test_limits_of_the_fleet_are_applied() -> None:
    client = with_job()
    client.add(PLACEMENT_POLICIES, {"metadata": {"name": "default"}, "spec": {"maxMovesPerHour": 0}})
    decision = explained(client).assessment.decision
    assert (decision.action.value, decision.reason.value) == ("Hold", "MoveRateLimitReached")


@pytest.mark.parametrize(
    ("profiled", "steadiness"),
    [
        (condition("Profiled", "False", "WarmingUp"), "WarmingUp"),
        (condition("Profiled", "False", "StaleTelemetry"), "Stale"),
        (condition("Profiled", "False", "PartialTelemetry"), "Steady"),
    ],
)
def test_an_incomplete_profile_is_not_decided_on(profiled: dict[str, Any], steadiness: str) -> None:
    found = explained(with_job(running_status(conditions=[profiled])))
    assert found.job.observed.profile is not None and not found.job.observed.profile.complete
    assert found.job.observed.profile.steadiness.value == steadiness
    assert found.assessment.decision.action.value == "Hold"
    assert found.assessment.decision.reason.value == profiled["reason"]


def test_a_job_that_is_not_placed_yet() -> None:
    found = explained(with_job({"conditions": []}))
    assert found.assessment.decision.action.value == "Start"
    assert "nothing yet" in output(with_job({"conditions": []}))


def test_old_measurements_of_a_steady_job_are_no_doubt_about_the_operator() -> None:
    assert not explained(with_job(running_status(profile=profile(measuredAt=moment(4000))))).notes


def test_a_job_that_no_operator_has_looked_at_is_told_as_such() -> None:
    found = explained(with_job({}))
    assert any("no operator has looked at the job" in note and "watchNamespaces" in note for note in found.notes)
    assert document(found)["job"]["state"] == "Unseen"


def test_a_suspended_job_does_not_run_on_anything() -> None:
    account = {"spent": "40.00", "saved": "0.00"}
    suspended = [condition("Placed", "False", "Suspended", "spec.suspend is true")]
    client = with_job(running_status(conditions=suspended, cost=account), suspend=True)
    assert "Placed on, and holds no chips now" in output(client)


def test_a_whole_namespace_is_explained_in_lines() -> None:
    client = with_job()
    client.add(PROFILED_JOBS, job("other", status={}))
    listed = explain_all(view_of(client), NOW)
    assert [stored.job.key.name for stored, _ in listed] == ["other", "resnet50"]
    found = list_document(listed, NOW, None)
    assert [(item["name"], item["state"]) for item in found["items"]] == [("other", "Unseen"), ("resnet50", "Running")]
    assert all(item["decision"]["message"] for item in found["items"])


@pytest.mark.parametrize(
    ("status", "reason", "does"),
    [("False", "WarmingUp", "not reliable"), ("Unknown", "NotRunning", "Does\n  it does not run")],
)
def test_nothing_limits_a_job_that_is_not_measured_now(status: str, reason: str, does: str) -> None:
    client = two_pools()
    conditions = [condition("Placed", reason="Running"), condition("Profiled", status, reason)]
    client.add(PROFILED_JOBS, job(status=running_status(conditions=conditions)))
    found = explain(view_of(client), KEY, NOW)
    page, stream = printed()
    print_explanation(page, found)
    assert does in stream.getvalue() and "Limited by" not in stream.getvalue()
    assert document(found)["bottleneck"] is None


@pytest.mark.parametrize("more", [{}, {"managedBy": "example.com/other"}], ids=["unseen", "unmanaged"])
def test_nothing_is_promised_where_no_operator_looks(more: dict[str, Any]) -> None:
    client = two_pools()
    client.add(PROFILED_JOBS, job(status={}, **more))
    found = explain(view_of(client), KEY, NOW)
    page, stream = printed()
    print_explanation(page, found)
    print_list(page, explain_all(view_of(client), NOW), None, NOW, "vision")
    assert stream.getvalue().count("would start on 4 chips of") == 2 and "starts on" not in stream.getvalue()
    assert document(found)["decision"]["message"].startswith("would start on")


def test_a_deadline_that_passes_after_the_end_changes_nothing() -> None:
    client = two_pools()
    message = "the job has ended 2.0 h before its deadline"
    conditions = [condition("Completed"), condition("TargetsMet", reason="TargetsHold", message=message)]
    status = running_status(conditions=conditions, cost={"spent": "40.00", "saved": "0.00"})
    spec: dict[str, Any] = {"targets": {"deadline": moment(3600)}, "progress": {"totalSamples": 10}}
    client.add(PROFILED_JOBS, job(status=status, **spec))
    found = explain(view_of(client), KEY, NOW)
    page, stream = printed()
    print_explanation(page, found)
    assert message in stream.getvalue() and "the deadline passed" not in stream.getvalue()
    assert document(found)["targets"]["secondsLeft"] is None


def test_progress_and_the_end_of_a_job_without_targets() -> None:
    status = running_status(progress={"done": 1_000_000, "revision": 1, "counter": 1_000_000, "asOf": moment()})
    text = output(with_job(status, progress={"totalSamples": 4_000_000}))
    assert "Progress\n  25% of the samples are done; the rest takes" in text
    assert "at the present rate, until 2026-11-21T12:" in text and ", and costs $" in text
    assert "the rest takes" not in output(with_job(status)), "without a total nothing is left to be told"


def test_the_report_of_a_job_that_has_ended() -> None:
    status = running_status(
        conditions=[condition("Completed", reason="JobCompleted", message="the child Job succeeded")]
    )
    text = output(with_job(status))
    assert "$40.00 spent; it was never moved" in text
    assert "limited by MemoryBandwidth" in text
    assert "Could be" not in text, "it goes nowhere any more"


# --- what limits it --------------------------------------------------------------------------------------------------


def test_the_recorded_profile_is_diagnosed_again() -> None:
    diagnosis = explained(with_job()).job.observed.diagnosis
    assert diagnosis is not None and diagnosis.bottleneck.value == "MemoryBandwidth"
    assert "memory bandwidth " in diagnosis.finding.text()
    assert diagnosis.finding.lever()


def test_a_diagnosis_by_unrecorded_counters_has_the_conditions_evidence() -> None:
    found = explained(with_job(running_status(profile=profile(bottleneck="Straggler"))))
    assert found.job.observed.diagnosis is not None
    assert found.job.observed.diagnosis.bottleneck.value == "Straggler"
    assert found.job.observed.diagnosis.finding.text() == "what the operator saw. what helps"


def test_a_class_of_a_newer_operator_does_not_break_it() -> None:
    found = explained(with_job(running_status(profile=profile(bottleneck="CosmicRays"))))
    assert found.job.observed.diagnosis is not None
    assert "CosmicRays" in found.job.observed.diagnosis.finding.text()


# --- with fewer permissions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [NODES, PODS])
def test_without_access_to_nodes_and_pods_the_pools_status_is_used(kind: Any) -> None:
    client = with_job()
    client.forbidden.add(kind)
    found = explained(client)
    assert (found.pools["a100"].total, found.pools["a10g"].free) == (16, 8)
    assert found.assessment.decision.target is not None
    assert any("counted last" in note for note in found.notes)


def test_without_access_to_other_namespaces_the_own_one_is_used() -> None:
    client = with_job()
    client.forbidden |= {PROFILED_JOBS, NODES, PODS, PLACEMENT_POLICIES}
    found = explained(client)
    assert found.assessment.decision.action.value == "Move"
    assert len(found.notes) == 3


# --- not found -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "name", "hint"),
    [
        ("vision", "resnet5", "did you mean resnet50?"),
        ("other", "resnet50", "there is one in vision: add -n vision"),
        ("vision", "quite-different", "there are: resnet50"),
        ("empty", "quite-different", "`rightpool top -A` lists all"),
    ],
)
def test_a_wrong_name_gets_a_suggestion(namespace: str, name: str, hint: str) -> None:
    with pytest.raises(CliError) as error:
        explained(with_job(), JobKey(namespace, name))
    assert hint in str(error.value)
    assert f"no ProfiledJob {name} in namespace {namespace}" in str(error.value)


# --- for a person ----------------------------------------------------------------------------------------------------


def test_all_sections_are_there() -> None:
    text = output(with_job(running_status(history=[_entry()])))
    for line in (
        "vision/resnet50: Running",
        "objective MinimizeCost, adaptation Auto",
        "4 chips of a100 in 1 pod",
        "$20.28 an hour",
        "not measured: power of a chip, exposed communication, input wait",
        "Limited by MemoryBandwidth",
        "what helps:",
        "Decision: Move (CheaperPoolMeetsTargets)",
        "History, $ per million samples",
        "RolledBack (BelowPrediction)",
    ):
        assert line in text, text
    candidates = [line.split() for line in text.splitlines() if "Eligible" in line]
    assert len(candidates) == 1 and candidates[0][:3] == ["→", "a10g", "4"]


def test_a_job_in_steps_says_so_everywhere() -> None:
    steps = profile(samplesPerSecond=None, stepsPerSecond="3.2")
    client = with_job(running_status(profile=steps, history=[_entry() | {"unit": "Steps"}]))
    text = output(client)
    assert "STEPS/S" in text and "$/M STEPS" in text and "History, $ per million steps" in text
    assert "not measured: samples/s" in text
    assert "steps/s           3.2" in text
    found = document(explained(client))
    assert found["profile"]["values"]["stepsPerSecond"] == 3.2 and "samplesPerSecond" in found["profile"]["missing"]
    assert found["current"]["unit"] == "Steps" and found["history"][0]["unit"] == "Steps"
    assert "stepsPerSecond" not in document(explained(with_job()))["profile"]["missing"]
    mixed = output(with_job(running_status(history=[_entry(), _entry() | {"id": "d-2", "unit": "Steps"}])))
    assert "$ per million samples or steps" in mixed and "0.9 steps" in mixed and "0.9 samples" in mixed


def _entry() -> dict[str, Any]:
    there = {"pool": "l4", "chips": 4, "replicas": 1}
    return {
        "id": "d-1",
        "action": "Move",
        "from": there | {"pool": "a100"},
        "to": there,
        "predicted": "2000",
        "baseline": "3000",
        "fromPerHour": "9.72",
        "toPerHour": "3.6",
        "startedAt": moment(90_000),
        "finishedAt": moment(89_000),
        "outcome": "RolledBack",
        "reason": "BelowPrediction",
        "cost": "0.40",
    }


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    text = output(with_job(running_status(history=[_entry()])), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "a10g" in text and "Eligible" in text


def test_narrow_terminals_lose_columns_and_not_digits() -> None:
    wide, narrow = output(with_job(), 140), output(with_job(), 80)
    assert "80% INTERVAL" in wide and "80% INTERVAL" not in narrow
    assert "…" not in narrow.split("Could be")[1]


def test_no_escape_sequences_without_a_terminal() -> None:
    assert "\x1b" not in output(with_job())


def test_many_candidates_are_cut_and_counted() -> None:
    client = with_job()
    for index in range(20):
        client.add(ACCELERATOR_POOLS, _empty_pool(index))
    page, stream = printed()
    print_explanation(page, explained(client))
    assert "more: --all" in stream.getvalue()
    page, stream = printed()
    print_explanation(page, explained(client), everything=True)
    assert "more: --all" not in stream.getvalue()
    assert "empty-19" in stream.getvalue()


def _empty_pool(index: int) -> dict[str, Any]:
    spec = {
        "accelerator": "L4-24GB",
        "chipsPerNode": 4,
        "resourceName": "nvidia.com/gpu",
        "nodeSelector": {"pool": str(index)},
        "maxChips": 8,
        "price": {"perChipHour": "9.00"},
    }
    return {"metadata": {"name": f"empty-{index}"}, "spec": spec}


# --- for a program ---------------------------------------------------------------------------------------------------

KEYS = [
    *("apiVersion", "kind", "asOf", "notes", "job", "targets", "placement", "profile", "bottleneck"),
    *("current", "candidates", "decision", "evaluatedNow", "outbid", "edit", "migration", "recommendation"),
    *("cost", "history", "server", "serving"),
]


def test_the_document_has_its_documented_keys() -> None:
    found = document(explained(with_job(running_status(history=[_entry()]))))
    assert list(found) == KEYS
    for key in KEYS:
        assert key in (module.__doc__ or "")
    json.dumps(found, allow_nan=False)
    assert found["asOf"] == "2026-11-21T12:00:00Z"
    assert found["job"] == {
        "namespace": "vision",
        "name": "resnet50",
        "state": "Running",
        "objective": "MinimizeCost",
        "adaptation": "Auto",
    }
    assert found["decision"]["target"] == {"pool": "a10g", "chips": 4, "replicas": 1, "capacity": "OnDemand"}
    assert found["profile"]["values"]["samplesPerSecond"] == 6070
    assert "exposedCommunication" in found["profile"]["missing"]
    assert found["history"][0]["id"] == "d-1"
    (candidate,) = found["candidates"]
    assert candidate["verdict"] == "Eligible"
    assert candidate["throughput"]["low"] < candidate["throughput"]["median"]
    assert candidate["costPerHour"] == pytest.approx(4.024)


def test_unknown_values_are_null() -> None:
    found = document(explained(with_job({"conditions": []})))
    assert list(found) == KEYS
    for key in ("placement", "profile", "bottleneck", "current", "evaluatedNow", "migration", "cost"):
        assert found[key] is None
    assert found["history"] == []


def test_the_account_is_extended_to_now() -> None:
    status = running_status(cost={"perHour": "20.28", "spent": "40.00", "saved": "0.00", "asOf": moment(1800)})
    assert document(explained(with_job(status)))["cost"]["spent"] == pytest.approx(40 + 10.14)


def test_an_explanation_does_not_depend_on_the_order_of_the_lists() -> None:
    client = with_job()
    forward = document(explained(client))
    for objects in client.objects.values():
        objects.reverse()
    assert document(replace(explained(client), now=NOW)) == forward
