"""The pools of a fleet as a prediction sees them, in columns with one entry a pool; and a placement as communication
sees it: groups of chips on fast links, and the slow links between the groups."""

from collections.abc import Iterable

import numpy as np

from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.hardware.calibration import USUAL_BANDWIDTH
from rightpool.hardware.clouds import HOST_LABELS
from rightpool.hardware.pool import Pool
from rightpool.prediction.columns import Floats, Ints, floats


@value_object
class Machines:
    """Rows elsewhere name a pool by its place here."""

    pools: tuple[Pool, ...]
    """In the order of their names."""
    index: dict[str, int]
    """Places by name."""
    named: dict[str, Pool]
    """The pools by name."""
    inside: Floats
    """Bytes a second of the links among chips of a group."""
    between: Floats
    """Bytes a second of the links between groups."""
    memory: Floats
    """Bytes a second that programs copy within a chip's memory; infinite where that is not known."""
    host: Ints
    """The kind of host that the chips sit in, as a number."""
    chip: Ints
    """The accelerator, as a number."""

    @classmethod
    def of(cls, pools: Iterable[Pool]) -> "Machines":
        """The columns of these pools."""
        ordered = tuple(sorted(pools, key=lambda pool: pool.name))
        kinds: dict[str, int] = {}
        chips: dict[str, int] = {}
        return cls(
            pools=ordered,
            index={pool.name: place for place, pool in enumerate(ordered)},
            named={pool.name: pool for pool in ordered},
            inside=floats([pool.intra_link.bytes_per_second for pool in ordered]),
            between=floats([pool.inter_link.bytes_per_second for pool in ordered]),
            memory=floats([USUAL_BANDWIDTH * pool.accelerator.memory_bandwidth or np.inf for pool in ordered]),
            host=np.array([kinds.setdefault(_host(pool), len(kinds)) for pool in ordered], dtype=np.int64),
            chip=np.array([chips.setdefault(pool.accelerator.key, len(chips)) for pool in ordered], dtype=np.int64),
        )


def _host(pool: Pool) -> str:
    """What kind of host the chips sit in: the instance type where it is known, else the accelerator stands for it."""
    for label in HOST_LABELS:
        kind = pool.node_selector.get(label) or pool.labels.get(label)
        if kind:
            return kind
    return pool.accelerator.key


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
