"""Users with rights in one namespace, and the API server's answers to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from devcluster.kubectl import Kubectl
from devcluster.spec import DevclusterError

Object = dict[str, Any]

_OURS: Final = {"apiGroups": ["rightpool.dev"], "verbs": ["*"]}
# Rights of each of them in addition to reading.
RIGHTS: Final[Mapping[str, list[Object]]] = {
    # May write ProfiledJobs and create nothing that runs.
    "writer": [{**_OURS, "resources": ["profiledjobs", "profiledjobs/scale"]}],
    # May do everything with the project's objects in the namespace, including the status, and run Jobs and pods.
    "owner": [
        {**_OURS, "resources": ["*"]},
        {"apiGroups": ["batch", ""], "resources": ["jobs", "pods"], "verbs": ["*"]},
    ],
    # May change Jobs, and neither make nor delete one.
    "changer": [
        {**_OURS, "resources": ["*"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["update", "patch"]},
    ],
    # The rights of an autoscaler.
    "scaler": [{**_OURS, "resources": ["profiledjobs/scale"]}],
}


@dataclass(frozen=True)
class Tenants:
    """Each is impersonated by name, as a user without groups."""

    kubectl: Kubectl
    namespace: str

    def admit(self) -> None:
        """Create their Roles. `editor` has Kubernetes' role `edit`, which the chart extends."""
        objects: list[Object] = []
        for name, rules in RIGHTS.items():
            meta = {"name": f"tenant-{name}", "namespace": self.namespace}
            objects.append(
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": rules}
            )
            objects.append(self._binding(name, {"kind": "Role", "name": f"tenant-{name}"}))
        objects.append(self._binding("editor", {"kind": "ClusterRole", "name": "edit"}))
        self.kubectl.apply(objects)

    def _binding(self, user: str, role: Object) -> Object:
        return {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"tenant-{user}", "namespace": self.namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }

    def refusal(self, user: str, verb: str, body: Object | None = None, *arguments: str) -> str:
        """The API server's error message; empty after success. body: on standard input."""
        command = [verb, *arguments, *(["-f-"] if body is not None else []), f"--as={user}"]
        try:
            self.kubectl(*command, f"--namespace={self.namespace}", stdin=None if body is None else json.dumps(body))
        except DevclusterError as error:
            return str(error)
        return ""

    def patched(self, user: str, kind: str, name: str, change: Object, *arguments: str) -> str:
        """The error message for a merge patch."""
        return self.refusal(
            user, "patch", None, kind, name, "--type=merge", f"--patch={json.dumps(change)}", *arguments
        )

    def job(self, name: str, *, chips: int = 8, template: Object | None = None, **spec: Any) -> Object:
        """A ProfiledJob for simulated nodes."""
        pod = {"containers": [{"name": "trainer", "image": "example.com/train:1"}]}
        full = {
            "metadata": {"annotations": {"simulation.rightpool.dev/workload": "resnet50"}},
            **(template or {}),
            "spec": {**pod, **(template or {}).get("spec", {})},
        }
        return {
            "apiVersion": "rightpool.dev/v1alpha1",
            "kind": "ProfiledJob",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "workload": {"job": {"replicas": 1, "chipsPerReplica": chips, "template": full}},
                "elasticity": {"minChips": chips, "maxChips": 2 * chips, "batch": "PerChip"},
                "placement": {"pools": {"allow": ["a100"]}},
                "adaptation": {"mode": "Recommend"},
                **spec,
            },
        }

    def condition(self, name: str, kind: str) -> Object:
        """A condition of a ProfiledJob; {} if there is none of that type."""
        job = self.kubectl.json("get", "profiledjob", name, f"--namespace={self.namespace}")
        conditions = job.get("status", {}).get("conditions", [])
        return next((dict(c) for c in conditions if c["type"] == kind), {})
