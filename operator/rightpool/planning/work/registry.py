"""All kinds of work, in the order in which they are asked whether they are a job's."""

from typing import Final

from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.planning.work.server import Answering
from rightpool.planning.work.training import Training
from rightpool.planning.work.work import Work

WORKS: Final[tuple[Work, ...]] = (Answering(), Training())


def work_of(spec: ProfiledJobSpec) -> Work:
    """What such a job does. Whatever nothing else claims is taken to train."""
    return next(work for work in WORKS if work.does(spec))
