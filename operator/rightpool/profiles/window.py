"""A window: the newest samples of one Revision, in one compact block of numbers.

Ten thousand jobs with thirty samples each must fit in tens of megabytes, so a window keeps rows of doubles, not
objects: the moment, one cell for each Field (NaN where missing), and which of them are derived.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from typing import Final

from rightpool.profiles.sample import Field, Sample

CAPACITY: Final = 120

_FIELDS: Final = tuple(Field)
_COLUMN: Final = {field: number for number, field in enumerate(_FIELDS, start=1)}
_DERIVED: Final = len(_FIELDS) + 1  # a bit set; exact in a double up to 53 fields
_WIDTH: Final = len(_FIELDS) + 2
_EMPTY_ROW: Final = array("d", [0.0, *([math.nan] * len(_FIELDS)), 0.0])


def bounds(ranges: Mapping[Field, tuple[float, float]]) -> tuple[array[float], array[float]]:
    """Rows of the least and the largest values of each field. A field without a range is one that is missing."""
    low, high = _EMPTY_ROW[:], _EMPTY_ROW[:]
    low[0] = low[_DERIVED] = -math.inf
    high[0] = high[_DERIVED] = math.inf
    for field, (least, most) in ranges.items():
        low[_COLUMN[field]], high[_COLUMN[field]] = least, most
    return low, high


class Window:
    """Samples of one Revision in the order of time, `capacity` at most.

    One writer. `version` grows with every change, so that a caller may keep what it computed from an unchanged window.
    """

    __slots__ = ("_cells", "capacity", "version")

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"capacity {capacity}: at least 1 is due")
        self._cells = array("d")
        self.capacity = capacity
        self.version = 0

    def __len__(self) -> int:
        return len(self._cells) // _WIDTH

    def append(self, sample: Sample) -> bool:
        """Adds a sample; False where it was refused: not newer than the newest, or without a single finite value.

        A value that is not finite counts as missing. Steps that went down mean that the Revision's processes were
        started anew: what was before does not describe them, and the window starts again. Only where other pods answer
        than before may steps fall a little, because pods are not read at one moment.
        """
        if not math.isfinite(sample.at) or (self._cells and sample.at <= self._cells[-_WIDTH]):
            return False
        row = _EMPTY_ROW[:]
        row[0] = sample.at
        derived = 0
        found = False
        for field, value in sample.values.items():
            if math.isfinite(value):
                column = _COLUMN[field]
                row[column] = value
                found = True
                if field in sample.derived:
                    derived |= 1 << column
        if not found:
            return False
        row[_DERIVED] = derived
        if self._started_anew(row):
            del self._cells[:]
        self._cells.extend(row)
        if len(self) > self.capacity:
            del self._cells[: (len(self) - self.capacity) * _WIDTH]
        self.version += 1
        return True

    def trim(self, oldest: float) -> None:
        """Forgets samples from before `oldest`, Unix seconds."""
        drop = 0
        cells = self._cells
        while drop < len(cells) and cells[drop] < oldest:
            drop += _WIDTH
        if drop:
            del cells[:drop]
            self.version += 1

    @property
    def newest(self) -> float | None:
        """Unix seconds of the newest sample, None where there is none."""
        return self._cells[-_WIDTH] if self._cells else None

    @property
    def times(self) -> array[float]:
        """Unix seconds of each sample, ascending."""
        return self._cells[::_WIDTH]

    def column(self, field: Field, start: int = 0) -> array[float]:
        """One field of each sample from this one on, NaN where missing."""
        return self._cells[start * _WIDTH + _COLUMN[field] :: _WIDTH]

    def within(self, low: array[float], high: array[float]) -> bool:
        """Whether every field of the newest sample lies between two rows as `bounds` makes them."""
        for value, least, most in zip(self._cells[-_WIDTH:], low, high, strict=True):
            # What was missing has bounds that are not numbers, and is to be missing still.
            if not least <= value <= most and not (value != value and least != least):
                return False
        return True

    def derived(self, start: int = 0) -> frozenset[Field]:
        """Fields of which any reading from this sample on was derived."""
        mask = 0
        for bits in set(self._cells[start * _WIDTH + _DERIVED :: _WIDTH]):
            mask |= int(bits)
        return frozenset(field for field in _FIELDS if mask & 1 << _COLUMN[field]) if mask else frozenset()

    def samples(self) -> Iterator[Sample]:
        """The samples again, oldest first."""
        for start in range(0, len(self._cells), _WIDTH):
            row = self._cells[start : start + _WIDTH]
            mask = int(row[_DERIVED])
            values = {field: row[column] for field, column in _COLUMN.items() if row[column] == row[column]}
            yield Sample(row[0], values, frozenset(field for field in values if mask & 1 << _COLUMN[field]))

    def _started_anew(self, row: array[float]) -> bool:
        steps, before = row[_COLUMN[Field.STEPS]], self._last(Field.STEPS)
        if not steps < before:  # True where missing
            return False
        pods, pods_before = row[_COLUMN[Field.PODS]], self._cells[_COLUMN[Field.PODS] - _WIDTH]
        others = pods < pods_before or pods > pods_before
        return not others or steps < before / 2

    def _last(self, field: Field) -> float:
        """The newest value that the field had, -inf where it had none."""
        for value in reversed(self.column(field)):
            if value == value:
                return value
        return -math.inf
