"""Operators are started while the API server refuses, or serves only a part of what there is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import LEASES
from tests.chaos.api_proxy import ApiMode, ApiProxy
from tests.chaos.operators import Replica
from tests.integration.faults.fleet import A10G, Tenant
from tests.patience import eventually

pytestmark = pytest.mark.cluster

HERE = {"pools": {"allow": [A10G]}}
REFUSALS = 30  # both have tried for a while


@pytest.fixture
def proxy(kubeconfig: Path, tmp_path: Path) -> Iterator[ApiProxy]:
    proxy = ApiProxy(kubeconfig, tmp_path, ApiMode.NORMAL)
    yield proxy
    proxy.close()


def holder(tenant: Tenant) -> str:
    try:
        return str(tenant.client.get(LEASES, "rightpool-operator", tenant.namespace)["spec"].get("holderIdentity"))
    except NotFound:
        return ""


@pytest.mark.parametrize("mode", [mode for mode in ApiMode if mode is not ApiMode.NORMAL])
def test_operators_find_their_watches_when_the_api_server_is_whole(
    operate: Callable[..., Replica], tenant: Tenant, proxy: ApiProxy, mode: ApiMode
) -> None:
    proxy.mode = mode
    settings = {"RIGHTPOOL_KUBECONFIG": str(proxy.kubeconfig), "RIGHTPOOL_LEASE_DURATION": "5"}
    replicas = [operate("a", **settings), operate("b", **settings)]
    tenant.train("early", placement=HERE)
    refused = proxy.refused
    eventually(lambda: proxy.refused > refused + REFUSALS, "the operators keep asking")
    assert holder(tenant) == ""
    proxy.mode = ApiMode.NORMAL
    began = time.monotonic()
    eventually(lambda: tenant.settled("early"), "the job that was there before")
    print(f"{mode}: settled {time.monotonic() - began:.1f} s after the API server was whole")
    tenant.train("late", placement=HERE)
    eventually(lambda: tenant.settled("late"), "a job that only a watch can tell of")
    assert all(replica.alive for replica in replicas)


def test_a_leader_gives_up_when_its_requests_are_refused(
    operate: Callable[..., Replica], tenant: Tenant, proxy: ApiProxy
) -> None:
    """The leader's way to the API server is out of order, the other's is not."""
    settings = {"RIGHTPOOL_LEASE_DURATION": "5"}
    first = operate("a", RIGHTPOOL_KUBECONFIG=str(proxy.kubeconfig), **settings)
    eventually(lambda: holder(tenant) == first.identity)
    second = operate("b", **settings)
    proxy.mode = ApiMode.UNAVAILABLE
    eventually(lambda: holder(tenant) == second.identity)
    tenant.train("bert", placement=HERE)
    eventually(lambda: tenant.settled("bert"))
    proxy.mode = ApiMode.NORMAL
    assert first.alive
    second.kill()
    eventually(lambda: holder(tenant) == first.identity, "it leads again by itself")
