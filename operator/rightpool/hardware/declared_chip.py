"""Accelerators as users declare them: new ones, and others with some of the catalog's figures replaced.

Where several say something of a chip, a pool's spec.chip holds, then the chart's values, then the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from rightpool.api.pool import AcceleratorPoolSpec, ChipSpec, LinkKind
from rightpool.hardware.accelerator import Accelerator, Declaration, FigureSource, Price
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.estimated_chip import estimated_bandwidth, estimated_flops
from rightpool.hardware.vendors.vendor import Vendor

# Where a pool does not declare its links: the slowest of what every machine has.
_INSIDE: Final = LinkKind.PCIE
_BETWEEN: Final = LinkKind.ETHERNET


class ChipError(ValueError):
    """Figures contradict others, or lack something. The message names the field and the remedy."""


class DeclaredChips:
    """The accelerators of pools, with what their pools declare.

    Predictions and experience know a chip by its name. What one pool declares therefore holds in all pools of the
    accelerator, and where two declare, they must say the same.
    """

    def __init__(self, catalog: Catalog, specs: Mapping[str, AcceleratorPoolSpec]) -> None:
        self._catalog = catalog
        self._specs = specs
        self._first: dict[str, str] = {}  # by accelerator, the first pool that declares it
        self._made: dict[str, Accelerator] = {}
        for name in sorted(specs):
            if specs[name].chip is not None:
                self._first.setdefault(specs[name].accelerator, name)

    def accelerator(self, pool: str) -> Accelerator:
        """The chips of this pool.

        Raises UnknownAcceleratorError if nobody knows them, ChipError if what is declared contradicts something.
        """
        spec = self._specs[pool]
        key = spec.accelerator
        first = self._first.get(key)
        if first is None:
            return self._catalog.get(key)
        if spec.chip not in (None, self._specs[first].chip):
            raise ChipError(f"spec.chip: pool {first} declares other figures for {key}; make them equal")
        if key not in self._made:
            self._made[key] = self._declared(first)
        return self._made[key]

    def _declared(self, pool: str) -> Accelerator:
        spec = self._specs[pool]
        assert spec.chip is not None
        source = Declaration(FigureSource.POOL, f"spec.chip of AcceleratorPool {pool}")
        known = self._catalog.accelerators.get(spec.accelerator)
        if known is not None:
            return with_figures(known, spec.chip, field="spec.chip", by=source)
        vendor = _vendor(spec.resource_name, self._catalog)
        dollars = None if spec.price is None else spec.price.per_chip_hour
        price = self._catalog.own_prices.get(spec.accelerator, Price())
        cost = price.on_demand if dollars is None else float(dollars)
        return new_chip(spec.accelerator, vendor, spec.chip, cost, self._catalog, field="spec.chip", by=source)


def with_figures(chip: Accelerator, named: ChipSpec, *, field: str, by: Declaration) -> Accelerator:
    """The chip with the figures that are named. field: where they stand, for messages. Raises ChipError."""
    changed: dict[str, Any] = {}
    if named.teraflops is not None:
        changed["peak_flops"] = {**chip.peak_flops, **_flops(named, field)}
    if named.memory is not None:
        changed["memory_bytes"] = named.memory
    if named.memory_gigabytes_per_second is not None:
        changed["memory_bandwidth"] = _bandwidth(named)
    if named.watts is not None:
        changed["power_watts"] = float(named.watts)
    provenance = {**chip.provenance, **dict.fromkeys(changed, by.where)}
    doubts = {figure: sd for figure, sd in chip.doubts.items() if figure not in changed}
    return replace(chip, **changed, verified=False, declared=by, provenance=provenance, doubts=doubts)


def new_chip(
    key: str, vendor: Vendor, named: ChipSpec, dollars: float | None, catalog: Catalog, *, field: str, by: Declaration
) -> Accelerator:
    """An accelerator that the catalog lacks; what is not named is estimated.

    dollars: of a chip-hour, None where that is not known. field: where the figures stand, for messages. Raises
    ChipError where the memory is not named, from which everything else is estimated.
    """
    if named.memory is None:
        raise ChipError(f"{field}.memory: the catalog lacks {key}; write how much memory a chip has, such as 48Gi")
    cost = f" and ${dollars:g} a chip-hour" if dollars else ""
    guess = f"estimated from {named.memory / 2**30:.0f} GiB of memory{cost}"
    provenance = dict.fromkeys(("peak_flops", "memory_bytes", "memory_bandwidth"), by.where)
    doubts: dict[str, float] = {}
    flops = _flops(named, field)
    if not flops:
        rates = estimated_flops(named.memory, dollars, catalog)
        flops = {dtype: rate.value for dtype, rate in rates.items()}
        doubts["peak_flops"] = max(rate.sd for rate in rates.values())
    if named.memory_gigabytes_per_second is None:
        rate = estimated_bandwidth(named.memory, dollars, catalog)
        bandwidth, doubts["memory_bandwidth"] = rate.value, rate.sd
    else:
        bandwidth = _bandwidth(named)
    return Accelerator(
        key=key,
        vendor=vendor,
        arch=key.lower(),
        peak_flops=flops,
        memory_bytes=named.memory,
        memory_bandwidth=bandwidth,
        power_watts=None if named.watts is None else float(named.watts),
        intra_link=catalog.links[_INSIDE],
        inter_link=catalog.links[_BETWEEN],
        list_price=Price(),
        verified=False,
        declared=by,
        provenance={**provenance, **dict.fromkeys(doubts, guess)},
        doubts=doubts,
    )


def _flops(named: ChipSpec, field: str) -> dict[str, float]:
    """Empty where rates are left out altogether."""
    if named.teraflops is None:
        return {}
    flops = {name: float(rate) * 1e12 for name, rate in named.teraflops if rate is not None}
    if not flops:
        raise ChipError(f"{field}.teraflops: no rate is named; write those of the data sheet, such as bf16")
    return flops


def _bandwidth(named: ChipSpec) -> float:
    return float(named.memory_gigabytes_per_second or 0) * 1e9


def _vendor(resource: str, catalog: Catalog) -> Vendor:
    """Whose resource it is: of the same name, else of the same domain, such as that of MIG slices."""
    vendors = catalog.vendors
    for vendor in vendors:
        if vendor.resource_name == resource:
            return vendor
    for vendor in vendors:
        if vendor.resource_name.partition("/")[0] == resource.partition("/")[0]:
            return vendor
    known = ", ".join(vendor.resource_name for vendor in vendors)
    raise ChipError(f"spec.resourceName: {resource} is no resource of a known vendor; use one of {known}")
