"""`rightpool top`: the dearest first, and sums that say what they leave out."""

from __future__ import annotations

import json
from typing import Any

from rightpool.cli import top as module
from rightpool.cli.top import document, print_jobs, ranked
from rightpool.cluster.resources import PROFILED_JOBS
from tests.unit.cli.cluster import (
    NOW,
    FakeClient,
    condition,
    job,
    moment,
    placement,
    printed,
    profile,
    running_status,
    view_of,
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
    client.add(PROFILED_JOBS, job("asleep", suspend=True))
    client.add(PROFILED_JOBS, job("done", status=running_status(conditions=[condition("Completed")])))
    client.add(PROFILED_JOBS, job("elsewhere", "language", status=running_status(placement=placement(cost=None))))
    return client


def lines(client: FakeClient, namespace: str | None = None) -> list[Any]:
    return ranked(view_of(client).jobs(namespace).values(), NOW)


def told(client: FakeClient, namespace: str | None = None, width: int | None = None) -> str:
    page, stream = printed(width)
    print_jobs(page, lines(client, namespace), namespace)
    return stream.getvalue()


def test_the_dearest_is_first() -> None:
    assert [line.name for line in lines(fleet())][:2] == ["dear", "cheap"]


def test_states() -> None:
    assert {line.name: line.state for line in lines(fleet())} == {
        "dear": "Running",
        "cheap": "Verifying",
        "waiting": "Pending",
        "asleep": "Suspended",
        "done": "Completed",
        "elsewhere": "Running",
    }


def test_who_holds_no_chips_costs_nothing_now() -> None:
    for line in lines(fleet()):
        if line.name in ("waiting", "asleep", "done"):
            assert (line.chips, line.cost_per_hour, line.samples_per_second) == (None, None, None)


def test_numbers_are_of_the_status() -> None:
    (dear,) = (line for line in lines(fleet()) if line.name == "dear")
    assert (dear.pool, dear.chips, dear.samples_per_second, dear.bottleneck) == ("a100", 4, 6070, "MemoryBandwidth")
    assert dear.cost_per_million is not None and abs(dear.cost_per_million - 0.928) < 0.001
    assert (dear.spent, dear.saved) == (40.0, None)


def test_one_namespace_or_all() -> None:
    assert "language" not in told(fleet(), "vision") and "NAMESPACE" not in told(fleet(), "vision")
    assert "language" in told(fleet()) and "NAMESPACE" in told(fleet())


def test_sums_say_what_they_leave_out() -> None:
    text = told(fleet())
    assert "3 of 6 jobs hold 12 chips for $24.30 an hour" in text
    assert "1 without a price are not counted" in text


def test_nothing_there() -> None:
    assert "there are no ProfiledJobs in namespace vision" in told(FakeClient(), "vision")
    assert "there are no ProfiledJobs in this cluster" in told(FakeClient())


def test_a_spec_that_cannot_be_read_is_a_line_and_no_crash() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job("odd", workload={}))
    assert [line.state for line in lines(client)] == ["Invalid"]


def test_narrow_terminals_keep_what_matters() -> None:
    text = told(fleet(), width=70)
    assert max(len(line) for line in text.splitlines()) <= 70
    assert "$/H" in text and "STATE" in text and "SPENT" not in text


def test_a_profile_without_throughput_has_no_price_of_a_sample() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job(status=running_status(profile=profile(samplesPerSecond=None))))
    (line,) = lines(client)
    assert line.samples_per_second is None and line.cost_per_million is None


def test_the_document_has_its_documented_keys() -> None:
    found = document(lines(fleet()), NOW)
    json.dumps(found, allow_nan=False)
    assert list(found) == ["apiVersion", "kind", "asOf", "jobs", "total"]
    for key in (*found, *found["jobs"][0], *found["total"]):
        assert key in (module.__doc__ or "")
    assert found["total"]["unpriced"] == 1
