"""Prometheus is unavailable, slow or invalid: failed fields are missing and reported, never zero and never raised.

What a real Prometheus answers to the queries is tested in tests/integration/telemetry.
"""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from rightpool.profiles.sample import Field, RevisionKey
from rightpool.telemetry.prometheus import PrometheusReader
from rightpool.telemetry.reader import Target, TelemetryReading
from rightpool.telemetry.sources import registry
from tests.patience import PATIENCE
from tests.unit.telemetry.pages import Answer, Page, free_port, raw_server, serving

LABELS = {"namespace": "ml", "profiledjob": "bert", "revision": "2"}
KEY = RevisionKey("ml", "bert", 2)
QUERIES = sum(len(source.queries(60)) for source in registry.SOURCES)
TARGETS = [Target(KEY, (("bert-r2-0", "10.0.0.1"),), 10.0)]


def vector(*rows: tuple[dict[str, str], str]) -> str:
    result = [{"metric": LABELS | labels, "value": [1000.5, value]} for labels, value in rows]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def healthy(path: str) -> str:
    """A Prometheus that knows one Revision."""
    [query] = parse_qs(urlsplit(path).query)["query"]
    if '"pods"' in query:
        return vector(({"field": "pods"}, "1"), ({"field": "at"}, "1000"))
    if query.startswith("avg"):
        return vector(({"__name__": "rightpool_chip_busy_ratio"}, "0.5"), ({"__name__": "no_such_metric"}, "1"))
    if "stepSeconds" in query:
        return vector(({"field": "samplesPerSecond"}, "150"), ({"field": "stepSeconds"}, "NaN"))
    return vector()


def read(answer: Callable[[str], Answer], targets: list[Target] = TARGETS, **options: Any) -> TelemetryReading:
    with serving(Page(answer)) as url:
        return read_from(url, targets, **options)


def read_from(url: str, targets: list[Target] = TARGETS, **options: Any) -> TelemetryReading:
    source = PrometheusReader(url, **{"timeout": PATIENCE, "budget": PATIENCE, **options})
    try:
        return source.read(targets, now=1001.0)
    finally:
        source.close()


def test_series_that_prometheus_lacks_are_missing() -> None:
    reading = read(healthy)
    assert reading.failures == ()
    sample = reading.samples[KEY]
    assert sample.at == 1000.0, "the time of the scrape, not that of the query"
    assert sample.values == {Field.PODS: 1, Field.CHIP_BUSY: 0.5, Field.SAMPLES_PER_SECOND: 150}


def test_as_many_queries_for_a_thousand_jobs_as_for_one() -> None:
    counts = []
    for jobs in (0, 1, 1000):
        page = Page(healthy)
        with serving(page) as url:
            read_from(url, [Target(RevisionKey("ml", f"job-{number}", 1), (), 10.0) for number in range(jobs)])
        counts.append(len(page.asked))
    assert counts == [QUERIES] * 3


def test_jobs_that_were_not_requested_are_dropped() -> None:
    assert read(healthy, [Target(RevisionKey("ml", "other", 2), (), 10.0)]).samples == {}


def test_a_failed_query_affects_only_its_own_fields() -> None:
    def answer(path: str) -> Answer:
        return (503, b"overloaded") if "samplesPerSecond" in path else healthy(path)

    reading = read(answer)
    assert reading.up
    assert reading.samples[KEY].values == {Field.PODS: 1, Field.CHIP_BUSY: 0.5}
    [failure] = reading.failures
    assert failure.startswith("Prometheus: rates: HTTP Status Code 503")


def test_an_element_that_can_not_be_read_ends_its_query_alone() -> None:
    def answer(path: str) -> str:
        text = healthy(path)
        return (
            text.replace(', {"metric"', ', {"metric": 1}, {"metric"') if "rightpool_chip_busy_ratio" in text else text
        )

    reading = read(answer)
    assert reading.up
    assert reading.samples[KEY].values == {Field.PODS: 1, Field.CHIP_BUSY: 0.5, Field.SAMPLES_PER_SECOND: 150}
    [failure] = reading.failures
    assert failure.startswith("Prometheus: gauges by avg: the answer can't be read")


def test_gone() -> None:
    reading = read_from(f"http://127.0.0.1:{free_port()}")
    assert (dict(reading.samples), reading.up) == ({}, False)
    assert reading.failures[0].startswith("Prometheus: pods: can't be reached")
    assert "refused" in reading.failures[0]


