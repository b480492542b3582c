"""Health: when a process has to be restarted."""

from __future__ import annotations

from rightpool.cluster.client import Listing
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.runtime.health import Health
from rightpool.runtime.observe.relist import Relister
from rightpool.runtime.observe.store import Store
from tests.unit.runtime.makers import profiled_job


class Clock:
    """Goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_planner_that_does_not_begin_is_told_after_a_minute() -> None:
    clock = Clock()
    health = Health(10.0, 15.0, clock)
    clock.now = 60.0
    assert health.problem() is None
    clock.now = 61.0
    assert health.problem() == "the planner has not begun after 61 s"
    health.progress()
    assert health.problem() is None
    clock.now += 121.0
    assert health.problem() == "the planner has made no progress for 121 s"


def test_a_request_that_may_take_long_is_waited_for() -> None:
    clock = Clock()
    health = Health(10.0, 60.0, clock)
    clock.now = 240.0
    assert health.problem() is None


def test_every_page_of_a_long_list_is_progress() -> None:
    """A large fleet on a slow API server."""
    clock = Clock()
    health = Health(10.0, 15.0, clock)

    class Slow:
        def pages(self, resource: object, *_: object, **__: object) -> object:
            for number in range(5):
                clock.now += 50.0
                assert health.problem() is None
                uid = f"uid-{number}"
                yield Listing([profiled_job(uid, uid=uid)] if resource is PROFILED_JOBS else [], "99", "")

    store = Store()
    Relister(Slow(), store, interval=600.0, missing=tuple, progress=health.progress, clock=clock).run()  # type: ignore[arg-type]
    assert len(store.jobs()) == 5
