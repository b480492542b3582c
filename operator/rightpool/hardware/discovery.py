"""Discovery: pools from the labels that nodes carry (GFD, GKE, GKE TPU, EKS, Karpenter).

A node's pool follows from its own labels alone, so the order of nodes and the presence of others change nothing but
names: where two groups would share a name, each gets more of its own chip into it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from rightpool.api.pool import MAX_CHIPS_PER_NODE, MAX_SLICE_CHIPS, TOPOLOGY, AcceleratorPoolSpec
from rightpool.api.pool import Slice as SliceSpec
from rightpool.hardware.accelerator import Price, Vendor
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.labels import (
    CAPACITY_LABELS,
    EKS_NODEGROUP,
    GFD_COUNT,
    GFD_MEMORY,
    GFD_PRODUCT,
    GFD_REPLICAS,
    GKE_GPU,
    GKE_GPU_COUNT,
    GKE_NODEPOOL,
    GKE_SPOT,
    GKE_TPU,
    GKE_TPU_TOPOLOGY,
    INSTANCE_TYPE,
    KARPENTER_GPU,
    KARPENTER_GPU_COUNT,
    KARPENTER_GPU_MEMORY,
    KARPENTER_NODEPOOL,
    is_spot,
)
from rightpool.hardware.node import REPELLING, NodeFacts
from rightpool.hardware.pool import Slice
from rightpool.hardware.pricing import listed_price

GPU: Final = "nvidia.com/gpu"
TPU: Final = "google.com/tpu"

# Labels that name the chip, the surest first, with the label of its memory where the name may be ambiguous.
_CHIP_LABELS: Final = (
    (GKE_TPU, None),
    (GFD_PRODUCT, GFD_MEMORY),
    (GKE_GPU, None),
    (KARPENTER_GPU, KARPENTER_GPU_MEMORY),
    (INSTANCE_TYPE, None),
)
# Labels whose presence says that there is a chip, so that one which the catalog does not know is worth a word.
_ACCELERATED: Final = (GKE_TPU, GFD_PRODUCT, GKE_GPU, KARPENTER_GPU)
_COUNT_LABELS: Final = (GFD_COUNT, GKE_GPU_COUNT, KARPENTER_GPU_COUNT)
# Who keeps nodes alike. TPU slices of one topology are alike across node pools: there a node pool is one slice.
_GROUP_LABELS: Final = (GKE_NODEPOOL, KARPENTER_NODEPOOL, EKS_NODEGROUP)
# Taints that clouds and GPU operators put on accelerator nodes to keep other pods off: chips jobs may pass them.
_CHIP_TAINTS: Final = frozenset({GPU, TPU, GKE_SPOT})
# Taints that come and go with a node's state: they say nothing about who may use it.
_LIFECYCLE_TAINTS: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node.cilium.io/",
    "karpenter.sh/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)
_NOT_NAME: Final = re.compile(r"[^a-z0-9]+")
_NAME_LIMIT: Final = 63
_LENGTHS: Final = 4  # candidates for a name, from short to full


class Unmapped(StrEnum):
    """Why nodes with chips belong to no discovered pool."""

    UNKNOWN_CHIP = "UnknownChip"  # no label names a chip of the catalog
    SHARED_CHIP = "SharedChip"  # MIG slices or time slicing: what is allocatable is no whole chip
    UNKNOWN_COUNT = "UnknownCount"  # neither labels nor allocatable say how many chips a node has
    UNKNOWN_TOPOLOGY = "UnknownTopology"  # a TPU whose topology label is missing or does not fit its chips
    TAINTED = "Tainted"  # a taint of the cluster's own: whom it is for, only its owner knows


@dataclass(frozen=True, slots=True)
class UnmappedNodes:
    """Nodes that discovery left out. evidence: the label or taint behind it. message: for a human, with the remedy."""

    reason: Unmapped
    evidence: str
    message: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DiscoveredPool:
    """A pool that node labels describe.

    node_selector: the labels that its nodes carry and that pods will ask for. price: the list price of the nodes'
    instance type; unknown where the catalog has none, and always for spot capacity. nodes: names, sorted.
    """

    name: str
    accelerator: str
    chips_per_node: int
    resource_name: str
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]
    slice: Slice | None
    price: Price
    nodes: tuple[str, ...]

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
            slice=None if self.slice is None else SliceSpec(topology=self.slice.topology, chips=self.slice.chips),
        )


@dataclass(frozen=True, slots=True)
class Discovery:
    """pools: by name. unmapped: what was left out, and why. Each node with chips is in exactly one of them."""

    pools: tuple[DiscoveredPool, ...]
    unmapped: tuple[UnmappedNodes, ...]


@dataclass(frozen=True, slots=True, order=True)
class _Identity:
    """What makes nodes interchangeable."""

    accelerator: str
    chips_per_node: int
    selector: tuple[tuple[str, str], ...]
    topology: str = ""
    group: str = ""
    spot: bool = False
    resource: str = field(default=GPU)


def discover(
    nodes: Sequence[NodeFacts],
    catalog: Catalog,
    known: Mapping[str, Mapping[str, str]] | None = None,
    reserved: Collection[str] = (),
) -> Discovery:
    """The pools that these nodes make up. Nodes without chips are passed over.

    known: node selectors of the pools that were discovered before, by name: a pool that is found again keeps its name.
    reserved: names that are taken, those of declared pools.
    """
    groups: defaultdict[_Identity, list[NodeFacts]] = defaultdict(list)
    left_out: defaultdict[tuple[Unmapped, str, str], list[str]] = defaultdict(list)
    for node in nodes:
        found = _identify(node, catalog)
        if isinstance(found, _Identity):
            groups[found].append(node)
        elif found is not None:
            left_out[found].append(node.name)
    names = _names(groups, known or {}, reserved)
    pools = [_pool(names[identity], identity, members, catalog) for identity, members in groups.items()]
    unmapped = [
        UnmappedNodes(reason, evidence, message, tuple(sorted(names_)))
        for (reason, evidence, message), names_ in left_out.items()
    ]
    return Discovery(
        pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        unmapped=tuple(sorted(unmapped, key=lambda entry: (entry.reason, entry.evidence, entry.message))),
    )


# --- one node --------------------------------------------------------------------------------------------------------


def _identify(node: NodeFacts, catalog: Catalog) -> _Identity | tuple[Unmapped, str, str] | None:
    """What the node's labels say: its identity, why it has none, or None where it has no chips."""
    labels = node.labels
    accelerator, source = _accelerator(labels, catalog)
    if accelerator is None:
        return _unknown(node)
    shared = _shared(labels)
    if shared is not None:
        return shared
    resource = TPU if catalog.get(accelerator).vendor is Vendor.GOOGLE else GPU
    for taint in node.taints:
        if taint.effect in REPELLING and not _known_taint(taint.key, resource):
            evidence = f"{taint.key}={taint.value}:{taint.effect}"
            message = (
                f"{accelerator} nodes carry the taint {evidence}; declare an AcceleratorPool that tolerates it "
                "if jobs may run there"
            )
            return Unmapped.TAINTED, evidence, message
    chips = _count(node, resource)
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
    selector = {source: labels[source]}
    selector.update((label, labels[label]) for label in CAPACITY_LABELS if label in labels)
    group = ""
    topology = labels.get(GKE_TPU_TOPOLOGY, "")
    if resource == TPU:
        size = _topology_chips(topology)
        if size is None or size % chips:
            evidence = f"{GKE_TPU_TOPOLOGY}={topology}"
            message = (
                f"{accelerator} nodes with {chips} chips carry {evidence}, which is no whole number of such nodes; "
                "declare an AcceleratorPool with spec.slice"
            )
            return Unmapped.UNKNOWN_TOPOLOGY, evidence, message
        selector[GKE_TPU_TOPOLOGY] = topology
    else:
        topology = ""
        selector.update((label, labels[label]) for label in _COUNT_LABELS if label in labels)
        for label in _GROUP_LABELS:
            if label in labels:
                group = labels[label]
                selector[label] = group
                break
    return _Identity(accelerator, chips, tuple(sorted(selector.items())), topology, group, is_spot(labels), resource)


