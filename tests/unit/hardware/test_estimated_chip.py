"""Estimates of chips without figures, held against chips of the catalog that the fit has not seen."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.estimated_chip import estimated_bandwidth, estimated_flops

CATALOG = load_catalog()
HALF = {"bf16", "fp16"}
REAL = [
    chip
    for chip in CATALOG.accelerators.values()
    if chip.part is None and not chip.vendor.made_up and HALF & set(chip.peak_flops)
]
# What the estimate is below the middle of the fit, in standard deviations.
BELOW = 0.6745


def misses(priced: bool, flops: bool) -> list[float]:
    """By how many standard deviations each chip does more than the middle of a fit to all others."""
    found = []
    for chip in REAL:
        dollars = chip.list_price.on_demand if priced else None
        if priced and dollars is None:
            continue
        others = {key: other for key, other in CATALOG.accelerators.items() if key != chip.key}
        prices = {key: row for key, row in CATALOG.usual_prices.items() if key != chip.key}
        without = replace(CATALOG, accelerators=others, usual_prices=prices)
        if flops:
            guess = estimated_flops(chip.memory_bytes, dollars, without)["bf16"]
            actual = max(chip.peak_flops.get(dtype, 0.0) for dtype in HALF)
        else:
            guess, actual = estimated_bandwidth(chip.memory_bytes, dollars, without), chip.memory_bandwidth
        found.append(math.log(actual / guess.value) / guess.sd - BELOW)
    return found


@pytest.mark.parametrize("flops", [True, False])
@pytest.mark.parametrize("priced", [True, False])
def test_three_of_four_chips_do_more_and_the_doubt_covers_them(priced: bool, flops: bool) -> None:
    found = misses(priced, flops)
    assert len(found) > 15
    assert 0.6 < sum(miss > -BELOW for miss in found) / len(found) < 0.95, "the estimate is low"
    assert sum(abs(miss) < 1.2816 for miss in found) / len(found) > 0.68, "four of five within the 80% interval"
    assert sum(abs(miss) < 2.5 for miss in found) / len(found) > 0.93


@pytest.mark.parametrize(("memory", "dollars"), [(1, 1e-9), (2**62, 1e9), (48 * 2**30, 0.0)])
def test_beyond_the_catalog_the_nearest_counts(memory: int, dollars: float) -> None:
    sizes = [chip.memory_bandwidth for chip in REAL]
    assert min(sizes) / 20 < estimated_bandwidth(memory, dollars, CATALOG).value < 20 * max(sizes)


def test_a_price_of_zero_says_nothing() -> None:
    assert estimated_flops(48 * 2**30, 0.0, CATALOG) == estimated_flops(48 * 2**30, None, CATALOG)
