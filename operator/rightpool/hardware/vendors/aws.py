"""AWS Trainium and Inferentia: Karpenter's labels; without Karpenter the instance type names the chip."""

from __future__ import annotations

from typing import Final

from rightpool.hardware.vendors.vendor import ProductLabel, Vendor

AWS: Final = Vendor(
    name="AWS",
    resource_name="aws.amazon.com/neuron",
    product_labels=(
        ProductLabel(
            "karpenter.k8s.aws/instance-accelerator-name",
            count="karpenter.k8s.aws/instance-accelerator-count",
        ),
    ),
)
