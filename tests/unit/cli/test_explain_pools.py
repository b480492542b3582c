"""`rightpool explain`: names of pools in a spec that no pool has."""

from __future__ import annotations

from rightpool.cli.explain import explain
from rightpool.cluster.resources import NODES, PROFILED_JOBS
from rightpool.planning.jobs.job import JobKey
from tests.unit.cli.cluster import A100, NOW, FakeClient, job, node, two_pools, view_of


def test_a_name_that_no_pool_has_is_told() -> None:
    """A pool that was to be denied takes jobs otherwise, and nobody says why."""
    pools = {"allow": ["a100", "a10g", "tpu"], "deny": ["a10"]}
    client = two_pools()
    client.add(PROFILED_JOBS, job(placement={"pools": pools}))
    notes = explain(view_of(client, "vision"), JobKey("vision", "resnet50"), NOW).notes
    assert "placement.pools.deny names a10, and no AcceleratorPool has this name; did you mean a10g or a100?" in notes
    assert "placement.pools.allow names tpu, and no AcceleratorPool has this name" in notes
    assert not any("names a100" in note for note in notes)


def test_a_pool_that_nodes_show_and_no_operator_has_written_down_yet_is_known() -> None:
    client = FakeClient()
    client.add(NODES, node("n1", A100, "nvidia.com/gpu", 8))
    (name,) = view_of(client).fleet().pools
    client.add(PROFILED_JOBS, job(placement={"pools": {"allow": [name]}}))
    assert not any(
        f"names {name}" in note for note in explain(view_of(client), JobKey("vision", "resnet50"), NOW).notes
    )
