"""Prometheus' part in the benchmark: answers the operator's queries with the readings of a crowd that does not exist.

A process of its own, so that what it costs is nobody else's. It understands no PromQL: it knows the very texts that
the operator sends, and the one that the naive operator sends. `POST /change/<number>` halves a job's speed.

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

from benchmarks.crowd import Member, members
from rightpool import contract
from rightpool.profiles.sample import Field
from rightpool.telemetry import queries
from rightpool.telemetry.fields import GAUGES, Aggregate

SCRAPE_INTERVAL: Final = 10.0
_ONE_JOB: Final = re.compile(r'profiledjob="job-(\d+)"')
_SLOWED: Final = 0.5
_STEPS_SO_FAR: Final = 10_000.0
_NOISE: Final = 0.004
_WITH_SPEED: Final = (Field.SAMPLES_PER_SECOND, Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY, Field.COMPUTE_ACTIVE)
_QUERIED_AT: Final = "1800000000"  # the operator goes by the time of the scrape

Row = tuple[str, int, Field]  # its text up to the value, whose it is, and what


class Crowd:
    """What is measured of it now. One scrape is behind all answers of the next seconds."""

    def __init__(self, count: int) -> None:
        self._members = members(count)
        self._steady = [member.reading(0.0) for member in self._members]
        self._slowed: set[int] = set()
        self._scraped_at = 0.0
        self._counted_at = 0.0
        self._steps = [_STEPS_SO_FAR] * count
        self._readings: list[dict[Field, float]] = []
        texts = queries.queries(4 * SCRAPE_INTERVAL)
        self._rows = {texts.presence: self._named((queries.PODS, Field.PODS), (queries.AT, Field.CHECKPOINT_SECONDS))}
        self._rows[texts.rates] = self._named(
            (queries.SAMPLES_PER_SECOND, Field.SAMPLES_PER_SECOND), (queries.STEP_SECONDS, Field.STEP_SECONDS)
        )
        for aggregate in Aggregate:
            self._rows[texts.gauges[aggregate]] = self._gauges(aggregate)
        self._presence = texts.presence

    def slow_down(self, number: int) -> None:
        """This job takes twice as long for a step from now on."""
        self._slowed.add(number)
        self._scraped_at = 0.0

    def answer(self, query: str) -> str:
        """The rows of a query, as JSON; none for one that is about what the crowd does not have."""
        self._scrape()
        one = _ONE_JOB.search(query)
        if one is not None:
            number = int(one[1])
            return f'{_start(self._members[number], {})}{self._readings[number][Field.SAMPLES_PER_SECOND]!r}"]}}'
        rows, readings = self._rows.get(query, ()), self._readings
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
        # Counted, not computed from this moment's speed: steps that go down are of a program that was started anew.
        self._steps[number] += (now - self._counted_at) / reading[Field.STEP_SECONDS]
        reading[Field.STEPS] = math.floor(self._steps[number])
        reading[Field.CHECKPOINT_TIMESTAMP] = now // 600.0 * 600.0
        return reading

    def _named(self, *fields: tuple[str, Field]) -> list[Row]:
        return [
            (_start(member, {"field": name}), member.number, field)
            for member in self._members
            for name, field in fields
        ]

    def _gauges(self, aggregate: Aggregate) -> list[Row]:
        gauges = [gauge for gauge in GAUGES if gauge.aggregate is aggregate]
        return [
            (
                _start(member, {"__name__": gauge.metric, **({contract.LABEL_PART: gauge.part} if gauge.part else {})}),
                member.number,
                gauge.field,
            )
            for member in self._members
            for gauge in gauges
        ]


def _start(member: Member, labels: Mapping[str, str]) -> str:
    """A row of an answer, up to its value."""
    whole = {**labels, "namespace": member.key.namespace, "profiledjob": member.key.name, "revision": "1"}
    return f'{{"metric":{json.dumps(whole, separators=(",", ":"))},"value":[{_QUERIED_AT},"'


def _server(port: int, crowd: Crowd) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
            self._answer(f'{{"status":"success","data":{{"resultType":"vector","result":[{crowd.answer(query)}]}}}}')

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            crowd.slow_down(int(self.path.rsplit("/", 1)[1]))
            self._answer("{}")

        def _answer(self, content: str) -> None:
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
    _server(int(sys.argv[1]), Crowd(int(sys.argv[2]))).serve_forever()
