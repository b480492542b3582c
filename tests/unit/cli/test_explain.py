"""`rightpool explain`: the operator's own answer, for a person and for a program, with whatever permissions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rightpool.cli import explain as module
from rightpool.cli.connection import CliError
from rightpool.cli.explain import Explanation, document, explain
from rightpool.cli.explanation import print_explanation
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PLACEMENT_POLICIES, PODS, PROFILED_JOBS
from rightpool.planning.assess import assess
from rightpool.planning.plan import reservations
from rightpool.planning.snapshot import JobKey
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

KEY = JobKey("vision", "resnet50")


def explained(client: FakeClient, key: JobKey = KEY) -> Explanation:
    return explain(view_of(client, key.namespace), key, NOW)


def told(client: FakeClient, width: int | None = None) -> str:
    page, stream = printed(width)
    print_explanation(page, explained(client))
    return stream.getvalue()


def with_job(status: dict[str, Any] | None = None, **spec: Any) -> FakeClient:
    client = two_pools()
    client.add(PROFILED_JOBS, job(status=status, **spec))
    client.add(PODS, pod("resnet50", "vision", "a100-0"))
    return client


# --- the answer ------------------------------------------------------------------------------------------------------


def test_it_is_plannings_answer() -> None:
    found = explained(with_job())
    again = assess(found.job, found.pools, found.policy, NOW, reservations([found.job]))
    assert found.assessment == again
    assert found.assessment.decision.action.value == "Move"
    assert found.assessment.decision.target is not None
    assert found.assessment.decision.target.pool == "a10g"


def test_what_was_measured_comes_from_the_status() -> None:
    found = explained(with_job())
    assert found.job.profile is not None and found.job.profile.complete
    assert found.job.profile.value(Field.SAMPLES_PER_SECOND) == 6070
    assert found.job.profile.value(Field.MEMORY_USED) == 11_000_000_000
    assert found.job.profile.value(Field.EXPOSED_COMMUNICATION) is None
    assert found.assessment.current is not None
    assert found.assessment.current.cost_per_million is not None
    assert found.assessment.current.cost_per_million.median == pytest.approx(20.28 / 3600 / 6070 * 1e6)


def test_chips_of_pods_are_taken_chips_of_strangers_too() -> None:
    client = with_job()
    client.add(
        PODS,
        {
            "metadata": {"name": "stranger", "namespace": "other"},
            "spec": pod("x", "other", "a10g-0")["spec"],
            "status": {"phase": "Running"},
        },
    )
    pools = explained(client).pools
    assert (pools["a100"].free, pools["a10g"].free) == (12, 4)


def test_chips_promised_to_others_are_not_to_be_had() -> None:
    client = with_job()
    for name in ("first", "second"):
        status = running_status(placement=placement("a10g", cost="4.02") | {"since": None}, profile=None)
        client.add(PROFILED_JOBS, job(name, "other", status=status))
    assert explained(client).assessment.decision.reason.value == "WaitingForCapacity"


def test_another_controllers_job_is_explained_as_such() -> None:
    found = explained(with_job(managedBy="example.com/other"))
    assert any("spec.managedBy is example.com/other" in note for note in found.notes)
    assert found.assessment.decision.action.value == "Move", "what this operator would do"


def test_limits_of_the_fleet_hold_here_too() -> None:
    client = with_job()
    client.add(PLACEMENT_POLICIES, {"metadata": {"name": "default"}, "spec": {"maxMovesPerHour": 0}})
    decision = explained(client).assessment.decision
    assert (decision.action.value, decision.reason.value) == ("Hold", "MoveRateLimitReached")


@pytest.mark.parametrize(
    ("said", "steadiness"),
    [
        (condition("Profiled", "False", "WarmingUp"), "WarmingUp"),
        (condition("Profiled", "False", "StaleTelemetry"), "Stale"),
        (condition("Profiled", "False", "PartialTelemetry"), "Steady"),
    ],
)
def test_an_incomplete_profile_is_not_decided_on(said: dict[str, Any], steadiness: str) -> None:
    found = explained(with_job(running_status(conditions=[said])))
    assert found.job.profile is not None and not found.job.profile.complete
    assert found.job.profile.steadiness.value == steadiness
    assert found.assessment.decision.action.value == "Hold"
    assert found.assessment.decision.reason.value == said["reason"]


def test_a_job_that_is_not_placed_yet() -> None:
    found = explained(with_job({"conditions": []}))
    assert found.assessment.decision.action.value == "Start"
    assert "nothing yet" in told(with_job({"conditions": []}))


def test_old_measurements_are_pointed_out() -> None:
    client = with_job(running_status(profile=profile(measuredAt=moment(4000))))
    assert any("does the operator run?" in note for note in explained(client).notes)
    assert not explained(with_job()).notes


# --- what limits it --------------------------------------------------------------------------------------------------


def test_the_diagnosis_is_made_again_from_what_was_recorded() -> None:
    found = explained(with_job())
    assert found.job.diagnosis is not None
    assert found.job.diagnosis.bottleneck.value == "MemoryBandwidth"
    assert "memory bandwidth is at" in found.job.diagnosis.evidence
    assert found.job.diagnosis.lever


def test_what_only_the_operator_saw_is_told_in_its_words() -> None:
    found = explained(with_job(running_status(profile=profile(bottleneck="Straggler"))))
    assert found.job.diagnosis is not None
    assert found.job.diagnosis.bottleneck.value == "Straggler"
    assert found.job.diagnosis.evidence == "what the operator saw. what helps"


def test_a_class_of_a_newer_operator_does_not_break_it() -> None:
    found = explained(with_job(running_status(profile=profile(bottleneck="CosmicRays"))))
    assert found.job.diagnosis is not None
    assert "CosmicRays" in found.job.diagnosis.evidence


# --- with fewer permissions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [NODES, PODS])
def test_without_nodes_or_pods_the_pools_status_stands_in(kind: Any) -> None:
    client = with_job()
    client.forbidden.add(kind)
    found = explained(client)
    assert (found.pools["a100"].total, found.pools["a10g"].free) == (16, 8)
    assert found.assessment.decision.target is not None
    assert any("counted last" in note for note in found.notes)


def test_without_other_namespaces_ones_own_is_explained() -> None:
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
def test_a_wrong_name_is_answered_with_the_right_one(namespace: str, name: str, hint: str) -> None:
    with pytest.raises(CliError) as error:
        explained(with_job(), JobKey(namespace, name))
    assert hint in str(error.value)
    assert f"no ProfiledJob {name} in namespace {namespace}" in str(error.value)


# --- for a person ----------------------------------------------------------------------------------------------------


def test_all_sections_are_there() -> None:
    text = told(with_job(running_status(history=[_entry()])))
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


def _entry() -> dict[str, Any]:
    there = {"pool": "l4", "chips": 4, "replicas": 1}
    return {
        "id": "d-1",
        "action": "Move",
        "from": there | {"pool": "a100"},
        "to": there,
        "predictedSamplesPerSecond": "2000",
        "predictedCostPerMillionSamples": "0.5",
        "baselineCostPerMillionSamples": "0.9",
        "realisedCostPerMillionSamples": "1.2",
        "startedAt": moment(90_000),
        "finishedAt": moment(89_000),
        "outcome": "RolledBack",
        "reason": "BelowPrediction",
        "cost": "0.40",
    }


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    text = told(with_job(running_status(history=[_entry()])), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "a10g" in text and "Eligible" in text


def test_narrow_terminals_lose_columns_and_not_digits() -> None:
    wide, narrow = told(with_job(), 140), told(with_job(), 80)
    assert "80% INTERVAL" in wide and "80% INTERVAL" not in narrow
    assert "…" not in narrow.split("Could be")[1].split("Decision")[0]


def test_no_escape_sequences_without_a_terminal() -> None:
    assert "\x1b" not in told(with_job())


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
    *("apiVersion", "kind", "asOf", "notes", "job", "placement", "profile", "bottleneck", "current", "candidates"),
    *("decision", "migration", "cost", "history"),
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
    assert candidate["samplesPerSecond"]["low"] < candidate["samplesPerSecond"]["median"]
    assert candidate["costPerHour"] == pytest.approx(4.024)


def test_what_is_not_known_is_null() -> None:
    found = document(explained(with_job({"conditions": []})))
    assert list(found) == KEYS
    for key in ("placement", "profile", "bottleneck", "current", "migration", "cost"):
        assert found[key] is None
    assert found["history"] == []


def test_the_account_runs_on_to_now() -> None:
    status = running_status(cost={"perHour": "20.28", "spent": "40.00", "saved": "0.00", "asOf": moment(1800)})
    assert document(explained(with_job(status)))["cost"]["spent"] == pytest.approx(40 + 10.14)


def test_an_explanation_does_not_depend_on_the_order_of_the_lists() -> None:
    client = with_job()
    forward = document(explained(client))
    for objects in client.objects.values():
        objects.reverse()
    assert document(replace(explained(client), now=NOW)) == forward
