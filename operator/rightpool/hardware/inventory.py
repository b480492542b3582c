"""The inventory: AcceleratorPools of the API, nodes and what pods use of them, put together into Pools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from typing import Final

from rightpool.api.past_price import PastPrice
from rightpool.api.pool import AcceleratorPoolSpec, Calibration, Interconnect, LinkKind, LinkSpec, PriceSpec
from rightpool.api.spot_use import SpotUse
from rightpool.api.value_object import value_object
from rightpool.api.wording import sentence
from rightpool.hardware.accelerator import Accelerator, FigureSource, Link, Price
from rightpool.hardware.calibration import calibrated, calibrated_link, uncalibrated
from rightpool.hardware.catalog import Catalog, UnknownAcceleratorError
from rightpool.hardware.clouds import INSTANCE_TYPE, SPOT_LABELS, is_spot
from rightpool.hardware.declared_chip import ChipError, DeclaredChips
from rightpool.hardware.node import NodeFacts, NodeResource, repelled_by
from rightpool.hardware.node_needs import NodeShape
from rightpool.hardware.pool import OpenNode, Pool
from rightpool.hardware.pricing import listed_price

# Links that the catalog has under another name.
_COUNTED_AS: Final = {LinkKind.EFA: LinkKind.ETHERNET}


class ProblemKind(StrEnum):
    """What is wrong with a pool, for its conditions."""

    UNKNOWN_ACCELERATOR = "UnknownAccelerator"  # the pool is left out
    CHIP_CONTRADICTORY = "ChipContradictory"  # spec.chip is not what another pool says, or lacks something; left out
    CHIP_VALUES_INVALID = "ChipValuesInvalid"  # the chart's values say of its chips what can't be used
    UNCALIBRATED = "Uncalibrated"  # figures of its chips are estimated
    PRICE_VALUES_INVALID = "PriceValuesInvalid"  # the chart's values say of their price what can't be used
    INVALID_SLICE = "InvalidSlice"  # the pool is left out
    OVERLAP = "Overlap"  # nodes match several declared pools
    TAINTED = "Tainted"  # nodes carry a taint that the pool does not tolerate; they do not count
    TOO_MANY_CHIPS = "TooManyChips"  # nodes offer more than the pool's nodes have; what is above does not count
    PRICE_CONTRADICTORY = "PriceContradictory"  # of capacity that the pool's nodes are not; the pool is left out
    NODES_NOT_READY = "NodesNotReady"  # nodes match, and none can take pods
    NO_NODES = "NoNodes"  # nothing matches, and nothing can be added
    PRICE_UNKNOWN = "PriceUnknown"  # neither the pool nor the catalog names one
    PRICE_UNVERIFIED = "PriceUnverified"  # a list price that was not checked, or of another region or instance
    UNKNOWN_LINK = "UnknownLink"  # a link without a rate of a kind that the catalog does not know


@value_object
class Problem:
    """Something that is wrong with one pool."""

    pool: str
    """Name of the pool."""

    kind: ProblemKind
    """What is wrong."""

    message: str
    """For the pool's condition, with the field and the remedy."""


@value_object
class Inventory:
    """Pools with what is there, and what is wrong with them."""

    pools: Mapping[str, Pool]
    """Usable pools, by name."""

    owners: Mapping[NodeResource, str]
    """Pool that the chips of each node belong to. A node with chips under several resources, such as MIG slices of
    several sizes, has a pool for each."""

    problems: tuple[Problem, ...]
    """Sorted by pool."""

    usage: Mapping[NodeResource, int]
    """Chips that pods request, by node and resource."""


