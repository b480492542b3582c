"""A server with a target: what its status says of its size, and what Profiled and TargetsMet do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.choices import Autoscaler
from rightpool.api.latency import Percentile
from rightpool.api.targets import Targets
from rightpool.api.wording import MESSAGE
from rightpool.contract import ANNOTATION_LOAD
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.sizing import Servable, Sizing
from rightpool.prediction.server import LoadLine
from rightpool.profiles.answers import Answers, Late, PageProblem
from rightpool.profiles.latency import Between
from rightpool.profiles.sample import Quality
from rightpool.profiles.served import RequestTime
from rightpool.reporting.conditions.context import Context, Statement
from rightpool.reporting.conditions.measured import efficient, profiled
from rightpool.reporting.conditions.placed import placed
from rightpool.reporting.conditions.targets import targets_met
from rightpool.reporting.server_status import server_status
from tests.unit.planning.jobs import NOW, changed, running, spec
from tests.unit.planning.test_server_floor import KNOWN, targeted
from tests.unit.reporting.test_only_watched_status import by_exporters

CONTEXT = Context(None, None, True, NOW)
KEPT = Late(0.08, Between(0.002, 0.002), 0.08, 0.08)
ANSWERS = Answers(1, 900.0, 0.0, Between(0.05, 0.08), 0.03, Quality.MEASURED)


def answering(
    sizing: Sizing | None = KNOWN, now: int = 4, most: int = 8, late: Late | None = KEPT, **answers: Any
) -> Job:
    lates = () if late is None else (late,)
    return changed(targeted(sizing, now=now, most=most), answers=replace(ANSWERS, lates=lates, **answers))


def statement_text(statement: Statement) -> tuple[str, str, str]:
    text = statement.text()
    assert len(text) <= MESSAGE, text
    return statement.status, statement.reason, text


def late(low: float, high: float | None = None, below: float | None = 0.05, above: float | None = 0.1) -> Late:
    return Late(0.08, Between(low, low if high is None else high), below, above)


def test_all_is_well() -> None:
    assert statement_text(profiled(answering(), CONTEXT))[:2] == ("True", "Measured")
    assert statement_text(targets_met(answering(), CONTEXT)) == (
        "True",
        "TargetsHold",
        "4 replicas for the week's 1000 requests/s around this time; each takes 300",
    )


def test_it_waits_for_no_profile() -> None:
    text = "a server has no training steps to profile: see TargetsMet"
    assert statement_text(efficient(changed(answering(), profile=None), CONTEXT)) == ("Unknown", "ProfileNeeded", text)


def test_the_status_says_how_many_and_why() -> None:
    status = server_status(answering(late=late(0.002, 0.02)))
    assert status is not None
    found = status.to_dict()
    assert {name: found[name] for name in ("lateAtLeast", "lateAtMost", "peak", "recordedHours", "needed", "week")} == {
        "lateAtLeast": "0.002",
        "lateAtMost": "0.02",
        "peak": "1000",
        "recordedHours": "168",
        "needed": 4,
        "week": "▁█",
    }
    assert (found["servableAtLeast"], found["servableAtMost"]) == ("300", "400")


def test_the_size_is_told_before_anything_is_answered() -> None:
    status = server_status(changed(targeted(KNOWN, now=4), answers=None))
    assert status is not None
    assert (status.needed, status.requests_per_second) == (4, None)
    assert server_status(changed(targeted(None), answers=None)) is None


FIRST = Late(0.5, Between(0.03, 0.03), 0.5, 0.5, RequestTime.FIRST_TOKEN)
TOKENS = {"timeToFirstToken": {"p99": "500ms"}, "interTokenLatency": {"p95": "40ms"}}


def making_tokens(*lates: Late) -> Job:
    """A server that makes tokens, without a limit of the whole request."""
    job = answering()
    made = job.spec.model_copy(update={"targets": Targets.model_validate(TOKENS)})
    return changed(
        replace(job, spec=made),
        answers=replace(ANSWERS, lates=lates, tokens_per_second=640.0, first_token=Between(0.5, 0.75)),
    )


def test_first_tokens_that_come_late_miss_the_target_and_unseen_ones_are_unknown() -> None:
    assert statement_text(targets_met(making_tokens(FIRST), CONTEXT)) == (
        "False",
        "LatencyTargetMissed",
        "3% of the first tokens take over 500 ms, and 1% may: it gets more replicas as its record grows; raise "
        "replicas.min to have them now",
    )
    kept = replace(FIRST, share=Between(0.0, 0.0))
    assert statement_text(targets_met(making_tokens(kept), CONTEXT)) == (
        "Unknown",
        "ProfileNeeded",
        "its metrics have timed no next tokens in the last minutes",
    )
    after = replace(kept, limit=0.04, time=RequestTime.BETWEEN_TOKENS)
    assert statement_text(targets_met(making_tokens(kept, after), CONTEXT))[:2] == ("True", "TargetsHold")
    unseen = replace(after, share=Between(0.01, 0.2), below=0.025, above=0.05)
    assert statement_text(targets_met(making_tokens(kept, unseen), CONTEXT))[:2] == ("Unknown", "LatencyUnresolved")


def test_the_status_says_what_tokens_it_makes() -> None:
    job = making_tokens()
    status = server_status(job)
    assert status is not None and status.tokens is not None
    assert status.tokens.to_dict() == {
        "perSecond": "640",
        "costPerMillion": "6.94",
        "firstAtLeast": "0.5",
        "firstAtMost": "0.75",
    }
    assert "99% of first tokens come within 750 ms, 640 tokens/s" in statement_text(profiled(job, CONTEXT))[2]


def test_too_many_are_late() -> None:
    assert statement_text(targets_met(answering(late=late(0.031)), CONTEXT)) == (
        "False",
        "LatencyTargetMissed",
        "3.1% of the requests take over 80 ms, and 1% may: it gets more replicas as its record grows; raise "
        "replicas.min to have them now",
    )
    full = statement_text(targets_met(answering(now=8, late=late(0.031)), CONTEXT))
    assert full[2].endswith(": raise replicas.max, or relax targets.latency")


def test_edges_around_the_limit_leave_it_open() -> None:
    job = answering(late=late(0.004, 0.05))
    expected = (
        "LatencyUnresolved",
        "80 ms for requests is between the edges 50 ms and 100 ms of its histogram: target an edge, or read "
        "istio_request_duration_milliseconds (dialect Histogram)",
    )
    assert statement_text(profiled(job, CONTEXT)) == ("True", *expected)
    assert statement_text(targets_met(job, CONTEXT)) == ("Unknown", *expected)


@pytest.mark.parametrize(
    ("below", "above", "where"),
    [
        (None, 0.5, "below the first edge 500 ms of its histogram"),
        (0.05, None, "above the last edge 50 ms of its histogram"),
        (None, None, "unseen, without edges of its histogram"),
    ],
)
def test_a_limit_outside_the_edges_is_unseen(below: float | None, above: float | None, where: str) -> None:
    job = answering(late=late(0.0, 1.0, below, above))
    status, reason, text = statement_text(targets_met(job, CONTEXT))
    assert (status, reason) == ("Unknown", "LatencyUnresolved")
    assert text.startswith(f"80 ms for requests is {where}: ") and len(text) <= 160
    assert text.endswith("or read istio_request_duration_milliseconds (dialect Histogram)")


@pytest.mark.parametrize(
    ("problem", "reason", "what"),
    [
        (PageProblem.UNREACHABLE, "MetricsUnreachable", "no replica answers"),
        (PageProblem.UNREADABLE, "MetricsUnreadable", "no page of metrics"),
        (PageProblem.NO_DIALECT, "DialectUnknown", "of no known server"),
        (PageProblem.OTHER_DIALECT, "DialectDiffers", "of another server"),
        (PageProblem.STARTED_ANEW, "CountersReset", "counters were started anew"),
    ],
)
def test_a_page_that_tells_nothing(problem: PageProblem, reason: str, what: str) -> None:
    """Such as after an update of the image."""
    assert len(PageProblem) == 5
    job = answering(late=None, requests_per_second=None, problem=problem)
    status, why, text = statement_text(profiled(job, CONTEXT))
    assert (status, why) == ("False", reason)
    assert what in text and text.endswith(": see workload.server.metrics")
    assert statement_text(targets_met(job, CONTEXT))[:2] == ("Unknown", "ProfileNeeded")


def test_a_ready_replica_that_answers_with_errors() -> None:
    assert statement_text(profiled(answering(error_ratio=0.5), CONTEXT)) == (
        "True",
        "RequestsFail",
        "its ready replicas answer 50% of 900 requests/s with an error, and 0.1% may be: look at its log, or take its "
        "last edit back",
    )
    assert statement_text(profiled(answering(error_ratio=0.0005), CONTEXT))[1] == "Measured"
    one_of_six = answering(error_ratio=1 / 6, requests_per_second=0.02)
    assert statement_text(profiled(one_of_six, CONTEXT))[1] == "Measured"


def test_a_server_that_nobody_asks() -> None:
    silent = replace(KNOWN, peak=0.0, week="▁▁·▁", line=None, servable=None)
    job = answering(silent, late=None, mean_seconds=None, p99=None, requests_per_second=0.0)
    assert statement_text(profiled(job, CONTEXT)) == (
        "True",
        "NoRequests",
        "no request came in the 7.0 days on record: it has replicas.min, and nothing moves it",
    )


@pytest.mark.parametrize(
    ("found", "status"),
    [(late(0.001, 0.009), "True"), (late(0.011, 0.3), "False"), (late(0.0, 0.3, None, 0.5), "Unknown")],
    ids=["few at worst", "many at best", "no edge below"],
)
def test_an_interval_decides_where_both_its_ends_agree(found: Late, status: str) -> None:
    assert statement_text(targets_met(answering(late=found), CONTEXT))[0] == status


def test_means_alone_say_nothing_of_a_percentile() -> None:
    job = answering(late=None, p99=None)
    assert statement_text(profiled(job, CONTEXT)) == (
        "True",
        "MeansOnly",
        "900 requests/s, 30 ms in the mean; this server tells no distribution, so whether p99 holds is not seen",
    )
    assert statement_text(targets_met(job, CONTEXT))[:2] == ("Unknown", "MeansOnly")


@pytest.mark.parametrize(
    ("recorded", "words"),
    [(600.0, "10 min of requests are recorded"), (20_000.0, "5.6 h of requests are recorded")],
    ids=["minutes", "hours"],
)
def test_a_short_record_is_said(recorded: float, words: str) -> None:
    status, reason, text = statement_text(profiled(answering(replace(KNOWN, recorded=recorded)), CONTEXT))
    assert (status, reason) == ("True", "DemandRecordShort")
    assert text.startswith(words)


def test_a_server_that_does_not_tell_its_batches() -> None:
    job = answering(replace(KNOWN, line=None, servable=None))
    assert statement_text(profiled(job, CONTEXT))[:2] == ("True", "BatchesUnseen")
    assert statement_text(targets_met(job, CONTEXT))[:2] == ("True", "TargetsHold")


def test_a_peak_beyond_what_is_allowed() -> None:
    assert statement_text(targets_met(answering(replace(KNOWN, peak=3000.0), now=8), CONTEXT)) == (
        "False",
        "CapacityBelowDemand",
        "the week's 3000 requests/s around this time take 10 replicas, and 8 are allowed: raise replicas.max",
    )


def test_who_scales_it_is_asked_for_more() -> None:
    job = answering(replace(KNOWN, peak=3000.0), now=8)
    server = job.spec.workload.server
    assert server is not None
    by_others = server.model_copy(update={"autoscaler": Autoscaler.EXTERNAL})
    made = job.spec.model_copy(update={"workload": job.spec.workload.model_copy(update={"server": by_others})})
    text = statement_text(targets_met(replace(job, spec=made), CONTEXT))
    assert text[:2] == ("False", "CapacityBelowDemand")
    assert text[2].endswith("take 10 replicas, and 8 are there: have it scaled higher")
    placed_text = statement_text(placed(replace(job, spec=made), CONTEXT))[2]
    assert placed_text.endswith("; 8 replicas, as somebody else scales it")


def test_a_limit_that_nobody_can_hold() -> None:
    slow = replace(KNOWN, targets={RequestTime.WHOLE: Percentile("p99", 0.99, 0.005)}, servable=Servable(0.0, 0.0, 0.0))
    assert statement_text(targets_met(answering(slow), CONTEXT)) == (
        "False",
        "LatencyUnreachable",
        "one request by itself takes 11 ms there, and the limit is 5 ms: no number of replicas holds it",
    )
    vague = replace(KNOWN, servable=Servable(0.0, 0.0, 0.4), line=LoadLine(0.01, 0.001, (1.0, 1.0, 0.0), 2.0, 2.0))
    assert statement_text(targets_met(answering(vague), CONTEXT))[:2] == ("False", "LatencyUnreachable")


def test_nothing_is_known_yet() -> None:
    assert statement_text(targets_met(targeted(None), CONTEXT))[:2] == ("Unknown", "ProfileNeeded")
    idle = answering(requests_per_second=0.0, late=None, mean_seconds=None, p99=None)
    assert statement_text(targets_met(idle, CONTEXT))[:2] == ("Unknown", "ProfileNeeded")


def test_of_the_trial_of_a_server_nobody_is_asked_for_training_steps() -> None:
    template = {"metadata": {"annotations": {ANNOTATION_LOAD: "{}"}}, "spec": {"containers": [{"name": "server"}]}}
    workload = {"job": {"chipsPerReplica": 4, "replicas": 1, "template": template}}
    trial = by_exporters(running(made=spec(workload=workload, elasticity={})))
    status, reason, text = statement_text(profiled(trial, CONTEXT))
    assert (status, reason) == ("False", "PartialTelemetry")
    assert text.startswith("the trial of a server has no training steps")
