"""All handovers, by what a job does, and what its object's controller does for it."""

from collections.abc import Mapping
from typing import Final

from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.by_group import ByGroup, goes_by_group
from rightpool.planning.moves.handover import Handover
from rightpool.planning.moves.stop_then_start import StopThenStart
from rightpool.planning.moves.surge import Surge
from rightpool.planning.work.registry import work_of
from rightpool.planning.work.server import Answering
from rightpool.planning.work.training import Training
from rightpool.planning.work.work import Work

HANDOVERS: Final[Mapping[type[Work], Handover]] = {Training: StopThenStart(), Answering: Surge()}
BY_GROUP: Final = ByGroup()
"""Of what an adopted object's own controller takes further by itself."""


def handover_of(job: Job) -> Handover:
    """How this job gets from one Revision to the next."""
    if goes_by_group(job):
        return BY_GROUP
    return HANDOVERS[type(work_of(job.spec))]
