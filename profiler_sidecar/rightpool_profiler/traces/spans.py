"""Spans of time, packed: a trace of hundreds of MB holds millions of them, and an object for each would not fit."""

import heapq
import itertools
from array import array
from collections.abc import Iterator
from typing import Final

_CHUNK: Final = 1 << 13  # spans that are sorted at a time, as objects


class Spans:
    """Start, end, and the whole numbers that belong to each span.

    Iterated, they come by their start, and of one start the longest first: what holds others comes before them.
    """

    def __init__(self, kinds: str = "") -> None:
        """kinds: of the numbers beside start and end, as of an array: `i` is of 4 bytes, `q` of 8, as a time is."""
        self._columns = [array(kind) for kind in "qq" + kinds]
        self._chunks = 0  # that are sorted

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, *span: int) -> None:
        """start, end, and the others. Raises ValueError for a number that is beyond all that traces have."""
        try:
            for column, value in zip(self._columns, span, strict=True):
                column.append(value)
        except OverflowError as error:
            raise ValueError("it holds times that no trace has") from error
        if len(self) >= (self._chunks + 1) * _CHUNK:
            self._sort()

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        if self._chunks * _CHUNK < len(self):
            self._sort()
            self._chunks -= 1  # the last one may grow
        runs = [zip(*(memoryview(column)[run] for column in self._columns), strict=True) for run in self._runs()]
        return runs[0] if len(runs) == 1 else heapq.merge(*runs, key=_order)

    def _runs(self) -> list[slice]:
        """Chunks that follow each other in order, as most do, are one."""
        starts, ends = self._columns[:2]
        bounds = [0]
        for at in range(_CHUNK, len(self), _CHUNK):
            if (starts[at - 1], -ends[at - 1]) > (starts[at], -ends[at]):
                bounds.append(at)
        return [slice(start, end) for start, end in itertools.pairwise((*bounds, len(self)))]

    def _sort(self) -> None:
        """The last chunk, in its place."""
        start = self._chunks * _CHUNK
        spans = sorted(zip(*(column[start:] for column in self._columns), strict=True), key=_order)
        for column, values in zip(self._columns, zip(*spans, strict=True), strict=True):
            column[start:] = array(column.typecode, values)
        self._chunks += 1


def _order(span: tuple[int, ...]) -> tuple[int, int]:
    return span[0], -span[1]
