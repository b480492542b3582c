"""The dialects of servers, on pages that real servers have served, and on the few that are made here of their names."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from rightpool.api.server import ServerMetrics
from rightpool.profiles.answers import answers_of
from rightpool.profiles.latency import Between
from rightpool.profiles.loads import Loads
from rightpool.profiles.sample import Quality
from rightpool.profiles.served import RequestCounter as Counter
from rightpool.profiles.served import RequestLevel as Level
from rightpool.profiles.served import RequestTime as Time
from rightpool.profiles.served import ServedWindow, ServerCounts, window_of
from rightpool.telemetry.exposition import Series, parse_metrics
from rightpool.telemetry.sources.servers.dialect import ServerDialect
from rightpool.telemetry.sources.servers.dialects import DIALECTS, dialect_named, dialect_of, spoken

SHARED = Path(os.environ.get("RIGHTPOOL_SHARED", "/nowhere")) / "fixtures" / "serving"
ALL = frozenset().union(*(one.metrics for one in DIALECTS))

recorded = pytest.mark.skipif(not SHARED.is_dir(), reason="RIGHTPOOL_SHARED is not set")


def page(name: str) -> list[Series]:
    return parse_metrics((SHARED / f"{name}.prom").read_text(encoding="utf-8"), ALL)


def spoken_by(series: list[Series]) -> ServerDialect:
    found = spoken(one.metric for one in series)
    assert found is not None
    return found


def counts_of(name: str) -> ServerCounts:
    series = page(name)
    return spoken_by(series).counts(series)


COUNTERS = {
    "triton-2.51-at-20.before": (
        "Triton",
        {
            Counter.REQUESTS: 1201,
            Counter.ERRORS: 0,
            Counter.SECONDS: 18.089202,
            Counter.TIMED: 1201,
            Counter.QUEUE_SECONDS: 7.163679,
            Counter.QUEUED: 1201,
            Counter.BATCH_SECONDS: 10.294644,
            Counter.TIMED_BATCHES: 1201,
            Counter.BATCHED: 1201,
            Counter.BATCHES: 1138,
        },
        {},
        {Level.WAITING: 0},
    ),
    "vllm-0.32-1": (
        "vLLM",
        {
            Counter.REQUESTS: 105,
            Counter.ERRORS: 0,
            Counter.QUEUE_SECONDS: 9.418811144,
            Counter.QUEUED: 105,
            Counter.TOKENS_IN: 630,
            Counter.TOKENS_OUT: 3360,
        },
        {Time.WHOLE: (0.3, 105), Time.FIRST_TOKEN: (0.001, 105), Time.BETWEEN_TOKENS: (0.01, 3255)},
        {Level.CONCURRENCY: 0, Level.WAITING: 0, Level.CACHE_USED: 0},
    ),
    "ray-serve-2.60": (
        "RayServe",
        {
            Counter.REQUESTS: 280,
            Counter.ERRORS: 0,
            Counter.QUEUE_SECONDS: 1.95,
            Counter.QUEUED: 179,
            Counter.BATCH_SECONDS: 3.8795,
            Counter.TIMED_BATCHES: 179,
            Counter.BATCHED: 193.5,
            Counter.BATCHES: 179,
        },
        {Time.WHOLE: (0.001, 280)},
        {Level.CONCURRENCY: 0, Level.WAITING: 0},
    ),
    # Of its 357 requests 7 are probes.
    "bentoml-1.4.40": (
        "BentoML",
        {Counter.REQUESTS: 350, Counter.ERRORS: 0, Counter.BATCHED: 350, Counter.BATCHES: 183},
        {Time.WHOLE: (0.005, 350)},
        {Level.CONCURRENCY: 0},
    ),
    "mlserver-1.7.1": (
        "MLServer",
        {Counter.REQUESTS: 1911, Counter.ERRORS: 0, Counter.SECONDS: 3661.19108368, Counter.TIMED: 1911},
        {Time.WHOLE: (0.005, 1911)},
        {Level.CONCURRENCY: 7},
    ),
    "kserve-0.21": (
        "KServe",
        {Counter.REQUESTS: 784, Counter.BATCH_SECONDS: 60.459595005, Counter.TIMED_BATCHES: 784},
        {},
        {},
    ),
    # It has not failed yet, and then does not say that it never did.
    "torchserve-0.12": (
        "TorchServe",
        {
            Counter.REQUESTS: 280,
            Counter.SECONDS: 42.598921968,
            Counter.TIMED: 280,
            Counter.QUEUE_SECONDS: 14.962589102,
            Counter.QUEUED: 280,
        },
        {},
        {},
    ),
}


@recorded
@pytest.mark.parametrize("name", COUNTERS)
def test_each_field_of_a_recorded_page_is_there_or_absent(name: str) -> None:
    dialect, counters, times, levels = COUNTERS[name]
    series = page(name)
    found = spoken_by(series).counts(series)
    assert spoken_by(series).name == dialect
    assert {key: pytest.approx(value, rel=1e-6) for key, value in counters.items()} == dict(found.counters)
    assert {key: (one.edges[0], one.total) for key, one in found.times.items()} == times
    assert dict(found.levels) == levels


@recorded
@pytest.mark.parametrize("rate", [20, 60, 120])
def test_triton_between_two_pages_answers_the_known_rate(rate: int) -> None:
    grown = counts_of(f"triton-2.51-at-{rate}.after").since(counts_of(f"triton-2.51-at-{rate}.before"))
    assert grown is not None
    window = window_of([(15.0, grown)], 100.0, 1)
    assert window is not None
    assert window.requests_per_second == pytest.approx(rate)
    assert window.quality is Quality.DERIVED
    assert window.error_ratio == 0
    assert window.batch_size == pytest.approx({20: 1.13, 60: 1.35, 120: 2.49}[rate], abs=0.005)
    # Its sums tell means; its summaries can't be added up, and are left alone.
    assert window.mean_seconds is not None
    assert window.queue_seconds is not None
    assert window.batch_seconds is not None
    assert window.queue_seconds + window.batch_seconds < window.mean_seconds
    assert (window.late(0.5), window.quantile(0.99)) == (None, None)


@recorded
def test_what_is_late_is_an_interval_where_no_edge_is_the_limit() -> None:
    vllm = counts_of("vllm-0.32-1")
    whole, first = vllm.times[Time.WHOLE], vllm.times[Time.FIRST_TOKEN]
    assert whole.later_than(0.05) == Between(69 / 105, 1.0)  # its first edge is above that
    assert whole.edges_around(0.05) == (None, 0.3)
    assert whole.later_than(2.0) == Between(24 / 105, 24 / 105)
    assert first.later_than(0.5) == Between(11 / 105, 11 / 105)
    assert first.quantile(0.99) == Between(1.0, 2.5)
    assert counts_of("bentoml-1.4.40").times[Time.WHOLE].total == 350
    assert counts_of("ray-serve-2.60").times[Time.WHOLE].later_than(0.3) == Between(72 / 280, 72 / 280)


@recorded
def test_tokens_of_a_recorded_server_are_counted_and_timed() -> None:
    window = ServedWindow(60.0, 60.0, counts_of("vllm-0.32-1"), 1, True)
    answers = answers_of(1, [window], {Time.FIRST_TOKEN: 0.5, Time.BETWEEN_TOKENS: 0.05})
    assert answers is not None and answers.between_tokens is not None
    assert answers.first_token == Between(1.0, 2.5)
    late = answers.late(Time.FIRST_TOKEN)
    assert late is not None and late.share == Between(11 / 105, 11 / 105)
    made = window.counts.counters[Counter.TOKENS_OUT]
    assert made > 105 and answers.tokens_per_second == made / 60.0


@recorded
def test_the_other_page_of_vllm_is_a_later_one() -> None:
    grown = counts_of("vllm-0.32-2").since(counts_of("vllm-0.32-1"))
    back = counts_of("vllm-0.32-1").since(counts_of("vllm-0.32-2"))
    assert (grown is None) != (back is None)


@pytest.mark.parametrize(
    ("name", "page", "share"),
    [
        ("vLLM", 'vllm:kv_cache_usage_perc{engine="0"} 0.2\nvllm:kv_cache_usage_perc{engine="1"} 0.4\n', 0.3),
        ("vLLM", "vllm:gpu_cache_usage_perc 0.25\n", 0.25),
        ("SGLang", 'sglang:token_usage{model_name="m"} 0.28\n', 0.28),
        ("SGLang", "", None),
        ("TGI", "tgi_batch_current_size 3\n", None),
    ],
    ids=["two engines", "before", "SGLang", "absent", "none"],
)
def test_the_share_of_its_cache_that_a_server_uses_is_read(name: str, page: str, share: float | None) -> None:
    dialect = dialect_named(name)
    assert dialect is not None
    found = dialect.counts(parse_metrics(page, ALL)).levels.get(Level.CACHE_USED)
    assert found == (None if share is None else pytest.approx(share))


@recorded
def test_no_other_dialect_speaks_a_recorded_page() -> None:
    for name, (dialect, *_) in COUNTERS.items():
        names = {one.metric for one in page(name)}
        assert [one.name for one in DIALECTS if one.speaks(names)] == [dialect]


SGLANG = """\
sglang:num_running_reqs{model_name="m"} 4.0
sglang:num_requests_total{model_name="m"} 11008.0
sglang:prompt_tokens_total{model_name="m"} 8.128902e+06
sglang:generation_tokens_total{model_name="m"} 7.557572e+06
sglang:e2e_request_latency_seconds_sum{model_name="m"} 3.1e+06
sglang:e2e_request_latency_seconds_bucket{le="0.1",model_name="m"} 10.0
sglang:e2e_request_latency_seconds_bucket{le="+Inf",model_name="m"} 11008.0
sglang:e2e_request_latency_seconds_count{model_name="m"} 11008.0
"""
TGI = """\
tgi_request_count 120
tgi_request_failure{err="overloaded"} 3
tgi_queue_size 2
tgi_request_duration_bucket{le="0.5"} 100
tgi_request_duration_bucket{le="+Inf"} 117
tgi_request_duration_sum 320.5
tgi_request_duration_count 117
tgi_request_generated_tokens_sum 9000
"""
TF_SERVING = """\
:tensorflow:serving:request_count{model_name="m",status="OK"} 40
:tensorflow:serving:request_count{model_name="m",status="INVALID_ARGUMENT"} 5
:tensorflow:serving:request_count{model_name="m",status="UNAVAILABLE"} 2
:tensorflow:serving:request_latency_bucket{model_name="m",API="predict",entrypoint="REST",le="18"} 0
:tensorflow:serving:request_latency_bucket{model_name="m",API="predict",entrypoint="REST",le="50000"} 30
:tensorflow:serving:request_latency_bucket{model_name="m",API="predict",entrypoint="REST",le="+Inf"} 40
:tensorflow:serving:request_latency_sum{model_name="m",API="predict",entrypoint="REST"} 1600000
:tensorflow:serving:request_latency_count{model_name="m",API="predict",entrypoint="REST"} 40
"""
DYNAMO = """\
dynamo_frontend_requests_started_total{model="m"} 60
dynamo_frontend_requests_total{model="m",status="success"} 50
dynamo_frontend_requests_total{model="m",status="error"} 4
dynamo_frontend_inflight_requests{model="m"} 6
dynamo_frontend_input_sequence_tokens_sum{model="m"} 20000
dynamo_frontend_request_duration_seconds_bucket{model="m",le="1"} 50
dynamo_frontend_request_duration_seconds_bucket{model="m",le="+Inf"} 54
dynamo_frontend_request_duration_seconds_count{model="m"} 54
"""
OPEN_TELEMETRY = """\
http_server_request_duration_seconds_bucket{http_route="/infer",http_response_status_code="200",le="0.05"} 8
http_server_request_duration_seconds_bucket{http_route="/infer",http_response_status_code="200",le="+Inf"} 9
http_server_request_duration_seconds_count{http_route="/infer",http_response_status_code="200"} 9
http_server_request_duration_seconds_bucket{http_route="/infer",http_response_status_code="503",le="0.05"} 1
http_server_request_duration_seconds_bucket{http_route="/infer",http_response_status_code="503",le="+Inf"} 1
http_server_request_duration_seconds_count{http_route="/infer",http_response_status_code="503"} 1
http_server_request_duration_seconds_bucket{http_route="/healthz",http_response_status_code="200",le="0.05"} 70
http_server_request_duration_seconds_bucket{http_route="/healthz",http_response_status_code="200",le="+Inf"} 70
http_server_request_duration_seconds_count{http_route="/healthz",http_response_status_code="200"} 70
"""


@pytest.mark.parametrize(
    ("text", "name", "requests", "errors", "whole", "started"),
    [
        (SGLANG, "SGLang", 11008, None, ((0.1,), 11008), False),
        (TGI, "TGI", 120, 3, ((0.5,), 117), True),
        (TF_SERVING, "TFServing", 47, 2, ((18e-6, 0.05), 40), False),
        (DYNAMO, "Dynamo", 60, 4, ((1.0,), 54), True),
        (OPEN_TELEMETRY, "OpenTelemetry", 10, 1, ((0.05,), 10), False),
    ],
    ids=["SGLang", "TGI", "TFServing", "Dynamo", "OpenTelemetry"],
)
def test_servers_of_which_names_alone_are_known(
    text: str, name: str, requests: float, errors: float | None, whole: tuple[tuple[float, ...], float], started: bool
) -> None:
    series = parse_metrics(text, ALL)
    dialect = spoken_by(series)
    found = dialect.counts(series)
    assert dialect.name == name
    assert (found.counters[Counter.REQUESTS], found.counters.get(Counter.ERRORS)) == (requests, errors)
    assert (found.times[Time.WHOLE].edges, found.times[Time.WHOLE].total) == whole
    assert (Counter.REQUESTS not in found.derived) is started


def named(**fields: Any) -> ServerMetrics:
    return ServerMetrics.model_validate({"port": 8002, **fields})


ISTIO = """\
istio_requests_total{reporter="destination",request_protocol="http",response_code="200"} 940
istio_requests_total{reporter="destination",request_protocol="http",response_code="404"} 40
istio_requests_total{reporter="destination",request_protocol="http",response_code="503"} 20
istio_requests_total{reporter="source",request_protocol="http",response_code="503"} 7
istio_request_duration_milliseconds_bucket{reporter="destination",response_code="200",le="25"} 900
istio_request_duration_milliseconds_bucket{reporter="destination",response_code="200",le="100"} 930
istio_request_duration_milliseconds_bucket{reporter="destination",response_code="200",le="+Inf"} 940
istio_request_duration_milliseconds_sum{reporter="destination",response_code="200"} 20000
istio_request_duration_milliseconds_count{reporter="destination",response_code="200"} 940
istio_request_duration_milliseconds_bucket{reporter="source",response_code="503",le="25"} 0
istio_request_duration_milliseconds_bucket{reporter="source",response_code="503",le="100"} 0
istio_request_duration_milliseconds_bucket{reporter="source",response_code="503",le="+Inf"} 7
istio_request_duration_milliseconds_sum{reporter="source",response_code="503"} 7000
istio_request_duration_milliseconds_count{reporter="source",response_code="503"} 7
"""


def test_the_proxy_of_a_mesh_which_no_dialect_of_the_table_speaks() -> None:
    dialect = dialect_of(
        named(
            dialect="Histogram",
            seconds='istio_request_duration_milliseconds{reporter="destination",response_code!="503"}',
            requests='istio_requests_total{reporter="destination"}',
            errors='istio_requests_total{reporter="destination",response_code=~"5.."}',
            unit="Milliseconds",
        )
    )
    assert dialect is not None
    series = parse_metrics(ISTIO, dialect.metrics)
    assert spoken({one.metric for one in series}) is None
    assert dialect.speaks({one.metric for one in series})
    found = dialect.counts(series)
    assert dict(found.counters) == {Counter.REQUESTS: 1000, Counter.ERRORS: 20}
    assert found.times[Time.WHOLE].quantile(0.95) == Between(0.0, 0.025)
    assert found.times[Time.WHOLE].quantile(0.99) == Between(0.1, math.inf)
    assert {"reporter", "response_code", "le"} == dialect.labels


def test_a_value_that_is_no_pattern_is_taken_as_it_is() -> None:
    dialect = dialect_of(named(dialect="Histogram", seconds='x{path="/a.b"}'))
    assert dialect is not None
    found = dialect.counts(parse_metrics('x_count{path="/a.b"} 3\nx_count{path="/a-b"} 4\n', dialect.metrics))
    assert found.counters[Counter.REQUESTS] == 3


def test_the_same_names_are_the_same_dialect() -> None:
    """A page is compared with the one before only where both are of one dialect."""
    one, other = (dialect_of(named(dialect="Histogram", seconds="x", unit="Seconds")) for _ in range(2))
    assert one is other


def test_any_histogram_by_the_names_that_the_user_gives() -> None:
    dialect = dialect_of(
        named(seconds="envoy_upstream_rq_time", errors="envoy_5xx", unit="Milliseconds", dialect="Histogram")
    )
    assert dialect is not None
    text = """\
