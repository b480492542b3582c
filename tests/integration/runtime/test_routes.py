"""A server behind an HTTPRoute: definitions of the Gateway API's own module, and a move whose shares Envoy keeps by the
weights that Contour hands it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from demo.open_loop import OpenLoop
from devcluster import build, gateway
from devcluster.progress import Progress
from devcluster.spec import TEST
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import HTTP_ROUTES, SERVICES
from tests.integration.runtime.conftest import CRDS, Start
from tests.integration.runtime.harness import Body, Fleet
from tests.integration.runtime.test_real_failures import pool
from tests.integration.runtime.test_served_requests import answers, image, page, template
from tests.integration.runtime.test_server_moves import other, phase
from tests.integration.runtime.test_servers import NAME, answered_by, create, deployment, endpoints
from tests.patience import eventually

__all__ = ["image", "other", "pool"]

pytestmark = pytest.mark.cluster

NEXT, RATE = f"{NAME}-next", 60.0
TARGET = {"latency": {"p99": "80ms"}}


def route(fleet: Fleet, *weights: int) -> Body:
    """A route of a user, with so much for the Service, the one beside it and one of his own."""
    named = zip((NAME, NEXT, "own")[: len(weights)], weights, strict=True)
    refs = [{"name": to, "port": 8000, "weight": weight} for to, weight in named]
    parent = {"name": gateway.GATEWAY, "namespace": gateway.NAMESPACE}
    path = {"type": "PathPrefix", "value": f"/{fleet.namespace}"}
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    filters = [{"type": "URLRewrite", "urlRewrite": rewrite}]
    rule = {"backendRefs": refs, "matches": [{"path": path}], "filters": filters}
    about = {"name": "edge", "namespace": fleet.namespace}
    return {"metadata": about, "spec": {"parentRefs": [parent], "rules": [rule]}}


def weights(fleet: Fleet) -> list[int]:
    [rule] = fleet.client.get(HTTP_ROUTES, "edge", fleet.namespace)["spec"]["rules"]
    return [ref["weight"] for ref in rule["backendRefs"]]


@pytest.fixture
def definition(client: ClusterClient) -> Iterator[Callable[[], None]]:
    """Installs the one of HTTPRoutes, which is not there before."""
    if shutil.which("go") is None:
        pytest.skip("the definitions are those of a Go module, and Go is not installed")
    [found] = (one for one in gateway.definitions() if one["spec"]["names"]["plural"] == HTTP_ROUTES.plural)
    name = found["metadata"]["name"]

    def gone() -> bool:
        try:
            client.delete(CRDS, name)
        except NotFound:
            return True
        return False

    def install() -> None:
        client.apply(CRDS, {key: found[key] for key in ("metadata", "spec")})
        eventually(lambda: "Established" in str(client.get(CRDS, name).get("status")))

    eventually(gone)
    yield install
    install()


def test_what_keeps_weights_from_being_written_is_said_and_nothing_else_is_touched(
    start: Start, fleet: Fleet, definition: Callable[[], None]
) -> None:
    create(fleet, spec={"targets": TARGET}, traffic={"httpRoute": {"name": "edge"}})

    def says(identity: str, text: str) -> None:
        """Whoever comes looks at the route."""
        operator = start(identity)
        eventually(
            lambda: text in fleet.condition(NAME, "Migrating").get("message", ""),
            lambda: str(fleet.condition(NAME, "Migrating")),
        )
        operator.terminate()

    says("a", "HTTPRoutes of gateway.networking.k8s.io/v1 are not installed")
    assert fleet.condition(NAME, "Migrating")["reason"] == "RouteUnusable"
    definition()
    says("b", "HTTPRoute edge is not there: create it")
    fleet.client.create(HTTP_ROUTES, route(fleet, 100))
    says("c", f"has backendRefs to both Services {NAME} and {NEXT}")
    edit_route(fleet, 1, 0)
    says("d", "add up to 1, too few for 5%")
    edit_route(fleet, 120, 80, 50)
    before = fleet.client.get(HTTP_ROUTES, "edge", fleet.namespace)
    start("e")
    eventually(lambda: weights(fleet) == [200, 0, 50], "all come to the Service that stays")
    eventually(lambda: fleet.condition(NAME, "Migrating").get("reason") != "RouteUnusable")
    after = fleet.client.get(HTTP_ROUTES, "edge", fleet.namespace)
    for ref, weight in zip(before["spec"]["rules"][0]["backendRefs"], (200, 0, 50), strict=True):
        ref["weight"] = weight
    assert after["spec"] == before["spec"], "nothing but weights"
    assert endpoints(fleet) == endpoints(fleet, NEXT) != set(), "a route that names both is whole"
    time.sleep(3.0)
    assert fleet.client.get(HTTP_ROUTES, "edge", fleet.namespace)["metadata"] == after["metadata"], "and once"


def edit_route(fleet: Fleet, *weights: int) -> None:
    stored = fleet.client.get(HTTP_ROUTES, "edge", fleet.namespace)
    fleet.client.replace(HTTP_ROUTES, stored | {"spec": route(fleet, *weights)["spec"]})


@pytest.fixture
def entry(pool: str) -> str:
    """URL of a Gateway of the cluster."""
    if build.missing([build.CONTOUR]):
        pytest.skip("Contour is not built: `make gateway` builds it and runs these tests")
    return gateway.up(TEST, Progress(quiet=True))


def behind(start: Start, fleet: Fleet, pool: str, image: str, entry: str, **spec: Any) -> str:
    """A server of one replica that answers behind the Gateway; its URL."""
    fleet.client.create(HTTP_ROUTES, route(fleet, 100, 0))
    create(
        fleet,
        chipsPerReplica=1,
        replicas={"min": 1},
        drain={"quiet": "2s", "timeout": "5s"},
        traffic={"httpRoute": {"name": "edge"}},
        template=template(image),
        spec={
            "placement": {"pools": {"allow": [pool]}},
            "profiling": {"mode": "Off", "interval": "1s", "window": "3s"},
        },
    )
    eventually(lambda: answered_by(fleet, "r1", 1), "it answers")
    url = f"{entry}/{fleet.namespace}/predict?seconds=0.01"
    eventually(lambda: answers(url), "the Gateway sends what comes in to its pods")
    return url


def taken(fleet: Fleet, revision: int) -> int:
    """Requests that pods of a Revision have counted, without probes."""
    pods = [pod for pod in fleet.pods(NAME) if pod["metadata"]["labels"]["rightpool.dev/revision"] == str(revision)]
    of = 'bentoml_service_request_total{endpoint="/predict"'
    lines = [line for pod in pods for line in page(pod).splitlines() if line.startswith(of)]
    return sum(int(line.rpartition(" ")[2]) for line in lines)


def test_one_replica_a_side_shares_by_weights_and_no_request_fails_though_the_operator_is_killed(
    start: Start, fleet: Fleet, pool: str, other: str, image: str, entry: str
) -> None:
    operator = start()
    url = behind(start, fleet, pool, image, entry)
    steps: dict[int, float] = {}
    with OpenLoop(RATE, lambda number: url) as traffic:
        fleet.edit(NAME, lambda spec: spec["placement"]["pools"].update(allow=[other]))
        for step, identity in ((5, "b"), (25, "c"), (50, "d"), (100, "e")):
            eventually(lambda step=step: weights(fleet) == [100 - step, step], f"{step}%", longest=0.2)  # type: ignore[misc]
            operator.kill()
            old, new = taken(fleet, 1), taken(fleet, 2)
            operator = start(identity)
            time.sleep(5.0)
            more_old, more_new = taken(fleet, 1) - old, taken(fleet, 2) - new
            steps[step] = more_new / (more_old + more_new)
        assert phase(fleet) == "Holding"
        eventually(lambda: deployment(fleet, f"{NAME}-r1") is None, "what was left is ended")
        eventually(lambda: answered_by(fleet, "r2", 1) and weights(fleet) == [100, 0], "the Service that stays answers")
        time.sleep(3.0)
    print(f"{sum(traffic.answered.values())} requests, shares {steps}")
    assert set(traffic.answered) == {200}, traffic.answered
    assert all(abs(share - step / 100.0) < 0.08 for step, share in steps.items()), steps
    last = fleet.status(NAME)["history"][-1]
    assert (last["action"], last["outcome"]) == ("Move", "Verified")
    assert fleet.revisions_alive(NAME) == {"2"}


def test_all_come_back_by_one_write_of_weights(
    start: Start, fleet: Fleet, pool: str, other: str, image: str, entry: str
) -> None:
    start()
    url = behind(start, fleet, pool, image, entry)
    with OpenLoop(RATE, lambda number: url) as traffic:
        fleet.edit(NAME, lambda spec: spec["placement"]["pools"].update(allow=[other]))
        eventually(lambda: weights(fleet) == [95, 5], "requests are shared", longest=0.2)

        def edit(spec: Body) -> None:
            spec["placement"]["pools"].update(allow=[pool])
            server = spec["workload"]["server"]["template"]["spec"]["containers"][0]
            server["env"] = [{"name": "EDITED", "value": "yes"}]

        fleet.edit(NAME, edit)
        eventually(lambda: weights(fleet) == [100, 0], "all come back")
        eventually(lambda: deployment(fleet, f"{NAME}-r2") is None, "the target is ended")
        eventually(lambda: answered_by(fleet, "r3", 1), "and the edit is carried out where it was")
        eventually(lambda: deployment(fleet, f"{NAME}-r1") is None)
        time.sleep(3.0)
    assert set(traffic.answered) == {200}, traffic.answered
    service = fleet.client.get(SERVICES, NEXT, fleet.namespace)
    assert service["spec"]["selector"]["rightpool.dev/revision"] == "3"
