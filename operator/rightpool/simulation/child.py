"""A Revision's child in virtual time: pods that wait for chips, start, load, work, save and end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rightpool.api.placement import Placement
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.simulation.chips import SimulatedPool


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds that things take."""

    start: float = 30.0
    """From chips to running containers."""
    load: float = 30.0
    """From there to the first step: imports, compilation, the checkpoint."""
    save: float = 15.0
    """From the request for a save to a complete one."""
    end: float = 15.0
    """From the child's deletion to the end of its pods."""


@dataclass(slots=True)
class SimulatedChild:
    """The child of one Revision."""

    revision: int
    """Its number."""
    placement: Placement
    """Where its pods run, or wait for chips."""
    created_at: float
    """Unix seconds; so the others."""
    nodes: tuple[int, ...] | None = None
    """Of its pods; None while they wait for chips."""
    bound_at: float | None = None
    """Since when it holds chips."""
    deleted_at: float | None = None
    """None while it is to run."""
    save_asked_at: float | None = None
    """None where no save is asked for."""
    unschedulable_since: float | None = None
    """Since when it finds no chips; None where it has some."""
    succeeded: bool = False
    """Whether it has done all that the job consumes."""
    steps: float = 0.0
    """That its processes have made."""
    disrupted_at: float | None = None
    """When its pods were last taken away."""

    def bind(self, pool: SimulatedPool, now: float) -> bool:
        """Take chips, if there are any. Whether it has some."""
        if self.nodes is None and self.deleted_at is None and not self.succeeded:
            self.nodes = pool.bind(self.placement) if pool.has_nodes(now) else None
            self.bound_at = None if self.nodes is None else now
            if self.nodes is not None:
                self.unschedulable_since = None
            elif self.unschedulable_since is None:
                self.unschedulable_since = now
        return self.nodes is not None

    def release(self, pool: SimulatedPool) -> None:
        """Its pods are gone, or wait for chips again."""
        if self.nodes is not None:
            pool.release(self.placement, self.nodes)
            self.nodes = None

    def lose_nodes(self, pool: SimulatedPool, at: float) -> None:
        """Its nodes are not there any more; other pods begin where the newest save is."""
        self.release(pool)
        self.bound_at, self.disrupted_at, self.save_asked_at, self.steps = None, at, None, 0.0

    def runs(self, now: float, delays: Delays) -> bool:
        """Whether all its containers run."""
        return self.nodes is not None and self.bound_at is not None and now >= self.bound_at + delays.start

    def works_from(self, delays: Delays) -> float:
        """When its first step begins; infinite while it has no chips."""
        return float("inf") if self.bound_at is None else self.bound_at + delays.start + delays.load

    def seen(self, now: float, delays: Delays) -> RevisionState:
        """As the cluster shows it."""
        gone = self.succeeded
        waiting = self.nodes is None and not gone
        return RevisionState(
            revision=self.revision,
            exists=True,
            deleting=self.deleted_at is not None,
            active=0 if gone else self.placement.replicas,
            on_nodes=self.placement.replicas if self.nodes is not None and not gone else 0,
            bound_at=None if gone else self.bound_at,
            running=self.placement.replicas if self.deleted_at is None and self.runs(now, delays) else 0,
            succeeded=self.succeeded,
            blocked="Unschedulable: no node has enough free chips" if waiting and self.unschedulable_since else None,
            unschedulable_since=self.unschedulable_since if waiting else None,
            nodes={f"node-{n}": c for n, c in Counter(() if gone else self.nodes or ()).items()},
            disrupted_at=self.disrupted_at,
            started_at=self.created_at,
        )
