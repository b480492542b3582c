"""Samples from Prometheus: the same few queries in every cycle, whether there are ten jobs or ten thousand."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
import requests
from prometheus_api_client import PrometheusApiClientException, PrometheusConnect
from urllib3.util import Retry

from rightpool.profiles.sample import RevisionKey
from rightpool.telemetry.bounded_session import BoundedSession
from rightpool.telemetry.reader import Target, TelemetryReading
from rightpool.telemetry.samples import sample_of
from rightpool.telemetry.sources import registry
from rightpool.telemetry.sources.rows import BadAnswer, Row, rows_of, vector_of
from rightpool.telemetry.sources.source import Query, Source, SourceReading, TargetIndex
from rightpool.telemetry.sources.whole_rate import SCRAPES_IN_RANGE

_LARGEST_ANSWER: Final = 64 * 2**20
_SHORTEST_HORIZON: Final = 10.0  # seconds


class PrometheusReader:
    """Reads Revisions through one Prometheus, or anything that answers like it.

    scrape_interval: Prometheus' own, seconds. timeout: seconds for one query. budget: seconds for all of one reading;
    what does not fit in fails.
    sources: in the order of precedence; by default those of the registry.
    Used by one thread at a time.
    """

    def __init__(
        self,
        url: str,
        *,
        scrape_interval: float = 10.0,
        timeout: float = 10.0,
        budget: float = 20.0,
        sources: Sequence[Source] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prometheus = PrometheusQueries(url, timeout=timeout, budget=budget, clock=clock)
        self._horizon = horizon = math.ceil(max(SCRAPES_IN_RANGE * scrape_interval, _SHORTEST_HORIZON))
        chosen = registry.SOURCES if sources is None else sources
        self._queries = [(source, source.queries(horizon)) for source in chosen]

    def close(self) -> None:
        """Gives the connections back."""
        self._prometheus.close()

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """One reading of all targets. Times are Prometheus' own, so that `now` is not needed."""
        cycle = self._prometheus.cycle()
        wanted = TargetIndex(targets)
        found: list[Mapping[RevisionKey, SourceReading]] = []
        answered = False
        for source, queries in self._queries:
            collector = source.collector(wanted)
            for query in queries:
                answered = cycle.collect(query, collector.take) or answered
                if not answered:
                    # The first query stands for all: where it fails, the others would only wait as long each.
                    return TelemetryReading({}, tuple(cycle.failures), up=False)
            if readings := collector.readings():
                found.append(readings)
        samples = {}
        for target in targets:
            own = [reading for one in found if (reading := one.get(target.key)) is not None]
            sample = sample_of(own, self._horizon)
            if sample is not None:
                samples[target.key] = sample
        return TelemetryReading(samples, tuple(cycle.failures))


class PrometheusQueries:
    """Asks one Prometheus, or anything that answers like it.

    timeout: seconds for one query. budget: seconds for all of one reading; what does not fit in fails.
    """

    def __init__(
        self, url: str, *, timeout: float = 10.0, budget: float = 20.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        session = BoundedSession(_LARGEST_ANSWER, timeout, vector_of)
        # No retries: the next cycle is one, and several time limits in a row would hold up all jobs.
        self._prometheus: Any = PrometheusConnect(
            url=url.rstrip("/"), session=session, retry=Retry(total=0, read=False)
        )
        self._timeout = timeout
        self._budget = budget
        self._clock = clock

    def close(self) -> None:
        """Gives the connections back."""
        self._prometheus.close()

    def over(self, promql: str, begin: datetime, end: datetime, step: float) -> list[msgspec.Raw]:
        """The series of a query between two moments, a value every `step` seconds, as they are on the wire. Raises what
        requests and PrometheusConnect do."""
        params = {"timeout": f"{self._timeout:.3f}"}
        found: list[msgspec.Raw] = self._prometheus.custom_query_range(
            promql, begin, end, f"{step:g}", params=params, timeout=self._timeout
        )
        return found

    def cycle(self) -> QueryCycle:
        """The queries of one reading, which begins now."""
        return QueryCycle(self._prometheus, self._timeout, self._clock() + self._budget, self._clock)


class QueryCycle:
    """The queries of one reading: what is left of its time, and what went wrong."""

    def __init__(self, prometheus: Any, timeout: float, deadline: float, clock: Callable[[], float]) -> None:
        self._prometheus = prometheus
        self._timeout = timeout
        self._deadline = deadline
        self._clock = clock
        self.failures: list[str] = []
        """Why there is no answer, of each query that has none."""

    def collect(self, query: Query, take: Callable[[str, Iterable[Row]], None]) -> bool:
        """Hand the answer on. False where there is none, or not all of it can be read; why is then among
        the failures.

        Nothing keeps the answer on return, so that the next one takes its memory instead of more.
        """
        left = min(self._timeout, self._deadline - self._clock())
        if left <= 0:
            self.failures.append(f"Prometheus: {query.what}: no time was left for it")
            return False
        reason = self._taken(query, take, left)
        if reason is not None:
            self.failures.append(f"Prometheus: {query.what}: {reason[:300]}")
        return reason is None

    def _taken(self, query: Query, take: Callable[[str, Iterable[Row]], None], left: float) -> str | None:
        """Why the answer could not be taken; None where it was. left: seconds for it."""
        try:
            result = self._prometheus.custom_query(query.promql, params={"timeout": f"{left:.3f}"}, timeout=left)
            take(query.what, rows_of(result))
            return None
        except requests.Timeout:
            return f"no answer within {left:.3g} seconds"
        except requests.ConnectionError as error:
            # The text of the error repeats the query; what happened is in its cause.
            cause = error.args[0] if error.args else error
            return f"can't be reached: {getattr(cause, 'reason', cause)}"
        except (requests.RequestException, PrometheusApiClientException) as error:
            return str(error)
        except (BadAnswer, ValueError, KeyError, TypeError, RecursionError, OSError) as error:
            return f"the answer can't be read: {error!r}"
