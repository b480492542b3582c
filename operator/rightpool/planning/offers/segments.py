"""Segments: rows that belong to one job stand together in a column, and are reduced to one value a job."""

import numpy as np

from rightpool.prediction.columns import Bools, Floats, Ints


def largest_of_each(job: Ints, values: Floats, count: int) -> Floats:
    """The largest value among each job's rows; NaN where it has none."""
    most = np.full(count, -np.inf)
    if len(job):
        starts = np.flatnonzero(np.r_[True, job[1:] != job[:-1]])
        most[job[starts]] = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), starts)
    return np.where(np.isneginf(most), np.nan, most)


def first_of_each(job: Ints, chosen: Bools, count: int) -> Ints:
    """The first chosen row of each job; -1 where there is none."""
    rows = np.flatnonzero(chosen)
    found = np.full(count, -1, dtype=np.int64)
    if rows.size:
        owners = job[rows]
        heads = np.r_[True, owners[1:] != owners[:-1]]
        found[owners[heads]] = rows[heads]
    return found
