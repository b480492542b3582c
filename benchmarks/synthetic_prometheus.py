"""Serves the synthetic fleet's measurements as Prometheus would.

It is a process of its own, so that its cost is not counted as the operator's. It does not parse PromQL: it recognises
the exact queries of the operator and of the naive operator. `POST /change/<number>` halves a job's speed.

    python -m benchmarks.synthetic_prometheus PORT JOBS
"""

import gzip
import json
import math
import random
import re
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, urlsplit

from benchmarks.synthetic_fleet import SyntheticJob, synthetic_jobs
from rightpool.profiles.sample import Field
from rightpool.telemetry.sources import sidecar_series
from rightpool.telemetry.sources.sidecar import GAUGES, Gauge
from rightpool.telemetry.sources.source import Aggregate

SCRAPE_INTERVAL: Final = 10.0
_ONE_JOB: Final = re.compile(r'profiledjob="job-(\d+)"')
_SLOWED: Final = 0.5
_STEPS_SO_FAR: Final = 10_000.0
_NOISE: Final = 0.004
_WITH_SPEED: Final = (Field.SAMPLES_PER_SECOND, Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY, Field.COMPUTE_ACTIVE)
_QUERIED_AT: Final = "1800000000"  # the operator uses the time of the scrape

Row = tuple[str, int, Field]  # the text up to the value, the number of the job, the field


class FleetSeries:
    """The series of the fleet. All responses within half a scrape interval are from one scrape."""

    def __init__(self, count: int) -> None:
        self._jobs = synthetic_jobs(count)
        self._steady = [job.reading(0.0) for job in self._jobs]
        self._slowed: set[int] = set()
        self._scraped_at = 0.0
        self._counted_at = 0.0
        self._steps = [_STEPS_SO_FAR] * count
        self._readings: list[dict[Field, float]] = []
        horizon = math.ceil(4 * SCRAPE_INTERVAL)
        texts = {query.what: query.promql for query in sidecar_series.SIDECAR_SERIES.queries(horizon)}
        self._presence = texts[sidecar_series.PODS]
        self._rows_by_query = {
            self._presence: self._named(
                (sidecar_series.PODS, Field.PODS), (sidecar_series.AT, Field.CHECKPOINT_SECONDS)
            ),
            texts[sidecar_series.RATES]: self._named(
                (sidecar_series.SAMPLES_PER_SECOND, Field.SAMPLES_PER_SECOND),
                (sidecar_series.STEP_SECONDS, Field.STEP_SECONDS),
                (sidecar_series.SAMPLES, Field.SAMPLES),
            ),
        }
        for aggregate in Aggregate:
            self._rows_by_query[texts[sidecar_series.gauges_by(aggregate)]] = self._gauges(aggregate)

    def slow_down(self, number: int) -> None:
        """Halve the speed of this job."""
        self._slowed.add(number)
        self._scraped_at = 0.0

    def rows(self, query: str) -> str:
        """The rows of a query, as JSON; none for a query that is not recognised."""
        self._scrape()
        one = _ONE_JOB.search(query)
        if one is not None:
            number = int(one[1])
            return f'{_row_start(self._jobs[number], {})}{self._readings[number][Field.SAMPLES_PER_SECOND]!r}"]}}'
        rows, readings = self._rows_by_query.get(query, ()), self._readings
        if query == self._presence:
            at = f'{self._scraped_at!r}"]}}'
            return ",".join(f"{start}{at}" if "at" in start[:24] else f'{start}1"]}}' for start, _, _ in rows)
        return ",".join([f'{start}{readings[number][field]!r}"]}}' for start, number, field in rows])

    def _scrape(self) -> None:
        now = time.time()
        if now - self._scraped_at < SCRAPE_INTERVAL / 2:
            return
        self._scraped_at = now
        self._counted_at = self._counted_at or now
        draw = random.Random(int(now))
        noise = [1.0 + draw.uniform(-_NOISE, _NOISE) for _ in range(997)]
        self._readings = [
            self._reading(number, steady, noise[number % len(noise)], now) for number, steady in enumerate(self._steady)
        ]
        self._counted_at = now

    def _reading(self, number: int, steady: dict[Field, float], noise: float, now: float) -> dict[Field, float]:
        speed = noise * (_SLOWED if number in self._slowed else 1.0)
        reading = steady.copy()
        for field in _WITH_SPEED:
            reading[field] *= speed
        reading[Field.STEP_SECONDS] /= speed
        # Accumulated, not computed from the current speed: a counter that goes down means that the program restarted.
        self._steps[number] += (now - self._counted_at) / reading[Field.STEP_SECONDS]
        reading[Field.STEPS] = math.floor(self._steps[number])
        reading[Field.SAMPLES] = 64.0 * self._jobs[number].chips * reading[Field.STEPS]
        reading[Field.CHECKPOINT_TIMESTAMP] = now // 600.0 * 600.0
        return reading

    def _named(self, *fields: tuple[str, Field]) -> list[Row]:
        return [(_row_start(job, {"field": name}), job.number, field) for job in self._jobs for name, field in fields]

    def _gauges(self, aggregate: Aggregate) -> list[Row]:
        """Of what a synthetic job has a reading of. A healthy one has no rows of faults."""
        found = [
            (_labels_of(gauge), gauge.field)
            for gauge in GAUGES
            if gauge.aggregate is aggregate and not gauge.faults and gauge.field in self._steady[0]
        ]
        return [(_row_start(job, labels), job.number, field) for job in self._jobs for labels, field in found]


def _labels_of(gauge: Gauge) -> Mapping[str, str]:
    """The labels of its row beside those of the Revision."""
    if len(gauge.among) > 1:
        return {sidecar_series.FIELD: gauge.field.value}
    [value] = gauge.among
    return {"__name__": gauge.metric} | ({gauge.label: value} if value else {})


def _row_start(job: SyntheticJob, labels: Mapping[str, str]) -> str:
    """The text of a row up to its value."""
    metric = {**labels, "namespace": job.key.namespace, "profiledjob": job.key.name, "revision": "1"}
    return f'{{"metric":{json.dumps(metric, separators=(",", ":"))},"value":[{_QUERIED_AT},"'


def server(port: int, series: FleetSeries) -> ThreadingHTTPServer:
    """Listens on loopback; 0 is any free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
            self._respond(f'{{"status":"success","data":{{"resultType":"vector","result":[{series.rows(query)}]}}}}')

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            series.slow_down(int(self.path.rsplit("/", 1)[1]))
            self._respond("{}")

        def _respond(self, content: str) -> None:
            body = content.encode()
            self.send_response(200)
            if "gzip" in self.headers.get("Accept-Encoding", "") and len(body) > 1400:
                body = gzip.compress(body, 1)  # as Prometheus does
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    server(int(sys.argv[1]), FleetSeries(int(sys.argv[2]))).serve_forever()
