"""Simulated nodes and AcceleratorPools of the known fleet, and what is true of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

from devcluster import replay

Body = dict[str, Any]
SIMULATION: Final = "simulation.rightpool.dev/"
NODE_LABEL: Final = "truth.rightpool.dev/pool"

A100, A10G, FULL, GOLD = "truth-a100", "truth-a10g", "truth-full", "truth-gold"
CORDONED, CLASH, OWN, SILENT = "truth-cordoned", "truth-clash", "truth-own", "truth-silent"

_A100: Final[Body] = {"accelerator": "A100-SXM4-80GB", "chipsPerNode": 8}
_A10G: Final[Body] = {"accelerator": "A10G-24GB", "chipsPerNode": 4}
_CHIP: Final[Body] = {"memory": "48Gi", "memoryGigabytesPerSecond": "864", "teraflops": {"bf16": "181"}}
PRICES: Final[dict[str, float]] = {
    A100: 5.07,
    A10G: 0.70,
    FULL: 0.70,
    GOLD: 3600.0,
    CORDONED: 0.70,
    OWN: 1.25,
    SILENT: 0.70,
}
NODES: Final[dict[str, int]] = {A100: 3, A10G: 2, FULL: 1, GOLD: 1, CORDONED: 2, CLASH: 1, OWN: 2, SILENT: 1}
SPECS: Final[dict[str, Body]] = {
    A100: _A100,
    A10G: _A10G,
    FULL: _A10G,
    GOLD: _A10G,
    SILENT: _A10G,  # nothing is heard from its pods
    CORDONED: _A10G,
    # Of a chip that nobody knows, and without its memory, from which the rest would be estimated.
    CLASH: {"accelerator": "Acme-Two", "chipsPerNode": 8, "chip": {"teraflops": {"bf16": "181"}}},
    OWN: {"accelerator": "Acme-One", "chipsPerNode": 2, "chip": _CHIP},
}
FAULTS: Final = {SILENT: '{"silent": true}'}
"""What the ConfigMap `simulation` has of them; see devcluster/replay."""
USABLE: Final = frozenset(SPECS) - {CORDONED, CLASH}


def pool_spec(name: str) -> Body:
    """As it is applied."""
    price = {"price": {"perChipHour": f"{PRICES[name]:g}"}} if name in PRICES else {}
    return {**SPECS[name], **price, "resourceName": "nvidia.com/gpu", "nodeSelector": {NODE_LABEL: name}}


def chips_of(pool: str) -> int:
    """Chips of all its nodes."""
    return NODES[pool] * int(SPECS[pool]["chipsPerNode"])


def nodes() -> list[Body]:
    """Nodes that no other pool matches. Those of CORDONED take no pods."""
    made = []
    for pool, count in NODES.items():
        for index in range(count):
            name = f"{pool}-{index}"
            room = {"cpu": "512", "memory": "4Ti", "pods": "250", "nvidia.com/gpu": str(SPECS[pool]["chipsPerNode"])}
            labels = {"kubernetes.io/hostname": name, NODE_LABEL: pool}
            labels[SIMULATION + "accelerator"] = SPECS[pool]["accelerator"]
            about = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
            taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
            spec: Body = {"taints": taints, **({"unschedulable": True} if pool == CORDONED else {})}
            made.append({"metadata": about, "spec": spec, "status": {"capacity": room, "allocatable": room}})
    return made


def published_rate(pool: str, chips: int, workload: str = "resnet50") -> float:
    """Samples a second that the simulation plays: as published, see data/replay.csv of the devcluster."""
    table = Path(replay.__file__).parents[1] / "data" / "replay.csv"
    with table.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if (row["workload"], row["accelerator"], int(row["chips"])) == (
                workload,
                SPECS[pool]["accelerator"],
                chips,
            ):
                return float(row["samples_per_second"])
    raise KeyError(f"{workload} on {chips} chips of {pool}")
