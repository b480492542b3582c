"""Accelerators that the catalog lacks, from what AcceleratorPools say of their chips."""

from __future__ import annotations

from typing import Final

from rightpool.api.pool import AcceleratorPoolSpec, ChipSpec, LinkKind
from rightpool.hardware.accelerator import Accelerator, Link, Price
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.vendors.vendor import Vendor

# Where a pool does not declare its links: the slowest of what every machine has.
_INSIDE: Final = LinkKind.PCIE
_BETWEEN: Final = LinkKind.ETHERNET


class ChipError(ValueError):
    """spec.chip contradicts the catalog, another pool or spec.resourceName. The message names the field and remedy."""


class DeclaredChips:
    """The accelerators of pools, in the order in which they are asked for.

    Predictions and experience know a chip by its name. All pools of an accelerator must therefore say the same of it.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._declared: dict[str, tuple[str, ChipSpec, Accelerator]] = {}  # by accelerator; the pool that was first

    def accelerator(self, pool: str, spec: AcceleratorPoolSpec) -> Accelerator:
        """Of the catalog, or as the pool declares it.

        Raises UnknownAcceleratorError if neither has it, ChipError if spec.chip contradicts something.
        """
        key, chip = spec.accelerator, spec.chip
        if chip is None:
            return self._catalog.get(key)
        if key in self._catalog.accelerators:
            raise ChipError(
                f"spec.chip: the catalog has {key}, and its figures hold for all pools; remove spec.chip, or give "
                "spec.accelerator another name"
            )
        first, figures, accelerator = self._declared.get(key, (pool, chip, None))
        if figures != chip:
            raise ChipError(f"spec.chip: pool {first} declares other figures for {key}; make them equal")
        if accelerator is None:
            accelerator = self._made(pool, spec, chip)
            self._declared[key] = (pool, chip, accelerator)
        return accelerator

    def _made(self, pool: str, spec: AcceleratorPoolSpec, chip: ChipSpec) -> Accelerator:
        figures = f"spec.chip of AcceleratorPool {pool}"
        rates = {name: float(rate) * 1e12 for name, rate in chip.teraflops if rate is not None}
        if not rates:
            raise ChipError("spec.chip.teraflops: no rate is named; write those of the data sheet, such as bf16")
        return Accelerator(
            key=spec.accelerator,
            vendor=self._vendor(spec.resource_name),
            arch=spec.accelerator.lower(),
            peak_flops=rates,
            memory_bytes=chip.memory,
            memory_bandwidth=float(chip.memory_gigabytes_per_second) * 1e9,
            power_watts=None if chip.watts is None else float(chip.watts),
            intra_link=self._slowest(_INSIDE),
            inter_link=self._slowest(_BETWEEN),
            list_price=Price(),
            verified=False,
            declared=True,
            provenance=dict.fromkeys(("peak_flops", "memory_bytes", "memory_bandwidth"), figures),
        )

    def _vendor(self, resource: str) -> Vendor:
        """Whose resource it is: of the same name, else of the same domain, such as that of MIG slices."""
        vendors = self._catalog.vendors
        for vendor in vendors:
            if vendor.resource_name == resource:
                return vendor
        for vendor in vendors:
            if vendor.resource_name.partition("/")[0] == resource.partition("/")[0]:
                return vendor
        known = ", ".join(vendor.resource_name for vendor in vendors)
        raise ChipError(f"spec.resourceName: {resource} is no resource of a known vendor; use one of {known}")

    def _slowest(self, kind: LinkKind) -> Link:
        return self._catalog.links[kind]
