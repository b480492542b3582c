"""The machines: pools that were declared and pools that node labels describe, with what is there and free."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from rightpool.api.pool import AcceleratorPoolSpec, PriceSpec, Slice
from rightpool.contract import LABEL_SOURCE, SOURCE_DISCOVERED
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.discovery import DiscoveredPool, UnmappedNodes, discover
from rightpool.hardware.inventory import Inventory, build_pools
from rightpool.hardware.node import NodeFacts
from rightpool.runtime.facts import PodFacts, meta
from rightpool.runtime.jobs import first_problem
from rightpool.runtime.usage import ChipUsage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fleet:
    """inventory: usable pools, which node is whose, problems. specs: of all pools. discovered: names of found ones.

    objects: AcceleratorPools as they are stored. unreadable: pools whose spec can't be read, with the reason.
    """

    inventory: Inventory
    specs: Mapping[str, AcceleratorPoolSpec]
    discovered: frozenset[str]
    objects: Mapping[str, Mapping[str, Any]]
    unreadable: Mapping[str, str]
    unmapped: tuple[UnmappedNodes, ...]


def survey_fleet(
    objects: Sequence[Mapping[str, Any]],
    nodes: Sequence[NodeFacts],
    pods: Sequence[PodFacts],
    usage: ChipUsage,
    catalog: Catalog,
) -> Fleet:
    """objects: AcceleratorPools as they are stored. A declared pool keeps its name against a discovered one."""
    stored = {str(meta(body)["name"]): body for body in objects}
    specs: dict[str, AcceleratorPoolSpec] = {}
    unreadable: dict[str, str] = {}
    for name, body in stored.items():
        try:
            specs[name] = AcceleratorPoolSpec.model_validate(body.get("spec") or {})
        except ValidationError as error:
            unreadable[name] = f"spec: {first_problem(error)}"
    found_before = {name for name, body in stored.items() if is_discovered(body)}
    known = {name: specs[name].node_selector for name in sorted(found_before & specs.keys())}
    discovery = discover(nodes, catalog, known)
    discovered = set(found_before)
    for pool in discovery.pools:
        if pool.name in stored and pool.name not in found_before:
            continue
        existing = specs.get(pool.name)
        specs[pool.name] = _spec_of(pool, None if existing is None else existing.price)
        discovered.add(pool.name)
    resources = {spec.resource_name for spec in specs.values()}
    inventory = build_pools(
        specs,
        nodes,
        usage.by_node(pods, resources),
        catalog,
        discovered=discovered,
        labels={name: meta(body).get("labels") or {} for name, body in stored.items()},
    )
    return Fleet(inventory, specs, frozenset(discovered), stored, unreadable, discovery.unmapped)


def is_discovered(body: Mapping[str, Any]) -> bool:
    """Whether discovery made this AcceleratorPool."""
    return (meta(body).get("labels") or {}).get(LABEL_SOURCE) == SOURCE_DISCOVERED


def _spec_of(pool: DiscoveredPool, price: PriceSpec | None) -> AcceleratorPoolSpec:
    """price: what the object says already. It may be what its owner pays, and is not overwritten with a list price."""
    listed: PriceSpec | None = PriceSpec(
        per_chip_hour=_decimal(pool.price.on_demand), spot_per_chip_hour=_decimal(pool.price.spot)
    )
    if listed == PriceSpec():
        listed = None
    return AcceleratorPoolSpec(
        accelerator=pool.accelerator,
        chips_per_node=pool.chips_per_node,
        resource_name=pool.resource_name,
        node_selector=dict(pool.node_selector),
        tolerations=[dict(toleration) for toleration in pool.tolerations],
        slice=None if pool.slice is None else Slice(topology=pool.slice.topology, chips=pool.slice.chips),
        price=price or listed,
    )


def _decimal(price: float | None) -> Decimal | None:
    return None if price is None else Decimal(f"{price:.6f}").normalize() + 0
