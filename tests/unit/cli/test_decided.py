"""The decision that `explain` tells is the operator's; another one, by what is known now, is told beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.cli.explain import document, explain, explain_all, list_document
from rightpool.cli.explained import Explanation
from rightpool.cli.explanation import print_explanation, print_list
from rightpool.cluster.resources import ACCELERATOR_POOLS, PLACEMENT_POLICIES, PODS, PROFILED_JOBS
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.status import draft_status
from tests.unit.cli.cluster import NOW, FakeClient, job, pod, printed, two_pools, view_of

KEY = JobKey("vision", "resnet50")
ANEW = "evaluated now, it would be"


def fleet(policy: dict[str, Any] | None = None, **spec: Any) -> FakeClient:
    """A job that a10g would serve for 28% less, unless its spec or the policy says something against that."""
    client = two_pools()
    client.add(PROFILED_JOBS, job(**spec))
    client.add(PODS, pod("resnet50", "vision", "a100-0"))
    if policy is not None:
        client.add(PLACEMENT_POLICIES, {"metadata": {"name": "default"}, "spec": policy})
    return client


def explained(client: FakeClient) -> Explanation:
    return explain(view_of(client), KEY, NOW)


def written(client: FakeClient) -> FakeClient:
    """The operator sees the job run, evaluates it and writes its status."""
    found = explained(client)
    runs = {1: RevisionState(1, True, active=1, running=1)}
    seen = replace(found.job, observed=found.job.observed._replace(revisions=runs))
    context = Context(found.assessment, found.pools["a100"].price, True, NOW)
    (body,) = client.objects[PROFILED_JOBS]
    body["status"] = draft_status(found.stored, seen, context).body
    return client


def priced(client: FakeClient, pool: str, dollars: str) -> None:
    """Since then the price of a pool is another one."""
    for body in client.objects[ACCELERATOR_POOLS]:
        if body["metadata"]["name"] == pool:
            body["spec"]["price"] = {"perChipHour": dollars}


def texts(client: FakeClient) -> str:
    page, stream = printed()
    print_explanation(page, explained(client))
    return stream.getvalue()


CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "moves": ({}, "Move", "CheaperPoolMeetsTargets"),
    "is held by the fleet's limits": ({"policy": {"maxMovesPerHour": 0}}, "Hold", "MoveRateLimitReached"),
    "is recommended alone": ({"adaptation": {"mode": "Recommend"}}, "Hold", "PolicyRecommendOnly"),
    "saves too little": ({"adaptation": {"mode": "Auto", "minSavings": "0.9"}}, "Keep", "BelowMinSavings"),
    "has nowhere else to go": ({"placement": {"pools": {"allow": ["a100"]}}}, "Keep", "Cheapest"),
    "is not adapted": ({"adaptation": {"mode": "Off"}}, "Keep", "AdaptationOff"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_operator_wrote_of_the_same_facts_is_no_other_decision(case: str) -> None:
    asked, action, reason = CASES[case]
    client = written(fleet(**asked))
    found = document(explained(client))
    assert (found["decision"]["action"], found["decision"]["reason"]) == (action, reason)
    assert found["evaluatedNow"] is None and ANEW not in texts(client)


@pytest.mark.parametrize("case", ["is held by the fleet's limits", "is recommended alone"])
def test_what_it_holds_stays_held_although_it_would_not_pay_any_more(case: str) -> None:
    asked, action, reason = CASES[case]
    client = written(fleet(**asked))
    priced(client, "a10g", "9.00")
    found = document(explained(client))
    assert (found["decision"]["action"], found["decision"]["reason"]) == (action, reason)
    assert found["decision"]["target"]["pool"] == "a10g"
    assert found["evaluatedNow"]["action"] == "Keep"


def test_a_job_that_the_operator_keeps_is_kept_and_what_is_known_since_is_one_sentence() -> None:
    client = fleet()
    priced(client, "a10g", "9.00")
    written(client)
    priced(client, "a10g", "1.006")
    found = document(explained(client))
    assert found["decision"]["action"] == "Keep" and found["decision"]["target"] is None
    assert (found["evaluatedNow"]["action"], found["evaluatedNow"]["target"]["pool"]) == ("Move", "a10g")
    text = texts(client)
    assert "Decision: Keep" in text and text.count(ANEW) == 1
    assert "Move (CheaperPoolMeetsTargets): 4 chips of a10g" in text
    assert "→" not in text, "no place is marked as the one that is taken"
    listed = explain_all(view_of(client), NOW)
    (item,) = list_document(listed, NOW, None)["items"]
    page, stream = printed()
    print_list(page, listed, None, NOW, "vision")
    assert item["decision"] == found["decision"] and "Keep (" in stream.getvalue()


def test_before_it_has_looked_at_an_edit_its_decision_is_about_another_spec() -> None:
    client = fleet()
    priced(client, "a10g", "9.00")
    written(client)
    priced(client, "a10g", "1.006")
    client.objects[PROFILED_JOBS][0]["metadata"]["generation"] = 2
    found = document(explained(client))
    assert (found["decision"]["action"], found["evaluatedNow"]) == ("Move", None)
