"""Simulated accelerator nodes: kwok keeps them Ready and simulates their pods.

The operator must see no difference, so nodes have the labels and taints of real platforms: GPU feature discovery on the
A100s, EKS and Karpenter on the A10Gs, GKE on the TPUs. The taints keep ordinary pods off these nodes.
"""

import ipaddress
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from devcluster import build, pki, probes
from devcluster.api import Api
from devcluster.control_plane import address
from devcluster.kubectl import Kubectl
from devcluster.processes import PACKAGE_ROOT, Program
from devcluster.spec import POOL_LABEL, REPLAY_PORT, Cluster, DevclusterError

STAGES: Final = Path(__file__).with_name("stages.yaml")


@dataclass(frozen=True)
class Pool:
    name: str
    resource: str
    chips: int
    labels: Mapping[str, str]
    zone: str = "zone-a"

    def node_name(self, index: int) -> str:
        return f"{self.name}-{index}"

    def node(self, index: int) -> dict[str, Any]:
        """A node with ample CPU and memory, so that pods wait for chips only."""
        name = self.node_name(index)
        room = {
            "cpu": "512",
            "memory": "4Ti",
            "ephemeral-storage": "8Ti",
            "pods": "250",
            self.resource: str(self.chips),
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/zone": self.zone,
                    POOL_LABEL: self.name,
                    **self.labels,
                },
            },
            "spec": {"taints": [{"key": self.resource, "value": "present", "effect": "NoSchedule"}]},
            "status": {"capacity": room, "allocatable": room},
        }


A100: Final = Pool(
    "a100",
    "nvidia.com/gpu",
    8,
    {
        "node.kubernetes.io/instance-type": "dgx-a100-80gb",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.family": "ampere",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.memory": "81920",
        "nvidia.com/gpu.compute.major": "8",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/mig.capable": "true",
    },
)
A10G: Final = Pool(
    "a10g",
    "nvidia.com/gpu",
    4,
    {
        "node.kubernetes.io/instance-type": "g5.12xlarge",
        "eks.amazonaws.com/nodegroup": "a10g",
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "karpenter.k8s.aws/instance-family": "g5",
        "karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia",
        "karpenter.k8s.aws/instance-gpu-name": "a10g",
        "karpenter.k8s.aws/instance-gpu-count": "4",
        "karpenter.k8s.aws/instance-gpu-memory": "22888",
    },
)
TPU_V5E: Final = Pool(
    "tpu-v5e",
    "google.com/tpu",
    8,  # one host with all 8 chips of a 2x4 slice: a node is a slice
    {
        "node.kubernetes.io/instance-type": "ct5lp-hightpu-8t",
        "cloud.google.com/gke-nodepool": "tpu-v5e",
        "cloud.google.com/machine-family": "ct5lp",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x4",
        "cloud.google.com/gke-accelerator-count": "8",
    },
)
POOLS: Final[Mapping[str, Pool]] = {pool.name: pool for pool in (A100, A10G, TPU_V5E)}


def pool_named(name: str) -> Pool:
    try:
        return POOLS[name]
    except KeyError:
        raise DevclusterError(f"no simulated pool is called {name!r}; there are: {', '.join(POOLS)}") from None


def default_counts(cluster: Cluster) -> dict[str, int]:
    size = cluster.simulated
    return {A100.name: size.a100, A10G.name: size.a10g, TPU_V5E.name: size.tpu_v5e}


def current_nodes(kubectl: Kubectl, pool: Pool) -> list[str]:
    listed = kubectl("get", "nodes", f"--selector={POOL_LABEL}={pool.name}", "--output=name").split()
    return [name.removeprefix("node/") for name in listed]


def ensure_nodes(kubectl: Kubectl, pool: Pool, count: int) -> None:
    """Make sure that there are at least `count` nodes. A larger pool keeps its size."""
    names = set(current_nodes(kubectl, pool))
    kubectl.apply(pool.node(index) for index in range(count))
    # Creation includes the status of a node, server-side apply of an existing one does not.
    existing = [pool.node(index) for index in range(count) if pool.node_name(index) in names]
    kubectl.apply(existing, "--subresource=status")


def set_nodes(api: Api, pool: Pool, count: int) -> None:
    """Set the number of nodes. The highest numbers are deleted first, with their pods."""
    if count < 0:
        raise DevclusterError(f"a pool cannot have {count} nodes")
    listed = api.request("GET", f"/api/v1/nodes?labelSelector={POOL_LABEL}%3D{pool.name}")["items"]
    names = {node["metadata"]["name"] for node in listed}
    wanted = {pool.node_name(index): index for index in range(count)}
    api.in_parallel(lambda name: api.request("DELETE", f"/api/v1/nodes/{name}"), sorted(names - set(wanted)))
    fresh = [pool.node(index) for name, index in wanted.items() if name not in names]
    api.in_parallel(lambda node: api.request("POST", "/api/v1/nodes?fieldManager=devcluster", node), fresh)


def ready_nodes(api: Api, pool: Pool) -> int:
    listed = api.request("GET", f"/api/v1/nodes?resourceVersion=0&labelSelector={POOL_LABEL}%3D{pool.name}")["items"]
    conditions = (condition for node in listed for condition in node["status"].get("conditions", []))
    return sum(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def programs(cluster: Cluster, *, root: bool) -> tuple[Program, ...]:
    return (_kwok(cluster, root=root), *(_replay(cluster) if root else ()))


def _kwok(cluster: Cluster, *, root: bool) -> Program:
    here = address(cluster, root=root)
    kubeconfig = pki.kubeconfig(cluster, "kwok")
    network = ipaddress.ip_network(cluster.simulated_cidr)
    return Program(
        "kwok",
        (
            build.binary("kwok"),
            f"--kubeconfig={kubeconfig}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--config={STAGES}",
            f"--node-ip={here}",
            f"--cidr={network[1]}/{network.prefixlen}",
            f"--server-address={here}:{cluster.ports.kwok}",
            "--node-lease-duration-seconds=40",
            "--v=WARN",  # otherwise a line for each node's lease every few seconds
        ),
        ports=(cluster.ports.kwok,),
        namespace=cluster.namespace if root else None,
        reads=(STAGES, kubeconfig),
        ready=probes.http(f"http://{here}:{cluster.ports.kwok}/healthz"),
    )


def _replay(cluster: Cluster) -> tuple[Program, ...]:
    """The replay, which answers on the address of every simulated pod. It needs the namespace where these are local."""
    module = find_spec("devcluster.replay")
    if module is None or module.origin is None:
        return ()
    origin = Path(module.origin)
    sources = sorted(origin.parent.glob("*.py")) if origin.name == "__init__.py" else [origin]
    program = Program(
        "replay",
        (
            sys.executable,
            *("-m", "devcluster.replay"),
            f"--kubeconfig={cluster.kubeconfig}",
            f"--listen=0.0.0.0:{REPLAY_PORT}",
            f"--log={cluster.logs / 'replay-requests.log'}",
        ),
        ports=(REPLAY_PORT,),
        environment={"PYTHONPATH": PACKAGE_ROOT},
        namespace=cluster.simulated_namespace,
        reads=(cluster.kubeconfig, *sources),
        ready=probes.tcp(cluster.simulated_ip, REPLAY_PORT),
    )
    return (program,)
