"""A server that a ProfiledJob runs: a Deployment that answers requests, behind a Service of its own."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from rightpool.api.choices import Autoscaler, Dialect, TimeUnit
from rightpool.api.model import ApiModel
from rightpool.api.placement import MAX_CHIPS_PER_REPLICA, MAX_REPLICAS
from rightpool.api.quantities import Duration, a_second_or_more
from rightpool.api.rules import Rule, validations
from rightpool.api.template import CHIP_CONTAINER_RULES, ServerTemplate
from rightpool.api.warm_up import WarmUp
from rightpool.contract import SIDECAR_PORT

_PORT: Final = validations(
    Rule(
        f"self != {SIDECAR_PORT}",
        f"must not be {SIDECAR_PORT}, where the profiler listens: choose another one",
    )
)
_CONTAINERS: Final = "self.template.spec.containers"
_NAMED: Final = "has({0}.traffic) && has({0}.traffic.service)"
_ROUTED: Final = "has({0}.traffic) && has({0}.traffic.httpRoute)"
_CLIENTS_CALL: Final = "must not change, since clients call it: delete this ProfiledJob and create another one"


class Replicas(ApiModel):
    """How many pods answer."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "!has(self.max) || self.min <= self.max",
                "must be at least min: raise it, or lower min",
                field=".max",
            )
        )
    )

    min: int = Field(default=1, ge=1, le=MAX_REPLICAS)
    """As many pods, at least. An edit scales the Deployment where it is. The scale subresource writes it: an autoscaler
    of the ProfiledJob, or `kubectl scale`."""

    max: int | None = Field(default=None, ge=1, le=MAX_REPLICAS)
    """As many pods, at most: between the two as many as the target of time takes at the demand of the last week around
    this time of day. Default: min."""

    @property
    def most(self) -> int:
        """As many pods, at most."""
        return self.min if self.max is None else max(self.max, self.min)


_MATCHER: Final = r'[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[-a-zA-Z0-9_./:|]*"'
SeriesName = Annotated[
    str,
    Field(
        max_length=256,
        json_schema_extra=validations(
            Rule(
                f"self.matches(r'^[a-zA-Z_:][a-zA-Z0-9_:]*([{{]{_MATCHER}(,{_MATCHER})*[}}])?$')",
                'must be the name of series, and may choose by labels: write requests_total{code=~"5.."}',
            )
        ),
    ),
]
_HISTOGRAM: Final = "self.dialect == 'Histogram'"


class ServerMetrics(ApiModel):
    """Where a replica says what it does."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                f"!({_HISTOGRAM}) || has(self.seconds)",
                "is needed for the dialect Histogram: name the histogram of how long requests take, without _bucket",
                field=".seconds",
                reason="FieldValueRequired",
            ),
            *(
                Rule(
                    f"!has(self.{name}) || {_HISTOGRAM}",
                    "is of the dialect Histogram alone: set that, or remove it",
                    field=f".{name}",
                )
                for name in ("seconds", "requests", "errors", "unit")
            ),
        )
    )

    port: Annotated[int, Field(ge=1, le=65535, json_schema_extra=_PORT)]
    """Port of its metrics page, in Prometheus' format."""

    path: str = Field(
        default="/metrics",
        max_length=256,
        json_schema_extra=validations(Rule("self.startsWith('/')", "must begin with a slash: write /metrics")),
    )
    """Path of the page."""

    dialect: Dialect = Dialect.AUTO
    """Whose series these are. Auto: those of the first server of which all needed ones are there. Histogram: those that
    the fields below name, of any server."""

    seconds: SeriesName | None = None
    """The histogram of how long requests take, without _bucket. Labels may choose, such as
    request_duration{path="/predict"}."""

    requests: SeriesName | None = None
    """The counter of requests. Default: the count of the histogram."""

    errors: SeriesName | None = None
    """The counter of requests that the server has failed, such as requests_total{code=~"5.."}. Default: they are not
    known."""

    unit: TimeUnit | None = None
    """What the histogram counts in. Default: Seconds."""


