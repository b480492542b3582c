"""Numbers of endpoints by which requests go over from one side of a server to the other."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.planning.moves.shares import Share, shares


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (1, 1, [(1, 1), (1, 0)]),
        (2, 2, [(1, 2), (2, 2), (2, 1), (2, 0)]),
        (20, 20, [(1, 20), (6, 20), (20, 20), (20, 7), (20, 3), (20, 0)]),
        (8, 2, [(6, 2), (8, 1), (8, 0)]),
        (2, 8, [(1, 8), (2, 6), (2, 0)]),
    ],
    ids=("one", "two", "twenty", "more", "fewer"),
)
def test_steps(new: int, old: int, expected: list[tuple[int, int]]) -> None:
    assert [tuple(step) for step in shares(new, old)] == expected


@given(st.integers(1, 40), st.integers(1, 40))
def test_no_endpoint_gets_more_than_it_was_planned_for(new: int, old: int) -> None:
    steps = shares(new, old)
    assert steps[-1] == Share(new, 0)
    assert all(step.new + step.old >= max(new, old) for step in steps[:-1])
    assert all(one.part < two.part for one, two in pairwise(steps))
    assert all(one.new <= two.new and one.old >= two.old for one, two in pairwise(steps)), "nobody goes and comes again"
