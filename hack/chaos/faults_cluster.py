"""Faults of the cluster: its control plane, its nodes, and what is declared about its pools."""

from __future__ import annotations

import signal
import time
from typing import Any, Final

from chaos.arena import Arena, Fault, Mend, Pointless
from chaos.ground import persistently
from devcluster import cluster as clusters
from devcluster import host, simulated
from devcluster.api import Api
from devcluster.processes import Supervisor
from rightpool.cluster.errors import AlreadyExists, NotFound
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES

Body = dict[str, Any]
POOLS: Final = {pool.name: pool for pool in (simulated.A100, simulated.A10G)}


def _killed(component: str, group: str, weight: float) -> Fault:
    """SIGKILL to a component, and a new one at once."""

    def kill(arena: Arena) -> None:
        if arena.broken:
            raise Pointless("the control plane is broken already")
        identity = arena.process(component)
        arena.broken.add(component)
        identity.signal(signal.SIGKILL)

        def bring_back() -> None:
            root = host.is_root()
            supervisor = Supervisor(arena.ground.spec.state)
            wanted = clusters.programs(arena.ground.spec, root=root)
            program = next(program for program in wanted if program.name == component)
            while identity.alive():
                time.sleep(0.05)
            supervisor.ensure(program)
            supervisor.wait(program, seconds=240)
            arena.broken.discard(component)

        arena.in_background(bring_back)

    return Fault(f"{component}-restarted", group, weight, kill)


def _frozen(component: str, group: str, weight: float, longest: float) -> Fault:
    """SIGSTOP for a while: it neither answers nor refuses."""

    def freeze(arena: Arena) -> None:
        if arena.broken:
            raise Pointless("the control plane is broken already")
        identity, seconds = arena.process(component), arena.chance.uniform(1, longest)
        arena.broken.add(component)
        identity.signal(signal.SIGSTOP)

        def thaw() -> None:
            try:
                arena.over.wait(seconds)
            finally:
                identity.signal(signal.SIGCONT)
                arena.broken.discard(component)

        arena.in_background(thaw)

    return Fault(f"{component}-frozen", group, weight, freeze)


def _node(arena: Arena) -> tuple[simulated.Pool, int]:
    pool = POOLS[arena.chance.choice(sorted(POOLS))]
    return pool, arena.chance.randrange(10)


def node_deleted(arena: Arena) -> tuple[float, Mend]:
    """A node goes, with all that runs there, and comes back later."""
    pool, index = _node(arena)
    name = pool.node_name(index)
    arena.hold(f"node {name}")
    try:
        arena.client.delete(NODES, name)
    except NotFound as error:
        arena.taken.discard(f"node {name}")
        raise Pointless(f"{name} is not there") from error

    def bring_back() -> None:
        body = pool.node(index)
        try:
            arena.client.create(NODES, {key: body[key] for key in ("metadata", "spec", "status")})
        except AlreadyExists:
            pass
        arena.taken.discard(f"node {name}")

    return arena.chance.uniform(3, 10), bring_back


def _cordon(arena: Arena, names: list[str], closed: bool) -> None:
    def put(name: str) -> None:
        node = arena.client.get(NODES, name)
        node["spec"]["unschedulable"] = closed
        arena.client.replace(NODES, node)

    def cordon(name: str) -> None:
        try:
            persistently(lambda: put(name))
        except NotFound:
            pass

    Api.in_parallel(cordon, names)


def pool_full(arena: Arena) -> tuple[float, Mend]:
    """A pool takes no pod for longer than a new Revision may take to start."""
    pool = POOLS[arena.chance.choice(sorted(POOLS))]
    arena.hold(f"room {pool.name}")
    names = [str(node["metadata"]["name"]) for node in arena.client.list_all(NODES) if _of(node, pool)]
    _cordon(arena, names, True)

    def open_again() -> None:
        here = [str(node["metadata"]["name"]) for node in arena.client.list_all(NODES) if _of(node, pool)]
        _cordon(arena, here, False)
        arena.taken.discard(f"room {pool.name}")

    return arena.chance.uniform(5, 20), open_again


def _of(node: Body, pool: simulated.Pool) -> bool:
    return str(node["metadata"]["name"]).startswith(pool.name + "-")


def _pool_changed(name: str, weight: float, **changes: Any) -> Fault:
    def change(arena: Arena) -> tuple[float, Mend]:
        pool = arena.chance.choice(["a100", "a10g", "dev"])
        arena.hold(f"pool {pool}")
        arena.ground.apply_pool(pool, **changes)

        def mend() -> None:
            arena.ground.apply_pool(pool)
            arena.taken.discard(f"pool {pool}")

        return arena.chance.uniform(3, 12), mend

    return Fault(name, "pools", weight, change)


def pool_deleted(arena: Arena) -> tuple[float, Mend]:
    """A declared pool goes while jobs run there."""
    pool = arena.chance.choice(["a100", "a10g", "dev"])
    arena.hold(f"pool {pool}")
    try:
        arena.client.delete(ACCELERATOR_POOLS, pool)
    except NotFound:
        pass

    def mend() -> None:
        arena.ground.apply_pool(pool)
        arena.taken.discard(f"pool {pool}")

    return arena.chance.uniform(3, 10), mend


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
)
