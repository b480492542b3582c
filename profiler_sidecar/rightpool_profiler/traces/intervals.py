"""Arithmetic on sets of time, each a sorted list of disjoint (start, end)."""

from collections.abc import Iterable

Spans = list[tuple[int, int]]


def union(spans: Iterable[tuple[int, int]]) -> Spans:
    """Sorted and merged; empty spans vanish."""
    merged: Spans = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def intersection(left: Spans, right: Spans) -> Spans:
    """Time that is in both."""
    common: Spans = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < end:
            common.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return common


def clip(spans: Spans, start: int, end: int) -> Spans:
    """The part of a set between two moments."""
    return intersection(spans, [(start, end)])


def length(spans: Spans) -> int:
    """Its measure."""
    return sum(end - start for start, end in spans)


def without(spans: Spans, others: Spans) -> Spans:
    """Time of the first set that is not in the second."""
    left: Spans = []
    at = 0
    for start, end in spans:
        while at < len(others) and others[at][1] <= start:
            at += 1
        index = at
        while index < len(others) and others[index][0] < end:
            if others[index][0] > start:
                left.append((start, others[index][0]))
            start = max(start, others[index][1])
            index += 1
        if start < end:
            left.append((start, end))
    return left