def build_pools(
    specs: Mapping[str, AcceleratorPoolSpec],
    nodes: Sequence[NodeFacts],
    usage: Mapping[NodeResource, int],
    catalog: Catalog,
    *,
    discovered: Collection[str] = (),
    labels: Mapping[str, Mapping[str, str]] | None = None,
    calibrations: Mapping[str, Calibration] | None = None,
    prices: Mapping[str, tuple[PastPrice, ...]] | None = None,
    spot_uses: Mapping[str, tuple[SpotUse, ...]] | None = None,
) -> Inventory:
    """Pools with what is there, free, and could be added.

    usage: chips that pods request, by node and resource; absent is none. discovered: names of the specs that discovery
    wrote; one of them whose nodes all belong to other pools is dropped without a problem. labels: of the
    AcceleratorPools that are stored, by name. calibrations: what was measured last in each pool, by its name.
    prices: what each has cost so far. spot_uses: what jobs have met on the spot capacity of each.
    """
    measured = calibrations or {}
    problems: list[Problem] = []
    usable: dict[str, Accelerator] = {}
    chips = DeclaredChips(catalog, specs)
    for name in sorted(specs):
        problems += _values_problems(name, specs[name], catalog)
        try:
            usable[name] = calibrated(chips.accelerator(name), measured.get(name))
        except UnknownAcceleratorError as error:
            message = f"spec.accelerator: {error}; or say in spec.chip what its chips can do, at least their memory"
            problems.append(Problem(name, ProblemKind.UNKNOWN_ACCELERATOR, message))
            continue
        except ChipError as error:
            problems.append(Problem(name, ProblemKind.CHIP_CONTRADICTORY, str(error)))
            continue
        for kind, error_of in _CONTRADICTIONS.items():
            reason = error_of(specs[name])
            if reason is not None:
                del usable[name]
                problems.append(Problem(name, kind, reason))
                break
    owners, overlaps = _owners(specs, nodes, frozenset(discovered), frozenset(labels or ()))
    members: defaultdict[str, list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        for resource in node.chips:
            owner = owners.get((node.name, resource))
            if owner is not None:
                members[owner].append(node)
    problems += _overlap_problems(overlaps)
    pools: dict[str, Pool] = {}
    for name, accelerator in usable.items():
        own = members.get(name, [])
        if name in discovered and not own:
            continue
        if accelerator.doubts:
            problems.append(Problem(name, ProblemKind.UNCALIBRATED, uncalibrated(name, accelerator)))
        pool, found = _pool(name, specs[name], accelerator, own, usage, catalog)
        pool = replace(pool, intra_link=calibrated_link(pool, measured.get(name)))
        pools[name] = replace(
            pool,
            labels=dict((labels or {}).get(name, {})),
            discovered=name in discovered,
            prices=(prices or {}).get(name, ()),
            spot_uses=(spot_uses or {}).get(name, ()),
        )
        problems += found
    return Inventory(
        pools=pools,
        owners={chips: pool for chips, pool in owners.items() if pool in pools},
        problems=tuple(sorted(problems, key=lambda problem: (problem.pool, problem.kind, problem.message))),
        usage=usage,
    )


# --- whose node ------------------------------------------------------------------------------------------------------


def _owners(
    specs: Mapping[str, AcceleratorPoolSpec],
    nodes: Iterable[NodeFacts],
    discovered: frozenset[str],
    stored: frozenset[str],
) -> tuple[dict[NodeResource, str], dict[tuple[str, ...], list[str]]]:
    """The pool of each node's chips, and nodes that several declared pools match by the same resource, by those pools.

    Declared before discovered, what is there before what is only found now, then the selector with most labels, then
    the name. So a discovered pool whose selector somebody has edited keeps its nodes, and jobs their pool. Nodes with
    equal labels at the keys that selectors use are matched once: with ten thousand nodes matching each would be slow.
    """
    order = sorted(
        specs, key=lambda name: (name in discovered, name not in stored, -len(specs[name].node_selector), name)
    )
    keys = sorted({key for spec in specs.values() for key in spec.node_selector})
    resources = sorted({spec.resource_name for spec in specs.values()})
    matched: dict[tuple[object, ...], Mapping[str, list[str]]] = {}
    owners: dict[NodeResource, str] = {}
    overlaps: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for node in nodes:
        seen = (*map(node.labels.get, keys), *(bool(node.chips.get(resource)) for resource in resources))
        matching = matched.get(seen)
        if matching is None:
            matching = defaultdict(list)
            for name in order:
                if _matches(specs[name], node):
                    matching[specs[name].resource_name].append(name)
            matched[seen] = matching
        for resource, names in matching.items():
            owners[node.name, resource] = names[0]
            rivals = tuple(name for name in names if name not in discovered)
            if len(rivals) > 1:
                overlaps[rivals].append(node.name)
    return owners, overlaps


def _matches(spec: AcceleratorPoolSpec, node: NodeFacts) -> bool:
    return bool(node.chips.get(spec.resource_name)) and all(
        node.labels.get(key) == value for key, value in spec.node_selector.items()
    )


def _overlap_problems(overlaps: Mapping[tuple[str, ...], Sequence[str]]) -> list[Problem]:
    return [
        Problem(
            rival,
            ProblemKind.OVERLAP,
            f"spec.nodeSelector: {' and '.join(rivals)} select the same nodes ({len(nodes)}, such as {nodes[0]}), and "
            f"these count for {rivals[0]}; narrow the selector",
        )
        for rivals, nodes in overlaps.items()
        for rival in rivals[1:]
    ]


# --- one pool --------------------------------------------------------------------------------------------------------


def _values_problems(name: str, spec: AcceleratorPoolSpec, catalog: Catalog) -> Iterator[Problem]:
    """What of the chart's values would concern the pool, and can't be used. What the pool says itself overrides it."""
    for problem in catalog.problems:
        if problem.accelerator not in ("", spec.accelerator):
            continue
        if not problem.about_price:
            yield Problem(name, ProblemKind.CHIP_VALUES_INVALID, problem.message)
        elif spec.price in (None, PriceSpec()) and spec.accelerator not in catalog.own_prices:
            yield Problem(name, ProblemKind.PRICE_VALUES_INVALID, problem.message)


def _slice_error(spec: AcceleratorPoolSpec) -> str | None:
    if spec.slice is None or spec.slice.chips % spec.chips_per_node == 0:
        return None
    return (
        f"spec.slice.chips: {spec.slice.chips} is no whole number of nodes of {spec.chips_per_node} chips; "
        "correct it or spec.chipsPerNode"
    )


def _price_error(spec: AcceleratorPoolSpec) -> str | None:
    """Spot placements of nodes that are on demand would never start, and be billed at a price that nobody pays."""
    if spec.price is None or spec.price.spot_per_chip_hour is None or is_spot(spec.node_selector):
        return None
    key = next((key for key in SPOT_LABELS if key in spec.node_selector), None)
    if key is None:
        return None
    asked = f"{key}={spec.node_selector[key]}"
    return (
        f"spec.price.spotPerChipHour: nodes with {asked} are no spot capacity: remove the spot price, or make another "
        "pool for them"
    )


_CONTRADICTIONS: Final = {
    ProblemKind.INVALID_SLICE: _slice_error,
    ProblemKind.PRICE_CONTRADICTORY: _price_error,
}


def _pool(
    name: str,
    spec: AcceleratorPoolSpec,
    accelerator: Accelerator,
    members: Sequence[NodeFacts],
    usage: Mapping[NodeResource, int],
    catalog: Catalog,
) -> tuple[Pool, list[Problem]]:
    problems: list[Problem] = []
    resource = spec.resource_name
    tolerations = list(spec.tolerations)
    # The taint named after the resource keeps pods off that need no chips; pods that ask for chips may pass it. GKE's
    # admission adds the same toleration.
    for effect in sorted({taint.effect for node in members for taint in node.taints if taint.key == resource}):
        own = {"key": resource, "operator": "Exists", "effect": effect}
        if own not in tolerations:
            tolerations.append(own)
    counted: list[NodeFacts] = []
    closed: list[str] = []
    tainted: list[str] = []
    for node in members:
        if not node.ready or node.unschedulable:
            closed.append("cordoned" if node.ready else "not ready")
            continue
        taint = repelled_by(node, tolerations)
        if taint is None:
            counted.append(node)
        else:
            tainted.append(f"{taint.key}={taint.value}:{taint.effect}")
    if closed and not counted and not tainted:
        states = " and ".join(f"{closed.count(state)} {state}" for state in sorted(set(closed)))
        message = f"no node can take pods: {states}"
        problems.append(Problem(name, ProblemKind.NODES_NOT_READY, message))
    if tainted:
        taints = " or ".join(sorted(set(tainted))[:3])
        message = (
            f"spec.tolerations: nodes with {taints} do not count ({len(tainted)} of {len(members)}); "
            "tolerate it if jobs may run there"
        )
        problems.append(Problem(name, ProblemKind.TAINTED, message))
    above = sorted(node.name for node in members if node.chips.get(resource, 0) > spec.chips_per_node)
    if above:
        message = (
            f"spec.chipsPerNode: nodes that offer more than {spec.chips_per_node} chips count for as many "
            f"({len(above)} of {len(members)}, such as {above[0]}); correct it, or what their device plugin offers"
        )
        problems.append(Problem(name, ProblemKind.TOO_MANY_CHIPS, message))
    there = sum(min(node.chips.get(resource, 0), spec.chips_per_node) for node in members)
    unit = spec.chips_per_node if spec.slice is None else spec.slice.chips
    growable = max(0, (spec.max_chips or 0) - there) // unit * unit
    if not there and not growable:
        message = "no node matches spec.nodeSelector with spec.resourceName allocatable, and spec.maxChips adds none"
        problems.append(Problem(name, ProblemKind.NO_NODES, message))
    price, doubt = _price(name, spec, accelerator, members, catalog)
    problems += doubt
    if spec.spot_interruptions_per_day is not None:
        price = replace(price, interruptions=float(spec.spot_interruptions_per_day))
    links = spec.interconnect or Interconnect()
    intra, intra_doubt = _link(name, "intraNode", links.intra_node, accelerator.intra_link, accelerator, catalog)
    inter, inter_doubt = _link(name, "interNode", links.inter_node, accelerator.inter_link, accelerator, catalog)
    problems += intra_doubt + inter_doubt
    pool = Pool(
        name=name,
        accelerator=accelerator,
        chips_per_node=spec.chips_per_node,
        resource_name=spec.resource_name,
        node_selector=dict(spec.node_selector),
        intra_link=intra,
        inter_link=inter,
        price=price,
        total=0,
        free=0,
        growable=growable,
        nodes=len(counted),
        slice=spec.slice,
        tolerations=tuple(tolerations),
    )
    total, opened = chips_on(pool, counted, usage)
    return replace(pool, total=total, free=sum(node.free for node in opened), open_nodes=opened), problems


def chips_on(
    pool: Pool,
    nodes: Sequence[NodeFacts],
    usage: Mapping[NodeResource, int],
    shape: NodeShape | None = None,
) -> tuple[int, tuple[OpenNode, ...]]:
    """Chips of the pool's nodes that pods can be scheduled on: all, and where those are that no pod requests.

    No node counts for more than the pool's chips_per_node, whatever it offers.
    """
    if pool.slice is None:
        chips = {node.name: min(node.chips.get(pool.resource_name, 0), pool.chips_per_node) for node in nodes}
        left = ((name, offered - max(0, usage.get((name, pool.resource_name), 0))) for name, offered in chips.items())
        return sum(chips.values()), tuple(OpenNode(name, free, shape) for name, free in sorted(left) if free > 0)
    # Hosts count by whole slices; a slice is free when every host is. Without a label that tells slices apart, any
    # hosts make one.
    label, size = pool.accelerator.vendor.slice_label, pool.hosts_per_slice
    slices: defaultdict[str, list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        slices[node.labels.get(label, "") if size > 1 else node.name].append(node)
    total, opened = 0, []
    for name, hosts in sorted(slices.items()):
        idle = [node for node in hosts if not usage.get((node.name, pool.resource_name))]
        total += len(hosts) // size
        opened += [OpenNode(f"{name}/{number}", pool.slice.chips, shape) for number in range(len(idle) // size)]
    return total * pool.slice.chips, tuple(opened)


def _price(
    name: str, spec: AcceleratorPoolSpec, accelerator: Accelerator, members: Iterable[NodeFacts], catalog: Catalog
) -> tuple[Price, list[Problem]]:
    """The pool's own price; the list price where the pool names none at all."""
    declared = spec.price
    if declared is not None and (declared.per_chip_hour is not None or declared.spot_per_chip_hour is not None):
        on_demand, spot = _dollars(declared.per_chip_hour), _dollars(declared.spot_per_chip_hour)
        return Price(on_demand, spot, source=FigureSource.POOL), []
    named = INSTANCE_TYPE in spec.node_selector or is_spot(spec.node_selector)
    listed = listed_price(accelerator, [spec.node_selector] if named else [node.labels for node in members], catalog)
    if listed.doubt is None:
        return listed.price, []
    kind = ProblemKind.PRICE_UNKNOWN if listed.price.source is None else ProblemKind.PRICE_UNVERIFIED
    field = "spotPerChipHour" if is_spot(spec.node_selector) else "perChipHour"
    message = sentence(f"spec.price: {listed.doubt}", remedy=f"set spec.price.{field} to what you pay")
    return listed.price, [Problem(name, kind, message)]


def _dollars(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _link(
    name: str, field: str, spec: LinkSpec | None, default: Link, accelerator: Accelerator, catalog: Catalog
) -> tuple[Link, list[Problem]]:
    """The declared link; its rate by the catalog where only the kind is named."""
    if spec is None:
        return default, []
    kind = _COUNTED_AS.get(spec.kind, spec.kind)
    if spec.gigabytes_per_second is not None:
        return Link(kind, float(spec.gigabytes_per_second) * 1e9), []
    if kind is default.kind:
        return default, []
    link = catalog.link(kind, accelerator)
    if link is None:
        message = f"spec.interconnect.{field}.kind: {spec.kind.value} is not known; counted as {default.kind.value}"
        return default, [Problem(name, ProblemKind.UNKNOWN_LINK, message)]
    return link, []
