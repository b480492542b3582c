"""Discovery: pools from the labels that nodes carry.

A node's pool follows from its own labels alone, so the order of nodes and the presence of others change nothing but
names: where two groups would share a name, each gets more of its own chip into it.

Which labels name chips is in vendors/, which ones clouds add is in clouds.py.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from rightpool.api.pool import MAX_CHIPS_PER_NODE, MAX_SLICE_CHIPS, TOPOLOGY, AcceleratorPoolSpec, Slice
from rightpool.api.value_object import value_object
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.clouds import GROUP_LABELS, INSTANCE_TYPE, LIFECYCLE_TAINTS, SPOT_LABELS, SPOT_TAINTS, is_spot
from rightpool.hardware.node import REPELLING, NodeFacts
from rightpool.hardware.vendors.vendor import Vendor, integer

_NOT_NAME: Final = re.compile(r"[^a-z0-9]+")
_NAME_LIMIT: Final = 63
_LENGTHS: Final = 4  # candidates for a name, from short to full


class Unmapped(StrEnum):
    """Why nodes with chips belong to no discovered pool."""

    UNKNOWN_CHIP = "UnknownChip"  # no label names a chip of the catalog
    DIVIDED_CHIP = "DividedChip"  # partitions or time slicing: what is allocatable is no whole chip
    UNKNOWN_COUNT = "UnknownCount"  # neither labels nor allocatable say how many chips a node has
    UNKNOWN_TOPOLOGY = "UnknownTopology"  # the topology label of a slice is missing or does not fit the chips
    TAINTED = (
        "Tainted"  # a taint that neither clouds nor device plugins set: only the cluster's owner knows its purpose
    )


@value_object
class UnmappedNodes:
    """Nodes that discovery left out."""

    reason: Unmapped
    """Why."""

    evidence: str
    """The label or taint behind it."""

    message: str
    """For a human, with the remedy."""

    nodes: tuple[str, ...]
    """Names, sorted."""


@value_object
class DiscoveredPool:
    """A pool that node labels describe."""

    name: str
    """Safe as the name of an AcceleratorPool."""

    accelerator: str
    """Key of the catalog."""

    chips_per_node: int
    """Chips of one node."""

    resource_name: str
    """Extended resource that pods request."""

    node_selector: Mapping[str, str]
    """Labels that its nodes carry and that pods will ask for."""

    tolerations: tuple[Mapping[str, Any], ...]
    """For the taints that keep pods without chips away."""

    slice: Slice | None
    """Where the pool is given out in slices."""

    nodes: tuple[str, ...]
    """Names, sorted."""

    def spec(self) -> AcceleratorPoolSpec:
        """The spec of the AcceleratorPool that stands for it.

        It names no price: the inventory finds the list price again, together with the doubts about it.
        """
        return AcceleratorPoolSpec(
            accelerator=self.accelerator,
            chips_per_node=self.chips_per_node,
            resource_name=self.resource_name,
            node_selector=dict(self.node_selector),
            tolerations=[dict(toleration) for toleration in self.tolerations],
            slice=self.slice,
        )


@value_object
class Discovery:
    """What the nodes make up. Each node with chips is in exactly one entry."""

    pools: tuple[DiscoveredPool, ...]
    """Sorted by name."""

    unmapped: tuple[UnmappedNodes, ...]
    """What was left out, and why."""

    looked_at: Mapping[str, tuple[NodeFacts, _Finding]] = field(default_factory=dict, repr=False, compare=False)
    """What each node's labels said, by its name: the next discovery looks at new and changed nodes alone."""


@dataclass(frozen=True, slots=True, order=True)
class _Identity:
    """What makes nodes interchangeable."""

    accelerator: str
    chips_per_node: int
    selector: tuple[tuple[str, str], ...]
    topology: str = ""
    """Shape of the slice that the node belongs to, where it belongs to one."""

    group: str = ""
    """Name of the group of nodes that were made alike, where there is one."""

    spot: bool = False


_Finding = _Identity | tuple[Unmapped, str, str] | None
"""What the labels of a node say: its identity, why it has none, or None where it has no chips."""


