"""Untrusted objects: specs that users write, overwritten statuses, forged pods and Jobs, and nodes with false claims.

The operator rejects or bounds them, and handles correct jobs beside them as usual. No admission policy is
installed in this cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.api.ledger import MAX_HISTORY
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Conflict, Invalid, NotFound
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB, LABEL_REVISION
from rightpool.hardware.vendors.google import GKE_TPU, GKE_TPU_TOPOLOGY
from rightpool.hardware.vendors.nvidia import GFD_COUNT, GFD_PRODUCT
from tests.integration.faults.fleet import (
    A10G,
    A100,
    FREE,
    NODE_LABEL,
    POOLS,
    SIMULATION,
    SLOW,
    Body,
    Tenant,
    new_image,
    nodes,
)
from tests.integration.faults.site import Site
from tests.integration.faults.test_target_pools import condition, here
from tests.integration.faults.test_untrusted_sidecars import moves
from tests.patience import eventually

pytestmark = pytest.mark.cluster


def template(labels: Body | None = None, annotations: Body | None = None, **container: Any) -> Body:
    """A pod template for the simulation."""
    played = {SIMULATION + "workload": "resnet50", SIMULATION + "warm-up": "0s"}
    return {
        "metadata": {"labels": labels or {}, "annotations": {**played, **(annotations or {})}},
        "spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1", **container}]},
    }


def weighing(size: int) -> Body:
    """A template of that many bytes."""
    return template(env=[{"name": f"JUNK_{number}", "value": "x" * 10_000} for number in range(size // 10_000)])


def says(tenant: Tenant, name: str, kind: str, reason: str, *words: str) -> None:
    """Wait for a condition with this reason and these words in its message."""

    def is_published() -> bool:
        found = tenant.condition(name, kind)
        return found.get("reason") == reason and all(word in found["message"] for word in words)

    eventually(is_published, f"{kind} of {name[:20]} says {reason}: {words}")


def started(tenant: Tenant, name: str) -> None:
    """A correct job is placed as usual."""
    eventually(lambda: tenant.settled(name), f"{name} starts")


# --- what users write ------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Body, str]] = {
    "a" * 63: ({}, "metadata.name: Invalid value: must have at most 51 characters"),
    "a" * 253: ({}, "metadata.name: Invalid value: must have at most 51 characters"),
    "обучение": ({}, "metadata.name: Invalid value"),
    "above-etcd": ({"template": weighing(1_600_000)}, "request is too large"),
    "above-http": ({"template": weighing(3_300_000)}, "Request entity too large"),
    "no-window": ({"profiling": {"interval": "1s", "window": "0s"}}, "spec.profiling.window: Invalid value"),
    "long-window": ({"profiling": {"window": "1000000h"}}, "spec.profiling.window: Invalid value"),
    "long-save": ({"checkpoint": {"timeout": "999999h"}}, "spec.checkpoint.timeout: Invalid value"),
}
RUN: dict[str, Body] = {
    "b" * 51: {},
    "large": {"template": weighing(1_000_000)},
    "unicode": {
        "template": template(
            annotations={"example.com/who": "обучение ☃ \u202e"},
            env=[{"name": "WHO", "value": "訓練 🚀 \u0000".replace("\u0000", "")}],
            args=["--name=Ünïcode"],
        )
    },
    "never-idle": {"adaptation": {"cooldown": "0s"}},
    "patient": {
        "adaptation": {"cooldown": "999999h999999h999999h999999h"},
        "checkpoint": {"mode": "Signal", "timeout": "6h"},
        "targets": {"budget": "999999999999.999999999", "maxCostPerHour": "999999999999"},
    },
}
CONDITIONS: dict[str, tuple[Body, str, tuple[str, ...]]] = {
    "label": ({"template": template(labels={"who": "обучение"})}, "InvalidTemplate", ("metadata.labels",)),
    "annotation": (
        {"template": template(annotations={"example.com/junk": "x" * 900_000})},
        "InvalidTemplate",
        ("annotations: Too long",),
    ),
    "less-than-none": (
        {"template": template(resources={"requests": {"cpu": "-1"}})},
        "InvalidTemplate",
        ("cpu", "must be greater than or equal to 0"),
    ),
    "no-quantity": ({"template": template(resources={"limits": {"memory": "a lot"}})}, "InvalidTemplate", ("quantit",)),
    "more-than-all": (
        {"template": template(resources={"requests": {"cpu": "1M"}})},
        "NoFeasiblePool",
        ("Insufficient cpu", "1000000"),
    ),
    "penniless": ({"targets": {"budget": "0"}}, "NoFeasiblePool", ("targets.budget $0 is spent",)),
    "memory": ({"placement": {"memoryPerChip": "7Ei", **here(A100)}}, "NoFeasiblePool", ()),
    "many": (
        {"job": {"chipsPerReplica": 4, "replicas": 10_000}, "elasticity": {"minChips": 40_000, "maxChips": 40_000}},
        "NoFeasiblePool",
        (),
    ),
    "too-large-with-profiler": ({"template": weighing(1_560_000)}, "InvalidTemplate", ("too large to be stored",)),
}


def test_invalid_specs_of_users(site: Site, tenant: Tenant) -> None:
    operator = site.operate()
    for name, (spec, message) in REFUSED.items():
        with pytest.raises(ClusterError) as refused:
            tenant.train(name, **spec)
        assert message in refused.value.message, name
    body = {"metadata": {"name": "noted", "namespace": tenant.namespace, "annotations": {"a/b": "x" * 300_000}}}
    with pytest.raises(Invalid, match="annotations: Too long"):
        tenant.client.create(PROFILED_JOBS, {**body, "spec": tenant_spec()})
    for name, spec in RUN.items():
        tenant.train(name, **{"placement": here(A100), **spec})
    for name, (spec, _, _) in CONDITIONS.items():
        tenant.train(name, **{"placement": here(A100), **spec})
    tenant.train("free", placement=here(A100, FREE))
    tenant.train("honest")
    for name in RUN:
        eventually(lambda name=name: tenant.settled(name), name[:20])  # type: ignore[misc]
        assert len(tenant.uids(name)) == 1
    for name, (_, reason, words) in CONDITIONS.items():
        says(tenant, name, "Placed", reason, *words)
    moves(tenant, "honest")
    eventually(lambda: tenant.outcomes("free") == ["Verified"], "what costs nothing is moved to")
    assert tenant.pool("free") == FREE
    assert operator.alive


def tenant_spec() -> Body:
    return {"workload": {"job": {"template": template()}}}


# --- what is written over a status -----------------------------------------------------------------------------------

FORGED: dict[str, Callable[[Body], object]] = {
    "nan": lambda status: status["cost"].update(spent="NaN"),
    "negative": lambda status: status["cost"].update(spent="-5.00"),
    "phase": lambda status: status.update(migration=migration(status, 1, 2, phase="Teleporting")),
    "backward": lambda status: status.update(migration=migration(status, 1, 1, phase="Draining")),
    "elsewhere": lambda status: status.update(migration=migration(status, 5, 6, phase="Starting")),
    "future": lambda status: status["placement"].update(revision=7),
    "wiped": lambda status: status.clear(),
    "counts": lambda status: status.update(ledgerCount=2**62),
}
AGES_AHEAD = "2999-01-01T00:00:00Z"


def migration(status: Body, source: int, target: int, phase: str) -> Body:
    at = {key: status["placement"][key] for key in ("pool", "chips", "replicas", "workloadHash")}
    return {
        "id": "d-9",
        "action": "Move",
        "phase": phase,
        "startedAt": status["placement"]["createdAt"],
        "phaseStartedAt": status["placement"]["createdAt"],
        "from": {**at, "revision": source},
        "to": {**at, "revision": target, "pool": A10G},
        "reason": "Moving",
    }


def entry(number: int, **fields: str) -> Body:
    at = {"pool": A100, "chips": 1, "replicas": 1}
    fields_of_all = {"id": f"d-{number}", "action": "Move", "outcome": "RolledBack", "from": at, "to": at}
    return {**fields_of_all, "startedAt": AGES_AHEAD, "finishedAt": AGES_AHEAD, **fields}


def forge(tenant: Tenant, name: str, change: Callable[[Body], object]) -> None:
    """Overwrite the status as a client with that permission."""
    while True:
        body = tenant.job(name)
        change(body["status"])
        try:
            tenant.client.request("PUT", PROFILED_JOBS.path(tenant.namespace, name, "status"), body=body)
            return
        except Conflict:
            continue


def alive(tenant: Tenant, name: str) -> set[str]:
    """The pods of all Revisions, by uid, and the Jobs."""
    children = {child["metadata"]["uid"] for child in labelled(tenant, JOBS, name)}
    return children | {pod["metadata"]["uid"] for pod in labelled(tenant, PODS, name)}


def labelled(tenant: Tenant, resource: Any, name: str) -> list[Body]:
    return tenant.client.list_all(resource, tenant.namespace, labels=f"{LABEL_JOB}={name}")


def test_overwritten_status(site: Site, tenant: Tenant) -> None:
    operator = site.operate()
    site.unwatch()
    for name in (*FORGED, "ahead"):
        tenant.train(name, placement=here(A100))
    for name in (*FORGED, "ahead"):
        eventually(lambda name=name: tenant.settled(name) and tenant.status(name).get("cost"), name)  # type: ignore[misc]
    before = {name: alive(tenant, name) for name in (*FORGED, "ahead")}
    spent = tenant.status("nan")["cost"]["spent"]
    for name, change in FORGED.items():
        forge(tenant, name, change)
    forge(tenant, "ahead", lambda status: status.update(history=[entry(number) for number in range(MAX_HISTORY)]))
    tenant.train("honest")
    for name in FORGED:
        says(tenant, name, "Placed", "InvalidStatus", "status")
    started(tenant, "honest")
    for name in (*FORGED, "ahead"):
        assert alive(tenant, name) == before[name], f"{name}: running pods are not changed"
    assert tenant.settled("ahead") and len(tenant.status("ahead")["history"]) == MAX_HISTORY
    assert tenant.status("nan")["cost"]["spent"] == "NaN", "the written status is kept for repair"
    # The remedy in the messages works.
    forge(tenant, "nan", lambda status: status["cost"].update(spent=spent))
    forge(tenant, "elsewhere", lambda status: status.pop("migration"))
    forge(tenant, "future", lambda status: status["placement"].update(revision=1))
    for name in ("nan", "elsewhere", "future"):
        eventually(lambda name=name: tenant.settled(name), f"{name} is mended")  # type: ignore[misc]
        assert alive(tenant, name) == before[name]
    tenant.client.delete(JOBS, "wiped-r1", tenant.namespace, propagation="Background")
    eventually(lambda: tenant.settled("wiped"), "it is started anew")
    eventually(lambda: alive(tenant, "wiped").isdisjoint(before["wiped"]), "and what was there is gone")
    assert operator.alive


# --- forged pods and Jobs --------------------------------------------------------------------------------------------


def forge_pod(tenant: Tenant, name: str, **labels: str) -> None:
    """Create a pod with a Revision's labels that requests a chip."""
    body = template(resources={"limits": {"nvidia.com/gpu": "1"}})
    spec = {
        **body["spec"],
        "nodeSelector": {NODE_LABEL: A100},
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
    }
    about = {"name": name, "namespace": tenant.namespace, "labels": labels}
    tenant.client.create(PODS, {"metadata": {**about, "annotations": body["metadata"]["annotations"]}, "spec": spec})
    eventually(lambda: tenant.client.get(PODS, name, tenant.namespace)["status"].get("phase") == "Running", name)


