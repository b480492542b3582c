"""What users read of a server's move: how late its requests were, and how many failed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rightpool.api.latency import Latency
from rightpool.api.wording import number
from rightpool.planning.judge.traffic import TrafficComparison, TrafficVerdict


def traffic_text(found: TrafficComparison, target: Latency | None) -> str:
    """What the requests show that the new side has answered."""
    of = f"of {number(found.requests)} requests there"
    if found.verdict is TrafficVerdict.FAILING:
        return f"{found.failed:.1%} {of} failed, more than before: see the server's log"
    if target is None:
        return f"{found.failed:.1%} {of} failed"
    one = target.percentile
    before = "" if found.old_late is None else f", where it was {found.old_late:.1%}"
    slow = f"{found.late:.1%} {of} took over {number(1000.0 * one.seconds)} ms"
    return f"{slow}{before}; {one.name} allows {1.0 - one.share:.0%}"


def slow_text(longer: Sequence[float], spare: float) -> str:
    """That batches take longer than the limit has room for. longer: logs, against what was promised."""
    took = math.exp(math.fsum(longer) / len(longer))
    return f"batches take {took:.2g} times as long as promised there, and the peak has room for {spare:.2g} times"
