"""Chips that nodes offer as devices of Dynamic Resource Allocation (DRA) instead of an extended resource.

A DRA driver lists a node's devices in ResourceSlices. A DeviceClass with `extendedResourceName` lets pods that ask for
`nvidia.com/gpu` have them, so that nothing else about a placement changes (Kubernetes 1.34 and later).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rightpool.hardware.node import REPELLING, NodeFacts, NodeResource
from rightpool.hardware.vendors.registry import VENDORS
from rightpool.hardware.vendors.vendor import Vendor

# The scheduler makes such a claim for a pod that asks for the extended resource: the pod's own request counts already.
_OF_REQUEST: Final = "resource.kubernetes.io/extended-resource-claim"

_Device = tuple[str, str, str]
"""Driver, pool and name: what tells a device from all others."""


@dataclass(frozen=True, slots=True)
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
    resources: Iterable[str], slices: Sequence[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]]
) -> Devices:
    """The chips in ResourceSlices that pods can ask for by these extended resources, and those in ResourceClaims.

    Slices of an older generation of their pool, and devices that belong to no single node, are left out.
    """
    named = frozenset(resources)
    vendors = {vendor.devices.driver: vendor for vendor in VENDORS if vendor.devices and vendor.resource_name in named}
    newest: dict[tuple[str, str], int] = {}
    for body in slices:
        pool = _pool(body)
        newest[pool] = max(newest.get(pool, 0), _generation(body))
    places: dict[_Device, NodeResource] = {}
    offered: Counter[NodeResource] = Counter()
    for body in slices:
        spec = body["spec"]
        driver, pool_name = _pool(body)
        vendor, node = vendors.get(driver), spec.get("nodeName")
        if vendor is None or not node or _generation(body) < newest[driver, pool_name]:
            continue
        for device in spec.get("devices") or ():
            if _is_chip(device, vendor):
                place = str(node), vendor.resource_name
                places[driver, pool_name, str(device.get("name"))] = place
                offered[place] += not any(taint.get("effect") in REPELLING for taint in device.get("taints") or ())
    taken = {device for body in claims for device in _allocated(body)}
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


def _pool(body: Mapping[str, Any]) -> tuple[str, str]:
    spec = body["spec"]
    return str(spec.get("driver")), str((spec.get("pool") or {}).get("name"))


def _generation(body: Mapping[str, Any]) -> int:
    return int((body["spec"].get("pool") or {}).get("generation") or 0)


def _is_chip(device: Mapping[str, Any], vendor: Vendor) -> bool:
    source = vendor.devices
    assert source is not None
    kind = (device.get("attributes") or {}).get(source.kind) or {}
    return kind.get("string") == source.chip


def _allocated(claim: Mapping[str, Any]) -> Iterable[_Device]:
    if ((claim.get("metadata") or {}).get("annotations") or {}).get(_OF_REQUEST) == "true":
        return
    allocation = (claim.get("status") or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        if not result.get("adminAccess"):
            yield str(result.get("driver")), str(result.get("pool")), str(result.get("device"))
