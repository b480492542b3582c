"""What a chip without figures can do, estimated from its memory and what it costs.

Rates of the catalog's chips follow their memory and list price: the logarithm of each is fitted to the logarithms of
these two by least squares. Chips without half precision do not count: they are old, and an unknown chip is not. The
estimate is low on purpose, so that no job moves on a guess: three in four chips like it do more. How far the fit misses
the chips that it was made from is its doubt, which widens predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist, median
from typing import Final

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.catalog import Catalog

# What is taken of the fit: a quarter of chips do less.
_QUANTILE: Final = NormalDist().inv_cdf(0.25)
_HALF: Final = ("bf16", "fp16")


@value_object
class EstimatedRate:
    """A rate of a chip that neither the catalog nor the pool has."""

    value: float
    """Units a second, above 0."""

    sd: float
    """Standard deviation of its logarithm."""


def estimated_bandwidth(memory_bytes: int, dollars: float | None, catalog: Catalog) -> EstimatedRate:
    """Bytes a second. dollars: of a chip-hour; None or 0 where that is not known."""
    return _fitted(memory_bytes, dollars, catalog, lambda chip: chip.memory_bandwidth)


def estimated_flops(memory_bytes: int, dollars: float | None, catalog: Catalog) -> dict[str, EstimatedRate]:
    """FLOP/s in 16 and 32 bits. Whether it has other dtypes, neither memory nor price tells."""
    half = _fitted(memory_bytes, dollars, catalog, _half)
    ratios = [chip.peak_flops["fp32"] / _half(chip) for chip in _real(catalog) if "fp32" in chip.peak_flops]
    return {**dict.fromkeys(_HALF, half), "fp32": EstimatedRate(half.value * median(ratios), half.sd)}


def _fitted(
    memory_bytes: int, dollars: float | None, catalog: Catalog, rate: Callable[[Accelerator], float]
) -> EstimatedRate:
    chips = _real(catalog)
    prices = catalog.usual_prices
    if dollars:
        chips = [chip for chip in chips if chip.key in prices]
    sizes = [float(chip.memory_bytes) for chip in chips]
    factors, asked = [np.ones(len(chips)), np.log(sizes)], [1.0, _within(memory_bytes, sizes)]
    if dollars:
        costs = [prices[chip.key].per_chip_hour for chip in chips]
        factors.append(np.log(costs))
        asked.append(_within(dollars, costs))
    columns, logs = np.array(factors).T, np.log([rate(chip) for chip in chips])
    weights, *_ = np.linalg.lstsq(columns, logs, rcond=None)
    missed = logs - columns @ weights
    sd = math.sqrt(float(missed @ missed) / (len(chips) - len(asked)))
    return EstimatedRate(math.exp(float(np.array(asked) @ weights) + _QUANTILE * sd), sd)


def _within(value: float, known: Sequence[float]) -> float:
    """The logarithm; of the nearest in the catalog where the value is beyond all of them."""
    return math.log(min(max(value, min(known)), max(known)))


def _half(chip: Accelerator) -> float:
    return max(chip.peak_flops.get(dtype, 0.0) for dtype in _HALF)


def _real(catalog: Catalog) -> list[Accelerator]:
    return [
        chip
        for _, chip in sorted(catalog.accelerators.items())
        if chip.part is None and not chip.vendor.made_up and not chip.doubts and chip.declared is None and _half(chip)
    ]
