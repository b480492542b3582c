"""Leaders are killed, stopped and replaced: the next one continues, and nothing is done twice."""

from __future__ import annotations

import time

import pytest

from rightpool.cluster.resources import LEASES
from tests.integration.faults.fleet import new_image
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Fleet, SingleWriterWatch
from tests.patience import eventually

pytestmark = pytest.mark.cluster


JOBS = "rightpool_operator_jobs{"


def holder(fleet: Fleet) -> str | None:
    lease = fleet.client.get(LEASES, "rightpool-operator", fleet.namespace)
    return lease["spec"].get("holderIdentity")


def test_a_follower_does_nothing_until_the_leader_ends(start: Start, fleet: Fleet) -> None:
    # It is not lost where a process does not run for a while. The next leader looks after a third of it.
    lease = {"RIGHTPOOL_LEASE_DURATION": "30"}
    first = start("a", **lease)
    eventually(lambda: first.logged("leader"))
    second = start("b", **lease)
    eventually(lambda: second.logged("the store is complete"))
    fleet.create("bert")
    eventually(lambda: fleet.running("bert", "bert-r1"))
    assert not second.logged("created")
    assert first.exports(JOBS) and not second.exports(JOBS), "only the leader exports metrics of the fleet"
    first.terminate()
    assert holder(fleet) != first.identity, "the Lease was released, so the next leader does not wait for its expiry"
    eventually(lambda: second.logged("INFO    leader"))
    fleet.create("gpt")
    eventually(lambda: fleet.running("gpt", "gpt-r1"))
    eventually(lambda: second.logged("created gpt-r1"))
    eventually(lambda: second.exports(JOBS))


def test_a_killed_operator_is_replaced_and_the_job_runs_on(start: Start, fleet: Fleet) -> None:
    first = start("a")
    fleet.create("bert")
    eventually(lambda: fleet.running("bert", "bert-r1"))
    pods = {pod["metadata"]["uid"] for pod in fleet.pods("bert")}
    first.kill()
    second = start("b")
    eventually(lambda: second.logged("INFO    leader"))
    time.sleep(3)
    assert {pod["metadata"]["uid"] for pod in fleet.pods("bert")} == pods
    assert fleet.status("bert")["placement"]["revision"] == 1


def test_a_migration_killed_in_any_phase_is_carried_out_once(start: Start, fleet: Fleet) -> None:
    operator = start("op-0")
    fleet.create("bert")
    eventually(lambda: fleet.running("bert", "bert-r1"))
    watch = SingleWriterWatch(fleet, "bert")
    fleet.edit("bert", new_image)
    seen: list[str] = []

    def over() -> bool:
        nonlocal operator
        status = fleet.status("bert")
        phase = (status.get("migration") or {}).get("phase")
        if phase is not None and phase not in seen:
            seen.append(phase)
            operator.kill()
            operator = start(f"op-{len(seen)}")
        return not phase and bool(status.get("history"))

    eventually(over, "it is carried out", longest=0.02)
    watch.stop()
    status = fleet.status("bert")
    assert [entry["outcome"] for entry in status["history"]] == ["CarriedOut"]
    assert len(seen) >= 2, seen
    assert status["placement"]["revision"] == 2
    assert watch.looks > 20
    assert len(watch.worst) == 1, f"pods of r{sorted(watch.worst)} at once"
    eventually(lambda: fleet.running("bert", "bert-r2"))
    assert fleet.child("bert-r1") is None
    assert fleet.child("bert-r3") is None


def test_a_paused_leader_that_was_replaced_writes_nothing(start: Start, fleet: Fleet) -> None:
    first = start("a")
    fleet.create("bert")
    eventually(lambda: fleet.running("bert", "bert-r1"))
    watch = SingleWriterWatch(fleet, "bert")
    edits = fleet.caught("bert")
    first.freeze()
    second = start("b")
    eventually(lambda: len(fleet.status("bert").get("history") or ()) == edits)
    eventually(lambda: fleet.running("bert", f"bert-r{1 + edits}"))
    created = first.log.read_text().count("created")
    first.thaw()
    time.sleep(4)
    watch.stop()
    assert first.log.read_text().count("created") == created
    assert fleet.child("bert-r1") is None
    assert fleet.status("bert")["placement"]["revision"] == 1 + edits
    assert len(fleet.status("bert")["history"]) == edits
    assert len(watch.worst) == 1, f"pods of r{sorted(watch.worst)} at once"
    eventually(lambda: second.logged(f"ended bert-r{edits}") or first.logged(f"ended bert-r{edits}"))


def test_a_paused_operator_catches_up(start: Start, fleet: Fleet) -> None:
    operator = start("a", RIGHTPOOL_API_TIMEOUT="1")
    fleet.create("bert")
    eventually(lambda: fleet.running("bert", "bert-r1"))
    operator.freeze()
    fleet.edit("bert", lambda spec: spec.update(suspend=True))
    time.sleep(5)
    operator.thaw()
    eventually(lambda: not fleet.revisions_alive("bert"))
    eventually(lambda: fleet.condition("bert", "Placed").get("reason") == "Suspended")
