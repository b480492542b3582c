"""How tests wait: looks are not counted, and a dear one is followed by a longer pause."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests import patience
from tests.patience import PATIENCE, eventually
from tests.yardstick import work_of


class Machine:
    """Its clock goes on in looks and pauses only. look: seconds that each takes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, look: float) -> None:
        self.now = 0.0
        self.paused: list[float] = []
        self.looks = 0
        self._look = look
        monkeypatch.setattr(patience, "_missed", [])
        monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep))

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        self.paused.append(seconds)

    def looked(self) -> int:
        """How often; takes its time."""
        self.now += self._look
        self.looks += 1
        return self.looks


@pytest.mark.parametrize(("look", "longest"), [(0.001, 0.3), (0.2, 1.0), (30.0, 3.0)])
def test_the_limit_is_of_pauses_and_those_are_as_long_as_looks_are_dear(
    monkeypatch: pytest.MonkeyPatch, look: float, longest: float
) -> None:
    machine = Machine(monkeypatch, look)
    with pytest.raises(AssertionError, match="not within 60 s of pauses: never: False"):
        eventually(lambda: machine.looked() < 0, "never", 60.0)
    assert machine.paused == pytest.approx(sorted(machine.paused)) and max(machine.paused) == pytest.approx(longest)
    assert 60.0 <= sum(machine.paused) < 63.0
    assert machine.now == pytest.approx(sum(machine.paused) + machine.looks * look)


def test_where_something_never_came_the_rest_is_waited_for_less_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has failed. Where an operator does nothing at all, sixty tests would take a quarter of an hour each."""
    machine = Machine(monkeypatch, 0.01)
    took = []
    for _ in range(60):
        began = machine.now
        with pytest.raises(AssertionError):
            eventually(lambda: machine.looked() < 0, "never")
        took.append(round(machine.now - began, 3))
    assert took[0] >= PATIENCE and took[1] >= PATIENCE / 2
    assert took == sorted(took, reverse=True) and 30.0 <= took[-1] < 40.0
    assert sum(took) < 3600.0
    assert eventually(lambda: machine.looked() > 0)


def test_many_looks_at_what_passes_by_end_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """At pauses of 20 ms a quarter of an hour of them would have 45,000 looks, which take longer than the pauses."""
    machine = Machine(monkeypatch, 0.05)
    with pytest.raises(AssertionError):
        eventually(lambda: machine.looked() < 0, longest=0.02)
    assert machine.now < PATIENCE and machine.looks > 5000


def test_the_first_true_result_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.1)
    assert eventually(lambda: machine.looked() == 4 and "it") == "it"
    assert machine.looks == 4


def test_the_last_look_counts_and_what_is_wrong_is_asked_for_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.1)
    with pytest.raises(AssertionError, match="3 looks"):
        eventually(lambda: machine.looked() < 0, lambda: f"{machine.looks} looks", 0.2)


def test_ten_times_the_work_is_much_more() -> None:
    def work(turns: int) -> float:
        return min(work_of(lambda: sum(number % 7 for number in range(turns))) for _ in range(3))

    assert work(2_000_000) > 3 * work(200_000)
