"""The books of a job: they follow what is seen and what is decided. Nothing is written unless something has changed.

Spent is what was held, or kept for an edit, at its price. Saved is what the same work would have cost where the job was
before its moves, less what was spent; see `counterfactual`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, Protocol

from rightpool.api.account import Account
from rightpool.api.altered import altered
from rightpool.api.counterfactual import Counterfactual
from rightpool.api.interruption import FAILED_PROGRAM, TAKEN, Interruption
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.recovery import Recovery
from rightpool.api.revision import Revision
from rightpool.api.units import HOUR
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.books.counterfactual import (
    READINGS,
    Speed,
    counterfactual_of_move,
    drift_of,
    level_after,
    level_before,
    nearby_speed,
    part_of_start,
    speed,
    taken_since,
)
from rightpool.planning.books.holding import holding, kept_for_edit
from rightpool.planning.books.served import served_elsewhere
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.work.outlook import patience
from rightpool.planning.work.progress import progress_at_end, progress_of
from rightpool.planning.work.registry import work_of
from rightpool.planning.work.work import Activity
from rightpool.profiles.track import Track

# Where no step was counted for so long, an interruption ends too, seconds: nothing counts them.
UNSEEN_SECONDS: Final = 1800.0
# Kubernetes lets pods that it takes away run on for no longer than this, seconds.
_LONGEST_GRACE: Final = 900.0
# Phases of a migration in which pods are to be there.
_AT_WORK: Final = frozenset(set(Phase) - {Phase.DRAINING, Phase.STARTING})
# What is stored has six digits.
_SAME: Final = 2e-5


class Prices(Protocol):
    """What placements cost today, and what has become of where the job is."""

    def price(self, placement: Placement) -> float | None:
        """Dollars an hour; None where that can't be known."""

    def useful(self, placement: Placement) -> float:
        """Share of the time there that interruptions leave."""

    @property
    def crowded(self) -> bool:
        """Whether its pool is known to leave less of a rate than is predicted, as it is used now."""

    @property
    def faded(self) -> float | None:
        """The job's rate ÷ what it would be, were its pool as it was at its verdict; None where that is not known."""


# --- each cycle ------------------------------------------------------------------------------------------------------


def accounted(job: Job, prices: Prices | None, policy: PlacementPolicySpec, now: float) -> Job:
    """The job with its meter at what is held and at today's prices; the very same object where nothing changes."""
    if job.state.revision is None or job.state.finished is not None:
        return job
    crowded = prices is not None and prices.crowded
    job = _caught_up(_disrupted(_priced(job, prices, now), now), now)
    return _metered(_measured_again(job, now, crowded=crowded), policy, now)


def _priced(job: Job, prices: Prices | None, now: float) -> Job:
    """Today's prices, where the job is, where it is about to go, and where it would be. A price that can't be known now
    stays; so do those of a migration that has left: its verdict is about what the place does, and what prices do
    meanwhile needs no measuring. It is the next decision's.
    """
    revision, account = job.state.revision, job.state.account
    if prices is None or revision is None:
        return job
    state, migration = job.state, job.state.migration
    here = _at_price(revision, prices)
    if here is not revision:
        state = replace(state, revision=here)
    if migration is not None and migration.stopped_at is None:
        source, target = _at_price(migration.source, prices), _at_price(migration.target, prices)
        if source is not migration.source or target is not migration.target:
            state = replace(state, migration=replace(migration, source=source, target=target))
    there = account.counterfactual
    if there is not None:
        price = prices.price(there.placement)
        # There, too, it would be interrupted, and pay for that.
        price = None if price is None else price / prices.useful(there.placement)
        if price is not None and not _same_as_stored(price, there.cost_per_hour):
            there = replace(there, cost_per_hour=price)
        if prices.faded is not None and not _same_as_stored(prices.faded, there.faded):
            account = _with_faded(job, account, there, prices.faded, now)
        elif there is not account.counterfactual:
            account = replace(account, counterfactual=there)
        if account is not state.account:
            state = replace(state, account=account)
    return job if state is job.state else job.with_state(state)


def _with_faded(job: Job, account: Account, there: Counterfactual, faded: float, now: float) -> Account:
    """Its pool has made this of the job's rate. That is seen by the mean of its newest windows, which is behind by half
    of them: so long it was as it is known to be now."""
    account = replace(account, counterfactual=there).settled(now)
    counted, variation = account.counterfactual, job.observed.variation
    assert counted is not None
    windows = 0 if variation is None else len(variation.recent)
    late = windows * job.spec.profiling.window.total_seconds() / 2.0 / HOUR
    now_faded = replace(counted, faded=faded)
    less = taken_since(job, now_faded) / taken_since(job, counted)
    missed = max(counted.per_hour * (less - 1.0) * late, -counted.dollars)
    saved = 0.0 if counted.speed is None else missed / counted.speed
    counted = replace(now_faded, dollars=counted.dollars + missed)
    return replace(account, counterfactual=counted, saved=account.saved + saved)


