"""Labels of nodes that say what hardware they are: who sets them, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# GPU feature discovery.
GFD_PRODUCT: Final = "nvidia.com/gpu.product"
GFD_COUNT: Final = "nvidia.com/gpu.count"
GFD_MEMORY: Final = "nvidia.com/gpu.memory"  # MiB
GFD_REPLICAS: Final = "nvidia.com/gpu.replicas"  # above 1: time slicing or MPS

# GKE.
GKE_GPU: Final = "cloud.google.com/gke-accelerator"
GKE_GPU_COUNT: Final = "cloud.google.com/gke-accelerator-count"
GKE_TPU: Final = "cloud.google.com/gke-tpu-accelerator"
GKE_TPU_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
GKE_NODEPOOL: Final = "cloud.google.com/gke-nodepool"
GKE_SPOT: Final = "cloud.google.com/gke-spot"

# EKS managed node groups.
EKS_NODEGROUP: Final = "eks.amazonaws.com/nodegroup"
EKS_CAPACITY: Final = "eks.amazonaws.com/capacityType"

# Karpenter.
KARPENTER_NODEPOOL: Final = "karpenter.sh/nodepool"
KARPENTER_CAPACITY: Final = "karpenter.sh/capacity-type"
KARPENTER_GPU: Final = "karpenter.k8s.aws/instance-gpu-name"
KARPENTER_GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"
KARPENTER_GPU_MEMORY: Final = "karpenter.k8s.aws/instance-gpu-memory"  # MiB

# Every cloud.
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
REGION: Final = "topology.kubernetes.io/region"

# How the node is bought. On GKE only spot nodes carry a label.
CAPACITY_LABELS: Final = (KARPENTER_CAPACITY, EKS_CAPACITY, GKE_SPOT)
_SPOT: Final = ((KARPENTER_CAPACITY, "spot"), (EKS_CAPACITY, "SPOT"), (GKE_SPOT, "true"))


def is_spot(labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels, or one that they select, is spot capacity."""
    return any(labels.get(label) == value for label, value in _SPOT)
