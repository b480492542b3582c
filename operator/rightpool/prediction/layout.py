"""A placement as communication sees it: groups of chips on fast links, and the slow links between the groups."""

from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.hardware.pool import Pool
from rightpool.prediction.columns import Floats, Ints


@value_object
class Layout:
    """How the chips of a job are linked."""

    per_group: int
    """Chips that share the fast link."""
    groups: int
    """How many such groups there are."""

    @classmethod
    def of(cls, placement: Placement, pool: Pool) -> "Layout":
        """A pod is a group: pods talk over the network even on one node. On a TPU the whole slice is one."""
        if pool.slice is not None and placement.chips % pool.slice.chips == 0:
            return cls(pool.slice.chips, placement.chips // pool.slice.chips)
        return cls(placement.chips_per_replica, placement.replicas)


def seconds_per_byte(per_group: Ints, groups: Ints, inside: Floats, between: Floats) -> Floats:
    """Time of a ring all-reduce of one byte, first within the groups, then between them; 0 on one chip.

    inside, between: bytes a second of the links.
    """
    return 2.0 * (per_group - 1) / per_group / inside + 2.0 * (groups - 1) / groups / between
