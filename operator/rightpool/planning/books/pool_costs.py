"""What the chips of each pool cost by day, whoever held them, and what of it was for chips that nobody held.

With what the jobs have spent there it reconciles: what is left was held by pods that are not this operator's.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from rightpool.hardware.pool import Pool
from rightpool.planning.books.charge import csv_rows
from rightpool.planning.books.chargeback import DAYS

COLUMNS: Final = ("day", "pool", "cost", "idle")
LONGEST_GAP: Final = 900.0
"""Seconds between two looks; what was in a longer time nobody has seen. After a crash it is as long as since the last
write."""


class PoolCost(NamedTuple):
    """Dollars of a pool on a day."""

    cost: float = 0.0
    """For all chips that were there."""
    idle: float = 0.0
    """Of it, for those that no pod requested."""

    def plus(self, other: PoolCost) -> PoolCost:
        """The sum."""
        return PoolCost(self.cost + other.cost, self.idle + other.idle)


@dataclass(slots=True)
class PoolCosts:
    """Of all pools that have a price."""

    rows: dict[tuple[str, str], PoolCost] = field(default_factory=dict)
    """By day, YYYY-MM-DD, and pool."""
    until: float | None = None
    """Unix seconds up to which it counts; None where nothing was looked at."""

    def book(self, pools: Iterable[Pool], now: float) -> None:
        """What pools that are like this have cost since they were last looked at. Older days than the books keep go."""
        seconds = 0.0 if self.until is None else now - self.until
        self.until = now if self.until is None else max(now, self.until)
        if not 0.0 < seconds <= LONGEST_GAP:
            return
        moment = datetime.fromtimestamp(now, UTC).date().isoformat()
        for pool in pools:
            price = pool.price.spot if pool.price.on_demand is None else pool.price.on_demand
            if price:
                dollars = price * seconds / 3600.0
                one = PoolCost(dollars * pool.total, dollars * min(max(pool.free, 0), pool.total))
                key = (moment, pool.name)
                self.rows[key] = self.rows.get(key, PoolCost()).plus(one)
        oldest = datetime.fromtimestamp(now - DAYS * 86_400.0, UTC).date().isoformat()
        for key in [key for key in self.rows if key[0] < oldest]:
            del self.rows[key]

    def sums(self, by: str, since: str) -> dict[str, PoolCost]:
        """By "day" or by "pool", from that day on."""
        found: dict[str, PoolCost] = {}
        for (day, pool), one in self.rows.items():
            if day >= since:
                name = day if by == "day" else pool
                found[name] = found.get(name, PoolCost()).plus(one)
        return found

    def table(self) -> str:
        """The rows as CSV, which people can read in the object."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (day, pool), one in sorted(self.rows.items()):
            writer.writerow((day, pool, f"{one.cost:.6f}", f"{one.idle:.6f}"))
        return text.getvalue()

    @classmethod
    def read(cls, table: str, until: float | None) -> PoolCosts:
        """What was stored. Raises ValueError where it can't be read."""
        made = cls(until=until)
        for row in csv_rows(table, COLUMNS):
            made.rows[row["day"], row["pool"]] = PoolCost(float(row["cost"]), float(row["idle"]))
        return made
