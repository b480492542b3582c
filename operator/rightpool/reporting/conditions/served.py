"""Profiled and TargetsMet of a server: what its requests and its record say."""

from __future__ import annotations

from functools import partial
from typing import Final

from rightpool.api.conditions import Reason
from rightpool.api.server import ServerWorkload
from rightpool.api.units import DAY
from rightpool.api.wording import how_many, moment, number, sentence, share, span
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.sizing import SHORTEST, Sizing
from rightpool.planning.jobs.time_limits import sized_limits, time_limits
from rightpool.planning.judge.traffic import FAILING
from rightpool.planning.offers.servers.refusal import LatencyNotHeld, TooSlowAlone
from rightpool.planning.offers.servers.sizing import LatencyTarget
from rightpool.profiles.answers import LONGEST_SECONDS, Answers, Late, PageProblem
from rightpool.profiles.served import RequestTime
from rightpool.reporting.conditions.context import Statement
from rightpool.reporting.server_status import answers_text

_PAGES: Final = {
    PageProblem.UNREACHABLE: (Reason.METRICS_UNREACHABLE, "no replica answers with its metrics"),
    PageProblem.UNREADABLE: (Reason.METRICS_UNREADABLE, "what replicas answer is no page of metrics"),
    PageProblem.NO_DIALECT: (Reason.DIALECT_UNKNOWN, "the metrics of replicas are those of no known server"),
    PageProblem.OTHER_DIALECT: (
        Reason.DIALECT_DIFFERS,
        "the metrics of replicas are of another server than the dialect says",
    ),
    PageProblem.STARTED_ANEW: (Reason.COUNTERS_RESET, "the replicas' counters were started anew"),
}

_WHAT: Final = {
    RequestTime.WHOLE: "requests",
    RequestTime.FIRST_TOKEN: "first tokens",
    RequestTime.BETWEEN_TOKENS: "next tokens",
}
# What meshes have beside any server, with edges of its own.
_PROXY_SERIES: Final = "istio_request_duration_milliseconds"
_FEWEST_FAILED: Final = 5.0  # requests of the last minutes: one of a few is no share


def served(job: Job, server: ServerWorkload) -> Statement:
    """Whether the requests are counted, and what of them is missing to keep a limit."""
    answers = job.observed.answers
    if server.metrics is None:
        remedy = "set workload.server.metrics to where a replica says what it does"
        return Statement("False", Reason.NO_TELEMETRY, f"no requests are counted: {remedy}")
    if answers is None:
        return Statement("False", Reason.WARMING_UP, "requests are counted between two readings of the metrics")
    if answers.requests_per_second is None and answers.problem is not None:
        reason, text = _PAGES[answers.problem]
        return Statement("False", reason, f"{text}: see workload.server.metrics")
    if answers.requests_per_second is None:
        return Statement("False", Reason.PARTIAL_TELEMETRY, "the server's metrics have no number of requests")
    return (
        _failing(answers)
        or _wanting(job, answers)
        or Statement("True", Reason.MEASURED, partial(answers_text, answers))
    )


def latency_met(job: Job) -> Statement | None:
    """Whether the targets of times hold, where some are declared and one does not."""
    answers, sizing, limits = job.observed.answers, job.observed.sizing, time_limits(job.spec.targets)
    lates = {time: None if answers is None else answers.late(time) for time in limits}
    for time, limit in limits.items():
        late, may = lates[time], 1.0 - limit.share
        if late is not None and late.share.low > may:
            text = f"{share(late.share.low)} of the {_WHAT[time]} take over {moment(late.limit)}, and {share(may)} may"
            return Statement("False", Reason.LATENCY_TARGET_MISSED, sentence(text, remedy=_remedy(job, time)))
    beyond = _beyond(job, sizing)
    unjudged = (_unjudged(job, time, lates[time], 1.0 - limit.share) for time, limit in limits.items())
    return beyond or next((one for one in unjudged if one is not None), None)


def size_text(job: Job) -> str:
    """How many replicas a server has, and why; empty where its record does not say."""
    sizing, ref = job.observed.sizing, job.state.revision
    if sizing is None or sizing.rate is None or sizing.peak is None or ref is None:
        return ""
    return (
        f"{how_many(ref.placement.replicas, 'replica')} for the week's {number(sizing.peak)} requests/s around this "
        f"time; each takes {number(sizing.rate)}"
    )


def _failing(answers: Answers) -> Statement | None:
    """Where more requests are answered with errors than may be: being ready says nothing of that, and few errors say
    nothing either."""
    ratio, most = answers.error_ratio, (answers.requests_per_second or 0.0) * LONGEST_SECONDS
    if ratio is None or ratio <= FAILING or ratio * most < _FEWEST_FAILED:
        return None
    return Statement("True", Reason.REQUESTS_FAIL, partial(_failing_text, answers))


def _failing_text(answers: Answers) -> str:
    many = f"{share(answers.error_ratio or 0.0)} of {number(answers.requests_per_second or 0.0)} requests/s"
    text = f"its ready replicas answer {many} with an error, and {share(FAILING)} may be"
    return sentence(text, remedy="look at its log, or take its last edit back")


