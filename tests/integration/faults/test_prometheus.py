"""The Prometheus that measurements come from goes away, is slow, or talks nonsense: what runs, runs on, and nothing is
decided on what nobody knows. One operator for each trouble, side by side, with the cluster's own Prometheus behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from chaos.telemetry import Mood, Telemetry
from devcluster.cluster import Running
from tests.integration.faults.fleet import A10G, Tenant
from tests.integration.faults.site import Site
from tests.integration.runtime.harness import eventually

pytestmark = pytest.mark.cluster

SECONDS = 400.0
DECIDED_SECONDS = 15.0
SLOW_SECONDS = 11.0  # the operator waits for 10
TROUBLES = {
    Mood.GONE: "TelemetryUnavailable",
    Mood.SLOW: "TelemetryUnavailable",
    Mood.GARBAGE: "TelemetryUnavailable",
}


def test_it_goes_away_and_comes_back(sites: Callable[[], Site], own_cluster: Running) -> None:
    places = {mood: sites() for mood in TROUBLES}
    with ThreadPoolExecutor(len(places)) as threads:
        for done in [threads.submit(endure, site, own_cluster, mood) for mood, site in places.items()]:
            done.result()


def endure(site: Site, cluster: Running, mood: Mood) -> None:
    telemetry = Telemetry(cluster.prometheus_url, slow_seconds=SLOW_SECONDS)
    try:
        site.operate(RIGHTPOOL_PROMETHEUS_URL=telemetry.url, RIGHTPOOL_PROMETHEUS_SCRAPE_INTERVAL="2")
        tenant = site.tenant
        tenant.train("steady", placement={"pools": {"allow": [A10G]}})
        eventually(lambda: profiled(tenant, "steady") == ("True", "Measured"), SECONDS, f"{mood}: steady is known")
        before = tenant.uids("steady")

        telemetry.mood = mood
        tenant.train("mover")
        unknown = ("Unknown", TROUBLES[mood])
        for name in ("steady", "mover"):
            eventually(lambda name=name: profiled(tenant, name) == unknown, SECONDS, f"{mood}: {name} is unknown")  # type: ignore[misc]
        eventually(lambda: tenant.settled("mover"), SECONDS, f"{mood}: a job starts without measurements")
        # For longer than it would have taken to decide, had it been heard.
        asked = telemetry.asked
        time.sleep(DECIDED_SECONDS)
        eventually(lambda: telemetry.asked > asked, SECONDS, f"{mood}: it is asked again")
        assert tenant.status("mover").get("migration") is None
        assert tenant.outcomes("mover") == []
        assert tenant.condition("mover", "CostEfficient")["status"] == "Unknown"
        assert profiled(tenant, "steady") == unknown

        telemetry.mood = Mood.WELL
        eventually(lambda: tenant.outcomes("mover") == ["Verified"], SECONDS, f"{mood}: it moves after all")
        assert tenant.pool("mover") == A10G
        eventually(lambda: profiled(tenant, "steady") == ("True", "Measured"), SECONDS, f"{mood}: known again")
        assert tenant.uids("steady") == before, "it ran on, untouched"
        assert tenant.outcomes("steady") == []
    finally:
        telemetry.close()


def profiled(tenant: Tenant, name: str) -> tuple[str | None, str | None]:
    condition = tenant.condition(name, "Profiled")
    return condition.get("status"), condition.get("reason")
