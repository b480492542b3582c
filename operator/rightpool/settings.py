"""The operator's settings: one frozen object, built once at start-up and passed down."""

import os
import socket
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from rightpool.api.kubernetes import SERVICE_ACCOUNT_NAMESPACE

SHORTEST_INTERVAL: Final = 0.2
LONGEST_INTERVAL: Final = 300.0


class LogFormat(StrEnum):
    """How a log line looks."""

    JSON = "json"
    TEXT = "text"


def _own_namespace() -> str:
    """Where the operator itself lives: the pod's namespace, else `default` (a process on a laptop)."""
    try:
        return SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def _identity() -> str:
    """Unique for each process: two of them on one host must not take each other's Lease for their own."""
    return f"{socket.gethostname()}-{os.getpid()}"


def _http_address(url: str | None) -> str | None:
    if not url:
        return None
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError(f"{url} is not an address: it begins with http:// or https://")
    return url.rstrip("/")


class OperatorSettings(BaseSettings):
    """Environment variables are the names in upper case behind RIGHTPOOL_, such as RIGHTPOOL_INTERVAL=2."""

    model_config = SettingsConfigDict(
        env_prefix="RIGHTPOOL_", frozen=True, extra="ignore", use_attribute_docstrings=True, allow_inf_nan=False
    )

    interval: float = Field(default=10.0, ge=SHORTEST_INTERVAL, le=LONGEST_INTERVAL)
    """Seconds between two planning cycles. Changes that matter wake the planner earlier."""

    relist_interval: float = Field(default=600.0, ge=10.0)
    """Seconds after which everything is listed again, in case a watch has lost something."""

    usage_interval: float = Field(default=60.0, ge=1.0)
    """Seconds between two counts of the chips that other people's pods request."""

    prometheus_url: Annotated[str | None, AfterValidator(_http_address)] = None
    """Where measurements are read. Absent: from the sidecars directly."""

    prometheus_scrape_interval: float = Field(default=10.0, ge=1.0, le=300.0)
    """Seconds between two scrapes of the sidecars by that Prometheus. Rates are taken over four of them."""

    prometheus_exporter_jobs: Annotated[tuple[str, ...], NoDecode] = ()
    """Scrape jobs of that Prometheus whose series of chips count, separated by commas. Empty: those of the exporters'
    own charts."""

    lease_namespace: str = Field(default_factory=_own_namespace, min_length=1)
    """Namespace of the Lease."""

    lease_name: str = Field(default="rightpool-operator", min_length=1, max_length=63)
    """Name of the Lease. Two releases on one cluster need two names and disjoint namespaces to watch."""

    lease_duration: float = Field(default=15.0, ge=2.0, le=120.0)
    """Seconds after which a Lease that is not renewed may be taken over."""

    identity: str = Field(default_factory=_identity, min_length=1)
    """Name of this process in the Lease and in Events."""

    watch_namespaces: Annotated[tuple[str, ...], NoDecode] = ()
    """Namespaces to look after, separated by commas. Empty: all."""

    sidecar_image: str = "rightpool-profiler:dev"
    """Image of the profiler that is added to pods."""

    sidecar_cpu_limit: str = ""
    """Limit on CPU of its containers. Empty: none."""

    sidecar_user: int = Field(default=65532, ge=0)
    """User of its containers where the pod names none. 0: what the namespace or the image gives."""

    admits_profiler: bool = False
    """Whether the API server adds it to new pods of adopted objects, by the chart's policy."""

    token_key_file: Path | None = None
    """File with the key that the sidecars' bearer tokens are derived from. Absent: a key for this process alone."""

    catalog_file: Path | None = None
    """File with what the chart's values say of chips and prices, in JSON. Absent: the catalog that ships holds."""

    kubeconfig: Path | None = None
    """Used where the operator does not run in a pod. Absent: $KUBECONFIG or the default place."""

    api_qps: float = Field(default=50.0, gt=0)
    """Most requests a second to the API server, in the long run."""

    api_burst: int = Field(default=100, ge=1)
    """Most requests at once."""

    api_timeout: float = Field(default=15.0, gt=0, le=120.0)
    """Seconds after which a request to the API server is given up."""

    liveness_port: int = Field(default=8080, ge=0, le=65535)
    """Port of /healthz (should the process be restarted?) and /readyz (has it every watch?). 0: none."""

    metrics_port: int = Field(default=9090, ge=0, le=65535)
    """Port of the operator's own metrics. 0: none."""

    bind_address: str = "0.0.0.0"
    """Address that both ports listen on."""

    log_format: LogFormat = LogFormat.JSON
    """json or text."""

    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    """Least severity that is logged."""

    @field_validator("watch_namespaces", "prometheus_exporter_jobs", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value
