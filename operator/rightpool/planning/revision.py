"""A revision: one materialised placement, as status names it and as the cluster shows it."""

from dataclasses import dataclass

from rightpool.hardware.placement import Placement


@dataclass(frozen=True, slots=True)
class RevisionRef:
    """A Revision as status names it. since: Unix seconds when all its pods first ran, else None.

    workload_hash: of the pod template and chip container it was built from. requested: the user's chips and replicas
    in spec.workload when it was placed, so that an edit of the user's is seen. cost_per_hour: dollars, at the price
    of the day it was placed; None where the price was unknown. generation: the newest of the spec that was seen to
    allow the placement.
    """

    revision: int
    placement: Placement
    workload_hash: str
    requested: tuple[int, int]
    created_at: float
    cost_per_hour: float | None = None
    since: float | None = None
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class RevisionState:
    """What the cluster shows of a Revision's child.

    active: pods that are neither succeeded nor failed nor gone (terminating ones count). running: pods with all
    containers ready. blocked: why pods do not run (unschedulable, image), None where nothing is known to block.
    started_at: Unix seconds when Kubernetes last began to run it; None while it never has, or is suspended.
    earlier: a child of that number is there, and it is an earlier ProfiledJob's of this name, which is gone.
    stranger: a living pod with its labels that is none of its Job's: only who made it can end it.
    finishing: how it ends is certain by its pods, or known to Kubernetes, and the Job itself tells a moment later.
    """

    revision: int
    exists: bool
    deleting: bool = False
    suspended: bool = False
    active: int = 0
    running: int = 0
    succeeded: bool = False
    failed: bool = False
    blocked: str | None = None
    failure: str | None = None
    earlier: bool = False
    stranger: str | None = None
    started_at: float | None = None
    finishing: bool = False
