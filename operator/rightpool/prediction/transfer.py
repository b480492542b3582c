"""What another chip does to the chip's part of a step: the static rule, and the shape that a learned rule fills.

speed = FLOP/s^0.40 · bandwidth^0.45 · power^0.15, the mean of the hierarchical prior (design of prediction, step 2).
Peak arithmetic alone is the wrong rule: 30% median error over 1,588 measured pairs; the square root of arithmetic times
bandwidth has 15.7%, this rule 13.5% (`python -m benchmarks.prediction`).
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

from rightpool.hardware.accelerator import Accelerator

FLOPS_EXPONENT: Final = 0.40
BANDWIDTH_EXPONENT: Final = 0.45
POWER_EXPONENT: Final = 0.15

# How far counters move weight between arithmetic and bandwidth: w = 1 gives (.55, .30, .15), w = 0 (.25, .60, .15).
# On three slices of one chip, with counters, shifts from 0 to 0.3 do alike and larger ones do worse.
WEIGHT_SHIFT: Final = 0.30

# The doubt of the rule, such that 80% intervals hold 79–95% of the measured pairs of four of five sources (72% of the
# fifth): a floor, more for another micro-architecture, more the further apart the chips are.
SAME_CHIP_SD: Final = 0.05
FLOOR_SD: Final = 0.08
OTHER_ARCH_SD: Final = 0.15
EXPONENT_SD: Final = 0.15
OTHER_VENDOR_SD: Final = 0.25

# Half precision is one class: programs take whichever of the two the chip has.
_PRECISIONS: Final = (("bf16", "fp16"), ("tf32",), ("fp32",))


@dataclass(frozen=True, slots=True)
class ChipSpeed:
    """log: logarithm of how much faster the target computes the same work, per chip. sd: its standard deviation."""

    log: float
    sd: float
    basis: str


class Transfer(Protocol):
    """A rule that takes a job from one chip to another; None where the specifications do not suffice."""

    def __call__(
        self, source: Accelerator, target: Accelerator, weight: float, weight_sd: float
    ) -> ChipSpeed | None: ...


def static_rule(source: Accelerator, target: Accelerator, weight: float, weight_sd: float) -> ChipSpeed | None:
    """The prior's mean and doubt. weight: the job's compute weight, 0–1.

    Where a vendor does not publish power, the other exponents are scaled to the same sum, so that a chip that is
    twice another in everything is still twice as fast.
    """
    if source.key == target.key:
        return ChipSpeed(0.0, SAME_CHIP_SD, f"the same chip, {target.key}")
    flops = _common_peak(source, target)
    if flops is None or source.memory_bandwidth <= 0 or target.memory_bandwidth <= 0:
        return None
    arithmetic = math.log(flops[1] / flops[0])
    bandwidth = math.log(target.memory_bandwidth / source.memory_bandwidth)
    shift = WEIGHT_SHIFT * (weight - 0.5)
    by_flops, by_bandwidth = FLOPS_EXPONENT + shift, BANDWIDTH_EXPONENT - shift
    log = by_flops * arithmetic + by_bandwidth * bandwidth
    if source.power_watts and target.power_watts:
        log += POWER_EXPONENT * math.log(target.power_watts / source.power_watts)
    else:
        log /= 1.0 - POWER_EXPONENT
    variance = FLOOR_SD**2 + EXPONENT_SD**2 * (arithmetic**2 + bandwidth**2)
    variance += (WEIGHT_SHIFT * weight_sd * (arithmetic - bandwidth)) ** 2
    if source.arch != target.arch:
        variance += OTHER_ARCH_SD**2
    if source.vendor is not target.vendor:
        variance += OTHER_VENDOR_SD**2
    return ChipSpeed(log, math.sqrt(variance), f"specifications of {source.key} and {target.key}")


def nominal_rate(accelerator: Accelerator, with_power: bool) -> float | None:
    """Work per chip in arbitrary units, to rank chips before a job has run anywhere. None where specs are missing.

    with_power: whether every chip that is compared has its power published; rates with and without do not compare.
    """
    flops = next((rate for names in _PRECISIONS if (rate := _peak(accelerator, names)) is not None), None)
    if flops is None or accelerator.memory_bandwidth <= 0:
        return None
    log = FLOPS_EXPONENT * math.log(flops) + BANDWIDTH_EXPONENT * math.log(accelerator.memory_bandwidth)
    if not with_power:
        return math.exp(log / (1.0 - POWER_EXPONENT))
    return None if not accelerator.power_watts else math.exp(log + POWER_EXPONENT * math.log(accelerator.power_watts))


def _peak(accelerator: Accelerator, names: tuple[str, ...]) -> float | None:
    rates = [rate for name in names if (rate := accelerator.peak_flops.get(name))]
    return max(rates) if rates else None


def _common_peak(source: Accelerator, target: Accelerator) -> tuple[float, float] | None:
    """Peak FLOP/s of both chips at the fastest training precision that both have."""
    for names in _PRECISIONS:
        here, there = _peak(source, names), _peak(target, names)
        if here is not None and there is not None:
            return here, there
    return None
