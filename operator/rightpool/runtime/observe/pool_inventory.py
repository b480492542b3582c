"""The inventory of pools: declared ones and ones discovered from node labels, with their total and free chips."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from operator import is_
from typing import Any, TypeVar

from pydantic import ValidationError

from rightpool.api.outcome import MoveOutcome
from rightpool.api.past_price import PastPrice
from rightpool.api.pool import AcceleratorPoolSpec, Calibration
from rightpool.api.record import Record
from rightpool.api.spot_use import SpotUse
from rightpool.api.value_object import value_object
from rightpool.contract import FIELD_MANAGER, LABEL_SOURCE, SOURCE_DISCOVERED
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.clouds import is_spot
from rightpool.hardware.devices import with_devices
from rightpool.hardware.discovery import DiscoveredPool, Discovery, UnmappedNodes, discover
from rightpool.hardware.inventory import Inventory, build_pools
from rightpool.hardware.node import NodeFacts
from rightpool.reporting.stored_job import first_problem
from rightpool.runtime.observe.facts import PodFacts, meta
from rightpool.runtime.observe.usage import ChipUsage

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Record)


@value_object
class PoolInventory:
    """All pools of the cluster, at one moment."""

    inventory: Inventory
    """Usable pools, the pool of each node, and problems."""
    specs: Mapping[str, AcceleratorPoolSpec]
    """Specs of all pools with a valid one."""
    discovered: frozenset[str]
    """Names of the discovered pools."""
    objects: Mapping[str, Mapping[str, Any]]
    """AcceleratorPools as they are stored."""
    unreadable: Mapping[str, str]
    """Pools with an invalid spec, with the reason."""
    discovery: Discovery
    """What node labels describe."""
    whole: bool
    """Whether jobs and pods of all namespaces are seen."""
    refused: str | None
    """What the API server says, where pods may not be listed."""
    nodes: Sequence[NodeFacts] = field(repr=False, compare=False)
    """Those that it was made from, with their devices."""
    spot: frozenset[str] = field(repr=False, compare=False)
    """Names of the nodes that are spot capacity."""
    made_from: tuple[object, ...] = field(repr=False, compare=False)
    """All that it was made from, but for the catalog."""

    @property
    def usage_known(self) -> bool:
        """Whether the pods of all namespaces were counted. Otherwise the number of free chips may be too high."""
        return self.whole and self.refused is None

    def without_pool(self) -> list[UnmappedNodes]:
        """Nodes with chips that belong to no pool, with the reason. What discovery leaves out may be declared."""
        if not self.discovery.unmapped:
            return []
        owned = {node for node, _ in self.inventory.owners}
        left = ((entry, [node for node in entry.nodes if node not in owned]) for entry in self.discovery.unmapped)
        return [replace(entry, nodes=tuple(nodes)) for entry, nodes in left if nodes]


def take_inventory(
    objects: Sequence[Mapping[str, Any]],
    nodes: Sequence[NodeFacts],
    pods: Sequence[PodFacts],
    usage: ChipUsage,
    catalog: Catalog,
    before: PoolInventory | None = None,
) -> PoolInventory:
    """Build the inventory from stored AcceleratorPools, nodes and pods.

    before: an earlier one with this catalog. It is returned where it was made from these very objects: the store gives
    the same ones while nothing has changed, and nobody else may change them. A discovered pool never takes the name of
    a declared one.
    """
    made_from = objects, nodes, pods, usage.devices, usage.foreign, usage.refused
    if before is not None and all(map(is_, made_from, before.made_from)):
        return before
    nodes = with_devices(nodes, usage.devices.offered)
    stored = {str(meta(body)["name"]): body for body in objects}
    specs: dict[str, AcceleratorPoolSpec] = {}
    unreadable: dict[str, str] = {}
    for name, body in stored.items():
        try:
            specs[name] = AcceleratorPoolSpec.model_validate(body.get("spec") or {})
        except ValidationError as error:
            unreadable[name] = f"spec: {first_problem(error)}"
    discovered_before = {name for name, body in stored.items() if is_discovered(body)}
    known = {name: specs[name].node_selector for name in sorted(discovered_before & specs.keys())}
    earlier = None if before is None else before.discovery
    discovery = discover(nodes, catalog, known, stored.keys() - discovered_before, earlier)
    discovered = set(discovered_before)
    for pool in discovery.pools:
        try:
            specs[pool.name] = _discovered_spec(pool, stored.get(pool.name) or {})
        except ValidationError as error:
            unreadable[pool.name] = f"spec: {first_problem(error)}"
            continue
        discovered.add(pool.name)
    resources = {spec.resource_name for spec in specs.values()}
    inventory = build_pools(
        specs,
        nodes,
        usage.by_node(pods, resources),
        catalog,
        discovered=discovered,
        labels={name: meta(body).get("labels") or {} for name, body in stored.items()},
        calibrations=kept_calibrations(stored),
        prices=kept_prices(stored),
        spot_uses=kept_spot_uses(stored),
    )
    return PoolInventory(
        inventory,
        specs,
        frozenset(discovered),
        stored,
        unreadable,
        discovery,
        usage.whole,
        usage.refused,
        nodes,
        frozenset(node.name for node in nodes if is_spot(node.labels)),
        made_from,
    )


def why_unusable(name: str, fleet: PoolInventory) -> str | None:
    """Why a pool that has jobs can't be used, and what to do about it; None if it can."""
    if name in fleet.inventory.pools:
        return None
    problems = [problem.message for problem in fleet.inventory.problems if problem.pool == name]
    if name in fleet.unreadable:
        problems = [fleet.unreadable[name]]
    if problems:
        return f"pool {name} can't be used: {'; '.join(problems)}"
    if name in fleet.objects:
        return f"pool {name} has no nodes any more: bring them back"
    return f"pool {name} is gone: declare it again"


