"""`rightpool recommend`, `approve` and `history`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.work_unit import WorkUnit
from rightpool.cli import history as history_module
from rightpool.cli import recommend as recommend_module
from rightpool.cli.approve import approve
from rightpool.cli.connection import CliError
from rightpool.cli.history import entries_of, history_document, outlived, print_entries
from rightpool.cli.recommend import offers_document, print_offers, ranked_offers, unknown_memory
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.planning.books.chargeback import Chargeback
from rightpool.planning.jobs.job import JobKey
from tests.unit.cli.cluster import NOW, FakeClient, job, moment, printed, profile, running_status, view_of
from tests.unit.cli.test_top import recommended

KEY = JobKey("vision", "resnet50")


class Patches(FakeClient):
    def __init__(self) -> None:
        super().__init__()
        self.patches: list[dict[str, Any]] = []

    def request(self, method: str, path: str, *, body: dict[str, Any], content: str) -> dict[str, Any]:
        assert (method, content) == ("PATCH", "application/merge-patch+json")
        self.patches.append(body)
        return body


def test_the_most_dollars_come_first() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job("some", status=recommended(costPerHour="8.04")))
    client.add(PROFILED_JOBS, job("most", status=recommended()))
    client.add(PROFILED_JOBS, job("none"))
    offers = ranked_offers(view_of(client).jobs(None).values())
    assert [key.name for key, _ in offers] == ["most", "some"]
    found = offers_document(offers, NOW)
    assert found["potentialSavingsPerHour"] == pytest.approx(12.24 + 4.20)
    for key in (*found, *found["items"][0]):
        assert key in (recommend_module.__doc__ or "")
    page, stream = printed()
    print_offers(page, offers)
    assert "$16.44 an hour can be saved" in stream.getvalue()


def test_jobs_whose_memory_is_not_known_are_named_with_the_remedy() -> None:
    client, unseen = FakeClient(), running_status(profile=profile(memoryUsedBytes=None))
    client.add(PROFILED_JOBS, job("measured"))
    client.add(PROFILED_JOBS, job("declared", status=unseen, placement={"memoryPerChip": "14Gi"}))
    assert unknown_memory(view_of(client).jobs(None).values()) is None
    client.add(PROFILED_JOBS, job("unknown", status=unseen))
    text = unknown_memory(view_of(client).jobs(None).values())
    assert text is not None and "vision/unknown" in text and "set placement.memoryPerChip" in text
    assert "vision/measured" not in text and "vision/declared" not in text


def test_an_approval_names_what_is_recommended_and_the_object_it_was_read_from() -> None:
    client = Patches()
    body = client.add(PROFILED_JOBS, job(status=recommended()))
    assert approve(client, KEY, None) == "approved d-2-a10g-4: vision/resnet50 goes to 4 chips of a10g"  # type: ignore[arg-type]
    (patch,) = client.patches
    assert patch["metadata"]["annotations"] == {"rightpool.dev/approve": "d-2-a10g-4"}
    assert patch["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"]
    with pytest.raises(CliError, match="not what is recommended now"):
        approve(client, KEY, "d-1-a100-8")  # type: ignore[arg-type]
    assert len(client.patches) == 1


def test_what_no_approval_ends_is_neither_approved_nor_offered() -> None:
    client = Patches()
    waits = {"heldBy": "CheckpointTimeout", "message": "no save came in 45 s; asked again in 10 min"}
    client.add(PROFILED_JOBS, job(status=recommended(**waits)))
    with pytest.raises(CliError, match="CheckpointTimeout: no save came in 45 s; asked again in 10 min"):
        approve(client, KEY, None)  # type: ignore[arg-type]
    assert client.patches == []
    page, stream = printed()
    print_offers(page, ranked_offers(view_of(client).jobs(None).values()))
    assert "rightpool approve" not in stream.getvalue()


def test_there_may_be_nothing_to_approve() -> None:
    client = Patches()
    with pytest.raises(CliError, match="there is no ProfiledJob"):
        approve(client, KEY, None)  # type: ignore[arg-type]
    client.add(PROFILED_JOBS, job())
    with pytest.raises(CliError, match="nothing is recommended"):
        approve(client, KEY, None)  # type: ignore[arg-type]


def entry(number: int, ago: float) -> dict[str, Any]:
    place = {"pool": "a100", "chips": 4, "replicas": 1, "capacity": "OnDemand"}
    return {
        "id": f"d-{number}",
        "action": "Move",
        "from": place,
        "to": place | {"pool": "a10g"},
        "startedAt": moment(ago + 100),
        "finishedAt": moment(ago),
        "outcome": "Verified",
        "reason": "Delivered",
        "baseline": "6070",
        "realised": "2443",
    }


def test_the_ledger_of_all_jobs_the_newest_first() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job("one", status=running_status(history=[entry(1, 500), entry(2, 50)])))
    client.add(PROFILED_JOBS, job("two", status=running_status(history=[entry(1, 100)])))
    entries = entries_of(view_of(client).jobs("vision").values())
    assert [(key.name, each.id) for key, each in entries] == [("one", "d-2"), ("two", "d-1"), ("one", "d-1")]
    found = history_document(entries, NOW)
    assert found["items"][0]["entry"]["baseline"] == 6070.0, "numbers are numbers"
    assert found["items"][0]["entry"]["unit"] == "Samples"
    for key in (*found, *found["items"][0]):
        assert key in (history_module.__doc__ or "")
    page, stream = printed()
    print_entries(page, entries, NOW)
    assert "4×a100" in stream.getvalue() and "4×a10g" in stream.getvalue()
    assert "SAMPLES/S" in stream.getvalue()
    page, stream = printed()
    key, newest = entries[0]
    print_entries(page, [(key, replace(newest, unit=WorkUnit.STEPS)), *entries[1:]], NOW)
    assert "THROUGHPUT" in stream.getvalue() and "6070 steps/s" in stream.getvalue()
    assert "6070 samples/s" in stream.getvalue()


def test_the_ledger_of_jobs_that_are_gone_by_the_books() -> None:
    client = FakeClient()
    client.add(PROFILED_JOBS, job("one", status=running_status(history=[entry(1, 500)])))
    client.add(PROFILED_JOBS, job("gone", status=running_status(history=[entry(1, 100), entry(2, 50)])))
    jobs = {key.name: stored.job for key, stored in view_of(client).jobs("vision").items()}
    books = Chargeback()
    for each in jobs.values():
        books.moves.book(each)
    found = outlived({"vision": books}, {jobs["one"].uid})
    assert [(key.namespace, key.name, each.id) for key, each in found] == [
        ("vision", "gone", "d-2"),
        ("vision", "gone", "d-1"),
    ]
    assert [each for _, each in found] == list(reversed(jobs["gone"].state.history))
