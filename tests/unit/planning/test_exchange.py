"""The exchange: what HiGHS makes of what the prices leave open."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import pytest
import scipy.optimize

from benchmarks.fleet.scale import MadeFleet
from rightpool.api.placement import Placement
from rightpool.planning.allocate.exchange import MOST_OPTIONS, exchanged
from rightpool.planning.allocate.market import NOTHING, Market, Stake
from rightpool.planning.allocate.prices import Priced, priced
from rightpool.planning.allocate.program import AllocationProgram
from rightpool.planning.allocate.surplus import surplus


def program() -> AllocationProgram:
    """Three jobs for seven chips: the two that need 3 and 4 are worth more together than the one that needs 5."""
    places, one = [Placement("pool", chips, 1) for chips in (3, 4, 5)], np.ones(1)
    stakes = [Stake(("ml", name), np.array([place]), one, one, one, 1.0) for place, name in enumerate("abc")]
    return AllocationProgram(Market(places, stakes, {"pool": 7}), np.array([3.0, 4.0, 6.5]))


NO_PRICES = Priced(np.zeros(1), 100.0, np.full(3, NOTHING))


def test_the_best_plan_is_found() -> None:
    assert exchanged(program(), NO_PRICES).tolist() == [0, 1, NOTHING]


def test_without_a_solver_the_plan_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert exchanged(program(), NO_PRICES) is NO_PRICES.choice


def test_what_the_solver_prints_stays_out_of_what_a_command_prints(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """HiGHS prints by C's stdio, where it repairs a solution, which it does for few programs."""
    c, solve, solved = ctypes.CDLL(None), scipy.optimize.milp, []

    def prints(*args: Any, **kwargs: Any) -> Any:
        c.puts(b"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();")
        solved.append(solve(*args, **kwargs))
        return solved[-1]

    monkeypatch.setattr("scipy.optimize.milp", prints)
    exchanged(program(), NO_PRICES)
    print("the plan", flush=True)
    c.fflush(None)
    assert solved and capfd.readouterr().out == "the plan\n"


def test_the_search_is_limited_by_its_size_and_by_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of time made a busy machine's plan of 10,000 jobs 0.4% worse, and the next one move 252 of them."""
    asked: list[tuple[int, Any]] = []

    def gives_up(c: Any, **more: Any) -> Any:
        asked.append((len(c), more["options"]))
        return scipy.optimize.OptimizeResult(x=None)

    monkeypatch.setattr("scipy.optimize.milp", gives_up)
    market = MadeFleet(150, 4.0).market()
    large = AllocationProgram(market, surplus(market))
    found = priced(large, np.zeros(len(market.pools)))
    assert exchanged(large, found) is found.choice
    ((columns, options),) = asked
    assert MOST_OPTIONS / 2 < columns <= MOST_OPTIONS + large.jobs
    assert "time_limit" not in options
