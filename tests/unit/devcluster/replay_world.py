"""Pods, nodes and a table for the tests of the replay, with round numbers."""

import hashlib
from datetime import UTC, datetime
from typing import Any

from devcluster.replay.fleet import Fleet
from devcluster.replay.pod import SimulatedPod, parse_node, parse_pod
from devcluster.replay.table import Kind, Row, Table

NOW = 1_800_000_000.0
TOKEN = "secret"


def row(chips: int = 8, samples_per_second: float = 800.0, **changes: Any) -> Row:
    values: dict[str, Any] = {
        "workload": "toy",
        "accelerator": "A10G-24GB",
        "chips": chips,
        "batch_per_chip": 10,
        "samples_per_second": samples_per_second,
        "chip_busy": 0.9,
        "compute_active": 0.8,
        "matrix_active": 0.4,
        "memory_bandwidth": 0.5,
        "memory_used_gib": 10.0,
        "memory_total_gib": 22.0,
        "exposed_communication": 0.2,
        "input_wait": 0.02,
        "power_watts": 200.0,
        "kind": Kind.PUBLISHED,
        "source": "a test",
        "read": "2026-11-21",
        "note": "made up",
    }
    return Row(**(values | changes))


def table() -> Table:
    return Table([row(4, 400.0), row(8, 800.0)])


def node_object(name: str = "a10g-0") -> dict[str, Any]:
    labels = {"simulation.rightpool.dev/pool": "a10g", "karpenter.k8s.aws/instance-gpu-name": "a10g"}
    return {"metadata": {"name": name, "labels": labels}}


def pod_object(
    index: int = 0,
    *,
    world: int = 1,
    started: float | None = NOW,
    phase: str = "Running",
    mode: str = "Signal",
    job: str = "job",
    **annotations: str,
) -> dict[str, Any]:
    """A pod of four chips as the API server shows it. annotations: without prefix, `_` for `-`."""
    prefix = "simulation.rightpool.dev/"
    noted = {"workload": "toy", "warm_up": "0s", "checkpoint_every": "never"} | annotations
    status: dict[str, Any] = {"phase": phase if started is not None else "Pending"}
    if started is not None:
        moment = datetime.fromtimestamp(started, UTC).isoformat().replace("+00:00", "Z")
        status |= {"podIP": f"127.9.0.{index + 1}"}
        status |= {"containerStatuses": [{"name": "main", "state": {"running": {"startedAt": moment}}}]}
    return {
        "metadata": {
            "name": f"{job}-{index}",
            "namespace": "team",
            "uid": f"{job}-uid-{index}",
            "labels": {
                "rightpool.dev/profiledjob": job,
                "rightpool.dev/revision": "1",
                "rightpool.dev/pool": "cheap",
            },
            "annotations": {prefix + key.replace("_", "-"): value for key, value in noted.items()},
        },
        "spec": {
            "nodeName": "a10g-0",
            "initContainers": [
                {
                    "name": "rightpool-profiler",
                    "env": [
                        {"name": "RIGHTPOOL_TOKEN_SHA256", "value": hashlib.sha256(TOKEN.encode()).hexdigest()},
                        {"name": "RIGHTPOOL_CHECKPOINT_MODE", "value": mode},
                    ],
                }
            ],
            "containers": [
                {
                    "name": "main",
                    "env": [{"name": "WORLD_SIZE", "value": str(world)}],
                    "resources": {"limits": {"nvidia.com/gpu": "4", "cpu": "8", "memory": "64Gi"}},
                }
            ],
        },
        "status": status,
    }


def pod(index: int = 0, **changes: Any) -> SimulatedPod:
    parsed = parse_pod(pod_object(index, **changes))
    assert parsed is not None
    return parsed


class World:
    """A fleet with one node, and the pods that it reported as lost."""

    def __init__(self, *pods: SimulatedPod, now: float = NOW) -> None:
        self.lost: list[str] = []
        self.fleet = Fleet(table().at, lambda pod: self.lost.append(pod.name))
        self.fleet.replace_nodes([parse_node(node_object())], now)
        self.fleet.replace_pods(pods, now)


def metrics_of(page: str) -> dict[str, float]:
    """Each line of an exposition by its name with labels."""
    lines = [line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#")]
    assert len({name for name, _ in lines}) == len(lines), "a series twice"
    return {name: float(value) for name, value in lines}
