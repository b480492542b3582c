"""Publishes discovered pools as AcceleratorPools, and the status of all pools. Unchanged ones are not written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

from rightpool.api.conditions import Condition, PoolConditionType, Reason, find_condition, set_conditions
from rightpool.api.outcome import MoveOutcome
from rightpool.api.past_price import PastPrice
from rightpool.api.pool import AcceleratorPoolSpec, AcceleratorPoolStatus, ChipTotals, PriceSpec
from rightpool.api.spot_use import SpotUse
from rightpool.api.wording import chips, how_many, sentence
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import ACCELERATOR_POOLS
from rightpool.contract import LABEL_SOURCE, SOURCE_DISCOVERED
from rightpool.hardware.accelerator import Figures, FigureSource, Price
from rightpool.hardware.calibration import agreement, uncalibrated
from rightpool.hardware.chart_values import VALUES
from rightpool.hardware.inventory import ProblemKind
from rightpool.hardware.pool import Pool
from rightpool.hardware.price_history import JUMP, STOOD, with_price
from rightpool.planning.allocate.breaker import Outcomes
from rightpool.planning.offers.evidence import Limit
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.runtime.act.status_publisher import StatusPublisher, stored_conditions
from rightpool.runtime.observe.facts import meta
from rightpool.runtime.observe.pool_inventory import PoolInventory, foreign_fields, kept_calibrations, kept_prices
from rightpool.runtime.observe.store import Store

# That there are no nodes comes of what else is wrong, which is said first.
_WITHOUT: Final = frozenset({ProblemKind.NO_NODES, ProblemKind.NODES_NOT_READY})
_UNUSABLE: Final = frozenset({ProblemKind.UNKNOWN_ACCELERATOR, ProblemKind.INVALID_SLICE})
_ABOUT_PRICE: Final = frozenset(
    {ProblemKind.PRICE_UNKNOWN, ProblemKind.PRICE_UNVERIFIED, ProblemKind.PRICE_VALUES_INVALID}
)
_ABOUT_FIGURES: Final = frozenset({ProblemKind.CHIP_VALUES_INVALID, ProblemKind.UNCALIBRATED})
_CONTRADICTORY: Final = frozenset({ProblemKind.PRICE_CONTRADICTORY})
_CHIP: Final = frozenset({ProblemKind.CHIP_CONTRADICTORY})
_ASKED_ANEW: Final = 86_400.0  # seconds
_FOREIGN: Final = frozenset({"calibration"})  # `rightpool calibrate` applies it

ClosedPools = Mapping[str, Sequence[RejectionReason]] | None
"""Pools that no job may use, with what rules them out; None where that is not known."""

_Verdict = tuple[PoolConditionType, Literal["True", "False", "Unknown"], Reason, str]

logger = logging.getLogger(__name__)


class PoolPublisher:
    """Writes AcceleratorPools. Only the leader uses it."""

    def __init__(self, client: ClusterClient, store: Store, statuses: StatusPublisher) -> None:
        self._client = client
        self._store = store
        self._statuses = statuses
        self._outcomes: Outcomes = {}
        self._against: Mapping[str, Limit] = {}
        self._closed: ClosedPools = None
        self._spot_uses: Mapping[str, tuple[SpotUse, ...]] = {}
        self._priced: dict[str, _Verdict] = {}
        """By pool, what this operator has written of its price."""
        self._logged: set[tuple[str, str]] = set()

    def publish(
        self,
        fleet: PoolInventory,
        now: float,
        outcomes: Outcomes | None = None,
        against: Mapping[str, Limit] | None = None,
        closed: ClosedPools = None,
        spot_uses: Mapping[str, tuple[SpotUse, ...]] = MappingProxyType({}),
    ) -> int:
        """Publish all pools; the number of writes. A failed write of one pool does not affect the others.

        outcomes: how moves to each pool ended. against: what holds moves to a pool back. closed: see ClosedPools.
        spot_uses: what jobs have met on spot capacity.
        """
        self._outcomes, self._against, self._closed = outcomes or {}, against or {}, closed
        self._spot_uses = spot_uses
        writes = 0
        for name in sorted(fleet.discovered & fleet.inventory.pools.keys()):
            writes += self._guarded(name, self._publish_spec, fleet, now)
        for name in sorted(fleet.objects):
            writes += self._guarded(name, self._publish_status, fleet, now)
        for nodes in fleet.without_pool():
            if (nodes.reason.value, nodes.evidence) not in self._logged:
                self._logged.add((nodes.reason.value, nodes.evidence))
                logger.warning("%d nodes belong to no pool: %s", len(nodes.nodes), nodes.message)
        return writes

    def _guarded(self, name: str, write: Any, fleet: PoolInventory, now: float) -> int:
        try:
            return int(write(name, fleet, now))
        except ClusterError as error:
            logger.warning("AcceleratorPool %s: %s", name, error.message)
            return 0

    def _publish_spec(self, name: str, fleet: PoolInventory, now: float) -> bool:
        spec = fleet.specs[name]
        stored = fleet.objects.get(name)
        if stored is not None and AcceleratorPoolSpec.model_validate(stored.get("spec") or {}) == spec:
            return False
        foreign = foreign_fields(stored or {})
        body: dict[str, Any] = {
            "metadata": {"name": name, "labels": {LABEL_SOURCE: SOURCE_DISCOVERED}},
            "spec": {key: value for key, value in spec.to_dict().items() if key not in foreign},
        }
        self._store.assume(ACCELERATOR_POOLS, self._client.apply(ACCELERATOR_POOLS, body))
        logger.info("AcceleratorPool %s: %s from node labels", name, "updated" if stored else "created")
        return True

    def _publish_status(self, name: str, fleet: PoolInventory, now: float) -> bool:
        stored = fleet.objects[name]
        outcomes, against = self._outcomes.get(name, ()), self._against.get(name)
        own = _price(name, fleet, now)
        price = self._price_to_say(name, own, stored, now)
        uses = self._spot_uses.get(name, ())
        status = pool_status(name, fleet, now, outcomes, against, self._closed, price, uses)
        spec = fleet.specs.get(name)
        scaled = spec is not None and spec.max_chips is not None
        written = self._statuses.publish(
            ACCELERATOR_POOLS, stored, status, PoolConditionType, foreign=_FOREIGN, scaled=scaled
        )
        if written:
            self._priced[name] = own
        return written

    def _price_to_say(self, name: str, own: _Verdict, stored: Mapping[str, Any], now: float) -> _Verdict:
        """What is said of the price. Where another operator, by other values of its chart, has written otherwise after
        this one, both say that they differ: else each would overwrite the other in every cycle. A third one leaves what
        two have said. Once a day this one says what it knows itself, since the others may be gone."""
        written = find_condition(stored_conditions(stored, PoolConditionType), PoolConditionType.PRICE_KNOWN)
        if written is None or self._priced.get(name) != own:
            return own
        kind, truth, reason, message = own
        message = sentence(message)  # as it was written
        if (written.status, written.reason, written.message) == (truth, reason, message):
            return own
        if written.reason != Reason.PRICE_CONTRADICTORY:
            remedy = "give both the same catalog.prices, or set spec.price"
            differ = sentence("two operators differ", *sorted((message, written.message)), remedy=remedy)
            return kind, "False", Reason.PRICE_CONTRADICTORY, differ
        if now - (written.last_transition_time or now) > _ASKED_ANEW:
            return own
        return kind, "False", Reason.PRICE_CONTRADICTORY, written.message


def pool_status(
    name: str,
    fleet: PoolInventory,
    now: float,
    outcomes: Sequence[MoveOutcome] = (),
    against: Limit | None = None,
    closed: ClosedPools = None,
    price: _Verdict | None = None,
    spot_uses: Sequence[SpotUse] = (),
) -> Mapping[str, Any]:
    """The status of a stored pool, in wire form. against: what holds moves to it back. closed: see ClosedPools. price:
    what is said of it; None for what this operator knows. spot_uses: what jobs have met on its spot capacity.

    It does not depend on the namespaces that this operator watches: several operators, each with namespaces of its own,
    may write the status of the same pool, and must write the same.
    """
    stored = fleet.objects[name]
    generation = int(meta(stored).get("generation") or 0)
    pool = fleet.inventory.pools.get(name)
    made = [
        Condition(kind.value, status, reason.value, message, generation)
        for kind, status, reason, message in (
            _ready(name, fleet),
            price or _price(name, fleet, now),
            _figures(name, fleet),
            _calibrated(name, fleet),
            _trusted(against, now),
            _allowed(name, fleet, closed),
        )
    ]
    conditions = set_conditions(stored_conditions(stored, PoolConditionType), made, now)
    total, free = (0, 0) if pool is None else (pool.total, pool.free)
    chips = ChipTotals(total=total)
    if fleet.usage_known:
        chips = ChipTotals(total=total, allocated=max(0, total - free), free=free)
    return AcceleratorPoolStatus(
        observed_generation=generation,
        nodes=0 if pool is None else pool.nodes,
        chips=chips,
        outcomes=list(outcomes),
        prices=list(_prices(name, None if price is not None and _differ(price) else pool, stored, now)),
        spot_uses=list(spot_uses),
        conditions=conditions,
    ).to_dict()


def _differ(price: _Verdict) -> bool:
    return price[2] is Reason.PRICE_CONTRADICTORY


def _prices(name: str, pool: Pool | None, stored: Mapping[str, Any], now: float) -> tuple[PastPrice, ...]:
    """What the pool has cost, the present price included; what is stored without a pool: where it can't be used, and
    where operators know other prices of it, which would look like one that changes every few minutes."""
    return kept_prices({name: stored}).get(name, ()) if pool is None else with_price(pool.prices, pool.price, now)


def _ready(name: str, fleet: PoolInventory) -> _Verdict:
    problems = [problem for problem in fleet.inventory.problems if problem.pool == name]
    unusable = any(problem.kind in _UNUSABLE for problem in problems)
    silent = _ABOUT_PRICE if unusable else _ABOUT_PRICE | _ABOUT_FIGURES
    causes_first = sorted((one for one in problems if one.kind not in silent), key=lambda one: one.kind in _WITHOUT)
    message = "; ".join(one.message for one in causes_first)
    if name in fleet.unreadable:
        return PoolConditionType.READY, "False", Reason.INVALID_SPEC, fleet.unreadable[name]
    if unusable:
        return PoolConditionType.READY, "False", Reason.ACCELERATOR_UNKNOWN, message
    if any(problem.kind in _CONTRADICTORY for problem in problems):
        return PoolConditionType.READY, "False", Reason.PRICE_CONTRADICTORY, message
    if any(problem.kind in _CHIP for problem in problems):
        return PoolConditionType.READY, "False", Reason.CHIP_CONTRADICTORY, message
    pool = fleet.inventory.pools.get(name)
    if pool is not None and pool.nodes:
        ready = message or f"{how_many(pool.nodes, 'node')} with {chips(pool.total)}"
        if fleet.refused is None or not fleet.whole:  # who sees some namespaces counts none of these chips
            return PoolConditionType.READY, "True", Reason.NODES_READY, ready
        unknown = (
            f"{ready}, and those that other pods use count as free, because the operator may not list pods: give its "
            f"ServiceAccount that right; {fleet.refused}"
        )
        return PoolConditionType.READY, "True", Reason.PODS_NOT_COUNTED, unknown
    matching = sum(owner == name for owner in fleet.inventory.owners.values())
    if matching:
        none_ready = message or f"no node can take pods, of {matching} that match"
        return PoolConditionType.READY, "False", Reason.NODES_NOT_READY, none_ready
    return PoolConditionType.READY, "False", Reason.NO_NODES, message or "no node matches, except nodes of other pools"


def _price(name: str, fleet: PoolInventory, now: float) -> _Verdict:
    pool = fleet.inventory.pools.get(name)
    if pool is not None and pool.believed(now) is not pool:
        before = pool.believed(now).price
        message = (
            f"{_dollars(pool.price)} is {JUMP:g} times more or less than any price so far, {_dollars(before)} counts "
            f"until it has stood for {STOOD / 3600.0:g} h: correct spec.price if it is wrong"
        )
        return PoolConditionType.PRICE_KNOWN, "True", Reason.PRICE_SUSPECT, message
    spec = fleet.specs.get(name)
    problems = [problem for problem in fleet.inventory.problems if problem.pool == name]
    doubt = "; ".join(problem.message for problem in problems if problem.kind in _ABOUT_PRICE)
    if spec is not None and spec.price not in (None, PriceSpec()):
        return PoolConditionType.PRICE_KNOWN, "True", Reason.PRICE_DECLARED, doubt
    price = None if pool is None else pool.price
    if pool is None or price is None or price.source is None:
        return PoolConditionType.PRICE_KNOWN, "False", Reason.PRICE_UNKNOWN, doubt or "set spec.price.perChipHour"
    dollars = f"{_dollars(price)} for a chip-hour"
    if price.source is FigureSource.VALUES:
        message = f"{dollars}, by catalog.prices of {VALUES}"
        return PoolConditionType.PRICE_KNOWN, "True", Reason.PRICE_FROM_VALUES, message
    invalid = any(problem.kind is ProblemKind.PRICE_VALUES_INVALID for problem in problems)
    reason = Reason.VALUES_INVALID if invalid else Reason.PRICE_FROM_CATALOG
    return PoolConditionType.PRICE_KNOWN, "True", reason, doubt or f"{dollars}, by the catalog"


def _dollars(price: Price) -> str:
    return f"${price.spot if price.on_demand is None else price.on_demand:g}"


def _figures(name: str, fleet: PoolInventory) -> _Verdict:
    pool = fleet.inventory.pools.get(name)
    if pool is None:
        spec = fleet.specs.get(name)
        lacking = "the pool can't be read" if spec is None else f"see Ready about {spec.accelerator}"
        return PoolConditionType.FIGURES_VERIFIED, "Unknown", Reason.ACCELERATOR_UNKNOWN, lacking
    chip = pool.accelerator
    source = chip.provenance.get("peak_flops", "")
    problems = [problem for problem in fleet.inventory.problems if problem.pool == name]
    invalid = "; ".join(problem.message for problem in problems if problem.kind is ProblemKind.CHIP_VALUES_INVALID)
    if chip.figures is Figures.MEASURED and chip.measured is not None:
        return PoolConditionType.FIGURES_VERIFIED, "True", Reason.MEASURED, chip.measured.message
    if chip.figures is Figures.ESTIMATED:
        message = "; ".join(filter(None, (invalid, uncalibrated(name, chip))))
        return PoolConditionType.FIGURES_VERIFIED, "False", Reason.POOL_UNCALIBRATED, message
    if invalid:
        return PoolConditionType.FIGURES_VERIFIED, "False", Reason.VALUES_INVALID, invalid
    if chip.declared is not None:
        by_values = chip.declared.source is FigureSource.VALUES
        reason = Reason.CHIP_FROM_VALUES if by_values else Reason.CHIP_DECLARED
        message = f"{chip.declared.where} says what {chip.key} can do; predictions rest on it until jobs have run there"
        return PoolConditionType.FIGURES_VERIFIED, "False", reason, message
    if chip.figures is Figures.VERIFIED:
        return PoolConditionType.FIGURES_VERIFIED, "True", Reason.TWO_SOURCES, source
    message = f"no second source confirms the figures of {chip.key}; {source}"
    return PoolConditionType.FIGURES_VERIFIED, "False", Reason.ONE_SOURCE, message


def _calibrated(name: str, fleet: PoolInventory) -> _Verdict:
    stored = fleet.objects[name]
    kept = kept_calibrations({name: stored}).get(name)
    if kept is None and (stored.get("status") or {}).get("calibration") is not None:
        message = f"status.calibration can't be read; run `rightpool calibrate {name}` again"
        return PoolConditionType.CALIBRATED, "Unknown", Reason.CALIBRATION_UNREADABLE, message
    spec = fleet.specs.get(name)
    accelerator = "unknown" if spec is None else spec.accelerator
    pool = fleet.inventory.pools.get(name)
    return PoolConditionType.CALIBRATED, *agreement(name, kept, accelerator, None if pool is None else pool.accelerator)


def _trusted(against: Limit | None, now: float) -> _Verdict:
    if against is None:
        return PoolConditionType.TRUSTED, "True", Reason.BREAKER_CLOSED, ""
    return PoolConditionType.TRUSTED, "False", against.reason, against.text(now)


def _allowed(name: str, fleet: PoolInventory, closed: ClosedPools) -> _Verdict:
    pool = fleet.inventory.pools.get(name)
    if pool is None or not pool.total:
        return PoolConditionType.ALLOWED, "Unknown", Reason.NO_NODES, "see Ready"
    if closed is None or not fleet.whole:
        return PoolConditionType.ALLOWED, "Unknown", Reason.NO_JOBS_SEEN, ""
    if name not in closed:
        return PoolConditionType.ALLOWED, "True", Reason.JOBS_ALLOWED, ""
    why = ", ".join(closed[name])
    message = sentence(f"no job may use these chips; {why}", remedy="see `rightpool explain JOB`")
    return PoolConditionType.ALLOWED, "False", Reason.NOBODY_ALLOWED, message
