"""What a server answers, in its status and in Profiled."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from rightpool.api.latency import Latency
from rightpool.api.status import PlaceSize
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.sizing import Sizing
from rightpool.profiles.answers import Answers, PageProblem
from rightpool.profiles.latency import Between
from rightpool.profiles.sample import Quality
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.measured import profiled
from rightpool.reporting.server_status import p99_text, server_status
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import StoredJob, packed
from rightpool.reporting.verdicts import Verdicts, made_verdicts, stored_verdicts
from rightpool.reporting.write_policy import NUMBERS_SECONDS, WritePolicy
from tests.unit.planning.jobs import NOW, changed
from tests.unit.runtime.test_server_feed import SERVER

CONTEXT = Context(None, None, True, NOW)
BUSY = Answers(1, 20.0, 0.01, Between(0.05, 0.1), 0.03, Quality.DERIVED)


def answering(answers: Answers | None) -> Job:
    return changed(SERVER, observed=SERVER.observed._replace(answers=answers))


def statement_on(answers: Answers | None) -> tuple[str, str, str]:
    statement = profiled(answering(answers), CONTEXT)
    return statement.status, statement.reason, statement.text()


def body(answers: Answers | None) -> dict[str, Any]:
    job = answering(answers)
    stored = StoredJob(job, packed({}), None, "")
    return dict(draft_status(stored, job, CONTEXT).body)


def test_requests_times_and_dollars_of_a_million_are_told() -> None:
    few = replace(BUSY, error_ratio=0.001)
    assert statement_on(few) == ("True", "Measured", "20 requests/s, 99% take at most 100 ms, 0.1% failed")
    revision = SERVER.state.revision
    assert revision is not None and revision.cost_per_hour is not None
    status = body(BUSY)
    assert status["server"] == {
        "requestsPerSecond": "20",
        "errorRatio": "0.01",
        "p99AtLeast": "0.05",
        "p99AtMost": "0.1",
        "meanSeconds": "0.03",
        "costPerMillion": f"{revision.cost_per_hour / 3600 / 20 * 1e6:.3g}",
        "quality": "Derived",
    }
    assert (status["summary"]["requestsPerSecond"], status["summary"]["p99"]) == ("20", "<=100 ms")
    assert status["summary"]["perMillion"].endswith(" requests") and "target" not in status["summary"]


def test_what_was_asked_for_is_told_in_words() -> None:
    declared = SERVER.spec.targets.model_copy(update={"latency": Latency.model_validate({"p95": "50ms"})})
    job = changed(answering(BUSY), spec=SERVER.spec.model_copy(update={"targets": declared}))
    assert draft_status(StoredJob(job, packed({}), None, ""), job, CONTEXT).body["summary"]["target"] == "p95 50 ms"


def test_what_is_not_measured_is_absent() -> None:
    idle = server_status(answering(Answers(1, 0.0)))
    assert idle is not None
    assert idle.to_dict() == {"requestsPerSecond": "0"}
    assert server_status(answering(Answers(1, problem=PageProblem.NO_DIALECT))) is None
    assert "server" not in body(None)


def test_times_beyond_the_last_edge_and_means_alone() -> None:
    late = Answers(1, 20.0, None, Between(5.0, math.inf))
    status = server_status(answering(late))
    assert status is not None
    assert (p99_text(status.p99_at_least, status.p99_at_most), status.p99_at_most) == (">5 s", None)
    assert statement_on(late)[2] == "20 requests/s, 1% or more take over 5 s"
    means = Answers(1, 20.0, None, None, 0.012)
    assert statement_on(means)[2] == "20 requests/s, 12 ms in the mean; this server tells no distribution"


def test_why_no_requests_are_known() -> None:
    assert statement_on(None)[:2] == ("False", "WarmingUp")
    for problem in PageProblem:
        status, reason, text = statement_on(Answers(1, problem=problem))
        assert (status, reason) == ("False", problem.value)
        assert "see workload.server.metrics" in text
    assert statement_on(Answers(1))[2] == "the server's metrics have no number of requests"


def test_demand_that_varies_writes_no_status_at_once() -> None:
    policy, now = WritePolicy(), 1000.0
    stored = body(BUSY)
    doubled = body(Answers(1, 40.0, 0.01, Between(0.05, 0.1), 0.03, Quality.DERIVED))
    assert policy.wait("u", stored, stored, {}, now) is None
    assert policy.wait("u", stored, doubled, {}, now + 10.0) == NUMBERS_SECONDS - 10.0
    unknown = body(Answers(1, problem=PageProblem.UNREACHABLE))
    assert policy.wait("u", stored, unknown, {}, now + 20.0) == 0.0, "Profiled says why nothing is known"


def test_a_pool_where_its_batches_were_timed_is_worth_a_write_and_once() -> None:
    """As after a trial, of which the decision then speaks."""

    def sized(measured: bool) -> Job:
        place = PlaceSize("a10g", 0.01, 0.001, 1.0, 4.0, 8.0, 0.1, 1.0, measured=measured, servable=90.0, replicas=1)
        sizing = Sizing({}, "a100/1", 7200.0, 20.0, places=(place,))
        return changed(answering(BUSY), sizing=sizing)

    def written(job: Job) -> Verdicts:
        return stored_verdicts(dict(draft_status(StoredJob(job, packed({}), None, ""), job, CONTEXT).body))

    before, after = sized(False), sized(True)
    assert written(before).timed == made_verdicts(before, CONTEXT).timed == frozenset()
    assert written(after).timed == made_verdicts(after, CONTEXT).timed == {"a10g"}
    assert made_verdicts(after, CONTEXT).print != made_verdicts(before, CONTEXT).print
