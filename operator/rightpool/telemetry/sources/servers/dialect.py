"""What a dialect is: which series of a server's page are which of the counters that all servers have in common."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from rightpool.profiles.latency import Distribution
from rightpool.profiles.sample import measurable
from rightpool.profiles.served import RequestCounter, RequestLevel, RequestTime, ServerCounts
from rightpool.telemetry.exposition import Series

EDGE: Final = "le"
_BUCKET: Final = "_bucket"


@dataclass(frozen=True)
class Where:
    """Which series of a metric count, by one label."""

    label: str
    """Its name."""
    values: str
    """A regular expression that matches a whole value. A label that is not there has the empty one."""
    keep: bool = True
    """Whether those that match count, or the others."""

    @cached_property
    def _matching(self) -> re.Pattern[str]:
        return re.compile(self.values)

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels counts."""
        return (self._matching.fullmatch(labels.get(self.label, "")) is not None) is self.keep


@dataclass(frozen=True)
class Term:
    """A quantity: the sum of the series of one metric."""

    metrics: tuple[str, ...]
    """Its names, the present one first. The first that a page has counts."""
    divisor: float = 1.0
    """Units of the metric in a second, or in one thing."""
    where: tuple[Where, ...] = ()
    """Which of its series count."""
    mean: bool = False
    """Whether it is a share, of which a server with several engines has the mean."""

    def taken(self, by_name: Mapping[str, Sequence[Series]]) -> list[Series] | None:
        """The series that count; None where the page has no such metric, which is not the same as none of them."""
        found = next((by_name[name] for name in self.metrics if name in by_name), None)
        return None if found is None else [one for one in found if all(each.takes(one.labels) for each in self.where)]

    def value(self, by_name: Mapping[str, Sequence[Series]]) -> float | None:
        """The sum, or the mean; None where the page has no such metric, or one that can't be counted."""
        series = self.taken(by_name)
        if series is None or any(one.value < 0 for one in series):
            return None
        number = math.fsum(one.value for one in series) / self.divisor / (max(len(series), 1) if self.mean else 1)
        return number if measurable(number) else None

    def distribution(self, by_name: Mapping[str, Sequence[Series]]) -> Distribution | None:
        """The histogram of that name, added up at each edge; None where the page has none."""
        bucket = Term(tuple(name + _BUCKET for name in self.metrics), 1.0, self.where).taken(by_name)
        if bucket is None:
            return None
        if not bucket:
            return Distribution.of_none()  # such as before the first request, of a server that has counted its probes
        at: dict[float, float] = defaultdict(float)
        rows: dict[float, int] = defaultdict(int)
        for one in bucket:
            edge = _edge(one.labels.get(EDGE, ""))
            at[edge] += one.value
            rows[edge] += 1
        # Two series of other edges can be added up at those alone that both have.
        most = max(rows.values())
        found = Distribution.of((edge / self.divisor, count) for edge, count in at.items() if rows[edge] == most)
        if found is None:
            return None
        total = Term(tuple(f"{name}_sum" for name in self.metrics), self.divisor, self.where).value(by_name)
        return Distribution(found.edges, found.counts, found.total, total)

    @property
    def labels(self) -> frozenset[str]:
        """The labels that say which series count."""
        return frozenset(one.label for one in self.where)


@lru_cache(maxsize=4096)
def _edge(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True, eq=False)
class ServerDialect:
    """How one kind of server names what it counts. There is one object of each."""

    name: str
    """As in spec.workload.server.metrics.dialect."""
    server: str
    """As its users call it."""
    requires: tuple[str, ...]
    """Series that every page of this dialect has, and no page of another before it in the table."""
    counters: Mapping[RequestCounter, tuple[Term, ...]]
    """Each the sum of what a page has of these; the first must be there."""
    times: Mapping[RequestTime, Term] = field(default_factory=dict)
    """Histograms."""
    levels: Mapping[RequestLevel, Term] = field(default_factory=dict)
    """Gauges."""
    started: bool = False
    """Whether a request counts when it begins. Else it does when it has ended, which in an overload is too late."""

    @cached_property
    def metrics(self) -> frozenset[str]:
        """All series that are read."""
        sums = {name for terms in self.counters.values() for term in terms for name in term.metrics}
        gauges = {name for term in self.levels.values() for name in term.metrics}
        histograms = {name + end for term in self.times.values() for name in term.metrics for end in (_BUCKET, "_sum")}
        return frozenset(sums | gauges | histograms | set(self.requires))

    @cached_property
    def labels(self) -> frozenset[str]:
        """All labels that are looked at."""
        terms = [*(term for terms in self.counters.values() for term in terms), *self.times.values()]
        return frozenset({EDGE}).union(*(term.labels for term in (*terms, *self.levels.values())))

    @property
    def means_only(self) -> bool:
        """Whether no share of late requests can be read."""
        return RequestTime.WHOLE not in self.times

    def speaks(self, names: Iterable[str]) -> bool:
        """Whether a page with these series is of this dialect."""
        return not set(self.requires).difference(names)

    def counts(self, series: Iterable[Series]) -> ServerCounts:
        """What a page of this dialect says."""
        by_name: dict[str, list[Series]] = defaultdict(list)
        for one in series:
            by_name[one.metric].append(one)
        counters = {name: value for name, terms in self.counters.items() if (value := _sum(terms, by_name)) is not None}
        times = {name: found for name, term in self.times.items() if (found := term.distribution(by_name)) is not None}
        levels = {name: value for name, term in self.levels.items() if (value := term.value(by_name)) is not None}
        derived = frozenset() if self.started else frozenset({RequestCounter.REQUESTS})
        return ServerCounts(counters, times, levels, derived & counters.keys())


def _sum(terms: Sequence[Term], by_name: Mapping[str, Sequence[Series]]) -> float | None:
    """None where the first is not there; what follows it may be of other versions, or not have happened yet."""
    first = terms[0].value(by_name)
    if first is None:
        return None
    return first + math.fsum(value for term in terms[1:] if (value := term.value(by_name)) is not None)
