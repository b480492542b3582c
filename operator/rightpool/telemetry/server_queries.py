"""The pages of servers, as one Prometheus has scraped them: a query for each dialect, of all servers together.

Prometheus says by its labels of which pod a series is (charts/rightpool/templates/podmonitor.yaml); a pod can't write
another one's.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.answers import PageProblem
from rightpool.profiles.sample import RevisionKey
from rightpool.telemetry.demand_history import demand_queries, past_demand
from rightpool.telemetry.exposition import Series
from rightpool.telemetry.prometheus import PrometheusQueries
from rightpool.telemetry.server_pages import (
    BadServerPage,
    PageFailure,
    PastDemand,
    ReplicaPages,
    ReplicaPod,
    ServerPage,
    ServerReading,
    ServerTarget,
    page_of_series,
)
from rightpool.telemetry.sources.rows import Row
from rightpool.telemetry.sources.servers.dialect import ServerDialect
from rightpool.telemetry.sources.servers.dialects import DIALECTS
from rightpool.telemetry.sources.source import Query

_AT: Final = "rightpool_at"
_OURS: Final = 'profiledjob!=""'
_METRIC: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")

PodName = tuple[str, str]  # namespace, name


class ServerQueries:
    """Reads the replicas of servers through one Prometheus. Used by one thread at a time."""

    def __init__(self, prometheus: PrometheusQueries, scrape_interval: float) -> None:
        """scrape_interval: Prometheus' own, seconds."""
        self._prometheus = prometheus
        self._scrape_interval = scrape_interval
        self._pages = ReplicaPages()
        self._spoken: dict[RevisionKey, ServerDialect] = {}  # of those that may be of any dialect
        self._unheard: set[RevisionKey] = set()  # they may speak another than the one that is wanted

    def close(self) -> None:
        """Gives the connections back."""
        self._prometheus.close()

    def read_servers(self, targets: Sequence[ServerTarget], now: float) -> ServerReading:
        """One reading of all targets. Times are Prometheus' own."""
        asked = self._asked(targets)
        pods = _Pods(targets)
        cycle = self._prometheus.cycle()
        answered = False
        for dialect in asked:
            if all(map(_METRIC.fullmatch, dialect.metrics)):
                answered = cycle.collect(query_of(dialect), pods.take) or answered
                if not answered:
                    break  # the first stands for all
        if targets and not answered:
            detail = cycle.failures[0] if cycle.failures else "no series is named as one can be"
            failed = {target.key: PageFailure(PageProblem.UNREACHABLE, detail, len(target.pods)) for target in targets}
            return ServerReading(failures=failed, up=False)
        pages, failures = pods.pages()
        reading = self._pages.take(targets, pages, failures, now, now)
        alive = {target.key for target in targets if target.dialect is None}
        self._spoken = {key: dialect for key, dialect in reading.dialects.items() if key in alive}
        self._unheard = set(reading.failures)
        return reading

    def past(self, key: JobKey, dialect: ServerDialect, begin: float, end: float) -> PastDemand:
        """What Prometheus still has."""
        return past_demand(self._prometheus, demand_queries(dialect, key, self._scrape_interval), begin, end)

    def _asked(self, targets: Iterable[ServerTarget]) -> Sequence[ServerDialect]:
        """The dialects that must be asked for: of a server that may be of any, all until it is known which."""
        found: dict[ServerDialect, None] = {}
        for target in targets:
            dialect = target.dialect or self._spoken.get(target.key)
            found.update(dict.fromkeys(() if dialect is None else (dialect,)))
            if dialect is None or target.key in self._unheard:
                found.update(dict.fromkeys(DIALECTS))
        return tuple(found)


def query_of(dialect: ServerDialect) -> Query:
    """All series of a dialect that our pods have, summed up but for the labels that are looked at."""
    names = "|".join(sorted(dialect.metrics))
    labels = ", ".join(("namespace", "pod", *sorted(dialect.labels)))
    values = f'sum by (__name__, {labels}) ({{__name__=~"{names}", {_OURS}}})'
    at = f'max by (namespace, pod) (timestamp({{__name__="{dialect.requires[0]}", {_OURS}}}))'
    return Query(f"servers {dialect.name}", f'{values} or label_replace({at}, "field", "{_AT}", "", "")')


class _Pods:
    """The series of one reading, by the pod that has them."""

    def __init__(self, targets: Sequence[ServerTarget]) -> None:
        self._of: Mapping[PodName, tuple[ServerTarget, str]] = {
            (target.key.namespace, pod): (target, address) for target in targets for pod, address in target.pods
        }
        self._series: dict[PodName, list[Series]] = defaultdict(list)
        self._at: dict[PodName, float] = {}

    def take(self, _what: str, rows: Iterable[Row]) -> None:
        """An answer."""
        for labels, value in rows:
            pod = (labels.pop("namespace", ""), labels.pop("pod", ""))
            if pod not in self._of:
                continue
            if labels.get("field") == _AT:
                self._at[pod] = max(self._at.get(pod, -math.inf), value)
            elif name := labels.pop("__name__", ""):
                self._series[pod].append(Series(name, labels, value))

    def pages(self) -> tuple[dict[ReplicaPod, ServerPage], dict[ReplicaPod, PageFailure]]:
        """Of each pod that has any, and why there is none of the others."""
        pages: dict[ReplicaPod, ServerPage] = {}
        failures: dict[ReplicaPod, PageFailure] = {}
        for pod, (target, address) in self._of.items():
            replica = ReplicaPod(target.key, pod[1], address)
            at = self._at.get(pod)
            try:
                if at is None:
                    raise BadServerPage(PageProblem.UNREACHABLE, f"Prometheus has no series of pod {pod[1]}")
                pages[replica] = page_of_series(self._series[pod], target.dialect, at)
            except BadServerPage as error:
                failures[replica] = error.failure
        return pages, failures
