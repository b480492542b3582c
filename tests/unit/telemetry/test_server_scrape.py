"""Servers' pages, read from their pods: what came between two readings, and every way in which a page can be wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rightpool.profiles.answers import PageProblem
from rightpool.profiles.sample import RevisionKey
from rightpool.profiles.served import RequestCounter, RequestTime
from rightpool.telemetry.server_pages import ServerReading, ServerTarget
from rightpool.telemetry.server_scrape import LARGEST_SERVER_PAGE, ServerScrape
from rightpool.telemetry.sources.servers.dialect import ServerDialect
from rightpool.telemetry.sources.servers.dialects import dialect_named
from tests.patience import PATIENCE
from tests.unit.telemetry.pages import Page, free_port, serving
from tests.unit.telemetry.test_scrape import Clock

KEY = RevisionKey("shop", "ranker", 1)
RECORDED = Path(os.environ.get("RIGHTPOOL_SHARED", "/nowhere")) / "fixtures" / "serving"


def bento(requests: float, probes: float = 0, failed: float = 0, late: float = 0) -> str:
    """A page of BentoML, with requests later than 50 ms."""
    lines = [
        f'bentoml_service_request_total{{endpoint="/predict",http_response_code="200"}} {requests - failed}',
        f'bentoml_service_request_total{{endpoint="/predict",http_response_code="500"}} {failed}',
        f'bentoml_service_request_total{{endpoint="/readyz",http_response_code="200"}} {probes}',
    ]
    name = "bentoml_service_request_duration_seconds"
    for endpoint, all_of, late_of in (("/predict", requests, late), ("/readyz", probes, 0)):
        of = f'endpoint="{endpoint}",http_response_code="200"'
        lines += [
            f'{name}_bucket{{{of},le="0.05"}} {all_of - late_of}',
            f'{name}_bucket{{{of},le="+Inf"}} {all_of}',
            f"{name}_count{{{of}}} {all_of}",
        ]
    return "\n".join(lines) + "\n"


class Replicas:
    """Pods 127.0.0.2, .3, … of one server, and what reads them."""

    def __init__(self, stack: ExitStack, budget: float = PATIENCE) -> None:
        self.clock = Clock()
        self.port = free_port()
        self.stack = stack
        self.source = ServerScrape(timeout=PATIENCE, budget=budget, clock=self.clock)
        stack.callback(self.source.close)
        self.pods: list[tuple[str, str]] = []
        self.dialect: ServerDialect | None = None

    def pod(self, text: str | None) -> Page:
        page = Page(lambda _: text or "")
        address = f"127.0.0.{len(self.pods) + 2}"
        self.pods.append((f"ranker-{len(self.pods)}", address))
        if text is not None:
            self.stack.enter_context(serving(page, address, self.port))
        return page

    def read(self, after: float = 0.0) -> ServerReading:
        self.clock.now += after
        target = ServerTarget(KEY, tuple(self.pods), self.port, "/metrics", self.dialect, 15.0)
        return self.source.read_servers([target], self.clock.now + 10_000)


@pytest.fixture
def replicas() -> Iterator[Replicas]:
    with ExitStack() as stack:
        yield Replicas(stack)


def say(page: Page, text: str) -> None:
    page.answer = lambda _: text


def test_requests_of_all_replicas_and_none_of_the_probes(replicas: Replicas) -> None:
    one, other = replicas.pod(bento(1000, probes=50)), replicas.pod(bento(30, probes=50))
    first = replicas.read()
    assert (dict(first.windows), dict(first.failures)) == ({}, {})
    assert first.dialects[KEY].name == "BentoML"
    say(one, bento(1300, probes=90, late=3))
    say(other, bento(180, probes=90, failed=9, late=6))
    window = replicas.read(after=15.0).windows[KEY]
    assert (window.at, window.seconds, window.replicas, window.complete) == (11_015.0, 15.0, 2, True)
    assert window.requests_per_second == pytest.approx(30.0)
    assert window.error_ratio == pytest.approx(0.02)
    late = window.late(0.05)
    assert late is not None
    assert late.exact
    assert late.low == pytest.approx(0.02)
    assert window.late(0.05, RequestTime.FIRST_TOKEN) is None


def test_requests_are_timed_from_the_first_one_on(replicas: Replicas) -> None:
    """Of a server that has counted its probes alone until then, at one replica or all."""
    probes_alone = "\n".join(line for line in bento(0, probes=20).splitlines() if "/readyz" in line) + "\n"
    one, _ = replicas.pod(probes_alone), replicas.pod(probes_alone)
    replicas.read()
    assert replicas.read(after=15.0).windows[KEY].requests_per_second == 0
    say(one, bento(100, probes=30, late=40))
    window = replicas.read(after=15.0).windows[KEY]
    assert window.late(0.05) == (0.4, 0.4)
    say(one, bento(200, probes=40, late=90))
    assert window.together(replicas.read(after=15.0).windows[KEY]).late(0.05) == (0.45, 0.45)


def test_what_some_replicas_say_is_no_demand(replicas: Replicas) -> None:
    one = replicas.pod(bento(1000))
    replicas.pod(None)
    replicas.read()
    say(one, bento(1300))
    reading = replicas.read(after=15.0)
    assert reading.windows[KEY].requests_per_second is None
    assert reading.failures[KEY].problem is PageProblem.UNREACHABLE
    assert "ranker-1" in reading.failures[KEY].detail


def test_a_page_that_is_gone_leaves_a_gap(replicas: Replicas) -> None:
    page = replicas.pod(bento(1000))
    replicas.read()
    page.answer = lambda _: (404, b"not here")
    reading = replicas.read(after=15.0)
    assert KEY not in reading.windows
    assert reading.failures[KEY].problem is PageProblem.UNREACHABLE
    assert "404" in reading.failures[KEY].detail
    say(page, bento(9000))
    assert KEY in replicas.read(after=15.0).windows  # half a minute later: its rate is that of all of it
    page.answer = lambda _: (503, b"")
    replicas.read(after=15.0)
    say(page, bento(99_000))
    assert KEY not in replicas.read(after=300.0).windows


def test_counters_that_start_anew_say_so(replicas: Replicas) -> None:
    page = replicas.pod(bento(1000, late=5))
    replicas.read()
    say(page, bento(2000, late=2))  # the process is another one, though its requests are more
    reading = replicas.read(after=15.0)
    assert KEY not in reading.windows
    assert reading.failures[KEY].problem is PageProblem.STARTED_ANEW
    say(page, bento(2150, late=3))
    assert replicas.read(after=15.0).windows[KEY].requests_per_second == pytest.approx(10.0)


def test_no_requests_at_all_are_none_and_nobody_is_late(replicas: Replicas) -> None:
    replicas.pod(bento(1000))
    replicas.read()
    window = replicas.read(after=15.0).windows[KEY]
    assert window.requests_per_second == 0
    assert (window.error_ratio, window.late(0.05), window.mean_seconds) == (None, None, None)


SGLANG = "sglang:num_requests_total 5\nsglang:e2e_request_latency_seconds_count 5\n"


def test_another_server_after_an_update_is_named(replicas: Replicas) -> None:
    page = replicas.pod(bento(1000))
    replicas.dialect = dialect_named("BentoML")
    assert not replicas.read().failures
    say(page, SGLANG)
    failure = replicas.read(after=15.0).failures[KEY]
    assert (failure.problem, failure.detail) == (PageProblem.OTHER_DIALECT, "the page is SGLang's, not BentoML's")
    replicas.dialect = None  # any will do, but what the one counted is not what the other counts
    assert KEY not in replicas.read(after=15.0).windows
    say(page, SGLANG.replace(" 5", " 65"))
    window = replicas.read(after=15.0).windows[KEY]
    assert window.counts.counters[RequestCounter.REQUESTS] == 60


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html><body>hello</body></html>\n", PageProblem.NO_DIALECT),
        (b"", PageProblem.NO_DIALECT),
        (b"process_cpu_seconds_total 1\n", PageProblem.NO_DIALECT),
        (b"bentoml_service_request_total{endpoint= 1\n", PageProblem.UNREADABLE),
        (b"bentoml_service_request_total 1", PageProblem.UNREADABLE),
        (b"bentoml_service_request_total 1\n" * 2, PageProblem.UNREADABLE),
        (b"\xff\xfe\n", PageProblem.UNREACHABLE),
        (b"# long\n" * (LARGEST_SERVER_PAGE // 7 + 1), PageProblem.UNREACHABLE),
    ],
    ids=["html", "empty", "other", "no series", "cut off", "twice", "no text", "too large"],
)
def test_a_page_that_is_none(replicas: Replicas, body: bytes, problem: PageProblem) -> None:
    page = replicas.pod("")
    page.answer = lambda _: (200, body)
    reading = replicas.read()
    assert reading.failures[KEY].problem is problem
    assert reading.failures[KEY].detail
    assert KEY not in reading.dialects


def test_a_pod_that_does_not_answer_takes_no_more_than_the_budget() -> None:
    with ExitStack() as stack:
        replicas = Replicas(stack, budget=0.2)
        page = replicas.pod(bento(5))
        page.answer = lambda _: str(page.wait(PATIENCE))
        assert replicas.read().failures[KEY].problem is PageProblem.UNREACHABLE


@pytest.mark.skipif(not RECORDED.is_dir(), reason="RIGHTPOOL_SHARED is not set")
def test_the_recorded_triton_as_its_pod_would_serve_it(replicas: Replicas) -> None:
    def recorded(name: str) -> str:
        return (RECORDED / f"triton-2.51-at-60.{name}.prom").read_text(encoding="utf-8")

    page = replicas.pod(recorded("before"))
    replicas.read()
    say(page, recorded("after"))
    reading = replicas.read(after=15.0)
    assert reading.dialects[KEY].means_only
    assert reading.windows[KEY].requests_per_second == pytest.approx(60.0)
