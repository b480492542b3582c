"""The pools of a fleet as a prediction sees them: columns, one entry a pool."""

from collections.abc import Iterable

import numpy as np

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
