"""The interface of every way to share out chips: what each job could have in, one decision a job out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.evaluation import Evaluated


@dataclass(frozen=True, slots=True)
class Allocation:
    """Who gets which chips, and who holds, for a reason."""

    assessments: Mapping[JobKey, Assessment]
    """One for each evaluated job. The very same object as before where nothing has changed."""
    alone: Mapping[JobKey, Assessment] = field(default_factory=dict, repr=False)
    """What each job would get by itself: an allocator's memory of how it came to the assessments."""
    supply: Mapping[str, object] = field(default_factory=dict, repr=False)
    """What each pool had for a job by itself, in the allocator's own terms: its memory of what `fits` depends on."""


class Allocator(Protocol):
    """A way to share out chips, passed in where the operator is put together."""

    def allocate(self, fleet: Fleet, evaluated: Mapping[JobKey, Evaluated], previous: Allocation | None) -> Allocation:
        """Assessments that fit together. previous: what this allocator gave in the last cycle.

        Nothing may depend on the order in which jobs or pools come. A migration that waits to begin is confirmed, or
        withdrawn where its target does not pay any more or others have got its chips.
        """
        ...
