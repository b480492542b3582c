"""CPU cores that stand for chips, for development. Their pools are declared."""

from __future__ import annotations

from typing import Final

from rightpool.hardware.vendors.nvidia import PYTORCH_IMAGE
from rightpool.hardware.vendors.vendor import Benchmark, Vendor

CPU: Final = Vendor(
    name="CPU", resource_name="rightpool.dev/cpu-chip", benchmark=Benchmark("cpu", PYTORCH_IMAGE), made_up=True
)
