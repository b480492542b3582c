"""An application of Sia's traces, as it was measured: seconds of a step on each placement, and what a batch is worth.

A batch of B samples moves a job by gain(B) steps of its smallest batch. Progress a second is the gain of a batch ÷ the
seconds that it takes.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from scipy.interpolate import LinearNDInterpolator

from benchmarks.fleet.published import CLUSTER, placements
from rightpool.api.placement import Placement
from rightpool.prediction.columns import Bools, Floats, Ints

# Seconds of a restart, epochs, and how much slower the simulator lets it be than it was measured.
APPLICATIONS: Final = {
    "cifar10": (50, 100, 1.8),
    "bert": (120, 2, 1.2),
    "deepspeech2": (25, 80, 1.2),
    "yolov3": (80, 50, 1.2),
    "imagenet": (250, 90, 1.2),
}
_SLACK: Final = 1e-8
_BATCHES: Final = 50  # sizes that a job chooses among


class Batch(NamedTuple):
    """How a batch is made."""

    atomic: int
    """Samples that a chip takes at once."""
    accumulations: int
    """How often it adds such before it syncs, besides the last."""


class Application:
    """One application."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.restart, epochs, self.slowdown = APPLICATIONS[name]
        self._read_epochs(folder, epochs)
        self._measured: dict[str, dict[str, Floats]] = {}
        self._wide: dict[str, Floats] = {}
        self._between: dict[str, LinearNDInterpolator] = {}
        self.least: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.one_chip: dict[str, float] = {}
        self._most_of_size: dict[str, dict[int, int]] = {}
        for pool in CLUSTER:
            self._read_pool(folder, pool)
        self._steps: dict[tuple[Placement, int], tuple[float, float]] = {}
        self._gains: dict[int, Floats] = {}
        self._rates: dict[tuple[Placement, Batch], Floats] = {}
        self._choices: dict[Placement, tuple[Ints, Ints, Bools] | None] = {}
        self.places: tuple[Placement, ...] = ()
        self.best: dict[Placement, tuple[Batch, ...]] = {}
        self._tabulate()

    # --- what was measured -------------------------------------------------------------------------------------------

    def _read_epochs(self, folder: Path, epochs: int) -> None:
        of_size = {
            int(path.stem.removeprefix("validation-")): _columns(path)
            for path in (folder / "traces" / self.name).glob("validation-*.csv")
        }
        self.sizes = sorted(of_size)
        self.smallest, self.largest = self.sizes[0], self.sizes[-1]
        rows = [of_size[size] for size in self.sizes]
        self.ends = [min(float(columns["progress"][epoch]) for columns in rows) for epoch in range(epochs)]
        self.square = np.array([columns["grad_sqr"][:epochs] for columns in rows])
        self.variance = np.array([columns["grad_var"][:epochs] for columns in rows])

    def _read_pool(self, folder: Path, pool: str) -> None:
        of_shape: dict[str, list[tuple[float, float, float]]] = {}
        with (folder / "traces" / self.name / f"placements-{pool}.csv").open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                one = float(row["local_bsz"]), float(row["step_time"]), float(row["sync_time"])
                of_shape.setdefault(row["placement"], []).append(one)
        shapes = {shape: np.array(sorted(rows, key=lambda row: row[0])) for shape, rows in of_shape.items()}
        self._measured[pool] = shapes
        sizes = np.concatenate([rows[:, 0] for rows in shapes.values()])
        # The simulator has one such limit by hand.
        by_hand = (self.name, pool) == ("deepspeech2", "rtx")
        self.least[pool], self.most[pool] = int(sizes.min()), 57 if by_hand else int(sizes.max())
        most = self._most_of_size[pool] = {}
        for shape, rows in shapes.items():
            count = sum(map(int, shape))
            most[count] = max(most.get(count, 0), int(rows[:, 0].max()))
        wide = _columns(folder / "traces" / self.name / f"scalability-{pool}.csv")
        names = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
        self._wide[pool] = np.array([wide[name] for name in names]).T
        one_chip = shapes["1"]
        self.one_chip[pool] = float(one_chip[:, 0].max() / one_chip[:, 1].max())

    # --- the truth ---------------------------------------------------------------------------------------------------

    def rates(self, place: Placement, batch: Batch) -> Floats:
        """Progress a second in each epoch."""
        key = place, batch
        found = self._rates.get(key)
        if found is None:
            step, sync = self.step(place, batch.atomic)
            seconds = step + (step - sync) * batch.accumulations
            found = self._rates[key] = self.gain(samples(place, batch)) / seconds / self.slowdown
        return found

    def gain(self, total: int) -> Floats:
        """Steps of the smallest batch that one of these samples makes, in each epoch."""
        found = self._gains.get(total)
        if found is None:
            square, variance = self.gradient(total)
            found = self._gains[total] = (variance + square) / (variance / (total / self.smallest) + square)
        return found

    def gradient(self, total: int) -> tuple[Floats, Floats]:
        """The gradient's square and variance with a batch of so many samples, in each epoch."""
        low = int(np.searchsorted(self.sizes, total, "right")) - 1
        high = int(np.searchsorted(self.sizes, total, "left"))
        if low == high:
            return self.square[low], self.variance[low]
        small, large = self.sizes[low], self.sizes[high]

        def between(rows: Floats) -> Floats:
            found: Floats = ((total - small) * rows[high] + (large - total) * rows[low]) / (large - small)
            return found

        return between(self.square), between(self.variance)

    def step(self, place: Placement, atomic: int) -> tuple[float, float]:
        """Seconds of a step, and of its sync; NaN where that was not measured."""
        key = place, atomic
        if key not in self._steps:
            rows = self._measured[place.pool].get(shape_of(place))
            self._steps[key] = self._guessed(place, atomic) if rows is None else _between(rows, atomic)
        return self._steps[key]

    def _guessed(self, place: Placement, atomic: int) -> tuple[float, float]:
        """By the nearest shapes."""
        if place.pool not in self._between:
            alike: dict[tuple[int, int, float], list[Floats]] = {}
            for shape, rows in self._measured[place.pool].items():
                for row in rows:
                    alike.setdefault((len(shape), sum(map(int, shape)), float(row[0])), []).append(row[1:])
            points = np.array([[*key, *np.mean(alike[key], axis=0)] for key in sorted(alike)])
            points = np.concatenate([points, self._wide[place.pool]])
            self._between[place.pool] = LinearNDInterpolator(points[:, :3], points[:, 3:])
        step, sync = self._between[place.pool]([min(place.replicas, 16), place.chips, atomic])[0]
        return float(step), float(sync)

    def memory(self, place: Placement) -> int:
        """Samples at most that a chip takes at once; 0 where the placement is not possible."""
        rows = self._measured[place.pool].get(shape_of(place))
        if rows is not None:
            return int(rows[:, 0].max())
        wide = self._wide[place.pool]
        enough = wide[(wide[:, 0] >= place.replicas) & (wide[:, 1] >= place.chips)]
        return int(enough[:, 2].max()) if len(enough) else 0

    # --- batches -----------------------------------------------------------------------------------------------------

    def split(self, place: Placement, total: int) -> Batch:
        """How a batch of so many samples is made."""
        each = math.ceil(total / place.chips - _SLACK)
        accumulations = math.ceil(each / self.memory(place) - _SLACK) - 1
        if place.chips == 1 and total > self.smallest:
            accumulations = max(1, accumulations)
        return self.within(place, Batch(math.ceil(each / (accumulations + 1) - _SLACK), accumulations))

    def within(self, place: Placement, batch: Batch) -> Batch:
        """It with no more samples than were measured."""
        atomic = min(batch.atomic, self._most_of_size[place.pool].get(place.chips, batch.atomic))
        return Batch(
            min(atomic, int(self.largest / samples(place, Batch(1, batch.accumulations)))), batch.accumulations
        )

    def choices(self, place: Placement) -> tuple[Ints, Ints, Bools] | None:
        """Batches that a job chooses among: atomic, accumulations, and whether each is possible; None where none is."""
        if place not in self._choices:
            memory = self.memory(place)
            self._choices[place] = self._choosable(place, memory) if memory > 0 else None
        return self._choices[place]

    def _choosable(self, place: Placement, memory: int) -> tuple[Ints, Ints, Bools] | None:
        low = max(self.smallest, self.least[place.pool] * place.chips)
        if low > self.largest:
            return None
        each = np.geomspace(low, self.largest, _BATCHES) / place.chips
        times = np.ceil(each / memory - _SLACK) - 1
        if place.chips == 1:
            times = np.where(each > self.smallest + _SLACK, np.maximum(times, 1), times)
        accumulations = times.astype(np.int64)
        atomic = np.ceil(each / (accumulations + 1) - _SLACK).astype(np.int64)
        return atomic, accumulations, (self.least[place.pool] <= atomic) & (atomic <= memory)

    # --- the best batch ----------------------------------------------------------------------------------------------

    def _tabulate(self) -> None:
        """The best batch and its rate, on each placement that is possible, in each epoch."""
        rates = []
        for place in placements():
            batches = list(self._possible(place))
            if not batches:
                continue
            table = np.array([self.rates(place, batch) for batch in batches])
            best = table.argmax(axis=0)
            self.best[place] = tuple(batches[number] for number in best.tolist())
            rates.append(table.max(axis=0))
        self.places = tuple(self.best)
        self.best_rates = np.array(rates)
        spans = np.diff([0.0, *self.ends])
        rest = np.cumsum((spans / self.best_rates)[:, ::-1], axis=1)[:, ::-1]
        self.rest: Floats = np.concatenate([rest, np.zeros((len(rates), 1))], axis=1)
        """Seconds from the beginning of each epoch to the end of the job, on each of its places."""

    def _possible(self, place: Placement) -> Iterable[Batch]:
        choices = self.choices(place)
        if choices is None:
            return
        batches = {
            self.within(place, Batch(atomic, accumulations))
            for atomic, accumulations, possible in zip(*(column.tolist() for column in choices), strict=True)
            if possible
        }
        for batch in sorted(batches):
            if batch.atomic < 1 or not self.smallest <= samples(place, batch) <= self.largest:
                continue
            step, _ = self.step(place, batch.atomic)
            if step > 0.0:
                yield batch


def samples(place: Placement, batch: Batch) -> int:
    """Of a whole batch."""
    return place.chips * batch.atomic * (batch.accumulations + 1)


def shape_of(place: Placement) -> str:
    """As the files have it: chips on each node, a digit each."""
    return str(place.chips_per_replica) * place.replicas


def _between(rows: Floats, atomic: int) -> tuple[float, float]:
    if not rows[0, 0] <= atomic <= rows[-1, 0]:
        return math.nan, math.nan
    at = min(max(int(np.searchsorted(rows[:, 0], atomic)), 1), len(rows) - 1)
    low, high = rows[at - 1], rows[at]
    step, sync = low[1:] + (high[1:] - low[1:]) / (high[0] - low[0]) * (atomic - low[0])
    return float(step), float(sync)


def _columns(path: Path) -> dict[str, Floats]:
    with path.open(encoding="utf-8") as lines:
        names, *rows = csv.reader(lines)
    table = np.array(rows, dtype=np.float64)
    return {name: table[:, number] for number, name in enumerate(names)}


def applications(folder: Path, names: Sequence[str] = tuple(APPLICATIONS)) -> dict[str, Application]:
    """By name."""
    return {name: Application(folder, name) for name in names}
