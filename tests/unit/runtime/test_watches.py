"""The state of watches, derived from their connections."""

from __future__ import annotations

import pytest

from rightpool.cluster.resources import NODES, PODS
from rightpool.runtime.observe.watches import (
    ABANDONED_SECONDS,
    GRACE_SECONDS,
    STREAM_SECONDS,
    Watches,
)


class Connection:
    closed = False


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def watches(time: Time) -> Watches:
    return Watches((PODS, NODES), ("a", "b"), clock=time)


PATHS = ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods", "/api/v1/nodes")


def accept(watches: Watches, path: str) -> Connection:
    connection = Connection()
    watches.asked(path)
    watches.answered(path, connection)
    return connection


def test_a_watch_is_missing_until_the_server_has_accepted_it(watches: Watches) -> None:
    assert watches.missing() == ("pods in a", "pods in b", "nodes")
    watches.asked(PATHS[0])
    watches.answered(PATHS[0], None)  # a list, or a refusal
    assert len(watches.missing()) == 3
    for path in PATHS:
        accept(watches, path)
    assert watches.missing() == ()


def test_the_servers_error_is_in_the_message_about_a_missing_watch(watches: Watches) -> None:
    accept(watches, PATHS[0])
    watches.asked(PATHS[2])
    watches.answered(PATHS[2], None, status=403)
    assert watches.problem() == "not watched: pods in b, nodes (HTTP 403)"
    accept(watches, PATHS[1])
    accept(watches, PATHS[2])
    assert watches.problem() is None


def test_a_watch_that_is_reopened_at_once_is_not_missing(watches: Watches, time: Time) -> None:
    connections = [accept(watches, path) for path in PATHS]
    time.now = 300.0
    assert watches.missing() == ()
    connections[2].closed = True
    time.now += GRACE_SECONDS - 1
    assert watches.missing() == ()
    accept(watches, PATHS[2])
    time.now += 100.0
    assert watches.missing() == ()


def test_a_watch_that_stays_closed_is_missing(watches: Watches, time: Time) -> None:
    connections = [accept(watches, path) for path in PATHS]
    connections[0].closed = True
    time.now = GRACE_SECONDS + 1
    assert watches.missing() == ("pods in a",)


def test_a_connection_older_than_any_watch_is_not_open(watches: Watches, time: Time) -> None:
    for path in PATHS:
        accept(watches, path)
    time.now = STREAM_SECONDS
    assert watches.missing() == ()
    time.now += GRACE_SECONDS + 1
    assert len(watches.missing()) == 3


def test_no_watch_is_abandoned_before_the_first_request(watches: Watches, time: Time) -> None:
    time.now = 1000.0
    assert watches.abandoned() is None
    watches.begin()
    assert watches.abandoned() is None


def test_a_watch_that_is_not_requested_is_abandoned(watches: Watches, time: Time) -> None:
    watches.begin()
    accept(watches, PATHS[0])
    accept(watches, PATHS[2])
    time.now = ABANDONED_SECONDS - 1
    assert watches.abandoned() is None
    time.now += 2
    assert watches.abandoned() == f"nothing has asked for a watch of pods in b for {ABANDONED_SECONDS:.0f} s"


@pytest.mark.parametrize("path", [PATHS[1], "/apis", "/api/v1"])
def test_a_watch_that_is_requested_again_is_not_abandoned(watches: Watches, time: Time, path: str) -> None:
    """Discovery comes before the watches: as long as it fails, none of them is asked for."""
    watches.begin()
    accept(watches, PATHS[0])
    accept(watches, PATHS[2])
    for _ in range(20):
        time.now += ABANDONED_SECONDS - 1
        watches.asked(path)
        watches.answered(path, None)
    assert watches.abandoned() is None
    assert watches.missing() != ()


def test_a_watch_with_a_slow_response_is_not_abandoned(watches: Watches, time: Time) -> None:
    watches.begin()
    for path in PATHS:
        watches.asked(path)
    time.now = ABANDONED_SECONDS + 20
    assert watches.abandoned() is None
    for path in PATHS:
        watches.answered(path, None)
    time.now += ABANDONED_SECONDS + 1
    assert watches.abandoned() is not None


def test_a_watch_is_not_abandoned_during_retry_after(watches: Watches, time: Time) -> None:
    watches.begin()
    for path in PATHS:
        watches.asked(path)
        watches.answered(path, None, pause=120.0)
    time.now = 120.0 + ABANDONED_SECONDS - 1
    assert watches.abandoned() is None
    time.now += 2
    assert watches.abandoned() is not None


def test_a_lost_watch_is_not_abandoned_immediately(watches: Watches, time: Time) -> None:
    watches.begin()
    connections = [accept(watches, path) for path in PATHS]
    time.now = 290.0
    assert watches.missing() == ()
    for connection in connections:
        connection.closed = True
    time.now = 290.0 + GRACE_SECONDS + 1
    assert len(watches.missing()) == 3
    assert watches.abandoned() is None
    time.now += ABANDONED_SECONDS + 1
    assert watches.abandoned() is not None
