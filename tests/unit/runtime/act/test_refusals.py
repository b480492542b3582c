"""A child that the API server rejects: how it is reported, and when it is tried again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import JOBS, Resource
from rightpool.api.migration import Phase
from rightpool.cluster.errors import Invalid, error_from
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.planning.moves.commands import commands
from tests.unit.runtime.act.world import World, migration
from tests.unit.runtime.makers import Body, child, profiled_job


def test_a_rejection_is_reported_and_not_retried_in_every_cycle(world: World) -> None:
    job = world.persist()
    world.cluster.refuse = Invalid("spec.template: no")
    world.run(job)
    refusal = world.executor.refusal(job)
    assert refusal is not None
    assert (refusal.reason, refusal.message) == (Reason.INVALID_TEMPLATE, "spec.template: no")
    world.cluster.refuse = None
    assert not any(world.executor.needed(job, command) for command in commands(job))
    assert world.executor.refusal(replace(job, generation=2)) is None, "an edit is tried at once"
    world.clock = 61.0
    assert len(world.run(job)) == 2
    assert world.executor.refusal(job) is None


def test_a_field_that_is_refused_is_named_as_the_user_knows_it(world: World) -> None:
    """The operator's own variables come first in the child."""
    env = [{"name": "LR", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    template = {"spec": {"containers": [{"name": "trainer", "image": "x", "env": env}]}}
    job = world.persist(workload={"job": {"chipsPerReplica": 4, "replicas": 1, "template": template}})
    refused: list[str] = []

    def store(resource: Resource, body: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False) -> Body:
        names = [variable["name"] for variable in body["spec"]["template"]["spec"]["containers"][0]["env"]]
        refused.append(f"spec.template.spec.containers[0].env[{names.index('LR')}].valueFrom: may not be specified")
        raise Invalid(refused[-1])

    world.cluster.create = store  # type: ignore[method-assign]
    world.run(job)
    assert "env[0]" not in refused[-1], "the child has others before it"
    refusal = world.executor.refusal(job)
    assert refusal is not None
    assert refusal.message == "spec.template.spec.containers[0].env[LR].valueFrom: may not be specified"


def test_a_child_that_is_too_large_is_reported(world: World) -> None:
    """The API server reports an error of its own retry. A dry run succeeds, because it stores nothing."""
    create = world.cluster.create
    complaint = error_from(422, b'{"message": "labels[controller-uid]: Invalid value"}')

    def store(resource: Resource, body: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False) -> Body:
        if dry_run:
            return create(resource, body, dry_run=True, strict=strict)
        raise complaint

    world.cluster.create = store  # type: ignore[method-assign]
    template = {"spec": {"containers": [{"name": "trainer", "image": "x", "args": ["x" * 2**20]}]}}
    job = world.persist(workload={"job": {"chipsPerReplica": 4, "replicas": 1, "template": template}})
    assert world.run(job) == []
    refusal = world.executor.refusal(job)
    assert refusal is not None and refusal.reason is Reason.INVALID_TEMPLATE
    assert (
        "bytes, which is too large to be stored: make the pod templates of spec.workload.job smaller" in refusal.message
    )


def test_a_too_large_request_is_invalid() -> None:
    for status, message in (
        (500, "etcdserver: request is too large"),
        (413, "Request entity too large: limit is 3145728"),
    ):
        assert isinstance(error_from(status, json.dumps({"message": message}).encode()), Invalid)


def test_a_foreign_job_of_the_childs_name_is_not_changed(world: World) -> None:
    theirs = world.cluster.put(JOBS, child(owner="foreign", kind="Pipeline"))
    world.store.observe(JOBS, "ADDED", theirs)
    job = world.persist()
    assert world.run(job) == []
    refusal = world.executor.refusal(job)
    assert refusal is not None and refusal.reason is Reason.NAME_TAKEN
    assert "Job bert-r1" in refusal.message and "another name" in refusal.message


def test_a_large_child_with_another_error_reports_that_error(world: World) -> None:
    template = {"spec": {"containers": [{"name": "trainer", "image": "x", "args": ["x" * 2**20]}]}}
    job = world.persist(workload={"job": {"chipsPerReplica": 4, "replicas": 1, "template": template}})
    world.cluster.refuse = Invalid("spec.template: no")
    world.run(job)
    refusal = world.executor.refusal(job)
    assert refusal is not None and refusal.message == "spec.template: no"


def test_a_template_is_checked_once_for_each_spec_before_there_is_a_place_for_it(world: World) -> None:
    body = profiled_job()
    world.cluster.put(PROFILED_JOBS, body)
    job = world.read()
    assert world.run(job) == []
    assert world.cluster.requests == ["POST jobs (dry run)"]
    world.clock = 100.0
    world.run(job)
    assert world.cluster.requests == []
    world.cluster.refuse = Invalid('strict decoding error: unknown field "spec.template.spec.containers[0].comand"')
    edited = replace(job, generation=2)
    world.run(edited)
    refusal = world.executor.refusal(edited)
    assert refusal is not None
    assert (refusal.reason, "comand" in refusal.message) == (Reason.INVALID_TEMPLATE, True)


def test_what_an_edit_would_start_is_checked_while_the_job_runs_on(world: World) -> None:
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    planned = replace(migration(world, Phase.PLANNED), action=Action.UPDATE)
    job = world.persist(planned)
    assert not world.executor.checks.template_checked(job)
    world.cluster.refuse = Invalid("unknown field")
    world.run(job)
    assert world.executor.checks.template_checked(job)
    refusal = world.executor.refusal(job)
    assert refusal is not None and refusal.revision == planned.target.revision
    assert not any(world.executor.needed(job, command) for command in commands(job)), "and not again"
