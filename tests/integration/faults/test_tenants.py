"""One tenant's job can neither read nor influence another's, by pages, names, labels or owners.

One operator watches the namespaces of both.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator

import pytest

from devcluster.cluster import Running
from rightpool import contract
from rightpool.workloads.token import revision_token
from tests.integration.faults.fleet import A10G, Body, Tenant, new_image
from tests.integration.faults.site import Site
from tests.integration.faults.test_untrusted_sidecars import counting, sidecars
from tests.integration.faults.untrusted_sidecar import Behavior, UntrustedSidecar, set_address
from tests.patience import PATIENCE, eventually

__all__ = ["sidecars"]

pytestmark = pytest.mark.cluster

HERE = {"pools": {"allow": [A10G]}}
KEY = b"0123456789abcdef0123456789abcdef"  # of the operators that `tests.chaos.operators` starts


def others_page(namespace: str) -> Behavior:
    """Forged metrics of another job: a hundred times its rate, and a checkpoint just completed."""
    whose = f'namespace="{namespace}",profiledjob="victim",revision="1",pod="victim-r1-0"'
    return counting(
        **{
            f"rightpool_samples_total{{{whose}}}": "{n}00000",
            f"rightpool_checkpoint_timestamp_seconds{{{whose}}}": "9999999999",
        }
    )


@pytest.fixture
def both(sites: Callable[[], Site]) -> Iterator[tuple[Tenant, Tenant]]:
    """A victim's namespace and an attacker's, with one operator for both."""
    victim, attacker = sites(), sites()
    for site in (victim, attacker):
        site.unwatch()
    victim.operate(RIGHTPOOL_WATCH_NAMESPACES=f"{victim.namespace},{attacker.namespace}")
    yield victim.tenant, attacker.tenant


def post(address: str, token: str | None) -> int:
    connection = http.client.HTTPConnection(address, contract.SIDECAR_PORT, timeout=PATIENCE)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        connection.request("POST", contract.PATH_CHECKPOINT, json.dumps({"id": "theft"}), headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_token_is_valid_for_one_revision_and_in_no_pod(both: tuple[Tenant, Tenant]) -> None:
    victim, attacker = both
    for tenant, name in ((victim, "victim"), (attacker, "attacker"), (victim, "mate")):
        tenant.train(name, placement=HERE)
    for tenant, name in ((victim, "victim"), (attacker, "attacker"), (victim, "mate")):
        eventually(lambda tenant=tenant, name=name: tenant.settled(name), name)  # type: ignore[misc]
    tokens = {
        name: revision_token(KEY, tenant.job(name)["metadata"]["uid"], 1)
        for tenant, name in ((victim, "victim"), (attacker, "attacker"), (victim, "mate"))
    }
    body = victim.pods("victim")[0]
    address = body["status"]["podIP"]
    for stolen in (None, "", tokens["attacker"], tokens["mate"], digest(body), digest(attacker.pods("attacker")[0])):
        assert post(address, stolen) == 401
    assert tokens["victim"] not in json.dumps([victim.pods("victim"), victim.child("victim-r1"), victim.job("victim")])
    eventually(lambda: post(address, tokens["victim"]) in (200, 202), "its own is taken")


def digest(body: Body) -> str:
    """The digest of its token in a pod's spec."""
    containers = [*body["spec"].get("initContainers", ()), *body["spec"]["containers"]]
    variables = [entry for container in containers for entry in container.get("env", ())]
    return str(next(entry["value"] for entry in variables if entry["name"] == contract.ENV_TOKEN_SHA256))


@pytest.mark.parametrize("through", ["sidecars", "prometheus"])
def test_metrics_under_another_jobs_name_are_not_used(
    sites: Callable[[], Site],
    own_cluster: Running,
    sidecars: Callable[[str, Behavior], UntrustedSidecar],
    through: str,
) -> None:
    victim, attacker = sites(), sites()
    settings = {"RIGHTPOOL_WATCH_NAMESPACES": f"{victim.namespace},{attacker.namespace}"}
    if through == "prometheus":
        settings["RIGHTPOOL_PROMETHEUS_URL"] = own_cluster.prometheus_url
        settings["RIGHTPOOL_PROMETHEUS_SCRAPE_INTERVAL"] = "2"
    victim.operate(**settings)
    attacker.tenant.train("attacker", placement=HERE)
    eventually(lambda: attacker.tenant.settled("attacker"))
    # The host's end of the veth pair: the operator and the cluster's Prometheus can reach it.
    server = sidecars(own_cluster.spec.host_ip, others_page(victim.namespace))
    set_address(attacker.tenant, attacker.tenant.pods("attacker")[0]["metadata"]["name"], server.address)
    eventually(lambda: len(server.requests) > 5, "the server is read")
    victim.tenant.train("victim", placement=HERE)
    eventually(lambda: rate(victim.tenant, "victim"), "the victim is measured")
    assert rate(victim.tenant, "victim") == pytest.approx(638, rel=0.5), (
        "rate of resnet50 on an A10G, not a hundred times as much"
    )
    victim.tenant.edit("victim", new_image)
    eventually(lambda: victim.tenant.outcomes("victim") == ["CarriedOut"])
    assert attacker.tenant.condition("attacker", "Placed")["status"] == "True"


def rate(tenant: Tenant, name: str) -> float | None:
    """Samples a second, once the profile is complete."""
    if tenant.condition(name, "Profiled").get("status") != "True":
        return None
    return float(tenant.status(name)["profile"]["samplesPerSecond"])
