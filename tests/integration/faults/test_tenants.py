"""One tenant's job can neither read nor steer another's: not by what its pods say, not by names, labels or owners.

Without the chart's admission policies, which keep most of this out: what is shown here is what the operator itself
believes.
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
from tests.integration.faults.impostor import Behave, Impostor, move
from tests.integration.faults.site import Site
from tests.integration.faults.test_hostile import counting, impostors
from tests.integration.runtime.harness import eventually

__all__ = ["impostors"]

pytestmark = pytest.mark.cluster

SECONDS = 400.0
HERE = {"pools": {"allow": [A10G]}}
KEY = b"0123456789abcdef0123456789abcdef"  # of the operators that `chaos.operators` starts


def others_page(namespace: str) -> Behave:
    """Figures of somebody else's job: it is a hundred times as fast as it is, and has just been saved."""
    whose = f'namespace="{namespace}",profiledjob="victim",revision="1",pod="victim-r1-0"'
    return counting(
        **{
            f"rightpool_samples_total{{{whose}}}": "{n}00000",
            f"rightpool_checkpoint_timestamp_seconds{{{whose}}}": "9999999999",
        }
    )


@pytest.fixture
def both(sites: Callable[[], Site]) -> Iterator[tuple[Tenant, Tenant]]:
    """A victim's namespace and a thief's, with one operator for both."""
    victim, thief = sites(), sites()
    for site in (victim, thief):
        site.unwatch()
    victim.operate(RIGHTPOOL_WATCH_NAMESPACES=f"{victim.namespace},{thief.namespace}")
    yield victim.tenant, thief.tenant


def post(address: str, token: str | None) -> int:
    connection = http.client.HTTPConnection(address, contract.SIDECAR_PORT, timeout=10)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        connection.request("POST", contract.PATH_CHECKPOINT, json.dumps({"id": "theft"}), headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_token_is_of_one_revision_and_in_nobodys_pod(both: tuple[Tenant, Tenant]) -> None:
    victim, thief = both
    for tenant, name in ((victim, "victim"), (thief, "thief"), (victim, "mate")):
        tenant.train(name, placement=HERE)
    for tenant, name in ((victim, "victim"), (thief, "thief"), (victim, "mate")):
        eventually(lambda tenant=tenant, name=name: tenant.settled(name), SECONDS, name)  # type: ignore[misc]
    tokens = {
        name: revision_token(KEY, tenant.job(name)["metadata"]["uid"], 1)
        for tenant, name in ((victim, "victim"), (thief, "thief"), (victim, "mate"))
    }
    body = victim.pods("victim")[0]
    address = body["status"]["podIP"]
    for stolen in (None, "", tokens["thief"], tokens["mate"], digest(body), digest(thief.pods("thief")[0])):
        assert post(address, stolen) == 401
    assert tokens["victim"] not in json.dumps([victim.pods("victim"), victim.child("victim-r1"), victim.job("victim")])
    eventually(lambda: post(address, tokens["victim"]) in (200, 202), SECONDS, "its own is taken")


def digest(body: Body) -> str:
    """What a pod's spec tells of its token."""
    containers = [*body["spec"].get("initContainers", ()), *body["spec"]["containers"]]
    environment = [entry for container in containers for entry in container.get("env", ())]
    return str(next(entry["value"] for entry in environment if entry["name"] == contract.ENV_TOKEN_SHA256))


@pytest.mark.parametrize("through", ["sidecars", "prometheus"])
def test_figures_under_somebody_elses_name_are_ones_own(
    sites: Callable[[], Site],
    own_cluster: Running,
    impostors: Callable[[str, Behave], Impostor],
    through: str,
) -> None:
    victim, thief = sites(), sites()
    settings = {"RIGHTPOOL_WATCH_NAMESPACES": f"{victim.namespace},{thief.namespace}"}
    if through == "prometheus":
        settings["RIGHTPOOL_PROMETHEUS_URL"] = own_cluster.prometheus_url
        settings["RIGHTPOOL_PROMETHEUS_SCRAPE_INTERVAL"] = "2"
    victim.operate(**settings)
    thief.tenant.train("thief", placement=HERE)
    eventually(lambda: thief.tenant.settled("thief"), SECONDS)
    # On the host's end of the cable: both the operator and the cluster's Prometheus can reach it.
    liar = impostors(own_cluster.spec.host_ip, others_page(victim.namespace))
    move(thief.tenant, thief.tenant.pods("thief")[0]["metadata"]["name"], liar.address)
    eventually(lambda: len(liar.asked) > 5, SECONDS, "the liar is heard")
    victim.tenant.train("victim", placement=HERE)
    eventually(lambda: rate(victim.tenant, "victim"), SECONDS, "the victim is measured")
    assert rate(victim.tenant, "victim") == pytest.approx(638, rel=0.1), "what resnet50 does on an A10G"
    victim.tenant.edit("victim", new_image)
    eventually(lambda: victim.tenant.outcomes("victim") == ["CarriedOut"], SECONDS)
    assert thief.tenant.condition("thief", "Placed")["status"] == "True"


def rate(tenant: Tenant, name: str) -> float | None:
    """Samples a second, once the profile is complete."""
    if tenant.condition(name, "Profiled").get("status") != "True":
        return None
    return float(tenant.status(name)["profile"]["samplesPerSecond"])
