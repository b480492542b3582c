"""The Service of a Revision of several pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import JOBS, Resource
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.cluster.errors import Forbidden
from rightpool.cluster.resources import SERVICES
from rightpool.runtime.act.services import LOOK_SECONDS
from tests.unit.runtime.act.world import World, migration
from tests.unit.runtime.makers import Body, child


def service(*, owner: str) -> Body:
    """A Service of the child's name with the metadata of `child`."""
    body = child(owner=owner, uid="service-1")
    return {**body, "spec": {"selector": {"app": "theirs"}}, "status": {}}


def gang(world: World) -> None:
    world.ref = replace(world.ref, placement=Placement("a10g", 8, 2))


def test_a_gang_has_a_service_owned_by_its_child(world: World) -> None:
    gang(world)
    begun = ["create bert-r1 suspend=True", "create Service bert-r1", "apply bert-r1 {'suspend': False}"]
    assert world.run(world.persist()) == begun
    made = world.cluster.objects[SERVICES, "bert-r1"]["metadata"]["ownerReferences"]
    assert [(owner["kind"], owner["uid"]) for owner in made] == [("Job", "bert-r1-uid")], "whatever ends one ends both"
    body = child()
    body["spec"]["parallelism"] = 2
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, body))
    job = world.persist(migration(world, Phase.DRAINING))
    assert world.run(job) == ["delete bert-r1"]


def test_a_gang_without_service_after_a_crash_gets_it_before_the_start(world: World) -> None:
    gang(world)
    body = child(suspend=True)
    body["spec"]["parallelism"] = 2
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, body))
    assert world.run(world.persist()) == ["create Service bert-r1", "apply bert-r1 {'suspend': False}"]


def test_a_queued_gang_has_its_service(world: World) -> None:
    gang(world)
    body = child(suspend=True)
    body["spec"]["parallelism"] = 2
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, body))
    assert world.run(world.persist(queueName="research")) == ["create Service bert-r1"]
    assert world.run(world.read()) == [], "and is not looked after in every cycle"


def test_a_foreign_service_of_that_name_is_not_changed(world: World) -> None:
    theirs = world.cluster.put(SERVICES, service(owner="foreign"))
    gang(world)
    assert world.run(world.persist()) == ["create bert-r1 suspend=True"], "without one it is not started"
    assert world.run(world.read()) == []
    assert world.cluster.objects[SERVICES, "bert-r1"] == theirs
    refusal = world.executor.refusal(world.read())
    assert refusal is not None and refusal.reason is Reason.NAME_TAKEN and "Service bert-r1" in refusal.message
    del world.cluster.objects[SERVICES, "bert-r1"]
    world.clock = 61.0
    assert world.run(world.read()) == ["create Service bert-r1", "apply bert-r1 {'suspend': False}"]
    assert world.executor.refusal(world.read()) is None


def test_a_service_that_is_refused_is_told_and_tried_again(world: World) -> None:
    """Such as by a quota of Services."""
    gang(world)
    create, quota = world.cluster.create, "services is forbidden: exceeded quota: few"

    def store(resource: Resource, body: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False) -> Body:
        if resource is SERVICES:
            raise Forbidden(quota)
        return create(resource, body, dry_run=dry_run, strict=strict)

    world.cluster.create = store  # type: ignore[method-assign]
    assert world.run(world.persist()) == ["create bert-r1 suspend=True"], "without one it is not started"
    refusal = world.executor.refusal(world.read())
    assert refusal is not None and (refusal.reason, refusal.message) == (Reason.INVALID_TEMPLATE, quota)
    world.cluster.create = create  # type: ignore[method-assign]
    assert world.run(world.read()) == []
    world.clock = 61.0
    assert world.run(world.read()) == ["create Service bert-r1", "apply bert-r1 {'suspend': False}"]
    assert world.executor.refusal(world.read()) is None


