"""Packed spans come in the order of time, whatever the order in which they were added."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool_profiler.traces import spans as module
from rightpool_profiler.traces.nesting import self_times
from rightpool_profiler.traces.spans import Spans

_MANY = st.lists(st.tuples(st.integers(-20, 60), st.integers(0, 80), st.integers(-5, 5)), max_size=40)


@given(_MANY, st.integers(1, 9), st.integers(0, 40))
def test_order(added: list[tuple[int, int, int]], chunk: int, between: int) -> None:
    """Also where it is asked for in between, and where spans were sorted in parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        spans = Spans("i")
        for count, span in enumerate(added):
            if count == between:
                assert len(list(spans)) == count
            spans.add(*span)
        found = list(spans)
        assert list(spans) == found and len(spans) == len(added)
    assert sorted(found) == sorted(added)
    assert all((one[0], -one[1]) <= (other[0], -other[1]) for one, other in pairwise(found))


def test_a_span_takes_few_bytes() -> None:
    spans = Spans("iq")
    for number in range(30_000):
        spans.add(number, number + 5, 1, 2)
    assert sum(column.itemsize for column in spans._columns) == 28
    assert sum(column.buffer_info()[1] * column.itemsize for column in spans._columns) == 28 * 30_000


@pytest.mark.parametrize("span", [(2**63, 2**63, 0), (0, 2**70, 0), (0, 1, 2**31)])
def test_numbers_that_no_trace_has(span: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="no trace has"):
        Spans("i").add(*span)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12))
def test_own_times_are_the_time_that_is_covered(pairs: list[tuple[int, int]]) -> None:
    """Of spans of which each lies within another one or beside it: no moment counts twice."""
    nested: list[tuple[int, int]] = []
    for start, length in pairs:
        span = (start, start + length)
        if all(span[1] <= a or b <= span[0] or a <= span[0] <= span[1] <= b or span[0] <= a <= b <= span[1]
               for a, b in nested):  # fmt: skip
            nested.append(span)
    spans = Spans()
    for span in nested:
        spans.add(*span)
    own = list(self_times(spans))
    assert sorted(span for span, _ in own) == sorted(nested) and all(time >= 0 for _, time in own)
    assert sum(time for _, time in own) == len({moment for start, end in nested for moment in range(start, end)})
