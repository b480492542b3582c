"""What jobs ask of nodes, kept with the pool of the nodes: each shape once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from rightpool.hardware.inventory import Inventory, chips_on
from rightpool.hardware.node import NodeFacts, NodeResource, tolerates
from rightpool.hardware.node_needs import Aspect, NodeShape
from rightpool.hardware.pool import OpenNode, Pool


def with_node_shapes(
    inventory: Inventory, nodes: Iterable[NodeFacts], aspects: Collection[Aspect]
) -> Mapping[str, Pool]:
    """The pools, each with the shapes of its nodes as far as jobs ask for it, and the free chips of each shape.

    Nodes differ in much that no job asks for: nothing else is kept.
    """
    if not aspects:
        return inventory.pools
    keys = [name for kind, name in sorted(aspects) if kind == "label"]
    resources = [name for kind, name in sorted(aspects) if kind == "resource"]
    grouped: dict[str, defaultdict[NodeShape, list[NodeFacts]]] = {name: defaultdict(list) for name in inventory.pools}
    for node in nodes:
        shape: NodeShape | None = None
        for resource in node.chips:
            name = inventory.owners.get((node.name, resource))
            if name is None:
                continue
            if shape is None:
                labels = frozenset((key, node.labels[key]) for key in keys if key in node.labels)
                shape = NodeShape(labels, _offers(node, resources))
            taints = tuple(taint for taint in node.taints if not tolerates(inventory.pools[name].tolerations, taint))
            grouped[name][shape._replace(taints=taints) if taints else shape].append(node)
    return {name: _shaped(pool, grouped[name], inventory.usage) for name, pool in inventory.pools.items()}


def _offers(node: NodeFacts, resources: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """An extended resource that a node does not list it does not have; of the others nothing is known then."""
    found = []
    for name in resources:
        amount = node.chips.get(name, 0) if "/" in name else node.host.get(name)
        if amount is None and name.startswith("hugepages-"):
            amount = 0
        if amount is not None:
            found.append((name, amount))
    return tuple(found)


def _shaped(pool: Pool, groups: Mapping[NodeShape, Iterable[NodeFacts]], usage: Mapping[NodeResource, int]) -> Pool:
    free: dict[NodeShape, int] = {}
    dedicated: dict[NodeShape, int] = {}
    opened: list[OpenNode] = []
    for shape, members in groups.items():
        there = [node for node in members if node.ready and not node.unschedulable]
        total, nodes = chips_on(pool, there, usage, shape)
        free[shape] = sum(node.free for node in nodes)
        opened += nodes
        if shape.taints:
            dedicated[shape] = total
    return replace(pool, shapes=free, dedicated=dedicated, open_nodes=tuple(opened))
