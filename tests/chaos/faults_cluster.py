"""Faults of the cluster: control plane, nodes, and declared pools."""

from __future__ import annotations

from typing import Any, Final

from devcluster import simulated
from devcluster.api import Api
from devcluster.processes import Identity
from rightpool.cluster.errors import AlreadyExists, NotFound
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES
from tests.chaos.context import Fault, FaultContext, NotApplicable
from tests.chaos.environment import persistently

Body = dict[str, Any]
POOLS: Final = {pool.name: pool for pool in (simulated.A100, simulated.A10G)}


def _killed(component: str, group: str, weight: float) -> Fault:
    """SIGKILL to a component, which is started again at once."""

    def kill(context: FaultContext) -> None:
        context.components.kill(component, _unbroken(context, component))

    return Fault(f"{component}-restarted", group, weight, kill)


def _frozen(component: str, group: str, weight: float, longest: float) -> Fault:
    """SIGSTOP for a while: connections are accepted and not answered."""

    def freeze(context: FaultContext) -> None:
        context.components.freeze(component, _unbroken(context, component), context.rng.uniform(1, longest))

    return Fault(f"{component}-frozen", group, weight, freeze)


def _unbroken(context: FaultContext, component: str) -> Identity:
    """The process of a component, if nothing of the cluster is broken."""
    if context.components.broken:
        raise NotApplicable("the control plane is broken already")
    identity = context.components.process(component)
    if identity is None:
        raise NotApplicable(f"{component} does not run")
    return identity


def _node(context: FaultContext) -> tuple[simulated.Pool, int]:
    pool = POOLS[context.rng.choice(sorted(POOLS))]
    return pool, context.rng.randrange(10)


def node_deleted(context: FaultContext) -> None:
    """A node is deleted, with its pods, and created again later."""
    pool, index = _node(context)
    name = pool.node_name(index)
    context.reserve(f"node {name}")

    def bring_back() -> None:
        body = pool.node(index)
        try:
            context.client.create(NODES, {key: body[key] for key in ("metadata", "spec", "status")})
        except AlreadyExists:
            pass
        context.reserved.discard(f"node {name}")

    context.repair_later(context.rng.uniform(3, 10), bring_back)
    context.client.delete(NODES, name)


def _cordon(context: FaultContext, names: list[str], closed: bool) -> None:
    def put(name: str) -> None:
        node = context.client.get(NODES, name)
        node["spec"]["unschedulable"] = closed
        context.client.replace(NODES, node)

    def cordon(name: str) -> None:
        try:
            persistently(lambda: put(name))
        except NotFound:
            pass

    Api.in_parallel(cordon, names)


def pool_full(context: FaultContext) -> None:
    """All nodes of a pool are cordoned, possibly for longer than the start deadline."""
    pool = POOLS[context.rng.choice(sorted(POOLS))]
    context.reserve(f"room {pool.name}")

    def cordon(closed: bool) -> None:
        here = [str(node["metadata"]["name"]) for node in context.client.list_all(NODES) if _of(node, pool)]
        _cordon(context, here, closed)

    def open_again() -> None:
        cordon(False)
        context.reserved.discard(f"room {pool.name}")

    context.repair_later(context.rng.uniform(5, 20), open_again)
    cordon(True)


def _of(node: Body, pool: simulated.Pool) -> bool:
    return str(node["metadata"]["name"]).startswith(pool.name + "-")


def _pool_changed(name: str, weight: float, **changes: Any) -> Fault:
    def change(context: FaultContext) -> None:
        context.environment.apply_pool(_pool_repaired_later(context), **changes)

    return Fault(name, "pools", weight, change)


def pool_deleted(context: FaultContext) -> None:
    """A declared pool is deleted while jobs run there."""
    context.client.delete(ACCELERATOR_POOLS, _pool_repaired_later(context))


def _pool_repaired_later(context: FaultContext) -> str:
    """One that nothing else breaks meanwhile."""
    pool = context.rng.choice(["a100", "a10g", "dev"])
    context.reserve(f"pool {pool}")

    def repair() -> None:
        context.environment.apply_pool(pool)
        context.reserved.discard(f"pool {pool}")

    context.repair_later(context.rng.uniform(3, 12), repair)
    return pool


def planner_off(context: FaultContext) -> None:
    """The planner of the fleet is switched off, and on again while what was decided without it is under way."""
    context.reserve("the planner")

    def switch_on() -> None:
        context.environment.plan_fleet("Auto")
        context.reserved.discard("the planner")

    context.repair_later(context.rng.uniform(2, 10), switch_on)
    context.environment.plan_fleet("Off")


FAULTS: Final = (
    _killed("kube-apiserver", "control plane", 1),
    _killed("kube-controller-manager", "control plane", 1),
    _killed("kube-scheduler", "control plane", 1),
    _frozen("kube-apiserver", "control plane", 1.5, 8),
    _frozen("kube-controller-manager", "control plane", 1.5, 8),
    _frozen("kube-scheduler", "control plane", 1, 8),
    _frozen("etcd", "control plane", 1, 5),
    Fault("node-deleted", "nodes", 5, node_deleted),
    Fault("pool-full", "nodes", 3, pool_full),
    _pool_changed("price-missing", 3, price=None),
    _pool_changed("price-changed", 3, price={"perChipHour": "9.99"}),
    _pool_changed("accelerator-unknown", 3, accelerator="Quantum-9000"),
    Fault("pool-deleted", "pools", 2, pool_deleted),
    Fault("planner-off", "pools", 4, planner_off),
)
