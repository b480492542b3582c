"""What a pod may select nodes of a pool by: their labels, as far as anybody asks for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from rightpool.hardware.inventory import Inventory, chips_on
from rightpool.hardware.node import NodeFacts, takes_pods
from rightpool.hardware.pool import Pool


def with_node_labels(inventory: Inventory, nodes: Iterable[NodeFacts], keys: Collection[str]) -> Mapping[str, Pool]:
    """The pools, each with the labels of its nodes at these keys, and what is free by them. Few jobs select nodes, and
    those by few keys: nothing else of ten thousand nodes is carried along."""
    if not keys:
        return inventory.pools
    alike: dict[str, defaultdict[frozenset[tuple[str, str]], list[NodeFacts]]] = {
        name: defaultdict(list) for name in inventory.pools
    }
    for node in nodes:
        name = inventory.nodes.get(node.name)
        if name is not None:
            labels = frozenset((key, node.labels[key]) for key in keys if key in node.labels)
            alike[name][labels].append(node)

    def free(pool: Pool, members: Iterable[NodeFacts]) -> int:
        counted = [node for node in members if takes_pods(node, pool.tolerations)]
        return chips_on(counted, pool.resource_name, pool.chips_per_node, inventory.usage, pool.slice)[1]

    return {
        name: replace(pool, node_labels={labels: free(pool, members) for labels, members in alike[name].items()})
        for name, pool in inventory.pools.items()
    }
