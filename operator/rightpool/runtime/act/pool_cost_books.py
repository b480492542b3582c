"""What pools cost, booked once a minute and stored every ten, in one ConfigMap of the operator's own namespace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rightpool.cluster.client import ClusterClient
from rightpool.contract import LABEL_POOL_COSTS
from rightpool.hardware.pool import Pool
from rightpool.planning.books.pool_costs import PoolCosts
from rightpool.reporting.pool_costs_object import NAME, is_pool_costs, pool_costs_object, read_pool_costs
from rightpool.runtime.act.config_maps import ConfigMaps, Form, MapEntry
from rightpool.runtime.act.fence import Fence

STORE_SECONDS: Final = 600.0
_FORM: Final = Form(
    "what pools cost", LABEL_POOL_COSTS, is_pool_costs, pool_costs_object, read_pool_costs, anew=PoolCosts
)


class PoolCostBooks:
    """Used by the planner's thread alone; writes run on the client's threads."""

    def __init__(self, client: ClusterClient, fence: Fence, namespace: str) -> None:
        self._maps: ConfigMaps[str, PoolCosts] = ConfigMaps(client, fence, namespace, _FORM, writes_at_once=1)

    def follow(self) -> None:
        """This process does not lead: another one books."""
        self._maps.follow()

    def minute(self, pools: Iterable[Pool], now: float) -> None:
        """Book what a minute has cost, and store it if that is due."""
        self._maps.collect()
        if self._maps.kept is None:
            self._maps.load(now)
        kept = self._maps.kept
        if kept is None:
            return
        one = kept.setdefault(NAME, MapEntry(PoolCosts(), saved_at=now))
        before = one.value.until
        one.value.book(pools, now)
        one.dirty |= bool(one.value.rows) and one.value.until != before
        if one.dirty and now - one.saved_at >= STORE_SECONDS:
            self._maps.save(self._maps.waiting(), now)

    def flush(self) -> None:
        """Store what is not stored yet, at the end of the process."""
        self._maps.flush()
