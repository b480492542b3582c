"""What was measured in a pool, before what the catalog or spec.chip says of its chips.

Predictions compare chips by their data sheets, and the model was fitted on those. A program never reaches them: so what
was measured counts as the data sheet of a chip that reaches the usual share of it. A pool that was measured thus
compares with one that was not, and what is learned is by how much this pool differs from what a chip usually does.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Literal

from rightpool.api.conditions import Reason
from rightpool.api.pool import Calibration
from rightpool.hardware.accelerator import Accelerator, Link, Measured
from rightpool.hardware.pool import Pool

# Shares of the data sheet that products of large matrices and copies usually reach. The benchmark measured 69% (fp16),
# 70% (bf16), 73% (tf32), 79% (fp32) and 90% (copy) on an H100 SXM with PyTorch 2.11.
USUAL_FLOPS: Final = 0.75
USUAL_BANDWIDTH: Final = 0.90

Verdict = tuple[Literal["True", "False", "Unknown"], Reason, str]

_RATES: Final = ("peak_flops", "memory_bandwidth")
_FIGURES: Final = {"peak_flops": "rates", "memory_bandwidth": "memory bandwidth"}


def counts(calibration: Calibration | None, accelerator: str) -> bool:
    """Whether the measurement is plausible, and of this accelerator."""
    return calibration is not None and calibration.reason is Reason.MEASURED and calibration.accelerator == accelerator


def agreement(pool: str, calibration: Calibration | None, accelerator: str, chip: Accelerator | None = None) -> Verdict:
    """Status, reason and message of the condition Calibrated of a pool with this accelerator. chip: what is known of
    it; None where the pool can't be used."""
    if calibration is None and chip is not None and chip.doubts:
        return "False", Reason.POOL_UNCALIBRATED, uncalibrated(pool, chip)
    if calibration is None:
        return "Unknown", Reason.NOT_MEASURED, f"its chips were not measured: run `rightpool calibrate {pool}`"
    if calibration.accelerator != accelerator:
        message = (
            f"{calibration.accelerator} was measured, and spec.accelerator is {accelerator}: run "
            f"`rightpool calibrate {pool}` again"
        )
        return "False", Reason.CALIBRATION_VOID, message
    measured = calibration.reason is Reason.MEASURED
    return "True" if measured else "False", calibration.reason, calibration.message


def uncalibrated(pool: str, chip: Accelerator) -> str:
    """That figures of the pool's chips are estimated, and what to do about it; for a chip with doubts."""
    named = " and ".join(_FIGURES[figure] for figure in sorted(chip.doubts, reverse=True))
    basis = next(chip.provenance[figure] for figure in chip.doubts)
    return (
        f"the {named} of {chip.key} {'are' if len(chip.doubts) > 1 else 'is'} {basis}: run `rightpool calibrate "
        f"{pool}`, or write them in spec.chip"
    )


def calibrated(chip: Accelerator, calibration: Calibration | None) -> Accelerator:
    """The chip with the rates that were measured. What was not measured is as before, and no dtype is added: what a
    chip emulates it does not have."""
    if calibration is None or not counts(calibration, chip.key):
        return chip
    rates = calibration.teraflops or ()
    flops = {dtype: float(rate) * 1e12 for dtype, rate in rates if rate is not None and dtype in chip.peak_flops}
    bandwidth = calibration.memory_gigabytes_per_second
    copied = None if bandwidth is None else float(bandwidth) * 1e9
    source = f"measured {datetime.fromtimestamp(calibration.measured_at, UTC):%Y-%m-%d}: {calibration.message}"
    settled = {"peak_flops": bool(flops), "memory_bandwidth": copied is not None}
    return replace(
        chip,
        peak_flops={**chip.peak_flops, **{dtype: rate / USUAL_FLOPS for dtype, rate in flops.items()}},
        memory_bandwidth=chip.memory_bandwidth if copied is None else copied / USUAL_BANDWIDTH,
        provenance={**chip.provenance, **dict.fromkeys(_RATES, source)},
        measured=Measured(calibration.measured_at, flops, copied, source),
        doubts={figure: sd for figure, sd in chip.doubts.items() if not settled[figure]},
    )


def calibrated_link(pool: Pool, calibration: Calibration | None) -> Link:
    """The link between chips of one node, as fast as all chips of one were measured to add up."""
    if calibration is None or not counts(calibration, pool.accelerator.key):
        return pool.intra_link
    for link in calibration.all_reduce:
        if link.chips == pool.chips_per_node:
            return Link(pool.intra_link.kind, float(link.gigabytes_per_second) * 1e9)
    return pool.intra_link
