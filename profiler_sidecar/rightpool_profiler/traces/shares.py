"""What a step's time goes to, from the operations in a trace: the parts of `sweep`, within a window of whole steps.

They sum to 1. Several devices are averaged.
"""

from collections.abc import Iterable
from typing import Final

from rightpool import contract
from rightpool_profiler.traces.devices import Work
from rightpool_profiler.traces.sweep import sweep
from rightpool_profiler.traces.xspace import Plane

PARTS: Final = (
    contract.PART_COMPUTE,
    contract.PART_OVERLAPPED_COMMUNICATION,
    contract.PART_EXPOSED_COMMUNICATION,
    contract.PART_MEMCPY,
    contract.PART_IDLE,
)
"""Those that the operations of a device tell apart."""


def shares(planes: Iterable[Plane]) -> dict[str, float] | None:
    """Shares of one step by part; None if the trace holds no whole step of device work."""
    work = Work()
    for number, plane in enumerate(planes):
        for place, line in enumerate(plane.lines):
            for event in line.events:
                work.add(number, plane.name, place, line.name, event)
    found = []
    for device in work.devices()[1]:
        window = device.window()
        if window is not None and window[0] < window[1]:
            parts = sweep(work.work(device), window).parts(PARTS)
            found.append({part: time / (window[1] - window[0]) for part, time in parts.items()})
    return {part: sum(one[part] for one in found) / len(found) for part in PARTS} if found else None
