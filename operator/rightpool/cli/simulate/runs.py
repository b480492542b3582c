"""The simulations: of what is, and of what would be, by the same draws."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from rightpool.cli.decider import Decider
from rightpool.cli.simulate.sources import HistorySource
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.simulation.backtest import OFF, Backtest, backtest
from rightpool.simulation.fleet_figures import FIGURES, FigureRange, PlayedFigures, as_it_was, as_played
from rightpool.simulation.history import History, Scenario


@dataclass(frozen=True, slots=True)
class Played:
    """Simulations of one scenario."""

    runs: tuple[PlayedFigures, ...]
    """One for each draw."""

    def figure(self, name: str) -> FigureRange:
        """One of FIGURES, or the chip-hours of a pool by its name."""
        return FigureRange.of(value_of(run, name) for run in self.runs)

    @property
    def unfinished(self) -> int:
        """Jobs that have not ended in at least one."""
        return max(run.left for run in self.runs)


@dataclass(frozen=True, slots=True)
class Simulated:
    """All that was found."""

    history: History
    """The jobs."""
    check: Backtest
    """Each job placed as it was."""
    was: PlayedFigures
    """As it was."""
    planned: Played
    """As it is now."""
    what_if: Played | None
    """With the changes; None where there are none."""
    pools: tuple[str, ...]
    """Names of all pools that jobs were in or could be in."""
    notes: tuple[str, ...]
    """What is left out."""

    def difference(self, name: str) -> FigureRange | None:
        """What the changes make of a figure, by the same draws."""
        if self.what_if is None:
            return None
        pairs = zip(self.what_if.runs, self.planned.runs, strict=True)
        return FigureRange.of(value_of(one, name) - value_of(other, name) for one, other in pairs)

    def off(self, name: str) -> float:
        """By what share planning anew differs from what was."""
        was = value_of(self.was, name)
        return self.planned.figure(name).mean / was - 1.0 if was else 0.0

    @property
    def holds(self) -> bool:
        """Whether the simulation is as what was. What another scheduler did, planning need not do again."""
        own = all(record.uid for record in self.history.records)
        return self.check.holds and (not own or self.repeats)

    @property
    def repeats(self) -> bool:
        """Whether planning anew comes to what was."""
        return max(abs(self.off("dollars")), abs(self.off("completionHoursMean"))) <= OFF


def simulated(source: HistorySource, what_if: Scenario | None, seeds: int) -> Simulated:
    """Check, then play."""
    history, model = source.history, StepModelPredictor()
    check = backtest(history, model)
    planned = _played(history, source.scenario, model, seeds, "as it is")
    changed = None if what_if is None else _played(history, what_if, model, seeds, "what if")
    was = as_it_was(history, source.scenario.pools)
    names = {*was.chip_hours, *source.scenario.pools}
    return Simulated(history, check, was, planned, changed, tuple(sorted(names)), source.notes)


def value_of(figures: PlayedFigures, name: str) -> float:
    """One of FIGURES, or the chip-hours of a pool by its name."""
    return figures.figures[name] if name in FIGURES else figures.chip_hours.get(name, 0.0)


def relative_changes(found: Simulated) -> list[tuple[str, FigureRange]]:
    """What changes make of each figure that is not 0, as a share of it, by its title. Empty without changes."""
    rows = []
    for name, title in FIGURES.items():
        base, change = found.planned.figure(name).mean, found.difference(name)
        if change is not None and base > 0.0:
            rows.append((title, FigureRange(change.mean / base, change.low / base, change.high / base)))
    return rows


def _played(history: History, scenario: Scenario, model: StepModelPredictor, seeds: int, what: str) -> Played:
    runs = []
    for seed in range(seeds):
        if sys.stderr.isatty():
            print(f"\rsimulating {what}, {seed + 1} of {seeds} ", end="", file=sys.stderr, flush=True)
        jobs = history.played(scenario, model, _drawn(seed), Decider)
        runs.append(as_played(jobs, history, scenario.pools))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return Played(tuple(runs))


def _drawn(seed: int) -> Callable[[str], float]:
    """Numbers by name: the same for each simulation with this seed."""
    known: dict[str, float] = {}

    def draw(name: str) -> float:
        if name not in known:
            known[name] = float(np.random.default_rng([seed, crc32(name.encode())]).standard_normal())
        return known[name]

    return draw
