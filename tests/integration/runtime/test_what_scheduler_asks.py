"""What Kubernetes says and stores beside pods is followed on a real API server: refusals, volumes, namespaces."""

from __future__ import annotations

import pytest

from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import NAMESPACES, PERSISTENT_VOLUMES
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.patience import eventually

pytestmark = pytest.mark.cluster

QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas")
CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")


def test_a_quota_that_refuses_pods_is_quoted(start: Start, fleet: Fleet, client: ClusterClient) -> None:
    hard = {"limits.cpu": "64", "limits.memory": "512Gi"}
    about = {"name": "compute", "namespace": fleet.namespace}
    quota = client.create(QUOTAS, {"metadata": about, "spec": {"hard": hard}})
    amounts = {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "16Gi"}}
    container = {"name": "trainer", "image": "example.com/trainer:1", "resources": amounts}
    start()
    fleet.create("bert", template={"spec": {"containers": [container]}})
    eventually(lambda: fleet.condition("bert", "Placed").get("reason") == "PodsRefused", "its Event is read")
    message = fleet.condition("bert", "Placed")["message"]
    assert "must specify limits.cpu for: rightpool-agent,rightpool-profiler" in message
    client.delete(QUOTAS, "compute", fleet.namespace, uid=quota["metadata"]["uid"])
    eventually(lambda: fleet.running("bert", "bert-r1"), "Kubernetes tries again")


def test_the_profiler_has_no_user_where_the_namespace_gives_one(
    start: Start, fleet: Fleet, client: ClusterClient
) -> None:
    note = {"openshift.io/sa.scc.uid-range": "1000670000/10000"}
    client.apply(NAMESPACES, {"metadata": {"name": fleet.namespace, "annotations": note}}, manager="test")
    start()
    fleet.create("bert")
    eventually(lambda: fleet.child("bert-r1") is not None)
    made = client.get(JOBS, "bert-r1", fleet.namespace)["spec"]["template"]["spec"]["initContainers"]
    assert len(made) == 2 and all("runAsUser" not in each["securityContext"] for each in made)


def test_a_volume_that_is_bound_elsewhere_rules_a_pool_out(start: Start, fleet: Fleet, client: ClusterClient) -> None:
    name = f"{fleet.namespace}-data"
    far = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-far"]}
    volume: Body = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "claimRef": {"namespace": fleet.namespace, "name": "data"},
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0a"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [far]}]}},
    }
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "volumeName": name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    made = client.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": volume})
    try:
        client.create(CLAIMS, {"metadata": {"name": "data", "namespace": fleet.namespace}, "spec": claim})
        container = {"name": "trainer", "image": "example.com/trainer:1"}
        mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        start()
        fleet.create("bert", template={"spec": {"containers": [container], "volumes": mounted}})
        eventually(lambda: "zone-far" in fleet.condition("bert", "Placed").get("message", ""), "the zone is named")
        assert fleet.condition("bert", "Placed")["reason"] == "NoFeasiblePool"
        assert fleet.child("bert-r1") is None
    finally:
        client.delete(PERSISTENT_VOLUMES, name, uid=made["metadata"]["uid"])