def _wanting(job: Job, answers: Answers) -> Statement | None:
    """What is missing to keep a limit, where one is declared."""
    limits, sizing = sized_limits(job.spec.targets), job.observed.sizing
    for time, limit in limits.items():
        late = answers.late(time)
        if late is None and time is RequestTime.WHOLE and answers.mean_seconds is not None:
            return Statement("True", Reason.MEANS_ONLY, partial(_means, answers, limit.name))
        unresolved = None if late is None else _unresolved(late, 1.0 - limit.share)
        if unresolved is not None:
            return unresolved
    if sizing is None or not limits:
        return None
    if sizing.recorded < DAY:
        least = "replicas.min is kept to" if sizing.recorded < SHORTEST else "sizes are for what these had"
        text = f"{span(sizing.recorded)} of requests are recorded, and a day is needed to know one; {least}"
        return Statement("True", Reason.DEMAND_RECORD_SHORT, text)
    if sizing.silent:
        text = f"no request came in the {span(sizing.recorded)} on record: it has replicas.min, and nothing moves it"
        return Statement("True", Reason.NO_REQUESTS, text)
    if sizing.line is None:
        remedy = "choose the replicas by workload.server.replicas.min"
        return Statement(
            "True", Reason.BATCHES_UNSEEN, f"its metrics do not tell how long its batches or tokens take: {remedy}"
        )
    return None


def _means(answers: Answers, percentile: str) -> str:
    return (
        f"{number(answers.requests_per_second or 0.0)} requests/s, {moment(answers.mean_seconds or 0.0)} in the mean; "
        f"this server tells no distribution, so whether {percentile} holds is not seen"
    )


def _unresolved(late: Late, may: float) -> Statement | None:
    """Where the share of late requests is not known well enough to say whether so many are too many."""
    if late.share.exact or not late.share.low <= may < late.share.high:
        return None
    limit, below, above = moment(late.limit), late.below, late.above
    if below is not None and above is not None:
        where = f"between the edges {moment(below)} and {moment(above)}"
    elif above is not None:
        where = f"below the first edge {moment(above)}"
    elif below is not None:
        where = f"above the last edge {moment(below)}"
    else:
        where = "unseen, without edges"
    text = f"{limit} for {_WHAT[late.time]} is {where} of its histogram"
    series = _PROXY_SERIES if late.time is RequestTime.WHOLE else "a proxy's series"
    remedy = f"target an edge, or read {series} (dialect Histogram)"
    return Statement("True", Reason.LATENCY_UNRESOLVED, sentence(text, remedy=remedy))


def _remedy(job: Job, time: RequestTime) -> str:
    """What the user can do where too many are late."""
    server, ref = job.spec.workload.server, job.state.revision
    if time not in sized_limits(job.spec.targets):
        return f"raise replicas.min, or relax targets.{time}"
    if server is not None and server.scaled_elsewhere:
        return "have it scaled higher, or relax targets.latency"
    if server is not None and ref is not None and ref.placement.replicas < server.most:
        return "it gets more replicas as its record grows; raise replicas.min to have them now"
    return f"raise replicas.max, or relax targets.{time}"


def _beyond(job: Job, sizing: Sizing | None) -> Statement | None:
    """What the record says that it takes, where that is not to be had."""
    server, ref = job.spec.workload.server, job.state.revision
    if sizing is None or sizing.line is None or server is None or ref is None:
        return None
    if sizing.too_slow is not None:
        time = sizing.too_slow
        text = TooSlowAlone(sizing.alone[time], sizing.targets[time].seconds, time).text()
        return Statement("False", Reason.LATENCY_UNREACHABLE, text)
    needed = sizing.needed(ref.placement.replicas)
    if sizing.servable is not None and sizing.servable.at_least <= 0.0:
        text = LatencyNotHeld(sizing.servable.chance, LatencyTarget.of(sizing.targets).strictest).text()
        return Statement("False", Reason.LATENCY_UNREACHABLE, text)
    elsewhere = server.scaled_elsewhere
    most = ref.placement.replicas if elsewhere else server.most
    if needed is not None and sizing.peak is not None and needed > most:
        less = "are there: have it scaled higher" if elsewhere else "are allowed: raise replicas.max"
        text = (
            f"the week's {number(sizing.peak)} requests/s around this time take {how_many(needed, 'replica')}, and "
            f"{most} {less}"
        )
        return Statement("False", Reason.CAPACITY_BELOW_DEMAND, text)
    return None


def _unjudged(job: Job, time: RequestTime, late: Late | None, may: float) -> Statement | None:
    """Why it is not known whether the limit holds; None where it holds."""
    answers = job.observed.answers
    if answers is None or answers.requests_per_second is None:
        return Statement("Unknown", Reason.PROFILE_NEEDED, "its requests are not counted yet")
    if late is None and time is not RequestTime.WHOLE:
        text = f"its metrics have timed no {_WHAT[time]} in the last minutes"
        return Statement("Unknown", Reason.PROFILE_NEEDED, text)
    if late is None and answers.mean_seconds is None:
        return Statement("Unknown", Reason.PROFILE_NEEDED, "no request was timed in the last minutes")
    if late is None:
        return Statement(
            "Unknown", Reason.MEANS_ONLY, "its times have no distribution: targets.latency can't be judged"
        )
    unresolved = _unresolved(late, may)
    return None if unresolved is None else Statement("Unknown", Reason.LATENCY_UNRESOLVED, unresolved.message)
