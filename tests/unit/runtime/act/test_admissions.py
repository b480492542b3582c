"""The PodTemplates of adopted objects: written once for each change, and by who leads."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import AlreadyExists
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import LABEL_REVISION
from rightpool.planning.jobs.job import JobKey
from rightpool.runtime.act.admissions import AGAIN_SECONDS, Admissions
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.observe.store import Store
from tests.unit.runtime.act.test_objects import REF, Moving
from tests.unit.runtime.makers import Body, profiled_job


class Api:
    """An API server that has PodTemplates alone."""

    def __init__(self) -> None:
        self.stored: dict[str, Body] = {}
        self.writes: list[str] = []
        self.held, self.transitions = True, 1

    def held_for(self, seconds: float) -> bool:
        return self.held

    def submit(self, function: Any, *arguments: Any) -> None:
        function(*arguments)

    def pages(self, *_: Any, **__: Any) -> Iterator[Listing]:
        yield Listing([copy.deepcopy(body) for body in self.stored.values()], "1", "")

    def create(self, resource: Any, body: Body) -> Body:
        if body["metadata"]["name"] in self.stored:
            raise AlreadyExists("there is one")
        return self._put("create", {**body, "metadata": {**body["metadata"], "uid": "template"}})

    def get(self, resource: Any, name: str, namespace: str) -> Body:
        return copy.deepcopy(self.stored[name])

    def apply(self, resource: Any, body: Body) -> Body:
        assert body["metadata"]["uid"] == self.stored[body["metadata"]["name"]]["metadata"]["uid"]
        return self._put("apply", body)

    def delete(self, resource: Any, name: str, namespace: str, *, uid: str) -> None:
        assert self.stored.pop(name)["metadata"]["uid"] == uid
        self.writes.append("delete")

    def _put(self, verb: str, body: Body) -> Body:
        self.writes.append(f"{verb} r{body['template']['metadata']['labels'][LABEL_REVISION]}")
        self.stored[body["metadata"]["name"]] = body
        return body


class World:
    def __init__(self) -> None:
        self.api, self.store = Api(), Store()
        self.see(Moving().body)
        self.spec()
        self.now = 0.0
        self.admissions = self.operator()

    def operator(self, *, on: bool = True) -> Admissions:
        api: Any = self.api
        return Admissions(
            api, Fence(api, api), self.store, Children("profiler:1", b"k" * 32), clock=lambda: self.now, on=on
        )

    def see(self, body: Body) -> None:
        self.store.observe(JOBS, "MODIFIED", body)

    def spec(self, version: int = 10, **spec: Any) -> None:
        body = {**profiled_job(version=version), "spec": {"workloadRef": REF, **spec}}
        body["metadata"]["generation"] = version
        self.store.observe(PROFILED_JOBS, "MODIFIED", body)

    def follow(self) -> list[str]:
        self.api.writes.clear()
        self.admissions.follow()
        return self.api.writes


@pytest.fixture
def world() -> World:
    return World()


def test_it_is_written_once_also_by_who_leads_next(world: World) -> None:
    assert world.follow() == ["create r1"]
    assert world.follow() == []
    world.admissions = world.operator()
    assert world.follow() == []


def test_before_it_is_resumed_as_another_revision_it_says_so(world: World) -> None:
    world.follow()
    [child], stored = world.store.adopted(), world.store.job(JobKey("research", "bert"))
    assert stored is not None
    moving = Moving()
    world.admissions.write(stored.job, child, 2, replace(moving.ref.placement, chips=8, replicas=2))
    assert world.api.writes == ["create r1", "apply r2"]


def test_what_is_not_to_be_profiled_any_more_has_none(world: World) -> None:
    world.follow()
    world.spec(11, profiling={"mode": "Off"})
    assert world.follow() == ["delete"] and world.follow() == []


def test_who_does_not_lead_and_a_cluster_without_the_policy_write_none(world: World) -> None:
    world.api.held = False
    assert world.follow() == []
    world.api.held = True
    world.now += AGAIN_SECONDS
    assert world.follow() == ["create r1"], "it is tried again"
    world = World()
    world.admissions = world.operator(on=False)
    assert world.follow() == []


def test_a_foreign_one_of_the_name_stays_as_it_is(world: World) -> None:
    mine = {"metadata": {"name": "bert", "namespace": "research", "uid": "mine"}}
    world.api.stored["bert"] = mine
    assert world.follow() == [] and world.api.stored["bert"] is mine
    del world.api.stored["bert"]
    assert world.follow() == [], "nothing is asked for again and again"
    world.now += AGAIN_SECONDS
    assert world.follow() == ["create r1"]
