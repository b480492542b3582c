"""Pools that nobody may use: told only where that is so of every job."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.placement import Placement
from rightpool.hardware.node_needs import NodeShape
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.enumerate import closed_pools
from rightpool.planning.offers.rejection import RejectionReason
from tests.unit.planning.jobs import POOLS, TEMPLATE, fresh, running, spec
from tests.unit.prediction.fixtures import A100

DENIED, VENDOR = (RejectionReason.POOL_DENIED,), (RejectionReason.VENDOR_NOT_DECLARED,)


def asking(name: str = "job", **sections: Any) -> Job:
    return fresh(name, spec(**sections))


def pools(**given: Any) -> dict[str, Any]:
    return {"placement": {"pools": given}}


def test_what_one_job_may_use_is_open() -> None:
    assert closed_pools([asking(), asking("b", **pools(deny=["a100"]))], POOLS) == {"tpu": VENDOR}


def test_a_pool_that_every_job_denies() -> None:
    jobs = [asking("a", **pools(deny=["a10g"], allow=["tpu"])), asking("b", **pools(allow=["a100", "tpu"]))]
    assert closed_pools(jobs, POOLS) == {"a10g": DENIED}


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ({"placement": {"capacity": "Spot"}}, RejectionReason.CAPACITY_TYPE),
        ({"elasticity": {"minChips": 5, "maxChips": 6, "batch": "PerChip"}}, RejectionReason.SIZE_NOT_OFFERED),
    ],
)
def test_what_no_size_or_capacity_of_the_pool_suits(sections: dict[str, Any], why: RejectionReason) -> None:
    assert closed_pools([asking(**sections)], {"a100": replace(A100, price=replace(A100.price, spot=None))}) == {
        "a100": (why,)
    }


def test_a_node_selector_that_no_node_meets() -> None:
    pod = {"spec": {**TEMPLATE["spec"], "nodeSelector": {"zone": "b"}}}
    job = asking(workload={"job": {"chipsPerReplica": 4, "replicas": 1, "template": pod}})
    zone_a = replace(A100, shapes={NodeShape(frozenset({("zone", "a")})): 1}, growable=0)
    assert closed_pools([job], {"a100": zone_a}) == {"a100": (RejectionReason.NODE_SELECTOR,)}


def test_a_pool_without_chips_has_nothing_to_be_used() -> None:
    assert closed_pools([asking(**pools(deny=["a100"]))], {"a100": replace(A100, total=0)}) == {}


def test_without_jobs_nothing_is_known() -> None:
    assert closed_pools([], POOLS) is None


def test_a_job_that_cannot_be_read_says_nothing() -> None:
    """What stands in for its spec is none of its user's wishes."""
    unreadable = replace(asking("a"), invalid="spec: no such field")
    assert closed_pools([unreadable], POOLS) is None
    assert closed_pools([unreadable, asking("b", **pools(allow=["tpu"]))], POOLS) == {"a100": DENIED, "a10g": DENIED}


def test_a_job_runs_on_the_vendor_where_it_is() -> None:
    there = running(Placement("tpu", 4, 1))
    assert closed_pools([there], POOLS) == {"a100": VENDOR, "a10g": VENDOR}


NAMES = st.lists(st.sampled_from(sorted(POOLS)), unique=True)
SECTIONS = st.builds(
    lambda allow, deny, capacity: {"placement": {"pools": {"allow": allow, "deny": deny}, "capacity": capacity}},
    NAMES,
    NAMES,
    st.sampled_from(["OnDemand", "Spot", "Any"]),
)


@given(st.lists(SECTIONS, min_size=1, max_size=6))
def test_closed_is_what_every_single_job_says(drawn: list[dict[str, Any]]) -> None:
    jobs = [asking(f"job-{number}", **sections) for number, sections in enumerate(drawn)]
    each = [closed_pools([job], POOLS) or {} for job in jobs]
    together = closed_pools(jobs, POOLS)
    assert together is not None
    assert together.keys() == set.intersection(*(set(found) for found in each))
    for name, why in together.items():
        assert set(why) == {reason for found in each for reason in found[name]}