GARBAGE = [
    "",
    "<html>sign in</html>",
    "null",
    "[]",
    "{}",
    '{"data": null}',
    '{"data": {"result": null}}',
    '{"data": {"result": {"a": 1}}}',
    '{"data": {"result": [1]}}',
    '{"data": {"result": [{"metric": [], "value": [1, "1"]}]}}',
    '{"data": {"result": [{"metric": {}, "value": [1]}]}}',
    '{"data": {"result": [{"metric": {}, "value": [1, 2]}]}}',
    '{"data": {"result": [{"metric": {}, "value": [1, "two"]}]}}',
    '{"data": {"result": [{"metric": {}, "value": [1e999, "NaN"]}]}}',
    '{"data": {"result": [{"metric": {}, "value": ["soon", "1"]}]}}',
    '{"data": {"result": [{"metric": {}, "value": [1' + "0" * 400 + ', "1"]}]}}',
    '{"data": {"result": ' + "[" * 100_000,
    '{"data": {"result": [{"metric": {}, "values": [[1, "1"]]}]}}',
]


@pytest.mark.parametrize("body", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_from_the_start(body: str) -> None:
    reading = read(lambda _: body)
    assert (dict(reading.samples), reading.up) == ({}, False)
    assert len(reading.failures) == 1


@pytest.mark.parametrize("body", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_after_the_start(body: str) -> None:
    reading = read(lambda path: healthy(path) if "pods" in path else body)
    assert reading.up
    assert reading.samples[KEY].values == {Field.PODS: 1}
    assert len(reading.failures) == QUERIES - 1  # not of that for pods


@pytest.mark.parametrize("status", [302, 401, 404, 500])
def test_other_answers(status: int) -> None:
    assert not read(lambda _: (status, b"x" * 10_000)).up
    assert len(read(lambda _: (status, b"x" * 10_000)).failures[0]) < 400


def test_rows_without_revision_and_unknown_fields_are_ignored() -> None:
    def answer(path: str) -> str:
        return (
            healthy(path).replace('"result": [', '"result": [' + STRANGE, 1) if "[]" not in healthy(path) else vector()
        )

    labels = [{}, {**LABELS, "revision": "two"}, {**LABELS, "field": "no such"}, {**LABELS, "revision": "9" * 5000}]
    STRANGE = "".join(json.dumps({"metric": strange, "value": [1, "7"]}) + ", " for strange in labels)
    reading = read(answer)
    assert reading.failures == ()
    assert reading.samples.keys() == {KEY}


@pytest.fixture
def stopwatch() -> Iterator[Callable[[], float]]:
    started = time.monotonic()
    yield lambda: time.monotonic() - started


def test_slow_from_the_start(stopwatch: Callable[[], float]) -> None:
    page = Page(lambda _: "")
    page.answer = lambda path: (page.wait(PATIENCE), healthy(path))[1]
    with serving(page) as url:
        reading = read_from(url, timeout=0.5)
    assert not reading.up
    assert reading.failures == ("Prometheus: pods: no answer within 0.5 seconds",)
    assert stopwatch() < PATIENCE / 2


def test_slow_later_on_ends_with_the_budget() -> None:
    page = Page(lambda _: "")
    late = 0.0

    def answer(path: str) -> str:
        """The first one at once. Each other one is empty, and takes three seconds of no real time."""
        nonlocal late
        if "pods" in path:
            return healthy(path)
        late += 3.0
        return vector()

    page.answer = answer
    with serving(page) as url:
        reading = read_from(url, timeout=60.0, budget=2.0, clock=lambda: late)
    assert reading.up
    assert reading.samples[KEY].values == {Field.PODS: 1}
    assert any("no time was left" in failure for failure in reading.failures)


def test_an_answer_that_drips(stopwatch: Callable[[], float]) -> None:
    def talk(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not over.wait(0.05):
            connection.sendall(b" ")

    with raw_server(talk) as port:
        reading = read_from(f"http://127.0.0.1:{port}", timeout=0.5)
    assert not reading.up
    assert stopwatch() < PATIENCE / 2


def test_an_answer_that_is_cut_off() -> None:
    def talk(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"data": {"result": []}}')

    with raw_server(talk) as port:
        reading = read_from(f"http://127.0.0.1:{port}")
    assert not reading.up


def test_an_answer_without_end() -> None:
    def talk(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not over.is_set():
            connection.sendall(b" " * 2**20)

    with raw_server(talk) as port:
        reading = read_from(f"http://127.0.0.1:{port}", timeout=3.0)
    assert not reading.up
    assert "larger than" in reading.failures[0] or "no answer within" in reading.failures[0]


def packed(body: bytes) -> Callable[[socket.socket, threading.Event], None]:
    content = gzip.compress(body)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(content)}\r\n\r\n"
    return lambda connection, _: connection.sendall(head.encode() + content)


def test_a_packed_answer_is_read() -> None:
    body = vector(({"field": "pods"}, "1"), ({"field": "at"}, "1000")).encode()
    with raw_server(packed(body)) as port:
        reading = read_from(f"http://127.0.0.1:{port}")
    assert reading.samples[KEY].values == {Field.PODS: 1}


def test_a_compressed_response_is_bounded_by_its_decompressed_size() -> None:
    with raw_server(packed(b" " * 2**27)) as port:
        reading = read_from(f"http://127.0.0.1:{port}", timeout=60.0, budget=60.0)
    assert not reading.up
    assert "larger than" in reading.failures[0]
