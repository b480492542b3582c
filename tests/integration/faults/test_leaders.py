"""Two operators: who is not certain to lead writes nothing, and a migration goes on where the last leader left it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.operators import Nursery, Replica
from rightpool.cluster.errors import Conflict
from rightpool.cluster.resources import LEASES
from tests.integration.faults.conftest import Watchman
from tests.integration.faults.fleet import A10G, Tenant
from tests.integration.faults.test_every_write import new_image
from tests.integration.runtime.harness import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("watchman")]

Operate = Callable[..., Replica]
LEASE = "rightpool-operator"
HERE = {"pools": {"allow": [A10G]}}


def holder(tenant: Tenant) -> str:
    return str(tenant.client.get(LEASES, LEASE, tenant.namespace)["spec"].get("holderIdentity"))


def test_a_leader_stopped_beyond_its_lease_writes_nothing_when_it_goes_on(
    operate: Operate, tenant: Tenant, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    first = operate("first", die=f"record:{written}")
    tenant.train("bert", placement=HERE)
    eventually(lambda: tenant.settled("bert"))
    tenant.edit("bert", new_image)
    eventually(lambda: tenant.phase("bert"))
    first.freeze()
    second = operate("second")
    eventually(lambda: holder(tenant) == second.identity)
    eventually(lambda: tenant.outcomes("bert") == ["CarriedOut"] and tenant.settled("bert"))
    before = written.read_text()
    assert "status bert" in before, "the record works"
    # There is something to do at the very moment at which the first one goes on.
    tenant.edit("bert", lambda spec: spec["workload"]["job"].update(chipsPerReplica=1, replicas=1, template=image(3)))
    first.thaw()
    eventually(lambda: tenant.outcomes("bert") == ["CarriedOut", "CarriedOut"] and tenant.settled("bert"))
    assert holder(tenant) == second.identity
    assert written.read_text() == before
    tenant.only_child("bert")


def image(number: int) -> dict[str, object]:
    return {"spec": {"containers": [{"name": "trainer", "image": f"example.com/trainer:{number}"}]}}


def test_a_leader_loses_its_lease_in_the_middle_of_a_migration(operate: Operate, tenant: Tenant) -> None:
    """A stranger takes the Lease away at each phase of one migration, and never renews it."""
    replicas = [operate("a"), operate("b")]
    tenant.train("bert", replicas=2, placement=HERE, play={"checkpoint-delay": "2s", "start-delay": "2s"})
    eventually(lambda: tenant.settled("bert"))
    tenant.edit("bert", new_image)
    robbed: list[str] = []
    deadline = time.monotonic() + 400
    while "CarriedOut" not in tenant.outcomes("bert"):
        assert time.monotonic() < deadline, tenant.status("bert")
        phase = tenant.phase("bert")
        if phase is None or phase in robbed or not steal(tenant):
            time.sleep(0.05)
            continue
        robbed.append(phase)
    assert len(robbed) >= 2, robbed
    assert tenant.outcomes("bert") == ["CarriedOut"]
    eventually(lambda: tenant.settled("bert"))
    tenant.only_child("bert")
    assert all(replica.alive for replica in replicas)


def steal(tenant: Tenant) -> bool:
    """Whether the Lease could be taken."""
    lease = tenant.client.get(LEASES, LEASE, tenant.namespace)
    lease["spec"] = {**lease["spec"], "holderIdentity": "a-stranger"}
    try:
        tenant.client.replace(LEASES, lease)
    except Conflict:
        return False
    return True


def test_both_are_killed_and_a_third_goes_on(
    operate: Operate, tenant: Tenant, nursery: Nursery, watchman: Watchman
) -> None:
    replicas = [operate("a"), operate("b")]
    tenant.train("bert", placement=HERE, play={"checkpoint-delay": "1s"})
    eventually(lambda: tenant.settled("bert"))
    tenant.edit("bert", new_image)
    eventually(lambda: tenant.phase("bert"))
    for replica in replicas:
        replica.kill()
    for replica in replicas:
        assert nursery.wait(replica, 60)
    operate("c")
    eventually(lambda: tenant.outcomes("bert") == ["CarriedOut"] and tenant.settled("bert"))
    tenant.only_child("bert")
    assert watchman.checker.events > 10
