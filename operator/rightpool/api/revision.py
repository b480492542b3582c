"""A Revision: one placement made into a child workload."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field, WithJsonSchema

from rightpool.api.placement import Placement
from rightpool.api.record import INLINE, Record
from rightpool.api.units import Count, Quantity, UnixTime
from rightpool.api.value_object import value_object

MAX_REVISION: Final = 99_999
"""Of a job's Revisions. Names of children have room for five digits."""


@value_object
class Revision(Record):
    """A placement of a job, and what it was made from."""

    revision: Annotated[int, Field(ge=1, le=MAX_REVISION), WithJsonSchema({"type": "integer", "minimum": 1})]
    """N of the child workload `<job>-r<N>`."""

    placement: Annotated[Placement, INLINE]
    """Where it runs and how big it is."""

    workload_hash: str = ""
    """Of the pod template and the chip container that the Revision was built from, with the variant of its vendor."""

    requested_chips: Count | None = None
    """Chips that spec.workload asked for then, so that a later edit is seen. Absent: as many as are placed."""

    requested_replicas: Count | None = None
    """Replicas that spec.workload asked for then. Absent: as many as are placed."""

    created_at: UnixTime = 0.0
    """When the Revision was decided on."""

    cost_per_hour: Quantity | None = None
    """Dollars an hour, at the newest price that is known; in a migration that has left, at that of then. Absent where
    none is known."""

    since: UnixTime | None = None
    """When every pod of the Revision first ran."""

    generation: int | None = None
    """The newest metadata.generation whose spec allows this placement, so that a later edit is seen."""

    vendor: str | None = None
    """Who makes its chips, and so which of spec.placement.variants is used. Absent: none is."""

    template_vendor: str | None = None
    """Whose chips the template without a variant is taken to run on. Absent: those of its pool."""

    chip: str | None = None
    """Key of its chips in the catalog when it was decided on: a pool may get others. Absent: not known."""

    def with_replicas(self, pods: int) -> Revision:
        """The same with so many pods, each as dear as before; the very object where it has them."""
        here = self.placement
        if here.replicas == pods:
            return self
        return replace(
            self,
            placement=replace(here, chips=here.chips_per_replica * pods, replicas=pods),
            cost_per_hour=None if self.cost_per_hour is None else self.cost_per_hour / here.replicas * pods,
        )

    @property
    def requested(self) -> tuple[int, int]:
        """Chips and replicas that spec.workload asked for."""
        return (
            self.requested_chips or self.placement.chips,
            self.requested_replicas or self.placement.replicas,
        )
