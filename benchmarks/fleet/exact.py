"""Whether the simulator does what the published one did: fixed placements, and recorded runs placement by placement."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fleet.application import Application, Batch
from benchmarks.fleet.published import CLUSTER, arrivals, placed
from benchmarks.fleet.work import FixedBatch, OwnBatch
from rightpool.api.placement import Placement
from rightpool.simulation.rounds import RoundJob, play


@dataclass(frozen=True, slots=True)
class Exactness:
    """How a run compares with the published one."""

    jobs: int
    """That were compared."""
    off: int
    """Of them, how many end at another second."""
    readings: int = 0
    """Of jobs, at ends of rounds."""
    progress: float = 0.0
    """The largest difference of their progress, as a share of it."""
    epochs: int = 0
    """Of them, how many are in another epoch."""

    @property
    def ok(self) -> bool:
        """Whether nothing differs but what a job's fit of its model owes to the release of SciPy."""
        return not self.off and not self.epochs and self.progress < 1e-4


def fixed(folder: Path, applications: Mapping[str, Application]) -> Exactness:
    """Jobs that stay on one placement with one batch."""
    count = off = 0
    with (folder / "fixed_jct.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            application, place = applications[row["application"]], placed(row["gpu_type"], row["placement"])
            batch = application.split(place, int(row["batch_size"]))
            job = RoundJob("one", 0, FixedBatch(application, batch))
            job.put(place)
            now = 0
            while job.done is None:
                job.live(now, 60)
                now += 60
            count += 1
            same = batch == Batch(int(row["atomic_bsz"]), int(row["accum_steps"])) and job.done == int(row["jct_s"])
            off += not same
    return Exactness(count, off)


def replayed(folder: Path, applications: Mapping[str, Application], trace: str, policy: str = "sia") -> Exactness:
    """A run whose jobs get what they got in the published one, and choose their batches themselves."""
    rounds: dict[int, dict[str, dict[str, str]]] = {}
    with gzip.open(folder / "replay" / f"{policy}-{trace}.csv.gz", "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            rounds.setdefault(int(row["round_end_s"]), {})[row["job"]] = row
    with (folder / "replay" / f"{policy}-{trace}.jct.csv").open(encoding="utf-8") as lines:
        seconds = {row["job"]: float(row["jct_s"]) for row in csv.DictReader(lines)}
    jobs = [RoundJob(one.name, one.came, OwnBatch(applications[one.application])) for one in arrivals(folder, trace)]
    readings = epochs = 0
    progress = 0.0

    def decide(now: int, there: Sequence[RoundJob], _: bool) -> Mapping[str, Placement | None]:
        nonlocal readings, epochs, progress
        given: dict[str, Placement | None] = {}
        for job in there:
            row = rounds.get(now, {}).get(job.name)
            if row is None:
                continue
            readings += 1
            epochs += int(row["epoch"]) != job.epoch
            progress = max(progress, abs(float(row["progress"]) - job.progress) / max(1.0, job.progress))
            if row["placement"] and row["gpu_type"]:
                given[job.name] = placed(row["gpu_type"], row["placement"])
        return given

    play(jobs, {name: chips.total for name, chips in CLUSTER.items()}, decide)
    return Exactness(len(jobs), sum(job.seconds != seconds[job.name] for job in jobs), readings, progress, epochs)
