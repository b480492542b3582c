"""Serving: requests are answered for ever, by as many replicas as they need."""

from __future__ import annotations

import math
from typing import ClassVar, Final

from rightpool.api.choices import CheckpointMode
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.variation import Variation
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.jobs.sizing import SHORTEST
from rightpool.planning.jobs.time_limits import sized_limits
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.work.work import Activity, Extent, Work
from rightpool.profiles.profile import Profile

HELD_WINDOWS: Final = 12
"""Windows for which what a move leaves runs on without requests: an hour, as long as windows are five minutes."""


class Answering(Work):
    """What comes in is answered. How much that is says nothing of what the chips could do."""

    one_writer: ClassVar[bool] = False
    scales: ClassVar[bool] = True
    profiled: ClassVar[bool] = False

    def does(self, spec: ProfiledJobSpec) -> bool:
        """Where its workload is a server."""
        return spec.workload.server is not None

    # --- what there is to do -----------------------------------------------------------------------------------------

    def extent(self, job: Job, now: float) -> Extent | None:
        """There is no end of it."""
        return None

    def size(self, job: Job, now: float) -> int | None:
        """As many as its record asks for, between those that its user allows. Where nothing tells, as many as there
        are; at the start as many as its user wants at least."""
        server, ref, sizing = job.spec.workload.server, job.state.revision, job.observed.sizing
        if server is not None and ref is not None and server.scaled_elsewhere:
            return job.revision(ref.revision).pods or ref.placement.replicas
        if server is None or ref is None or not sized_limits(job.spec.targets):
            return job.spec.workload.replicas
        here = ref.placement.replicas
        needed = None if sizing is None else sizing.needed(here)
        if needed is None and sizing is not None and sizing.recorded < SHORTEST:
            needed = server.scale.min
        return min(max(here if needed is None else needed, server.scale.min), server.scale.most)

    def unplanned(self, job: Job) -> Reason | None:
        """What it would serve elsewhere follows from its requests, its batches and its limit."""
        server, sizing = job.spec.workload.server, job.observed.sizing
        if server is None or server.metrics is None or not sized_limits(job.spec.targets):
            return Reason.SERVER_STAYS
        if job.observed.route_problem is not None:
            return Reason.ROUTE_UNUSABLE
        if sizing is not None and sizing.silent:
            return Reason.NO_REQUESTS
        if sizing is not None and sizing.peak is not None and sizing.line is None and not sizing.places:
            return Reason.BATCHES_UNSEEN
        ref = job.state.revision
        known = sizing is not None and ref is not None and sizing.at(ref.placement.pool) is not None
        return None if known else Reason.DEMAND_RECORD_SHORT

    def has_ended(self, child: RevisionState) -> bool:
        """Never."""
        return False

    def demand(self, job: Job) -> float:
        """Unknown: it is no ground for a move."""
        return math.inf

    def lacking(self, job: Job, profile: Profile) -> Reason | None:
        """No Profile is asked."""
        return None

    # --- what a stop costs -------------------------------------------------------------------------------------------

    def saving(self, spec: ProfiledJobSpec) -> CheckpointMode:
        """There is nothing to save."""
        return CheckpointMode.NONE

    def loses_all(self, spec: ProfiledJobSpec) -> bool:
        """There is nothing to lose either."""
        return False

    def pause_seconds(self, job: Job) -> float:
        """It answers all the time."""
        return 0.0

    def restart_seconds(self, job: Job) -> float:
        """As above."""
        return 0.0

    # --- what a move has brought -------------------------------------------------------------------------------------

    def measured(
        self, migration: Migration, profile: Profile, variation: Variation | None, window: float
    ) -> RateSeries | None:
        """Its moves are judged by its requests."""
        return None

    def activity(self, migration: Migration, profile: Profile | None) -> Activity:
        """As above."""
        return Activity.UNSEEN


def pods_at(job: Job, pool: str, here: int) -> int:
    """Replicas that the peak takes in a pool, between those that are allowed; as many as there are where nothing
    tells. here: how many there are. Of a server that somebody else scales, as many as can take what these can."""
    sizing, server, ref = job.observed.sizing, job.spec.workload.server, job.state.revision
    size = None if sizing is None else sizing.at(pool)
    if server is not None and ref is not None and server.scaled_elsewhere:
        own, now = None if sizing is None else sizing.at(ref.placement.pool), ref.placement.replicas
        if size is None or own is None or not (size.servable > 0.0 and own.servable > 0.0):
            return now
        return min(max(math.ceil(now * own.servable / size.servable - 1e-9), server.least), server.most)
    return replicas_for(job, None if size is None else size.servable, here)


def replicas_for(job: Job, servable: float | None, here: int) -> int:
    """Replicas that the peak takes where each takes so many requests a second, between those that are allowed; as many
    as there are where nothing tells."""
    server, sizing = job.spec.workload.server, job.observed.sizing
    if server is None or sizing is None or sizing.peak is None or not servable:
        return here
    return min(max(math.ceil(sizing.peak / servable), server.least), server.most)


def beside_seconds(job: Job) -> float:
    """How long a move pays for both sides, both ways: it may have to come back."""
    return 2.0 * HELD_WINDOWS * job.spec.profiling.window.total_seconds()
