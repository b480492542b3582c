"""A window: the newest samples of one Revision, in one array.

Ten thousand jobs with thirty samples each must fit in tens of megabytes, so a window stores rows of doubles and not
objects: the time, one cell for each field that the job has (NaN if missing), and a bit set of the derived fields.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from typing import Final

from rightpool.api.traits import UNKNOWN_TRAITS
from rightpool.api.value_object import value_object
from rightpool.profiles.sample import Field, Sample

CAPACITY: Final = 120

_FIELDS: Final = tuple(Field)
_BIT: Final = {field: number for number, field in enumerate(_FIELDS)}  # exact in a double for up to 53 fields
assert len(_FIELDS) <= 53


@value_object
class _Layout:
    """The cells of a row: the time, a cell for each field, and the bit set of derived ones."""

    fields: tuple[Field, ...]
    columns: Mapping[Field, int]
    empty: array[float]
    width: int


_LAYOUTS: Final[dict[frozenset[Field], _Layout]] = {}


def _layout(fields: frozenset[Field]) -> _Layout:
    """One for all windows with these fields; there are about as many as kinds of sources."""
    found = _LAYOUTS.get(fields)
    if found is None:
        ordered = tuple(one for one in _FIELDS if one in fields)
        columns = {one: number for number, one in enumerate(ordered, start=1)}
        empty = array("d", [0.0, *([math.nan] * len(ordered)), 0.0])
        found = _LAYOUTS[fields] = _Layout(ordered, columns, empty, len(empty))
    return found


@value_object
class Bounds:
    """The smallest and largest value of each cell of a row; NaN for fields that must be missing."""

    layout: _Layout
    """Which cell is which field."""
    low: array[float]
    """A row."""
    high: array[float]
    """A row."""


class Window:
    """At most `capacity` samples of one Revision, in order of time.

    There is one writer. `version` grows with every change, so that callers can cache what they compute. `traits` is
    what the program said last of its model, `span` that of the newest sample.
    """

    __slots__ = ("_cells", "_layout", "capacity", "span", "traits", "version")

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"capacity {capacity}: at least 1 is required")
        self._cells = array("d")
        self._layout = _layout(frozenset())
        self.capacity = capacity
        self.version = 0
        self.traits = UNKNOWN_TRAITS
        self.span = 0.0

    def __len__(self) -> int:
        return len(self._cells) // self._layout.width

    def append(self, sample: Sample) -> bool:
        """Append a sample. False if it is rejected: not newer than the newest one, or without a finite value.

        A value that is not finite counts as missing. A decrease of steps means that the Revision's processes restarted;
        then all earlier samples are dropped. If the number of pods in the sample changed, a small decrease is accepted,
        because pods are read at different times.
        """
        if not math.isfinite(sample.at) or (self._cells and sample.at <= self._cells[-self._layout.width]):
            return False
        values = sample.values
        if not math.isfinite(sum(values.values())):
            values = {one: value for one, value in values.items() if math.isfinite(value)}
        if not values:
            return False
        if not values.keys() <= self._layout.columns.keys():
            self._widen(frozenset(values))
        value_of = values.get
        row = array("d", [sample.at, *[value_of(one, math.nan) for one in self._layout.fields], 0.0])
        if sample.derived:
            row[-1] = sum(1 << _BIT[one] for one in sample.derived if one in values)
        if self._restarted(row):
            del self._cells[:]
            self.traits = UNKNOWN_TRAITS
        self._cells.extend(row)
        if sample.traits is not None and sample.traits != self.traits:
            self.traits = sample.traits
        self.span = sample.span
        if len(self) > self.capacity:
            del self._cells[: (len(self) - self.capacity) * self._layout.width]
        self.version += 1
        return True

    def _widen(self, fields: frozenset[Field]) -> None:
        """Make cells for these fields too."""
        before, cells = self._layout, self._cells
        self._layout = layout = _layout(fields.union(before.fields))
        self._cells = array("d")
        for start in range(0, len(cells), before.width):
            row = layout.empty[:]
            row[0], row[-1] = cells[start], cells[start + before.width - 1]
            for one, column in before.columns.items():
                row[layout.columns[one]] = cells[start + column]
            self._cells.extend(row)

    def trim(self, oldest: float) -> None:
        """Drop samples older than `oldest`, Unix seconds."""
        drop = 0
        cells, width = self._cells, self._layout.width
        while drop < len(cells) and cells[drop] < oldest:
            drop += width
        if drop:
            del cells[:drop]
            self.version += 1

    @property
    def newest(self) -> float | None:
        """Unix seconds of the newest sample; None if there is none."""
        return self._cells[-self._layout.width] if self._cells else None

    @property
    def times(self) -> array[float]:
        """Unix seconds of each sample, ascending."""
        return self._cells[:: self._layout.width]

    def columns(self, start: int = 0) -> Iterator[tuple[Field, list[float]]]:
        """Each field of which any sample may have a value, in all samples from index `start` on; NaN if missing. In
        one pass, because most profiles need them all."""
        cells, width = self._cells.tolist(), self._layout.width
        for column, one in enumerate(self._layout.fields, start * width + 1):
            yield one, cells[column::width]

    def column(self, field: Field, start: int = 0) -> array[float]:
        """One field of all samples from index `start` on; NaN if missing."""
        column = self._layout.columns.get(field)
        if column is None:
            return array("d", [math.nan]) * max(len(self) - start, 0)
        return self._cells[start * self._layout.width + column :: self._layout.width]

    def bounds(self, ranges: Mapping[Field, tuple[float, float]]) -> Bounds:
        """For `within`. ranges: smallest and largest value of fields of this window; the others must be missing."""
        low, high = self._layout.empty[:], self._layout.empty[:]
        low[0] = low[-1] = -math.inf
        high[0] = high[-1] = math.inf
        for one, (least, most) in ranges.items():
            low[self._layout.columns[one]], high[self._layout.columns[one]] = least, most
        return Bounds(self._layout, low, high)

    def within(self, bounds: Bounds) -> bool:
        """Whether every field of the newest sample is in its range. False once samples have fields that they had not
        when the bounds were made."""
        if bounds.layout is not self._layout:
            return False
        for value, least, most in zip(self._cells[-self._layout.width :], bounds.low, bounds.high, strict=True):
            if not least <= value <= most and not (value != value and least != least):
                return False
        return True

    def derived(self, start: int = 0) -> frozenset[Field]:
        """Fields with a derived reading in any sample from index `start` on."""
        mask = 0
        for bits in set(self._cells[(start + 1) * self._layout.width - 1 :: self._layout.width]):
            mask |= int(bits)
        return frozenset(one for one in self._layout.fields if mask & 1 << _BIT[one]) if mask else frozenset()

    def samples(self) -> Iterator[Sample]:
        """The samples, oldest first."""
        for start in range(0, len(self._cells), self._layout.width):
            row = self._cells[start : start + self._layout.width]
            mask = int(row[-1])
            values = {one: row[column] for one, column in self._layout.columns.items() if row[column] == row[column]}
            yield Sample(row[0], values, frozenset(one for one in values if mask & 1 << _BIT[one]))

    def _restarted(self, row: array[float]) -> bool:
        steps, before = self._cell(row, Field.STEPS), self._last(Field.STEPS)
        if not steps < before:  # True where missing
            return False
        pods, pods_before = self._cell(row, Field.PODS), self._cell(self._cells[-self._layout.width :], Field.PODS)
        changed = pods < pods_before or pods > pods_before
        return not changed or steps < before / 2

    def _cell(self, row: array[float], field: Field) -> float:
        column = self._layout.columns.get(field)
        return math.nan if column is None else row[column]

    def _last(self, field: Field) -> float:
        """The newest value of the field; -inf if there is none."""
        column, width = self._layout.columns.get(field), self._layout.width
        if column is not None:
            for cell in range(len(self._cells) - width + column, 0, -width):
                if self._cells[cell] == self._cells[cell]:
                    return self._cells[cell]
        return -math.inf