class HttpRoute(ApiModel):
    """An HTTPRoute of the Gateway API, by which a move shares requests."""

    name: str = Field(
        max_length=253,
        json_schema_extra=validations(
            Rule(
                "self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of an HTTPRoute: use lower-case letters, digits, '-' and '.' only",
            )
        ),
    )
    """Its name, in the namespace of the ProfiledJob."""


class Traffic(ApiModel):
    """How requests come in."""

    service: str | None = Field(
        default=None,
        max_length=63,
        json_schema_extra=validations(
            Rule(
                "self.matches(r'^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "must be the name of a Service: begin with a letter, and use lower-case letters, digits and '-' only",
            )
        ),
    )
    """Name of the Service that is made for it. Default: the ProfiledJob's own. Can't be changed."""

    http_route: HttpRoute | None = None
    """The HTTPRoute whose weights a move writes, between that Service and one of the same name with -next, for the new
    Revision. Can't be changed once it is set."""


class Drain(ApiModel):
    """How a replica ends without losing a request."""

    quiet: Duration = Field(default="15s", validate_default=True)
    """How long it goes on answering after it has left the endpoints, until no proxy sends it anything new."""

    timeout: Annotated[Duration, a_second_or_more("60s", longest="6h")] = Field(default="60s", validate_default=True)
    """How long it may take after SIGTERM to finish what it has begun, 6h at most."""


class ServerWorkload(ApiModel):
    """A Deployment that answers requests: replicas with the same number of chips each, behind a stable Service."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            *CHIP_CONTAINER_RULES,
            Rule(
                f"!has({_CONTAINERS}) || size({_CONTAINERS}) == 0 || {_CONTAINERS}.exists(c, has(c.readinessProbe))",
                "must have a readinessProbe in one container, or requests would come in before it can answer: add it",
                field=".template.spec.containers",
                reason="FieldValueRequired",
            ),
            Rule("self.port == oldSelf.port", _CLIENTS_CALL, field=".port"),
            Rule(
                f"({_NAMED.format('self')}) == ({_NAMED.format('oldSelf')}) && "
                f"(!({_NAMED.format('self')}) || self.traffic.service == oldSelf.traffic.service)",
                _CLIENTS_CALL,
                field=".traffic.service",
            ),
            Rule(
                f"!({_ROUTED.format('oldSelf')}) || "
                f"({_ROUTED.format('self')} && self.traffic.httpRoute.name == oldSelf.traffic.httpRoute.name)",
                "must not change once it is set, since its weights may be in use: delete this ProfiledJob and create "
                "another one",
                field=".traffic.httpRoute",
            ),
        )
    )

    chips_per_replica: int = Field(default=1, ge=1, le=MAX_CHIPS_PER_REPLICA)
    """Chips of each pod."""

    scale: Replicas = Field(default_factory=Replicas, alias="replicas")
    """How many pods answer."""

    autoscaler: Autoscaler = Autoscaler.FLOOR
    """Floor: as many as the target of time takes by the recorded week, or replicas.min. External: whoever scales the
    Deployment of the Revision that answers; it begins with replicas.min, and its replicas are never written then."""

    port: Annotated[int, Field(ge=1, le=65535, json_schema_extra=_PORT)]
    """Port at which it answers, of its pods and of its Service. Can't be changed."""

    metrics: ServerMetrics | None = None
    """Where a replica says what it does. Without it no requests are counted."""

    traffic: Traffic = Field(default_factory=Traffic)
    """How requests come in."""

    warm_up: WarmUp | None = None
    """Requests that a new replica gets before any other. Without it a replica is ready once its readinessProbe is."""

    drain: Drain = Field(default_factory=Drain)
    """How a replica ends without losing a request."""

    template: ServerTemplate
    """The pod template, as in a Deployment, with a readinessProbe. It requests no chips: they are added where the
    server is placed."""

    chip_container: str | None = Field(default=None, max_length=63)
    """The container that gets the chips. Needed when the template has more than one container."""

    @property
    def replicas(self) -> int:
        """Pods at the start."""
        return self.scale.min

    @property
    def scaled_elsewhere(self) -> bool:
        """Whether somebody else says how many pods there are."""
        return self.autoscaler is Autoscaler.EXTERNAL

    @property
    def least(self) -> int:
        """As many pods, at least, as may be planned."""
        return 1 if self.scaled_elsewhere else self.scale.min

    @property
    def most(self) -> int:
        """As many pods, at most, as may be planned."""
        return MAX_REPLICAS if self.scaled_elsewhere and self.scale.max is None else self.scale.most