def test_a_quota_that_its_own_service_uses_up_keeps_no_job_from_its_start(world: World) -> None:
    """The API server asks quotas before it looks whether the name is taken. A new operator does not know of it."""
    gang(world)
    body = child(suspend=True)
    body["spec"]["parallelism"] = 2
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, body))
    made = service(owner="job-1")
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "bert-r1", "uid": body["metadata"]["uid"], "controller": True}
    ]
    world.cluster.put(SERVICES, made)

    def refuse(resource: Resource, body: Mapping[str, Any], **_: Any) -> Body:
        raise Forbidden("services is forbidden: exceeded quota: few")

    world.cluster.create = refuse  # type: ignore[method-assign]
    assert world.run(world.persist()) == ["apply bert-r1 {'suspend': False}"]
    assert world.executor.refusal(world.read()) is None


def left_over(world: World) -> None:
    """A Service of a Job that had the child's name and is gone, which the garbage collector has not seen to yet."""
    body = service(owner="job-0")
    body["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job", "name": "bert-r1"}
    world.cluster.put(SERVICES, body)


def test_the_service_of_an_earlier_child_of_that_name_is_ended(world: World) -> None:
    left_over(world)
    gang(world)
    assert world.run(world.persist()) == ["create bert-r1 suspend=True", "delete Service bert-r1"]
    assert world.executor.refusal(world.read()) is None, "it needs no correction by a user"
    assert world.run(world.read()) == [], "asked for once; it is still there"
    del world.cluster.objects[SERVICES, "bert-r1"]
    assert world.run(world.read()) == ["create Service bert-r1", "apply bert-r1 {'suspend': False}"]


def test_the_service_of_a_later_child_is_not_ended_as_an_earlier_ones(world: World) -> None:
    """The store is late: another process has replaced the child since, and served the new one."""
    gang(world)
    body = child(suspend=True)
    body["spec"]["parallelism"] = 2
    world.store.observe(JOBS, "ADDED", body)
    world.cluster.put(JOBS, child(uid="job-0", suspend=True))
    left_over(world)
    assert world.run(world.persist()) == []
    assert world.executor.refusal(world.read()) is None


def test_the_service_of_a_job_with_another_name_is_not_changed(world: World) -> None:
    left_over(world)
    world.cluster.objects[SERVICES, "bert-r1"]["metadata"]["ownerReferences"][0]["name"] = "their-r1"
    gang(world)
    assert world.run(world.persist()) == ["create bert-r1 suspend=True"]
    refusal = world.executor.refusal(world.read())
    assert refusal is not None and refusal.reason is Reason.NAME_TAKEN


PROBED = {"name": "server", "image": "example.com/server:1", "readinessProbe": {"tcpSocket": {"port": 8000}}}
SERVER = {"server": {"chipsPerReplica": 4, "port": 8000, "template": {"spec": {"containers": [PROBED]}}}}


def test_the_service_of_requests_is_made_anew_where_somebody_deletes_it(world: World) -> None:
    assert "create Service bert" in world.run(world.persist(workload=SERVER))
    world.executor.begin()
    world.executor.begin()
    assert world.run(world.read()) == [], "it is there"
    del world.cluster.objects[SERVICES, "bert"]
    world.executor.begin()
    assert world.run(world.read()) == [], "it is not looked for in every cycle"
    world.clock += LOOK_SECONDS
    world.store.take_news()
    world.executor.begin()
    world.executor.begin()
    assert world.read().key in world.store.take_news(), "a job that rests is looked at"
    assert world.run(world.read()) == ["create Service bert"]


def test_a_service_that_another_server_has_is_not_shared(world: World) -> None:
    body = service(owner="uid-2")
    body["metadata"] |= {"name": "bert"}
    body["metadata"]["ownerReferences"][0] |= {"name": "ranker"}
    world.cluster.put(SERVICES, body)
    assert "create Service bert" not in world.run(world.persist(workload=SERVER))
    refusal = world.executor.refusal(world.read())
    assert refusal is not None and refusal.reason is Reason.NAME_TAKEN
    assert refusal.message.startswith("Service bert is that of ProfiledJob ranker: create this one anew with another ")
