"""Pod sets: what a workload's pods are made from. One set is scaled, and others stay as they are, such as a driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class PodSet(NamedTuple):
    """The pods of a workload that are made from one template."""

    name: str
    """Its role, which its pods have as a label."""

    template: Mapping[str, Any]
    """As the user wrote it."""

    chip_container: str | None = None
    """The container that gets the chips. None: the template has one container alone."""

    pods: int = 1
    """How many at the start. Where the set is scaled, what is in force afterwards is in the placement."""

    chips: int = 1
    """Chips of each pod at the start; 0: its pods get none, and stay as many as they are."""

    apart: str = ""
    """Label of nodes that its units, such as the Jobs of a JobSet, are kept apart by: the nodes of one have one value,
    which no other's have. Empty: they may be mixed."""

    settings: str = ""
    """What its pods are made of beside the template, as text: another text is another workload."""

    @property
    def scaled(self) -> bool:
        """Whether the placement says how many pods there are, where, and with how many chips. So it is of one set."""
        return self.chips > 0


def scaled_of(pod_sets: Iterable[PodSet]) -> PodSet:
    """The set that is scaled."""
    return next(pod_set for pod_set in pod_sets if pod_set.scaled)
