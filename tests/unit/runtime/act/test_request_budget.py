"""How many requests a start costs, from the write of the status that asks for it: the table in docs/reliability.md."""

from __future__ import annotations

import pytest

from benchmarks.start_requests import start_requests
from tests.unit.runtime.act.world import World

STATUS, CREATE, SERVICE = "PATCH profiledjobs/status", "POST jobs", "POST services"
ASKED, ALONE, START = "GET profiledjobs", "LIST pods", "PATCH jobs"


def test_a_start_costs_five_requests() -> None:
    started, then = start_requests(1)
    assert started == [STATUS, CREATE, ASKED, ALONE, START]
    assert then == [STATUS], "which says that it starts; nothing more until its pods run"


def test_a_start_with_a_service_costs_six() -> None:
    started, then = start_requests(2)
    assert started == [STATUS, CREATE, SERVICE, ASKED, ALONE, START]
    assert then == [STATUS]


@pytest.mark.parametrize(("replicas", "service"), [(1, []), (2, [SERVICE])])
def test_the_fence_precedes_the_creation_of_a_queued_child(replicas: int, service: list[str]) -> None:
    started, then = start_requests(replicas, "research")
    assert started == [STATUS, ASKED, ALONE, CREATE, *service]
    assert then == [STATUS]


def test_a_start_in_a_later_cycle_costs_no_more(world: World) -> None:
    world.run(world.persist())
    assert world.cluster.requests == [ASKED, CREATE, ASKED, ALONE, START]
