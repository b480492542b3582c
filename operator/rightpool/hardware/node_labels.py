"""What a pod may select nodes of a pool by: their labels, as far as anybody asks for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from rightpool.hardware.inventory import Inventory
from rightpool.hardware.node import NodeFacts
from rightpool.hardware.pool import Pool


def with_node_labels(inventory: Inventory, nodes: Iterable[NodeFacts], keys: Collection[str]) -> Mapping[str, Pool]:
    """The pools, each with the labels of its nodes at these keys. Few jobs select nodes, and those by few keys: nothing
    else of ten thousand nodes is carried along."""
    if not keys:
        return inventory.pools
    seen: defaultdict[str, set[frozenset[tuple[str, str]]]] = defaultdict(set)
    for node in nodes:
        pool = inventory.nodes.get(node.name)
        if pool is not None:
            seen[pool].add(frozenset((key, node.labels[key]) for key in keys if key in node.labels))
    return {name: replace(pool, node_labels=frozenset(seen[name])) for name, pool in inventory.pools.items()}
