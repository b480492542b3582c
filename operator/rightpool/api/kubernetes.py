"""Resources of the Kubernetes API and their paths."""

from pathlib import Path
from typing import Final
from urllib.parse import quote

from rightpool.api.value_object import value_object

SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where a pod finds the namespace that it runs in."""


@value_object
class Resource:
    """One kind of object."""

    group: str
    """Empty for the core group."""

    version: str
    """Such as v1."""

    kind: str
    """As in an object's `kind`."""

    plural: str
    """As in a path."""

    namespaced: bool = True
    """Whether its objects belong to a namespace."""

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


JOBS: Final = Resource("batch", "v1", "Job", "jobs")
"""Kubernetes' own Jobs: children of one kind, and the benchmark of a calibration."""
