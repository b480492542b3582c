"""What comes after a verdict, on a few jobs; `python -m benchmarks.decisions` has the stories in full."""

import pytest

from benchmarks.decisions.afterwards import fading, mistyped


def test_jobs_come_back_from_a_pool_that_fades_after_their_verdicts() -> None:
    counts = fading("quiet", 1, 3)
    assert counts["jobs back 3 h after a pool fades"] == [(3, 3)]
    booked, true = (sum(side) for side in zip(*counts["saved where a pool fades"], strict=True))
    assert booked == pytest.approx(true, rel=0.10)


def test_nobody_moves_for_a_mistyped_price_and_nothing_is_booked_by_it() -> None:
    counts = mistyped("quiet", 1, 1)
    assert counts["moves for a mistyped price"] == [(0, 2)]
    assert all(booked == 0.0 for booked, _ in counts["saved by a mistyped price ÷ spent"])
