"""Columns: one number a row, for all rows of a fleet at once."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.int8]

_SQRT2 = math.sqrt(2.0)


def cumulative_normal(z: Floats) -> Floats:
    """P(Z ≤ z) of a standard normal. NumPy has no error function; the C library's costs 0.1 µs a number."""
    return 0.5 * np.fromiter(map(math.erfc, (z / -_SQRT2).tolist()), np.float64, len(z))


def or_nan(values: list[float | None]) -> Floats:
    """A column in which NaN stands for what is not known."""
    return np.array(values, dtype=np.float64)


def floats(values: Any) -> Floats:
    """A column of numbers."""
    return np.asarray(values, dtype=np.float64)


def largest_of_each(job: Ints, values: Floats, count: int) -> Floats:
    """The largest value among each job's rows, which stand together; NaN where it has none."""
    most = np.full(count, -np.inf)
    if len(job):
        starts = np.flatnonzero(np.r_[True, job[1:] != job[:-1]])
        most[job[starts]] = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), starts)
    return np.where(np.isneginf(most), np.nan, most)


def first_of_each(job: Ints, chosen: Bools, count: int) -> Ints:
    """The first chosen row of each job, whose rows stand together; -1 where there is none."""
    rows = np.flatnonzero(chosen)
    found = np.full(count, -1, dtype=np.int64)
    if rows.size:
        owners = job[rows]
        heads = np.r_[True, owners[1:] != owners[:-1]]
        found[owners[heads]] = rows[heads]
    return found
