"""A server moves to another pool under requests: real pods, an operator that is killed in each phase, and no request
that fails."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.kubectl import Kubectl
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, SERVICES
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Fleet
from tests.integration.runtime.open_loop import OpenLoop
from tests.integration.runtime.test_real_failures import pool
from tests.integration.runtime.test_served_requests import image, template
from tests.integration.runtime.test_servers import NAME, EndpointWatch, answered_by, create, deployment
from tests.patience import eventually

__all__ = ["image", "pool"]

pytestmark = pytest.mark.cluster

RATE = 30.0
RESOURCE = "rightpool.dev/other-chip"


@pytest.fixture
def other(client: ClusterClient, pool: str, kubeconfig: Path) -> Iterator[str]:
    """Another pool, whose chips are another resource of the same node."""
    capacity = f"/status/capacity/{RESOURCE.replace('/', '~1')}"
    patch = ("patch", "node", "node-0", "--subresource=status", "--type=json")
    kubectl = Kubectl(kubeconfig)
    kubectl(*patch, f'--patch=[{{"op": "add", "path": "{capacity}", "value": "2"}}]')
    name = f"other-{uuid.uuid4().hex[:8]}"
    spec = client.get(ACCELERATOR_POOLS, pool)["spec"] | {"resourceName": RESOURCE}
    client.create(ACCELERATOR_POOLS, {"metadata": {"name": name}, "spec": spec})
    yield name
    client.delete(ACCELERATOR_POOLS, name)
    kubectl(*patch, f'--patch=[{{"op": "remove", "path": "{capacity}"}}]')


def phase(fleet: Fleet) -> str | None:
    found: str | None = (fleet.status(NAME).get("migration") or {}).get("phase")
    return found


def test_a_move_loses_no_request_though_its_operator_is_killed(
    start: Start, fleet: Fleet, pool: str, other: str, image: str
) -> None:
    operator = start()
    create(
        fleet,
        chipsPerReplica=1,
        replicas={"min": 1},
        drain={"quiet": "2s", "timeout": "5s"},
        template=template(image),
        spec={
            "placement": {"pools": {"allow": [pool]}},
            "profiling": {"mode": "Off", "interval": "1s", "window": "3s"},
        },
    )
    eventually(lambda: answered_by(fleet, "r1", 1), "it answers")
    address = fleet.client.get(SERVICES, NAME, fleet.namespace)["spec"]["clusterIP"]
    watch = EndpointWatch(fleet)
    with OpenLoop(RATE, lambda number: f"http://{address}:8000/predict?seconds=0.01") as traffic:
        fleet.edit(NAME, lambda spec: spec["placement"]["pools"].update(allow=[other]))
        for step, identity in (("Surging", "b"), ("Sharing", "c"), ("Holding", "d")):
            eventually(lambda step=step: phase(fleet) == step, step, longest=0.2)  # type: ignore[misc]
            operator.kill()
            operator = start(identity)
        eventually(lambda: deployment(fleet, f"{NAME}-r1") is None, "what was left is ended")
        eventually(lambda: answered_by(fleet, "r2", 1), "the target answers alone")
    assert set(traffic.answered) == {200}, traffic.answered
    entry = fleet.status(NAME)["history"][-1]
    assert (entry["action"], entry["outcome"]) == ("Move", "Verified")
    # Each new operator reads the pages anew, so that too few requests may be left to tell.
    assert entry["reason"] in ("LatencyHeld", "TooFewRequests")
    assert watch.stop() >= 1
    assert fleet.revisions_alive(NAME) == {"2"}
