"""What a step's time goes to, from the operations in a trace.

Each device's time is covered by the sets of moments in which it computes, communicates or copies. Their measures,
within a window of whole steps, are the shares:

    compute                   computing, and not communicating at the same time
    overlapped communication  both: it costs nothing
    exposed communication     communicating and not computing: what a faster link would save. It includes the wait for
                              slower peers, which is spent inside the collective
    memcpy                    copying alone
    idle                      none of it: launches, input, the host

They sum to 1. Several devices are averaged.
"""

from collections.abc import Iterable

from rightpool import contract
from rightpool_profiler.traces import intervals
from rightpool_profiler.traces.devices import Device, Work, spans_of
from rightpool_profiler.traces.xspace import Plane


def shares(planes: Iterable[Plane]) -> dict[str, float] | None:
    """Shares of one step by part; None if the trace holds no whole step of device work."""
    work = Work()
    for number, plane in enumerate(planes):
        for place, line in enumerate(plane.lines):
            for event in line.events:
                work.add(number, plane.name, place, line.name, event)
    _, devices = work.devices()
    found = [measures(device, window) for device in devices if (window := device.window()) and window[0] < window[1]]
    if not found:
        return None
    return {part: sum(one[part] / sum(one.values()) for one in found) / len(found) for part in found[0]}


def measures(device: Device, window: tuple[int, int]) -> dict[str, int]:
    """Time of a device by part, which together are its window."""
    compute, communication, copy = (
        intervals.clip(spans_of(spans), *window) for spans in (device.compute, device.communication, device.copy)
    )
    overlapped = intervals.length(intervals.intersection(compute, communication))
    working = intervals.union([*compute, *communication])
    everything = intervals.length(intervals.union([*working, *copy]))
    return {
        contract.PART_COMPUTE: intervals.length(compute) - overlapped,
        contract.PART_OVERLAPPED_COMMUNICATION: overlapped,
        contract.PART_EXPOSED_COMMUNICATION: intervals.length(communication) - overlapped,
        contract.PART_MEMCPY: everything - intervals.length(working),
        contract.PART_IDLE: window[1] - window[0] - everything,
    }
