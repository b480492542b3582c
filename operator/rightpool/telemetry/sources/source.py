"""What a source of counters is: the queries that fetch its series from Prometheus, and what their answers mean.

A source is asked in bulk: the same few queries in every cycle, whether there are ten jobs or ten thousand.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Protocol

from rightpool.api.traits import ModelTraits
from rightpool.profiles.sample import Field, RevisionKey
from rightpool.telemetry.reader import Target
from rightpool.telemetry.sources.rows import Row


class Aggregate(StrEnum):
    """How the series of one Revision become one value. The value is PromQL's name for it."""

    AVG = "avg"
    MIN = "min"
    MAX = "max"

    def over(self, values: Iterable[float]) -> float:
        """The aggregate of at least one value."""
        numbers = list(values)
        if self is Aggregate.MIN:
            return min(numbers)
        if self is Aggregate.MAX:
            return max(numbers)
        return math.fsum(numbers) / len(numbers)


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a cycle."""

    what: str
    """What it is about, in messages and for the collector."""
    promql: str
    """As it is sent to Prometheus."""


@dataclass(frozen=True, slots=True)
class SourceReading:
    """What one source says of one Revision."""

    at: float | None
    """Unix seconds of its newest scrape, None where that is unknown."""
    values: Mapping[Field, float]
    """In the units of the fields. What the source does not know is absent."""
    derived: AbstractSet[Field] = frozenset()
    """The fields that the source derives. The others are measured."""
    traits: ModelTraits | None = None
    """What the program says of its model."""


class TargetIndex:
    """The Revisions of one cycle."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self.all = targets

    @cached_property
    def by_pod(self) -> Mapping[tuple[str, str], RevisionKey]:
        """The Revision of each pod, by namespace and name. Made once a cycle, and only where a source asks for it."""
        return {(target.key.namespace, pod): target.key for target in self.all for pod, _ in target.pods}


class Collector(Protocol):
    """Reads the answers of one cycle, one at a time, so that only one is in memory."""

    def take(self, what: str, rows: Iterable[Row]) -> None:
        """The answer to the query of that name. Not called for a query that failed."""
        ...

    def readings(self) -> Mapping[RevisionKey, SourceReading]:
        """What was read of the targets. Those of which the source knows nothing are absent."""
        ...


class Source(Protocol):
    """A source of counters."""

    @property
    def name(self) -> str:
        """Of its recorded page in the tests."""
        ...

    def queries(self, horizon: int) -> Sequence[Query]:
        """Asked for once, at start-up. horizon: seconds after which a reading is old, and over which rates are taken;
        a few scrapes must fit in."""
        ...

    def collector(self, targets: TargetIndex) -> Collector:
        """For one cycle."""
        ...
