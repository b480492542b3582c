"""Servers' pages through a real Prometheus say what the pods themselves say."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.answers import PageProblem
from rightpool.profiles.demand import Demanded, DemandRecord
from rightpool.profiles.sample import RevisionKey
from rightpool.profiles.served import ServedWindow
from rightpool.telemetry.demand_history import demand_queries, past_demand
from rightpool.telemetry.prometheus import PrometheusQueries
from rightpool.telemetry.server_pages import ServerReading, ServerTarget
from rightpool.telemetry.server_queries import ServerQueries
from rightpool.telemetry.sources.servers.dialects import dialect_named
from tests.integration.telemetry.conftest import Fleet
from tests.patience import eventually
from tests.unit.telemetry.pages import Page, free_port
from tests.unit.telemetry.test_server_scrape import RECORDED, SGLANG, bento

RATE = 40.0  # of each replica
KEY = RevisionKey("shop", "ranker", 3)
TRITON = RevisionKey("shop", "vision", 1)
OTHER = RevisionKey("shop", "words", 1)


def labels(key: RevisionKey, pod: str) -> dict[str, str]:
    return {"namespace": key.namespace, "pod": pod, "profiledjob": key.job, "revision": str(key.revision)}


@pytest.mark.skipif(not RECORDED.is_dir(), reason="RIGHTPOOL_SHARED is not set")
def test_all_servers_by_one_query_a_dialect(fleet: Fleet) -> None:
    started = time.time()

    def grown() -> str:
        requests = int(RATE * (time.time() - started))
        return bento(requests, probes=7 * requests, late=requests // 10)

    triton = (RECORDED / "triton-2.51-at-60.before.prom").read_text(encoding="utf-8")
    counted = re.search(r"^nv_inference_request_success\{.*\} (\d+)$", triton, re.MULTILINE)
    assert counted is not None
    for pod in ("a", "b"):
        fleet.pod(labels(KEY, pod), Page(lambda _: grown()))
    fleet.pod(labels(TRITON, "t"), Page(lambda _: triton))
    fleet.pod(labels(OTHER, "s"), Page(lambda _: SGLANG))
    # Somebody else's pod, which says that it is ours.
    fleet.pod({"namespace": "evil", "pod": "e"}, Page(lambda _: bento(10**6)))
    fleet.start()
    targets = [
        ServerTarget(KEY, (("a", "10.0.0.1"), ("b", "10.0.0.2")), 1, "/", None, 15.0),
        ServerTarget(TRITON, (("t", "10.0.0.3"),), 1, "/", dialect_named("Triton"), 15.0),
        ServerTarget(OTHER, (("s", "10.0.0.4"),), 1, "/", dialect_named("vLLM"), 15.0),
    ]
    reader = ServerQueries(PrometheusQueries(fleet.url), 2.5)
    windows: dict[RevisionKey, ServedWindow] = {}

    def read() -> ServerReading:
        reading = reader.read_servers(targets, time.time())
        windows.update({key: window for key, window in reading.windows.items() if window.complete})
        return reading

    eventually(lambda: read().failures.get(OTHER) and {KEY, TRITON} <= windows.keys())
    last = read()
    found = windows[KEY]
    assert found.requests_per_second == pytest.approx(2 * RATE, rel=0.25)
    late = found.late(0.05)
    assert late is not None
    assert late.high == pytest.approx(0.1, abs=0.03)
    assert last.dialects[KEY].name == "BentoML"
    assert windows[TRITON].requests_per_second == 0
    assert last.failures[OTHER].problem is PageProblem.OTHER_DIALECT
    assert abs(found.at - time.time()) < 60
    reader.close()


def test_a_prometheus_that_is_gone(tmp_path: Path) -> None:
    reader = ServerQueries(PrometheusQueries(f"http://127.0.0.1:{free_port()}"), 2.5)
    reading = reader.read_servers([ServerTarget(KEY, (("a", "10.0.0.1"),), 1, "/", None, 15.0)], time.time())
    assert (reading.up, reading.failures[KEY].problem) == (False, PageProblem.UNREACHABLE)
    reader.close()


def test_what_prometheus_still_has_fills_the_record_of_a_restarted_operator(fleet: Fleet) -> None:
    started = time.time()
    key = RevisionKey("shop", "past", 1)  # Prometheus still has those of the other tests

    def grown() -> str:
        requests = int(RATE * (time.time() - started))
        return bento(requests, probes=7 * requests)

    for pod in ("a", "b"):
        fleet.pod(labels(key, pod), Page(lambda _: grown()))
    fleet.start()
    prometheus = PrometheusQueries(fleet.url)
    bentoml = dialect_named("BentoML")
    assert bentoml is not None
    queries = demand_queries(bentoml, JobKey(key.namespace, key.job), scrape_interval=2.5)
    assert queries.keys() == {Demanded.REQUESTS}

    def full() -> bool:
        """A count of a time in which both were scraped all along."""
        counts = past_demand(prometheus, queries, started + 30, time.time()).get(Demanded.REQUESTS, {})
        return len(counts) >= 2

    eventually(full)
    record = DemandRecord()
    for demanded, counts in past_demand(prometheus, queries, started + 30, time.time()).items():
        record.fill(demanded, counts)
    assert record.peak(time.time()) == pytest.approx(2 * RATE, rel=0.25)
    prometheus.close()
