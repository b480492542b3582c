"""The loop of the operator, on a cluster that answers from memory (benchmarks.cycle)."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.cycle import Cluster, planner_of
from benchmarks.synthetic_fleet import SyntheticJob, synthetic_jobs
from rightpool.api.conditions import Reason, find_condition
from rightpool.api.kubernetes import Resource
from rightpool.cluster.errors import error_from
from rightpool.cluster.resources import EVENTS, PERSISTENT_VOLUMES, PROFILED_JOBS
from rightpool.contract import LABEL_JOB
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.trace_answer import TraceAnswer
from rightpool.runtime import loop
from rightpool.runtime.act import template_checks
from rightpool.runtime.act.executor import Executor
from rightpool.runtime.job_step import Step, Stepper
from rightpool.runtime.metrics_recorder import PhaseTimer
from tests.unit.runtime.small_fleet import small_store

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
    store = small_store(cluster, JOBS, clock["now"])
    planner_of(cluster, store, clock).cycle()
    assert all(job.status.conditions for job in store.jobs().values())
    assert len(most) == JOBS
    assert BATCH <= max(most) <= 2 * BATCH, "one that is written, and one that is being made"


class Counting(Cluster):
    """Counts the statuses of jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses = 0

    def apply(self, resource: Resource, body: dict[str, Any], *, subresource: str | None = None) -> dict[str, Any]:
        """At once."""
        self.statuses += resource == PROFILED_JOBS
        return super().apply(resource, body, subresource=subresource)


def test_a_slow_api_server_is_asked_to_write_less_that_only_informs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a cycle takes so long that readings grow old, of which statuses then tell: more writes for the next one."""
    monkeypatch.setattr(loop, "BATCH", BATCH)
    monkeypatch.setattr(loop, "INFORMING_SECONDS", 0.0)
    cluster, clock = Counting(), {"now": 1_800_000_000.0}
    planner = planner_of(cluster, small_store(cluster, JOBS, clock["now"]), clock)
    planner.cycle()
    assert cluster.statuses == JOBS, "state is never held up"
    informing = []
    for _ in range(JOBS):
        clock["now"] += 10.0
        before = cluster.statuses
        planner.cycle()
        informing.append(cluster.statuses - before)
    assert max(informing) == BATCH and sum(informing) >= JOBS, "the next cycle writes what this one did not"


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
    store = small_store(cluster, 1, clock["now"])
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


def test_nodes_are_looked_at_again_where_a_job_selects_by_another_label(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[tuple[str, str]]] = []
    original = loop.with_node_shapes
    monkeypatch.setattr(loop, "with_node_shapes", lambda *given: asked.append(set(given[2])) or original(*given))
    cluster, clock = Cluster(), {"now": 1_800_000_000.0}
    store = small_store(cluster, 1, clock["now"])
    planner = planner_of(cluster, store, clock)
    for _ in range(4):
        planner.cycle()
        clock["now"] += 10.0
    seen = len(asked)
    planner.cycle()
    assert len(asked) == seen and set() in asked, "at rest"
    [key] = store.jobs()
    body = cluster.stored(PROFILED_JOBS, key.namespace, key.name)
    body["spec"]["workload"]["job"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    body["metadata"]["generation"] = 2
    store.observe(PROFILED_JOBS, "MODIFIED", cluster.put(PROFILED_JOBS, body))
    planner.cycle()
    assert asked[seen:] == [{("label", "disk")}]


def test_nodes_are_looked_at_again_where_a_claim_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[tuple[str, str]]] = []
    original = loop.with_node_shapes
    monkeypatch.setattr(loop, "with_node_shapes", lambda *given: asked.append(set(given[2])) or original(*given))
    cluster, clock = Cluster(), {"now": 1_800_000_000.0}
    store = small_store(cluster, 1, clock["now"])
    planner = planner_of(cluster, store, clock)
    planner.cycle()
    [key] = store.jobs()
    body = cluster.stored(PROFILED_JOBS, key.namespace, key.name)
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    body["spec"]["workload"]["job"]["template"]["spec"]["volumes"] = [claim]
    body["metadata"]["generation"] = 2
    store.observe(PROFILED_JOBS, "MODIFIED", cluster.put(PROFILED_JOBS, body))
    planner.cycle()
    assert asked[-1] == set()
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
    volume: dict[str, Any] = {
        "metadata": {"name": "pv-1", "uid": "pv-1", "resourceVersion": "9999999"},
        "spec": {
            "claimRef": {"namespace": key.namespace, "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
        },
        "status": {"phase": "Bound"},
    }
    store.observe(PERSISTENT_VOLUMES, "ADDED", volume)
    planner.cycle()
    assert asked[-1] == {("label", "topology.kubernetes.io/zone")}
    seen, bound = len(asked), planner._bound
    jobs, volumes = store.jobs(), store.objects(PERSISTENT_VOLUMES)
    made = bound.of(jobs, volumes)
    assert made[key].job.needs.volumes and bound.of(jobs, volumes)[key] is made[key]
    other = {**volume, "metadata": {"name": "pv-2", "uid": "pv-2", "resourceVersion": "9999999"}}
    other["spec"] = {**volume["spec"], "claimRef": {"namespace": "else", "name": "data"}}
    store.observe(PERSISTENT_VOLUMES, "ADDED", other)
    assert bound.of(jobs, store.objects(PERSISTENT_VOLUMES))[key] is made[key], "another's volume is no news"
    planner.cycle()
    assert len(asked) == seen


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
    store = small_store(cluster, 1, clock["now"])
    planner = planner_of(cluster, store, clock)
    for _ in range(18):  # three minutes
        planner.cycle()
        clock["now"] += 10.0
    assert 1 < cluster.attempts <= 4
    [message] = {message for message in cluster.events if "lacks progress" in message}
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


@pytest.mark.parametrize("cycles", [0, 3])
def test_a_job_that_can_not_be_looked_at_is_told_of_and_holds_up_no_other(
    cycles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, clock = Cluster(), {"now": 1_800_000_000.0}
    store = small_store(cluster, JOBS, clock["now"])
    planner = planner_of(cluster, store, clock)

    def run(count: int) -> None:
        for _ in range(count):
            planner.cycle()
            clock["now"] += 10.0

    def failing() -> set[JobKey]:
        found = ((key, find_condition(job.status.conditions, "Degraded")) for key, job in store.jobs().items())
        return {key for key, degraded in found if degraded is not None and degraded.reason == Reason.OPERATOR_FAILED}

    run(cycles)
    first = min(store.jobs())
    placed = store.jobs()[first].job.state.revision
    answer = Executor.trace_answer

    def failing_for_first(self: Executor, job: Job) -> TraceAnswer | None:
        if job.key == first:
            raise KeyError("step")
        return answer(self, job)

    with monkeypatch.context() as patch:
        patch.setattr(Executor, "trace_answer", lambda self, job: {}["step"] if job.key == first else answer(self, job))
        for job in store.jobs().values():
            store.tell(job.job.key)
        run(2)
        assert failing() == {first}
        degraded = find_condition(store.jobs()[first].status.conditions, "Degraded")
        assert degraded is not None and "KeyError: 'step'" in degraded.message
        assert all(job.status.conditions for job in store.jobs().values())
        assert store.jobs()[first].job.state.revision == placed
    run(2)
    assert failing() == set()


class Judging(Cluster):
    """Counts the dry runs of each cycle; does not answer about one job. As with an API server, a thread asks while the
    loop submits more."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.silent = ""
        self._thread = ThreadPoolExecutor(1)

    def submit(self, function: Any, *arguments: Any) -> Future[None]:
        """Not before the loop has submitted more."""

        def later() -> None:
            time.sleep(0.02)
            function(*arguments)

        return self._thread.submit(later)

    def create(self, resource: Resource, body: dict[str, Any], **options: bool) -> Any:
        """A dry run, or an Event."""
        if not options.get("dry_run"):
            return super().create(resource, body)
        job = body["metadata"]["labels"][LABEL_JOB]
        self.asked.append(job)
        if job == self.silent:
            raise error_from(500, b"{}", None)
        return body


