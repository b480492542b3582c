"""The trace of a story: which jobs moved where and when, and how that ended."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.planning.jobs.job import Job, JobKey


@dataclass(frozen=True, slots=True)
class Moved:
    """One move that left its source."""

    at: float
    source: Placement
    target: Placement
    reason: Reason
    rolled_back: bool


@dataclass(slots=True)
class Trace:
    """Moves by job, as they happen."""

    left: dict[JobKey, list[Moved]] = field(default_factory=lambda: defaultdict(list))
    """Moves, and ways back, from when the source was gone."""
    verdicts: dict[JobKey, list[tuple[float, Outcome]]] = field(default_factory=lambda: defaultdict(list))
    """How migrations ended."""

    def __call__(self, before: Job, after: Job, now: float) -> None:
        """A step of the state machine."""
        old, new = before.state.migration, after.state.migration
        if new is not None and new.stopped_at is not None and (old is None or new.stopped_at != old.stopped_at):
            moved = Moved(now, new.moving.placement, new.target.placement, new.reason, rolled_back=new.rolling_back)
            self.left[before.key].append(moved)
        if len(after.state.history) and after.state.history != before.state.history:
            self.verdicts[before.key].append((now, after.state.history[-1].outcome))
