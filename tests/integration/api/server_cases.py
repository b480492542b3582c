"""Rules of spec.workload.server."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .objects import ABSENT, JOB, Case, changed, containers

_JOB = "spec.workload.job"
_S = "spec.workload.server"
_C = f"{_S}.template.spec.containers"
_PROBE: Final = {"readinessProbe": {"httpGet": {"path": "/ready", "port": 8000}}}
_ONE: Final[dict[str, Any]] = {"name": "server", "image": "example/serve", **_PROBE}
_TWO: Final = containers(_ONE, {"name": "logs", "image": "x"})
_TIMES: Final = ("latency", "timeToFirstToken", "interTokenLatency")
_NONE: Final = "must not be set for a server"

SERVER: Final = changed(
    JOB, {_JOB: ABSENT, _S: {"chipsPerReplica": 1, "replicas": {"min": 2}, "port": 8000, "template": containers(_ONE)}}
)

LATENCY: Final = changed(
    SERVER,
    {
        f"{_S}.metrics": {"port": 8002},
        f"{_S}.replicas": {"min": 2, "max": 8},
        "spec.targets.latency": {"p99": "50ms"},
    },
)
"""A server with a target."""


WARM: Final = changed(
    SERVER,
    {
        f"{_S}.warmUp": {
            "requests": 50,
            "path": "/v2/models/m/infer?raw=1",
            "contentType": 'multipart/form-data; boundary="x"',
            "bodyFrom": {"configMapKeyRef": {"name": "bodies.of-m", "key": "one.json"}},
        }
    },
)
"""A server that is warmed up."""
_W: Final = f"{_S}.warmUp"


HISTOGRAM: Final = changed(
    SERVER,
    {
        f"{_S}.metrics": {
            "port": 15090,
            "dialect": "Histogram",
            "seconds": 'request_milliseconds{reporter="destination",route!="/healthz"}',
            "requests": "requests:total",
            "errors": 'requests_total{reporter="destination",code=~"5..|429",method!~"HEAD|OPTIONS"}',
            "unit": "Milliseconds",
        }
    },
)
"""A server whose series its user names."""


def of_servers(cases: Iterable[Case]) -> Iterator[Case]:
    """The rules of a Job's pod template hold in a server's, too, but for that of restartPolicy."""
    for case in cases:
        if case.field.startswith(f"{_JOB}.template.") and not case.field.endswith(".restartPolicy"):
            template = copy.deepcopy(changed(JOB, case.change)["spec"]["workload"]["job"]["template"])
            for container in template["spec"].get("containers", [])[:1]:
                container |= _PROBE
            field = case.field.replace(_JOB, _S)
            yield Case(f"{case.id} in a server", SERVER, {f"{_S}.template": template}, field, case.message)


SERVER_CASES: Final = (
    Case(
        "a server beside a Job",
        SERVER,
        {_JOB: JOB["spec"]["workload"]["job"]},
        _S,
        "must not stand beside a job, since one workload runs: remove the others",
    ),
    Case(
        "a server without readiness",
        SERVER,
        {f"{_S}.template": containers({"name": "server", "image": "example/serve"})},
        _C,
        "must have a readinessProbe in one container, or requests would come in before it can answer: add it",
    ),
    Case(
        "a server's restart policy",
        SERVER,
        {f"{_S}.template.spec.restartPolicy": "Never"},
        f"{_S}.template.spec.restartPolicy",
        "must be Always, as for every Deployment: remove it",
    ),
    Case(
        "several containers of a server, none named",
        SERVER,
        {f"{_S}.template": _TWO},
        f"{_S}.chipContainer",
        "is needed because the template has several containers: name the one that gets the chips",
    ),
    Case(
        "the chip container of a server is not in the template",
        SERVER,
        {f"{_S}.template": _TWO, f"{_S}.chipContainer": "serve"},
        f"{_S}.chipContainer",
        "must name a container of the template: write ",
    ),
    Case(
        "requests at the profiler's port",
        SERVER,
        {f"{_S}.port": 9464},
        f"{_S}.port",
        "must not be 9464, where the profiler listens: choose another one",
    ),
    Case(
        "metrics at the profiler's port",
        SERVER,
        {f"{_S}.metrics": {"port": 9464}},
        f"{_S}.metrics.port",
        "must not be 9464, where the profiler listens: choose another one",
    ),
    Case(
        "a path of metrics without a slash",
        SERVER,
        {f"{_S}.metrics": {"port": 8002, "path": "metrics"}},
        f"{_S}.metrics.path",
        "must begin with a slash: write /metrics",
    ),
    Case(
        "a histogram without its name",
        SERVER,
        {f"{_S}.metrics": {"port": 8002, "dialect": "Histogram"}},
        f"{_S}.metrics.seconds",
        "is needed for the dialect Histogram: name the histogram of how long requests take, without _bucket",
    ),
    *(
        Case(
            f"{name} of a dialect that has its own",
            SERVER,
            {f"{_S}.metrics": {"port": 8002, "dialect": "Triton", name: value}},
            f"{_S}.metrics.{name}",
            "is of the dialect Histogram alone: set that, or remove it",
        )
        for name, value in (
            ("seconds", "request_seconds"),
            ("requests", "requests_total"),
            ("errors", "errors_total"),
            ("unit", "Seconds"),
        )
    ),
    *(
        Case(
            f"{name} that are no series",
            SERVER,
            {f"{_S}.metrics": {"port": 8002, "dialect": "Histogram", "seconds": "request_seconds", name: series}},
            f"{_S}.metrics.{name}",
            'must be the name of series, and may choose by labels: write requests_total{code=~"5.."}',
        )
        for name, series in (
            ("seconds", "sum(rate(request_seconds[5m]))"),
            ("requests", 'requests_total{code="200"'),
            ("errors", 'requests_total{code=~"5.*("}'),
        )
    ),
    Case(
        "a Service's name with a capital",
        SERVER,
        {f"{_S}.traffic": {"service": "Ranker"}},
        f"{_S}.traffic.service",
        "must be the name of a Service: begin with a letter",
    ),
    Case(
        "an HTTPRoute's name with a capital",
        SERVER,
        {f"{_S}.traffic": {"httpRoute": {"name": "Edge"}}},
        f"{_S}.traffic.httpRoute.name",
        "must be the name of an HTTPRoute",
    ),
    Case(
        "a quiet time without a unit",
        SERVER,
        {f"{_S}.drain": {"quiet": "15"}},
        f"{_S}.drain.quiet",
        "must be a duration",
    ),
    Case(
        "a warm-up without the profiler",
        WARM,
        {"spec.profiling": {"mode": "Off"}},
        _W,
        "is done by the profiler, which profiling.mode Off leaves out: set Auto, or remove it",
    ),
    Case(
        "a path of a warm-up without a slash",
        WARM,
        {f"{_W}.path": "infer"},
        f"{_W}.path",
        "must begin with a slash, and have no spaces: write /v2/models/m/infer",
    ),
    Case(
        "a body that GET does not send",
        WARM,
        {f"{_W}.method": "GET"},
        f"{_W}.bodyFrom",
        "must not be set for GET, which sends no body: set method POST, or remove it",
    ),
    Case(
        "a body of no media type",
        WARM,
        {f"{_W}.contentType": "json\r\nX-Other: 1"},
        f"{_W}.contentType",
        "must be a media type: write application/octet-stream",
    ),
    Case(
        "a ConfigMap of another namespace",
        WARM,
        {f"{_W}.bodyFrom.configMapKeyRef.name": "other/bodies"},
        f"{_W}.bodyFrom.configMapKeyRef.name",
        "must be the name of a ConfigMap: begin with a letter or digit",
    ),
    Case(
        "a key with a folder",
        WARM,
        {f"{_W}.bodyFrom.configMapKeyRef.key": "a/b"},
        f"{_W}.bodyFrom.configMapKeyRef.key",
        "must be a key of a ConfigMap: use letters, digits, '-', '_' and '.'",
    ),
    Case(
        "no time to drain",
        SERVER,
        {f"{_S}.drain": {"timeout": "0s"}},
        f"{_S}.drain.timeout",
        "must be a duration of 1s or more, 6h at most: write 60s",
    ),
    Case("a server in a queue", SERVER, {"spec.queueName": "q"}, "spec.queueName", f"{_NONE} yet: remove it"),
    Case(
        "progress of a server",
        SERVER,
        {"spec.progress": {"totalSamples": 10}},
        "spec.progress",
        f"{_NONE}, whose work has no end: remove it",
    ),
    Case(
        "checkpoints of a server",
        SERVER,
        {"spec.checkpoint": {"mode": "Periodic"}},
        "spec.checkpoint",
        f"{_NONE}, which is drained and saves nothing: remove it",
    ),
    Case(
        "sizes of a server",
        SERVER,
        {"spec.elasticity": {"minChips": 1}},
        "spec.elasticity",
        f"{_NONE}: remove it, and bound its replicas by workload.server.replicas",
    ),
    *(
        Case(
            f"{name} of a server",
            SERVER,
            {f"spec.targets.{name}": "0.5"},
            f"spec.targets.{name}",
            f"{_NONE}, which has no samples or steps: remove it",
        )
        for name in ("minScalingEfficiency", "minModelFlopsUtilization", "maxCostPerMillionSamples")
    ),
    Case(
        "fewer replicas at most than at least",
        SERVER,
        {f"{_S}.replicas": {"min": 3, "max": 2}},
        f"{_S}.replicas.max",
        "must be at least min: raise it, or lower min",
    ),
    Case(
        "replicas at most without a latency",
        SERVER,
        {f"{_S}.replicas": {"min": 2, "max": 8}},
        f"{_S}.replicas.max",
        "must not be above min without a target of time, by which replicas are chosen: add latency, timeToFirstToken "
        "or interTokenLatency, or remove max",
    ),
    *(
        Case(
            f"{name} without metrics",
            SERVER,
            {f"spec.targets.{name}": {"p99": "50ms"}},
            f"{_S}.metrics",
            f"is needed for targets.{name}, since no requests are counted without it: add it, or remove the target",
        )
        for name in _TIMES
    ),
    *(
        Case(
            f"{name} of a Job",
            JOB,
            {f"spec.targets.{name}": {"p99": "50ms"}},
            f"spec.targets.{name}",
            "is of servers alone, which answer requests: remove it",
        )
        for name in _TIMES
    ),
    *(
        Case(
            f"{which} percentiles of {time}",
            LATENCY,
            {f"spec.targets.{time}": percentiles},
            f"spec.targets.{time}",
            "must name one percentile: write p99: 50ms alone, or p95 or p90 in its place",
        )
        for time in _TIMES
        for which, percentiles in (("two", {"p99": "50ms", "p95": "20ms"}), ("no", {}))
    ),
    *(
        Case(
            f"no time for {time} {name}",
            LATENCY,
            {f"spec.targets.{time}": {name: "0s"}},
            f"spec.targets.{time}.{name}",
            "must be a duration of 1ms or more, 1h at most: write 50ms",
        )
        for time in _TIMES
        for name in ("p90", "p95", "p99")
    ),
)
