"""Classes of arithmetic: at which of a chip's peak rates a job works.

Half precision is one class: programs take whichever of the two 16-bit types the chip has. A program that allows tf32 is
of single precision, and computes fp32 where the chip has no tf32. One that does not allow it computes plain fp32
everywhere, whatever the chip could do. Where no program tells a job's precision, the matrix units of chips do that have
them for half precision alone. Else the job is of each class with some probability.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.columns import Floats, or_nan

# By place in tables; the last entry of a table is that of jobs whose precision is not known.
HALF: Final = 0
SINGLE: Final = 1
EIGHT: Final = 2
PLAIN: Final = 3
UNKNOWN_PRECISION: Final = 4
# Whose exponents a class has in the chip model: plain fp32 differs from tf32 by the peak that it starts from.
CLASSES: Final = ("half", "single", "eight", "single")

# How likely a job of unknown precision is of each class. Eight bits count where chips have nothing else in common.
# Plain fp32 alone does not: where chips have it, they have single precision.
WEIGHTS: Final = (0.6, 0.4, 1e-9, 0.0)

# Micro-architectures whose matrix units compute no single precision.
_HALF_ALONE: Final = frozenset({"volta", "turing"})
# Of the time that SMs are active. Of 78 runs in bf16 on slices of an H200, the least had 1.0%; fp32 has none there.
_MATRIX_USED: Final = 0.005
# SMs that are hardly active tell nothing.
_SMS_USED: Final = 0.05

_DTYPES: Final = (("bf16", "fp16"), ("tf32", "fp32"), ("fp8", "int8"), ("fp32",))
# The last class that has a type: what calls itself fp32 is plain.
_CLASS: Final = {dtype: number for number, dtypes in enumerate(_DTYPES) for dtype in dtypes}


def class_of(precision: str | None) -> int:
    """The class of a named precision; UNKNOWN_PRECISION where it is none of them."""
    return UNKNOWN_PRECISION if precision is None else _CLASS.get(precision, UNKNOWN_PRECISION)


def observed_class(chip: Accelerator, matrix_active: float | None, sm_active: float | None) -> int:
    """The class that a job has by the activity of the chip's units, from 0 to 1; UNKNOWN_PRECISION where they do not
    tell."""
    if chip.arch not in _HALF_ALONE or matrix_active is None or sm_active is None or sm_active < _SMS_USED:
        return UNKNOWN_PRECISION
    return HALF if matrix_active >= _MATRIX_USED * sm_active else SINGLE


def peak(chip: Accelerator, kind: int) -> float | None:
    """FLOP/s in this class; None where the chip does not have it."""
    rates = [rate for dtype in _DTYPES[kind] if (rate := chip.peak_flops.get(dtype)) is not None]
    return max(rates) if rates else None


def dense_peak(chip: Accelerator, precision: str | None) -> float | None:
    """FLOP/s in this very precision; None where it, or the chip's figure, is not known. A chip without tf32 computes it
    as fp32."""
    if precision is None:
        return None
    return chip.peak_flops.get(precision, chip.peak_flops.get("fp32") if precision == "tf32" else None)


def lacks(chip: Accelerator, precision: str | None) -> bool:
    """Whether programs of this precision do not run on the chip at speed: 16 and 8 bits are there or not; tf32 is fp32
    where a chip has no tf32."""
    kind = class_of(precision)
    if precision is None or kind == UNKNOWN_PRECISION:
        return False
    return peak(chip, kind) is None if kind in (SINGLE, PLAIN) else precision not in chip.peak_flops


def peaks(chips: Sequence[Accelerator], kind: int) -> Floats:
    """FLOP/s of chips in this class; NaN where they do not have it."""
    return or_nan([peak(chip, kind) for chip in chips])


def falls_back(chip: Accelerator, kind: int) -> bool:
    """Whether fp32 runs on plain arithmetic units, since the chip has no tf32: all of a program of single precision,
    and what one of half precision keeps in fp32. Plain fp32 falls nowhere: it runs on them on every chip."""
    return kind in (HALF, SINGLE) and "tf32" not in chip.peak_flops and "fp32" in chip.peak_flops


def weights(valid: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
    """Probabilities of the classes (first axis) among those that are valid; NaN where none is."""
    prior = np.array(WEIGHTS)[(slice(None),) + (np.newaxis,) * (valid.ndim - 1)]
    allowed = np.where(valid, prior, 0.0)
    total: Floats = allowed.sum(axis=0)
    shares: Floats = allowed / np.where(total > 0.0, total, np.nan)
    return shares