def test_after_a_restart_a_cycle_asks_for_few_dry_runs_and_all_are_made_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = 4
    monkeypatch.setattr(template_checks, "REQUESTS_PER_CYCLE", most)
    whole = SyntheticJob.profiled_job

    def with_variant(self: SyntheticJob) -> dict[str, Any]:
        made = whole(self)
        made["spec"].setdefault("placement", {})["variants"] = [{"vendor": "AMD"}]
        return made

    monkeypatch.setattr(SyntheticJob, "profiled_job", with_variant)
    cluster, clock = Judging(), {"now": 1_800_000_000.0}
    store = small_store(cluster, JOBS, clock["now"])
    planner = planner_of(cluster, store, clock)
    cluster.silent = min(store.jobs()).name
    asked = []
    for cycle in range(JOBS):
        cluster.asked = []
        planner.cycle()
        clock["now"] += 10.0
        asked.append(len(cluster.asked))
        again = cycle * 10.0 % template_checks.AGAIN_SECONDS == 0.0
        assert cluster.asked.count(cluster.silent) == again, "it does not use up what others may ask"
    assert 0 < max(asked) <= most
    checks = planner._parts.executor.checks
    unknown = {key.name for key, job in store.jobs().items() if not checks.variants_checked(job.job)}
    assert unknown == {cluster.silent}
    assert asked[-1] == 0


def test_a_new_job_that_has_no_place_is_asked_about_at_once() -> None:
    """Its first status is written in the same cycle."""
    cluster, clock = Judging(), {"now": 1_800_000_000.0}
    store = small_store(cluster, 1, clock["now"])
    [member] = synthetic_jobs(1)
    body = member.profiled_job()
    body["metadata"]["name"] = "new"
    body["spec"]["placement"] = {"pools": {"allow": ["no-such-pool"]}}
    store.observe(PROFILED_JOBS, None, cluster.put(PROFILED_JOBS, body))
    planner = planner_of(cluster, store, clock)
    planner.cycle()
    (job,) = (job for key, job in store.jobs().items() if key.name == "new")
    assert job.status.conditions, "it was written"
    assert cluster.asked == ["new"]
    planner.cycle()
    assert cluster.asked == ["new"], "and not asked twice"
