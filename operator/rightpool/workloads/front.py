"""The Services at which a server's requests come in. They stay while Revisions come and go."""

from collections.abc import Collection
from typing import Any, Final

from rightpool.contract import FIELD_MANAGER, LABEL_JOB, LABEL_REVISION, LABEL_SERVING
from rightpool.workloads.names import LABEL_MANAGED_BY
from rightpool.workloads.owner import Owner

SERVES: Final = {LABEL_SERVING: "true"}
"""Labels of pods that requests are sent to, and of the Service that sends them."""
FRONTS: Final = ",".join(f"{label}={value}" for label, value in SERVES.items())
"""Selects these Services, and none of a gang's."""


def beside_of(name: str) -> str:
    """Name of the Service whose requests go to the new Revision while a move shares them by weights."""
    return f"{name}-next"


def build_front(owner: Owner, name: str, port: int, answer: Collection[int]) -> dict[str, Any]:
    """A Service, owned by the ProfiledJob. It takes the pods of one Revision, or of all that there are, once they are
    ready. answer: numbers of the Revisions that requests come to."""
    revision = {LABEL_REVISION: str(*answer)} if len(answer) == 1 else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {LABEL_JOB: owner.name, LABEL_MANAGED_BY: FIELD_MANAGER, **SERVES},
            "ownerReferences": [owner.reference],
        },
        "spec": {
            "selector": {LABEL_JOB: owner.name, **SERVES, **revision},
            "ports": [{"name": "requests", "port": port, "targetPort": port, "protocol": "TCP"}],
        },
    }
