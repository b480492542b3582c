"""Killed by SIGKILL right before and right after every single write: between status and command, between commands.

Each job goes one way through the state machine under an operator of its own, which dies once at every point of it; the
next process, which knows nothing but what the API server has, goes on. All go their ways side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.operators import Nursery
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import PLACEMENT_POLICIES
from tests.integration.faults.conftest import make_site, put
from tests.integration.faults.fleet import A10G, A100, DEAD, POLICY, SHORT, SLOW, new_image
from tests.integration.faults.site import Lives, Site, Watchman

pytestmark = pytest.mark.cluster

# Writes, as `chaos.nursery` names them: of a status, revision, whether it has run, decision, phase, way back.
STARTS = ("status bert r1 False None None", "POST jobs/bert-r1", "PATCH jobs/bert-r1", "status bert r1 True None None")
LEAVES = (
    *("status bert r1 True d-2 Planned", "status bert r1 True d-2 Checkpointing", "status bert r1 True d-2 Draining"),
    *("DELETE jobs/bert-r1", "status bert r2 False d-2 Starting", "POST jobs/bert-r2", "PATCH jobs/bert-r2"),
)
PROVES = ("status bert r2 True d-2 WarmingUp", "status bert r2 True d-2 Verifying")
RETURNS = (
    *("DELETE jobs/bert-r2", "status bert r3 False d-2 Starting True", "POST jobs/bert-r3", "PATCH jobs/bert-r3"),
    "status bert r3 True None None None 1",
)


def here(*pools: str) -> dict[str, object]:
    return {"pools": {"allow": list(pools)}}


def starts(site: Site) -> None:
    lives = Lives(site)
    site.tenant.train("bert", replicas=2, placement=here(A10G))
    lives.until(lambda: site.tenant.settled("bert"), "it runs")
    ended(lives, revision=1, pool=A10G)
    assert lives.missed(*STARTS, "POST services/bert-r1") == []


def updated(site: Site) -> None:
    lives = Lives(site)
    site.tenant.train("bert", replicas=2, placement=here(A10G))
    lives.until(lambda: site.tenant.settled("bert"), "it runs")
    site.tenant.edit("bert", new_image)
    lives.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it runs anew")
    ended(lives, "CarriedOut", revision=2, pool=A10G)
    assert lives.missed(*STARTS, *LEAVES, "POST services/bert-r2", "status bert r2 True None None None 1") == []


def resized(site: Site) -> None:
    lives = Lives(site)
    site.tenant.train("bert", elasticity={"minChips": 1, "maxChips": 2}, placement=here(A10G))
    lives.until(lambda: site.tenant.settled("bert"), "it runs")
    site.tenant.edit("bert", lambda spec: spec["workload"]["job"].update(replicas=2))
    lives.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it runs anew")
    ended(lives, "CarriedOut", revision=2, pool=A10G, chips=2)
    assert lives.missed(*STARTS, *LEAVES, "POST services/bert-r2", "status bert r2 True None None None 1") == []


def verified(site: Site) -> None:
    lives = Lives(site)
    site.tenant.train("bert", placement=here(A100, A10G))
    lives.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it moves")
    ended(lives, "Verified", revision=2, pool=A10G)
    assert site.tenant.status("bert")["moves"] == 1
    assert lives.missed(*STARTS, *LEAVES, *PROVES, "status bert r2 True None None None 1") == []


def rolled_back(site: Site) -> None:
    lives = Lives(site)
    site.tenant.train("bert", placement=here(A100, SLOW))
    lives.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it moves there and back")
    ended(lives, "RolledBack", revision=3, pool=A100)
    assert [avoided["pool"] for avoided in site.tenant.status("bert")["avoid"]] == [SLOW]
    undone = ("status bert r2 True d-2 Checkpointing True", "status bert r2 True d-2 Draining True")
    assert lives.missed(*STARTS, *LEAVES, *PROVES, *undone, *RETURNS) == []


def given_up(site: Site) -> None:
    lives = Lives(site)
    site.tenant.train("bert", placement=here(A100, DEAD))
    lives.until(lambda: site.tenant.outcomes("bert") and site.tenant.settled("bert"), "it is back", 400)
    ended(lives, "RolledBack", revision=3, pool=A100)
    assert site.tenant.status("bert")["history"][-1]["reason"] == "StartDeadlineExceeded"
    assert lives.missed(*STARTS, *LEAVES, "status bert r2 False d-2 Draining True", *RETURNS) == []


def ended(lives: Lives, *outcomes: str, revision: int, pool: str, **more: int) -> None:
    """In the right place, with nothing left of what it went through, and it died wherever it could."""
    tenant = lives.site.tenant
    placement = tenant.status("bert")["placement"]
    assert tenant.outcomes("bert") == list(outcomes)
    assert (placement["revision"], placement["pool"]) == (revision, pool)
    assert {key: placement[key] for key in more} == more
    tenant.only_child("bert")
    assert lives.deaths in (len(lives.points), len(lives.points) - 1), "the last one may not be noticed any more"
    lives.site.sound()


GENTLE = (starts, updated, resized, verified, rolled_back)


@pytest.fixture(scope="module")
def ways(
    client: ClusterClient, nursery: Nursery, watchman: Watchman, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[None]]]:
    """What each way comes to."""

    def go(way: Callable[[Site], None], folder: Path) -> None:
        with make_site(client, nursery, watchman, folder) as site:
            way(site)

    folder = tmp_path_factory.mktemp("ways")
    with ThreadPoolExecutor(len(GENTLE) + 1) as threads, ExitStack() as stack:
        stack.callback(put, client, PLACEMENT_POLICIES, "default", {"spec": POLICY})
        going = {way.__name__: threads.submit(go, way, folder) for way in (*GENTLE, given_up)}
        for way in GENTLE:
            going[way.__name__].exception()
        # Only now: to die and be born again a few times takes longer than a target is given here.
        put(client, PLACEMENT_POLICIES, "default", {"spec": {**POLICY, "startDeadline": SHORT}})
        yield going


@pytest.mark.parametrize("way", [*(way.__name__ for way in GENTLE), given_up.__name__])
def test_killed_at_every_write(ways: dict[str, Future[None]], way: str) -> None:
    ways[way].result()