def _at_price(revision: Revision, prices: Prices) -> Revision:
    """At what it costs today; the very same object where that is unchanged."""
    price = prices.price(revision.placement)
    if price is None or _same_as_stored(price, revision.cost_per_hour):
        return revision
    return replace(revision, cost_per_hour=price)


def _disrupted(job: Job, now: float) -> Job:
    """Pods were taken away and not all are there again, or the program has failed: the job is interrupted, where it is
    to run on."""
    state, child, revision = job.state, job.child, job.state.revision
    if revision is None or revision.since is None or child is None:
        return job
    migration = state.migration
    leaves = migration is not None and migration.phase not in _AT_WORK
    ended = child.deleting or child.failed or child.succeeded or not child.exists
    if state.interruption is not None or leaves or job.stops or ended:
        return job
    known = revision.created_at if state.recovery is None else state.recovery.disrupted_at
    if not known < _disrupted_at(child) or now - _disrupted_at(child) > _LONGEST_GRACE:
        return job
    failed = child.crash is not None and child.crash.at > max(known, child.disrupted_at or 0.0)
    if not failed and child.all_running(revision.placement.replicas):
        return job  # for as long as they may run on
    track, account = job.observed.track, state.account.settled(now)
    repeats = 0 if track is None else round(track.since_save())
    unit = WorkUnit.SAMPLES if track is None else track.unit
    interruption = Interruption(FAILED_PROGRAM if failed else TAKEN, now, account.spent, repeats, unit)
    return job.with_state(replace(state, account=account, interruption=interruption))


def _disrupted_at(child: RevisionState) -> float:
    """When pods of it were last taken away or failed, Unix seconds; 0 where none ever was."""
    return max(child.disrupted_at or 0.0, 0.0 if child.crash is None else child.crash.at)


def _recovered(job: Job, interruption: Interruption, now: float) -> Job:
    """What no decision brought about ends when a whole gang of pods has counted what no save held, or runs where
    nothing is counted."""
    revision, child, track = job.state.revision, job.child, job.observed.track
    if revision is None or child is None:
        return job
    counts = track is not None and track.counter is not None and track.unit is interruption.unit
    if counts and track is not None:
        over = track.newest is not None and track.newest > interruption.since
        over = over and (track.counter or 0.0) >= max(interruption.repeats, 1)
    else:
        over = child.all_running(revision.placement.replicas)
    if not over:
        return job
    account = job.state.account.settled(now)
    paid, seconds = account.spent - interruption.spent_before, max(now - interruption.since, 0.0)
    if revision.cost_per_hour:  # else nothing tells how long no chips were held
        seconds = min(seconds, paid / revision.cost_per_hour * HOUR)
    recovery = Recovery(_disrupted_at(child), seconds)
    return job.with_state(replace(job.state, account=account, interruption=None, recovery=recovery))


def _caught_up(job: Job, now: float) -> Job:
    """An interruption ends when the steps of the new Revision have caught up."""
    interruption, revision, migration = job.state.interruption, job.state.revision, job.state.migration
    if interruption is None or revision is None or revision.since is None:
        return job
    if interruption.unplanned:
        return _recovered(job, interruption, now)
    if migration is not None and migration.rolling_back and migration.moving.revision == revision.revision:
        return job  # what it does while it is left again is none of that
    track = job.observed.track
    at: float | None = revision.since
    if track is not None:
        # How much was to be repeated says nothing of a count in another unit.
        repeats = interruption.repeats if track.unit is interruption.unit else 0
        at = track.reached(max(repeats, 1))
        unseen = now - revision.since >= patience(job, UNSEEN_SECONDS) and not _counts(track, now)
        if at is None and unseen and not _may_hang(job):
            at = now - UNSEEN_SECONDS if track.total else revision.since  # what came after that is not known
    if at is None:
        return job
    lost = max(min(at, now) - interruption.since, 0.0)  # another operator's clock may have been ahead
    account = job.state.account.settled(now)
    cost = account.spent - interruption.spent_before
    # What was paid since it ended is none of its cost.
    after = min((account.cost_per_hour or 0.0) * (now - interruption.since - lost) / 3600.0, cost)
    cost, given_back = cost - after, 0.0 if interruption.demanded else after
    account = replace(account, saved=account.saved + given_back)
    state = replace(job.state, interruption=None, account=account.moved(interruption.counterfactual, now))
    migration = state.migration
    if migration is not None and migration.id == interruption.id:
        migration = replace(migration, lost_seconds=migration.lost_seconds + lost, cost=migration.cost + cost)
        return job.with_state(replace(state, migration=migration))
    history = tuple(
        replace(entry, lost_seconds=entry.lost_seconds + lost, cost=entry.cost + cost)
        if entry.id == interruption.id
        else entry
        for entry in state.history
    )
    return job.with_state(replace(state, history=history))


