"""The chips of simulated pools: nodes, and which pods hold what of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from rightpool.api.placement import Placement
from rightpool.api.spot_use import SpotUse
from rightpool.hardware.accelerator import Price
from rightpool.hardware.pool import OpenNode, Pool
from rightpool.hardware.price_history import with_price


@dataclass(slots=True)
class SimulatedPool:
    """A pool, with the free chips of each of its nodes."""

    pool: Pool
    """As it is without any pod."""
    gone: bool = False
    """Whether it, with its nodes, is not there now."""
    taken_at: float = -math.inf
    """When its nodes were last taken away, as spot capacity is, Unix seconds; -inf where they never were."""
    back_at: float = -math.inf
    """When others came in their place."""
    free: list[int] = field(init=False)
    """By node."""
    charged: float = field(init=False)
    """Dollars that a chip-hour truly costs, whatever is typed."""
    _seen: Pool | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.free = [self.pool.chips_per_node] * (self.pool.total // self.pool.chips_per_node)
        price = self.pool.price
        self.charged = (price.spot if price.on_demand is None else price.on_demand) or 0.0

    def priced(self, dollars: float, charged: float | None = None) -> None:
        """A chip-hour is said to cost this from now on. charged: what it costs where that is a mistake."""
        self.charged = dollars if charged is None else charged
        self.pool, self._seen = replace(self.pool, price=Price(dollars)), None

    def remember(self, now: float, uses: tuple[SpotUse, ...]) -> None:
        """The present price counts as one that the pool has had, as in its status. now: Unix seconds. uses: what jobs
        have met on its spot capacity."""
        prices = with_price(self.pool.prices, self.pool.price, now)
        if prices != self.pool.prices or uses != self.pool.spot_uses:
            self.pool, self._seen = replace(self.pool, prices=prices, spot_uses=uses), None

    def take(self, now: float, until: float) -> None:
        """All of its nodes are taken away now, and what is on them ends; others come at `until`. Unix seconds."""
        self.taken_at, self.back_at, self._seen = now, until, None

    def has_nodes(self, now: float) -> bool:
        """Whether pods can be there. now: Unix seconds."""
        return not self.gone and not self.taken_at <= now < self.back_at

    def seen(self, now: float) -> Pool:
        """The pool as the operator sees it now, Unix seconds."""
        if not self.has_nodes(now):
            return replace(self.pool, total=0, free=0, nodes=0, open_nodes=())
        if self._seen is None:
            nodes = tuple(OpenNode(f"node-{number}", free) for number, free in enumerate(self.free) if free)
            self._seen = replace(self.pool, free=sum(self.free), nodes=len(self.free), open_nodes=nodes)
        return self._seen

    def bind(self, placement: Placement) -> tuple[int, ...] | None:
        """The nodes of its pods, all or none; the fullest node that has room for a pod is taken first."""
        each, self._seen = placement.chips_per_replica, None
        taken: list[int] = []
        for _ in range(placement.replicas):
            fitting = [(free, node) for node, free in enumerate(self.free) if free >= each]
            if not fitting:
                for node in taken:
                    self.free[node] += each
                return None
            _, node = min(fitting)
            self.free[node] -= each
            taken.append(node)
        return tuple(taken)

    def release(self, placement: Placement, nodes: tuple[int, ...]) -> None:
        """The pods are gone."""
        self._seen = None
        for node in nodes:
            self.free[node] += placement.chips_per_replica
