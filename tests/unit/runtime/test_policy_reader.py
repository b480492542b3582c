"""The fleet's policy, also where what is stored can't be read."""

from __future__ import annotations

from typing import Any

from benchmarks.cycle import Cluster, filled, planner_of
from rightpool.api.choices import AdaptationMode
from rightpool.api.kubernetes import Resource
from rightpool.api.policy import PlacementPolicySpec
from rightpool.cluster.resources import EVENTS, PLACEMENT_POLICIES
from rightpool.reporting.events import Event
from rightpool.runtime.observe.policy_reader import PolicyReader
from tests.unit.runtime.makers import Body


def policy(**spec: Any) -> Body:
    return {"metadata": {"name": "default", "uid": "p"}, "spec": spec}


GOOD = policy(defaultAdaptationMode="Auto")
BAD = policy(defaultAdaptationMode="Auto", startDeadline="soon")


def test_a_policy_that_cannot_be_read_is_told_once_with_its_field_and_so_is_its_correction() -> None:
    posted: list[Event] = []
    reader = PolicyReader(posted.append)
    assert reader.read([GOOD]).default_adaptation_mode is AdaptationMode.AUTO
    assert posted == [], "nothing is wrong"
    assert [reader.read([BAD]) for _ in range(3)] == [PlacementPolicySpec()] * 3, "the defaults hold"
    [event] = posted
    assert (event.reason, event.warning) == ("InvalidSpec", True)
    assert "spec.startDeadline: " in event.note
    assert "the defaults hold until it is corrected" in event.note
    reader.read([policy(maxMovesPerHour=-1)])
    assert "spec.maxMovesPerHour: " in posted[-1].note, "another problem is another statement"
    assert [reader.read([GOOD]).default_adaptation_mode for _ in range(2)] == [AdaptationMode.AUTO] * 2
    assert [(event.reason, event.warning) for event in posted[2:]] == [("PolicyRead", False)]


def test_a_bad_policy_that_is_deleted_is_not_called_corrected() -> None:
    posted: list[Event] = []
    reader = PolicyReader(posted.append)
    reader.read([BAD])
    assert reader.read([]) == reader.read([{"metadata": {"name": "other"}}]) == PlacementPolicySpec()
    reader.read([GOOD])
    assert [event.reason for event in posted] == ["InvalidSpec"]


def test_the_operator_posts_it_where_describe_looks() -> None:
    class Server(Cluster):
        posted: list[Body] = []

        def create(self, resource: Resource, body: Body) -> Body:
            self.posted += [body] if resource == EVENTS else []
            return super().create(resource, body)

    cluster, clock = Server(), {"now": 1_800_000_000.0}
    store = filled(cluster, 1, clock["now"])
    store.observe(PLACEMENT_POLICIES, None, cluster.put(PLACEMENT_POLICIES, BAD))
    planner = planner_of(cluster, store, clock)
    for _ in range(3):
        planner.cycle()
        clock["now"] += 10.0
    [body] = [body for body in cluster.posted if body["involvedObject"]["kind"] == "PlacementPolicy"]
    assert (body["type"], body["reason"]) == ("Warning", "InvalidSpec")
    assert body["metadata"]["namespace"] == "default"
    assert body["involvedObject"]["uid"] == "p"
