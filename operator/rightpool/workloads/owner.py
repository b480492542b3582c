"""The ProfiledJob that a Revision's objects belong to."""

from dataclasses import dataclass
from typing import Any

from rightpool.contract import GROUP, VERSION


@dataclass(frozen=True, slots=True)
class Owner:
    """What identifies a ProfiledJob in the cluster."""

    namespace: str
    name: str
    uid: str

    @property
    def reference(self) -> dict[str, Any]:
        """The entry of `metadata.ownerReferences`: deleting the ProfiledJob deletes what it owns, and waits for it."""
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "ProfiledJob",
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
