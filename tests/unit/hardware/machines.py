"""Nodes as real clusters label them, for tests."""

from __future__ import annotations

from rightpool.hardware.node import NodeFacts, Taint

GPU_TAINT = Taint("nvidia.com/gpu", "NoSchedule", "present")
TPU_TAINT = Taint("google.com/tpu", "NoSchedule", "present")


def gfd(name: str, product: str = "NVIDIA-A100-SXM4-80GB", count: int = 8, **labels: str) -> NodeFacts:
    """A node outside a cloud, labelled by GPU feature discovery."""
    own = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(count), "nvidia.com/gpu.memory": "81920"}
    return NodeFacts(name, {**own, **labels}, chips={"nvidia.com/gpu": count})


def gke(
    name: str, pool: str, accelerator: str = "nvidia-l4", count: int = 2, machine: str = "g2-standard-24"
) -> NodeFacts:
    """A GKE node with GPUs."""
    labels = {
        "cloud.google.com/gke-nodepool": pool,
        "cloud.google.com/gke-accelerator": accelerator,
        "cloud.google.com/gke-accelerator-count": str(count),
        "node.kubernetes.io/instance-type": machine,
    }
    return NodeFacts(name, labels, (GPU_TAINT,), {"nvidia.com/gpu": count})


def gke_tpu(
    name: str, pool: str, topology: str = "2x4", chips: int = 8, kind: str = "tpu-v5-lite-podslice"
) -> NodeFacts:
    """A GKE node with TPU chips."""
    labels = {
        "cloud.google.com/gke-nodepool": pool,
        "cloud.google.com/gke-tpu-accelerator": kind,
        "cloud.google.com/gke-tpu-topology": topology,
    }
    return NodeFacts(name, labels, (TPU_TAINT,), {"google.com/tpu": chips})


def karpenter(
    name: str,
    pool: str,
    gpu: str = "a10g",
    count: int = 4,
    instance: str = "g5.12xlarge",
    memory: int = 22888,
    capacity: str = "on-demand",
) -> NodeFacts:
    """An EKS node that Karpenter made."""
    labels = {
        "karpenter.sh/nodepool": pool,
        "karpenter.sh/capacity-type": capacity,
        "karpenter.k8s.aws/instance-gpu-name": gpu,
        "karpenter.k8s.aws/instance-gpu-count": str(count),
        "karpenter.k8s.aws/instance-gpu-memory": str(memory),
        "node.kubernetes.io/instance-type": instance,
        "topology.kubernetes.io/region": "us-east-1",
    }
    return NodeFacts(name, labels, chips={"nvidia.com/gpu": count})


def eks(name: str, group: str, instance: str = "p4d.24xlarge", chips: int = 8) -> NodeFacts:
    """A node of an EKS managed node group, without GPU feature discovery."""
    labels = {
        "eks.amazonaws.com/nodegroup": group,
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "node.kubernetes.io/instance-type": instance,
        "topology.kubernetes.io/region": "us-east-1",
    }
    return NodeFacts(name, labels, chips={"nvidia.com/gpu": chips})


def aks(name: str, instance: str = "Standard_ND96amsr_A100_v4", chips: int = 8, spot: bool = False) -> NodeFacts:
    """An AKS node, without GPU feature discovery."""
    labels = {"node.kubernetes.io/instance-type": instance, "topology.kubernetes.io/region": "eastus"}
    taints: tuple[Taint, ...] = ()
    if spot:
        labels["kubernetes.azure.com/scalesetpriority"] = "spot"
        taints = (Taint("kubernetes.azure.com/scalesetpriority", "NoSchedule", "spot"),)
    return NodeFacts(name, labels, taints, {"nvidia.com/gpu": chips})
