"""Every supported vendor. A new one is a module beside this one, rows in the catalog's files and a line here."""

from __future__ import annotations

from typing import Final

from rightpool.hardware.vendors.amd import AMD
from rightpool.hardware.vendors.aws import AWS
from rightpool.hardware.vendors.cpu import CPU
from rightpool.hardware.vendors.google import GOOGLE
from rightpool.hardware.vendors.intel import INTEL
from rightpool.hardware.vendors.nvidia import NVIDIA
from rightpool.hardware.vendors.vendor import Vendor

# Where a node carries labels of several vendors, the first in this order names the chip.
VENDORS: Final[tuple[Vendor, ...]] = (GOOGLE, NVIDIA, AMD, AWS, INTEL, CPU)

_NAMED: Final = {vendor.name: vendor for vendor in VENDORS}

DEFAULT_VENDOR: Final = NVIDIA
"""Whose chips a pod template is taken to run on, where the cluster has several vendors and nothing tells."""


def vendor_named(name: str | None) -> Vendor | None:
    """The vendor of this name; None where there is none."""
    return None if name is None else _NAMED.get(name)
