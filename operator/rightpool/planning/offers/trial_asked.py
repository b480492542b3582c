"""A trial that a user asks for: what answers the request, or why nothing does."""

from __future__ import annotations

from collections.abc import Sequence

from rightpool.api.trial_request import TrialRequest
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.trial_seen import trial_name
from rightpool.planning.offers import trial_asked_texts as texts
from rightpool.planning.offers.evaluated import Evaluated, MeasuredJob
from rightpool.planning.offers.servers.evaluated import SizedServer
from rightpool.planning.offers.servers.trial import asked_server_trials, server_trials
from rightpool.planning.offers.trial import TrialOffer, asked_offers, trial_offers
from rightpool.planning.offers.trial_consent import affordable, chip_cost, sampled, undisturbed


def answers(job: Job, request: TrialRequest, evaluated: Evaluated | None) -> Sequence[TrialOffer] | str:
    """Trials that answer the request, the best first, whether they pay or not; or why there is none."""
    if (refused := _not_now(job, request)) or job.spec.trial is None:
        return refused
    seconds = request.seconds or job.spec.trial.duration.total_seconds()
    if isinstance(evaluated, SizedServer):
        offers = asked_server_trials(evaluated, request.pool, seconds)
    elif isinstance(evaluated, MeasuredJob):
        offers = asked_offers(evaluated, request.pool, seconds)
    else:
        return texts.NOT_MEASURED if job.spec.workload.server is None else texts.NOT_RECORDED
    if not offers:
        return texts.not_predicted(job.key.name, request.pool)
    found = [offer for offer in offers if affordable(job, offer)]
    if not found:
        least, left = min(map(chip_cost, offers)), float(job.spec.trial.max_cost) - job.state.trials_cost
        return texts.beyond_own_dollars(least, left)
    return found


def paying(evaluated: Evaluated, longest: float) -> Sequence[TrialOffer]:
    """Trials that pay, the best first. longest: seconds that may be measured."""
    if isinstance(evaluated, SizedServer):
        return server_trials(evaluated, longest)
    return trial_offers(evaluated, longest) if isinstance(evaluated, MeasuredJob) else ()


def _not_now(job: Job, request: TrialRequest) -> str:
    """Why the job is not tried now; empty where it may be."""
    allowed, run = job.spec.trial, job.state.trial
    if not request.valid:
        return texts.MALFORMED
    if allowed is None:
        return texts.NOT_ALLOWED
    if not sampled(job):
        return texts.NO_SAMPLE
    longest = allowed.duration.total_seconds()
    if request.seconds is not None and request.seconds > longest:
        return texts.too_long(request.seconds, longest)
    if run is not None:
        return texts.under_way(trial_name(job.key.name, run.number))
    if not undisturbed(job):
        return texts.NOT_RUNNING
    return ""
