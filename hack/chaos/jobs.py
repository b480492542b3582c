"""The jobs of a campaign: simulated ones that play back measurements, and real containers that only wait."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from chaos.ground import TENANTS

Body = dict[str, Any]
SIMULATION: Final = "simulation.rightpool.dev/"
WORKLOADS: Final = ("resnet50", "bert")


@dataclass(frozen=True, slots=True)
class Slot:
    """A job's place in a campaign: the name stays, the job may be deleted and made anew."""

    namespace: str
    name: str
    real: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def slots(count: int, real: int = 2) -> list[Slot]:
    """`count` places over all tenants, the last `real` of them with real containers."""
    return [
        Slot(
            TENANTS[index % len(TENANTS)],
            f"{'real' if index >= count - real else 'job'}-{index:03}",
            index >= count - real,
        )
        for index in range(count)
    ]


def spec_of(slot: Slot, chance: random.Random) -> Body:
    """A spec that the API server takes and that has somewhere to go."""
    if slot.real:
        container: Body = {"name": "trainer", "image": "pause:dev", "imagePullPolicy": "Never"}
        return {
            "workload": {"job": {"chipsPerReplica": 1, "template": {"spec": {"containers": [container]}}}},
            "elasticity": {"minChips": 1, "maxChips": 1},
            "placement": {"pools": {"allow": ["dev"]}},
            "checkpoint": {"mode": "None"},
            "profiling": {"mode": "Off"},
        }
    replicas = chance.choice([1, 1, 2])
    annotations = {
        SIMULATION + "workload": chance.choice(WORKLOADS),
        SIMULATION + "warm-up": "0s",
        SIMULATION + "checkpoint-delay": "500ms",
        SIMULATION + "start-delay": chance.choice(["200ms", "1s", "3s"]),
        SIMULATION + "stop-delay": chance.choice(["100ms", "300ms", "2s"]),
    }
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]},
    }
    return {
        "workload": {"job": {"chipsPerReplica": 1, "replicas": replicas, "template": template}},
        "elasticity": {"minChips": 1, "maxChips": 4},
        "placement": {"pools": {"allow": chance.choice([["a100", "a10g"], ["a10g", "a100"]])}},
        "targets": {"objective": chance.choice(["MinimizeCost", "MinimizeCost", "MinimizeTime", "Balanced"])},
        "checkpoint": {"mode": chance.choice(["Signal", "Signal", "Periodic", "None"]), "timeout": "4s"},
        "profiling": {"interval": "1s", "window": "6s"},
        "adaptation": {"cooldown": "2s", "maxMoves": 1000, "minSavings": "0.05"},
    }
