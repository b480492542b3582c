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
