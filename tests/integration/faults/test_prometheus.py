"""Prometheus is unavailable, slow or gives malformed answers: running jobs continue, and nothing is decided without
measurements. One operator for each fault, side by side, each with a proxy in front of the cluster's Prometheus.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from devcluster.cluster import Running
from tests.chaos.prometheus_proxy import PrometheusProxy, ProxyMode
from tests.integration.faults.fleet import A10G, Tenant
from tests.integration.faults.site import Site
from tests.patience import eventually

pytestmark = pytest.mark.cluster

DECIDED_SECONDS = 15.0
SLOW_SECONDS = 11.0  # the operator waits for 10
REASONS = {
    ProxyMode.GONE: "TelemetryUnavailable",
    ProxyMode.SLOW: "TelemetryUnavailable",
    ProxyMode.GARBAGE: "TelemetryUnavailable",
}


def test_prometheus_fails_and_recovers(sites: Callable[[], Site], own_cluster: Running) -> None:
    by_mode = {mode: sites() for mode in REASONS}
    with ThreadPoolExecutor(len(by_mode)) as threads:
        for done in [threads.submit(fail_and_recover, site, own_cluster, mode) for mode, site in by_mode.items()]:
            done.result()


def fail_and_recover(site: Site, cluster: Running, mode: ProxyMode) -> None:
    proxy = PrometheusProxy(cluster.prometheus_url, slow_seconds=SLOW_SECONDS)
    try:
        site.operate(RIGHTPOOL_PROMETHEUS_URL=proxy.url, RIGHTPOOL_PROMETHEUS_SCRAPE_INTERVAL="2")
        tenant = site.tenant
        tenant.train("steady", placement={"pools": {"allow": [A10G]}})
        eventually(lambda: profiled(tenant, "steady") == ("True", "Measured"), f"{mode}: steady is measured")
        before = tenant.uids("steady")

        proxy.mode = mode
        tenant.train("mover")
        unknown = ("Unknown", REASONS[mode])
        for name in ("steady", "mover"):
            eventually(lambda name=name: profiled(tenant, name) == unknown, f"{mode}: {name} is unknown")  # type: ignore[misc]
        eventually(lambda: tenant.settled("mover"), f"{mode}: a job starts without measurements")
        # Longer than a decision takes with measurements.
        before_wait = proxy.requests
        time.sleep(DECIDED_SECONDS)
        eventually(lambda: proxy.requests > before_wait, f"{mode}: it is queried again")
        assert tenant.status("mover").get("migration") is None
        assert tenant.outcomes("mover") == []
        assert tenant.condition("mover", "CostEfficient")["status"] == "Unknown"
        assert profiled(tenant, "steady") == unknown

        proxy.mode = ProxyMode.NORMAL
        eventually(lambda: tenant.outcomes("mover") == ["Verified"], f"{mode}: it moves afterwards")
        assert tenant.pool("mover") == A10G
        eventually(lambda: profiled(tenant, "steady") == ("True", "Measured"), f"{mode}: measured again")
        assert tenant.uids("steady") == before, "its pods are the same"
        assert tenant.outcomes("steady") == []
    finally:
        proxy.close()


def profiled(tenant: Tenant, name: str) -> tuple[str | None, str | None]:
    condition = tenant.condition(name, "Profiled")
    return condition.get("status"), condition.get("reason")
