"""Prometheus' part in the benchmark: answers the operator's queries with the readings of a crowd that does not exist.

A process of its own, so that what it costs is nobody else's. It understands no PromQL: it knows the very texts that
the operator sends, and the one that the naive operator sends. `POST /change/<number>` halves a job's speed.

    python -m benchmarks.synthetic_prometheus PORT JOBS
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from benchmarks.crowd import Member, members
from rightpool import contract
from rightpool.profiles.sample import Field
from rightpool.telemetry import queries
from rightpool.telemetry.fields import GAUGES, Aggregate

SCRAPE_INTERVAL: Final = 10.0
_ONE_JOB: Final = re.compile(r'profiledjob="job-(\d+)"')
_SLOWED: Final = 0.5

Rows = Iterator[tuple[dict[str, str], float]]


class Crowd:
    """What is measured of it now; every sample is made once for each second."""

    def __init__(self, count: int) -> None:
        self._members = members(count)
        self._slowed: set[int] = set()
        texts = queries.queries(4 * SCRAPE_INTERVAL)
        self._answers: dict[str, Callable[[], Rows]] = {texts.presence: self._presence, texts.rates: self._rates}
        for aggregate in Aggregate:
            self._answers[texts.gauges[aggregate]] = lambda aggregate=aggregate: self._gauges(aggregate)  # type: ignore[misc]
        self._made_at = 0.0
        self._readings: list[dict[Field, float]] = []

    def slow_down(self, number: int) -> None:
        """This job takes twice as long for a step from now on."""
        self._slowed.add(number)
        self._made_at = 0.0

    def rows(self, query: str) -> Rows:
        """The answer to a query; nothing for one that is about what the crowd does not have."""
        one = _ONE_JOB.search(query)
        if one is not None:
            member = Member(int(one[1]))
            return iter([(_labels(member), self._reading(member, time.time())[Field.SAMPLES_PER_SECOND])])
        answer = self._answers.get(query)
        return iter(()) if answer is None else answer()

    def _reading(self, member: Member, now: float) -> dict[Field, float]:
        reading = member.reading(now)
        if member.number in self._slowed:
            for field in (Field.SAMPLES_PER_SECOND, Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY, Field.COMPUTE_ACTIVE):
                reading[field] *= _SLOWED
            reading[Field.STEP_SECONDS] /= _SLOWED
        return reading

    def _now(self) -> Iterator[tuple[Member, dict[Field, float]]]:
        """One reading for all queries of a cycle, as of one scrape."""
        now = time.time()
        if now - self._made_at > SCRAPE_INTERVAL / 2:
            self._made_at, self._readings = now, [self._reading(member, now) for member in self._members]
        return zip(self._members, self._readings, strict=True)

    def _presence(self) -> Rows:
        for member, _ in self._now():
            yield _labels(member, field=queries.PODS), 1.0
            yield _labels(member, field=queries.AT), self._made_at

    def _rates(self) -> Rows:
        for member, reading in self._now():
            yield _labels(member, field=queries.SAMPLES_PER_SECOND), reading[Field.SAMPLES_PER_SECOND]
            yield _labels(member, field=queries.STEP_SECONDS), reading[Field.STEP_SECONDS]

    def _gauges(self, aggregate: Aggregate) -> Rows:
        for member, reading in self._now():
            for gauge in GAUGES:
                if gauge.aggregate is aggregate:
                    more = {contract.LABEL_PART: gauge.part} if gauge.part else {}
                    yield _labels(member, __name__=gauge.metric, **more), reading[gauge.field]


def _labels(member: Member, **more: str) -> dict[str, str]:
    return {**more, "namespace": member.key.namespace, "profiledjob": member.key.name, "revision": "1"}


def _server(port: int, crowd: Crowd) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
            now = time.time()
            rows = [{"metric": labels, "value": [now, repr(value)]} for labels, value in crowd.rows(query)]
            self._answer({"status": "success", "data": {"resultType": "vector", "result": rows}})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            crowd.slow_down(int(self.path.rsplit("/", 1)[1]))
            self._answer({})

        def _answer(self, content: Any) -> None:
            body = json.dumps(content, separators=(",", ":")).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    _server(int(sys.argv[1]), Crowd(int(sys.argv[2]))).serve_forever()
