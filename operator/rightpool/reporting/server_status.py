"""What a server answers, as the status and the condition Profiled say it."""

from __future__ import annotations

import math
from dataclasses import replace

from rightpool.api.latency import Latency
from rightpool.api.ledger import measured_cost_per_million
from rightpool.api.status import MAX_SIDES, PlaceSize, ServerStatus
from rightpool.api.units import HOUR
from rightpool.api.wording import moment, number, share
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.sizing import SURE_TO_HOLD, Servable, Sizing
from rightpool.profiles.answers import Answers


def server_status(job: Job) -> ServerStatus | None:
    """None where nothing of the requests is known."""
    answers, sized, migration = job.observed.answers, _sized(job), job.state.migration
    if answers is None or answers.requests_per_second is None:
        return sized
    late = None if answers.late is None else answers.late.share
    refs = (job.state.revision, None if migration is None else migration.target)
    hourly = next((ref.cost_per_hour for ref in refs if ref is not None and ref.revision == answers.revision), None)
    rate, p99 = answers.requests_per_second, answers.p99
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
        sides=tuple(_shown(sizing, ref.placement.pool)),
    )


def stored_sizing(job: Job, server: ServerStatus) -> Sizing | None:
    """What a status says of a server's size, as far as what it would be elsewhere hangs on it."""
    ref, latency = job.state.revision, job.spec.targets.latency
    if ref is None or latency is None or job.spec.workload.server is None:
        return None
    able = None
    if server.servable_at_least is not None and server.servable_at_most is not None:
        able = Servable(server.servable_at_least, server.servable_at_most, SURE_TO_HOLD)
    recorded = HOUR * (server.recorded_hours or 0.0)
    place = f"{ref.placement.pool}/{ref.placement.chips_per_replica}"
    week = server.week or ""
    return Sizing(latency.percentile, place, recorded, server.peak, week, servable=able, places=server.sides)


def _shown(sizing: Sizing, here: str) -> list[PlaceSize]:
    return sorted(sizing.places, key=lambda one: (one.pool != here, one.hours or math.inf, one.pool))[:MAX_SIDES]


def p99_text(server: ServerStatus) -> str | None:
    """Such as <=50 ms, or >5 s where the last edge of the histogram is too early; None where it is unknown."""
    if server.p99_at_most is not None:
        return f"<={moment(server.p99_at_most)}"
    return None if server.p99_at_least is None else f">{moment(server.p99_at_least)}"


def target_text(latency: Latency | None) -> str | None:
    """Such as p99 50 ms; None where nothing is declared."""
    return None if latency is None else f"{latency.percentile.name} {moment(latency.percentile.seconds)}"


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
