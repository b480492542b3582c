"""The loop of the operator, on a cluster that answers from memory (benchmarks.cycle)."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.cycle import Cluster, filled, planner_of
from rightpool.runtime import loop
from rightpool.runtime.job_step import Step, Stepper
from rightpool.runtime.phase_timer import PhaseTimer

JOBS = 12
BATCH = 4


class Body(dict[str, Any]):
    """A status that says when it is gone."""


def test_statuses_of_a_whole_fleet_are_never_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakValueDictionary[int, Body] = weakref.WeakValueDictionary()
    most: list[int] = []

    def step(*arguments: Any, **options: Any) -> Step:
        made = original(*arguments, **options)
        assert made.draft is not None
        body = Body(made.draft.body)
        alive[id(body)] = body
        most.append(len(alive))
        return replace(made, draft=replace(made.draft, body=body))

    original = Stepper.step
    monkeypatch.setattr(Stepper, "step", step)
    monkeypatch.setattr(loop, "BATCH", BATCH)
    cluster, clock = Cluster(), {"now": 1_800_000_000.0}
    store = filled(cluster, JOBS, clock["now"])
    planner_of(cluster, store, clock).cycle()
    assert all(job.status.conditions for job in store.jobs().values())
    assert len(most) == JOBS
    assert BATCH <= max(most) <= 2 * BATCH, "one that is written, and one that is being made"


class Hanging(Cluster):
    """The first write is answered late."""

    def __init__(self) -> None:
        super().__init__()
        self.late: Future[None] | None = None

    def submit(self, function: Any, *arguments: Any) -> Future[None]:
        """Not at once."""
        if self.late is None:
            self.late = Future()
            return self.late
        return super().submit(function, *arguments)


def test_a_job_whose_write_took_longer_than_a_cycle_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CARRY_OUT_SECONDS", 0.0)
    cluster, clock = Hanging(), {"now": 1_800_000_000.0}
    store = filled(cluster, 1, clock["now"])
    planner = planner_of(cluster, store, clock)

    def written() -> bool:
        planner.cycle()
        [job] = store.jobs().values()
        return bool(job.status.conditions)

    assert not written()
    assert not written(), "its write is still under way"
    assert cluster.late is not None
    cluster.late.set_result(None)
    assert written()


def test_phases_are_added_up_and_taken_once() -> None:
    times: Iterator[float] = iter([0.0, 1.0, 1.0, 3.0, 5.0, 9.0])
    timer = PhaseTimer(lambda: next(times))
    with timer.phase("step"):
        pass
    with timer.phase("execute"):
        pass
    with pytest.raises(RuntimeError), timer.phase("step"):
        raise RuntimeError
    assert timer.take() == {"step": 5.0, "execute": 2.0}
    assert timer.take() == {}
