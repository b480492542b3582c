"""Approval: which decision the annotation of a job names."""

from rightpool.api.choices import AdaptationMode
from rightpool.api.placement import CapacityType, Placement
from rightpool.planning.jobs.job import Job


def recommendation_id(job: Job, target: Placement) -> str:
    """The id of what would be the job's next decision: it names its target, so that nothing else is approved by it."""
    spot = "-spot" if target.capacity is CapacityType.SPOT else ""
    return f"d-{job.state.decisions + 1}-{target.pool}-{target.chips}{spot}"


def approves(job: Job, target: Placement) -> bool:
    """Whether the user has approved that the job goes there next, in a mode that only recommends it."""
    return job.approved is not None and job.approved == recommendation_id(job, target)


def effective_mode(job: Job, target: Placement, mode: AdaptationMode) -> AdaptationMode:
    """What a user has approved is carried out as in mode Auto."""
    return AdaptationMode.AUTO if mode is AdaptationMode.RECOMMEND and approves(job, target) else mode
