"""A restart tells nobody anything that was told before, and hides nothing that is new.

The planner is the operator's own; the cluster answers from memory (benchmarks.cycle).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from benchmarks.cycle import INTERVAL, Cluster, Readings, planner_of
from benchmarks.synthetic_fleet import Body
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.profiles.sample import RevisionKey
from rightpool.runtime.loop import Planner
from rightpool.runtime.observe.store import Store
from rightpool.telemetry.reader import Target, TelemetryReading
from tests.unit.runtime.small_fleet import small_store

JOBS = 8
WINDOW = 4  # readings in the jobs' windows
PATIENCE = 16  # cycles within which a restarted operator must have measured again, or say that it has not


@dataclass
class World:
    """One fleet, and the operators that follow each other on it."""

    cluster: Cluster = field(default_factory=Cluster)
    clock: dict[str, float] = field(default_factory=lambda: {"now": 1_800_000_000.0})
    silent: set[RevisionKey] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.store: Store = small_store(self.cluster, JOBS, self.clock["now"])
        self.planner: Planner = self.operator()

    def operator(self) -> Planner:
        """A new process: it knows what is stored, and nothing else."""
        return planner_of(self.cluster, self.store, self.clock, self)

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """As a reader: of those that are silent nothing."""
        return Readings().read([target for target in targets if target.key not in self.silent], now)

    def cycles(self, count: int) -> int:
        """The number of writes, Events included."""
        before = self.cluster.writes
        for _ in range(count):
            self.planner.cycle()
            self.clock["now"] += INTERVAL
        return self.cluster.writes - before

    def conditions(self, kind: str) -> dict[str, tuple[str, str]]:
        """Status and reason of a condition, by job."""
        found = {}
        for key, stored in self.store.jobs().items():
            for condition in stored.status.conditions:
                if condition.type == kind:
                    found[key.name] = (condition.status, condition.reason)
        return found


@pytest.fixture
def world() -> World:
    made = World()
    assert made.cycles(12) > JOBS
    assert set(made.conditions("Profiled").values()) == {("True", "Measured")}
    assert made.cycles(6) == 0
    return made


def test_nothing_is_said_again(world: World) -> None:
    world.planner = world.operator()
    assert world.cycles(PATIENCE) == 0


def test_a_job_that_nothing_is_heard_of_any_more_is_told_in_the_end(world: World) -> None:
    keys = sorted(world.store.jobs())
    world.silent = {RevisionKey(keys[0].namespace, keys[0].name, 1)}
    world.planner = world.operator()
    assert world.cycles(WINDOW) == 0
    world.cycles(PATIENCE)
    profiled = world.conditions("Profiled")
    assert profiled.pop(keys[0].name) == ("False", "NoTelemetry")
    assert set(profiled.values()) == {("True", "Measured")}


def test_a_pod_that_went_meanwhile_is_told_at_once(world: World) -> None:
    pod = world.store.all_pods()[0]
    gone: Body = {"metadata": {"uid": pod.uid, "name": pod.name, "namespace": pod.namespace}}
    world.planner = world.operator()
    world.store.observe(PODS, "DELETED", gone)
    world.cycles(1)
    assert world.conditions("Placed")[pod.job] == ("False", "Starting")
    assert world.conditions("Profiled")[pod.job] == ("Unknown", "NotRunning")


def test_an_edit_meanwhile_is_judged_anew(world: World) -> None:
    key, stored = sorted(world.store.jobs().items())[0]
    body = world.cluster.stored(PROFILED_JOBS, key.namespace, key.name)
    body["metadata"]["generation"] = 2
    world.store.observe(PROFILED_JOBS, "MODIFIED", world.cluster.put(PROFILED_JOBS, body))
    world.planner = world.operator()
    world.cycles(2)
    assert world.conditions("Profiled")[key.name] == ("False", "WarmingUp")
    assert stored.observed_generation == 1
