"""What is written about pools: discovered ones as objects, and the status of all of them. Only where it differs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import ValidationError

from rightpool.api.conditions import Condition, PoolConditionType, Reason, set_condition
from rightpool.api.pool import AcceleratorPoolSpec, AcceleratorPoolStatus, ChipTotals
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import ACCELERATOR_POOLS
from rightpool.contract import LABEL_SOURCE, SOURCE_DISCOVERED
from rightpool.hardware.inventory import ProblemKind
from rightpool.runtime.facts import meta
from rightpool.runtime.fleet import Fleet, foreign_fields
from rightpool.runtime.persistence import to_time
from rightpool.runtime.store import Store

_UNUSABLE: Final = frozenset({ProblemKind.UNKNOWN_ACCELERATOR, ProblemKind.INVALID_SLICE})
_ABOUT_PRICE: Final = frozenset({ProblemKind.PRICE_UNKNOWN, ProblemKind.PRICE_UNVERIFIED})

logger = logging.getLogger(__name__)


class PoolPublisher:
    """Writes to the cluster, as leader alone."""

    def __init__(self, client: ClusterClient, store: Store) -> None:
        self._client = client
        self._store = store
        self._said: set[tuple[str, str]] = set()

    def publish(self, fleet: Fleet, now: float) -> int:
        """The number of writes. A pool that can't be written does not keep the others from being so."""
        writes = 0
        for name in sorted(fleet.discovered & fleet.inventory.pools.keys()):
            writes += self._guarded(name, self._publish_spec, fleet, now)
        for name in sorted(fleet.objects):
            writes += self._guarded(name, self._publish_status, fleet, now)
        for nodes in fleet.unmapped:
            if (nodes.reason.value, nodes.evidence) not in self._said:
                self._said.add((nodes.reason.value, nodes.evidence))
                logger.warning("%d nodes belong to no pool: %s", len(nodes.nodes), nodes.message)
        return writes

    def _guarded(self, name: str, write: Any, fleet: Fleet, now: float) -> int:
        try:
            return int(write(name, fleet, now))
        except ClusterError as error:
            logger.warning("AcceleratorPool %s: %s", name, error.message)
            return 0

    def _publish_spec(self, name: str, fleet: Fleet, now: float) -> bool:
        wanted = fleet.specs[name]
        stored = fleet.objects.get(name)
        if stored is not None and AcceleratorPoolSpec.model_validate(stored.get("spec") or {}) == wanted:
            return False
        theirs = foreign_fields(stored or {})
        body: dict[str, Any] = {
            "metadata": {"name": name, "labels": {LABEL_SOURCE: SOURCE_DISCOVERED}},
            "spec": {key: value for key, value in wanted.to_dict().items() if key not in theirs},
        }
        self._store.assume(ACCELERATOR_POOLS, self._client.apply(ACCELERATOR_POOLS, body))
        logger.info("AcceleratorPool %s: %s from node labels", name, "updated" if stored else "created")
        return True

    def _publish_status(self, name: str, fleet: Fleet, now: float) -> bool:
        stored = fleet.objects[name]
        status = pool_status(name, fleet, now)
        if status == (stored.get("status") or {}):
            return False
        about = meta(stored)
        body = {"metadata": {"name": name, "uid": about["uid"]}, "status": status}
        self._store.assume(ACCELERATOR_POOLS, self._client.apply(ACCELERATOR_POOLS, body, subresource="status"))
        return True


def pool_status(name: str, fleet: Fleet, now: float) -> Mapping[str, Any]:
    """The status of a stored pool, in wire form.

    It holds what every operator of the cluster would say: several may look after it, each in namespaces of its own, and
    would otherwise correct each other for ever.
    """
    stored = fleet.objects[name]
    generation = int(meta(stored).get("generation") or 0)
    pool = fleet.inventory.pools.get(name)
    conditions = _conditions(stored)
    for kind, status, reason, message in (_ready(name, fleet), _price(name, fleet)):
        condition = Condition(kind.value, status, reason.value, message, generation)
        conditions = set_condition(conditions, condition, to_time(now))
    total, free = (0, 0) if pool is None else (pool.total, pool.free)
    chips = ChipTotals(total=total)
    if fleet.usage_known:
        chips = ChipTotals(total=total, allocated=max(0, total - free), free=free)
    return AcceleratorPoolStatus(
        observed_generation=generation,
        nodes=0 if pool is None else pool.nodes,
        chips=chips,
        conditions=conditions,
    ).to_dict()


def _conditions(stored: Mapping[str, Any]) -> list[Condition]:
    """What was said before, of what is said here: whatever else somebody has written there might leave no room."""
    said = (stored.get("status") or {}).get("conditions") or ()
    known = [condition for condition in said if condition.get("type") in set(PoolConditionType)]
    try:
        return list(AcceleratorPoolStatus.model_validate({"conditions": known}).conditions)
    except ValidationError:
        return []


_Said = tuple[PoolConditionType, Literal["True", "False", "Unknown"], Reason, str]


def _ready(name: str, fleet: Fleet) -> _Said:
    problems = [problem for problem in fleet.inventory.problems if problem.pool == name]
    told = "; ".join(problem.message for problem in problems if problem.kind not in _ABOUT_PRICE)
    if name in fleet.unreadable:
        return PoolConditionType.READY, "False", Reason.INVALID_SPEC, fleet.unreadable[name]
    if any(problem.kind in _UNUSABLE for problem in problems):
        return PoolConditionType.READY, "False", Reason.ACCELERATOR_UNKNOWN, told
    pool = fleet.inventory.pools.get(name)
    if pool is not None and pool.nodes:
        return (
            PoolConditionType.READY,
            "True",
            Reason.NODES_READY,
            told or f"{pool.nodes} nodes with {pool.total} chips",
        )
    matching = sum(owner == name for owner in fleet.inventory.nodes.values())
    if matching:
        message = told or f"{matching} nodes match and none can take pods"
        return PoolConditionType.READY, "False", Reason.NODES_NOT_READY, message
    return PoolConditionType.READY, "False", Reason.NO_NODES, told or "no node matches that is not another pool's"


def _price(name: str, fleet: Fleet) -> _Said:
    pool = fleet.inventory.pools.get(name)
    spec = fleet.specs.get(name)
    doubt = "; ".join(p.message for p in fleet.inventory.problems if p.pool == name and p.kind in _ABOUT_PRICE)
    if spec is not None and spec.price is not None:
        return PoolConditionType.PRICE_KNOWN, "True", Reason.PRICE_DECLARED, doubt
    if pool is not None and pool.price.on_demand is not None:
        message = doubt or f"${pool.price.on_demand:g} for a chip-hour, by the catalog"
        return PoolConditionType.PRICE_KNOWN, "True", Reason.PRICE_FROM_CATALOG, message
    return PoolConditionType.PRICE_KNOWN, "False", Reason.PRICE_UNKNOWN, doubt or "set spec.price.perChipHour"
