"""What can be wrong with a place: it goes away, takes nobody, is not known or has no price; or a job can't leave it.

One operator looks after a job for each, side by side, and what is wrong with one is no other's trouble.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from chaos.stream import Seen
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import ACCELERATOR_POOLS, PODS
from rightpool.contract import LABEL_JOB, LABEL_POOL
from tests.integration.faults.conftest import NAMESPACES
from tests.integration.faults.fleet import (
    A10G,
    A100,
    DEAD,
    FULL,
    NODE_LABEL,
    SIMULATION,
    TYPO,
    Body,
    Tenant,
    nodes,
)
from tests.integration.faults.site import Site
from tests.integration.runtime.harness import eventually

pytestmark = pytest.mark.cluster

SECONDS = 400.0


def here(*pools: str) -> Body:
    return {"pools": {"allow": list(pools)}}


# --- while it runs ---------------------------------------------------------------------------------------------------


def test_a_save_that_never_comes(site: Site, tenant: Tenant) -> None:
    site.operate()
    tenant.train("bert", checkpoint={"mode": "Signal", "timeout": "4s"}, play={"checkpoint-delay": "never"})
    eventually(lambda: tenant.settled("bert"), SECONDS)
    pods = tenant.uids("bert")
    eventually(lambda: tenant.outcomes("bert") == ["Held"], SECONDS)
    assert tenant.status("bert")["history"][-1]["reason"] == "CheckpointTimeout"
    assert tenant.uids("bert") == pods, "the job runs on, untouched"


def condition(client: ClusterClient, pool: str, kind: str) -> Body:
    conditions = client.get(ACCELERATOR_POOLS, pool).get("status", {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind), {"reason": None})


# --- where it is to go -----------------------------------------------------------------------------------------------


def test_targets_on_which_a_job_does_not_come_up(
    site: Site, tenant: Tenant, client: ClusterClient, impatient: Callable[[], None]
) -> None:
    """Others have taken the room, an image can't be pulled, nothing starts there at all; a pool that nobody knows."""
    site.operate()
    ruin_images(site, "image")
    with filled(client, site.namespace + "-others"):
        targets = {"room": FULL, "image": A10G, "dead": DEAD}
        for name, target in targets.items():
            tenant.train(name, placement=here(A100, target), play={"start-delay": "8s"} if name == "image" else None)
        tenant.train("typo", placement=here(TYPO))
        for name, target in targets.items():
            eventually(lambda name=name, target=target: on_the_way(tenant, name, target), SECONDS, name)  # type: ignore[misc]
        impatient()
        for name, said in (("room", "Insufficient nvidia.com/gpu"), ("image", "ImagePullBackOff"), ("dead", "pods")):
            eventually(lambda name=name: tenant.outcomes(name) and tenant.settled(name), SECONDS, name)  # type: ignore[misc]
            entry = tenant.status(name)["history"][-1]
            assert (entry["outcome"], entry["reason"]) == ("RolledBack", "StartDeadlineExceeded")
            assert said in entry["message"]
            assert (tenant.pool(name), tenant.status(name)["placement"]["revision"]) == (A100, 3)
            tenant.only_child(name)
    placed = tenant.condition("typo", "Placed")
    assert (placed["status"], placed["reason"]) == ("False", "NoFeasiblePool")
    assert condition(client, TYPO, "Ready")["reason"] == "AcceleratorUnknown"
    assert tenant.children("typo") == set()


def on_the_way(tenant: Tenant, name: str, target: str) -> bool:
    return tenant.pool(name) == target and tenant.phase(name) == "Starting" and bool(tenant.pods(name))


def ruin_images(site: Site, job: str) -> None:
    """The pods of a job never start on the A10G: their image can't be had there."""

    def hear(event: Seen) -> None:
        about = event.body["metadata"]
        labels = about.get("labels") or {}
        if event.resource is not PODS or (labels.get(LABEL_JOB), labels.get(LABEL_POOL)) != (job, A10G):
            return
        key = SIMULATION + "image-pull-error"
        if key in about["annotations"] or event.kind == "DELETED":
            return
        about["annotations"][key] = "no such image"
        try:
            site.tenant.client.replace(PODS, event.body)
        except ClusterError:
            pass  # it has changed meanwhile, which will be heard too

    site.watchman.listen(site.namespace, hear)


@contextmanager
def filled(client: ClusterClient, namespace: str) -> Iterator[None]:
    """Every chip of a pool is taken."""
    client.create(NAMESPACES, {"metadata": {"name": namespace}})
    own = [node for node in nodes() if node["metadata"]["labels"][NODE_LABEL] == FULL]
    for node in own:
        limits = {"limits": {"nvidia.com/gpu": node["status"]["capacity"]["nvidia.com/gpu"]}}
        spec = {
            "containers": [{"name": "other", "image": "example.com/other:1", "resources": limits}],
            "nodeSelector": {"kubernetes.io/hostname": node["metadata"]["name"]},
            "tolerations": [{"operator": "Exists"}],
        }
        client.create(PODS, {"metadata": {"name": node["metadata"]["name"], "namespace": namespace}, "spec": spec})

    def taken() -> bool:
        return all(pod["status"].get("phase") == "Running" for pod in client.list_all(PODS, namespace))

    eventually(taken, SECONDS, f"{FULL} is full")
    try:
        yield
    finally:
        client.delete(NAMESPACES, namespace, propagation="Background")
