"""Work that nobody does yet, requests that are served: its module, and the field of the spec by which it is known.

It never ends, is worth nothing beyond its demand, saves nothing, loses nothing, and is measured by how busy its chips
are not.
"""

from __future__ import annotations

from rightpool.api.choices import CheckpointMode
from rightpool.api.migration import Migration
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.variation import Variation
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.work.work import Activity, Extent, Work
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field

# --- api/profiledjob.py ----------------------------------------------------------------------------------------------


class ServingSpec(ProfiledJobSpec):
    """With one field more."""

    requests: float


# --- planning/work/serving.py ----------------------------------------------------------------------------------------


class Serving(Work):
    """So many requests a second are answered for ever."""

    def does(self, spec: ProfiledJobSpec) -> bool:
        return isinstance(spec, ServingSpec)

    def extent(self, job: Job, now: float) -> Extent | None:
        return None

    def has_ended(self, child: RevisionState) -> bool:
        return False

    def demand(self, job: Job) -> float:
        assert isinstance(job.spec, ServingSpec)
        return job.spec.requests

    def saving(self, spec: ProfiledJobSpec) -> CheckpointMode:
        return CheckpointMode.NONE

    def loses_all(self, spec: ProfiledJobSpec) -> bool:
        return False

    def pause_seconds(self, job: Job) -> float:
        return 0.0

    def restart_seconds(self, job: Job) -> float:
        return 0.0

    def measured(
        self, migration: Migration, profile: Profile, variation: Variation | None, window: float
    ) -> RateSeries | None:
        busy = profile.value(Field.CHIP_BUSY)
        if busy is None or profile.key.revision != migration.target.revision:
            return None
        return RateSeries(1.0 - busy, windows=12, seconds=window, price=migration.target.cost_per_hour)

    def activity(self, migration: Migration, profile: Profile | None) -> Activity:
        return Activity.UNSEEN
