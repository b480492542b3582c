"""What a server answers, as the status and the condition Profiled say it."""

from __future__ import annotations

import math
from dataclasses import replace

from rightpool.api.ledger import measured_cost_per_million
from rightpool.api.status import ServerStatus
from rightpool.api.units import HOUR
from rightpool.api.wording import moment, number, share
from rightpool.planning.jobs.job import Job
from rightpool.profiles.answers import Answers


def server_status(job: Job) -> ServerStatus | None:
    """None where nothing of the requests is known."""
    answers, revision, sized = job.observed.answers, job.state.revision, _sized(job)
    if answers is None or answers.requests_per_second is None:
        return sized
    late = None if answers.late is None else answers.late.share
    known = revision is not None and revision.revision == answers.revision
    hourly, rate, p99 = revision.cost_per_hour if revision and known else None, answers.requests_per_second, answers.p99
    return replace(
        sized or ServerStatus(),
        late_at_least=None if late is None else late.low,
        late_at_most=None if late is None or late.exact else late.high,
        requests_per_second=rate,
        error_ratio=answers.error_ratio,
        p99_at_least=None if p99 is None else p99.low,
        p99_at_most=None if p99 is None or math.isinf(p99.high) else p99.high,
        mean_seconds=answers.mean_seconds,
        cost_per_million=measured_cost_per_million(rate, hourly) if rate > 0.0 else None,
        quality=None if answers.quality is None else answers.quality.value,
    )


def _sized(job: Job) -> ServerStatus | None:
    """What the record says of its size; None where it says nothing."""
    sizing, ref = job.observed.sizing, job.state.revision
    if sizing is None or ref is None:
        return None
    able = sizing.servable if sizing.servable is not None and sizing.servable.at_least > 0.0 else None
    return ServerStatus(
        peak=sizing.peak,
        recorded_hours=math.floor(sizing.recorded / HOUR),
        week=sizing.week or None,
        servable_at_least=None if able is None else able.at_least,
        servable_at_most=None if able is None else able.at_most,
        needed=sizing.needed(ref.placement.replicas),
    )


def p99_text(server: ServerStatus) -> str | None:
    """Such as <=50 ms, or >5 s where the last edge of the histogram is too early; None where it is unknown."""
    if server.p99_at_most is not None:
        return f"<={moment(server.p99_at_most)}"
    return None if server.p99_at_least is None else f">{moment(server.p99_at_least)}"


def answers_text(answers: Answers) -> str:
    """In a condition: how many requests, how late, and how many failed."""
    parts = [f"{number(answers.requests_per_second or 0.0)} requests/s"]
    if answers.p99 is not None and math.isinf(answers.p99.high):
        parts.append(f"1% or more take over {moment(answers.p99.low)}")
    elif answers.p99 is not None:
        parts.append(f"99% take at most {moment(answers.p99.high)}")
    elif answers.mean_seconds is not None:
        parts.append(f"{moment(answers.mean_seconds)} in the mean; this server tells no distribution")
    if answers.error_ratio is not None:
        parts.append(f"{share(answers.error_ratio)} failed")
    return ", ".join(parts)
