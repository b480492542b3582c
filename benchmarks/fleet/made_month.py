"""A made month: 300 jobs on three pools, as the records that an operator keeps of jobs that have ended.

    PYTHONPATH=operator python -m benchmarks.fleet.made_month FOLDER

writes FOLDER/month.jsonl and FOLDER/pools.yaml, which `rightpool simulate --history ... --pools ...` reads. Jobs were
placed first come, first served, most on the one pool that they allow; their true rates differ from what is measured
by 3%, and on other chips from what is predicted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rightpool.api.ended_job import EndedJob, Stay
from rightpool.api.placement import Placement
from rightpool.api.status import ProfileStatus

BEGAN: Final = 1_793_491_200.0
"""Unix seconds: 2026-11-01."""
DAY: Final = 86_400.0
POOLS: Final = """\
- {name: a100, accelerator: A100-SXM4-80GB, chips: 32, chipsPerNode: 8, price: 4.10}
- {name: a10g, accelerator: A10G-24GB, chips: 64, chipsPerNode: 4, price: 1.10}
- {name: l4, accelerator: L4-24GB, chips: 32, chipsPerNode: 8, price: 0.80}
"""
CHIPS: Final = {
    "a100": (32, 4.10, "A100-SXM4-80GB"),
    "a10g": (64, 1.10, "A10G-24GB"),
    "l4": (32, 0.80, "L4-24GB"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What some jobs are alike in."""

    name: str
    """Of the program."""
    rates: dict[str, float]
    """Samples a second of one chip, by pool."""
    busy: float
    """Share of the time in which its chips work."""
    memory: float
    """Share of the memory's bandwidth."""


KINDS: Final = (
    Kind("resnet", {"a100": 1400.0, "a10g": 520.0, "l4": 340.0}, 0.9, 0.55),
    Kind("bert", {"a100": 330.0, "a10g": 96.0, "l4": 70.0}, 0.95, 0.35),
    Kind("tabular", {"a100": 9000.0, "a10g": 7200.0, "l4": 6500.0}, 0.35, 0.15),
    Kind("diffusion", {"a100": 21.0, "a10g": 6.1, "l4": 3.9}, 0.97, 0.6),
)


def made_month(jobs: int = 300, seed: int = 7, days: float = 30.0) -> list[EndedJob]:
    """The records, in the order of their ends."""
    return sorted(_records(jobs, np.random.default_rng(seed), days), key=lambda record: record.ended)


def _records(jobs: int, random: np.random.Generator, days: float) -> Iterator[EndedJob]:
    ends: dict[str, list[tuple[float, int]]] = {name: [] for name in CHIPS}
    for number, arrived in enumerate(np.sort(random.uniform(0.0, days * DAY, jobs)).round()):
        kind = KINDS[random.integers(len(KINDS))]
        pool = str(random.choice(["a100", "a100", "a10g", "l4"]))
        chips = int(random.choice([1, 2, 4, 8, 8, 16]))
        begin = _free_at(ends[pool], chips, BEGAN + float(arrived), CHIPS[pool][0])
        seconds = float(np.clip(random.lognormal(np.log(4 * 3600.0), 1.1), 600.0, 3 * DAY))
        rate = kind.rates[pool] * chips**0.93
        place = Placement(pool, chips, max(1, chips // (4 if pool == "a10g" else 8)))
        lost = float(random.uniform(60.0, 240.0))
        stays = [Stay(place, begin, begin + round(seconds), CHIPS[pool][2], _seen(rate, random), lost)]
        work = rate * (seconds - lost)
        if pool == "a100" and random.random() < 0.2:  # moved after an hour, to where it is cheaper
            there = Placement("a10g", chips, max(1, chips // 4))
            other, again = kind.rates["a10g"] * chips**0.93, float(random.uniform(90.0, 200.0))
            left = work - rate * max(0.0, 3600.0 - lost)
            if left > 0.0:
                moved = begin + 3600.0
                stays = [
                    Stay(place, begin, moved, CHIPS[pool][2], _seen(rate, random), lost),
                    Stay(there, moved, moved + round(again + left / other), "A10G-24GB", _seen(other, random), again),
                ]
        for stay in stays:
            ends[stay.placement.pool].append((stay.end, chips))
        held = [(stay.placement.pool, stay.placement.chips * stay.seconds) for stay in stays]
        spec: dict[str, Any] = {}
        if len(stays) == 1 and random.random() < 0.8:
            spec["placement"] = {"pools": {"allow": [pool]}}
        if random.random() < 0.3:
            spec["elasticity"] = {"minChips": max(1, chips // 2), "maxChips": 2 * chips, "batch": "Global"}
        yield EndedJob(
            job=f"team-{number % 4}/{kind.name}-{number}",
            uid=f"made-{number}",
            arrived=BEGAN + float(arrived),
            stays=tuple(stays),
            result="Failed" if random.random() < 0.08 else "Completed",
            replicas=place.replicas,
            chips=chips,
            work=round(work),
            restart=lost,
            spent=sum(CHIPS[name][1] * seconds / 3600.0 for name, seconds in held),
            chip_seconds=sum(seconds for _, seconds in held),
            moves=len(stays) - 1,
            profile=ProfileStatus(chip_busy=kind.busy, memory_bandwidth=kind.memory, compute_active=0.9 * kind.busy),
            spec=spec,
        )


def _seen(rate: float, random: np.random.Generator) -> float:
    return float(rate * np.exp(0.03 * random.standard_normal()))


def _free_at(ends: list[tuple[float, int]], chips: int, at: float, total: int) -> float:
    """When so many chips are free, of a pool that is given out in the order of arrival."""
    for moment in [at, *sorted(end for end, _ in ends if end > at)]:
        if sum(held for end, held in ends if end > moment) + chips <= total:
            return moment
    return at


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "month.jsonl").write_text("".join(record.line + "\n" for record in made_month()), encoding="utf-8")
    (folder / "pools.yaml").write_text(POOLS, encoding="utf-8")
