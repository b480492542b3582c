"""What Prometheus still has of a server's demand: read once, after a restart, for the gaps of its record."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
import requests
from prometheus_api_client import PrometheusApiClientException

from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.demand import COUNTERS, DAY, SLOT, Demanded
from rightpool.telemetry.prometheus import PrometheusQueries
from rightpool.telemetry.sources.servers.dialect import ServerDialect, Term

_SCRAPES: Final = 2.5  # in the time that a count is taken over: two at least, from which it is extrapolated


class _Series(msgspec.Struct, frozen=True):
    """An element of a matrix, as it is on the wire."""

    values: list[tuple[float, str]]


_SERIES: Final = msgspec.json.Decoder(_Series)


def demand_queries(dialect: ServerDialect, key: JobKey, scrape_interval: float) -> Mapping[Demanded, str]:
    """PromQL of what came in 15 s, of all replicas together."""
    seconds = math.ceil(max(_SCRAPES * scrape_interval, SLOT))
    found = {}
    for demanded, counter in COUNTERS.items():
        terms = dialect.counters.get(counter)
        if terms:
            sums = [_grown(name, term, key, seconds) for term in terms for name in term.metrics]
            found[demanded] = f"{SLOT:g} * sum({' or '.join(sums)})"
    return found


def _grown(name: str, term: Term, key: JobKey, seconds: int) -> str:
    where = [f'namespace="{key.namespace}"', f'profiledjob="{key.name}"']
    where += [f'{one.label}{"=~" if one.keep else "!~"}"{one.values}"' for one in term.where]
    rate = f'rate({{__name__="{name}", {", ".join(where)}}}[{seconds}s])'
    # Two terms of one pod have the same labels but for their name, which a rate has lost.
    return f'label_replace({rate}, "term", "{name}", "", "")'


def past_demand(
    prometheus: PrometheusQueries, queries: Mapping[Demanded, str], begin: float, end: float
) -> Mapping[Demanded, Mapping[int, float]]:
    """Counts by slot between two moments, a day for each query. What can't be read is absent: it stays a gap."""
    found: dict[Demanded, dict[int, float]] = defaultdict(dict)
    for demanded, promql in queries.items():
        first, last = math.ceil(begin / SLOT), math.floor(end / SLOT)
        for start in range(first, last + 1, DAY):
            stop = min(start + DAY - 1, last)
            for one in _matrix(prometheus, promql, start * SLOT, stop * SLOT):
                for at, text in one.values:
                    value = float(text)
                    if math.isfinite(value) and value >= 0:
                        found[demanded][round(at / SLOT) - 1] = value  # a count is of the time before
    return found


def _matrix(prometheus: PrometheusQueries, promql: str, begin: float, end: float) -> Sequence[_Series]:
    try:
        found = prometheus.over(promql, datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC), SLOT)
        return [_SERIES.decode(raw) for raw in found]
    except (requests.RequestException, PrometheusApiClientException, ValueError, KeyError, TypeError, OSError):
        return ()