def _may_hang(job: Job) -> bool:
    """Whether a program shows no step where it was moved to, and its verdict will tell whether it hangs."""
    migration, profile = job.state.migration, job.observed.profile
    return migration is not None and work_of(job.spec).activity(migration, profile) is Activity.NO_STEP


def _counts(track: Track, now: float) -> bool:
    """Whether anything may have been counted lately."""
    since = now - UNSEEN_SECONDS
    before = track.count(since)
    return track.total > before if before is not None else track.began is not None and track.began > since


def _measured_again(job: Job, now: float, *, crowded: bool) -> Job:
    """What is saved is corrected when more is known of the rate here. crowded: whether others have shown, too, that its
    pool does not keep what was promised; what has been lost since the verdict is known without that."""
    there = job.state.account.counterfactual
    if there is None or there.since is None or job.state.migration is not None:
        return job
    if there.readings >= len(READINGS) or now - there.since < READINGS[there.readings]:
        return job
    return remeasured(job, now, refuted=crowded and there.faded == 1.0)


def _metered(job: Job, policy: PlacementPolicySpec, now: float) -> Job:
    """The meter at what is held, and kept for an edit."""
    state, held, kept = job.state, holding(job), kept_for_edit(job, policy, now)
    account, there = state.account, state.account.counterfactual
    per_hour, saving = 0.0, 0.0
    revision, interruption = state.revision, state.interruption
    if interruption is not None:
        # At home it would be interrupted, too.
        free = interruption.demanded or (interruption.unplanned and there is None)
        saving = 0.0 if free else -(held.cost_per_hour or 0.0)
        compared = not free
    elif held.cost_per_hour is not None and (elsewhere := served_elsewhere(job)) is not None:
        compared, per_hour, saving = False, elsewhere, elsewhere - held.cost_per_hour
    elif there is None or revision is None or held.cost_per_hour is None or there.cost_per_hour is None:
        compared = False  # at home, or nothing to compare with
    else:
        compared = True
        per_hour = there.cost_per_hour * min(1.0, held.chips / revision.placement.chips)
        per_hour *= taken_since(job, there)
        saving = 0.0 if there.speed is None else per_hour / there.speed - held.cost_per_hour
    if compared and there is not None:
        # There the edit would wait, too: its chips are on both sides.
        per_hour += (kept.cost_per_hour or 0.0) * (there.speed or 1.0)
    chips, cost = held.chips + kept.chips, held.cost_per_hour if held.chips else 0.0
    cost = None if not chips or cost is None or kept.cost_per_hour is None else cost + kept.cost_per_hour
    same = (
        account.chips == chips
        and (account.since is None) == (chips == 0)
        and _same_as_stored(account.cost_per_hour, cost)
        and math.isclose(account.saving_per_hour, saving, rel_tol=1e-4, abs_tol=1e-4)
        and (there is None or _same_as_stored(there.per_hour, per_hour))
    )
    if same:
        return job
    if job.observed.track is None and account.since is not None:
        progress = progress_of(job, now, held=True)
        state = altered(state, progress=None if progress.since is None else progress)
    if chips == 0:
        account = account.stopped(now)
    else:
        began = now if held.since is None or account.since is not None else min(now, held.since)
        account = account.settled(now)
        account = altered(
            account,
            since=began if account.since is None else account.since,
            cost_per_hour=cost,
            chips=chips,
            saving_per_hour=saving,
        )
    if account.counterfactual is not None:
        account = altered(account, counterfactual=altered(account.counterfactual, per_hour=per_hour))
    return job.with_state(altered(state, account=account))


# --- what the state machine says -------------------------------------------------------------------------------------


def departed(job: Job, migration: Migration, now: float) -> Job:
    """The Revision that is left is gone. Its pods hold nothing any more, and nothing is done until the next one has
    caught up. To be called before the job's place changes."""
    account = job.state.account.stopped(now)
    job = job.with_state(replace(job.state, account=account))
    running = job.state.interruption
    if migration.rolling_back:
        ahead, migration = migration.left, replace(migration, left=None)
    else:
        ahead = counterfactual_of_move(job, level_before(job, migration, now), migration)
        there = account.counterfactual
        migration = replace(migration, left=None if there is None else there.uncounted())
    track = job.observed.track
    repeats = 0 if track is None else round(track.since_save())
    unit = WorkUnit.SAMPLES if track is None else track.unit
    if running is not None and running.id == migration.id:
        # It had not caught up there, or hangs: the time lost goes on.
        interruption = replace(running, repeats=max(running.repeats, repeats), counterfactual=ahead)
    else:
        interruption = Interruption(
            migration.id, now, account.spent, repeats, unit, demanded=migration.demanded, counterfactual=ahead
        )
    state = replace(
        job.state,
        account=account.unlinked(),
        progress=progress_at_end(job, now),
        interruption=interruption,
        migration=migration,
    )
    return job.with_state(state)


