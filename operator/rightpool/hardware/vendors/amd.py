"""AMD GPUs: labels of the AMD GPU operator's node labeller. A board with two dies counts as two chips."""

from __future__ import annotations

from typing import Final

from rightpool.hardware.vendors.vendor import Benchmark, ProductLabel, Vendor

AMD: Final = Vendor(
    name="AMD",
    resource_name="amd.com/gpu",
    product_labels=(ProductLabel("amd.com/gpu.product-name"),),
    benchmark=Benchmark("gpu", "rocm/pytorch:latest"),
)
