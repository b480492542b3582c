"""The ProfiledJob that a Revision's objects belong to."""

from dataclasses import dataclass
from typing import Any

from rightpool.contract import GROUP, VERSION


@dataclass(frozen=True, slots=True)
class Owner:
    """Identifies a ProfiledJob in the cluster."""

    namespace: str
    """Where the ProfiledJob is."""
    name: str
    """Of the ProfiledJob."""
    uid: str
    """Tells it from an earlier one of the name."""

    @property
    def reference(self) -> dict[str, Any]:
        """An entry of `metadata.ownerReferences`, so that the object is deleted with the ProfiledJob, and before it."""
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "ProfiledJob",
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