def _accelerator(labels: Mapping[str, str], catalog: Catalog) -> tuple[str | None, str]:
    """The catalog key that the labels name, and the label that named it."""
    for label, memory in _CHIP_LABELS:
        value = labels.get(label)
        if value is None:
            continue
        key = catalog.by_label(label, value.split("-MIG-")[0].removesuffix("-SHARED"), _integer(labels, memory))
        if key is not None:
            return key, label
    return None, ""


def _unknown(node: NodeFacts) -> tuple[Unmapped, str, str] | None:
    named = next((label for label in _ACCELERATED if label in node.labels), None)
    if named is None and not any(node.chips.get(resource) for resource in (GPU, TPU)):
        return None
    if named is None:
        named = INSTANCE_TYPE
    value = node.labels.get(named)
    evidence = "no label that names the chip" if value is None else f"{named}={value}"
    message = f"chips that the catalog does not know ({evidence}); declare an AcceleratorPool for these nodes"
    return Unmapped.UNKNOWN_CHIP, evidence, message


def _shared(labels: Mapping[str, str]) -> tuple[Unmapped, str, str] | None:
    product = labels.get(GFD_PRODUCT, "")
    replicas = _integer(labels, GFD_REPLICAS) or 1
    if "-MIG-" not in product and not product.endswith("-SHARED") and replicas <= 1:
        return None
    evidence = f"{GFD_PRODUCT}={product}" if replicas <= 1 else f"{GFD_REPLICAS}={replicas}"
    message = f"chips are divided ({evidence}): MIG slices and time slicing are not predicted, whole chips are due"
    return Unmapped.SHARED_CHIP, evidence, message


