"""The fleet's policy and its status, also where what is stored can't be read."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.api.choices import AdaptationMode
from rightpool.api.kubernetes import Resource
from rightpool.api.policy import PlacementPolicySpec
from rightpool.cluster.errors import ClusterError, Forbidden, NotFound
from rightpool.cluster.resources import PLACEMENT_POLICIES
from rightpool.planning.allocate.allocator import Choice
from rightpool.planning.offers.evidence import BreakerOpen, Limit
from rightpool.reporting.events import Event
from rightpool.reporting.stored_policy import StoredPolicy
from rightpool.runtime.act.policy_publisher import PolicyPublisher
from rightpool.runtime.act.status_publisher import StatusPublisher
from rightpool.runtime.observe.store import Store
from tests.unit.runtime.makers import Body

NOW = 1_800_000_000.0
OPEN = BreakerOpen(4, 5, 0.5, NOW + 3600.0)


def policy(**spec: Any) -> Body:
    return {"metadata": {"name": "default", "uid": "p", "resourceVersion": "1", "generation": 2}, "spec": spec}


GOOD = policy(defaultAdaptationMode="Auto")
BAD = policy(defaultAdaptationMode="Auto", startDeadline="soon")


class Server:
    """Keeps the policy's status. error: what it answers to a write of it."""

    def __init__(self, body: Body, error: ClusterError | None = None) -> None:
        self.body, self.error, self.writes = body, error, 0
        self.events: list[Event] = []

    def apply(self, resource: Resource, body: Body, *, subresource: str = "") -> Body:
        assert (resource, subresource) == (PLACEMENT_POLICIES, "status")
        self.writes += 1
        if self.error is not None:
            raise self.error
        self.body = {**self.body, "status": body["status"]}
        return self.body

    def publisher(self) -> PolicyPublisher:
        server: Any = self
        return PolicyPublisher(StatusPublisher(server, Store(), self.events.append))

    def publish(self, publisher: PolicyPublisher, stop: Limit | None = None, now: float = NOW) -> bool:
        return publisher.publish(StoredPolicy.of(self.body), stop, now)

    def edit(self, body: Body) -> None:
        self.body = {**body, "status": self.body.get("status")}

    def condition(self, kind: str) -> tuple[str, str, str]:
        found = next(one for one in self.body["status"]["conditions"] if one["type"] == kind)
        assert found["observedGeneration"] == self.body["metadata"]["generation"]
        return found["status"], found["reason"], found["message"]

    def statements(self) -> list[tuple[str, bool]]:
        return [(event.reason, event.warning) for event in self.events]


def test_a_good_policy_is_ready_and_trusted_without_an_event() -> None:
    server = Server(GOOD)
    publisher = server.publisher()
    assert [server.publish(publisher, now=NOW + second) for second in range(3)] == [True, False, False]
    assert server.condition("Ready")[:2] == ("True", "PolicyRead")
    assert server.condition("Trusted")[:2] == ("True", "BreakerClosed")
    assert server.events == []


def test_a_policy_that_cannot_be_read_names_its_field_once_also_by_a_new_process_and_so_does_its_correction() -> None:
    server = Server(BAD)
    assert StoredPolicy.of(BAD).spec == PlacementPolicySpec(), "the defaults hold"
    publisher = server.publisher()
    assert [server.publish(publisher, now=NOW + second) for second in range(3)] == [True, False, False]
    status, reason, message = server.condition("Ready")
    assert (status, reason) == ("False", "InvalidSpec")
    assert "the defaults hold until it is corrected: spec.startDeadline: " in message
    assert server.publish(server.publisher(), now=NOW + 10) is False
    assert server.statements() == [("InvalidSpec", True)]
    server.edit(policy(maxMovesPerHour=-1))
    assert server.publish(publisher, now=NOW + 20)
    assert "spec.maxMovesPerHour: " in server.condition("Ready")[2]
    server.edit(GOOD)
    assert StoredPolicy.of(server.body).spec.default_adaptation_mode is AdaptationMode.AUTO
    assert server.publish(publisher, now=NOW + 30)
    assert server.statements() == [("InvalidSpec", True), ("PolicyRead", False)]


def test_what_holds_back_the_fleet_is_at_the_policy_and_so_is_its_end() -> None:
    server = Server(GOOD)
    publisher = server.publisher()
    server.publish(publisher)
    assert server.publish(publisher, OPEN, NOW + 10)
    status, reason, message = server.condition("Trusted")
    assert (status, reason) == ("False", "CircuitBreakerOpen")
    assert "4 of the last 5 moves had to be undone" in message
    assert not server.publish(publisher, OPEN, NOW + 20)
    assert server.publish(publisher, None, NOW + 4000)
    assert server.statements() == [("CircuitBreakerOpen", True), ("BreakerClosed", False)]


def test_chips_that_moves_want_have_their_worth_at_the_policy_while_they_do() -> None:
    server = Server(GOOD)
    publisher = server.publisher()
    stored = StoredPolicy.of(GOOD)
    assert publisher.publish(stored, None, NOW, Choice(prices={"b": 1.004, "a": 2.5}))
    assert server.body["status"]["chips"] == [
        {"pool": "a", "perChipHour": "2.50"},
        {"pool": "b", "perChipHour": "1.00"},
    ]
    stored = StoredPolicy.of(server.body)
    assert not publisher.publish(stored, None, NOW + 10, Choice(prices={"a": 2.5, "b": 1.0}))
    assert publisher.publish(stored, None, NOW + 20)
    assert "chips" not in server.body["status"]


def test_without_a_policy_nothing_is_written() -> None:
    server = Server(GOOD)
    assert server.publisher().publish(StoredPolicy.of(None), OPEN, NOW) is False
    assert server.writes == 0


@pytest.mark.parametrize("error", [NotFound("no such subresource", status=404), Forbidden("no right", status=403)])
def test_a_status_that_is_refused_is_tried_once_a_minute(error: ClusterError, caplog: pytest.LogCaptureFixture) -> None:
    server = Server(BAD, error)
    publisher = server.publisher()
    for second in range(0, 120, 10):
        assert not server.publish(publisher, now=NOW + second)
    assert server.writes == 2 and server.events == []
    assert sum("spec.startDeadline" in line for line in caplog.messages) == 1


def test_a_plan_of_the_fleet_that_fails_is_said_at_the_policy_and_so_is_its_end() -> None:
    server = Server(GOOD)
    publisher = server.publisher()
    assert publisher.publish(StoredPolicy.of(GOOD), None, NOW, Choice(failure="ValueError: no numbers"))
    status, reason, message = server.condition("Planning")
    assert (status, reason) == ("False", "FleetPlanFailed") and "ValueError: no numbers" in message
    assert publisher.publish(StoredPolicy.of(server.body), None, NOW + 10)
    assert server.condition("Planning")[:2] == ("True", "FleetPlanned")
    assert server.statements() == [("FleetPlanFailed", True), ("FleetPlanned", False)]
