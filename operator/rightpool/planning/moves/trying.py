"""A trial of a job's program elsewhere: that it begins, and what comes of it. The job itself runs on untouched."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.trial_request import TrialAnswer
from rightpool.api.trial_run import TrialRun
from rightpool.api.trials_day import TrialsDay
from rightpool.api.tried import MAX_TRIED
from rightpool.api.wording import brief
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.planning.jobs.trial_seen import TrialSeen
from rightpool.planning.moves.trying_texts import counts_otherwise, not_measured, not_started, spent_all
from rightpool.planning.offers.trial import tried_there
from rightpool.planning.offers.trial_consent import Trying, trial_seconds, undisturbed

LATE: Final = 3.0
"""Times the seconds that are measured, after which a trial ends that has measured nothing."""
MAX_WHY: Final = 60


def with_trial(job: Job, trying: Trying, policy: PlacementPolicySpec, now: float) -> Job:
    """The job with a trial that begins, or without one that is over; the very object where neither is."""
    run, asked = job.state.trial, job.trial_asked
    if asked is not None and trying.refused:
        answer = TrialAnswer(asked.id, now, refused=brief(trying.refused))
        return job.with_state(replace(job.state, trial_answer=answer))
    if run is None:
        offer = trying.begin
        if offer is None or trial_seconds(job) is None:
            return job
        number = job.state.trials + 1
        if asked is not None:
            job = job.with_state(replace(job.state, trial_answer=TrialAnswer(asked.id, now, number)))
        run = TrialRun(number, offer.placement, now, offer.measured, offer.cost_per_hour, offer.vendor, offer.chip)
        run = replace(run, load=offer.load)
        return job.with_state(replace(job.state, trial=run, trials=number))
    if job.spec.trial is None or trying.breaks_off or not undisturbed(job) or _edited(job):
        return without_trial(job, now)
    seen = job.observed.trial
    seen = seen if seen is not None and seen.number == run.number else None
    if seen is not None and seen.taken:
        return job.with_state(replace(job.state, trial=None))  # the next one has another name
    over = _over(job, run, seen, policy, now)
    if over is None:
        return job
    rates, why = over
    here = None if job.state.revision is None else job.state.revision.chip
    against = None if seen is None else seen.against
    found = tried_there(job, run.placement, rates, run.measures, (here, run.chip), now, against)
    if found is None:
        return without_trial(job, now)
    found = replace(found, cost=run.spent(now), why=brief(why, MAX_WHY))
    ended = without_trial(job, now)
    return ended.with_state(replace(ended.state, tried=(*job.state.tried, found)[-MAX_TRIED:]))


def without_trial(job: Job, now: float) -> Job:
    """The job without the trial that is under way, of which its dollars are kept; the very object where there is
    none."""
    run = job.state.trial
    if run is None:
        return job
    cost, state = run.spent(now), job.state
    day = TrialsDay.at(now, cost).and_before(state.trials_day)
    return job.with_state(replace(state, trial=None, trials_cost=state.trials_cost + cost, trials_day=day))


def _edited(job: Job) -> bool:
    ref = job.state.revision
    return ref is not None and ref.workload_hash != job.workload_hash_of(ref)


def _over(
    job: Job, run: TrialRun, seen: TrialSeen | None, policy: PlacementPolicySpec, now: float
) -> tuple[list[float], str] | None:
    """The rates that it has measured, and why there are none; None where it goes on."""
    if seen is not None and seen.rate is not None:
        return ([seen.rate], "") if seen.unit is unit_of(job) else ([], counts_otherwise(seen.unit))
    if seen is not None and seen.ended is not None:
        return [], seen.ended
    if seen is None or seen.runs_since is None:
        longest = policy.start_deadline.total_seconds()
        return ([], not_started(longest)) if now - run.since > longest else None
    allowed, longest = job.spec.trial, LATE * run.measures
    if allowed is not None and job.state.trials_cost + run.spent(now) > float(allowed.max_cost):
        return [], spent_all(float(allowed.max_cost))
    return ([], not_measured(longest)) if now - seen.runs_since > longest else None
