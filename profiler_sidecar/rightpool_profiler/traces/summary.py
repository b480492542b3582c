"""What a trace says of the time of its steps, whoever has taken it: the form in which the operator gets it.

Parts of the time are shares that sum to 1, as in `sweep`; what takes the time is told by name.
"""

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rightpool_profiler.traces.kinds import kind_of
from rightpool_profiler.traces.memory import Memory
from rightpool_profiler.traces.slowdown import at_usual_pace, slowdown

_SLOWER: Final = 1.05  # the pace of steps differs by so much anyway


@dataclass(frozen=True, slots=True)
class Named:
    """What one kind of operation takes."""

    name: str
    """As the trace has it."""
    count: int
    """How often it ran."""
    share: float
    """Of the time that was traced, 0–1."""
    exposed: float | None = None
    """Of a collective: the share during which nothing is computed."""
    flops: float | None = None
    """Floating-point operations a second while it runs; None where the trace does not say."""
    bytes: float | None = None
    """Bytes that it reads and writes a second, likewise."""

    def to_dict(self) -> dict[str, Any]:
        optional = {"exposed": self.exposed, "flops": self.flops, "bytes": self.bytes}
        known = {name: value for name, value in optional.items() if value is not None}
        return {"name": self.name, "count": self.count, "share": self.share, **known}

    def scaled(self, factor: float) -> "Named":
        """With shares that are so many times as large."""
        return replace(
            self, share=self.share * factor, exposed=None if self.exposed is None else min(1.0, self.exposed * factor)
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """Shares are of the time that was traced, 0–1; of steps at their usual pace where `slowdown` is known."""

    on: str
    """`device` or `host`: whose time it is."""
    seconds: float
    """Length of the time that was traced."""
    steps: int | None
    """Of the program; None where the trace does not say."""
    parts: dict[str, float]
    """Share of each part of `sweep`, by its name."""
    collectives: list[Named] = field(default_factory=list)
    """By their names: what communication between chips takes."""
    operations: list[Named] = field(default_factory=list)
    """By the time that they take themselves: kernels and copies of a device, else operators of the host, or those of
    XLA."""
    kinds: list[Named] = field(default_factory=list)
    """All of those operations by their kind."""
    memory: Memory | None = None
    """None where the trace does not say."""
    slowdown: float | None = None
    """How many times as long a traced step took as it does usually."""

    def at_usual_pace(self, step: float | None) -> "Summary":
        """With the work of a device over the usual step. step: its seconds; None where it is not known."""
        if self.on != "device" or not self.steps:
            return self
        factor = slowdown(self.parts, self.seconds / self.steps, step)
        if factor <= _SLOWER:
            return self
        named = ([one.scaled(factor) for one in some] for some in (self.collectives, self.operations, self.kinds))
        collectives, operations, kinds = named
        return replace(
            self,
            parts=at_usual_pace(self.parts, factor),
            collectives=collectives,
            operations=operations,
            kinds=kinds,
            slowdown=factor,
        )

    def to_dict(self) -> dict[str, Any]:
        """The wire form, between sidecar and operator."""
        return {
            "on": self.on,
            "seconds": self.seconds,
            "steps": self.steps,
            "slowdown": self.slowdown,
            "parts": self.parts,
            "collectives": [one.to_dict() for one in self.collectives],
            "operations": [one.to_dict() for one in self.operations],
            "kinds": [one.to_dict() for one in self.kinds],
            "memory": None if self.memory is None else self.memory.to_dict(),
        }


@dataclass(slots=True)
class _Taken:
    """By all operations of a name."""

    count: int = 0
    time: int = 0
    exposed: int = 0
    costs: list[float] = field(default_factory=lambda: [0.0, 0.0])  # FLOPs and bytes
    timed: list[int] = field(default_factory=lambda: [0, 0])  # time of the operations whose costs are known


class TimeByName:
    """Count, time and costs by name."""

    def __init__(self, second: float) -> None:
        """second: how many units of time make one."""
        self._second = second
        self._found: dict[str, _Taken] = defaultdict(_Taken)

    def add(self, name: str, time: int) -> None:
        """One operation."""
        found = self._found[name]
        found.count += 1
        found.time += time

    def add_costs(self, name: str, time: int, costs: Sequence[float | None]) -> None:
        """FLOPs and bytes of one of the operations, and the time in which they were done."""
        found = self._found[name]
        for place, cost in enumerate(costs):
            if cost is not None:
                found.costs[place] += cost
                found.timed[place] += time

    def by_kind(self) -> "TimeByName":
        """Of all operations, also those that are in no list."""
        kinds = TimeByName(self._second)
        for name, taken in self._found.items():
            found = kinds._found[kind_of(name)]
            found.count += taken.count
            found.time += taken.time
        return kinds

    def most(self, count: int, total: int) -> list[Named]:
        """Those that take most. total: the time that shares are of."""
        largest = heapq.nlargest(count, self._found.items(), key=lambda item: (item[1].time, item[0]))
        return [
            Named(
                name,
                taken.count,
                taken.time / total,
                None,
                *(
                    cost * self._second / timed if timed and cost else None
                    for cost, timed in zip(taken.costs, taken.timed, strict=True)
                ),
            )
            for name, taken in largest
        ]
