"""The jobs of a campaign: simulated ones that replay measurements, and real containers that only wait."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from tests.chaos.environment import TENANTS

Body = dict[str, Any]
SIMULATION: Final = "simulation.rightpool.dev/"
WORKLOADS: Final = ("resnet50", "bert")


@dataclass(frozen=True, slots=True)
class Slot:
    """A job's name in a campaign: the job itself may be deleted and created again."""

    namespace: str
    name: str
    real: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def slots(count: int, real: int = 2) -> list[Slot]:
    """`count` slots over all tenants, the last `real` of them with real containers."""
    return [
        Slot(
            TENANTS[index % len(TENANTS)],
            f"{'real' if index >= count - real else 'job'}-{index:03}",
            index >= count - real,
        )
        for index in range(count)
    ]


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
    replicas = rng.choice([1, 1, 2])
    annotations = {
        SIMULATION + "workload": rng.choice(WORKLOADS),
        SIMULATION + "warm-up": "0s",
        SIMULATION + "checkpoint-delay": "500ms",
        SIMULATION + "start-delay": rng.choice(["200ms", "1s", "3s"]),
        SIMULATION + "stop-delay": rng.choice(["100ms", "300ms", "2s"]),
    }
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]},
    }
    return {
        "workload": {"job": {"chipsPerReplica": 1, "replicas": replicas, "template": template}},
        "elasticity": {"minChips": 1, "maxChips": 4, "batch": "PerChip"},
        "placement": {"pools": {"allow": rng.choice([["a100", "a10g"], ["a10g", "a100"]])}},
        "targets": {"objective": rng.choice(["MinimizeCost", "MinimizeCost", "MinimizeTime", "Balanced"])},
        "checkpoint": {"mode": rng.choice(["Signal", "Signal", "Periodic", "None"]), "timeout": "4s"},
        "profiling": {"interval": "1s", "window": "6s"},
        "adaptation": {"cooldown": "2s", "maxMoves": 1000, "minSavings": "0.05"},
    }
