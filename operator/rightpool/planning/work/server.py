"""Serving: requests are answered for ever, by as many replicas as they need."""

from __future__ import annotations

import math
from typing import ClassVar

from rightpool.api.choices import CheckpointMode
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.variation import Variation
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.work.work import Activity, Extent, Work
from rightpool.profiles.profile import Profile


class Answering(Work):
    """What comes in is answered. How much that is says nothing of what the chips could do."""

    one_writer: ClassVar[bool] = False
    scales: ClassVar[bool] = True

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
        if server is None or ref is None or job.spec.targets.latency is None:
            return job.spec.workload.replicas
        here = ref.placement.replicas
        needed = None if sizing is None else sizing.needed(here)
        if needed is None and sizing is not None and sizing.peak is None:
            needed = server.scale.min  # too little is recorded
        return min(max(here if needed is None else needed, server.scale.min), server.scale.most)

    def unplanned(self) -> Reason | None:
        """What it serves on other chips is not predicted."""
        return Reason.SERVER_STAYS

    def has_ended(self, child: RevisionState) -> bool:
        """Never."""
        return False

    def demand(self, job: Job) -> float:
        """Unknown: it is no ground for a move."""
        return math.inf

    def lacking(self, job: Job, profile: Profile) -> Reason | None:
        """It stays whatever is measured."""
        return self.unplanned()

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
        """No move of it is judged."""
        return None

    def activity(self, migration: Migration, profile: Profile | None) -> Activity:
        """As above."""
        return Activity.UNSEEN