def remeasured(job: Job, now: float, *, refuted: bool = False) -> Job:
    """How fast the job is here against where it would be, by all that is known by now. refuted: whether a verdict has
    found what was promised to be so wrong that it tells nothing any more."""
    there = job.state.account.counterfactual
    if there is None or there.since is None:
        return job
    there = replace(there, predicted=None) if refuted else there
    there = replace(there, nearby=there.nearby or nearby_speed(job, there))
    here = level_after(job, there, now)
    found = None
    if here is not None:
        # From a slow start on the rate rises, which is no drift.
        drift = drift_of(job, here) if part_of_start(job, there) is None else 0.0
        found = speed(there, here, job.observed.variation, drift)
    if here is None or found is None:
        if there.speed is None:
            return job
        found = Speed(there.speed, there.speed_doubt)  # nothing can be told anew, neither now nor in the next cycle
    else:
        there = replace(there, rate=here.rate, rate_at=here.at, rate_windows=here.windows)
    account = replace(job.state.account, counterfactual=there).measured(found.ratio, found.doubt, now)
    return job.with_state(replace(job.state, account=account))


def hung(job: Job, migration: Migration, since: float, now: float) -> Job:
    """The program is found to do nothing where it was moved to, since then, Unix seconds: it is interrupted. Of what it
    did there before nothing is saved."""
    if job.state.interruption is not None:
        return job
    account, track = job.state.account.settled(now), job.observed.track
    # Until its steps had caught up it was interrupted already.
    since = max(since, (migration.stopped_at or since) + migration.lost_seconds)
    cost = min(_mean_price(account, now) * (now - since) / 3600.0, account.spent)
    unit = WorkUnit.SAMPLES if track is None else track.unit
    demanded = migration.demanded
    interruption = Interruption(migration.id, since, account.spent - cost, unit=unit, demanded=demanded)
    account = replace(account.unlinked(), saved=account.saved - (0.0 if demanded else cost))
    return job.with_state(replace(job.state, account=account, interruption=interruption))


def _mean_price(account: Account, now: float) -> float:
    """Dollars an hour that were paid since the steps had caught up, hours without chips included; the present price
    where the job is compared with no other place."""
    there = account.counterfactual
    if there is None or there.since is None or there.since >= now or not there.per_hour:
        return account.cost_per_hour or 0.0
    return (account.spent - there.spent_before) / (now - there.since) * 3600.0


def closed(job: Job, migration: Migration, outcome: Outcome, now: float) -> tuple[Job, float, float]:
    """A migration ends. The job with its books, and of the migration the seconds lost and the dollars that it cost
    so far; what is still to come of both is added to the ledger when the steps have caught up."""
    interruption, account = job.state.interruption, job.state.account.settled(now)
    lost, cost = migration.lost_seconds, migration.cost
    if interruption is not None and interruption.id == migration.id:
        lost += max(now - interruption.since, 0.0)
        cost += account.spent - interruption.spent_before
        interruption = replace(interruption, since=now, spent_before=account.spent)
    there = account.counterfactual
    gone = migration.stopped_at is not None
    if outcome is Outcome.VERIFIED:
        # Without a rate from before nothing can be compared, and where a user asked for it nothing is.
        ahead = interruption.counterfactual if interruption is not None and there is None else there
        keep = ahead is not None and bool(ahead.baseline) and not migration.demanded
    else:
        # A move that is known to be worse, and can't be undone, costs what it costs.
        proven = (
            outcome is Outcome.FAILED and there is not None and there.readings > 0 and migration.realised is not None
        )
        keep = outcome is Outcome.ROLLED_BACK or not gone or proven
    if not keep:
        account = replace(account.unlinked(), saving_per_hour=0.0)
        if interruption is not None:
            interruption = replace(interruption, counterfactual=None)
    return job.with_state(replace(job.state, account=account, interruption=interruption)), lost, cost


def finished(job: Job, now: float) -> Job:
    """The job has ended."""
    progress = progress_of(job, now)
    state = replace(
        job.state,
        account=job.state.account.stopped(now),
        interruption=None,
        progress=job.state.progress if progress.since is None else progress,
    )
    return job.with_state(state)


def _same_as_stored(one: float | None, other: float | None) -> bool:
    """Whether both are stored as the same number."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=1e-12)
