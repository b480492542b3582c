"""The stored books: loaded by who begins to lead, written rarely, and right after any crash."""

from __future__ import annotations

import math
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.ledger import Outcome
from rightpool.api.program_edit import EditVerdict, ProgramEdit
from rightpool.api.progress import JobProgress
from rightpool.api.status import ProfiledJobStatus
from rightpool.api.traits import ModelTraits
from rightpool.api.work_unit import WorkUnit
from rightpool.cluster.errors import AlreadyExists, Conflict, NotFound, Unavailable
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.profiles.answers import Answers
from rightpool.profiles.latency import Between
from rightpool.profiles.profile import Reading
from rightpool.profiles.sample import Field, Quality
from rightpool.reporting.chargeback_object import read_books
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.pool_costs_object import read_pool_costs
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import StoredJob, packed
from rightpool.runtime.act.chargeback_books import (
    BOOK_SECONDS,
    LONGEST_SECONDS,
    SAVE_SECONDS,
    SAVES_AT_ONCE,
    ChargebackBooks,
)
from rightpool.runtime.metrics import ChargebackFigures
from tests.unit.planning.jobs import NOW, changed, entry, judged, running, spec
from tests.unit.planning.world import complete_profile
from tests.unit.prediction.fixtures import A100

SPENT = "rightpool_chargeback_spent_dollars"


