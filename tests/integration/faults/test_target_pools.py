"""Targets on which a job does not start, and a checkpoint that never completes.

An operator for each test; jobs of one test run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import ACCELERATOR_POOLS, PODS
from rightpool.contract import LABEL_JOB, LABEL_POOL
from tests.chaos.stream import StreamEvent
from tests.integration.faults.conftest import NAMESPACES
from tests.integration.faults.fleet import A10G, A100, DEAD, FULL, NODE_LABEL, SIMULATION, TYPO, Body, Tenant, nodes
from tests.integration.faults.site import Site
from tests.patience import eventually

pytestmark = pytest.mark.cluster


def here(*pools: str) -> Body:
    return {"pools": {"allow": list(pools)}}


# --- a running job ---------------------------------------------------------------------------------------------------


def test_a_checkpoint_that_never_completes(site: Site, tenant: Tenant) -> None:
    site.operate()
    tenant.train("bert", checkpoint={"mode": "Signal", "timeout": "4s"}, play={"checkpoint-delay": "never"})
    eventually(lambda: tenant.settled("bert"))
    pods = tenant.uids("bert")
    eventually(lambda: tenant.outcomes("bert") == ["Held"])
    assert tenant.status("bert")["history"][-1]["reason"] == "CheckpointTimeout"
    assert tenant.uids("bert") == pods, "the pods are the same"


def condition(client: ClusterClient, pool: str, kind: str) -> Body:
    conditions = client.get(ACCELERATOR_POOLS, pool).get("status", {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind), {"reason": None})


# --- the target ------------------------------------------------------------------------------------------------------


def test_targets_on_which_a_job_does_not_start(
    site: Site, tenant: Tenant, client: ClusterClient, impatient: Callable[[], None]
) -> None:
    """The pool is full, an image can't be pulled, no pod starts, or the accelerator is unknown."""
    site.operate()
    fail_image_pulls(site, "image")
    with filled(client, site.namespace + "-others"):
        targets = {
            "room": (FULL, "Insufficient nvidia.com/gpu"),
            "image": (A10G, "ImagePullBackOff"),
            "dead": (DEAD, "Too many pods"),
        }
        for name, (target, _) in targets.items():
            # Its pods must not run before they are told whether they can.
            tenant.train(name, placement=here(A100, target), play={"start-delay": "24h"} if name == "image" else None)
        tenant.train("typo", placement=here(TYPO))
        for name, (target, words) in targets.items():
            eventually(
                lambda name=name, target=target, words=words: held_up(tenant, name, target, words),  # type: ignore[misc]
                f"the operator knows what holds up {name}",
            )
        impatient()
        for name, (_, words) in targets.items():
            eventually(lambda name=name: tenant.outcomes(name) and tenant.settled(name), name)  # type: ignore[misc]
            entry = tenant.status(name)["history"][-1]
            assert (entry["outcome"], entry["reason"]) == ("RolledBack", "StartDeadlineExceeded")
            assert words in entry["message"]
            assert (tenant.pool(name), tenant.status(name)["placement"]["revision"]) == (A100, 3)
            tenant.only_child(name)
    placed = tenant.condition("typo", "Placed")
    assert (placed["status"], placed["reason"]) == ("False", "NoFeasiblePool")
    assert condition(client, TYPO, "Ready")["reason"] == "AcceleratorUnknown"
    assert tenant.children("typo") == set()


def held_up(tenant: Tenant, name: str, target: str, words: str) -> bool:
    """Whether it is to start there, and its condition says why it does not."""
    started = tenant.pool(name) == target and tenant.phase(name) == "Starting"
    return started and words in tenant.condition(name, "Placed").get("message", "")


def fail_image_pulls(site: Site, job: str) -> None:
    """The image of a job's pods can't be pulled on the A10G; elsewhere they start."""

    def on_event(event: StreamEvent) -> None:
        about = event.body["metadata"]
        labels = about.get("labels") or {}
        if event.resource is not PODS or labels.get(LABEL_JOB) != job or event.kind == "DELETED":
            return
        there = labels.get(LABEL_POOL) == A10G
        key, value = ("image-pull-error", "no such image") if there else ("start-delay", "200ms")
        if about["annotations"].get(SIMULATION + key) == value:
            return
        about["annotations"][SIMULATION + key] = value
        try:
            site.tenant.client.replace(PODS, event.body)
        except ClusterError:
            pass  # it has changed meanwhile, which will be heard too

    site.namespace_watch.listen(site.namespace, on_event)


@contextmanager
def filled(client: ClusterClient, namespace: str) -> Iterator[None]:
    """Every chip of a pool is taken by other pods."""
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

    eventually(taken, f"{FULL} is full")
    try:
        yield
    finally:
        client.delete(NAMESPACES, namespace, propagation="Background")
