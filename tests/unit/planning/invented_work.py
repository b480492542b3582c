"""Work that nobody does yet, requests that are served: its module, its handover, and the field that tells it.

It never ends, is worth nothing beyond its demand, saves nothing, loses nothing, is measured by how busy its chips are
not, and starts where it is to be before it stops where it was.
"""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.choices import CheckpointMode
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.variation import Variation
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.moves.ending import with_phase
from rightpool.planning.moves.handover import Handover
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

    def lacking(self, job: Job, profile: Profile) -> Reason | None:
        return None if Field.CHIP_BUSY in profile.readings else Reason.PARTIAL_TELEMETRY

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


# --- planning/moves/start_then_stop.py -------------------------------------------------------------------------------


class StartThenStop(Handover):
    """Both Revisions are there until the new one runs."""

    phases = frozenset({Phase.DRAINING})

    def begin(self, job: Job, migration: Migration, now: float, *, save: bool = True) -> Job:
        return with_phase(job, migration, Phase.DRAINING, now)

    def step(self, job: Job, migration: Migration, edited: bool, taken: bool, now: float) -> Job:
        target = migration.target
        if not job.revision(target.revision).all_running(target.placement.replicas):
            return job
        moved = job.with_state(replace(job.state, revision=replace(target, since=now)))
        return with_phase(moved, replace(migration, running_at=now), Phase.WARMING_UP, now)

    def saves(self, migration: Migration) -> bool:
        return False

    def there(self, current: Revision, migration: Migration | None) -> tuple[Revision, ...]:
        beside = migration is not None and migration.phase is Phase.DRAINING
        return (current, migration.target) if migration is not None and beside else (current,)
