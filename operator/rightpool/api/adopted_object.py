"""What a status keeps of an adopted object."""

from __future__ import annotations

from rightpool.api.record import Record
from rightpool.api.value_object import value_object


@value_object
class AdoptedObject(Record):
    """The object that `spec.workloadRef` names, as it was found."""

    uid: str
    """Tells it from a later one of the name, which is another workload."""

    original: str | None = None
    """What it was before the operator first changed it, as JSON. Absent: it was not changed, or its user has since."""
