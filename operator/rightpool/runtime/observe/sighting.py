"""A sighting: what one cycle sees of a job, before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rightpool.planning.job import Observed
from rightpool.planning.migration.revision import ChildRefusal, RevisionState
from rightpool.planning.revision_window import Observation
from rightpool.planning.threat import Threat
from rightpool.planning.trace_answer import TraceAnswer


class Sighting(NamedTuple):
    """The parts of `Observed`. A tuple, because it is made and compared for each job in each cycle, and hardly ever is
    one new."""

    revisions: Mapping[int, RevisionState]
    observation: Observation
    checkpoint_error: str | None
    trace_answer: TraceAnswer | None
    threat: Threat | None
    pool_problem: str | None
    refusal: ChildRefusal | None
    template_checked: bool

    @property
    def observed(self) -> Observed:
        """As planning sees it."""
        observation = self.observation
        return Observed(
            revisions=self.revisions,
            profile=observation.profile,
            diagnosis=observation.diagnosis,
            variation=observation.variation,
            checkpoint_at=observation.checkpoint_at,
            track=observation.track,
            checkpoint_error=self.checkpoint_error,
            trace_answer=self.trace_answer,
            threat=self.threat,
            pool_problem=self.pool_problem,
            refusal=self.refusal,
            template_checked=self.template_checked,
        )