class Cluster:
    """Holds ConfigMaps, and does what it is told at once."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.writes = 0
        self.down = False
        self.gone: set[str] = set()

    def get(self, _: Any, name: str, namespace: str) -> dict[str, Any]:
        """A ProfiledJob. All are there that are not gone."""
        if name in self.gone:
            raise NotFound("gone")
        return {"metadata": {"name": name, "namespace": namespace}}

    def delete(self, _: Any, name: str, namespace: str, *, resource_version: str) -> None:
        assert namespace == "rightpool-system"
        assert self.objects.pop(name)["metadata"]["resourceVersion"] == resource_version

    def list_all(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        if self.down:
            raise Unavailable("down")
        return list(self.objects.values())

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def create(self, _: Any, body: dict[str, Any]) -> dict[str, Any]:
        if body["metadata"]["name"] in self.objects:
            raise AlreadyExists("exists")
        return self._put(body)

    def replace(self, _: Any, body: dict[str, Any]) -> dict[str, Any]:
        stored = self.objects[body["metadata"]["name"]]
        if stored["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            raise Conflict("newer")
        return self._put(body)

    def _put(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.down:
            raise Unavailable("down")
        self.version += 1
        self.writes += 1
        about = {**body["metadata"], "resourceVersion": str(self.version)}
        self.objects[about["name"]] = {**body, "metadata": about}
        return self.objects[about["name"]]


class Leader:
    """A fence that lets everything pass."""

    def leader(self) -> None:
        """It is."""


class Operator:
    """One process that leads."""

    def __init__(self, cluster: Cluster) -> None:
        self.figures = ChargebackFigures(lambda: True)
        self.books = ChargebackBooks(cluster, Leader(), self.figures, "rightpool-system")  # type: ignore[arg-type]

    def run(self, jobs: dict[JobKey, Job], now: float, minutes: int = 1) -> float:
        for _ in range(minutes):
            now += BOOK_SECONDS
            self.cycle(jobs, now)
        return now

    def cycle(self, jobs: dict[JobKey, Job], now: float) -> None:
        stored = {key: StoredJob(job, packed({}), 1, "1", team="vision") for key, job in jobs.items()}
        self.books.cycle(stored, {}, {}, now)

    @property
    def charged(self) -> float:
        assert self.figures.charged is not None
        return sum(self.figures.charged[SPENT].values())


def fleet(*spent: float) -> dict[JobKey, Job]:
    jobs = [changed(running(name=f"job-{number}"), account=Account(spent=each)) for number, each in enumerate(spent)]
    return {job.key: job for job in jobs}


def teams(count: int, spent: float) -> dict[JobKey, Job]:
    """A job in each of so many namespaces."""
    jobs = [changed(running(name="job"), account=Account(spent=spent)) for _ in range(count)]
    made = [replace(job, key=JobKey(f"team-{number}", "job"), uid=f"u{number}") for number, job in enumerate(jobs)]
    return {job.key: job for job in made}


def test_what_was_charged_outlives_the_jobs_and_the_operator() -> None:
    cluster = Cluster()
    first = Operator(cluster)
    now = first.run(fleet(10.0, 20.0), NOW, 2)
    assert first.charged == 30.0
    now = first.run({}, now, 20)
    assert first.charged == 30.0
    second = Operator(cluster)
    second.run(fleet(), now)
    assert second.charged == 30.0
    pages = {metric.name: metric for metric in second.figures.collect()}
    (sample,) = pages[SPENT].samples
    assert sample.name == f"{SPENT}_total"
    assert sample.labels == {"job_namespace": "ns", "team": "vision", "pool": "a100", "capacity": "OnDemand"}


def test_what_a_deleted_job_has_used_and_its_moves_are_found_by_its_name() -> None:
    cluster = Cluster()
    first = Operator(cluster)
    (key, job), *_ = fleet(10.0).items()
    now = first.run({key: job}, NOW, 2)
    moved = changed(job, account=Account(spent=12.0), history=(entry(Outcome.VERIFIED, now, action=Action.MOVE),))
    now = first.run({key: moved}, now)
    now = first.run({}, now)
    (body,) = cluster.objects.values()
    books = read_books(body)
    assert {name: charge.spent for name, charge in books.jobs.totals().items()} == {"job-0": 12.0}
    assert [(move.job, move.entry.outcome) for move in books.moves] == [("job-0", Outcome.VERIFIED)]


def test_moves_of_deleted_jobs_are_told_also_after_a_restart_and_by_the_leader_alone() -> None:
    cluster = Cluster()
    first = Operator(cluster)
    (key, job), *_ = fleet(10.0).items()
    moved = changed(job, history=(entry(Outcome.VERIFIED, NOW, action=Action.MOVE),))
    now = first.run({key: moved}, NOW, 2)
    assert first.books.deleted_moves == (), "it is there"
    now = first.run({}, now)
    second = Operator(cluster)
    assert second.books.deleted_moves == (), "the books are not read yet"
    second.run({}, now)
    for operator in (first, second):
        assert [move.job for move in operator.books.deleted_moves] == ["job-0"]
    first.books.follow()
    assert first.books.deleted_moves == ()


def test_a_crash_between_two_writes_loses_and_doubles_nothing() -> None:
    cluster = Cluster()
    first = Operator(cluster)
    now = first.run(fleet(10.0), NOW, 30)
    now = first.run(fleet(11.0), now)  # booked, and perhaps not written
    second = Operator(cluster)
    second.run(fleet(12.0), now)
    assert second.charged == 12.0


def test_writes_are_few() -> None:
    cluster = Cluster()
    operator, now = Operator(cluster), NOW
    for minute in range(600):
        now = operator.run(fleet(float(minute)), now)
    assert cluster.writes == 600 * BOOK_SECONDS // SAVE_SECONDS
    before = cluster.writes
    operator.run(fleet(600.0), now, 600)
    assert cluster.writes <= before + 1, "nothing is written while nothing is spent"


@pytest.mark.parametrize(("namespaces", "a_minute"), [(50, 1), (100, 2)])
def test_the_books_of_many_namespaces_take_turns(namespaces: int, a_minute: int) -> None:
    cluster = Cluster()
    operator, now, minute = Operator(cluster), NOW, 0
    while cluster.writes < namespaces:
        minute += 1
        now = operator.run(teams(namespaces, float(minute)), now)
    assert minute <= namespaces / SAVES_AT_ONCE + 1, "each is stored when it is new"
    now = operator.run(teams(namespaces, float(minute)), now, int(SAVE_SECONDS / BOOK_SECONDS))
    for _ in range(int(LONGEST_SECONDS / BOOK_SECONDS)):
        minute, before = minute + 1, cluster.writes
        now = operator.run(teams(namespaces, float(minute)), now)
        assert cluster.writes <= before + a_minute
    stored = [sum(charge.spent for charge in read_books(body).totals().values()) for body in cluster.objects.values()]
    assert min(stored) > minute - LONGEST_SECONDS / BOOK_SECONDS, "each within an hour"


def test_each_namespace_is_booked_once_a_minute_and_not_all_of_them_in_the_same_cycle() -> None:
    cluster, cycles, namespaces = Cluster(), 6, 60
    operator = Operator(cluster)
    now, booked = operator.run(teams(namespaces, 1.0), NOW), list[int]()
    operator.books.flush()
    for number in range(2 * cycles):
        now, before = now + BOOK_SECONDS / cycles, cluster.writes
        operator.cycle(teams(namespaces, 2.0 + number), now)
        operator.books.flush()  # writes what was booked
        booked.append(cluster.writes - before)
    assert sum(booked) == 2 * namespaces and booked[:cycles] == booked[cycles:]
    assert max(booked) < namespaces / 3


def test_what_a_deleted_job_has_spent_does_not_wait_for_what_is_done_once_a_minute() -> None:
    cluster = Cluster()
    operator = Operator(cluster)
    now = operator.run(fleet(10.0, 20.0), NOW, 2)
    before = cluster.writes
    for number in range(1, 6):
        operator.cycle(fleet(11.0), now + number * BOOK_SECONDS / 6)
    assert cluster.writes == before + 1
    (body,) = cluster.objects.values()
    assert sum(charge.spent for charge in read_books(body).totals().values()) == 31.0


def test_what_a_deleted_job_has_spent_is_stored_at_once() -> None:
    cluster = Cluster()
    operator = Operator(cluster)
    now = operator.run(fleet(10.0, 20.0), NOW)
    now = operator.run(fleet(11.0, 21.0), now)
    before = cluster.writes
    now = operator.run(fleet(11.0), now)
    assert cluster.writes == before + 1
    (body,) = cluster.objects.values()
    assert sum(charge.spent for charge in read_books(body).totals().values()) == 32.0
    operator.run(fleet(12.0), now)
    assert cluster.writes == before + 1


def test_what_a_deleted_job_has_spent_is_tried_again_each_minute_until_it_is_stored() -> None:
    cluster = Cluster()
    operator = Operator(cluster)
    now = operator.run(fleet(10.0, 20.0), NOW)
    now = operator.run(fleet(11.0, 21.0), now)
    cluster.down = True
    now = operator.run(fleet(11.0), now, 3)
    cluster.down = False
    operator.run(fleet(11.0), now, 2)
    (body,) = cluster.objects.values()
    assert sum(charge.spent for charge in read_books(body).totals().values()) == 32.0


def test_another_writer_is_believed() -> None:
    cluster = Cluster()
    first, second = Operator(cluster), Operator(cluster)
    now = first.run(fleet(10.0), NOW, 2)
    second.run(fleet(15.0), now, 20)
    now = first.run(fleet(20.0), now, 60)
    assert first.charged == 20.0
    (body,) = cluster.objects.values()
    assert sum(charge.spent for charge in read_books(body).totals().values()) == 20.0


def test_without_stored_books_nothing_is_said() -> None:
    cluster = Cluster()
    cluster.down = True
    operator = Operator(cluster)
    now = operator.run(fleet(10.0), NOW)
    assert list(operator.figures.collect()) == []
    cluster.down = False
    operator.run(fleet(10.0), now)
    assert operator.charged == 10.0


def test_books_that_cannot_be_read_are_not_written_over() -> None:
    cluster = Cluster()
    operator = Operator(cluster)
    now = operator.run(fleet(10.0), NOW, 2)
    (name,) = cluster.objects
    cluster.objects[name] = {**cluster.objects[name], "data": {"chargeback.csv": "nonsense"}}
    writes = cluster.writes
    Operator(cluster).run(fleet(20.0), now, 60)
    assert cluster.writes == writes


def test_what_is_not_stored_at_the_end_is_stored_then() -> None:
    cluster = Cluster()
    operator = Operator(cluster)
    now = operator.run(fleet(10.0), NOW, 2)
    operator.run(fleet(13.0), now)
    operator.books.flush()
    (body,) = cluster.objects.values()
    assert sum(charge.spent for charge in read_books(body).totals().values()) == 13.0


@pytest.mark.parametrize("ratio", [0.5, None], ids=["slower", "a server that fails"])
@pytest.mark.parametrize("judged", ["h", "another", ""])
def test_what_an_edit_has_brought_is_shown_once_it_was_judged(judged: str, ratio: float | None) -> None:
    job = running(rate=1000.0)
    assert job.state.revision is not None
    edit = ProgramEdit("h0", judged=judged, verdict=EditVerdict.REGRESSED, ratio=ratio)
    job = changed(job, account=Account(spent=5.0), edit=edit)
    operator = Operator(Cluster())
    stored = StoredJob(changed(job, profile=None), packed({}), 1, "1", team="vision")
    operator.books.cycle({job.key: stored}, {job.key: job}, {}, NOW)
    shown = {name: of.get(("ns", "job", "vision")) for name, of in operator.figures.jobs.items()}
    assert shown.get("rightpool_job_regression_ratio") == (ratio if judged == "h" else None)
    assert shown.get("rightpool_job_regressed") == (1.0 if judged == "h" else None)
    ended = changed(job, finished="Completed")
    operator.books.cycle({job.key: replace(stored, job=ended)}, {}, {}, NOW + 60.0)
    assert ("ns", "job", "vision") in operator.figures.jobs["rightpool_job_spent_dollars"]
    assert not any("regress" in name for name in operator.figures.jobs), "nothing is to be done of a job that has ended"


@pytest.mark.parametrize("chips", [0.0, 7200.0])
def test_goodput_is_told_where_chips_were_held(chips: float) -> None:
    operator = Operator(Cluster())
    (job,) = fleet(5.0).values()
    job = changed(job, account=replace(job.state.account, chip_seconds=chips))
    operator.run({job.key: job}, NOW)
    shown = operator.figures.jobs.get("rightpool_job_goodput_ratio", {})
    assert (("ns", "job-0", "vision") in shown) is (chips > 0.0)


@pytest.mark.parametrize(("unit", "name"), [(WorkUnit.SAMPLES, "sample"), (WorkUnit.STEPS, "step")])
def test_energy_is_of_what_is_counted(unit: WorkUnit, name: str) -> None:
    operator = Operator(Cluster())
    measured = replace(complete_profile(1, 1000.0, NOW, unit=unit), chips=4)
    power = Reading(300.0, 300.0, 300.0, Quality.MEASURED)
    measured = replace(measured, readings={**measured.readings, Field.POWER: power})
    job = changed(running(measured=measured), account=Account(spent=5.0))
    stored = StoredJob(changed(job, profile=None), packed({}), 1, "1", team="vision")
    operator.books.cycle({job.key: stored}, {job.key: job}, {}, NOW)
    found = {
        kind: operator.figures.jobs.get(f"rightpool_job_joules_per_{kind}", {}).get(("ns", "job", "vision"))
        for kind in ("sample", "step")
    }
    assert found == {"sample": None, "step": None, name: pytest.approx(300.0 * 4 / 1000.0)}


@pytest.mark.parametrize(("most", "p99"), [(0.05, 0.05), (math.inf, None)])
def test_requests_of_a_server_are_exported(most: float, p99: float | None) -> None:
    """What its page does not tell is absent, and so is what no edge bounds."""
    operator, job = Operator(Cluster()), running()
    job = changed(job, observed=job.observed._replace(answers=Answers(1, 20.0, p99=Between(0.025, most))))
    operator.books.cycle({job.key: StoredJob(job, packed({}), 1, "1")}, {job.key: job}, {}, NOW)
    found = {
        name: next(iter(operator.figures.jobs.get(f"rightpool_job_{name}", {}).values()), None)
        for name in ("requests_per_second", "request_error_ratio", "request_mean_seconds", "request_p99_seconds")
    }
    assert list(found.values()) == [20.0, None, None, p99]


def test_efficiencies_are_those_of_the_status() -> None:
    """One computation, told in two places."""
    operator = Operator(Cluster())
    made = spec(progress={"flopsPerSample": "3.12e11"})
    job = running(made=made, ratios={"power": 300.0})
    assert job.observed.profile is not None
    job = changed(
        job,
        profile=replace(job.observed.profile, traits=ModelTraits(precision="bf16")),
        account=Account(spent=5.0, chip_seconds=7200.0),
        progress=JobProgress(done=900_000, useful_seconds=3600.0, rated=900_000, since=NOW, revision=1, rate=1000.0),
    )
    stored = StoredJob(changed(job, profile=None), packed({}), 1, "1", team="vision")
    assessment = judged(job)
    operator.books.cycle({job.key: stored}, {job.key: job}, {job.key: assessment}, NOW)
    status = ProfiledJobStatus.from_dict(draft_status(stored, job, Context(assessment, None, True, NOW)).body)
    shown = {
        name: operator.figures.jobs[f"rightpool_job_{name}"]["ns", "job", "vision"]
        for name in ("scaling_efficiency_ratio", "model_flops_utilization_ratio", "goodput_ratio", "joules_per_sample")
    }
    profile = status.profile
    assert profile is not None and shown["model_flops_utilization_ratio"] == pytest.approx(0.25)
    assert shown["goodput_ratio"] == pytest.approx(0.5) and shown["joules_per_sample"] == pytest.approx(1.2)
    assert shown == {
        "scaling_efficiency_ratio": pytest.approx(profile.scaling_efficiency, abs=0.005),
        "model_flops_utilization_ratio": pytest.approx(profile.model_flops_utilization, abs=0.005),
        "goodput_ratio": pytest.approx(status.state.account.goodput, abs=0.005),
        "joules_per_sample": pytest.approx(profile.joules_per_sample, rel=0.005),
    }


def test_what_pools_cost_outlives_the_process() -> None:
    cluster = Cluster()
    pools = [replace(A100, total=16, free=4)]
    first = Operator(cluster)
    for minute in range(12):
        first.books.cycle({}, {}, {}, NOW + minute * BOOK_SECONDS, pools)
    assert cluster.writes == 1, "every ten minutes"
    second = Operator(cluster)
    for minute in range(12, 24):
        second.books.cycle({}, {}, {}, NOW + minute * BOOK_SECONDS, pools)
    second.books.flush()
    (body,) = cluster.objects.values()
    costs = read_pool_costs(body)
    assert sum(one.cost for one in costs.rows.values()) == pytest.approx(16 * 4.0 * 23 / 60, rel=1e-5), (
        "once each minute"
    )
    assert sum(one.idle for one in costs.rows.values()) == pytest.approx(4 * 4.0 * 23 / 60, rel=1e-5)
