"""All handovers, by what a job does."""

from collections.abc import Mapping
from typing import Final

from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.handover import Handover
from rightpool.planning.moves.stop_then_start import StopThenStart
from rightpool.planning.moves.surge import Surge
from rightpool.planning.work.registry import work_of
from rightpool.planning.work.server import Answering
from rightpool.planning.work.training import Training
from rightpool.planning.work.work import Work

HANDOVERS: Final[Mapping[type[Work], Handover]] = {Training: StopThenStart(), Answering: Surge()}


def handover_of(job: Job) -> Handover:
    """How this job gets from one Revision to the next."""
    return HANDOVERS[type(work_of(job.spec))]
