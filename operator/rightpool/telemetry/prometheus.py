"""Samples from Prometheus: the same few queries in every cycle, whether there are ten jobs or ten thousand."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import requests
from prometheus_api_client import PrometheusApiClientException, PrometheusConnect
from urllib3.util import Retry

from rightpool.profiles.sample import Field, RevisionKey
from rightpool.telemetry import dcgm, queries
from rightpool.telemetry.bounded_session import BoundedSession
from rightpool.telemetry.dcgm import ChipCounters
from rightpool.telemetry.fields import GAUGES, Aggregate, assembled
from rightpool.telemetry.source import Target, TelemetryReading
from rightpool.telemetry.vector import BadAnswer, Row, rows_of

_LARGEST_ANSWER: Final = 64 * 2**20
_SHORTEST_HORIZON: Final = 10.0  # seconds
_SCRAPES_IN_HORIZON: Final = 4  # so that two lost scrapes still leave the two that a rate needs
_RATES: Final = {
    queries.SAMPLES_PER_SECOND: Field.SAMPLES_PER_SECOND,
    queries.STEP_SECONDS: Field.STEP_SECONDS,
}


class PrometheusSource:
    """Reads Revisions through one Prometheus, or anything that answers like it.

    scrape_interval: Prometheus' own, seconds. timeout: seconds for one query. budget: seconds for all of one reading;
    what does not fit in fails. matchers: see `queries`. verify: as in requests, a CA bundle's path or False.
    Used by one thread at a time.
    """

    def __init__(
        self,
        url: str,
        *,
        scrape_interval: float = 10.0,
        timeout: float = 10.0,
        budget: float = 20.0,
        headers: Mapping[str, str] | None = None,
        verify: bool | str = True,
        matchers: str = "",
        dcgm: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        session = BoundedSession(_LARGEST_ANSWER, timeout)
        session.verify = verify
        # No retries: the next cycle is one, and several time limits in a row would hold up all jobs.
        self._prometheus: Any = PrometheusConnect(
            url=url.rstrip("/"), headers=dict(headers or {}), session=session, retry=Retry(total=0, read=False)
        )
        self._queries = queries.queries(max(_SCRAPES_IN_HORIZON * scrape_interval, _SHORTEST_HORIZON), matchers)
        self._timeout = timeout
        self._budget = budget
        self._dcgm = dcgm
        self._clock = clock

    def close(self) -> None:
        """Gives the connections back."""
        self._prometheus.close()

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """One reading of all targets. Times are Prometheus' own, so that `now` is not needed."""
        cycle = _Cycle(self._prometheus, self._timeout, self._clock() + self._budget, self._clock)
        wanted = {(target.key.namespace, target.key.job, str(target.key.revision)): target.key for target in targets}

        def owner(row: Row) -> RevisionKey | None:
            labels = row.labels
            return wanted.get((labels.get("namespace", ""), labels.get("profiledjob", ""), labels.get("revision", "")))

        presence = cycle.ask("pods", self._queries.presence)
        if presence is None:
            return TelemetryReading({}, tuple(cycle.failures), up=False)
        values: dict[RevisionKey, dict[Field, float]] = defaultdict(dict)
        scraped: dict[RevisionKey, float] = {}
        for row in presence:
            key = owner(row)
            if key is not None:
                if row.labels.get(queries.FIELD) == queries.AT:
                    scraped[key] = row.value
                else:
                    values[key][Field.PODS] = row.value
        self._read_gauges(cycle, owner, values)
        for row in cycle.ask("rates", self._queries.rates) or ():
            key, rate = owner(row), _RATES.get(row.labels.get(queries.FIELD, ""))
            if key is not None and rate is not None:
                values[key][rate] = row.value
        derived: dict[RevisionKey, set[str]] = defaultdict(set)
        for row in cycle.ask("quality", self._queries.derived) or ():
            key = owner(row)
            if key is not None:
                derived[key].add(row.labels.get(queries.FIELD, ""))
        chips = self._read_chips(cycle, targets)
        samples = {}
        for key in wanted.values():
            at = scraped.get(key)
            own: Mapping[Field, float] = values[key] if at is not None else {}
            counted = chips.get(key)
            at = at if at is not None or counted is None else counted.at
            if at is None:
                continue
            sample = assembled(at, {**(counted.values if counted else {}), **own}, derived[key])
            if sample.values:
                samples[key] = sample
        return TelemetryReading(samples, tuple(cycle.failures))

    def _read_gauges(
        self,
        cycle: "_Cycle",
        owner: Callable[[Row], RevisionKey | None],
        values: dict[RevisionKey, dict[Field, float]],
    ) -> None:
        for aggregate in Aggregate:
            fields = {(gauge.metric, gauge.part): gauge.field for gauge in GAUGES if gauge.aggregate is aggregate}
            for row in cycle.ask(f"gauges by {aggregate}", self._queries.gauges[aggregate]) or ():
                field = fields.get((row.labels.get("__name__", ""), row.labels.get("part", "")))
                key = owner(row)
                if key is not None and field is not None:
                    values[key][field] = row.value

    def _read_chips(self, cycle: "_Cycle", targets: Sequence[Target]) -> dict[RevisionKey, ChipCounters]:
        if not self._dcgm:
            return {}
        owners = {(target.key.namespace, pod): target.key for target in targets for pod, _ in target.pods}
        return dcgm.join(cycle.ask("DCGM counters", dcgm.QUERY) or (), owners)


class _Cycle:
    """The queries of one reading: what is left of its time, and what went wrong."""

    def __init__(self, prometheus: Any, timeout: float, deadline: float, clock: Callable[[], float]) -> None:
        self._prometheus = prometheus
        self._timeout = timeout
        self._deadline = deadline
        self._clock = clock
        self.failures: list[str] = []

    def ask(self, what: str, query: str) -> list[Row] | None:
        """The rows of a query; None where it failed, which is then told."""
        left = min(self._timeout, self._deadline - self._clock())
        if left <= 0:
            self.failures.append(f"Prometheus: {what}: no time was left for it")
            return None
        try:
            result = self._prometheus.custom_query(query, params={"timeout": f"{left:.3f}"}, timeout=left)
            return rows_of(result)
        except requests.Timeout:
            reason = f"no answer within {left:.3g} seconds"
        except requests.ConnectionError as error:
            # The text of the error repeats the query; what happened is in its cause.
            cause = error.args[0] if error.args else error
            reason = f"can't be reached: {getattr(cause, 'reason', cause)}"
        except (requests.RequestException, PrometheusApiClientException) as error:
            reason = str(error)
        except (BadAnswer, ValueError, KeyError, TypeError, RecursionError, OSError) as error:
            reason = f"the answer can't be read: {error!r}"
        self.failures.append(f"Prometheus: {what}: {reason[:300]}")
        return None
