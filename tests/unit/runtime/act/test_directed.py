"""Where the Service of a server sends its requests, and that nothing is ended that it may send one to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.kubernetes import Resource
from rightpool.api.migration import Phase
from rightpool.cluster.errors import Unavailable
from rightpool.cluster.resources import SERVICES
from rightpool.contract import LABEL_REVISION
from rightpool.planning.jobs.job import Job
from tests.unit.runtime.act.world import World, migration
from tests.unit.runtime.makers import Body

PROBE = {"readinessProbe": {"tcpSocket": {"port": 8000}}}
SERVER = {"port": 8000, "template": {"spec": {"containers": [{"name": "server", "image": "mine:1", **PROBE}]}}}


def in_phase(world: World, phase: Phase | None) -> Job:
    """The server whose move is there; None: it is over, or has not begun."""
    moving = None if phase is None else replace(migration(world, phase), action=Action.MOVE)
    return world.persist(moving, workload={"server": SERVER}, elasticity={}, checkpoint={})


def answers(world: World) -> str | None:
    """The Revision that requests go to; None: all."""
    selector: Body = world.cluster.objects[SERVICES, "bert"]["spec"]["selector"]
    return selector.get(LABEL_REVISION)


def sharing(world: World) -> None:
    world.run(in_phase(world, None))
    assert answers(world) == "1"
    world.run(in_phase(world, Phase.SHARING))
    assert answers(world) is None


def test_one_write_a_step_sends_requests_elsewhere(world: World) -> None:
    sharing(world)
    assert world.run(world.read()) == [], "and none where they go there already"
    [write] = world.run(in_phase(world, Phase.HOLDING))
    assert write.startswith("apply bert ") and answers(world) == "2"


def test_requests_go_back_before_anything_is_ended(world: World) -> None:
    sharing(world)
    first, second = world.run(in_phase(world, None))
    assert first.startswith("apply bert ") and second == "delete bert-r2"
    assert answers(world) == "1"


def test_nothing_is_ended_while_requests_may_go_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing(world)
    apply = world.cluster.apply

    def refused(resource: Resource, body: Mapping[str, Any], **settings: Any) -> Body:
        if resource is SERVICES:
            raise Unavailable("away")
        return apply(resource, body, **settings)

    monkeypatch.setattr(world.cluster, "apply", refused)
    assert world.run(in_phase(world, None)) == []
    monkeypatch.setattr(world.cluster, "apply", apply)
    assert world.run(world.read())[-1] == "delete bert-r2"
