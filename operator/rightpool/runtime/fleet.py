"""The machines: pools that were declared and pools that node labels describe, with what is there and free."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from rightpool.api.pool import AcceleratorPoolSpec
from rightpool.contract import FIELD_MANAGER, LABEL_SOURCE, SOURCE_DISCOVERED
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
    usage_known: whether the pods of all namespaces were counted; else what is free is a guess, and too high.
    """

    inventory: Inventory
    specs: Mapping[str, AcceleratorPoolSpec]
    discovered: frozenset[str]
    objects: Mapping[str, Mapping[str, Any]]
    unreadable: Mapping[str, str]
    unmapped: tuple[UnmappedNodes, ...]
    usage_known: bool


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
    discovery = discover(nodes, catalog, known, reserved=stored.keys() - found_before)
    discovered = set(found_before)
    for pool in discovery.pools:
        try:
            specs[pool.name] = _respecting(pool, stored.get(pool.name) or {})
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
    )
    return Fleet(inventory, specs, frozenset(discovered), stored, unreadable, discovery.unmapped, usage.whole)


def absence(name: str, fleet: Fleet) -> str | None:
    """Why a pool that a job was placed on can't be used, and what to do about it; None where it can."""
    if name in fleet.inventory.pools:
        return None
    wrong = [problem.message for problem in fleet.inventory.problems if problem.pool == name]
    if name in fleet.unreadable:
        wrong = [fleet.unreadable[name]]
    if wrong:
        return f"pool {name} can't be used until it is corrected ({'; '.join(wrong)})"
    if name in fleet.objects:
        return f"pool {name} has no nodes any more: bring them back"
    return f"pool {name} is gone: declare it again"


def is_discovered(body: Mapping[str, Any]) -> bool:
    """Whether discovery made this AcceleratorPool."""
    return (meta(body).get("labels") or {}).get(LABEL_SOURCE) == SOURCE_DISCOVERED


def foreign_fields(body: Mapping[str, Any]) -> frozenset[str]:
    """Fields of spec, in wire form, that somebody else has written: these are theirs, also on a discovered pool."""
    foreign: set[str] = set()
    for entry in meta(body).get("managedFields") or ():
        if entry.get("manager") != FIELD_MANAGER:
            owned = (entry.get("fieldsV1") or {}).get("f:spec") or {}
            foreign |= {key.removeprefix("f:") for key in owned}
    return frozenset(foreign)


def _respecting(pool: DiscoveredPool, body: Mapping[str, Any]) -> AcceleratorPoolSpec:
    """What the nodes say, but for the fields that somebody else has written."""
    theirs = {key: value for key, value in (body.get("spec") or {}).items() if key in foreign_fields(body)}
    return AcceleratorPoolSpec.model_validate(pool.spec().to_dict() | theirs)
