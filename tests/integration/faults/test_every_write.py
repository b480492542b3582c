"""Killed by SIGKILL right before and right after every single write: between status and command, between commands.

One job goes its way through the state machine; the operator dies once at every point of it, and the next process,
which knows nothing but what the API server has, goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.operators import Nursery, Replica
from tests.integration.faults.conftest import Watchman
from tests.integration.faults.fleet import A10G, Body, Tenant

pytestmark = pytest.mark.cluster

Operate = Callable[..., Replica]
SECONDS = 400.0


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

    def met(self, begin: str) -> bool:
        """Whether it died at a point that begins like this."""
        return any(point.startswith(begin) for point in self.points)

    def met_status(self, when: str, end: str) -> bool:
        """Whether it died before, or after, a status that ends like this was written."""
        return any(point.startswith(when) and point.endswith(end) for point in self.points)


@pytest.fixture
def lives(operate: Operate, nursery: Nursery, tmp_path: Path, watchman: Watchman) -> Lives:
    return Lives(operate, nursery, tmp_path / "points")


def new_image(spec: Body) -> None:
    spec["workload"]["job"]["template"]["spec"]["containers"][0]["image"] = "example.com/trainer:2"


@pytest.mark.parametrize("what", ["update", "resize"])
def test_what_the_user_edits(lives: Lives, tenant: Tenant, what: str) -> None:
    begin, end = (2, 2) if what == "update" else (1, 2)
    here = {"pools": {"allow": [A10G]}}
    tenant.train("bert", replicas=begin, elasticity={"minChips": 1, "maxChips": 2}, placement=here)
    lives.until(lambda: tenant.settled("bert"))
    if what == "update":
        tenant.edit("bert", new_image)
    else:
        tenant.edit("bert", lambda spec: spec["workload"]["job"].update(replicas=end))
    lives.until(lambda: tenant.outcomes("bert") and tenant.settled("bert"))
    assert tenant.outcomes("bert") == ["CarriedOut"]
    placement = tenant.status("bert")["placement"]
    assert (placement["revision"], placement["chips"]) == (2, end)
    tenant.only_child("bert")
    steps = ["status bert r1 True d-2 Planned", "status bert r1 True d-2 Checkpointing"]
    steps += ["status bert r1 True d-2 Draining", "DELETE jobs/bert-r1", "status bert r2 False d-2 Starting"]
    steps += ["POST jobs/bert-r2", "POST services/bert-r2", "PATCH jobs/bert-r2", "status bert r2 True None"]
    for step in steps:
        assert lives.met(f"before {step}"), (step, lives.points)
        assert lives.met(f"after {step}"), (step, lives.points)
