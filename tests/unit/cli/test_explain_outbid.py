"""`rightpool explain`: why a job does not get what is worth most to it, by one subtraction."""

from __future__ import annotations

from typing import Any

from rightpool.cli.explain import document, explain
from rightpool.cli.explanation import print_explanation
from rightpool.cluster.resources import PLACEMENT_POLICIES, PROFILED_JOBS
from rightpool.planning.jobs.job import JobKey
from tests.unit.cli.cluster import NOW, FakeClient, job, moment, printed, two_pools, view_of

LAST = JobKey("vision", "third")


def crowded(**policy: Any) -> FakeClient:
    """Three jobs want eight of sixteen chips each."""
    client = two_pools()
    template = {"replicas": 1, "chipsPerReplica": 8, "template": {"spec": {"containers": [{"name": "trainer"}]}}}
    for name, namespace in (("first", "speech"), ("second", "vision"), ("third", "vision")):
        wants = {"workload": {"job": template}, "elasticity": {"minChips": 8, "maxChips": 8}}
        body = job(name, namespace, {}, **wants, placement={"pools": {"allow": ["a100"]}})
        body["metadata"]["creationTimestamp"] = moment(60 if name == "third" else 600)
        client.add(PROFILED_JOBS, body)
    worth = [{"pool": "a100", "perChipHour": "5.10"}]
    body = {"metadata": {"name": "default"}, "spec": {"fleet": {"mode": "Auto"}}, "status": {"chips": worth}}
    client.add(PLACEMENT_POLICIES, body | policy)
    return client


def shown(client: FakeClient) -> tuple[dict[str, Any], str]:
    page, stream = printed()
    found = explain(view_of(client), LAST, NOW)
    print_explanation(page, found)
    return document(found), stream.getvalue()


def test_a_job_that_waits_sees_what_its_chips_are_worth_to_others_and_to_it() -> None:
    found, text = shown(crowded())
    outbid = found["outbid"]
    assert (outbid["pool"], outbid["chips"]) == ("a100", 8)
    assert outbid["worthPerHour"] >= outbid["gainPerHour"] > 0.0
    assert f"8 are worth ${outbid['worthPerHour']:.2f} an hour or more to them" in text
    assert f"and ${outbid['gainPerHour']:.2f} to this job" in text
    assert "speech" not in text, "whose they are is not this namespace's to know"


def test_without_prices_nothing_is_said_of_them() -> None:
    """The plan has found none, or whoever asks may not see all that want the chips."""
    hidden = crowded()
    hidden.forbidden.add(PROFILED_JOBS)
    for client in (crowded(status={}), hidden):
        found, text = shown(client)
        assert found["outbid"] is None and "worth" not in text
