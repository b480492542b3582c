"""How often spot capacity is taken away: as often as somebody says, until it was counted.

The rate has a Gamma distribution. What the pool or the policy says is its mean at first, and counts as much as half a
day would. Jobs of the namespace that asks count each. Every other namespace is one witness, however many jobs it
has: it counts as if one job had met the mean of what its jobs have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from rightpool.api.spot_use import SpotUse
from rightpool.api.units import DAY, HOUR

PRIOR_DAYS: Final = 0.5
"""Days that what is said counts for."""
_HALF_LIFE: Final = 7.0 * DAY


def interruptions_a_day(uses: Iterable[SpotUse], declared: float, tenant: str, now: float) -> float:
    """For each day that a job of this tenant has chips. declared: by the pool or the policy. now: Unix seconds."""
    count, days = declared * PRIOR_DAYS, PRIOR_DAYS
    for use in uses:
        known = aged(use, now)
        weight = 1.0 if known.tenant == tenant or known.hours <= 0.0 else min(known.span / known.hours, 1.0)
        count += weight * known.interruptions
        days += weight * known.hours * HOUR / DAY
    return count / days


def aged(use: SpotUse, now: float) -> SpotUse:
    """What of it still counts."""
    left = 0.5 ** (max(now - use.as_of, 0.0) / _HALF_LIFE)
    return replace(
        use,
        as_of=max(now, use.as_of),
        interruptions=left * use.interruptions,
        hours=left * use.hours,
        span=left * use.span,
    )
