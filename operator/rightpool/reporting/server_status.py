"""What a server answers, as the status and the condition Profiled say it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from rightpool.api.ledger import measured_cost_per_million
from rightpool.api.status import MAX_SIDES, PlaceSize, ServerStatus, TokenStatus
from rightpool.api.targets import Targets
from rightpool.api.units import HOUR
from rightpool.api.wording import moment, number, share
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.sizing import SURE_TO_HOLD, Servable, Sizing
from rightpool.planning.jobs.time_limits import sized_limits, time_limits
from rightpool.profiles.answers import Answers
from rightpool.profiles.latency import Between
from rightpool.profiles.served import RequestTime

_OF: Final = {RequestTime.WHOLE: "", RequestTime.FIRST_TOKEN: "first token ", RequestTime.BETWEEN_TOKENS: "next token "}


def server_status(job: Job) -> ServerStatus | None:
    """None where nothing of the requests is known."""
    answers, sized, migration = job.observed.answers, _sized(job), job.state.migration
    if answers is None or answers.requests_per_second is None:
        return sized
    beyond = answers.late()
    late = None if beyond is None else beyond.share
    refs = (job.state.revision, None if migration is None else migration.target)
    hourly = next((ref.cost_per_hour for ref in refs if ref is not None and ref.revision == answers.revision), None)
    rate, p99 = answers.requests_per_second, answers.p99
    return replace(
        sized or ServerStatus(),
        late_at_least=None if late is None else late.low,
        late_at_most=None if late is None or late.exact else late.high,
        requests_per_second=rate,
        error_ratio=answers.error_ratio,
        p99_at_least=_ends(p99)[0],
        p99_at_most=_ends(p99)[1],
        mean_seconds=answers.mean_seconds,
        cost_per_million=measured_cost_per_million(rate, hourly) if rate > 0.0 else None,
        quality=None if answers.quality is None else answers.quality.value,
        tokens=_tokens(answers, hourly),
    )


def _tokens(answers: Answers, hourly: float | None) -> TokenStatus | None:
    rate, first, after = answers.tokens_per_second, answers.first_token, answers.between_tokens
    if rate is None and first is None and after is None:
        return None
    return TokenStatus(rate, measured_cost_per_million(rate, hourly) if rate else None, *_ends(first), *_ends(after))


def _ends(seconds: Between | None) -> tuple[float | None, float | None]:
    """At least and at most; None where that is not known."""
    return (None, None) if seconds is None else (seconds.low, None if math.isinf(seconds.high) else seconds.high)


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
        sides=tuple(shown_sides(sizing, ref.placement.pool)),
    )


def stored_sizing(job: Job, server: ServerStatus) -> Sizing | None:
    """What a status says of a server's size, as far as what it would be elsewhere hangs on it."""
    ref, limits = job.state.revision, sized_limits(job.spec.targets)
    if ref is None or not limits or job.spec.workload.server is None:
        return None
    able = None
    if server.servable_at_least is not None and server.servable_at_most is not None:
        able = Servable(server.servable_at_least, server.servable_at_most, SURE_TO_HOLD)
    recorded = HOUR * (server.recorded_hours or 0.0)
    place = f"{ref.placement.pool}/{ref.placement.chips_per_replica}"
    week = server.week or ""
    return Sizing(limits, place, recorded, server.peak, week, servable=able, places=server.sides)


def shown_sides(sizing: Sizing, here: str) -> list[PlaceSize]:
    """Of what it would be elsewhere, as many as a status has. here: the pool where it is."""
    return sorted(sizing.places, key=lambda one: (one.pool != here, one.hours or math.inf, one.pool))[:MAX_SIDES]


def p99_text(least: float | None, most: float | None) -> str | None:
    """Such as <=50 ms, or >5 s where the last edge of the histogram is too early; None where it is unknown."""
    if most is not None:
        return f"<={moment(most)}"
    return None if least is None else f">{moment(least)}"


def target_text(targets: Targets) -> str | None:
    """Such as p99 50 ms, or first token p99 500 ms; None where nothing is declared."""
    texts = (f"{_OF[time]}{one.name} {moment(one.seconds)}" for time, one in time_limits(targets).items())
    return next(texts, None)


def answers_text(answers: Answers) -> str:
    """In a condition: how many requests, how late, and how many failed."""
    parts = [f"{number(answers.requests_per_second or 0.0)} requests/s"]
    if answers.p99 is not None and math.isinf(answers.p99.high):
        parts.append(f"1% or more take over {moment(answers.p99.low)}")
    elif answers.p99 is not None:
        parts.append(f"99% take at most {moment(answers.p99.high)}")
    elif answers.mean_seconds is not None:
        parts.append(f"{moment(answers.mean_seconds)} in the mean; this server tells no distribution")
    if answers.first_token is not None and not math.isinf(answers.first_token.high):
        parts.append(f"99% of first tokens come within {moment(answers.first_token.high)}")
    if answers.tokens_per_second is not None:
        parts.append(f"{number(answers.tokens_per_second)} tokens/s")
    if answers.error_ratio is not None:
        parts.append(f"{share(answers.error_ratio)} failed")
    return ", ".join(parts)
