"""Whether a job lets its program be tried, for how long and for how many dollars."""

from __future__ import annotations

from typing import Final, NamedTuple

from rightpool.api.units import HOUR
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.trial import TrialOffer


class Trying(NamedTuple):
    """What the plan says of a job's trials."""

    begin: TrialOffer | None = None
    """The one that begins."""
    breaks_off: bool = False
    """Whether somebody waits for the chips of the one that is under way."""
    refused: str = ""
    """Why the one that is asked for does not begin."""


NO_TRIAL: Final = Trying()


def trial_seconds(job: Job) -> float | None:
    """Seconds that a trial of this job may measure; None where none may begin now."""
    allowed, state = job.spec.trial, job.state
    under_way = state.trial is not None or job.observed.trial is not None
    if allowed is None or under_way or not undisturbed(job) or not sampled(job):
        return None
    return allowed.duration.total_seconds()


def affordable(job: Job, offer: TrialOffer) -> bool:
    """Whether what is left of `maxCost` pays for it. Of chips without a price nothing is paid."""
    if job.spec.trial is None:
        return True
    return job.state.trials_cost + chip_cost(offer) <= float(job.spec.trial.max_cost)


def chip_cost(offer: TrialOffer) -> float:
    """Dollars for its chips; 0 where no price is known."""
    return (offer.cost_per_hour or 0.0) * offer.seconds / HOUR


def undisturbed(job: Job) -> bool:
    """Whether it runs, and nothing is done to it, so that its rate is what a trial compares with."""
    return job.state.revision is not None and job.state.migration is None and not job.stops


def sampled(job: Job) -> bool:
    """Whether there is something to send it, of a server, which does nothing without requests."""
    server = job.spec.workload.server
    return server is None or (server.warm_up is not None and server.metrics is not None)
