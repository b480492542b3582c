"""NVIDIA GPUs: labels of GPU feature discovery, GKE and Karpenter."""

from __future__ import annotations

import re
from typing import Final

from rightpool.hardware.vendors.vendor import Benchmark, DeviceSource, ProductLabel, Vendor

# GPU feature discovery.
GFD_PRODUCT: Final = "nvidia.com/gpu.product"
GFD_COUNT: Final = "nvidia.com/gpu.count"
GFD_MEMORY: Final = "nvidia.com/gpu.memory"
GFD_REPLICAS: Final = "nvidia.com/gpu.replicas"

GKE_GPU: Final = "cloud.google.com/gke-accelerator"
GKE_GPU_COUNT: Final = "cloud.google.com/gke-accelerator-count"
GKE_GPU_PARTITION: Final = "cloud.google.com/gke-gpu-partition-size"
GKE_GPU_CLIENTS: Final = "cloud.google.com/gke-max-shared-clients-per-gpu"

KARPENTER_GPU: Final = "karpenter.k8s.aws/instance-gpu-name"
KARPENTER_GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"
KARPENTER_GPU_MEMORY: Final = "karpenter.k8s.aws/instance-gpu-memory"

# NVIDIA-A100-SXM4-80GB-MIG-1g.10gb is a MIG slice, NVIDIA-L4-SHARED is divided by time slicing or MPS.
_DIVIDED: Final = re.compile(r"(-SHARED)?-MIG-.*|-SHARED$", re.DOTALL)

# From Volta to Hopper.
PYTORCH_IMAGE: Final = "pytorch/pytorch:2.7.1-cuda12.6-cudnn9-runtime"

NVIDIA: Final = Vendor(
    name="NVIDIA",
    resource_name="nvidia.com/gpu",
    product_labels=(
        ProductLabel(GFD_PRODUCT, memory=GFD_MEMORY, count=GFD_COUNT, replicas=GFD_REPLICAS, divided=_DIVIDED),
        ProductLabel(GKE_GPU, count=GKE_GPU_COUNT, replicas=GKE_GPU_CLIENTS, partition=GKE_GPU_PARTITION),
        ProductLabel(KARPENTER_GPU, memory=KARPENTER_GPU_MEMORY, count=KARPENTER_GPU_COUNT),
    ),
    devices=DeviceSource("gpu.nvidia.com", kind="type", chip="gpu"),
    benchmark=Benchmark("gpu", PYTORCH_IMAGE),
)
