"""The published cluster, traces and results of Sia (SOSP'23): 64 chips of three kinds, 160 jobs a trace."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rightpool.api.placement import Placement


@dataclass(frozen=True, slots=True)
class Chips:
    """One kind of the cluster's chips."""

    nodes: int
    """How many there are."""
    per_node: int
    """Chips of each."""
    price: float
    """Dollars a chip-hour."""

    @property
    def total(self) -> int:
        """Of all nodes."""
        return self.nodes * self.per_node


CLUSTER: Final[Mapping[str, Chips]] = {
    "aws": Chips(6, 4, 0.978),  # T4
    "rtx": Chips(3, 8, 0.60),  # 2080 Ti
    "dgx-ext": Chips(2, 8, 4.096),  # A100
}
"""By name in the files."""

TRACES: Final = tuple(f"philly-{number}" for number in range(1, 9)) + tuple(
    f"saturn-{number}" for number in range(1, 11)
)
"""All that Sia's results were published of."""

TUNED_ON: Final = TRACES[:2]
"""Those that constants were chosen on."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job of a trace."""

    name: str
    """Its own."""
    application: str
    """What it runs."""
    came: int
    """Seconds since the beginning."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a fleet did in a trace."""

    hours: float
    """Mean time from submission to end."""
    p99: float
    """Its 99th percentile, hours."""
    makespan: float
    """Hours until the last job had ended."""
    chip_hours: float
    """A job."""
    dollars: float
    """A job."""
    restarts: float
    """A job, after its first start."""
    late: float = math.nan
    """The share of jobs that end later than in Sia's published run; NaN where its ends were not published."""


def placements() -> tuple[Placement, ...]:
    """What a job can have: one, two, four or eight chips of a node, or whole nodes."""
    found = []
    for pool, chips in CLUSTER.items():
        found += [Placement(pool, size, 1) for size in (1, 2, 4, 8) if size <= chips.per_node]
        found += [Placement(pool, nodes * chips.per_node, nodes) for nodes in range(2, chips.nodes + 1)]
    return tuple(found)


def placed(pool: str, shape: str) -> Placement:
    """By the shape that the files have: chips on each node, a digit each."""
    return Placement(pool, sum(map(int, shape)), len(shape))


def arrivals(folder: Path, trace: str) -> list[Arrival]:
    """The jobs of a trace."""
    kind, number = trace.rsplit("-", 1)
    with (folder / "workloads" / kind / f"workload-{number}.csv").open(encoding="utf-8") as lines:
        return [Arrival(row["name"], row["application"], int(float(row["time"]))) for row in csv.DictReader(lines)]


def results(folder: Path, policy: str = "sia") -> dict[str, Result]:
    """What was published, by trace."""
    found = {}
    with (folder / "summary.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["policy"] != policy:
                continue
            held, jobs = json.loads(row["gpu_h"]), int(row["jobs"])
            found[row["run"].removeprefix(f"{policy}-")] = Result(
                float(row["avg_jct_h"]),
                float(row["p99_jct_h"]),
                float(row["makespan_h"]),
                sum(held.values()) / jobs,
                sum(hours * CLUSTER[pool].price for pool, hours in held.items()) / jobs,
                float(row["restarts_per_job"]),
            )
    return found
