"""A PlacementPolicy that another version's definition let through."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from devcluster.kubectl import Kubectl
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import Conflict, Invalid, NotFound
from rightpool.cluster.resources import EVENTS, PLACEMENT_POLICIES
from tests.integration.runtime.conftest import CRDS, Start
from tests.integration.runtime.harness import ROOT, Body
from tests.patience import eventually

pytestmark = pytest.mark.cluster


def stored(client: ClusterClient) -> Body | None:
    try:
        return client.get(PLACEMENT_POLICIES, "default")
    except NotFound:
        return None


def put(client: ClusterClient, spec: Body) -> Body:
    """Declare the policy, whoever declared it before."""
    while True:
        before = stored(client)
        try:
            if before is None:
                return client.create(PLACEMENT_POLICIES, {"metadata": {"name": "default"}, "spec": spec})
            return client.replace(PLACEMENT_POLICIES, {**before, "spec": spec})
        except Conflict:
            continue


@pytest.fixture
def bad_policy(client: ClusterClient) -> Iterator[Body]:
    """As stored where the definition did not ask what a deadline looks like; the definition is put back."""
    definition = yaml.safe_load((ROOT / "crds" / "rightpool.dev_placementpolicies.yaml").read_text())
    body = {key: definition[key] for key in ("metadata", "spec")}
    looser = deepcopy(body)
    schema = looser["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema["properties"]["startDeadline"].pop("x-kubernetes-validations")
    before = stored(client)
    client.apply(CRDS, looser)
    try:
        yield eventually(lambda: accepted(client))
    finally:
        client.apply(CRDS, body)
        if before is None:
            client.delete(PLACEMENT_POLICIES, "default")
        else:
            put(client, before["spec"])


def accepted(client: ClusterClient) -> Body | None:
    """The policy, once the API server goes by the looser definition."""
    try:
        return put(client, {"defaultAdaptationMode": "Auto", "startDeadline": "soon"})
    except Invalid:
        return None


def ready(client: ClusterClient) -> tuple[str, str]:
    conditions = client.get(PLACEMENT_POLICIES, "default")["status"]["conditions"]
    return next((one["status"], one["reason"]) for one in conditions if one["type"] == "Ready")


def test_a_policy_that_cannot_be_read_says_so_and_that_it_is_corrected(
    start: Start, client: ClusterClient, bad_policy: Body, kubeconfig: Path
) -> None:
    uid = bad_policy["metadata"]["uid"]

    def events() -> list[tuple[str, str]]:
        found = [e for e in client.list_all(EVENTS, "default") if e["involvedObject"].get("uid") == uid]
        return sorted((e["type"], e["reason"]) for e in found)

    operator = start("a")
    eventually(lambda: events() == [("Warning", "InvalidSpec")])
    shown = Kubectl(kubeconfig)("describe", "placementpolicy", "default").partition("Events:")[2]
    assert "the defaults hold until it is corrected: spec.startDeadline" in shown
    assert ready(client) == ("False", "InvalidSpec")
    eventually(lambda: operator.logged("the policy can't be read"))
    put(client, {"defaultAdaptationMode": "Auto", "startDeadline": "10m"})
    eventually(lambda: events() == [("Normal", "PolicyRead"), ("Warning", "InvalidSpec")])
    assert ready(client) == ("True", "PolicyRead")
