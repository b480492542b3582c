"""A traced program is slower, and what a trace says of its steps is of slow ones: kernels take as long as ever, and
launches take longer. So the time of work belongs over the usual step, and waits are what is left of that.
"""

from collections.abc import Mapping
from typing import Final

from rightpool import contract

_WORK: Final = frozenset(
    {
        contract.PART_COMPUTE,
        contract.PART_OVERLAPPED_COMMUNICATION,
        contract.PART_EXPOSED_COMMUNICATION,
        contract.PART_MEMCPY,
    }
)


def slowdown(parts: Mapping[str, float], traced: float | None, usual: float | None) -> float:
    """How many times as long a traced step took as it does usually, but not more than its work allows. 1 where that is
    not known, or where it took no longer. traced, usual: seconds of a step."""
    work = sum(share for part, share in parts.items() if part in _WORK)
    if traced is None or usual is None or traced <= usual or usual <= 0.0 or not work:
        return 1.0
    return max(1.0, min(traced / usual, 1.0 / work))


def at_usual_pace(parts: Mapping[str, float], slowdown: float) -> dict[str, float]:
    """Shares of a step at its usual pace. They sum to 1 as before."""
    if slowdown <= 1.0:
        return dict(parts)
    found = {part: share * slowdown if part in _WORK else share for part, share in parts.items()}
    left = max(0.0, 1.0 - sum(share for part, share in found.items() if part in _WORK))
    waits = sum(share for part, share in found.items() if part not in _WORK)
    return {part: share if part in _WORK or not waits else share * left / waits for part, share in found.items()}
