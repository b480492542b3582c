"""How far a job is: work that its Revisions have counted, without what restarts repeat."""

from dataclasses import replace
from typing import Final

from rightpool.api.account import Account
from rightpool.api.altered import altered
from rightpool.api.progress import JobProgress
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.profiles.track import Track

_NOTHING_DONE: Final = JobProgress()


def progress_of(job: Job, now: float, *, held: bool | None = None) -> JobProgress:
    """The job's progress up to the newest reading. Time in a queue, suspended and loading adds nothing.

    Where no counter is read, the rate of the last Profile stands for it while chips are held. held: whether they were,
    where not what is seen now tells.
    """
    known, revision = job.state.progress or _NOTHING_DONE, job.state.revision
    if revision is None:
        return known
    number, track = revision.revision, job.observed.track
    if track is not None and track.counter is not None and track.unit is not known.unit:
        known = _converted(job, known, track)
    same = known.revision == number
    rate = _rate(job, number, known.unit) or (known.rate if same else None)
    if track is None:
        if revision.since is None:
            return known
        since = max(known.since or revision.since, revision.since)
        child = job.child
        held = (child is not None and child.holding > 0) if held is None else held
        more = (rate or 0.0) * max(0.0, now - since) if held and job.state.interruption is None else 0.0
        counter, at = None, max(now, since)
    elif track.counter is None or track.first is None or track.newest is None:
        return known
    else:
        counter, at = round(track.counter), track.newest
        before = track.count(known.since) if same and known.since is not None else None
        if before is not None:
            more = track.total - before
        else:
            # What was counted while nobody looked: all that the pods have, less what is known already.
            unseen = max(track.first, track.continues) - ((known.counter or 0) if same else 0)
            more = track.total + (unseen if unseen >= 0 else track.first)
    if not same and known.done == 0 and not more:
        return known
    done = max(0, round(known.done + more))
    counted = {"done": done, "since": at, "revision": number, "counter": counter, "rate": rate}
    if rate is None:
        return altered(known, **counted)
    # Where the job has changed its speed since, the time of the slower one stands for both, as far as there was time.
    seconds = (done - known.done) / (min(rate, known.rate or rate) if same else rate)
    begun = (known.since if same else None) or revision.since
    if begun is not None:
        seconds = min(seconds, max(0.0, at - begun))
    if same:  # before its rate was known
        seconds += (known.done - known.rated) / rate
    useful = max(0.0, known.useful_seconds + seconds * revision.placement.chips)
    return altered(known, **counted, useful_seconds=useful, rated=done)


def _converted(job: Job, known: JobProgress, track: Track) -> JobProgress:
    """The progress in the unit that is counted now: from steps to samples by what the user says of a step. Where that
    is not known, the count begins anew with the Revision, and useful time goes on from here."""
    revision = job.state.revision
    assert revision is not None and track.first is not None
    per_step = job.spec.samples_per_step(revision.placement.chips)
    if known.unit is WorkUnit.STEPS and per_step is not None:
        return replace(
            known,
            unit=track.unit,
            done=round(known.done * per_step),
            rated=round(known.rated * per_step),
            counter=None if known.counter is None else round(known.counter * per_step),
            rate=None if known.rate is None else known.rate * per_step,
        )
    begun = JobProgress(unit=track.unit, useful_seconds=known.useful_seconds)
    if known.revision != revision.revision:
        return begun
    return replace(begun, revision=revision.revision, rated=round(track.first))


def goodput(account: Account, progress: JobProgress | None) -> float | None:
    """Share of the paid chip time that was useful, 0-1: without loading, waiting and repeating. account: settled up to
    the time of the progress. None before chips were held, and where no rate was ever known."""
    if progress is None or progress.useful_seconds <= 0.0 or account.chip_seconds <= 0.0:
        return None
    return min(1.0, progress.useful_seconds / account.chip_seconds)


def progress_at_end(job: Job, now: float) -> JobProgress | None:
    """The progress at the end of a Revision: what no save holds has to be done again."""
    done, track = progress_of(job, now), job.observed.track
    if done.since is None:
        return job.state.progress
    lost = 0 if track is None else round(track.since_save())
    return replace(done, done=max(0, done.done - lost))


def _rate(job: Job, number: int, unit: WorkUnit) -> float | None:
    profile = job.observed.profile
    if profile is None or not profile.complete or profile.key.revision != number:
        return None
    if profile.unit is not unit or profile.throughput is None:
        return None
    return profile.throughput.value or None