def discover(
    nodes: Sequence[NodeFacts],
    catalog: Catalog,
    known: Mapping[str, Mapping[str, str]] | None = None,
    reserved: Collection[str] = (),
    before: Discovery | None = None,
) -> Discovery:
    """The pools that these nodes make up. Nodes without chips are passed over.

    known: node selectors of the pools that were discovered before, by name: a pool that is found again keeps its name.
    reserved: names that are taken, those of declared pools. before: an earlier discovery with this catalog.
    """
    groups: defaultdict[_Identity, list[NodeFacts]] = defaultdict(list)
    left_out: defaultdict[tuple[Unmapped, str, str], list[str]] = defaultdict(list)
    earlier = {} if before is None else before.looked_at
    looked_at: dict[str, tuple[NodeFacts, _Finding]] = {}
    for node in nodes:
        known_as = earlier.get(node.name)
        found = known_as[1] if known_as is not None and known_as[0] is node else _identify(node, catalog)
        looked_at[node.name] = (node, found)
        if isinstance(found, _Identity):
            groups[found].append(node)
        elif found is not None:
            left_out[found].append(node.name)
    names = _names(groups, known or {}, reserved, catalog)
    pools = [_pool(names[identity], identity, members, catalog) for identity, members in groups.items()]
    unmapped = [
        UnmappedNodes(reason, evidence, message, tuple(sorted(names_)))
        for (reason, evidence, message), names_ in left_out.items()
    ]
    return Discovery(
        pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        unmapped=tuple(sorted(unmapped, key=lambda entry: (entry.reason, entry.evidence, entry.message))),
        looked_at=looked_at,
    )


# --- one node --------------------------------------------------------------------------------------------------------


def _identify(node: NodeFacts, catalog: Catalog) -> _Finding:
    labels = node.labels
    named = _accelerator(labels, catalog)
    if named is None:
        return _unknown(node, catalog)
    accelerator, source, selector = named
    vendor = catalog.get(accelerator).vendor
    part = catalog.get(accelerator).part is not None
    divided = _divided(labels, vendor, known=part)
    if divided is not None:
        return divided
    for taint in node.taints:
        if taint.effect in REPELLING and not _known_taint(taint.key, catalog):
            evidence = f"{taint.key}={taint.value}:{taint.effect}"
            message = (
                f"{accelerator} nodes carry the taint {evidence}; declare an AcceleratorPool that tolerates it "
                "if jobs may run there"
            )
            return Unmapped.TAINTED, evidence, message
    resource = vendor.resource_name
    # The count may be that of the chips that were divided.
    chips = (node.chips.get(resource) if part else None) or _count(node, vendor)
    if chips is None:
        evidence = f"{source}={labels[source]}"
        message = (
            f"{accelerator} nodes ({evidence}) do not say how many chips they have: {resource} is not allocatable "
            "(is the device plugin running?) and no count label is there"
        )
        return Unmapped.UNKNOWN_COUNT, evidence, message
    if chips > MAX_CHIPS_PER_NODE:
        evidence = f"{source}={labels[source]}"
        message = (
            f"{accelerator} nodes ({evidence}) say that they have {chips:.6g} chips, and no node has more than "
            f"{MAX_CHIPS_PER_NODE}: correct the count label, or what the device plugin offers"
        )
        return Unmapped.UNKNOWN_COUNT, evidence, message
    shared = None if part else _more_than_listed(accelerator, chips, labels, catalog)
    if shared is not None:
        return shared
    selector.update((label, labels[label]) for label in SPOT_LABELS if label in labels)
    if vendor.topology_label is not None:
        # Slices of one topology are alike whatever group they belong to: a group may be a single slice.
        topology = labels.get(vendor.topology_label, "")
        size = _topology_chips(topology)
        if size is None or size % chips:
            evidence = f"{vendor.topology_label}={topology}"
            message = (
                f"{accelerator} nodes with {chips} chips carry {evidence}, which is no whole number of such nodes; "
                "declare an AcceleratorPool with spec.slice"
            )
            return Unmapped.UNKNOWN_TOPOLOGY, evidence, message
        selector[vendor.topology_label] = topology
        return _Identity(accelerator, chips, tuple(sorted(selector.items())), topology, spot=is_spot(labels))
    selector.update((label, labels[label]) for label in vendor.count_labels if label in labels)
    group = next((label for label in GROUP_LABELS if label in labels), None)
    if group is not None:
        selector[group] = labels[group]
    name = "" if group is None else labels[group]
    return _Identity(accelerator, chips, tuple(sorted(selector.items())), group=name, spot=is_spot(labels))


