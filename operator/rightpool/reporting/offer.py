"""Offers: what the recommendations of a fleet would bring, in dollars an hour."""

from __future__ import annotations

from rightpool.api.placement import Placement
from rightpool.api.status import ProfiledJobStatus, Recommendation
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import SERVED
from rightpool.reporting.stored_job import StoredJob


@value_object
class Offer:
    """One job's recommendation."""

    here: Placement
    """Where the job is."""
    recommendation: Recommendation
    """As the status has it."""
    dollars_per_hour: float | None
    """What the work of an hour would cost less there. None where that is not known."""


def offer_of(stored: StoredJob, status: ProfiledJobStatus) -> Offer | None:
    """What the job's status recommends and nothing came of yet; None where it recommends nothing."""
    job = stored.job
    recommendation, ref = status.recommendation, job.state.revision
    if recommendation is None or ref is None or job.state.finished is not None:
        return None
    here = None if status.profile is None else status.profile.throughput
    rate = None if here is None or here[1] is not recommendation.unit else here[0]
    there = None if recommendation.throughput is None else recommendation.throughput.median
    saved = potential_savings(ref.cost_per_hour, rate, recommendation.cost_per_hour, there)
    share, hourly = recommendation.savings, ref.cost_per_hour
    if recommendation.unit in SERVED and share is not None and hourly is not None:
        saved = share * hourly  # for the requests of its week
    return Offer(here=ref.placement, recommendation=recommendation, dollars_per_hour=saved)


def potential_savings(
    price: float | None, rate: float | None, other_price: float | None, other_rate: float | None
) -> float | None:
    """Dollars that the work of an hour costs less elsewhere; negative where they cost more. Prices are dollars an
    hour, rates units of work a second; None where one of them is not known."""
    if price is None or other_price is None or not rate or not other_rate:
        return None
    return price - other_price * rate / other_rate
