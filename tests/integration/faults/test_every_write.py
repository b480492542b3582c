"""Killed by SIGKILL right before and right after every single write: between status and command, between commands.

Each job goes one way through the state machine; the operator dies once at every point of it, and the next process,
which knows nothing but what the API server has, goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.operators import Nursery, Replica
from tests.integration.faults.conftest import Watchman
from tests.integration.faults.fleet import A10G, A100, Body, Tenant
from tests.integration.runtime.harness import eventually

pytestmark = pytest.mark.cluster

Operate = Callable[..., Replica]
SECONDS = 150.0


class Lives:
    """An operator that dies at every point once, and is started again whenever it has."""

    def __init__(self, operate: Operate, nursery: Nursery, memory: Path) -> None:
        self._operate = operate
        self._nursery = nursery
        self.memory = memory
        self.deaths = 0
        self._replica = operate(die=f"points:{memory}")

    def until(self, check: Callable[[], object], seconds: float = SECONDS) -> None:
        """Go on living until this is so."""
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s; died at {self.points[-3:]}"
            if self._nursery.wait(self._replica, 0.2):
                assert self._replica.exit_code == -9, self._replica.log.read_text()[-2000:]
                self.deaths += 1
                # Under the same name, so that its own Lease need not run out: what is tested here is the next step.
                self._replica = self._operate(die=f"points:{self.memory}")

    @property
    def points(self) -> list[str]:
        return self.memory.read_text().splitlines() if self.memory.exists() else []

    def met(self, what: str) -> bool:
        return any(what in point for point in self.points)


@pytest.fixture
def lives(operate: Operate, nursery: Nursery, tmp_path: Path, watchman: Watchman) -> Lives:
    return Lives(operate, nursery, tmp_path / "points")


def new_image(spec: Body) -> None:
    spec["workload"]["job"]["template"]["spec"]["containers"][0]["image"] = "example.com/trainer:2"


def test_an_update_and_a_resize(lives: Lives, tenant: Tenant) -> None:
    tenant.train("update", replicas=2, placement={"pools": {"allow": [A10G]}})
    tenant.train("resize", elasticity={"minChips": 1, "maxChips": 2}, placement={"pools": {"allow": [A10G]}})
    lives.until(lambda: tenant.settled("update") and tenant.settled("resize"))
    tenant.edit("update", new_image)
    tenant.edit("resize", lambda spec: spec["workload"]["job"].update(replicas=2))
    for name in ("update", "resize"):
        lives.until(lambda name=name: tenant.outcomes(name) and tenant.settled(name))  # type: ignore[misc]
        assert tenant.outcomes(name) == ["CarriedOut"]
        assert tenant.status(name)["placement"]["revision"] == 2
        tenant.only_child(name)
        for phase in ("Planned", "Checkpointing", "Draining", "Starting"):
            assert lives.met(f"after status {name} r{2 if phase == 'Starting' else 1} True d-2 {phase}") or lives.met(
                f"after status {name} r2 False d-2 {phase}"
            ), (phase, lives.points)
    for point in ("before DELETE jobs/update-r1", "before DELETE services/update-r1", "after POST jobs/update-r2"):
        assert lives.met(point), point
    assert tenant.status("resize")["placement"]["chips"] == 2
    assert lives.deaths >= 30


def test_a_move_that_is_verified(lives: Lives, tenant: Tenant) -> None:
    tenant.train("move")
    lives.until(lambda: tenant.outcomes("move") and tenant.settled("move"))
    assert tenant.outcomes("move") == ["Verified"]
    assert tenant.pool("move") == A10G
    assert tenant.status("move")["moves"] == 1
    tenant.only_child("move")
    for phase in ("Planned", "Checkpointing", "Draining", "Starting", "WarmingUp", "Verifying"):
        assert lives.met(f"{phase} False 0"), (phase, lives.points)


def test_a_move_that_is_undone(lives: Lives, tenant: Tenant) -> None:
    tenant.train("undone", play={"throughput": "1"})

    def slower() -> bool:
        """On the target, everything takes ten times as long."""
        if tenant.pool("undone") == A10G:
            tenant.annotate_pods("undone", throughput="0.05")
        return tenant.phase("undone") == "WarmingUp"

    lives.until(slower)
    lives.until(lambda: tenant.outcomes("undone") and tenant.settled("undone"))
    status = tenant.status("undone")
    assert tenant.outcomes("undone") == ["RolledBack"]
    assert (status["placement"]["pool"], status["placement"]["revision"]) == (A100, 3)
    assert [avoided["pool"] for avoided in status["avoid"]] == [A10G]
    tenant.only_child("undone")
    for phase in ("Checkpointing", "Draining", "Starting"):
        assert lives.met(f"{phase} True 0"), (phase, lives.points)
    eventually(lambda: tenant.running("undone"))