def _accelerator(labels: Mapping[str, str], catalog: Catalog) -> tuple[str, str, dict[str, str]] | None:
    """The catalog key that the labels name, the label that names it, and all labels that were needed for that.

    The instance type is read last. None where no label names a chip of the catalog.
    """
    for vendor in catalog.vendors:
        for source in vendor.product_labels:
            product = source.product(labels)
            if product is None:
                continue
            needed = source.selector(labels)
            key = catalog.by_label(source.label, source.offered(labels) or "") or catalog.by_label(
                source.label, product
            )
            if key is None and source.memory is not None and source.memory in labels:
                key = catalog.by_label(source.label, product, integer(labels, source.memory))
                needed[source.memory] = labels[source.memory]
            if key is not None:
                return key, source.label, needed
    instance = labels.get(INSTANCE_TYPE)
    key = None if instance is None else catalog.by_label(INSTANCE_TYPE, instance)
    return None if instance is None or key is None else (key, INSTANCE_TYPE, {INSTANCE_TYPE: instance})


def _unknown(node: NodeFacts, catalog: Catalog) -> tuple[Unmapped, str, str] | None:
    """Why a node whose chip no label names is left out; None where nothing says that it has chips."""
    discoverable = [vendor for vendor in catalog.vendors if vendor.discoverable]
    sources = (source.label for vendor in discoverable for source in vendor.product_labels)
    named = next((label for label in sources if label in node.labels), None)
    if named is None and not any(node.chips.get(vendor.resource_name) for vendor in discoverable):
        return None
    if named is None:
        named = INSTANCE_TYPE
    value = node.labels.get(named)
    evidence = "no label that names the chip" if value is None else f"{named}={value}"
    message = f"chips that the catalog does not know ({evidence}); declare an AcceleratorPool for these nodes"
    return Unmapped.UNKNOWN_CHIP, evidence, message


def _divided(labels: Mapping[str, str], vendor: Vendor, *, known: bool) -> tuple[Unmapped, str, str] | None:
    """known: whether the catalog has the slices that chips are divided into."""
    found = (source.division(labels, into_slices=not known) for source in vendor.product_labels)
    evidence = next(filter(None, found), None)
    if evidence is None:
        return None
    message = (
        f"chips are divided ({evidence}): time slicing, and slices that the catalog lacks, are not predicted; whole "
        "chips or slices of `rightpool pools --accelerators` are required"
    )
    return Unmapped.DIVIDED_CHIP, evidence, message


def _more_than_listed(
    accelerator: str, chips: int, labels: Mapping[str, str], catalog: Catalog
) -> tuple[Unmapped, str, str] | None:
    """That a node offers more chips than its instance type has: where no label says it, too, pods share them."""
    instance = labels.get(INSTANCE_TYPE, "")
    row = catalog.list_price(instance)
    if row is None or row.accelerator != accelerator or chips <= row.chips:
        return None
    evidence = f"{INSTANCE_TYPE}={instance}"
    message = (
        f"nodes with {evidence} have {row.chips} chips and offer {chips}, so that pods share them: time slicing is not "
        "predicted, and whole chips are required"
    )
    return Unmapped.DIVIDED_CHIP, evidence, message


def _count(node: NodeFacts, vendor: Vendor) -> int | None:
    """Chips of the node: by label where there is one, else by offer. A broken chip leaves the offer, not the node."""
    for label in vendor.count_labels:
        count = integer(node.labels, label)
        if count:
            return count
    return node.chips.get(vendor.resource_name) or None


def _topology_chips(topology: str) -> int | None:
    if re.fullmatch(TOPOLOGY, topology) is None:
        return None
    chips = math.prod(int(side) for side in topology.split("x"))
    return chips if chips <= MAX_SLICE_CHIPS else None


