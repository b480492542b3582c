"""What leads the page of the fleet: what somebody has to see to, the most urgent first, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cli.ui.attention import Need, attention
from rightpool.cluster.resources import PROFILED_JOBS
from tests.unit.cli.cluster import FakeClient, condition, job, running_status, two_pools, view_of
from tests.unit.cli.test_top import recommended
from tests.unit.cli.ui.pages import browser_of, fleet

FAILED = condition("Failed", "True", "JobFailed", "the child Job failed")
UNPRICED = condition("Degraded", "True", "PriceUnknown", "pool a100 has no price")
THROTTLED = condition("Efficient", "False", "Throttled", "clocks are held down by heat")
LATE = condition("TargetsMet", "False", "DeadlineAtRisk", "done 2.0 h after its deadline")
CRASHES = condition("Placed", "False", "CrashLoop", "trainer exited with 1")


def with_conditions(client: FakeClient, name: str, *conditions: dict[str, Any], **spec: Any) -> None:
    kinds = {each["type"] for each in conditions}
    usual = [each for each in running_status()["conditions"] if each["type"] not in kinds]
    client.add(PROFILED_JOBS, job(name, status=running_status(conditions=[*usual, *conditions]), **spec))


def awaiting() -> dict[str, Any]:
    status = recommended()
    status["recommendation"]["heldBy"] = "AwaitingApproval"
    return status


def test_the_most_urgent_is_first_and_what_many_have_is_said_once() -> None:
    client = two_pools()
    client.add(PROFILED_JOBS, job("asks", status=awaiting()))
    with_conditions(client, "late", LATE)
    with_conditions(client, "hot", THROTTLED)
    for name in ("unpriced-1", "unpriced-0"):
        with_conditions(client, name, UNPRICED)
    with_conditions(client, "crashes", CRASHES)
    with_conditions(client, "failed", FAILED, UNPRICED)
    with_conditions(client, "well")
    found = attention(view_of(client).jobs(None).values())
    assert [(each.need, [key.name for key in each.jobs]) for each in found] == [
        (Need.FAILED, ["failed"]),
        (Need.STUCK, ["crashes"]),
        (Need.DEGRADED, ["unpriced-0", "unpriced-1"]),
        (Need.THROTTLED, ["hot"]),
        (Need.TARGET, ["late"]),
        (Need.APPROVE, ["asks"]),
    ]
    assert (found[2].reason, found[2].message) == ("PriceUnknown", "pool a100 has no price")


@pytest.mark.parametrize(
    "status",
    [
        running_status(),
        recommended(),
        {},
        running_status(conditions=[condition("Placed", "False", "WaitingForCapacity", "no chip is free")]),
        running_status(conditions=[condition("Completed", reason="JobCompleted"), UNPRICED, LATE]),
    ],
    ids=["runs well", "only recommended", "unseen", "waits", "is done"],
)
def test_nobody_has_to_see_to_what_is_well_or_goes_on_by_itself(status: dict[str, Any]) -> None:
    client = two_pools()
    client.add(PROFILED_JOBS, job(status=status))
    assert attention(view_of(client).jobs(None).values()) == ()


def test_another_controllers_job_is_not_ours_to_see_to() -> None:
    client = two_pools()
    with_conditions(client, "theirs", FAILED, managedBy="example.com/other")
    assert attention(view_of(client).jobs(None).values()) == ()


def test_it_leads_the_page() -> None:
    client = fleet()
    text = browser_of(client).get("/").text
    assert "nothing</span> No job has failed" in text
    with_conditions(client, "hot", THROTTLED)
    text = browser_of(client).get("/").text
    assert text.index("Needs attention") < text.index("clocks are held down by heat") < text.index('class="tiles"')
    assert 'href="/jobs/vision/hot"' in text and 'class="badge throttled">1 throttled' in text


def test_columns_in_which_no_job_says_anything_are_left_out() -> None:
    text = browser_of(fleet()).get("/").text
    assert "ENDS IN" in text and "WOULD GO TO" in text
    assert "TARGETS" not in text and "BUDGET LEFT" not in text
