"""The register of an evaluation: placements and typed rejections under the numbers by which columns name them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from rightpool.api.placement import CapacityType, Placement
from rightpool.hardware.price_history import lasts, usual_price
from rightpool.hardware.spot_rate import interruptions_a_day
from rightpool.planning.offers.gates import GATES
from rightpool.planning.offers.rejection import (
    BelowMinSavings,
    Compared,
    DoesNotPayBack,
    NotBetter,
    Rejection,
    Uncertain,
)
from rightpool.prediction.columns import Floats, Ints, floats
from rightpool.prediction.machines import Layout, Machines

# The codes of a column of gates: 0 is none, then come the gates of gates.py, the outcomes of the comparison with the
# current placement, and the rejections that are kept as they are.
NONE = 0
COMPARED: tuple[type[Compared], ...] = (NotBetter, BelowMinSavings, Uncertain, DoesNotPayBack)
FIRST_COMPARED = 1 + len(GATES)
FIRST_KEPT = FIRST_COMPARED + len(COMPARED)


@dataclass(frozen=True, slots=True)
class Options:
    """The placements of a register in columns."""

    pool: Ints
    """A place among the machines."""
    chips: Ints
    """How many."""
    per_group: Ints
    """Chips that share a fast link."""
    groups: Ints
    """How many groups of such chips."""
    price: Floats
    """Dollars an hour; NaN where not known."""
    market: Ints
    """Those with the same number have the same price of a chip: of one pool and capacity type."""
    lasts: Floats
    """Seconds for which the price is likely to last."""
    usual: Floats
    """Dollars an hour in the time that is known; NaN where the price is not known."""
    varies: Floats
    """Standard deviation of the log of that."""


@dataclass(slots=True)
class Register:
    """Grows while an evaluation is made, and is only read from then on."""

    machines: Machines
    """Chips and links of the pools."""
    now: float = 0.0
    """Unix seconds."""
    interruptions: float = 0.0
    """How often a day spot capacity is taken away, of pools that do not say it, until that was counted."""
    placements: list[Placement] = field(default_factory=list)
    """By their number in the columns."""
    rejections: list[Rejection] = field(default_factory=list)
    """By their code in the columns."""
    _numbers: dict[Placement, int] = field(default_factory=dict)
    _interruptions: dict[tuple[str, CapacityType, str], float] = field(default_factory=dict)
    _codes: dict[Rejection, int] = field(default_factory=dict)

    def option(self, placement: Placement) -> int:
        """The number of a placement, whose pool must be among the machines."""
        number = self._numbers.get(placement)
        if number is None:
            number = self._numbers[placement] = len(self.placements)
            self.placements.append(placement)
        return number

    def find(self, placement: Placement) -> int:
        """The number of a placement; -1 where it has none."""
        return self._numbers.get(placement, -1)

    def code(self, rejection: Rejection | None) -> int:
        """The code of a rejection that is kept as it is."""
        if rejection is None:
            return NONE
        code = self._codes.get(rejection)
        if code is None:
            code = self._codes[rejection] = FIRST_KEPT + len(self.rejections)
            self.rejections.append(rejection)
        return code

    def kept(self, code: int) -> Rejection | None:
        """The rejection of such a code; None where it is for none."""
        return None if code == NONE else self.rejections[code - FIRST_KEPT]

    def options(self, now: float) -> Options:
        """All placements so far. now: Unix seconds."""
        pools = [self.machines.index[placement.pool] for placement in self.placements]
        layouts, prices, markets, lasting, usual, varies = [], [], [], [], [], []
        seen = {key: self._prices_of(*key, now) for key in {(p.pool, p.capacity) for p in self.placements}}
        numbers = {key: number for number, key in enumerate(seen)}
        for placement, pool in zip(self.placements, pools, strict=True):
            layouts.append(Layout.of(placement, self.machines.pools[pool]))
            price = self.machines.pools[pool].price.hourly(placement)
            prices.append(math.nan if price is None else price)
            key = placement.pool, placement.capacity
            seconds, per_chip, doubt = seen[key]
            markets.append(numbers[key])
            lasting.append(seconds)
            usual.append(math.nan if per_chip is None else per_chip * placement.chips)
            varies.append(doubt)
        return Options(
            pool=np.array(pools, dtype=np.int64),
            chips=np.array([placement.chips for placement in self.placements], dtype=np.int64),
            per_group=np.array([layout.per_group for layout in layouts], dtype=np.int64),
            groups=np.array([layout.groups for layout in layouts], dtype=np.int64),
            price=floats(prices),
            market=np.array(markets, dtype=np.int64),
            lasts=floats(lasting),
            usual=floats(usual),
            varies=floats(varies),
        )

    def _prices_of(self, name: str, capacity: CapacityType, now: float) -> tuple[float, float | None, float]:
        """Seconds for which the price of a pool lasts; what is usual, dollars for a chip-hour, and its doubt."""
        pool = self.machines.named[name]
        return lasts(pool.prices, capacity, pool.price, now), *usual_price(pool.prices, capacity, pool.price, now)

    def interruptions_of(self, placement: Placement, tenant: str) -> float:
        """How often a day a tenant's job is taken away from a placement."""
        key = placement.pool, placement.capacity, tenant
        known = self._interruptions.get(key)
        if known is None:
            known = self._interruptions[key] = self._interruptions_of(*key)
        return known

    def _interruptions_of(self, name: str, capacity: CapacityType, tenant: str) -> float:
        if capacity is not CapacityType.SPOT:
            return 0.0
        pool = self.machines.named[name]
        declared = self.interruptions if pool.price.interruptions is None else pool.price.interruptions
        return interruptions_a_day(pool.spot_uses, declared, tenant, self.now)
