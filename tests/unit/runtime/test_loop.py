"""The loop of the operator, on a cluster that answers from memory (benchmarks.cycle)."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.cycle import Cluster, filled, planner_of
from rightpool.api.kubernetes import Resource
from rightpool.cluster.errors import error_from
from rightpool.cluster.resources import EVENTS, PROFILED_JOBS
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


class OlderDefinition(Cluster):
    """Its definition lacks a field of the status; `lacks` until it is replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.lacks = True
        self.attempts = 0
        self.events: list[str] = []

    def apply(self, resource: Resource, body: Body, *, subresource: str | None = None) -> Any:
        """A write of the operator's."""
        if resource == PROFILED_JOBS:
            self.attempts += 1
            if self.lacks:
                message = "failed to create typed patch object: .status.progress: field not declared in schema"
                raise error_from(500, json.dumps({"message": message}).encode(), None)
        return super().apply(resource, body, subresource=subresource)

    def create(self, resource: Resource, body: Body) -> Any:
        """An Event."""
        self.events += [body["message"]] if resource == EVENTS else []
        return super().create(resource, body)


def test_an_older_definition_is_told_and_not_written_to_for_ever() -> None:
    cluster, clock = OlderDefinition(), {"now": 1_800_000_000.0}
    store = filled(cluster, 1, clock["now"])
    planner = planner_of(cluster, store, clock)
    for _ in range(18):  # three minutes
        planner.cycle()
        clock["now"] += 10.0
    assert 1 < cluster.attempts <= 4
    [message] = {message for message in cluster.events if "status.progress" in message}
    assert message.startswith("the definition of ProfiledJobs in the cluster is older than the operator")
    cluster.lacks = False
    for _ in range(7):
        planner.cycle()
        clock["now"] += 10.0
    [job] = store.jobs().values()
    assert job.status.conditions, "it is written when the definition has the field"


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
