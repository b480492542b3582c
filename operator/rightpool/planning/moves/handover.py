"""Handover: how a job gets from one Revision to the next, from where its migration may begin to where the target exists
and the job is there."""

from abc import ABC, abstractmethod
from typing import ClassVar

from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job


class Handover(ABC):
    """What becomes of the Revision that is left, and when the job's place is another one."""

    phases: ClassVar[frozenset[Phase]]
    """Those that `step` takes further."""

    @abstractmethod
    def begin(self, job: Job, migration: Migration, now: float, *, save: bool = True) -> Job:
        """The first phase. save: whether what is left has done something since it was there that is worth saving."""

    @abstractmethod
    def step(self, job: Job, migration: Migration, edited: bool, taken: bool, now: float) -> Job:
        """A step further. edited: whether the workload is another than was planned; taken: whether others have got the
        chips that it is to go to, while it was waited for."""

    @abstractmethod
    def saves(self, migration: Migration) -> bool:
        """Whether what is left is to save now."""

    def answering(self, current: Revision, migration: Migration | None) -> tuple[Revision, ...]:
        """The Revisions that requests go to, of what answers any. current: where the job is."""
        return (current,)

    def weighed(self, migration: Migration | None) -> tuple[Revision, int] | None:
        """The Revision that an HTTPRoute sends a share of requests to, and how many percent; None where nothing is
        shared by weights. `answering` says where the others go."""
        return None

    @abstractmethod
    def there(self, current: Revision, migration: Migration | None) -> tuple[Revision, ...]:
        """The Revisions that are to be there; any other is ended. current: where the job is."""
