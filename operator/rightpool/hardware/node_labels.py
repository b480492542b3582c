"""Node labels that jobs select by, kept with the pool of the nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from rightpool.hardware.inventory import Inventory, chips_on
from rightpool.hardware.node import NodeFacts, NodeResource, takes_pods
from rightpool.hardware.pool import Pool


def with_node_labels(inventory: Inventory, nodes: Iterable[NodeFacts], keys: Collection[str]) -> Mapping[str, Pool]:
    """The pools, each with the labels of its nodes at these keys, and the free chips for each set of labels.

    Few jobs select nodes, and those by few keys: no other labels are kept.
    """
    if not keys:
        return inventory.pools
    grouped: dict[str, defaultdict[frozenset[tuple[str, str]], list[NodeFacts]]] = {
        name: defaultdict(list) for name in inventory.pools
    }
    for node in nodes:
        labels = frozenset((key, node.labels[key]) for key in keys if key in node.labels)
        for resource in node.chips:
            name = inventory.owners.get((node.name, resource))
            if name is not None:
                grouped[name][labels].append(node)

    return {name: _labelled(pool, grouped[name], inventory.usage) for name, pool in inventory.pools.items()}


def _labelled(
    pool: Pool, groups: Mapping[frozenset[tuple[str, str]], Iterable[NodeFacts]], usage: Mapping[NodeResource, int]
) -> Pool:
    opened = {
        labels: chips_on(pool, [node for node in members if takes_pods(node, pool.tolerations)], usage, labels)[1]
        for labels, members in groups.items()
    }
    return replace(
        pool,
        node_labels={labels: sum(node.free for node in nodes) for labels, nodes in opened.items()},
        open_nodes=tuple(node for nodes in opened.values() for node in nodes),
    )
