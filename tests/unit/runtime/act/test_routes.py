"""Services and weights together say where requests go, whatever write an operator dies before."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rightpool.api.kubernetes import Resource
from rightpool.cluster.errors import Forbidden, NotFound, Unavailable
from rightpool.cluster.resources import HTTP_ROUTES, SERVICES
from rightpool.contract import LABEL_REVISION
from rightpool.planning.moves.commands import DirectTraffic
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.services import ChildServices
from rightpool.runtime.observe.store import Store
from tests.unit.planning.test_server_move import moving
from tests.unit.planning.test_weights import routed
from tests.unit.runtime.act.world import Cluster
from tests.unit.workloads.test_route import patched, ref, route

JOB = routed(moving(new=1, old=1))
NAME = JOB.key.name
LEFT, UP = DirectTraffic((1,), 1, 0), DirectTraffic((1,), 2, 0)
SHARED = [DirectTraffic((1,), 2, percent) for percent in (5, 25, 50, 100)]
ARRIVED = DirectTraffic((2,), 2, 0)
FORTH = [LEFT, UP, *SHARED, ARRIVED]
WAYS = [*itertools.pairwise(FORTH), *((step, LEFT) for step in [UP, *SHARED])]


class Api(Cluster):
    """Dies before a write."""

    def __init__(self) -> None:
        super().__init__()
        self.left: float = float("inf")
        self.problem: Exception | None = None

    def _writes(self) -> None:
        if self.left <= 0:
            raise Unavailable("killed")
        self.left -= 1

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Any:
        if self.problem is not None and resource is HTTP_ROUTES:
            raise self.problem
        return super().get(resource, name, namespace)

    def apply(self, resource: Resource, body: Any, **more: Any) -> Any:
        self._writes()
        return super().apply(resource, body, **more)

    def patch(self, resource: Resource, name: str, namespace: str, operations: list[Any]) -> Any:
        self._writes()
        self.writes.append("weights")
        return self.put(resource, patched(self.objects[resource, name], operations))


class Held:
    """A fence that lets everything through."""

    def persisted(self, *_: Any) -> None: ...
    def leader(self) -> None: ...


def operator(api: Api, store: Store | None = None) -> ChildServices:
    api.left = float("inf")
    cluster: Any = api
    fence: Any = Held()
    none: Any = None
    children = Children("profiler:1", b"k" * 32)
    return ChildServices(cluster, fence, store or Store(), children, none, none, lambda: 0.0)


def cluster() -> Api:
    api = Api()
    for manifest in Children("profiler:1", b"k" * 32).fronts(JOB, LEFT):
        api.put(SERVICES, {**manifest, "metadata": {**manifest["metadata"], "uid": "u"}})
    body = route([ref(NAME, 100), ref(f"{NAME}-next", 0), ref("own", 30)])
    api.put(HTTP_ROUTES, {**body, "metadata": {**body["metadata"], "name": "edge"}})
    return api


def shares(api: Api) -> dict[int, int]:
    """Percent of the requests by Revision."""
    found: dict[int, int] = {}
    [rule] = api.objects[HTTP_ROUTES, "edge"]["spec"]["rules"]
    *pair, own = rule["backendRefs"]
    assert own["weight"] == 30
    for one in pair:
        number = int(api.objects[SERVICES, one["name"]]["spec"]["selector"][LABEL_REVISION])
        found[number] = found.get(number, 0) + one["weight"]
    return {number: percent for number, percent in found.items() if percent}


@pytest.mark.parametrize(("before", "after"), WAYS)
@pytest.mark.parametrize("writes", [0, 1, 2])
def test_an_operator_that_dies_between_writes_sends_requests_to_what_is_there(
    before: DirectTraffic, after: DirectTraffic, writes: int
) -> None:
    api = cluster()
    assert operator(api).direct(JOB, before) is (before != LEFT)
    first = operator(api)
    api.left = writes
    try:
        first.direct(JOB, after)
    except Unavailable:
        assert not first.spares(JOB, 3), "nothing is known then"
        assert set(shares(api)) <= before.numbers | after.numbers
        assert sum(shares(api).values()) == 100
    second = operator(api)
    second.direct(JOB, after)
    [stays] = after.revisions
    assert shares(api).get(stays, 0) == (100 if after.beside == stays else 100 - after.percent)
    assert sum(shares(api).values()) == 100
    api.writes.clear()
    assert (operator(api).direct(JOB, after), api.writes) == (False, []), "nothing is written twice"
    for number in {1, 2} - after.numbers:
        assert second.spares(JOB, number)


def test_weights_that_their_user_applies_anew_are_written_again_within_a_minute() -> None:
    api, store = cluster(), Store()
    services = operator(api, store)
    services.direct(JOB, LEFT)
    services.direct(JOB, SHARED[1])
    assert services.directs(JOB, SHARED[1])
    body = api.objects[HTTP_ROUTES, "edge"]
    body["spec"] = route([ref(NAME, 100), ref(f"{NAME}-next", 0), ref("own", 30)])["spec"]
    store.take_news()
    services.look()
    assert JOB.key in store.take_news() and not services.directs(JOB, SHARED[1])
    services.direct(JOB, SHARED[1])
    assert shares(api) == {1: 75, 2: 25}


PROBLEMS = {
    "is not there: create it": NotFound('httproutes "edge" not found', status=404, reason="NotFound"),
    "are not installed": NotFound("404 page not found", status=404),
    "set the chart's httpRoutes.enabled": Forbidden("no", status=403, reason="Forbidden"),
}


@pytest.mark.parametrize("text", PROBLEMS)
def test_a_route_that_can_not_be_used_is_said_and_stops_nothing(text: str) -> None:
    api = cluster()
    services = operator(api)
    api.problem = PROBLEMS[text]
    services.direct(JOB, ARRIVED)
    problem = services.routes.problem(JOB)
    assert problem is not None and text in problem and len(problem) <= 160
    assert services.spares(JOB, 1), "both Services are with what is there"
    api.problem = None
    again = operator(api)
    again.direct(JOB, ARRIVED)
    assert again.routes.problem(JOB) is None


def test_weights_of_a_service_that_is_somebody_elses_are_not_written() -> None:
    api = cluster()
    body = api.objects[SERVICES, f"{NAME}-next"]
    body["metadata"]["ownerReferences"][0]["uid"] = "another"
    api.writes.clear()
    operator(api).direct(JOB, SHARED[0])
    assert api.writes == []
