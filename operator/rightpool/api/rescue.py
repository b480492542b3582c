"""A rescue: a program was asked to save because Kubernetes is about to end some of its pods."""

from __future__ import annotations

from rightpool.api.record import Record
from rightpool.api.units import Count, Size, UnixTime, UnixTimeUp
from rightpool.api.value_object import value_object


@value_object
class Rescue(Record):
    """What was asked for, and what came of it. Written before the program is asked, so that it is asked once."""

    revision: Size
    """Revision whose pods are asked."""

    pods: Count
    """Pods that are about to be lost, as far as a save was asked for them."""

    since: UnixTime
    """When the save was asked for."""

    node: str | None = None
    """The first of the nodes that are drained. Absent where the pods themselves are evicted or preempted."""

    saved_before: UnixTimeUp | None = None
    """The last save that was known then."""

    saved_at: UnixTime | None = None
    """The save that came. Absent where none came in time."""

    over: bool = False
    """Whether the save came, or its time is over: the program is not asked again."""
