"""The records of ended jobs: one each, whoever leads, in few objects that are never too large."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.conditions import Condition
from rightpool.api.ended_job import EndedJob, read_ended_jobs
from rightpool.api.ledger import Outcome
from rightpool.api.progress import JobProgress
from rightpool.api.status import ProfiledJobStatus, ProfileStatus
from rightpool.planning.jobs.job import Job
from rightpool.reporting.ended_job import LONGEST, ended_job
from rightpool.reporting.ended_jobs_object import RECORDS, part_number, read_records
from rightpool.reporting.stored_job import StoredJob, packed
from rightpool.runtime.act.ended_jobs import PART, PART_BYTES, PARTS, SAVE_SECONDS, EndedJobs
from tests.unit.planning.jobs import FOUR, NOW, THERE, changed, entry, running, spec
from tests.unit.runtime.act.test_chargeback_books import Cluster, Leader

HOUR = 3600.0


def ended(job: Job, at: float = NOW, **status: Any) -> StoredJob:
    """As its object is stored."""
    conditions = (Condition("Completed", "True", "Completed", last_transition_time=at),)
    job = changed(job, finished="Completed")
    body = ProfiledJobStatus(conditions=conditions, state=job.state, **status).to_dict()
    return StoredJob(job, packed(body), 1, "1")


def some(count: int, first: int = 0, at: float = NOW) -> list[StoredJob]:
    return [
        ended(changed(running(name=f"job-{number}"), uid=f"u{number}"), at) for number in range(first, first + count)
    ]


def records(cluster: Cluster) -> EndedJobs:
    return EndedJobs(cluster, Leader(), "rightpool-system")  # type: ignore[arg-type]


def stored(cluster: Cluster) -> list[EndedJob]:
    bodies = sorted(cluster.objects.values(), key=lambda body: part_number(body) or 0)
    return [record for body in bodies for record in read_records(body)[0]]


def run(kept: EndedJobs, jobs: list[StoredJob], now: float, cycles: int = 1) -> float:
    for _ in range(cycles):
        now += SAVE_SECONDS
        kept.cycle(jobs, now)
    return now


def test_a_record_says_where_the_job_was_how_fast_and_what_it_cost() -> None:
    move = entry(
        Outcome.VERIFIED,
        NOW - HOUR,
        action=Action.MOVE,
        source=THERE,
        target=FOUR,
        started_at=NOW - 2 * HOUR,
        baseline_throughput=50.0,
        realised_throughput=100.0,
        lost_seconds=90.0,
    )
    undone = entry(
        Outcome.ROLLED_BACK, NOW - HOUR / 2, action=Action.MOVE, started_at=NOW - HOUR / 2, lost_seconds=60.0
    )
    job = changed(
        running(
            made=spec(
                targets={"objective": "MinimizeTime"}, elasticity={"minChips": 2, "maxChips": 8, "batch": "Global"}
            )
        ),
        created_at=NOW - 5 * HOUR,
        account=Account(spent=12.5, chip_seconds=4e4),
        history=(move, undone),
        progress=JobProgress(done=700_000, revision=1, rate=100.0),
    )
    record = ended_job(ended(job, profile=ProfileStatus(samples_per_second=100.0, chip_busy=0.9)))
    assert record is not None
    assert [(stay.placement, stay.rate, stay.begin, stay.lost) for stay in record.stays] == [
        (THERE, 50.0, NOW - 5 * HOUR, 0.0),
        (FOUR, 100.0, NOW - 2 * HOUR, 150.0),
    ]
    assert (record.ended, record.work, record.spent, record.moves, record.restart) == (NOW, 700_000, 12.5, 1, 90.0)
    assert record.spec["elasticity"] == {"minChips": 2, "maxChips": 8, "batch": "Global"}
    assert record.spec["targets"] == {"objective": "MinimizeTime"}
    assert "template" not in record.line
    assert read_ended_jobs([record.line]) == ([record], [])


def test_a_job_that_runs_or_never_ran_has_no_record() -> None:
    job = running()
    assert ended_job(StoredJob(job, packed({}), 1, "1")) is None
    assert ended_job(ended(changed(job, revision=None))) is None
    assert ended_job(StoredJob(changed(job, finished="Completed"), packed({}), 1, "1")) is None, "no time of its end"


def test_a_long_record_goes_without_its_spec() -> None:
    pools = {"pools": {"allow": [f"{'p' * 55}-{number}" for number in range(64)]}}
    record = ended_job(ended(running(made=spec(placement=pools))))
    assert record is not None
    assert len(record.line) < LONGEST
    assert not record.spec


def test_each_job_is_recorded_once_and_one_write_a_minute_at_most_is_made() -> None:
    cluster = Cluster()
    kept, jobs, now = records(cluster), some(3), NOW
    for _ in range(120):
        now += 1.0
        kept.cycle(jobs, now)
    assert [record.job for record in stored(cluster)] == ["ns/job-0", "ns/job-1", "ns/job-2"]
    assert cluster.writes == 1
    jobs += some(2, first=3)
    now = run(kept, jobs, now, 5)
    assert len(stored(cluster)) == 5
    assert cluster.writes == 2
    run(kept, [], now, 5)
    assert len(stored(cluster)) == 5, "they outlive their jobs"
    assert cluster.writes == 2


def test_a_trial_is_no_job_of_its_own() -> None:
    cluster = Cluster()
    run(records(cluster), [ended(changed(running(name="job-t1"), on_trial=True))], NOW, 2)
    assert not stored(cluster)


def test_who_leads_next_goes_on_and_doubles_nothing() -> None:
    cluster = Cluster()
    run(records(cluster), some(3), NOW, 2)
    run(records(cluster), some(4), NOW, 2)
    assert [record.uid for record in stored(cluster)] == ["u0", "u1", "u2", "u3"]


def test_what_is_not_stored_yet_is_stored_at_the_end_of_the_process() -> None:
    cluster = Cluster()
    kept = records(cluster)
    now = run(kept, some(1), NOW)
    kept.cycle(some(2), now + 1.0)
    assert len(stored(cluster)) == 1
    kept.flush()
    assert len(stored(cluster)) == 2


def test_the_oldest_part_goes_and_its_jobs_are_not_recorded_again() -> None:
    cluster = Cluster()
    kept, now = records(cluster), NOW
    jobs: list[StoredJob] = []
    for number in range(PARTS + 1):
        jobs += some(1, number, NOW + number)
        now = run(kept, jobs, now)
        newest = kept._maps.kept
        assert newest is not None
        newest[max(newest)].value.size = PART_BYTES  # as if it were full
    now = run(kept, jobs, now, 3)
    assert [record.uid for record in stored(cluster)] == [f"u{number}" for number in range(1, PARTS + 1)]
    writes = cluster.writes
    run(kept, jobs, now, 5)
    assert cluster.writes == writes
    assert PART * PARTS == 10_000


def test_lines_and_parts_that_cant_be_read_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    run(records(cluster), some(2), NOW)
    (body,) = cluster.objects.values()
    lines = gzip.decompress(base64.b64decode(body["binaryData"][RECORDS])).decode().splitlines()
    lines.insert(1, '{"job": "no slash", "arrived": "2026-11-01T00:00:00Z"}')
    body["binaryData"][RECORDS] = base64.b64encode(gzip.compress("\n".join([*lines, "{"]).encode())).decode()
    found, bad = read_records(body)
    assert len(found) == 2
    assert [line.number for line in bad] == [2, 4]
    assert bad[0].why.startswith("job: ")
    run(records(cluster), some(3), NOW, 2)
    assert len(stored(cluster)) == 3
    (body,) = cluster.objects.values()
    body["binaryData"][RECORDS] = "AAAA"
    with pytest.raises(ValueError, match="no gzip"):
        read_records(body)
    run(records(cluster), some(1), NOW, 2)
    assert "begins anew" in caplog.text
    assert len(stored(cluster)) == 1


def test_an_api_server_that_is_down_costs_nothing_but_time() -> None:
    cluster = Cluster()
    kept = records(cluster)
    now = run(kept, some(1), NOW)
    cluster.down = True
    now = run(kept, some(2), now, 3)
    cluster.down = False
    run(kept, some(2), now, 3)
    assert len(stored(cluster)) == 2
