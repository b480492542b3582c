"""An adopted object: one that somebody else has made, and that runs where it runs."""

from typing import Final, NamedTuple

from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object

UNFOLLOWED: Final = (
    Reason.WORKLOAD_NOT_FOUND,
    Reason.WORKLOAD_NOT_RUNNING,
    Reason.WORKLOAD_CONTROLLED,
    Reason.WORKLOAD_NOT_ADOPTABLE,
    Reason.ADOPTED_BY_ANOTHER,
    Reason.SPANS_POOLS,
)
"""Why nothing is said of a job's object."""


class AwaitedChips(NamedTuple):
    """What pods wait for. Kubernetes starts them where their template lets it."""

    chips: int
    """Of all that have no node."""
    replicas: int
    """So many pods."""
    resource: str | None
    """By which they ask for chips; None where the operator has made them for their pool."""
    since: float
    """Unix seconds since when it has waited, or was adopted."""
    pool: str | None = None
    """The only one that they can be in; None where their template alone says where."""


@value_object
class Adopted:
    """Where the object of a job is seen to be."""

    uid: str
    """Of the object."""

    revision: int
    """The number of the state that it is in."""

    placement: Placement | None
    """Where its pods are; None where none has a node of a pool, or they are in several pools."""

    original: Placement | None = None
    """Where it was before the operator first changed it. None: it was not changed, or its user has changed it since."""

    note: str | None = None
    """What it was before the operator first changed it, as its annotation has it."""

    selector: str = ""
    """Label selector of its pods."""

    chip: str | None = None
    """Key of its chips in the catalog; None where that is not known."""

    profiled: bool = False
    """Whether its pods have the profiler."""

    admits: bool = False
    """Whether pods of it that are made from now on get the profiler."""

    awaits: AwaitedChips | None = None
    """The chips for which it waits where its user wants it. None where all its pods have nodes, or something else is
    missing."""
