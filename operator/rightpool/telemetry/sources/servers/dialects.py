"""The dialects that are read. One more is a row here, and a recorded page with what it gives in the tests.

`Auto` takes the first whose required series a page has. What a server counts of its own probes is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from rightpool.api.choices import TimeUnit
from rightpool.api.server import ServerMetrics
from rightpool.profiles.served import RequestCounter as Counter
from rightpool.profiles.served import RequestLevel as Level
from rightpool.profiles.served import RequestTime as Time
from rightpool.telemetry.sources.servers.dialect import ServerDialect, Term, Where

AUTO: Final = "Auto"
HISTOGRAM: Final = "Histogram"

_MICROSECONDS: Final = 1e6
_MILLISECONDS: Final = 1e3
_FAILED: Final = "5.."
_PROBES: Final = "/(.*/)?(metrics|healthz?|health_generate|ping|readyz?|livez?|ready|live|v2/health/.*|-/.*)/?"


def _sum(*metrics: str, per: float = 1.0, where: tuple[Where, ...] = ()) -> tuple[Term, ...]:
    """One quantity of one metric, by its present name and those that it had before."""
    return (Term(metrics, per, where),)


def _one(*metrics: str, per: float = 1.0, where: tuple[Where, ...] = ()) -> Term:
    return Term(metrics, per, where)


_BENTO: Final = (Where("endpoint", _PROBES, keep=False),)
_OTEL: Final = (Where("http_route", _PROBES, keep=False),)
_RAY: Final = (Where("route", "/-/.*", keep=False),)

DIALECTS: Final = (
    ServerDialect(
        "Triton",
        "Triton Inference Server",
        ("nv_inference_request_success", "nv_inference_request_duration_us"),
        {
            Counter.REQUESTS: (Term(("nv_inference_request_success",)), Term(("nv_inference_request_failure",))),
            Counter.ERRORS: _sum("nv_inference_request_failure"),
            Counter.SECONDS: _sum("nv_inference_request_duration_us", per=_MICROSECONDS),
            Counter.TIMED: _sum("nv_inference_request_success"),
            Counter.QUEUE_SECONDS: _sum("nv_inference_queue_duration_us", per=_MICROSECONDS),
            Counter.QUEUED: _sum("nv_inference_request_success"),
            # Each request adds the time of its whole batch.
            Counter.BATCH_SECONDS: _sum("nv_inference_compute_infer_duration_us", per=_MICROSECONDS),
            Counter.TIMED_BATCHES: _sum("nv_inference_request_success"),
            Counter.BATCHED: _sum("nv_inference_count"),
            Counter.BATCHES: _sum("nv_inference_exec_count"),
        },
        {Time.FIRST_TOKEN: _one("nv_inference_first_response_histogram_ms", per=_MILLISECONDS)},
        {Level.WAITING: _one("nv_inference_pending_request_count")},
    ),
    ServerDialect(
        "vLLM",
        "vLLM, NIM 2",
        ("vllm:request_success_total", "vllm:e2e_request_latency_seconds_count"),
        {
            Counter.REQUESTS: (Term(("vllm:request_success_total",)), Term(("vllm:admission_rejections_total",))),
            Counter.ERRORS: (
                Term(("vllm:request_success_total",), where=(Where("finished_reason", "error|abort"),)),
                Term(("vllm:admission_rejections_total",)),
            ),
            Counter.QUEUE_SECONDS: _sum("vllm:request_queue_time_seconds_sum"),
            Counter.QUEUED: _sum("vllm:request_queue_time_seconds_count"),
            Counter.TOKENS_IN: _sum("vllm:prompt_tokens_total"),
            Counter.TOKENS_OUT: _sum("vllm:generation_tokens_total"),
        },
        {
            Time.WHOLE: _one("vllm:e2e_request_latency_seconds"),
            Time.FIRST_TOKEN: _one("vllm:time_to_first_token_seconds"),
            Time.BETWEEN_TOKENS: _one("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        },
        {
            Level.CONCURRENCY: _one("vllm:num_requests_running"),
            Level.WAITING: _one("vllm:num_requests_waiting"),
            Level.CACHE_USED: Term(("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"), mean=True),
        },
    ),
    ServerDialect(
        "SGLang",
        "SGLang with --enable-metrics",
        ("sglang:num_requests_total", "sglang:e2e_request_latency_seconds_count"),
        {
            Counter.REQUESTS: _sum("sglang:num_requests_total"),
            Counter.ERRORS: _sum("sglang:num_aborted_requests_total"),
            Counter.QUEUE_SECONDS: _sum("sglang:queue_time_seconds_sum"),
            Counter.QUEUED: _sum("sglang:queue_time_seconds_count"),
            Counter.TOKENS_IN: _sum("sglang:prompt_tokens_total"),
            Counter.TOKENS_OUT: _sum("sglang:generation_tokens_total"),
        },
        {
            Time.WHOLE: _one("sglang:e2e_request_latency_seconds"),
            Time.FIRST_TOKEN: _one("sglang:time_to_first_token_seconds"),
            Time.BETWEEN_TOKENS: _one("sglang:inter_token_latency_seconds"),
        },
        {
            Level.CONCURRENCY: _one("sglang:num_running_reqs"),
            Level.WAITING: _one("sglang:num_queue_reqs"),
            Level.CACHE_USED: Term(("sglang:token_usage",), mean=True),
        },
    ),
    ServerDialect(
        "TGI",
        "Text Generation Inference",
        ("tgi_request_count", "tgi_request_duration_count"),
        {
            Counter.REQUESTS: _sum("tgi_request_count"),
            Counter.ERRORS: _sum("tgi_request_failure"),
            Counter.QUEUE_SECONDS: _sum("tgi_request_queue_duration_sum"),
            Counter.QUEUED: _sum("tgi_request_queue_duration_count"),
            Counter.TOKENS_IN: _sum("tgi_request_input_length_sum"),
            Counter.TOKENS_OUT: _sum("tgi_request_generated_tokens_sum"),
        },
        {
            Time.WHOLE: _one("tgi_request_duration"),
            # The mean of each request: its distribution is narrower than that of the tokens.
            Time.BETWEEN_TOKENS: _one("tgi_request_mean_time_per_token_duration"),
        },
        {Level.CONCURRENCY: _one("tgi_batch_current_size"), Level.WAITING: _one("tgi_queue_size")},
        started=True,
    ),
    ServerDialect(
        "Dynamo",
        "the frontend of NVIDIA Dynamo",
        ("dynamo_frontend_requests_total", "dynamo_frontend_request_duration_seconds_count"),
        {
            Counter.REQUESTS: _sum("dynamo_frontend_requests_started_total"),
            Counter.ERRORS: _sum("dynamo_frontend_requests_total", where=(Where("status", "error"),)),
            Counter.TOKENS_IN: _sum("dynamo_frontend_input_sequence_tokens_sum"),
            Counter.TOKENS_OUT: _sum("dynamo_frontend_output_sequence_tokens_sum"),
        },
        {
            Time.WHOLE: _one("dynamo_frontend_request_duration_seconds"),
            Time.FIRST_TOKEN: _one("dynamo_frontend_time_to_first_token_seconds"),
            Time.BETWEEN_TOKENS: _one("dynamo_frontend_inter_token_latency_seconds"),
        },
        {
            Level.CONCURRENCY: _one("dynamo_frontend_inflight_requests"),
            Level.WAITING: _one("dynamo_frontend_queued_requests"),
        },
        started=True,
    ),
    ServerDialect(
        "RayServe",
        "Ray Serve",
        ("ray_serve_num_http_requests_total", "ray_serve_http_request_latency_ms_count"),
        {
            Counter.REQUESTS: _sum("ray_serve_num_http_requests_total", where=_RAY),
            Counter.ERRORS: _sum("ray_serve_num_http_requests_total", where=(*_RAY, Where("status_code", _FAILED))),
            Counter.QUEUE_SECONDS: _sum("ray_serve_batch_wait_time_ms_sum", per=_MILLISECONDS),
            Counter.QUEUED: _sum("ray_serve_batch_wait_time_ms_count"),
            Counter.BATCH_SECONDS: _sum("ray_serve_batch_execution_time_ms_sum", per=_MILLISECONDS),
            Counter.TIMED_BATCHES: _sum("ray_serve_batch_execution_time_ms_count"),
            Counter.BATCHED: _sum("ray_serve_actual_batch_size_sum"),
            Counter.BATCHES: _sum("ray_serve_actual_batch_size_count"),
        },
        {Time.WHOLE: _one("ray_serve_http_request_latency_ms", per=_MILLISECONDS, where=_RAY)},
        {
            Level.CONCURRENCY: _one("ray_serve_num_ongoing_http_requests"),
            Level.WAITING: _one("ray_serve_deployment_queued_queries"),
        },
    ),
    ServerDialect(
        "BentoML",
        "BentoML",
        ("bentoml_service_request_total", "bentoml_service_request_duration_seconds_count"),
        {
            Counter.REQUESTS: _sum("bentoml_service_request_total", where=_BENTO),
            Counter.ERRORS: _sum(
                "bentoml_service_request_total", where=(*_BENTO, Where("http_response_code", _FAILED))
            ),
            Counter.BATCHED: _sum("bentoml_service_adaptive_batch_size_sum"),
            Counter.BATCHES: _sum("bentoml_service_adaptive_batch_size_count"),
        },
        {Time.WHOLE: _one("bentoml_service_request_duration_seconds", where=_BENTO)},
        {Level.CONCURRENCY: _one("bentoml_service_request_in_progress", where=_BENTO)},
    ),
    ServerDialect(
        "MLServer",
        "MLServer",
        ("model_infer_request_success_total", "model_infer_request_duration_count"),
        {
            Counter.REQUESTS: (
                Term(("model_infer_request_success_total",)),
                Term(("model_infer_request_failure_total",)),
            ),
            Counter.ERRORS: _sum("model_infer_request_failure_total"),
            Counter.SECONDS: _sum("model_infer_request_duration_sum"),
            Counter.TIMED: _sum("model_infer_request_duration_count"),
        },
        {Time.WHOLE: _one("rest_server_request_duration_seconds", where=(Where("path", ".*/(infer|generate).*"),))},
        {Level.CONCURRENCY: _one("rest_server_requests_in_progress", where=(Where("method", "POST"),))},
    ),
    ServerDialect(
        "TorchServe",
        "TorchServe with metrics_mode=prometheus",
        ("ts_inference_requests_total", "ts_inference_latency_microseconds"),
        {
            # It counts those that it refuses, too.
            Counter.REQUESTS: _sum("ts_inference_requests_total"),
            Counter.ERRORS: _sum("Requests5XX"),
            Counter.SECONDS: _sum("ts_inference_latency_microseconds", per=_MICROSECONDS),
            Counter.TIMED: _sum("ts_inference_requests_total"),
            Counter.QUEUE_SECONDS: _sum("ts_queue_latency_microseconds", per=_MICROSECONDS),
            Counter.QUEUED: _sum("ts_inference_requests_total"),
        },
        started=True,
    ),
    ServerDialect(
        "TFServing",
        "TensorFlow Serving with monitoring",
        (":tensorflow:serving:request_count", ":tensorflow:serving:request_latency_count"),
        {
            Counter.REQUESTS: _sum(":tensorflow:serving:request_count"),
            Counter.ERRORS: _sum(
                ":tensorflow:serving:request_count",
                where=(Where("status", "OK|CANCELLED|INVALID_ARGUMENT|NOT_FOUND", keep=False),),
            ),
        },
        {Time.WHOLE: _one(":tensorflow:serving:request_latency", per=_MICROSECONDS)},
    ),
    ServerDialect(
        "KServe",
        "the Python server of KServe",
        ("request_predict_seconds_count",),
        {
            Counter.REQUESTS: _sum("request_predict_seconds_count"),
            # Of the model alone, one request at a time: a request that waits for it is in none of its series.
            Counter.BATCH_SECONDS: _sum("request_predict_seconds_sum"),
            Counter.TIMED_BATCHES: _sum("request_predict_seconds_count"),
        },
    ),
    ServerDialect(
        "OpenTelemetry",
        "OpenTelemetry's semantic conventions of HTTP and generative AI",
        ("http_server_request_duration_seconds_count",),
        {
            Counter.REQUESTS: _sum("http_server_request_duration_seconds_count", where=_OTEL),
            Counter.ERRORS: _sum(
                "http_server_request_duration_seconds_count",
                where=(*_OTEL, Where("http_response_status_code", _FAILED)),
            ),
        },
        {
            Time.WHOLE: _one("http_server_request_duration_seconds", where=_OTEL),
            Time.FIRST_TOKEN: _one("gen_ai_server_time_to_first_token_seconds"),
            Time.BETWEEN_TOKENS: _one("gen_ai_server_time_per_output_token_seconds"),
        },
        {Level.CONCURRENCY: _one("http_server_active_requests")},
    ),
)


def dialect_named(name: str) -> ServerDialect | None:
    """That of the table; None where there is none."""
    return next((one for one in DIALECTS if one.name == name), None)


def spoken(names: Iterable[str]) -> ServerDialect | None:
    """The first of the table whose required series are among these; None where it is none of them."""
    found = frozenset(names)
    return next((one for one in DIALECTS if one.speaks(found)), None)


def dialect_of(metrics: ServerMetrics) -> ServerDialect | None:
    """That of which a page must be; None for any of the table."""
    if metrics.seconds is None:
        return dialect_named(metrics.dialect)
    return histogram_dialect(metrics.seconds, metrics.requests, metrics.errors, metrics.unit or TimeUnit.SECONDS)


@lru_cache(maxsize=1024)
def histogram_dialect(seconds: str, requests: str | None, errors: str | None, unit: TimeUnit) -> ServerDialect:
    """Any server's, by the names of its series. One object of the same names, as of the table."""
    histogram, where = _selected(seconds)
    counters = {Counter.REQUESTS: _sum(f"{histogram}_count", where=where)}
    for counter, series in ((Counter.REQUESTS, requests), (Counter.ERRORS, errors)):
        if series is not None:
            name, chosen = _selected(series)
            counters[counter] = _sum(name, where=chosen)
    times = {Time.WHOLE: _one(histogram, per=_PER_SECOND[unit], where=where)}
    return ServerDialect(HISTOGRAM, "any", (f"{histogram}_count",), counters, times)


_PER_SECOND: Final[Mapping[TimeUnit, float]] = {
    TimeUnit.SECONDS: 1.0,
    TimeUnit.MILLISECONDS: _MILLISECONDS,
    TimeUnit.MICROSECONDS: _MICROSECONDS,
}
_MATCHERS: Final = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')


def _selected(series: str) -> tuple[str, tuple[Where, ...]]:
    """The name of such series, and what its labels must be."""
    name, _, chosen = series.partition("{")
    return name, tuple(
        Where(label, values if how.endswith("~") else re.escape(values), keep=not how.startswith("!"))
        for label, how, values in _MATCHERS.findall(chosen)
    )
