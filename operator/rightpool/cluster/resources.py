"""The resources that we read and write, as the API server's paths name them."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from rightpool.contract import GROUP, VERSION


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object. group: "" for the core group."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As in an object's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Path of a collection or an object. A namespaced resource without a namespace means all namespaces."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        if subresource is not None:
            parts.append(subresource)
        return "/" + "/".join(parts)


PROFILED_JOBS: Final = Resource(GROUP, VERSION, "ProfiledJob", "profiledjobs")
ACCELERATOR_POOLS: Final = Resource(GROUP, VERSION, "AcceleratorPool", "acceleratorpools", namespaced=False)
PLACEMENT_POLICIES: Final = Resource(GROUP, VERSION, "PlacementPolicy", "placementpolicies", namespaced=False)
JOBS: Final = Resource("batch", "v1", "Job", "jobs")
PODS: Final = Resource("", "v1", "Pod", "pods")
NODES: Final = Resource("", "v1", "Node", "nodes", namespaced=False)
LEASES: Final = Resource("coordination.k8s.io", "v1", "Lease", "leases")
SERVICES: Final = Resource("", "v1", "Service", "services")
EVENTS: Final = Resource("events.k8s.io", "v1", "Event", "events")
