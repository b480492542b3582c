"""The Lease: never two leaders, whatever stops, lags or comes back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
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


def elector(
    server: Server,
    clock: Clock,
    identity: str,
    eligible: Callable[[], bool] = lambda: True,
    on_change: Callable[[bool], None] | None = None,
) -> LeaseElector:
    return LeaseElector(
        server,
        namespace="n",
        name="l",
        identity=identity,
        duration=15.0,
        eligible=eligible,
        on_change=on_change,
        clock=clock,
    )


def test_the_first_leads_and_the_second_follows() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    assert a.step()
    assert not b.step()
    assert (b.holder, a.transitions) == ("a", 0)


def test_a_paused_leader_does_not_hold_the_lease_when_it_resumes() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    a.step()
    b.step()
    clock.now += 16.0  # SIGSTOP: `a` does nothing, its clock goes on
    assert b.step()
    assert not a.held
    assert b.transitions == 1
    assert not a.step()


def test_there_are_never_two_leaders_even_with_the_latest_possible_observation() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    for _ in range(400):
        if int(clock.now) % 7:
            a.step()  # renews, with gaps
        b.step()
        assert not (a.held and b.held)
        clock.now += 1.7


def test_without_an_api_server_the_lease_is_held_until_it_expires() -> None:
    server, clock = Server(), Clock()
    a = elector(server, clock, "a")
    a.step()
    server.down = True
    clock.now += 5
    assert a.step()
    clock.now += 8
    assert not a.step(), "12 of 15 seconds are over: another process may be leader soon"


def test_a_conflicting_write_does_not_make_a_leader() -> None:
    server, clock = Server(), Clock()
    a, b, c = (elector(server, clock, name) for name in "abc")
    a.step()
    b.step()
    c.step()
    clock.now += 20
    server.before_write = b.step
    assert not c.step()
    assert b.held


def test_the_lease_is_held_from_the_time_of_the_request() -> None:
    server, clock = Server(), Clock()
    a = elector(server, clock, "a")
    a.step()

    def slow() -> None:
        clock.now += 10

    server.before_write = slow
    a.step()
    assert a.held_for(1.5)
    assert not a.held_for(2.5)


def test_stopping_releases_the_lease() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    a.step()
    b.step()
    a.stop()
    assert not a.held
    assert b.step()
    assert b.transitions == 1


def test_the_lease_of_another_holder_is_not_released() -> None:
    server, clock = Server(), Clock()
    a, b = elector(server, clock, "a"), elector(server, clock, "b")
    a.step()
    b.step()
    clock.now += 16
    b.step()
    a.stop()
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == "b"


def test_an_ineligible_process_does_not_take_the_lease() -> None:
    server, clock, able = Server(), Clock(), [False]
    first = elector(server, clock, "a", lambda: able[0])
    assert not first.step()
    assert server.lease is None
    able[0] = True
    assert first.step()


def test_a_leader_that_becomes_ineligible_writes_nothing_and_lets_the_lease_expire() -> None:
    server, clock, able = Server(), Clock(), [True]
    changes: list[bool] = []
    first = elector(server, clock, "a", lambda: able[0], changes.append)
    other = elector(server, clock, "b")
    assert first.step()
    able[0] = False
    assert not first.step()
    assert not first.held and changes == [True, False]
    assert not other.step(), "a request of the first one may be under way"
    clock.now += 16.0
    assert other.step()
    able[0] = True
    assert not first.step()
