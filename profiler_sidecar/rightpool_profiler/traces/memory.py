"""The memory that a program has in use over the time of a trace: how much at most, and when."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rightpool_profiler.traces.spans import Spans
from rightpool_profiler.traces.sweep import Window

TIMELINE: Final = 24
"""Parts of the time of which the most memory is told, one after the other."""
STEPS: Final = 16
"""Steps, the last ones, of which is told what is in use when they end."""
OTHERS: Final = 8
"""Devices beside the one that has most in use, of which the peak is told."""

_MAX_OWNERS: Final = 256
_MOST: Final = 1 << 50  # bytes: more than any device has


class Owner(NamedTuple):
    """Whose memory it is."""

    name: str
    """The device or its allocator, as the framework calls it."""
    host: bool
    """Whether it is memory of the host."""
    whole: bool = True
    """Whether its bytes in use count what was allocated before the trace. Where not, those of its start count as 0."""


@dataclass(frozen=True, slots=True)
class DevicePeak:
    """Of one device of several."""

    device: str
    """As the framework calls it, or its allocator."""
    peak: int
    """Bytes in use at most, in the time that was traced."""
    reserved: int | None
    """Bytes that the allocator holds of the device at most; None where the trace does not say."""

    def to_dict(self) -> dict[str, Any]:
        return _known({"device": self.device, "peak": self.peak, "reserved": self.reserved})


@dataclass(frozen=True, slots=True)
class Memory:
    """Of the device, or the allocator, that has most in use; else of the host."""

    device: str
    """As the framework calls it, or its allocator."""
    peak: int
    """Bytes in use at most, in the time that was traced."""
    at: float
    """When, as a share of that time."""
    timeline: tuple[int, ...]
    """Bytes in use at most in each of TIMELINE equal parts of it."""
    reserved: int | None = None
    """Bytes that the allocator holds of the device at most; None where the trace does not say."""
    capacity: int | None = None
    """Bytes that the device has; None where the trace does not say."""
    step: float | None = None
    """When the peak is, as a share of the step that it is in; None where the trace does not say."""
    phase: str | None = None
    """One of contract.TRACE_PHASES: what the program does then; None where the trace does not say."""
    ends: tuple[int, ...] = ()
    """Bytes in use at the end of each step, of STEPS at most."""
    others: tuple[DevicePeak, ...] = ()
    """Further devices of the process, those that have most first."""

    def to_dict(self) -> dict[str, Any]:
        found = {
            "device": self.device,
            "peak": self.peak,
            "at": self.at,
            "timeline": list(self.timeline),
            "reserved": self.reserved,
            "capacity": self.capacity,
            "step": self.step,
            "phase": self.phase,
            "ends": list(self.ends) or None,
            "others": [one.to_dict() for one in self.others] or None,
        }
        return _known(found)


def _known(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}


@dataclass(slots=True)
class _Allocated:
    levels: Spans
    """Moment, the same again, the bytes in use from then on, and those that the allocator holds; 0 where unknown."""
    first: int
    """Moment of the first one."""
    before: int
    """Bytes in use before it."""
    most: int = 0


@dataclass(slots=True)
class _Course:
    """What one owner had in use within a window."""

    peak: int
    moment: int
    timeline: list[int]
    reserved: int
    ends: list[int]


class Levels:
    """Takes what is allocated and freed, in any order."""

    def __init__(self) -> None:
        self._owners: dict[Owner, _Allocated] = {}

    def add(self, owner: Owner, moment: int, used: int, change: int, held: int | None = None) -> None:
        """used: the owner's bytes in use after a change by so many. held: bytes that its allocator has of the device.
        What no device can have is passed over. Raises ValueError for more owners than there can be, and for times that
        no trace has."""
        if not 0 <= used <= _MOST or used - change > _MOST:
            return
        found = self._owners.get(owner)
        if found is None:
            if len(self._owners) >= _MAX_OWNERS:
                raise ValueError(f"it holds memory of more than {_MAX_OWNERS} devices")
            found = self._owners[owner] = _Allocated(Spans("qq"), moment, used - change)
        found.levels.add(moment, moment, used, held if held is not None and used <= held <= _MOST else 0)
        if moment < found.first:
            found.first, found.before = moment, used - change
        found.most = max(found.most, used)

    def within(
        self,
        window: Window,
        ends: Sequence[int] = (),
        phase: Callable[[int], str | None] = lambda moment: None,
        capacities: Mapping[str, int] | None = None,
    ) -> Memory | None:
        """What a window shows of it; None where nothing was allocated or freed.

        ends: of steps, sorted; where there are some, the window begins with the end of one. phase: that of a moment.
        capacities: bytes of devices by their names.
        """
        owner = self._largest()
        if owner is None or window[1] <= window[0]:
            return None
        ends = [end for end in ends if window[0] < end <= window[1]]
        found = self._course(owner, window, ends)
        capacity = (capacities or {}).get(owner.name)
        beside = [(other, self._course(other, window, ())) for other in self._owners if other.host == owner.host]
        others = [
            DevicePeak(other.name, course.peak, course.reserved or None) for other, course in beside if other != owner
        ]
        return Memory(
            owner.name,
            found.peak,
            (found.moment - window[0]) / (window[1] - window[0]),
            tuple(found.timeline),
            found.reserved or None,
            capacity if capacity is not None and max(found.peak, found.reserved) <= capacity <= _MOST else None,
            _share_of_step(found.moment, window[0], ends),
            phase(found.moment) if found.moment > window[0] else None,  # what is highest at the start came before it
            tuple(found.ends[-STEPS:]),
            tuple(sorted(others, key=lambda one: (-one.peak, one.device))[:OTHERS]),
        )

    def _course(self, owner: Owner, window: Window, ends: Sequence[int]) -> _Course:
        allocated = self._owners[owner]
        base = 0 if owner.whole else allocated.before
        length, place, level = window[1] - window[0], 0, max(0, allocated.before - base)
        found = _Course(level, window[0], [0] * TIMELINE, 0, [])

        def fill(last: int) -> None:
            for part in range(place, last + 1):
                found.timeline[part] = max(found.timeline[part], level)

        for moment, _, used, held in allocated.levels:
            if moment >= window[1]:
                break
            while len(found.ends) < len(ends) and ends[len(found.ends)] < moment:
                found.ends.append(level)
            if moment > window[0]:
                part = (moment - window[0]) * TIMELINE // length
                fill(part)
                place = part
            level = max(0, used - base)
            before = moment <= window[0]
            if before or level > found.peak:
                found.peak, found.moment = level, max(moment, window[0])
            found.timeline[place] = level if before else max(found.timeline[place], level)
            found.reserved = held if before else max(found.reserved, held)
        fill(TIMELINE - 1)
        found.ends += [level] * (len(ends) - len(found.ends))
        return found

    def _largest(self) -> Owner | None:
        return max(self._owners, key=lambda one: (not one.host, self._owners[one].most, one.name), default=None)


def _share_of_step(moment: int, start: int, ends: Sequence[int]) -> float | None:
    """start: of the first step that ends here."""
    for end in ends:
        if start <= moment <= end and start < end:
            return (moment - start) / (end - start)
        start = end
    return None
