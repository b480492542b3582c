"""Builders of objects as the API server sends them."""

from __future__ import annotations

from typing import Any

from rightpool.contract import LABEL_JOB, LABEL_REVISION

Body = dict[str, Any]


class Leading:
    """A Lease that this process always holds."""

    transitions = 0

    def held_for(self, seconds: float) -> bool:
        return True


LEADING = Leading()


def profiled_job(
    name: str = "bert", *, uid: str = "uid-1", version: int = 10, generation: int = 1, **spec: Any
) -> Body:
    template = {"spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]}}
    return {
        "apiVersion": "rightpool.dev/v1alpha1",
        "kind": "ProfiledJob",
        "metadata": {
            "name": name,
            "namespace": "research",
            "uid": uid,
            "resourceVersion": str(version),
            "generation": generation,
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {"workload": {"job": {"chipsPerReplica": 4, "replicas": 1, "template": template}}, **spec},
    }


def child(
    revision: int = 1,
    *,
    owner: str = "uid-1",
    kind: str = "ProfiledJob",
    uid: str = "job-1",
    version: int = 20,
    suspend: bool = False,
    **more: Any,
) -> Body:
    api = "rightpool.dev/v1alpha1" if kind == "ProfiledJob" else "example.com/v1"
    return {
        "metadata": {
            "name": f"bert-r{revision}",
            "namespace": "research",
            "uid": uid,
            "resourceVersion": str(version),
            "labels": {LABEL_JOB: "bert", LABEL_REVISION: str(revision)},
            "ownerReferences": [{"apiVersion": api, "kind": kind, "name": "bert", "uid": owner, "controller": True}],
            **more.pop("metadata", {}),
        },
        "spec": {"suspend": suspend, "parallelism": 1},
        "status": more.pop("status", {}),
    }


def pod(revision: int = 1, *, uid: str = "pod-1", owner: str = "job-1", version: int = 30, **more: Any) -> Body:
    ready = more.pop("ready", True)
    return {
        "metadata": {
            "name": uid,
            "namespace": "research",
            "uid": uid,
            "resourceVersion": str(version),
            "labels": {LABEL_JOB: "bert", LABEL_REVISION: str(revision)},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": f"bert-r{revision}", "uid": owner, "controller": True}
            ],
            **more.pop("metadata", {}),
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "trainer", "resources": {"limits": {"nvidia.com/gpu": "4", "cpu": "2"}}}],
        },
        "status": {
            "phase": more.pop("phase", "Running"),
            "podIP": "10.0.0.7",
            "conditions": [{"type": "Ready", "status": str(ready)}],
            **more.pop("status", {}),
        },
    }
