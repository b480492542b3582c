"""The Lease: never two leaders, whatever stops, lags or comes back."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from rightpool.cluster.errors import AlreadyExists, Conflict, NotFound, Unavailable
from rightpool.cluster.lease import LeaseElector


class Server:
    """Keeps one Lease, with optimistic concurrency."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.down = False
        self.before_write: Any = None

    def get(self, resource: object, name: str, namespace: str | None = None) -> dict[str, Any]:
        if self.down:
            raise Unavailable("down")
        if self.lease is None:
            raise NotFound("none")
        return copy.deepcopy(self.lease)

    def create(self, resource: object, body: Mapping[str, Any]) -> dict[str, Any]:
        if self.lease is not None:
            raise AlreadyExists("there is one")
        return self._store(body)

    def replace(self, resource: object, body: Mapping[str, Any]) -> dict[str, Any]:
        if self.before_write is not None:
            action, self.before_write = self.before_write, None
            action()
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict("changed")
        return self._store(body)

    def _store(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.lease = copy.deepcopy(dict(body))
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.lease)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def elector(server: Server, clock: Clock, identity: str) -> LeaseElector:
    return LeaseElector(server, namespace="n", name="l", identity=identity, duration=15.0, clock=clock)


def test_the_first_leads_and_the_second_follows() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    assert a.step()
    assert not b.step()
    assert (b.holder, a.transitions) == ("a", 0)


def test_a_leader_that_is_stopped_does_not_believe_in_its_lease_when_it_goes_on() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    a.step()
    b.step()
    clock.now += 16.0  # SIGSTOP: `a` does nothing, its clock goes on
    assert b.step()
    assert not a.held
    assert b.transitions == 1
    assert not a.step()


def test_no_instant_has_two_leaders_even_if_the_follower_looks_as_late_as_it_can() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    for _ in range(400):
        if int(clock.now) % 7:
            a.step()  # renews, with gaps
        b.step()
        assert not (a.held and b.held)
        clock.now += 1.7


def test_an_api_server_that_is_away_costs_the_lease_only_when_it_has_run_out() -> None:
    server, clock = Server(), Clock()
    a = elector(server, clock, "a")
    a.step()
    server.down = True
    clock.now += 5
    assert a.step()
    clock.now += 8
    assert not a.step(), "12 of 15 seconds are over: somebody else might be leader before long"


def test_losing_the_race_for_the_write_is_not_leading() -> None:
    server, clock = Server(), Clock()
    a, b, c = (elector(server, clock, name) for name in "abc")
    a.step()
    b.step()
    c.step()
    clock.now += 20
    server.before_write = b.step
    assert not c.step()
    assert b.held


def test_the_promise_counts_from_when_the_request_was_sent() -> None:
    server, clock = Server(), Clock()
    a = elector(server, clock, "a")
    a.step()

    def slow() -> None:
        clock.now += 10

    server.before_write = slow
    a.step()
    assert a.held_for(1.5)
    assert not a.held_for(2.5)


def test_stopping_gives_it_back_at_once() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    a.step()
    b.step()
    a.stop()
    assert not a.held
    assert b.step()
    assert b.transitions == 1


def test_a_lease_that_is_not_ours_any_more_is_not_given_back() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    a.step()
    b.step()
    clock.now += 16
    b.step()
    a.stop()
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == "b"
