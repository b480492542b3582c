"""The fleet in known states and its users, on the cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, NotFound
from rightpool.cluster.resources import ACCELERATOR_POOLS, CONFIG_MAPS, NODES, PLACEMENT_POLICIES
from tests.integration.cli.truth import machines
from tests.integration.cli.truth.asking import Asker
from tests.integration.cli.truth.machines import SPECS, Body
from tests.integration.cli.truth.states import KnownFleet, retried
from tests.integration.faults.fleet import SIMULATION_MAP
from tests.integration.runtime.harness import Fleet, OperatorProcess
from tests.patience import eventually

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
POLICY: Body = {"minRunTime": "1s", "maxConcurrentMigrations": 100, "maxMovesPerHour": 1000}


@dataclass(frozen=True)
class Scene:
    """The known fleet, and two users: of the namespace that the operator watches, and of another one."""

    fleet: KnownFleet
    elsewhere: Fleet
    operator: OperatorProcess
    user: Asker
    other: Asker


@contextmanager
def known_scene(kubeconfig: Path, client: ClusterClient, folder: Path) -> Iterator[Scene]:
    """The scene, with an operator that logs into the folder. All of it is deleted in the end."""
    suffix = uuid.uuid4().hex[:8]
    watched, unwatched = f"truth-{suffix}", f"truth-other-{suffix}"
    with ExitStack() as stack:
        for body in machines.nodes():
            made(stack, client, NODES, body)
        for pool in SPECS:
            made(stack, client, ACCELERATOR_POOLS, {"metadata": {"name": pool}, "spec": machines.pool_spec(pool)})
        policy(stack, client)
        faults(stack, client)
        for namespace in (watched, unwatched):
            made(stack, client, NAMESPACES, {"metadata": {"name": namespace}})
        eventually(lambda: ready(client), "the nodes are ready")
        fleet, elsewhere = KnownFleet(client, watched), Fleet(client, unwatched)
        fleet.begin()
        operator = OperatorProcess(kubeconfig, watched, folder, "a")
        stack.callback(operator.end)
        fleet.write_unwatched(elsewhere)
        fleet.settle()
        users = [Asker(kubeconfig, client, namespace, watched) for namespace in (watched, unwatched)]
        yield Scene(fleet, elsewhere, operator, *users)


def made(stack: ExitStack, client: ClusterClient, resource: Resource, body: Body) -> None:
    """Create it, and delete it in the end."""
    name = body["metadata"]["name"]
    try:
        client.create(resource, body)
    except AlreadyExists:  # of an earlier run that was killed
        retried(lambda: client.replace(resource, {**client.get(resource, name), "spec": body["spec"]}))
    stack.callback(client.delete, resource, name, propagation="Background")


def policy(stack: ExitStack, client: ClusterClient) -> None:
    """Moves are not held back. What was there before is there afterwards."""
    try:
        before = client.get(PLACEMENT_POLICIES, "default")["spec"]
    except NotFound:
        made(stack, client, PLACEMENT_POLICIES, {"metadata": {"name": "default"}, "spec": POLICY})
        return

    def put(spec: Body) -> None:
        retried(lambda: client.replace(PLACEMENT_POLICIES, {**client.get(PLACEMENT_POLICIES, "default"), "spec": spec}))

    put(POLICY)
    stack.callback(put, before)


def faults(stack: ExitStack, client: ClusterClient) -> None:
    """How the simulation is to play the pools here; what it plays elsewhere stays."""
    namespace, name = SIMULATION_MAP

    def put(change: Callable[[dict[str, str]], object]) -> None:
        try:
            body = client.get(CONFIG_MAPS, name, namespace)
        except NotFound:
            body = client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": namespace}})
        body["data"] = body.get("data") or {}
        change(body["data"])
        client.replace(CONFIG_MAPS, body)

    retried(lambda: put(lambda data: data.update(machines.FAULTS)))
    stack.callback(retried, lambda: put(lambda data: [data.pop(pool, None) for pool in machines.FAULTS]))


def ready(client: ClusterClient) -> bool:
    found = client.list_all(NODES, labels=machines.NODE_LABEL)
    return len(found) == sum(machines.NODES.values()) and all(
        any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions") or ())
        for node in found
    )
