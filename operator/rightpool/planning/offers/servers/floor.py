"""The floor of replicas: what the peak at this time of day needed in the last seven days."""

from __future__ import annotations

from typing import Final

import numpy as np

from rightpool.api.units import DAY, HOUR
from rightpool.prediction.columns import Floats
from rightpool.profiles.demand import SLOT

DAYS: Final = 7
"""Of the record that count."""
HELD: Final = 900.0
"""Seconds for which a floor stays."""

_AROUND: Final = 4  # slots before and after that count: an hour
_WINDOWS: Final = round(HELD / SLOT)
_SLOTS: Final = round(DAY / HELD)


def usual_peaks(counts: Floats) -> Floats:
    """For each window the highest rate of a window within an hour of that time on any day of the record, requests a
    second: what a floor follows that knows the record. The record starts anywhere, and NaN is unknown."""
    slots = _peaks(counts)
    days = -(-len(slots) // _SLOTS)
    table = np.full((days, _SLOTS), 0.0)
    table.ravel()[: len(slots)] = slots
    daily = _around(np.tile(table.max(axis=0), 3))[_SLOTS : 2 * _SLOTS]
    found: Floats = np.repeat(np.resize(daily, len(slots)), _WINDOWS)[: len(counts)]
    return found


def floors(counts: Floats) -> Floats:
    """For each window the rate that its floor is for, by what came before it: the peak of the last DAYS days within an
    hour of this time, and of the last hour. Nothing is known on the first day but its last hour."""
    slots = _peaks(counts)
    near = _around(slots)
    found = np.zeros(len(slots))
    for day in range(1, DAYS + 1):
        back = day * _SLOTS
        if back < len(slots):
            found[back:] = np.maximum(found[back:], near[: len(slots) - back])
    for slot in range(1, _AROUND + 1):
        found[slot:] = np.maximum(found[slot:], slots[: len(slots) - slot])
    whole: Floats = np.repeat(found, _WINDOWS)[: len(counts)]
    return whole


def floor_now(counts: Floats) -> float | None:
    """The rate that a floor is for right after a record: the peak of its days from two hours before this time to an
    hour after it. So it goes up at once, and down an hour after it might. None where nothing is known of those."""
    age = (len(counts) - 0.5 - np.arange(len(counts))) * SLOT % DAY
    near = counts[((age <= 2 * HOUR) | (age >= DAY - HOUR)) & np.isfinite(counts)]
    return float(near.max()) / SLOT if len(near) else None


def _peaks(counts: Floats) -> Floats:
    """The highest rate of a window in each slot."""
    padded = np.zeros(-(-len(counts) // _WINDOWS) * _WINDOWS)
    padded[: len(counts)] = np.nan_to_num(counts)
    highest: Floats = padded.reshape(-1, _WINDOWS).max(axis=1) / SLOT
    return highest


def _around(slots: Floats) -> Floats:
    """The highest within an hour of each."""
    padded = np.pad(slots, _AROUND, mode="edge")
    highest: Floats = np.lib.stride_tricks.sliding_window_view(padded, 2 * _AROUND + 1).max(axis=1)
    return highest
