"""Intel Gaudi: labels of Gaudi feature discovery."""

from __future__ import annotations

from typing import Final

from rightpool.hardware.vendors.vendor import ProductLabel, Vendor

INTEL: Final = Vendor(
    name="Intel",
    resource_name="habana.ai/gaudi",
    product_labels=(ProductLabel("habana.ai/product"),),
)