def complete(tenant: Tenant, of: Body, name: str, revision: str) -> None:
    """Create a completed Job owned by a ProfiledJob."""
    about = of["metadata"]
    owner = {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": about["name"], "uid": about["uid"]}
    labels = {LABEL_JOB: about["name"], LABEL_REVISION: revision}
    body = template(labels=labels)
    metadata = {"name": name, "namespace": tenant.namespace, "labels": labels}
    metadata["ownerReferences"] = [{**owner, "controller": True}]
    spec = {
        "completions": 0,
        "parallelism": 0,
        "template": {**body, "spec": {**body["spec"], "restartPolicy": "Never"}},
    }
    tenant.client.create(JOBS, {"metadata": metadata, "spec": spec})

    def completed() -> bool:
        conditions = tenant.client.get(JOBS, name, tenant.namespace)["status"].get("conditions") or ()
        return any(c["type"] == "Complete" and c["status"] == "True" for c in conditions)

    eventually(completed, f"{name} is complete")


def test_forged_pods_and_jobs_of_a_revision(site: Site, tenant: Tenant) -> None:
    operator = site.operate()
    site.unwatch()
    forge_pod(tenant, "squatter", **{LABEL_JOB: "late", LABEL_REVISION: "3"})
    for name in ("late", "worn", "owned", "named"):
        tenant.train(name, placement=here(A100))
    tenant.train("honest")
    running = ("worn", "owned", "named")
    for name in running:
        eventually(lambda name=name: tenant.settled(name), name)  # type: ignore[misc]
    before = {name: alive(tenant, name) for name in running}
    forge_pod(tenant, "double", **{LABEL_JOB: "worn", LABEL_REVISION: "1"})
    forge_pod(tenant, "mate", **{LABEL_JOB: "named", LABEL_REVISION: "9" * 60})
    for number in ("1", "2"):
        complete(tenant, tenant.job("owned"), f"forged-{number}", number)
    says(tenant, "late", "Placed", "ForeignPod", "pod squatter has the labels of r3", LABEL_REVISION)
    says(tenant, "worn", "Migrating", "ForeignPod", "pod double has the labels of r1")
    started(tenant, "honest")
    for name in ("owned", "named"):
        tenant.edit(name, new_image)
        eventually(lambda name=name: tenant.outcomes(name) == ["CarriedOut"], f"{name} goes on")  # type: ignore[misc]
        assert tenant.status(name)["placement"]["revision"] == 2
    tenant.edit("worn", new_image)
    eventually(lambda: tenant.status("worn")["observedGeneration"] == 2, "the edit is seen")
    assert before["worn"] < alive(tenant, "worn"), "no pod is ended for a start that failed"
    for pod in ("squatter", "double"):
        tenant.client.delete(PODS, pod, tenant.namespace, propagation="Background")
    eventually(lambda: tenant.settled("late"), "late starts")
    eventually(lambda: tenant.outcomes("worn") == ["CarriedOut"], "worn goes on")
    assert {child["metadata"]["name"] for child in labelled(tenant, JOBS, "owned")} > {"forged-1", "forged-2"}
    assert operator.alive


# --- what nodes claim ------------------------------------------------------------------------------------------------

UNTRUSTED: dict[str, tuple[Body, Body]] = {
    "millions": ({NODE_LABEL: A10G}, {"nvidia.com/gpu": "1M"}),
    "product": ({GFD_PRODUCT: "NVIDIA-A100-SXM4-80GB", GFD_COUNT: "999999"}, {"nvidia.com/gpu": "8"}),
    "topology": ({GKE_TPU: "tpu-v5-lite-podslice", GKE_TPU_TOPOLOGY: "999x999x999x999"}, {"google.com/tpu": "4"}),
    "both": ({NODE_LABEL: A10G, "faults.rightpool.dev/rival": "yes"}, {"nvidia.com/gpu": "4"}),
    "nothing": ({NODE_LABEL: A10G}, {"nvidia.com/gpu": "0"}),
}
RIVAL = "faults-rival"


@contextmanager
def untrusted_nodes(client: ClusterClient) -> Iterator[None]:
    """Nodes with false claims, and a pool that selects the same node as another pool."""
    (honest, *_) = nodes()
    client.create(
        ACCELERATOR_POOLS,
        {"metadata": {"name": RIVAL}, "spec": {**POOLS[A10G], "nodeSelector": {"faults.rightpool.dev/rival": "yes"}}},
    )
    try:
        for name, (labels, chips) in UNTRUSTED.items():
            about = {
                **honest["metadata"],
                "name": f"untrusted-{name}",
                "labels": {"kubernetes.io/hostname": name, **labels},
            }
            room = {**honest["status"]["capacity"], "nvidia.com/gpu": "0", **chips}
            client.create(NODES, {**honest, "metadata": about, "status": {"capacity": room, "allocatable": room}})
        below = {**honest, "metadata": {**honest["metadata"], "name": "untrusted-below"}}
        with pytest.raises(Invalid, match="must be greater than or equal to 0"):
            client.create(NODES, {**below, "status": {"allocatable": {"nvidia.com/gpu": "-8"}}})
        yield
    finally:
        for name in UNTRUSTED:
            try:
                client.delete(NODES, f"untrusted-{name}", propagation="Background")
            except NotFound:
                pass
        client.delete(ACCELERATOR_POOLS, RIVAL, propagation="Background")


def relabel(client: ClusterClient, node: str, pool: str) -> None:
    while True:
        body = client.get(NODES, node)
        body["metadata"]["labels"][NODE_LABEL] = pool
        try:
            client.replace(NODES, body)
            return
        except Conflict:
            continue


def counted(client: ClusterClient, pool: str) -> tuple[int, int]:
    status = client.get(ACCELERATOR_POOLS, pool).get("status") or {}
    return status.get("nodes", 0), (status.get("chips") or {}).get("total", 0)


def test_false_claims_of_nodes(site: Site, tenant: Tenant, client: ClusterClient) -> None:
    operator = site.operate()
    tenant.train("stays", placement=here(A10G))
    eventually(lambda: tenant.settled("stays"))
    eventually(lambda: counted(client, A10G) == (16, 64) and counted(client, SLOW)[0] == 16, "all is counted")
    others = {pool: counted(client, pool) for pool in POOLS if pool != A10G}
    before, home = tenant.uids("stays"), tenant.pods("stays")[0]["spec"]["nodeName"]
    with untrusted_nodes(client):
        tenant.train("honest")
        started(tenant, "honest")
        # A node that offers a million chips counts with four; a node that two pools select belongs to one.
        eventually(lambda: counted(client, A10G) == (18, 72), "liars count for what they can have")
        eventually(lambda: "offer more than 4 chips" in condition(client, A10G, "Ready").get("message", ""))
        eventually(lambda: condition(client, RIVAL, "Ready")["reason"] == "NoNodes")
        assert "faults-a10g and faults-rival select the same nodes" in condition(client, RIVAL, "Ready")["message"]
        assert {pool: counted(client, pool) for pool in others} == others
        relabel(client, home, SLOW)
        try:
            eventually(lambda: counted(client, SLOW)[0] == 17, "the node is another pool's")
            assert tenant.uids("stays") == before and tenant.pool("stays") == A10G
            assert tenant.settled("stays")
        finally:
            relabel(client, home, A10G)
    eventually(lambda: counted(client, A10G) == (16, 64), "all is as it was")
    assert tenant.uids("stays") == before
    assert operator.alive
