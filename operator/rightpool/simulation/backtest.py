"""The check of a simulation: each job where it truly was and when, at the rates that the simulation would take.

What is off is then the rates: at home those of its last measurement, elsewhere those that are predicted from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rightpool.api.units import HOUR
from rightpool.prediction.predictor import Predictor
from rightpool.simulation.history import History, HistoryWork

OFF: Final = 0.10
"""A simulation that is off by more than this share is not to be believed."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """How far off jobs are, placed as they were."""

    jobs: int
    """With a measured rate or counted work: of others nothing is compared."""
    moved: int
    """Of those, jobs that were at more than one place, of which one alone is taken as measured."""
    completion: float
    """Mean time from arrival to end, as a share of what it was, less 1."""
    chip_hours: float
    """The same of chip-hours."""
    nine_in_ten: float
    """Nine in ten jobs are off by no more than this share of their time from arrival to end."""

    @property
    def holds(self) -> bool:
        """Whether the simulation is to be believed."""
        return max(abs(self.completion), abs(self.chip_hours)) <= OFF


def backtest(history: History, model: Predictor) -> Backtest:
    """Replay all jobs of which more than their times is known."""
    works = history.works(model, lambda _: 0.0, by_home=True)
    ended, were, chips, held, moved = [], [], [], [], 0
    for record, home, work in zip(history.records, history.homes, works, strict=True):
        if not record.work or not home.rate:
            continue
        end, used = _replayed(work)
        moved += len(record.stays) > 1
        ended.append(end - record.arrived)
        were.append(record.ended - record.arrived)
        chips.append(used)
        held.append(sum(stay.placement.chips * stay.seconds for stay in record.stays) / HOUR)
    if not ended:
        return Backtest(0, 0, 0.0, 0.0, 0.0)
    off = np.abs(np.array(ended) - np.array(were)) / np.maximum(were, 1.0)
    return Backtest(len(ended), moved, _off(ended, were), _off(chips, held), float(np.percentile(off, 90)))


def _replayed(work: HistoryWork) -> tuple[float, float]:
    """When it ends, and the chip-hours that it takes."""
    left, used = work.units, 0.0
    stays = work.rates.record.stays
    for stay in stays:
        rate = max(work.rates.true(stay.placement), 1e-12)
        needed = stay.lost + left / rate
        seconds = needed if stay is stays[-1] else min(needed, stay.seconds)
        used += stay.placement.chips * seconds / HOUR
        left -= rate * max(0.0, seconds - stay.lost)
        if left <= 1e-9 * work.units:
            break
    return stay.begin + seconds, used


def _off(found: Sequence[float], truth: Sequence[float]) -> float:
    return sum(found) / sum(truth) - 1.0 if sum(truth) else 0.0
