"""`rightpool profile`: every number with its unit, quality and origin, and what is not known with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cli.explain import explain
from rightpool.cli.profile import document, print_profile
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.planning.jobs.job import JobKey
from tests.unit.cli.cluster import (
    NOW,
    FakeClient,
    job,
    moment,
    pod,
    printed,
    profile,
    running_status,
    two_pools,
    view_of,
)

KEY = JobKey("vision", "resnet50")
COMPUTE = {"part": "Compute", "least": "0.70", "leastRank": 2, "median": "0.80", "most": "0.95", "mostRank": 3}
ALONE = {
    "part": "ExposedCommunication",
    "least": "0.02",
    "leastRank": 3,
    "median": "0.15",
    "most": "0.2",
    "mostRank": 2,
}
RANKS = {"captured": 4, "failed": 0, "pods": 1, "parts": [COMPUTE, ALONE]}
OTHERS = [{"device": "cuda:1", "peakBytes": 2**30}]
MEMORY = {"peakBytes": 2**34, "at": "0.5", "timeline": [2**33, 2**34], "device": "cuda:0", "phase": "Backward"}
TRACED = {
    "on": "Device",
    "seconds": "0.5",
    "memory": {**MEMORY, "atStep": "0.25", "stepEnds": [5, 6, 7], "others": OTHERS},
}


def measured(**fields: Any) -> dict[str, Any]:
    """A status with these fields in its profile."""
    status = running_status()
    status["profile"] = {**profile(), **fields}
    return status


def client(status: dict[str, Any] | None = None, **spec: Any) -> FakeClient:
    made = two_pools()
    made.add(PROFILED_JOBS, job(status=status, **spec))
    made.add(PODS, pod("resnet50", "vision", "a100-0"))
    return made


def text(made: FakeClient, width: int | None = None) -> str:
    page, stream = printed(width)
    print_profile(page, explain(view_of(made, KEY.namespace), KEY, NOW))
    return stream.getvalue()


def body(made: FakeClient) -> dict[str, Any]:
    return document(explain(view_of(made, KEY.namespace), KEY, NOW))


def fields(made: FakeClient) -> dict[str, tuple[float, str, str]]:
    return {each["name"]: (each["value"], each["unit"], each["quality"]) for each in body(made)["fields"]}


def test_numbers_have_unit_quality_and_origin() -> None:
    made = client(
        measured(derived=["samplesPerSecond"], joulesPerSample="0.24", scalingEfficiency="0.93", powerWatts="365")
    )
    found = fields(made)
    assert found["samplesPerSecond"] == (6070, "1/s", "Derived")
    assert found["chipBusy"][1:] == ("ratio", "Measured")
    assert found["powerWatts"] == (365, "W", "Measured")
    assert found["joulesPerSample"] == (0.24, "J", "Derived")
    assert found["scalingEfficiency"] == (0.93, "ratio", "Derived")
    lines = text(made).splitlines()
    assert any(" ".join(line.split()) == "samples/s 6070 Derived samples that the program takes" for line in lines)
    assert any("energy of a sample" in line and "0.24 J" in line for line in lines)


@pytest.mark.parametrize(
    ("spec", "origin"),
    [
        ({}, "throughput, and FLOPs counted in the program"),
        ({"progress": {"flopsPerSample": "1e9"}}, "throughput, and spec.progress.flopsPerSample"),
    ],
)
def test_the_origin_of_flops_is_named(spec: dict[str, Any], origin: str) -> None:
    made = client(measured(modelFlopsUtilization="0.38", model={"precision": "bf16", "stepFlops": "1e12"}), **spec)
    assert fields(made)["modelFlopsUtilization"] == (0.38, "ratio", "Derived")
    assert [each["origin"] for each in body(made)["fields"] if each["name"] == "modelFlopsUtilization"] == [origin]


def test_what_is_not_known_is_listed_with_the_reason() -> None:
    made = client(measured())
    reasons = {each["name"]: each["reason"] for each in body(made)["missing"]}
    assert "spec.progress.flopsPerSample" in reasons["modelFlopsUtilization"]
    assert "counters of the chips" in reasons["powerWatts"]
    assert not {each["name"] for each in body(made)["fields"]} & reasons.keys()
    assert all(reason in text(made) for reason in reasons.values())


def test_a_counter_that_was_left_out_is_not_said_to_be_missing_at_its_source() -> None:
    """Who reads that no counter gives it looks for an exporter, and it is there."""
    status = measured()
    left_out = "1 pod over 5 min; left out because they are impossible: powerWatts: less than is in use"
    for condition in status["conditions"]:
        if condition["type"] == "Profiled":
            condition.update(reason="ContradictoryTelemetry", message=left_out)
    made = client(status)
    reasons = {each["name"]: each["reason"] for each in body(made)["missing"]}
    assert "left out" in reasons["powerWatts"] and "counters of the chips" not in reasons["powerWatts"]
    assert left_out in text(made)


def test_parts_of_the_step_are_bars_as_long_as_their_shares() -> None:
    made = client(measured(exposedCommunication="0.2", inputWait="0.01", saving="0.01"))
    parts = body(made)["step"]
    assert "waits for saves" in [each["part"] for each in parts]
    assert sum(each["share"] for each in parts) == pytest.approx(1.0, abs=0.02)
    lines = text(made).partition("Where the time of a step goes")[2].splitlines()
    for each in parts:
        line = next(line for line in lines if each["part"] in line)
        assert line.count("█") == pytest.approx(each["share"] * 40, abs=0.5)


def test_ranks_are_compared_where_a_trace_has_them() -> None:
    status = measured()
    status["trace"] = {"id": "t-1", "state": "Captured", "since": moment(60), "ranks": RANKS}
    made = client(status)
    assert body(made)["ranks"]["parts"][1]["mostRank"] == 2
    shown = text(made)
    assert "How 4 ranks differ, by trace t-1" in shown
    assert any(line.split()[-5:] == ["2%", "3", "15%", "20%", "2"] for line in shown.splitlines())
    assert body(client(measured()))["ranks"] is None


def test_memory_is_told_where_a_trace_says_it() -> None:
    status = measured()
    status["trace"] = {"id": "t-1", "state": "Captured", "since": moment(60), "summary": TRACED}
    made = client(status)
    found = body(made)["memory"]
    assert (found["peakBytes"], found["at"], found["phase"], found["stepEnds"]) == (2**34, 0.5, "Backward", [5, 6, 7])
    assert "capacityBytes" not in found
    shown = text(made)
    assert "Memory in use, by trace t-1" in shown
    assert "cuda:0: at most 16.0 GiB, after 25% of a step, in the backward pass" in shown
    assert body(client(measured()))["memory"] is None


def test_what_limits_the_job_is_what_explain_says() -> None:
    made = client(measured())
    found = body(made)["bottleneck"]
    assert found["class"] == "MemoryBandwidth" and found["evidence"] in text(made) and found["lever"] in text(made)


def test_the_model_is_what_the_program_says() -> None:
    model = {"precision": "bf16", "parameters": 110_000_000, "batch": 64, "stepFlops": "2100000000000", "sharded": 4}
    made = client(measured(model=model))
    assert body(made)["model"] == {**model, "stepFlops": 2.1e12}
    shown = [line.split() for line in text(made).splitlines()]
    assert ["FLOPs", "of", "a", "step", "2.1e+12"] in shown and ["sharded", "over", "4"] in shown


def test_nothing_measured_is_no_profile() -> None:
    status = running_status()
    status.pop("profile")
    made = client(status)
    found = body(made)
    assert (found["profile"], found["fields"], found["step"], found["missing"]) == (None, [], [], [])
    assert "nothing was measured yet" in text(made)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_fits_the_terminal(width: int) -> None:
    assert max(map(len, text(client(measured()), width).splitlines())) <= width
