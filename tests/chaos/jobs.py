"""The jobs of a campaign: simulated ones that replay measurements, of which a third are objects of users' that are
adopted, and real containers that only wait."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from rightpool.api.kubernetes import JOBS
from tests.chaos.environment import POOLS, TENANTS

Body = dict[str, Any]
SIMULATION: Final = "simulation.rightpool.dev/"
WORKLOADS: Final = ("resnet50", "bert")


@dataclass(frozen=True, slots=True)
class Slot:
    """A job's name in a campaign: the job itself may be deleted and created again."""

    namespace: str
    name: str
    real: bool
    adopted: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def slots(count: int, real: int = 2) -> list[Slot]:
    """`count` slots over all tenants, the last `real` of them with real containers."""
    return [_slot(index, index >= count - real) for index in range(count)]


def _slot(index: int, real: bool) -> Slot:
    adopted = not real and index // len(TENANTS) % 3 == 0  # in each tenant every third
    kind = "real" if real else "own" if adopted else "job"
    return Slot(TENANTS[index % len(TENANTS)], f"{kind}-{index:03}", real, adopted)


def object_of(slot: Slot, rng: random.Random) -> Body:
    """The Job that a user makes himself, with a place of his own choice."""
    pool, pods = rng.choice(["a100", "a10g"]), rng.choice([1, 1, 2])
    container = {"name": "trainer", "image": "example.com/trainer:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {
        "nodeSelector": dict(POOLS[pool]["nodeSelector"]),
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "restartPolicy": "Never",
        "containers": [container],
    }
    return {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 1_000_000,
        "template": {"metadata": {"annotations": _play(rng)}, "spec": pod},
    }


def spec_of(slot: Slot, rng: random.Random) -> Body:
    """A random valid spec with at least one feasible pool."""
    if slot.real:
        container: Body = {"name": "trainer", "image": "pause:dev", "imagePullPolicy": "Never"}
        return {
            "workload": {"job": {"chipsPerReplica": 1, "template": {"spec": {"containers": [container]}}}},
            "elasticity": {"minChips": 1, "maxChips": 1},
            "placement": {"pools": {"allow": ["dev"]}},
            "checkpoint": {"mode": "None"},
            "profiling": {"mode": "Off"},
        }
    if slot.adopted:
        return {
            "workloadRef": {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": slot.name},
            "adoption": {"change": "Suspend"},
            "placement": {"pools": {"allow": rng.choice([["a100"], ["a10g"]])}},
            "checkpoint": {"mode": "None"},  # without the profiler nobody could ask for a save
            "profiling": {"interval": "1s", "window": "6s"},
            "adaptation": {"cooldown": "2s", "maxMoves": 1000},
        }
    replicas, save = rng.choice([1, 1, 2]), rng.choice(["Signal", "Signal", "Periodic", "None"])
    gives = save != "None" and rng.random() < 0.7  # who does may have more than all can
    template = {
        "metadata": {"annotations": _play(rng)},
        "spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]},
    }
    return {
        "workload": {"job": {"chipsPerReplica": 2, "replicas": replicas, "template": template}},
        "elasticity": {"minChips": 2, "maxChips": 8 if gives else 4, "batch": "PerChip"},
        "placement": {"pools": {"allow": rng.choice([["a100", "a10g"], ["a10g", "a100"]])}},
        "targets": {"objective": rng.choice(["MinimizeCost", "MinimizeCost", "MinimizeTime", "Balanced"])},
        "checkpoint": {"mode": save, "timeout": "4s"},
        "profiling": {"interval": "1s", "window": "6s"},
        "adaptation": {
            "cooldown": "2s",
            "maxMoves": 1000,
            "minSavings": "0.05",
            "yield": "Move" if gives else "Never",
        },
    }


def _play(rng: random.Random) -> dict[str, str]:
    return {
        SIMULATION + "workload": rng.choice(WORKLOADS),
        SIMULATION + "warm-up": "0s",
        SIMULATION + "checkpoint-delay": "500ms",
        SIMULATION + "start-delay": rng.choice(["200ms", "1s", "3s"]),
        SIMULATION + "stop-delay": rng.choice(["100ms", "300ms", "2s"]),
    }