_NO_SERVER: Final = "!has(self.workload) || !has(self.workload.server)"
_SCALE: Final = "self.workload.server.replicas"
_TIMES: Final = ("latency", "timeToFirstToken", "interTokenLatency")
_ELASTIC: Final = ("minChips", "maxChips", "chipCounts", "modelParallel")


_UNSAVED: Final = (
    "!has(self.checkpoint.path) && self.checkpoint.mode == 'Signal' && self.checkpoint.signal == 'SIGUSR1'"
)
_UNSIZED: Final = " && ".join(f"!has(self.elasticity.{name})" for name in _ELASTIC)

SERVER_RULES: Final = (
    Rule(f"{_NO_SERVER} || !has(self.queueName)", "must not be set for a server yet: remove it", field=".queueName"),
    Rule(
        f"{_NO_SERVER} || !has(self.progress)",
        "must not be set for a server, whose work has no end: remove it",
        field=".progress",
    ),
    Rule(
        f"{_NO_SERVER} || ({_UNSAVED})",
        "must not be set for a server, which is drained and saves nothing: remove it",
        field=".checkpoint",
    ),
    Rule(
        f"{_NO_SERVER} || ({_UNSIZED})",
        "must not be set for a server: remove it, and bound its replicas by workload.server.replicas",
        field=".elasticity",
    ),
    *(
        Rule(
            f"{_NO_SERVER} || !has(self.targets.{name})",
            "must not be set for a server, which has no samples or steps: remove it",
            field=f".targets.{name}",
        )
        for name in ("minScalingEfficiency", "minModelFlopsUtilization", "maxCostPerMillionSamples")
    ),
    *(
        Rule(
            f"!has(self.targets.{name}) || (has(self.workload) && has(self.workload.server))",
            "is of servers alone, which answer requests: remove it",
            field=f".targets.{name}",
        )
        for name in _TIMES
    ),
    *(
        Rule(
            f"{_NO_SERVER} || !has(self.targets.{name}) || has(self.workload.server.metrics)",
            f"is needed for targets.{name}, since no requests are counted without it: add it, or remove the target",
            field=".workload.server.metrics",
            reason="FieldValueRequired",
        )
        for name in _TIMES
    ),
    Rule(
        f"{_NO_SERVER} || !has(self.workload.server.warmUp) || self.profiling.mode != 'Off'",
        "is done by the profiler, which profiling.mode Off leaves out: set Auto, or remove it",
        field=".workload.server.warmUp",
    ),
    Rule(
        f"{_NO_SERVER} || !has({_SCALE}.max) || {_SCALE}.max <= {_SCALE}.min || "
        + " || ".join(f"has(self.targets.{name})" for name in _TIMES),
        "must not be above min without a target of time, by which replicas are chosen: add latency, timeToFirstToken "
        "or interTokenLatency, or remove max",
        field=".workload.server.replicas.max",
    ),
    Rule(
        "(has(self.workload) && has(self.workload.server)) == (has(oldSelf.workload) && has(oldSelf.workload.server))",
        "must not become or cease to be a server: delete this ProfiledJob and create another one",
        field=".workload",
    ),
)
"""Of the spec: what says nothing of a server, which neither ends nor saves, and has no samples."""
