"""Surge: how a server is handed over. The target runs and answers before what is left is ended.

What a user wants is carried out once all of the target is ready. A move is judged on the way: the target gets so many
replicas that much slower ones than promised would keep the limit, too, and more as the requests that it answers show
that it does, then all requests, while what is left runs on for a while. Going back is a shift of requests: what is left
is whole all the time.

    Planned → Surging → Sharing (more replicas, step by step) → Holding → Verified
                            └──────────────┴─────────────────────┴──▶ RolledBack
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import takewhile
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.latency import Percentile
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.books.served import moved_server, realised_requests
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.jobs.time_limits import time_limits
from rightpool.planning.judge.traffic import (
    FAILING,
    SURE_TO_FAIL,
    Answered,
    BatchTimes,
    TrafficBlock,
    TrafficComparison,
    TrafficVerdict,
    judge_traffic,
)
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.moves.ending import avoid_seconds, end_migration, with_avoided, with_phase
from rightpool.planning.moves.handover import Handover
from rightpool.planning.moves.server_edits import server_before, with_server_edit
from rightpool.planning.moves.setback import (
    MetricsUnread,
    NothingAnswered,
    NotRunning,
    Setback,
    StaysCold,
    StoppedAnswering,
)
from rightpool.planning.moves.shares import SLOWEST, first_share, next_percent, next_share, up_for
from rightpool.planning.moves.traffic_texts import traffic_text
from rightpool.planning.offers.targets.registry import yardstick_of
from rightpool.planning.work.server import HELD_WINDOWS
from rightpool.profiles.loads import batch_of
from rightpool.profiles.served import RequestCounter, RequestTime, ServedWindow

LONGEST_SURGE_SECONDS: Final = 1800.0
"""How long a target may keep chips without answering."""
LONGEST_JUDGED_SECONDS: Final = 86_400.0
"""How long requests are waited for that show whether a move keeps the limit."""
LONGEST_UNREAD_SECONDS: Final = 300.0
"""How long requests are shared with a target whose metrics are not read, while those of what is left are."""
_NOTHING: Final = Answered(0.0, 0.0, 0.0, 0.0)
_EARLY: Final = 1.0  # seconds by which a reading may be dated before the write that it follows


class Surge(Handover):
    """Both Revisions are there until the new one answers."""

    phases = frozenset({Phase.SURGING, Phase.SHARING, Phase.HOLDING})

    def begin(self, job: Job, migration: Migration, now: float, *, save: bool = True) -> Job:
        """The target is made: the first of its replicas where it is judged, else all, and where others scale it."""
        server = job.spec.workload.server
        if server is None or not _is_judged(job, migration):
            # Kept, since another operator that carries it on has measured nothing.
            migration = replace(migration, edit=server_before(job, migration.source))
            return with_phase(job, migration, Phase.SURGING, now)
        # Where weights can't be written, a move that is demanded shares requests by endpoints.
        if server.traffic.http_route is not None and job.observed.route_problem is None:
            return with_phase(job, _weighed(job, migration, next_percent(0)), Phase.SURGING, now)
        if not server.scaled_elsewhere:
            new, old = migration.target.placement.replicas, migration.source.placement.replicas
            migration = replace(migration, up=first_share(new, old, _spare(migration)))
        return with_phase(job, migration, Phase.SURGING, now)

    def step(self, job: Job, migration: Migration, edited: bool, taken: bool, now: float) -> Job:
        """A step further, or back. An edit that does not start waits for the next one."""
        if edited or job.spec.suspend:
            return end_migration(job, migration, Outcome.SUPERSEDED, Reason.SUPERSEDED, now)
        state, judges = job.revision(migration.target.revision), _is_judged(job, migration)
        there = state.all_running(_up(migration).placement.replicas)
        if migration.phase is not Phase.SURGING and state.running == 0:
            text = StoppedAnswering(state.failure or state.why_not_running).text()
            return _back(job, migration, Reason.ERRORS_ROSE, text, now)
        unusable = job.observed.route_problem if migration.share else None
        if unusable is not None and migration.phase is not Phase.SURGING:
            return _back(job, migration, Reason.ROUTE_UNUSABLE, unusable, now)
        if migration.phase is Phase.HOLDING:
            return _judging(job, migration, now)  # a replica that starts anew is no reason to go back
        if not there:
            return _waiting(job, migration, now)
        if migration.phase is Phase.SHARING:
            return _judging(job, migration, now)
        migration = replace(migration, target=replace(migration.target, since=now), running_at=now)
        return with_phase(job, migration, Phase.SHARING, now) if judges else _arrived(job, migration, now)

    def saves(self, migration: Migration) -> bool:
        """Never."""
        return False

    def there(self, current: Revision, migration: Migration | None) -> tuple[Revision, ...]:
        """Both, until the new one is to answer alone."""
        if migration is None or migration.phase not in self.phases or migration.given_up:
            return (current,)
        return current, _up(migration)

    def answering(self, current: Revision, migration: Migration | None) -> tuple[Revision, ...]:
        """Both while requests are shared, the new one alone after that; by weights what is left, until it is ended."""
        if migration is not None and migration.share:
            return (current,)
        if migration is not None and migration.phase is Phase.SHARING:
            return current, migration.target
        return (current if migration is None or migration.phase is not Phase.HOLDING else migration.target,)

    def weighed(self, migration: Migration | None) -> tuple[Revision, int] | None:
        """None before it is ready, its share while requests are shared, all after that."""
        if migration is None or not migration.share or migration.phase not in self.phases:
            return None
        percent = {Phase.SHARING: migration.share, Phase.HOLDING: 100}.get(migration.phase, 0)
        return migration.target, percent


def _up(migration: Migration) -> Revision:
    """The target with the replicas that are to be there by now."""
    target, up = migration.target, migration.up
    return target if up in (0, target.placement.replicas) else target.with_replicas(up)


def _spare(migration: Migration) -> float:
    """Times as long as promised that batches may take; what nothing is promised of has room for none."""
    return SLOWEST if migration.batches is None else migration.batches.spare


def _weighed(job: Job, migration: Migration, percent: int | None) -> Migration:
    """With this share of the requests by weight, and the replicas that it takes. percent: None for all of them."""
    server, whole = job.spec.workload.server, migration.target.placement.replicas
    scaled_elsewhere = server is not None and server.scaled_elsewhere
    if percent is None:
        return replace(migration, up=0)
    return replace(migration, share=percent, up=0 if scaled_elsewhere else up_for(percent, whole, _spare(migration)))


def _is_judged(job: Job, migration: Migration) -> bool:
    """What counts no requests is not."""
    server = job.spec.workload.server
    return migration.promises and server is not None and server.metrics is not None


def _waiting(job: Job, migration: Migration, now: float) -> Job:
    """Replicas of the target are not there."""
    target, state = migration.target, job.revision(migration.target.revision)
    if migration.given_up or (now - migration.phase_since <= LONGEST_SURGE_SECONDS and not state.cold):
        return job
    reason, setback = _stuck(state)
    text = setback.text()
    if migration.action is Action.UPDATE:  # it waits for the next edit, and holds no chips meanwhile
        failed = replace(migration, failure=reason, failure_message=text, message=text)
        return with_phase(job, failed, Phase.SURGING, now)
    if migration.phase is not Phase.SURGING:
        return _back(job, migration, reason, text, now)
    seconds = avoid_seconds(job, migration)
    job = with_avoided(job, target, reason, now, decision=migration.id, seconds=seconds)
    return end_migration(job, replace(migration, message=text), Outcome.FAILED, reason, now)


def _stuck(state: RevisionState) -> tuple[Reason, Setback]:
    if state.cold:
        return Reason.WARM_UP_FAILED, StaysCold(state.blocked)
    return Reason.START_DEADLINE_EXCEEDED, NotRunning(LONGEST_SURGE_SECONDS, state.why_not_running, None)


def _batches(job: Job, migration: Migration) -> BatchTimes | None:
    """What batches at the target took since this step began; None where nothing was promised of them."""
    promise = migration.batches
    if promise is None:
        return None
    timed = (batch_of(mine) for mine, _ in job.observed.sides if mine is not None)
    longer = [took / (promise.fixed + promise.each * load) for load, took in timed if took is not None]
    logs = [math.log(ratio) for ratio in longer if ratio > 0.0]
    return BatchTimes(logs, promise.spare)


def _judging(job: Job, migration: Migration, now: float) -> Job:
    """What requests say that both sides have answered since this step began."""
    if not migration.demanded and _unread_seconds(job) > LONGEST_UNREAD_SECONDS:
        text = MetricsUnread(LONGEST_UNREAD_SECONDS).text()
        return _back(job, migration, Reason.METRICS_UNREACHABLE, text, now)
    ignored = 0.0 if migration.demanded else _ignored(job, migration)
    if ignored and now - migration.phase_since > LONGEST_UNREAD_SECONDS:
        return _back(job, migration, Reason.ERRORS_ROSE, NothingAnswered(ignored).text(), now)
    batches = _batches(job, migration)
    limits: dict[RequestTime, Percentile | None] = {**time_limits(job.spec.targets)}
    nears = migration.reason is Reason.BETTER_TARGET_UNREACHABLE
    if nears:  # no place keeps them: its batches say whether it is faster
        limits = {RequestTime.WHOLE: None}
    elif not limits or yardstick_of(migration.reason) is Yardstick.NONE:
        limits, batches = {RequestTime.WHOLE: None}, None
    # The worst of all times decides.
    found, time = min(
        ((_compared(job, migration, one, limit, batches), one) for one, limit in limits.items()),
        key=lambda judged: judged[0].severity,
    )
    text = traffic_text(found, limits[time], batches, time)
    migration = (
        replace(migration, message=text) if any(sides.new or sides.old for sides in job.observed.sides) else migration
    )
    if found.verdict.undoes:
        failing = found.verdict is TrafficVerdict.FAILING
        return _back(job, migration, Reason.ERRORS_ROSE if failing else Reason.TOO_LATE, text, now)
    held = found.verdict is TrafficVerdict.HELD
    if migration.phase is Phase.SHARING:
        return _sharing(job, migration, found, held, now)
    if now - migration.phase_since < HELD_WINDOWS * job.spec.profiling.window.total_seconds():
        return job
    if held or found.likely:
        shown = Reason.DELIVERED if nears else Reason.LATENCY_HELD
        reason = shown if held else Reason.TOO_FEW_REQUESTS
        return _arrived(job, migration, now, Outcome.VERIFIED, reason)
    return _back(job, migration, Reason.TOO_LATE, text, now)


def _sharing(job: Job, migration: Migration, found: TrafficComparison, held: bool, now: float) -> Job:
    """More replicas of the target, and at the end all requests."""
    longest = LONGEST_SURGE_SECONDS if migration.demanded else LONGEST_JUDGED_SECONDS
    waited = now - (migration.running_at or migration.phase_since)
    if not held and waited <= longest:
        return job
    if not held and not found.likely:
        return _back(job, migration, Reason.TOO_LATE, migration.message, now)
    if migration.share:
        percent = next_percent(migration.share)
        phase = Phase.HOLDING if percent is None else Phase.SHARING
        return with_phase(job, _weighed(job, migration, percent), phase, now)
    whole = migration.target.placement.replicas
    up = next_share(migration.up or whole, whole, migration.source.placement.replicas)
    if up is None:
        return with_phase(job, replace(migration, up=0), Phase.HOLDING, now)
    return with_phase(job, replace(migration, up=up), Phase.SHARING, now)


def _arrived(
    job: Job,
    migration: Migration,
    now: float,
    outcome: Outcome = Outcome.CARRIED_OUT,
    reason: Reason | None = None,
) -> Job:
    """What is left is ended."""
    job = with_server_edit(job, migration)
    if outcome is Outcome.VERIFIED:
        migration = replace(migration, realised=realised_requests(job, migration))
        job = moved_server(job, migration, now)
    else:
        job = job.with_state(replace(job.state, revision=migration.target))
    return end_migration(job, migration, outcome, reason or migration.reason, now)


def _back(job: Job, migration: Migration, reason: Reason, text: str, now: float) -> Job:
    """All requests go where they came from, whose replicas are all there, and the target is ended."""
    migration = replace(migration, failure=reason, failure_message=text)
    return end_migration(job, migration, Outcome.ROLLED_BACK, reason, now)


def _compared(
    job: Job, migration: Migration, time: RequestTime, limit: Percentile | None, batches: BatchTimes | None
) -> TrafficComparison:
    """What one time says. limit: None where only failures count."""
    blocks = _blocks(job, migration, time, math.inf if limit is None else limit.seconds)
    return judge_traffic(blocks, None if limit is None else 1.0 - limit.share, FAILING, batches)


def _blocks(job: Job, migration: Migration, time: RequestTime, limit: float) -> list[TrafficBlock]:
    """Of this step."""
    since = migration.phase_since - _EARLY
    holding = migration.phase is Phase.HOLDING
    found = (
        tuple(_answered(one, limit, time) if one and one.at - one.seconds >= since else None for one in sides)
        for sides in job.observed.sides
    )
    return [
        TrafficBlock(new or _NOTHING, None if holding else old)
        for new, old in found
        if new is not None or (old is not None and not holding)
    ]


def _unread_seconds(job: Job) -> float:
    """For how long what is left has answered requests, up to now, and nothing was read of the target."""
    alone = takewhile(lambda sides: sides.new is None, reversed(job.observed.sides))
    return math.fsum(old.seconds for _, old in alone if old is not None and old.requests_per_second)


def _ignored(job: Job, migration: Migration) -> float:
    """Requests that what is left has answered since this step began, where so many can't all have come to it alone: the
    target has answered none. 0 otherwise."""
    if migration.phase is not Phase.SHARING or all(sides.new is None for sides in job.observed.sides):
        return 0.0
    counted = RequestCounter.REQUESTS
    new, old = (
        math.fsum(one.counts.counters.get(counted, 0.0) for one in side if one is not None)
        for side in ([sides.new for sides in job.observed.sides], [sides.old for sides in job.observed.sides])
    )
    there, here = _up(migration).placement.replicas, migration.source.placement.replicas
    stay = 1.0 - migration.share / 100.0 if migration.share else here / (here + there)
    return old if new <= 0.0 and stay**old < SURE_TO_FAIL else 0.0


def _answered(window: ServedWindow | None, limit: float, time: RequestTime) -> Answered | None:
    """None where requests were not counted. What no histogram tells may be late, all of it. Tokens count as one for
    each request: those of a request are late together."""
    requests = None if window is None else window.counts.counters.get(RequestCounter.REQUESTS)
    if window is None or requests is None:
        return None
    late, failed = window.late(limit, time), window.error_ratio or 0.0
    low, high = (0.0, 1.0) if late is None else late
    return Answered(requests, low * requests, (high - low) * requests, failed * requests)
