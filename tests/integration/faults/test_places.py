"""A target on which the job can't run, and a save that never comes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from chaos.operators import Replica
from rightpool.cluster.errors import ClusterError
from tests.integration.faults.fleet import A10G, A100, Tenant
from tests.integration.runtime.harness import eventually

pytestmark = pytest.mark.cluster

Operate = Callable[..., Replica]


def test_an_image_that_cannot_be_pulled_on_the_target(
    operate: Operate, tenant: Tenant, impatient: Callable[[], None]
) -> None:
    operate()
    stop = threading.Event()

    def spoil() -> None:
        """Pods on the target never start; their image can't be had there."""
        while not stop.wait(0.05):
            try:
                if tenant.pool("bert") == A10G:
                    tenant.annotate_pods("bert", **{"image-pull-error": "no such image"})
            except ClusterError:
                continue

    tenant.train("bert", play={"start-delay": "6s"})
    eventually(lambda: tenant.settled("bert"))
    impatient()
    thread = threading.Thread(target=spoil)
    thread.start()
    eventually(lambda: tenant.outcomes("bert"))
    stop.set()
    thread.join()
    entry = tenant.status("bert")["history"][-1]
    assert (entry["outcome"], entry["reason"]) == ("RolledBack", "StartDeadlineExceeded")
    assert "ImagePullBackOff" in entry["message"]
    eventually(lambda: tenant.settled("bert"))
    assert tenant.pool("bert") == A100
    tenant.only_child("bert")


def test_a_save_that_never_comes(operate: Operate, tenant: Tenant) -> None:
    operate()
    tenant.train("bert", checkpoint={"mode": "Signal", "timeout": "4s"}, play={"checkpoint-delay": "never"})
    eventually(lambda: tenant.settled("bert"))
    pods = tenant.uids("bert")
    eventually(lambda: tenant.outcomes("bert") == ["Held"])
    assert tenant.status("bert")["history"][-1]["reason"] == "CheckpointTimeout"
    assert tenant.uids("bert") == pods, "the job runs on, untouched"
