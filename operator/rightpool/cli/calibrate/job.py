"""The Job of a calibration: the benchmark on one node of a pool, under the restricted Pod Security Standard."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

from rightpool.api.placement import CapacityType
from rightpool.hardware.pool import Pool
from rightpool.workloads.capacity import spot_tolerations

CONTAINER: Final = "benchmark"
LABEL: Final = "rightpool.dev/calibrates"  # name of the pool
# Of a Job's name, so that Kubernetes can add five letters to it, and six to that of its pod.
_NAME_LIMIT: Final = 50
# Nobody has to delete the Job, whatever becomes of the command.
_KEPT_SECONDS: Final = 300
_USER: Final = 65532


def benchmark_program() -> str:
    """The benchmark, as text."""
    return resources.files("rightpool.cli.calibrate").joinpath("benchmark.py").read_text(encoding="utf-8")


def benchmark_job(
    pool: Pool, namespace: str, *, image: str, platform: str, dtypes: Sequence[str], chips: int, seconds: int
) -> dict[str, Any]:
    """The manifest of the Job. seconds: after which Kubernetes ends it, also where it never started."""
    tolerations = [dict(toleration) for toleration in pool.tolerations]
    tolerations.append({"key": pool.resource_name, "operator": "Exists", "effect": "NoSchedule"})
    tolerations += spot_tolerations(CapacityType.SPOT)
    asked = {pool.resource_name: str(chips)}
    arguments = ["--json", "--platform", platform, "--dtypes", ",".join(dtypes), "--chips", str(chips)]
    container = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", benchmark_program(), *arguments],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "resources": {"requests": {"cpu": "500m", "memory": f"{1 + chips}Gi", **asked}, "limits": asked},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # Processes of one node exchange data there, and a container's own is too small for that.
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "shm", "mountPath": "/dev/shm"}],
    }
    security = {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    labels = {LABEL: pool.name}
    return {
        "metadata": {
            "generateName": f"calibrate-{pool.name}"[:_NAME_LIMIT] + "-",
            "namespace": namespace,
            "labels": labels,
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": seconds,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "nodeSelector": dict(pool.node_selector),
                    "tolerations": tolerations,
                    "securityContext": security,
                    "containers": [container],
                    "volumes": [
                        {"name": "tmp", "emptyDir": {}},
                        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
                    ],
                },
            },
        },
    }
