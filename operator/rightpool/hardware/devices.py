"""Chips that nodes offer as devices of Dynamic Resource Allocation (DRA) instead of an extended resource.

A DRA driver lists a node's devices in ResourceSlices. A DeviceClass with `extendedResourceName` lets pods that ask for
`nvidia.com/gpu` have them, so that nothing else about a placement changes (Kubernetes 1.34 and later).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, NamedTuple, TypeVar

from rightpool.api.value_object import value_object
from rightpool.hardware.node import REPELLING, NodeFacts, NodeResource
from rightpool.hardware.vendors.registry import VENDORS
from rightpool.hardware.vendors.vendor import Vendor

# The scheduler makes such a claim for a pod that asks for the extended resource: the pod's own request counts already.
_OF_REQUEST: Final = "resource.kubernetes.io/extended-resource-claim"

T = TypeVar("T")

_Device = tuple[str, str, str]
"""Driver, pool and name: what tells a device from all others."""


@value_object
class Devices:
    """Chips that are devices."""

    offered: Mapping[NodeResource, int] = field(default_factory=dict)
    """Those without a taint that keeps pods away, by node and by the extended resource that pods ask for."""

    claimed: Mapping[NodeResource, int] = field(default_factory=dict)
    """Those of them that are allocated to claims."""


def resources_of(classes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The extended resources of chips that DeviceClasses give out as devices."""
    named = {(body.get("spec") or {}).get("extendedResourceName") for body in classes}
    return frozenset(vendor.resource_name for vendor in VENDORS if vendor.devices and vendor.resource_name in named)


def devices(
    resources: Iterable[str], slices: Iterable[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]]
) -> Devices:
    """The chips in ResourceSlices that pods can ask for by these extended resources, and those in ResourceClaims.

    Slices of an older generation of their pool, and devices that belong to no single node, are left out; so is what is
    no slice or claim at all. Any driver may write slices: a device that two of them list is one.
    """
    named = frozenset(resources)
    vendors = {vendor.devices.driver: vendor for vendor in VENDORS if vendor.devices and vendor.resource_name in named}
    read = [found for body in slices if (found := _readable(_slice, body, vendors)) is not None]
    newest: dict[tuple[str, str], int] = {}
    for one in read:
        newest[one.pool] = max(newest.get(one.pool, 0), one.generation)
    places: dict[_Device, NodeResource] = {}
    free: dict[_Device, bool] = {}
    for one in read:
        if one.generation < newest[one.pool] or not one.node:
            continue
        for name, untainted in one.chips.items():
            device = (*one.pool, name)
            places[device] = one.node, vendors[one.pool[0]].resource_name
            free[device] = untainted and free.get(device, True)
    offered = Counter(dict.fromkeys(places.values(), 0))
    offered.update(place for device, place in places.items() if free[device])
    taken = {device for body in claims for device in _readable(_allocated, body) or ()}
    return Devices(dict(offered), dict(Counter(places[device] for device in taken if device in places)))


def with_devices(nodes: Sequence[NodeFacts], offered: Mapping[NodeResource, int]) -> Sequence[NodeFacts]:
    """The nodes with their devices among their chips. What a device plugin offers on a node goes before."""
    if not offered:
        return nodes
    chips: dict[str, dict[str, int]] = {}
    for (name, resource), amount in offered.items():
        chips.setdefault(name, {})[resource] = amount
    return [
        replace(node, chips=chips[node.name] | {name: n for name, n in node.chips.items() if n})
        if node.name in chips
        else node
        for node in nodes
    ]


class _Slice(NamedTuple):
    """A ResourceSlice of a driver of chips."""

    pool: tuple[str, str]
    generation: int
    node: str | None
    chips: Mapping[str, bool]


def _readable(read: Callable[..., T], *arguments: Any) -> T | None:
    """What is read; None of a body that does not have the form of its kind."""
    try:
        return read(*arguments)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _slice(body: Mapping[str, Any], vendors: Mapping[str, Vendor]) -> _Slice | None:
    spec = body["spec"]
    driver, pool = str(spec["driver"]), spec.get("pool") or {}
    vendor = vendors.get(driver)
    if vendor is None:
        return None
    chips = {
        str(device["name"]): not any(taint.get("effect") in REPELLING for taint in device.get("taints") or ())
        for device in spec.get("devices") or ()
        if _is_chip(device, vendor)
    }
    return _Slice((driver, str(pool.get("name"))), int(pool.get("generation") or 0), spec.get("nodeName"), chips)


def _is_chip(device: Mapping[str, Any], vendor: Vendor) -> bool:
    source = vendor.devices
    assert source is not None
    kind = (device.get("attributes") or {}).get(source.kind) or {}
    return kind.get("string") == source.chip


def _allocated(claim: Mapping[str, Any]) -> list[_Device]:
    if ((claim.get("metadata") or {}).get("annotations") or {}).get(_OF_REQUEST) == "true":
        return []
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return [
        (str(result.get("driver")), str(result.get("pool")), str(result.get("device")))
        for result in (allocation.get("devices") or {}).get("results") or ()
        if not result.get("adminAccess")
    ]
