"""What noise must not lead to, on a few jobs; `python -m benchmarks.decisions` measures how often on many."""

import pytest

from benchmarks.decisions.stories import in_time, late, saving


@pytest.mark.parametrize("noise", ["blocks-10m", "evaluation"])
def test_a_right_move_is_made_and_kept(noise: str) -> None:
    counts = saving(noise, 1, 4, hours=5.0)
    assert counts["false moves"][0][0] == 0
    assert counts["right moves made within 2 h"] == [(2, 2)]
    assert counts["right moves undone"][0][0] == 0


def test_a_job_that_is_in_time_stays_and_one_that_is_late_is_moved() -> None:
    counts = in_time("blocks-10m", 1, 2, work=5.0)
    assert counts["moved for a deadline in time, slack 30%"] == [(0, 2)]
    assert late("blocks-10m", 1, 2, work=5.0)["true misses repaired in time"] == [(2, 2)]