def _chip_taint(key: str, catalog: Catalog) -> bool:
    """Whether clouds and device operators put this taint on nodes to keep pods off that need no chips."""
    return key in SPOT_TAINTS or any(vendor.resource_name == key for vendor in catalog.vendors if vendor.discoverable)


def _known_taint(key: str, catalog: Catalog) -> bool:
    return _chip_taint(key, catalog) or key.startswith(LIFECYCLE_TAINTS)


# --- one pool --------------------------------------------------------------------------------------------------------


def _pool(name: str, identity: _Identity, members: Sequence[NodeFacts], catalog: Catalog) -> DiscoveredPool:
    taints = {
        (taint.key, taint.effect)
        for node in members
        for taint in node.taints
        if taint.effect in REPELLING and _chip_taint(taint.key, catalog)
    }
    slice_ = None
    if identity.topology:
        slice_ = Slice(topology=identity.topology, chips=_topology_chips(identity.topology) or 0)
    return DiscoveredPool(
        name=name,
        accelerator=identity.accelerator,
        chips_per_node=identity.chips_per_node,
        resource_name=catalog.get(identity.accelerator).vendor.resource_name,
        node_selector=dict(identity.selector),
        tolerations=tuple({"key": key, "operator": "Exists", "effect": effect} for key, effect in sorted(taints)),
        slice=slice_,
        nodes=tuple(sorted(node.name for node in members)),
    )


# --- names -----------------------------------------------------------------------------------------------------------


def _names(
    groups: Iterable[_Identity],
    known: Mapping[str, Mapping[str, str]],
    reserved: Collection[str],
    catalog: Catalog,
) -> dict[_Identity, str]:
    """A DNS-safe name for each: what it was called before, else the shortest of its candidates that no other wants."""
    identities = sorted(groups)
    candidates = {identity: _candidates(identity, catalog) for identity in identities}
    before = {tuple(sorted(selector.items())): name for name, selector in sorted(known.items(), reverse=True)}
    names: dict[_Identity, str] = {}
    for identity in identities:
        former = before.get(identity.selector)
        if former is not None and former not in names.values():
            names[identity] = former
    taken = {*names.values(), *known, *reserved}
    waiting = [identity for identity in identities if identity not in names]
    for length in range(_LENGTHS):
        wanted: defaultdict[str, list[_Identity]] = defaultdict(list)
        for identity in waiting:
            wanted[candidates[identity][length]].append(identity)
        for name, rivals in wanted.items():
            if len(rivals) == 1 and name not in taken:
                names[rivals[0]] = name
        taken.update(wanted)
        waiting = [identity for identity in waiting if identity not in names]
    for identity in waiting:
        number = 2
        while (name := _dns(candidates[identity][-1], f"-{number}")) in taken:
            number += 1
        names[identity] = name
        taken.add(name)
    return names


def _candidates(identity: _Identity, catalog: Catalog) -> tuple[str, str, str, str]:
    """Names from short to full: group or chip, chip with memory, chips of a node."""
    chip = identity.accelerator.lower()
    accelerator = catalog.get(identity.accelerator)
    family = "-".join(chip.split("-")[: accelerator.vendor.family_words])
    if accelerator.part is not None:
        family += chip.removeprefix(accelerator.part.whole.lower())
    spot = "-spot" if identity.spot else ""
    if identity.topology:
        first = f"{family}-{identity.topology}"
        full = f"{first}-{identity.chips_per_node}"
        return _dns(family, spot), _dns(first, spot), _dns(full, spot), _dns(full, spot)
    count = f"-{identity.chips_per_node}x"
    if identity.group:
        group = identity.group if not spot or "spot" in identity.group else f"{identity.group}{spot}"
        full = f"{group}-{chip}"
        return _dns(group), _dns(f"{group}-{family}"), _dns(full), _dns(f"{full}{count}")
    full = f"{chip}{count}"
    return _dns(family, spot), _dns(chip, spot), _dns(full, spot), _dns(full, spot)


def _dns(name: str, suffix: str = "") -> str:
    """Lower-case letters, digits and single hyphens, at most 63 characters with the suffix."""
    clean = _NOT_NAME.sub("-", name.lower()).strip("-") or "pool"
    return clean[: _NAME_LIMIT - len(suffix)].rstrip("-") + suffix
