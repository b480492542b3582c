"""A child in a queue is stopped and started through its Workload, because Kueue resumes what it has admitted."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import JOBS
from rightpool.api.pause import Pause
from rightpool.cluster.resources import WORKLOADS
from rightpool.workloads.names import ANNOTATION_HELD
from tests.unit.runtime.act.world import World

STOPPED = Pause(Reason.SUSPENDED, 1.7e9, stopping=True)
HELD = f"apply bert-r1 {{'{ANNOTATION_HELD}': 'true'}}"
NOTE_REMOVED = "apply bert-r1 {}"


def kueue(world: World, *, suspended: bool) -> None:
    """Kueue stops or starts the child."""
    body = world.cluster.objects[JOBS, "bert-r1"]
    body["spec"]["suspend"] = suspended
    world.store.observe(JOBS, "MODIFIED", world.cluster.put(JOBS, body))


def workload(world: World, *, active: bool = True, of: str = "bert-r1-uid") -> None:
    """The Workload that Kueue made of the child, as others have written it."""
    owner = {"kind": "Job", "name": "bert-r1", "uid": of, "controller": True}
    about = {"name": "job-bert-r1", "namespace": "default", "uid": "w", "ownerReferences": [owner]}
    world.cluster.put(WORKLOADS, {"metadata": about, "spec": {"active": active}})


def active(world: World) -> Any:
    return world.cluster.objects[WORKLOADS, "job-bert-r1"]["spec"]["active"]


@pytest.fixture
def running(world: World) -> World:
    """A queued job whose child was admitted."""
    world.run(world.persist(queueName="research"))
    kueue(world, suspended=False)
    workload(world)
    return world


def test_a_queued_child_is_stopped_through_its_queue(running: World) -> None:
    job = running.persist(queueName="research", suspend=True, pause=STOPPED)
    assert running.run(job) == [HELD, "apply job-bert-r1 {'active': False}"], "spec.suspend of the child is Kueue's"
    assert running.run(running.read()) == [HELD], "asked again until Kueue has stopped it, the Workload not"
    kueue(running, suspended=True)
    running.run(running.read())
    assert running.cluster.requests == [], "what complies is left alone"


def test_it_is_given_back_to_its_queue(running: World) -> None:
    running.run(running.persist(queueName="research", suspend=True, pause=STOPPED))
    kueue(running, suspended=True)
    job = running.persist(queueName="research")
    assert running.run(job) == ["apply job-bert-r1 {'active': True}", NOTE_REMOVED]
    running.run(running.read())
    assert running.cluster.requests == []


def test_a_workload_that_somebody_else_deactivated_stays_so(running: World) -> None:
    workload(running, active=False)
    kueue(running, suspended=True)
    running.run(running.read())
    assert running.cluster.requests == [] and active(running) is False


def test_a_forged_note_activates_nothing(running: World) -> None:
    workload(running, active=False)
    running.cluster.objects[JOBS, "bert-r1"]["metadata"]["annotations"] = {ANNOTATION_HELD: "true"}
    kueue(running, suspended=True)
    assert running.run(running.read()) == [NOTE_REMOVED]
    assert active(running) is False


def test_a_child_that_waits_is_not_admitted_while_it_is_suspended(running: World) -> None:
    kueue(running, suspended=True)
    running.run(running.persist(queueName="research", suspend=True, pause=STOPPED))
    assert active(running) is False


def test_a_workload_of_another_child_is_left_alone(running: World) -> None:
    workload(running, of="another")
    assert running.run(running.persist(queueName="research", suspend=True, pause=STOPPED)) == [HELD]
    assert active(running) is True


def test_without_kueue_the_child_itself_is_suspended(running: World) -> None:
    running.cluster.absent.add(WORKLOADS)
    running.run(running.persist(queueName="research", suspend=True, pause=STOPPED))
    assert running.cluster.objects[JOBS, "bert-r1"]["spec"]["suspend"] is True
    running.run(running.read())
    assert running.cluster.requests == [], "what complies is left alone"
    running.run(running.persist(queueName="research"))
    assert running.cluster.objects[JOBS, "bert-r1"]["spec"]["suspend"] is True, "its queue starts it, once it is there"


def test_a_former_leader_stops_nothing(running: World) -> None:
    job = running.persist(queueName="research", suspend=True, pause=STOPPED)
    running.leader = False
    assert running.run(job) == []


def test_no_child_is_created_for_the_queue_while_the_job_is_suspended(world: World) -> None:
    assert world.run(world.persist(queueName="research", suspend=True, pause=STOPPED)) == []