envoy_upstream_rq_time_bucket{le="25"} 6
envoy_upstream_rq_time_bucket{le="50"} 9
envoy_upstream_rq_time_bucket{le="+Inf"} 10
envoy_upstream_rq_time_sum 300
envoy_upstream_rq_time_count 10
envoy_5xx 1
"""
    found = dialect.counts(parse_metrics(text, dialect.metrics))
    assert dict(found.counters) == {Counter.REQUESTS: 10, Counter.ERRORS: 1}
    assert found.times[Time.WHOLE].later_than(0.05) == Between(0.1, 0.1)
    assert found.times[Time.WHOLE].mean == pytest.approx(0.03)


def test_a_histogram_that_is_none_is_absent() -> None:
    text = 'x_bucket{le="0.1"} 5\nx_bucket{le="+Inf"} 3\nx_count 3\n'
    dialect = dialect_of(named(seconds="x", dialect="Histogram"))
    assert dialect is not None
    found = dialect.counts(parse_metrics(text, dialect.metrics))
    assert Time.WHOLE not in found.times
    assert found.counters[Counter.REQUESTS] == 3


def counts(requests: float, **others: float) -> ServerCounts:
    return ServerCounts({Counter.REQUESTS: requests, **{Counter(k): v for k, v in others.items()}}, {}, {})


def test_one_counter_that_fell_tells_of_a_new_start() -> None:
    assert counts(500, errors=0).since(counts(90, errors=2)) is None
    grown = counts(500, errors=3).since(counts(90))
    assert grown is not None
    assert dict(grown.counters) == {Counter.REQUESTS: 410}  # the errors before are unknown, not none


def test_a_sum_over_some_replicas_is_no_demand() -> None:
    window = window_of([(10.0, counts(40, errors=2)), (10.0, counts(60, errors=0))], 100.0, 3)
    assert window is not None
    assert window.requests_per_second is None
    assert window.error_ratio == pytest.approx(0.02)
    both = window.together(ServedWindow(110.0, 10.0, counts(20), 3, True))
    assert (both.seconds, both.replicas, both.complete, both.error_ratio) == (20.0, 2, False, None)


def test_every_dialect_counts_requests_and_reads_what_it_requires() -> None:
    for one in DIALECTS:
        assert one.counters[Counter.REQUESTS]
        assert dialect_named(one.name) is one
        assert not any(math.isnan(term.divisor) for term in one.times.values())
    assert len({one.name for one in DIALECTS}) == len(DIALECTS) == 12
    assert [one.name for one in DIALECTS if one.means_only] == ["Triton", "TorchServe", "KServe"]


@recorded
def test_two_pages_of_vllm_say_what_a_token_takes() -> None:
    counts = counts_of("vllm-0.32-2").since(counts_of("vllm-0.32-1"))
    assert counts is not None
    loads = Loads()
    loads.extend(ServedWindow(0.0, 60.0, counts, 1, True), "a100/1", "h")
    points, between = loads.at("a100/1"), counts.times[Time.BETWEEN_TOKENS]
    assert points is not None and points.tokens is not None and between.mean is not None
    assert points.seconds[0] == pytest.approx(between.mean)
    assert points.load[0] == pytest.approx(1.0 + between.total * between.mean / 60.0)
    assert 0.0 < points.tokens.spread[0] < 1.5 and points.tokens.first[0] > 0.0
