"""Two runs of a program: how often equal ones are called different, and what a change takes to be found."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from rightpool.planning.judge.series import RateSeries
from rightpool.planning.judge.two_runs import OF_TWO_RUNS, Repeats, difference_of_runs
from rightpool.planning.judge.verdict import Verdict, verdict

LEVEL = 0.005  # of a false verdict on either side, by verdict.UNDONE_Z


def found(before: list[float], after: list[float], *, in_turns: bool) -> Verdict:
    """With parts of each run that are all alike: only repeats tell."""
    series = [RateSeries(math.fsum(rates) / len(rates), 20, (rates[0],) * 20) for rates in (before, after)]
    return verdict(difference_of_runs(*series, Repeats(before, after, in_turns=in_turns)), OF_TWO_RUNS)


@pytest.mark.parametrize(
    ("noise", "repeats", "in_turns"), [(0.03, 3, True), (0.3, 3, True), (0.1, 5, True), (0.3, 3, False)]
)
def test_equal_programs_are_called_different_no_more_often_than_the_level(
    noise: float, repeats: int, in_turns: bool
) -> None:
    """Where they take turns a neighbour may take any part of the machine: it takes it from both."""
    draw, trials = random.Random(f"{noise} {repeats} {in_turns}"), 1000
    false = dict.fromkeys(Verdict, 0)
    for _ in range(trials):
        machine = [draw.uniform(0.4, 1.0) if in_turns else 1.0 for _ in range(repeats)]
        runs = [[1000.0 * part * math.exp(draw.gauss(0.0, noise)) for part in machine] for _ in range(2)]
        false[found(*runs, in_turns=in_turns)] += 1
    most = LEVEL * trials + 3.0 * math.sqrt(LEVEL * trials)
    assert false[Verdict.WORSE] <= most and false[Verdict.BETTER] <= most, false


def test_pairs_that_happen_to_agree_are_not_called_different() -> None:
    """Twelve pairs of one program at once on two busy cores, samples/s. Three of them agree to 0.3% on a 4% that is
    not there."""
    before = [21879, 17724, 22438, 19102, 22677, 18202, 19757, 20666, 17656, 17120, 16869, 17473]
    after = [21969, 19254, 21205, 18858, 22495, 19049, 19701, 21538, 18375, 17084, 17531, 16440]
    for three in combinations(range(12), 3):
        runs = [[float(rates[pair]) for pair in three] for rates in (before, after)]
        assert found(*runs, in_turns=True) in (Verdict.SAME, Verdict.OPEN), three


@pytest.mark.parametrize(("ratio", "says"), [(0.8, Verdict.WORSE), (0.999, Verdict.SAME), (1.25, Verdict.BETTER)])
def test_three_pairs_of_a_quiet_program_tell(ratio: float, says: Verdict) -> None:
    before, noise = [1000.0, 800.0, 600.0], [0.997, 1.0, 1.002]
    after = [rate * ratio * off for rate, off in zip(before, noise, strict=True)]
    assert found(before, after, in_turns=True) is says
