"""Two operators: one that may not be leader writes nothing, and a new leader continues a migration."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import control_plane
from devcluster.cluster import Running
from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import THREADS, ClusterClient
from rightpool.cluster.errors import Conflict
from rightpool.cluster.resources import EVENTS, LEASES
from tests.chaos.operators import Replica
from tests.integration.faults.fleet import A10G, Body, Tenant, new_image
from tests.integration.faults.site import Site
from tests.integration.runtime.harness import use_image
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.cluster

LEASE = "rightpool-operator"
SHORT_LEASE = {"RIGHTPOOL_LEASE_DURATION": "5"}
DRY = "dryRun=All"
HERE = {"pools": {"allow": [A10G]}}
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


def holder(tenant: Tenant) -> str:
    return str(tenant.client.get(LEASES, LEASE, tenant.namespace)["spec"].get("holderIdentity"))


def carried_out(tenant: Tenant, times: int = 1) -> None:
    eventually(lambda: tenant.outcomes("bert") == ["CarriedOut"] * times and tenant.settled("bert"))
    tenant.only_child("bert")


@pytest.fixture
def account(site: Site, client: ClusterClient, kubeconfig: Path) -> Iterator[tuple[str, Path]]:
    """A separate user, so that the audit log distinguishes the operators: its name and kubeconfig."""
    client.create(ACCOUNTS, {"metadata": {"name": "first", "namespace": site.namespace}})
    subject = {"kind": "ServiceAccount", "name": "first", "namespace": site.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    client.create(BINDINGS, {"metadata": {"name": site.namespace}, "subjects": [subject], "roleRef": role})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = client.request("POST", ACCOUNTS.path(site.namespace, "first", "token"), body=request)
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": user["name"], "user": {"token": answer["status"]["token"]}} for user in config["users"]]
    own = site.folder / "first.kubeconfig"
    own.write_text(yaml.safe_dump(config))
    yield f"system:serviceaccount:{site.namespace}:first", own
    client.delete(BINDINGS, site.namespace)


def written(own_cluster: Running, user: str, since: datetime) -> list[str]:
    """The writes of a user after that moment in the API server's audit log, including rejected ones."""
    found = []
    for path in sorted(own_cluster.spec.logs.glob(f"{control_plane.audit_log(own_cluster.spec).stem}*")):
        for line in path.read_text().splitlines():
            event: dict[str, Any] = json.loads(line) if user in line else {}
            if not event or event["user"]["username"] != user or event["verb"] not in WRITES:
                continue
            if moment(event["requestReceivedTimestamp"]) > since:
                found.append(f"{event['verb']} {event['requestURI']}")
    return found


def test_a_leader_stopped_beyond_its_lease_writes_nothing_when_it_continues(
    site: Site, tenant: Tenant, own_cluster: Running, account: tuple[str, Path]
) -> None:
    user, kubeconfig = account
    began = datetime.now(UTC)
    first = site.operate("first", **SHORT_LEASE, RIGHTPOOL_KUBECONFIG=str(kubeconfig))
    tenant.train("bert", placement=HERE, play={"checkpoint-delay": "2s"})
    eventually(lambda: tenant.settled("bert"))
    edits = tenant.caught("bert")
    first.freeze()
    for _ in range(20):  # a request that was under way is answered, and noted down, before so many later ones are
        tenant.status("bert")
        time.sleep(0.05)
    frozen = datetime.now(UTC)
    # Of a Lease that it keeps where it does not run for a while: the first one may take an expired one.
    second = site.operate("second", RIGHTPOOL_LEASE_DURATION="30")
    eventually(lambda: holder(tenant) == second.identity)
    carried_out(tenant, edits)
    # There is work at the moment when the first one continues.
    tenant.edit("bert", lambda spec: use_image(spec, "last"))
    first.thaw()
    carried_out(tenant, edits + 1)
    assert holder(tenant) == second.identity
    assert first.alive
    before = [write for write in written(own_cluster, user, began) if "leases" not in write]
    assert any("/profiledjobs/bert/status" in write for write in before), "the log has its writes"
    late = written(own_cluster, user, frozen)
    harmless = [write for write in late if write.startswith("create") and ("/events?" in write or DRY in write)]
    # It may have been stopped while it renewed its Lease: by the version that it had read, in vain.
    renewed = [write for write in late if write.startswith("update") and "/leases/" in write]
    assert [write for write in late if write not in harmless + renewed] == [] and len(renewed) <= 1
    # Stopped between the check that it leads and the request, a thread still sends its Event, or the dry run of a
    # template, which stores nothing: no other one is sent.
    assert len(harmless) <= THREADS
    sent = [event for event in tenant.client.list_all(EVENTS, tenant.namespace) if by(first, event)]
    assert sent, "Events have what they are told apart by"
    assert max(moment(event["firstTimestamp"]) for event in sent) <= frozen


def by(replica: Replica, event: Body) -> bool:
    return str(event["reportingInstance"]) == replica.identity


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_a_leader_loses_its_lease_in_the_middle_of_a_migration(site: Site, tenant: Tenant) -> None:
    """Another holder takes the Lease in each phase of one migration and never renews it."""
    replicas = [site.operate("a", **SHORT_LEASE), site.operate("b", **SHORT_LEASE)]
    tenant.train("bert", replicas=2, placement=HERE, play={"checkpoint-delay": "5s", "start-delay": "5s"})
    eventually(lambda: tenant.settled("bert"))
    tenant.edit("bert", new_image)
    lost_in: list[str] = []

    def over() -> bool:
        phase = tenant.phase("bert")
        if phase is not None and phase not in lost_in and steal(tenant):
            lost_in.append(phase)
        return "CarriedOut" in tenant.outcomes("bert")

    eventually(over, lambda: str(tenant.status("bert")), longest=0.05)
    assert len(lost_in) >= 2, lost_in
    carried_out(tenant)
    assert all(replica.alive for replica in replicas)


def steal(tenant: Tenant) -> bool:
    """Take the Lease; whether that succeeded."""
    lease = tenant.client.get(LEASES, LEASE, tenant.namespace)
    lease["spec"] = {**lease["spec"], "holderIdentity": "another-holder"}
    try:
        tenant.client.replace(LEASES, lease)
    except Conflict:
        return False
    return True


def test_both_are_killed_and_a_third_continues(site: Site, tenant: Tenant) -> None:
    replicas: list[Replica] = [site.operate("a", **SHORT_LEASE), site.operate("b", **SHORT_LEASE)]
    tenant.train("bert", placement=HERE, play={"checkpoint-delay": "1s"})
    eventually(lambda: tenant.settled("bert"))
    edits = tenant.caught("bert")
    for replica in replicas:
        replica.kill()
    for replica in replicas:
        assert site.ended(replica, PATIENCE)
    site.operate("c", **SHORT_LEASE)
    carried_out(tenant, edits)
