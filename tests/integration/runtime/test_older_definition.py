"""An operator on a cluster whose definition of ProfiledJobs is older than the operator."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import Conflict
from rightpool.cluster.resources import EVENTS
from tests.integration.runtime.conftest import CRDS, Start
from tests.integration.runtime.harness import ROOT, Body, Fleet
from tests.patience import eventually

pytestmark = pytest.mark.cluster

NAME = "profiledjobs.rightpool.dev"
LACKS = ("observedGeneration", "summary")
CYCLES_LONG = 20


def put(client: ClusterClient, spec: Body) -> None:
    while True:
        try:
            client.replace(CRDS, {**client.get(CRDS, NAME), "spec": spec})
            return
        except Conflict:
            continue


@contextmanager
def older(client: ClusterClient) -> Iterator[None]:
    """The definition of before these fields. What others of the status hold stays."""
    whole = yaml.safe_load((ROOT / "crds" / "rightpool.dev_profiledjobs.yaml").read_text())["spec"]
    spec: Any = copy.deepcopy(whole)
    for version in spec["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        for field in LACKS:
            del status["properties"][field]
    put(client, spec)
    try:
        yield
    finally:
        put(client, whole)


def refusals(fleet: Fleet) -> list[Body]:
    return [event for event in fleet.client.list_all(EVENTS, fleet.namespace) if event["reason"] == "StatusRefused"]


def test_it_says_so_writes_nothing_for_ever_and_goes_on_once_the_definition_is_replaced(
    client: ClusterClient, fleet: Fleet, start: Start
) -> None:
    with older(client):
        fleet.create("bert")
        operator = start()
        eventually(lambda: refusals(fleet), "the refusal is told")
        (event,) = refusals(fleet)
        assert event["type"] == "Warning"
        assert "older than the operator" in event["message"] and any(field in event["message"] for field in LACKS)
        began, tried = time.monotonic(), written(operator)
        version, end = fleet.job("bert")["metadata"]["resourceVersion"], operator.cycles + CYCLES_LONG
        eventually(lambda: operator.cycles >= end, "it goes on to look")
        # Once a minute: that many cycles take ten seconds, or several minutes of a busy machine.
        tries = written(operator) - tried
        assert tries <= 2 + (time.monotonic() - began) / 60
        assert fleet.job("bert")["metadata"]["resourceVersion"] == version
        assert not fleet.pods("bert"), "nothing is started before it can be written down"
        assert len(refusals(fleet)) == 1
    fleet.edit("bert", lambda spec: spec.update(adaptation={"cooldown": "2h"}))  # spares the rest of the minute
    eventually(lambda: fleet.running("bert", "bert-r1"), "the job starts")


def written(operator: Any) -> float:
    """Status writes that were tried."""
    return operator.metric("rightpool_operator_status_writes_total")
