"""What comes after a verdict, on a few jobs; `python -m benchmarks.decisions` has the stories in full."""

import pytest

from benchmarks.decisions.afterwards import fading, gone, growing, learning, mistyped
from benchmarks.decisions.crowding import slowing


def test_jobs_come_back_from_a_pool_that_fades_after_their_verdicts() -> None:
    counts = fading("quiet", 1, 3)
    assert counts["jobs back 3 h after a pool fades"] == [(3, 3)]
    booked, true = (sum(side) for side in zip(*counts["saved where a pool fades"], strict=True))
    assert booked == pytest.approx(true, rel=0.10)


def test_nobody_moves_for_a_mistyped_price_and_nothing_is_booked_by_it() -> None:
    counts = mistyped("quiet", 1, 1)
    assert counts["moves for a mistyped price"] == [(0, 2)]
    assert all(booked == 0.0 for booked, _ in counts["saved by a mistyped price ÷ spent"])


def test_a_batch_that_grows_around_a_move_is_no_saving() -> None:
    counts = growing("quiet", 1, 1)
    ((booked, true),) = counts["saved where a batch grows"]
    assert booked == pytest.approx(true, rel=0.10)


def test_jobs_go_home_once_their_pool_is_back() -> None:
    assert gone("quiet", 1, 2)["jobs home 3 h after their pool was gone"] == [(2, 2)]


def test_jobs_that_slow_each_other_on_a_pool_go_there_one_after_another() -> None:
    counts = slowing("quiet", 1, 8, hours=6.0)
    assert counts["jobs back that slow each other"] == [(0, 8)]
    booked, true = (sum(side) for side in zip(*counts["saved where jobs slow each other"], strict=True))
    assert 0.0 < booked == pytest.approx(true, rel=0.10)


def test_moves_of_jobs_that_wait_move_none_that_compute() -> None:
    counts = learning("quiet", 1, 2)
    for seen in ("with counters", "without counters"):
        assert counts[f"moves undone by learning a job, {seen}"] == [(0, 2)]
        ((paid, without),) = counts[f"cost with learning ÷ without, {seen}"]
        assert paid <= 1.001 * without
