"""`rightpool top`: order, columns and sums."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rightpool.api.work_unit import WorkUnit
from rightpool.cli import top as module
from rightpool.cli.job_table import document, job_cells, job_columns, print_jobs, ranked
from rightpool.cluster.resources import PROFILED_JOBS
from tests.unit.cli.cluster import (
    NOW,
    FakeClient,
    condition,
    held,
    job,
    moment,
    placement,
    printed,
    profile,
    running_status,
    view_of,
)

ASLEEP = running_status(
    conditions=[condition("Placed", "False", "Suspended")], cost={"spent": "40.00", "saved": "0.00"}
)


def fleet() -> FakeClient:
    client = FakeClient()
    cheap = placement("a10g", cost="4.02")
    migration = {
        "id": "d-2",
        "action": "Move",
        "phase": "Verifying",
        "startedAt": moment(100),
        "phaseStartedAt": moment(50),
        "from": placement(),
        "to": cheap | {"revision": 2},
        "reason": "CheaperPoolMeetsTargets",
        "message": "because",
    }
    client.add(PROFILED_JOBS, job("cheap", status=running_status(placement=cheap, migration=migration)))
    client.add(PROFILED_JOBS, job("dear"))
    client.add(PROFILED_JOBS, job("waiting", status={}))
    client.add(PROFILED_JOBS, job("asleep", status=ASLEEP, suspend=True))
    client.add(PROFILED_JOBS, job("done", status=running_status(conditions=[condition("Completed")])))
    client.add(PROFILED_JOBS, job("elsewhere", "language", status=running_status(placement=placement(cost=None))))
    return client


def lines(client: FakeClient, namespace: str | None = None) -> list[Any]:
    return ranked(view_of(client).jobs(namespace).values(), NOW)


def output(client: FakeClient, namespace: str | None = None, width: int | None = None) -> str:
    page, stream = printed(width)
    print_jobs(page, lines(client, namespace), namespace)
    return stream.getvalue()


def test_sorted_by_cost() -> None:
    assert [line.name for line in lines(fleet())][:2] == ["dear", "cheap"]


def test_states() -> None:
    assert {line.name: line.state for line in lines(fleet())} == {
        "dear": "Running",
        "cheap": "Verifying",
        "waiting": "Unseen",
        "asleep": "Suspended",
        "done": "Completed",
        "elsewhere": "Running",
    }


def test_a_job_without_chips_costs_nothing() -> None:
    for line in lines(fleet()):
        if line.name in ("waiting", "asleep", "done"):
            assert (line.chips, line.cost_per_hour, line.throughput) == (None, None, None)


def test_numbers_come_from_the_status() -> None:
    (dear,) = (line for line in lines(fleet()) if line.name == "dear")
    assert (dear.pool, dear.chips, dear.throughput, dear.bottleneck) == ("a100", 4, 6070, "MemoryBandwidth")
    assert dear.cost_per_million is not None and abs(dear.cost_per_million - 0.928) < 0.001
    assert (dear.spent, dear.saved) == (40.0, None)


@pytest.mark.parametrize(
    ("status", "reason"), [("False", "WarmingUp"), ("False", "StaleTelemetry"), ("Unknown", "NotRunning")]
)
def test_what_is_not_measured_now_is_not_shown(status: str, reason: str) -> None:
    client = FakeClient()
    conditions = [condition("Placed", reason="Running"), condition("Profiled", status, reason)]
    client.add(PROFILED_JOBS, job(status=running_status(conditions=conditions)))
    (line,) = lines(client)
    assert (line.throughput, line.unit, line.cost_per_million, line.bottleneck) == (None, None, None, None)
    assert (line.chips, line.cost_per_hour) == (4, 20.28)


def test_chips_and_dollars_are_those_of_the_pods_that_are_there() -> None:
    client = FakeClient()
    status = running_status(cost=held(placement(), chips=2, perHour="10.14"))
    client.add(PROFILED_JOBS, job(status=status))
    (line,) = lines(client)
    assert (line.chips, line.cost_per_hour) == (2, 10.14)


def test_one_namespace_or_all() -> None:
    assert "language" not in output(fleet(), "vision") and "NAMESPACE" not in output(fleet(), "vision")
    assert "language" in output(fleet()) and "NAMESPACE" in output(fleet())


def test_sums_name_unpriced_jobs() -> None:
    text = output(fleet())
    assert "3 of 6 jobs hold 12 chips for $24.30 an hour" in text
    assert "1 without a price are not counted" in text


def test_without_jobs() -> None:
    assert "there are no ProfiledJobs in namespace vision" in output(FakeClient(), "vision")
    assert "there are no ProfiledJobs in this cluster" in output(FakeClient())


def test_an_invalid_spec_is_a_line_and_no_crash() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job("odd", workload={}))
    assert [line.state for line in lines(client)] == ["Invalid"]


def test_narrow_terminals_omit_less_important_columns() -> None:
    text = output(fleet(), width=70)
    assert max(len(line) for line in text.splitlines()) <= 70
    assert "$/H" in text and "STATE" in text and "SPENT" not in text


def test_a_profile_without_throughput_has_no_price_of_a_sample() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job(status=running_status(profile=profile(samplesPerSecond=None))))
    (line,) = lines(client)
    assert line.throughput is None and line.cost_per_million is None


def test_the_document_has_its_documented_keys() -> None:
    found = document(lines(fleet()), NOW)
    json.dumps(found, allow_nan=False)
    assert list(found) == ["apiVersion", "kind", "asOf", "notes", "jobs", "total"]
    for key in (*found, *found["jobs"][0], *found["total"]):
        assert key in (module.__doc__ or "")
    assert found["total"]["unpriced"] == 1


def steps_profile() -> dict[str, Any]:
    return profile(samplesPerSecond=None, stepsPerSecond="3.2")


def test_a_job_in_steps_is_told_apart_from_those_in_samples() -> None:
    client = fleet()
    client.add(PROFILED_JOBS, job("stepper", status=running_status(profile=steps_profile())))
    (line,) = (line for line in lines(client) if line.name == "stepper")
    assert (line.throughput, line.unit) == (3.2, WorkUnit.STEPS)
    text = output(client)
    assert "THROUGHPUT" in text and "SAMPLES" not in text
    assert "3.2 steps/s" in text and "1760.42 steps" in text, "20.28 an hour"
    assert "6070 samples/s" in text and "0.928 samples" in text
    units = {entry["name"]: entry["unit"] for entry in document(lines(client), NOW)["jobs"]}
    assert (units["stepper"], units["dear"]) == ("Steps", "Samples")
    assert "SAMPLES/S" in output(fleet()) and "steps" not in output(fleet())


def test_rates_of_different_units_bring_no_dollars() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job(status=recommended() | {"profile": steps_profile()}))
    (line,) = lines(client)
    assert line.offer is not None and line.offer.dollars_per_hour is None
    client = FakeClient()
    client.add(
        PROFILED_JOBS,
        job(status=recommended(unit="Steps") | {"profile": profile(samplesPerSecond=None, stepsPerSecond="6070")}),
    )
    (line,) = lines(client)
    assert line.offer is not None and line.offer.dollars_per_hour == pytest.approx(12.24)


def recommended(**changes: Any) -> dict[str, Any]:
    body = {
        "id": "d-2-a10g-4",
        "action": "Move",
        "placement": {"pool": "a10g", "chips": 4, "replicas": 1, "capacity": "OnDemand"},
        "costPerHour": "4.02",
        "throughput": {"median": "3035", "low": "2900", "high": "3100", "sd": "0.03"},
        "savings": "0.60",
        "reason": "CheaperPoolMeetsTargets",
        "heldBy": "PolicyRecommendOnly",
        "message": "4 chips of a10g are cheaper",
    }
    return running_status(recommendation=body | changes)


def test_what_is_recommended_is_seen_with_what_it_would_save() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job(status=recommended()))
    text = output(client)
    assert "WOULD GO TO" in text and "4×a10g" in text and "60%" in text
    assert "$12.24 an hour can be saved by what is recommended" in text, "20.28 - 4.02 for half of the work"
    found = document(lines(client), NOW)
    assert found["jobs"][0]["goesTo"] == {"pool": "a10g", "chips": 4, "replicas": 1, "capacity": "OnDemand"}
    assert found["total"]["potentialSavingsPerHour"] == pytest.approx(12.24)


def test_a_job_that_waits_holds_no_chips_and_costs_nothing() -> None:
    waits = running_status(conditions=[condition("Placed", "False", "WaitingForQuota")], cost={"spent": "0.00"})
    client = FakeClient()
    client.add(PROFILED_JOBS, job(status=waits))
    (line,) = lines(client)
    assert (line.state, line.pool, line.chips, line.cost_per_hour) == ("WaitingForQuota", "a100", None, None)
    assert "0 of 1 jobs hold 0 chips for $0 an hour" in output(client)


def test_a_program_that_fails_is_not_running() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job(status=running_status(conditions=[condition("Placed", "False", "CrashLoop")])))
    assert [line.state for line in lines(client)] == ["CrashLoop"]


def with_targets() -> FakeClient:
    client = FakeClient()
    outlook = {"progress": "0.25", "finishAt": moment(-7200)}
    targets = {"deadline": moment(-10_800), "budget": "50"}
    client.add(PROFILED_JOBS, job("aimed", status=running_status(outlook=outlook), targets=targets))
    overdue = {"deadline": moment(600), "budget": "30"}
    client.add(PROFILED_JOBS, job("overdue", status=running_status(outlook=outlook), targets=overdue))
    ended = running_status(outlook=outlook, conditions=[condition("Completed")])
    client.add(PROFILED_JOBS, job("over", status=ended, targets=targets))
    client.add(PROFILED_JOBS, job("plain"))
    return client


def test_progress_the_end_and_what_is_left_of_time_and_money() -> None:
    shown = {line.name: line for line in lines(with_targets())}
    cells = {name: job_cells(line, units=False) for name, line in shown.items()}
    titles = [column.title for column in job_columns(units=False)]
    first, last = titles.index("DONE"), titles.index("BUDGET LEFT")
    spent = shown["aimed"].spent
    assert spent is not None
    assert cells["aimed"][first : last + 1] == ["25%", "2.0 h", "3.0 h", f"{50 - spent:.2f}"]
    assert cells["overdue"][first : last + 1] == ["25%", "2.0 h", "-10 min", f"{30 - spent:.2f}"]
    assert cells["over"][first : last + 1] == ["25%", "-", "-", "-"], "how it ended is in its condition"
    assert cells["plain"][first : last + 1] == ["-", "-", "-", "-"]
    found = {each["name"]: each for each in document(list(shown.values()), NOW)["jobs"]}
    assert found["aimed"]["finishAt"] == moment(-7200)
    assert (found["aimed"]["secondsLeft"], found["overdue"]["secondsLeft"]) == (10_800.0, -600.0)
    assert found["aimed"]["dollarsLeft"] == pytest.approx(50 - spent)


def test_a_narrow_terminal_leaves_them_out() -> None:
    assert "BUDGET LEFT" in output(with_targets(), "vision")
    assert "BUDGET LEFT" not in output(with_targets(), "vision", 120)
