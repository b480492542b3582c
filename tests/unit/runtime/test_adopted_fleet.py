"""A fleet of which every third job is adopted: it is measured as any other, and writes nothing while it is left."""

from __future__ import annotations

from benchmarks.cycle import Cluster, filled, planner_of, settle
from benchmarks.synthetic_fleet import nodes, synthetic_jobs
from rightpool.cluster.resources import PROFILED_JOBS
from tests.unit.runtime.makers import Body

JOBS = 6


def reasons(status: Body) -> dict[str, str]:
    return {condition["type"]: condition["reason"] for condition in status["conditions"]}


def test_an_adopted_third_of_a_fleet_is_measured_as_the_rest_is() -> None:
    cluster, clock = Cluster(), {"now": 1_800_000_000.0}
    store = filled(cluster, JOBS, clock["now"], nodes(20), adopted=True)
    settle(planner_of(cluster, store, clock), cluster, clock)
    stored = [cluster.stored(PROFILED_JOBS, job.key.namespace, job.key.name) for job in synthetic_jobs(JOBS)]
    assert ["workloadRef" in body["spec"] for body in stored] == [True, False, False] * 2
    for body in stored:
        found = reasons(body["status"])
        assert (found["Placed"], found["Profiled"]) == ("Running", "Measured"), body["metadata"]["name"]
