"""Adoption: an object that somebody else made, and what may be done to it."""

from __future__ import annotations

from pydantic import Field

from rightpool.api.choices import AdoptionChange
from rightpool.api.model import ApiModel
from rightpool.api.rules import Rule, validations
from rightpool.api.wording import brief

MAX_OBJECT_NAME = 253
MAX_SHOWN = 40


class WorkloadRef(ApiModel):
    """An object of the same namespace that runs already, such as a Job or a JobSet. It stays whoever's it is."""

    api_version: str = Field(min_length=1, max_length=128)
    """Its apiVersion, such as batch/v1."""

    kind: str = Field(min_length=1, max_length=63)
    """Its kind, such as Job."""

    name: str = Field(
        max_length=MAX_OBJECT_NAME,
        json_schema_extra=validations(
            Rule(
                "self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of an object in this namespace, only a-z, 0-9, '-' and '.': correct it",
            )
        ),
    )
    """Its name."""

    def __str__(self) -> str:
        """As messages name it, such as Job train; they have no room for a name of 253 characters."""
        return f"{brief(self.kind, MAX_SHOWN)} {brief(self.name, MAX_SHOWN)}"


class Adoption(ApiModel):
    """What may be done to the object that `workloadRef` names."""

    change: AdoptionChange = AdoptionChange.RECOMMEND
    """Recommend: nothing. Where it would be better off is in the status. Suspend: it is suspended, changed as far as
    its kind lets it, and resumed. Recreate: and where its kind takes no other size, it is deleted and made anew, under
    its name and as it was otherwise."""
