"""What a trace says of the time of its steps, whoever has taken it: the form in which the operator gets it.

Parts of the time are shares that sum to 1, as in `shares`; what takes the time is told by name.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from rightpool_profiler.traces import intervals
from rightpool_profiler.traces.devices import Span
from rightpool_profiler.traces.kinds import kind_of

MAX_SPANS: Final = 400_000  # of devices and host together: 320 bytes each at the most that is needed at once
_LISTED: Final = 10
_COLLECTIVES_LISTED: Final = 8
_NAME_LENGTH: Final = 80


@dataclass(frozen=True, slots=True)
class Named:
    """What one kind of operation takes."""

    name: str
    count: int
    share: float
    exposed: float | None = None
    """Of a collective: the share during which nothing is computed."""

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "count": self.count, "share": self.share}


@dataclass(frozen=True, slots=True)
class Summary:
    """Shares are of the time that was traced, 0–1."""

    on: str
    """`device` or `host`: whose time it is."""
    seconds: float
    steps: int | None
    """Of the program; None where the trace does not say."""
    parts: dict[str, float]
    collectives: list[Named] = field(default_factory=list)
    operations: list[Named] = field(default_factory=list)
    """By the time that they take themselves: kernels and copies of a device, else operators of the host, or those of
    XLA."""
    kinds: list[Named] = field(default_factory=list)
    """All of those operations by their kind."""

    @classmethod
    def of(
        cls,
        on: str,
        seconds: float,
        total: int,
        steps: int | None,
        parts: Mapping[str, float],
        collectives: "Tally",
        operations: "Tally",
    ) -> Self:
        """total: the time that parts and tallies are shares of."""
        return cls(
            on,
            seconds,
            steps or None,
            {part: time / total for part, time in parts.items()},
            collectives.most(_COLLECTIVES_LISTED, total, exposed=True),
            operations.most(_LISTED, total, exposed=False),
            operations.by_kind().most(_LISTED, total, exposed=False),
        )

    def to_dict(self) -> dict[str, Any]:
        """The wire form, between sidecar and operator."""
        return {
            "on": self.on,
            "seconds": self.seconds,
            "steps": self.steps,
            "parts": self.parts,
            "collectives": [{**one.to_dict(), "exposed": one.exposed} for one in self.collectives],
            "operations": [one.to_dict() for one in self.operations],
            "kinds": [one.to_dict() for one in self.kinds],
        }


class Tally:
    """Count and time by name."""

    def __init__(self) -> None:
        self._found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, name: str, time: int, exposed: int = 0) -> None:
        found = self._found[name]
        found[0] += 1
        found[1] += time
        found[2] += exposed

    def add_exposed(self, spans: Iterable[Span], computing: intervals.Spans) -> None:
        """Collectives, each kind by itself: two at the same time both count. `computing`: sorted and disjoint."""
        by_name: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for start, end, name in spans:
            by_name[name].append((start, end))
        for name, own in by_name.items():
            merged = intervals.union(own)
            found = self._found[name]
            found[0] += len(own)
            found[1] += intervals.length(merged)
            found[2] += intervals.length(intervals.without(merged, computing))

    def by_kind(self) -> "Tally":
        """Of all operations, also those that are in no list."""
        kinds = Tally()
        for name, (count, time, _) in self._found.items():
            found = kinds._found[kind_of(name)]
            found[0] += count
            found[1] += time
        return kinds

    def most(self, count: int, total: int, *, exposed: bool) -> list[Named]:
        largest = heapq.nlargest(count, self._found.items(), key=lambda item: (item[1][1], item[0]))
        return [
            Named(name, number, time / total, alone / total if exposed else None)
            for name, (number, time, alone) in largest
        ]


def plain(name: str) -> str:
    """A name that is short, and does nothing to a terminal."""
    return "".join(letter for letter in name[:_NAME_LENGTH] if letter.isprintable())
