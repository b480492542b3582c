"""A trial that a user asks for: what answers the request, or why nothing does."""

from __future__ import annotations

from collections.abc import Sequence

from rightpool.api.trial_request import TrialRequest
from rightpool.api.wording import span
from rightpool.contract import ANNOTATION_TRIAL
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.trial_seen import trial_name
from rightpool.planning.offers.evaluated import Evaluated, MeasuredJob
from rightpool.planning.offers.trial import TrialOffer, asked_offers
from rightpool.planning.offers.trial_consent import affordable, chip_cost, undisturbed


def answers(job: Job, request: TrialRequest, evaluated: Evaluated | None) -> Sequence[TrialOffer] | str:
    """Trials that answer the request, the best first, whether they pay or not; or why there is none."""
    if (refused := _not_now(job, request)) or job.spec.trial is None:
        return refused
    if not isinstance(evaluated, MeasuredJob):
        return "the job was not measured yet: ask again when its condition Profiled is True"
    longest = job.spec.trial.duration.total_seconds()
    offers = asked_offers(evaluated, request.pool, request.seconds or longest)
    if not offers:
        where = "elsewhere" if request.pool is None else f"on pool {request.pool}"
        return f"nothing that the job could have {where} is predicted: see `rightpool explain {job.key.name}`"
    found = [offer for offer in offers if affordable(job, offer)]
    if not found:
        least, left = min(map(chip_cost, offers)), float(job.spec.trial.max_cost) - job.state.trials_cost
        return f"it would cost ${least:.2f}, and ${max(left, 0.0):.2f} of spec.trial.maxCost is left: raise it"
    return found


def no_chips(offer: TrialOffer) -> str:
    """Why the best that answers a request does not begin."""
    place = offer.placement
    return f"pool {place.pool} has no {place.chips} chips free that no job waits for: ask again when it has"


def no_dollars(offer: TrialOffer, left: float) -> str:
    """Why none of what answers a request begins: what the fleet may spend is spent."""
    return (
        f"it would cost ${chip_cost(offer):.2f}, and ${max(left, 0.0):.2f} of the PlacementPolicy's "
        "trials.maxCostPerDay is left until midnight UTC"
    )


def _not_now(job: Job, request: TrialRequest) -> str:
    """Why the job is not tried now; empty where it may be."""
    allowed, run = job.spec.trial, job.state.trial
    if not request.valid:
        return f"the value of {ANNOTATION_TRIAL} is not ID, ID:POOL, ID::SECONDS or ID:POOL:SECONDS"
    if allowed is None:
        return "nothing lets the program be tried: set spec.trial"
    longest = allowed.duration.total_seconds()
    if request.seconds is not None and request.seconds > longest:
        return f"{span(request.seconds)} are asked for, and spec.trial.duration is {span(longest)}: ask for less"
    if run is not None:
        return f"ProfiledJob {trial_name(job.key.name, run.number)} is under way: ask again when it is over"
    if not undisturbed(job):
        return "the job does not run, or is moved: ask again when it runs"
    return ""