def _count(node: NodeFacts, resource: str) -> int | None:
    """Chips of the node: by label where there is one, else by offer. A broken chip leaves the offer, not the node."""
    for label in _COUNT_LABELS if resource == GPU else ():
        count = _integer(node.labels, label)
        if count:
            return count
    return node.chips.get(resource) or None


def _integer(labels: Mapping[str, str], label: str | None) -> int | None:
    value = labels.get(label, "") if label is not None else ""
    return int(value) if value.isascii() and value.isdigit() else None


def _topology_chips(topology: str) -> int | None:
    if re.fullmatch(TOPOLOGY, topology) is None:
        return None
    chips = math.prod(int(side) for side in topology.split("x"))
    return chips if chips <= MAX_SLICE_CHIPS else None


def _known_taint(key: str, resource: str) -> bool:
    return key == resource or key in _CHIP_TAINTS or key.startswith(_LIFECYCLE_TAINTS)


# --- one pool --------------------------------------------------------------------------------------------------------


def _pool(name: str, identity: _Identity, members: Sequence[NodeFacts], catalog: Catalog) -> DiscoveredPool:
    taints = {
        (taint.key, taint.effect)
        for node in members
        for taint in node.taints
        if taint.effect in REPELLING and (taint.key == identity.resource or taint.key in _CHIP_TAINTS)
    }
    slice_ = None
    if identity.topology:
        chips = _topology_chips(identity.topology) or 0
        slice_ = Slice(identity.topology, chips, chips // identity.chips_per_node)
    listed = listed_price(catalog.get(identity.accelerator), (node.labels for node in members), catalog)
    return DiscoveredPool(
        name=name,
        accelerator=identity.accelerator,
        chips_per_node=identity.chips_per_node,
        resource_name=identity.resource,
        node_selector=dict(identity.selector),
        tolerations=tuple({"key": key, "operator": "Exists", "effect": effect} for key, effect in sorted(taints)),
        slice=slice_,
        price=listed.price if listed.exact else Price(),
        nodes=tuple(sorted(node.name for node in members)),
    )


# --- names -----------------------------------------------------------------------------------------------------------


def _names(
    groups: Iterable[_Identity], known: Mapping[str, Mapping[str, str]], reserved: Collection[str]
) -> dict[_Identity, str]:
    """A DNS-safe name for each: what it was called before, else the shortest of its candidates that nobody shares."""
    identities = sorted(groups)
    before = {tuple(sorted(selector.items())): name for name, selector in sorted(known.items(), reverse=True)}
    names: dict[_Identity, str] = {}
    for identity in identities:
        former = before.get(identity.selector)
        if former is not None and former not in names.values():
            names[identity] = former
    taken = {*names.values(), *known, *reserved}
    waiting = [identity for identity in identities if identity not in names]
    for length in range(_LENGTHS):
        wishes: defaultdict[str, list[_Identity]] = defaultdict(list)
        for identity in waiting:
            wishes[_candidates(identity)[length]].append(identity)
        for name, rivals in wishes.items():
            if len(rivals) == 1 and name not in taken:
                names[rivals[0]] = name
        taken.update(wishes)
        waiting = [identity for identity in waiting if identity not in names]
    for identity in waiting:
        number = 2
        while (name := _dns(_candidates(identity)[-1], f"-{number}")) in taken:
            number += 1
        names[identity] = name
        taken.add(name)
    return names


def _candidates(identity: _Identity) -> tuple[str, str, str, str]:
    """Names from short to full: group or chip, chip with memory, chips of a node."""
    family = identity.accelerator.lower()
    brief = family if family.startswith("tpu-") else family.split("-")[0]
    spot = "-spot" if identity.spot else ""
    if identity.topology:
        first = f"{brief}-{identity.topology}"
        full = f"{first}-{identity.chips_per_node}"
        return _dns(brief, spot), _dns(first, spot), _dns(full, spot), _dns(full, spot)
    count = f"-{identity.chips_per_node}x"
    if identity.group:
        group = identity.group if not spot or "spot" in identity.group else f"{identity.group}{spot}"
        full = f"{group}-{family}"
        return _dns(group), _dns(f"{group}-{brief}"), _dns(full), _dns(f"{full}{count}")
    full = f"{family}{count}"
    return _dns(brief, spot), _dns(family, spot), _dns(full, spot), _dns(full, spot)


def _dns(name: str, suffix: str = "") -> str:
    """Lower-case letters, digits and single hyphens, at most 63 characters with the suffix."""
    clean = _NOT_NAME.sub("-", name.lower()).strip("-") or "pool"
    return clean[: _NAME_LIMIT - len(suffix)].rstrip("-") + suffix
