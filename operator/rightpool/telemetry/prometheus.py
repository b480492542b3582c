"""Samples from Prometheus: the same few queries in every cycle, whether there are ten jobs or ten thousand."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import requests
from prometheus_api_client import PrometheusApiClientException, PrometheusConnect
from urllib3.util import Retry

from rightpool import contract
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
# Namespace, job and revision, as labels spell them. Not the Revision's key: there are eighteen rows for each.
_Whose = tuple[str, str, str]
# What a row is about: its metric and part of the step, or the name that the query gave it.
_Topic = tuple[str, str]
_GAUGES: Final[Mapping[Aggregate, Mapping[_Topic, Field]]] = {
    aggregate: {(gauge.metric, gauge.part): gauge.field for gauge in GAUGES if gauge.aggregate is aggregate}
    for aggregate in Aggregate
}
_RATES: Final[Mapping[_Topic, Field]] = {
    (queries.SAMPLES_PER_SECOND, ""): Field.SAMPLES_PER_SECOND,
    (queries.STEP_SECONDS, ""): Field.STEP_SECONDS,
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
        keys = {(target.key.namespace, target.key.job, str(target.key.revision)): target.key for target in targets}
        found = _Found(keys)
        presence = cycle.ask("pods", self._queries.presence)
        if presence is None:
            return TelemetryReading({}, tuple(cycle.failures), up=False)
        scraped: dict[_Whose, float] = {}
        for labels, value in presence:
            whose = _whose(labels)
            if labels.get(queries.FIELD) == queries.AT:
                scraped[whose] = value
            elif whose in found.values:
                found.values[whose][Field.PODS] = value
        for aggregate in Aggregate:
            found.take(cycle.ask(f"gauges by {aggregate}", self._queries.gauges[aggregate]), _GAUGES[aggregate])
        found.take(cycle.ask("rates", self._queries.rates), _RATES)
        derived: dict[_Whose, set[str]] = defaultdict(set)
        for labels, _ in cycle.ask("quality", self._queries.derived) or ():
            derived[_whose(labels)].add(labels.get(queries.FIELD, ""))
        chips = self._read_chips(cycle, targets)
        samples = {}
        for whose, key in keys.items():
            at = scraped.get(whose)
            own = found.values[whose] if at is not None else {}
            counted = chips.get(key)
            at = at if at is not None or counted is None else counted.at
            if at is None:
                continue
            sample = assembled(at, {**counted.values, **own} if counted else own, derived.get(whose, ()))
            if sample.values:
                samples[key] = sample
        return TelemetryReading(samples, tuple(cycle.failures))

    def _read_chips(self, cycle: "_Cycle", targets: Sequence[Target]) -> dict[RevisionKey, ChipCounters]:
        if not self._dcgm:
            return {}
        owners = {(target.key.namespace, pod): target.key for target in targets for pod, _ in target.pods}
        return dcgm.join(cycle.ask("DCGM counters", dcgm.QUERY) or (), owners)


def _whose(labels: Mapping[str, str]) -> _Whose:
    return labels.get("namespace", ""), labels.get("profiledjob", ""), labels.get("revision", "")


class _Found:
    """What was read so far of those that were asked for."""

    def __init__(self, wanted: Iterable[_Whose]) -> None:
        self.values: dict[_Whose, dict[Field, float]] = {whose: {} for whose in wanted}

    def take(self, rows: Iterable[Row] | None, fields: Mapping[_Topic, Field]) -> None:
        """Rows of others, and about what is no field, are passed over."""
        for labels, value in rows or ():
            name = labels.get("__name__") or labels.get(queries.FIELD) or ""
            field = fields.get((name, labels.get(contract.LABEL_PART, "")))
            own = self.values.get(_whose(labels))
            if field is not None and own is not None:
                own[field] = value


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
