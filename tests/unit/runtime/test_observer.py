"""What is kept of jobs about which nothing was heard, checked against looking at all of them: on a cluster that answers
from memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cycle import Cluster, filled, planner_of
from benchmarks.synthetic_fleet import SyntheticJob, nodes
from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cluster.errors import Invalid
from rightpool.cluster.resources import NODES, PODS, PROFILED_JOBS
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.moves import news
from rightpool.planning.moves.commands import CheckTemplate
from rightpool.planning.moves.news import taken_over
from rightpool.profiles.sample import Field, Sample
from rightpool.runtime import observer
from rightpool.runtime.observer import Observer
from rightpool.telemetry.reader import Target, TelemetryReading

COUNT = 3
START = 1_800_000_000.0
NEVER = 1e9
Body = dict[str, Any]


class Readings:
    """Of the synthetic fleet, and what the test makes of them."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.saved: float | None = None
        self.silent: set[int] = set()

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """At once."""
        samples = {}
        for target in targets:
            number = int(target.key.job.removeprefix("job-"))
            if number not in self.silent:
                values = SyntheticJob(number).reading(now)
                values[Field.SAMPLES_PER_SECOND] *= self.factor
                values |= {} if self.saved is None else {Field.CHECKPOINT_TIMESTAMP: self.saved}
                samples[target.key] = Sample(now, values)
        return TelemetryReading(samples)


class Recording(Cluster):
    """Keeps the objects that watches would tell of."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[tuple[str, str], Body] = {}

    def put(self, resource: Resource, body: Body) -> Body:
        answer = super().put(resource, body)
        self.objects[resource.plural, answer["metadata"]["name"]] = answer
        return answer

    def create(self, resource: Resource, body: Body, **options: Any) -> Body:
        if options.get("dry_run"):
            raise Invalid("spec.template: no such field")
        return super().create(resource, body)


class World:
    """A small fleet with an operator. In each cycle what it has put together is compared with what one sees that
    looks at everything."""

    def __init__(self) -> None:
        self.cluster, self.readings, self.clock = Recording(), Readings(), {"now": START}
        self.store = filled(self.cluster, COUNT, START, nodes(1))
        self.planner = planner_of(self.cluster, self.store, self.clock, self.readings)  # type: ignore[arg-type]
        self.kept = self.looked = 0
        self._jobs: dict[JobKey, Job] = {}
        parts, observe = self.planner._parts, self.planner._observer.observe

        def compared(live: Any, inventory: Any, now: float, shaped: Any) -> dict[JobKey, Job]:
            jobs = observe(live, inventory, now, shaped)
            observer = Observer(parts.store, parts.windows, parts.executor, parts.servers.seen)
            seen = observer.observe(live, inventory, now, shaped)
            assert jobs.keys() == seen.keys()
            for key, job in jobs.items():
                assert taken_over(job, seen[key]) is job, "nothing new is seen of it"
                window = parts.windows._feeds[job.uid].window.window
                saves = [at for at in window.column(Field.CHECKPOINT_TIMESTAMP) if at == at]
                assert seen[key].observed.checkpoint_at == max(saves, default=None)
                self.kept += job is self._jobs.get(key)
                self.looked += job is not self._jobs.get(key)
            self._jobs = jobs
            return jobs

        self.planner._observer.observe = compared  # type: ignore[method-assign]

    def cycles(self, count: int) -> None:
        for _ in range(count):
            self.planner.cycle()
            self.clock["now"] += 10.0

    def change(self, resource: Resource, name: str, part: str, **fields: Any) -> None:
        """An event of a watch: these fields of the object's metadata, spec or status are other ones."""
        body = deepcopy(self.cluster.objects[resource.plural, name])
        body[part] = {**body.get(part, {}), **fields}
        self.store.observe(resource, "MODIFIED", self.cluster.put(resource, body))

    def of(self, number: int, resource: Resource) -> str:
        """The name of the job's child or pod."""
        name = SyntheticJob(number).key.name
        return next(
            made
            for (plural, made), body in self.cluster.objects.items()
            if plural == resource.plural and name in (body["metadata"].get("labels") or {}).values()
        )


def _pod(world: World, number: int, step: int) -> None:
    ready = {"type": "Ready", "status": str(step % 2 == 0)}
    world.change(PODS, world.of(number, PODS), "status", conditions=[ready])


def _end(world: World, number: int, step: int) -> None:
    world.change(PODS, world.of(number, PODS), "metadata", deletionTimestamp="2027-01-15T08:00:00Z")


def _suspend(world: World, number: int, step: int) -> None:
    world.change(JOBS, world.of(number, JOBS), "spec", suspend=step % 2 == 0)


def _cordon(world: World, number: int, step: int) -> None:
    world.change(NODES, SyntheticJob(number).node, "spec", unschedulable=step % 2 == 0)


def _approve(world: World, number: int, step: int) -> None:
    name = SyntheticJob(number).key.name
    world.change(PROFILED_JOBS, name, "metadata", annotations={"rightpool.dev/approve": f"d-{step}"})


def _refuse(world: World, number: int, step: int) -> None:
    stored = world.store.job(SyntheticJob(number).key)
    assert stored is not None and stored.job.state.revision is not None
    inventory = world.planner._last_inventory
    assert inventory is not None
    command = CheckTemplate(stored.job.state.revision)
    world.planner._parts.executor.carry_out(stored.job, command, inventory.inventory.pools)


def _speed(world: World, number: int, step: int) -> None:
    world.readings.factor = (1.0, 0.5, 1.01)[step % 3]


def _save(world: World, number: int, step: int) -> None:
    world.readings.saved = (None, START, START + step, START - step)[step % 4]


def _silence(world: World, number: int, step: int) -> None:
    world.readings.silent ^= {number}


CHANGES = (_pod, _end, _suspend, _cordon, _approve, _refuse, _speed, _save, _silence)


@pytest.fixture(autouse=True, scope="module")
def _no_second_look() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(news, "LOOK_SECONDS", NEVER)
        patch.setattr(news, "PROGRESS_SECONDS", NEVER)
        yield


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.sampled_from(CHANGES), st.integers(0, COUNT - 1), st.integers(0, 11)),
        max_size=12,
    )
)
def test_jobs_are_as_they_would_be_if_all_were_looked_at(changes: list[tuple[int, Any, int, int]]) -> None:
    world = World()
    for pause, change, number, step in changes:
        world.cycles(pause)
        if world.planner._last_inventory is not None:
            change(world, number, step)
    world.cycles(3)


def test_of_a_quiet_fleet_nearly_all_jobs_are_kept_and_one_that_changes_is_not() -> None:
    world = World()
    world.cycles(40)
    kept, looked = world.kept, world.looked
    world.cycles(6)
    assert world.kept - kept > 2 * (world.looked - looked), "windows end once in six cycles"
    before = dict(world._jobs)
    _pod(world, 1, 1)
    world.cycles(1)
    assert world._jobs[SyntheticJob(1).key] is not before[SyntheticJob(1).key]


def test_what_was_told_is_not_lost_where_a_cycle_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.cycles(2)
    _pod(world, 0, 1)
    with monkeypatch.context() as patch:
        patch.setattr(observer, "drained_nodes", lambda nodes: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            world.planner.cycle()
    world.cycles(1)
    state = world._jobs[SyntheticJob(0).key].child
    assert state is not None and state.running == 0