def kept_outcomes(objects: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[MoveOutcome, ...]]:
    """How moves to each pool ended, by the status of the pool; what can't be read is left out."""
    return _kept(objects, "outcomes", MoveOutcome)


def kept_calibrations(objects: Mapping[str, Mapping[str, Any]]) -> dict[str, Calibration]:
    """What was measured last in each pool, by the status of the pool; what can't be read is left out."""
    found: dict[str, Calibration] = {}
    for name, body in objects.items():
        kept = (body.get("status") or {}).get("calibration")
        if kept is None:
            continue
        try:
            found[name] = Calibration.model_validate(kept)
        except ValidationError:
            continue  # the condition Calibrated says so
    return found


def kept_prices(objects: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[PastPrice, ...]]:
    """What each pool has cost so far, by the status of the pool; what can't be read begins anew."""
    return _kept(objects, "prices", PastPrice)


def kept_spot_uses(objects: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[SpotUse, ...]]:
    """What jobs have met on each pool's spot capacity, by the status of the pool; what can't be read begins anew."""
    return _kept(objects, "spotUses", SpotUse)


def _kept(objects: Mapping[str, Mapping[str, Any]], what: str, kind: type[T]) -> dict[str, tuple[T, ...]]:
    found: dict[str, tuple[T, ...]] = {}
    for name, body in objects.items():
        try:
            found[name] = tuple(map(kind.from_dict, (body.get("status") or {}).get(what) or ()))
        except ValueError as error:
            logger.warning("status.%s of AcceleratorPool %s can't be read: %s", what, name, first_problem(error))
    return found


def is_discovered(body: Mapping[str, Any]) -> bool:
    """Whether this AcceleratorPool was created by discovery."""
    return (meta(body).get("labels") or {}).get(LABEL_SOURCE) == SOURCE_DISCOVERED


def foreign_fields(body: Mapping[str, Any]) -> frozenset[str]:
    """Fields of the spec, in wire form, that another writer owns. The operator does not overwrite them."""
    foreign: set[str] = set()
    for entry in meta(body).get("managedFields") or ():
        if entry.get("manager") != FIELD_MANAGER:
            owned = (entry.get("fieldsV1") or {}).get("f:spec") or {}
            foreign |= {key.removeprefix("f:") for key in owned}
    return frozenset(foreign)


def _discovered_spec(pool: DiscoveredPool, body: Mapping[str, Any]) -> AcceleratorPoolSpec:
    """The spec by the node labels, except for the fields that another writer owns."""
    foreign = {key: value for key, value in (body.get("spec") or {}).items() if key in foreign_fields(body)}
    return AcceleratorPoolSpec.model_validate(pool.spec().to_dict() | foreign)
