"""FLOPs of a job: what a unit of its work needs, and the share of the chips' peak that it makes of them.

The share is model FLOPs utilization (MFU): FLOP/s of the model, recomputation left out, over chips times peak dense
FLOP/s at the job's precision. Source: Chowdhery et al., "PaLM: scaling language modeling with Pathways", 2022,
appendix B.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from rightpool.api.placement import Placement
from rightpool.api.work_unit import WorkUnit
from rightpool.hardware.accelerator import Accelerator
from rightpool.planning.jobs.job import Job
from rightpool.prediction.precision import dense_peak


class FlopsGap(Enum):
    """What is missing to know the utilization where a job is. planning/offers/flops_texts.py names the remedy."""

    NOT_MEASURED = auto()
    SAMPLES_UNSEEN = auto()  # throughput is in steps, and the spec has FLOPs of a sample
    FLOPS_UNKNOWN = auto()
    PRECISION_UNKNOWN = auto()
    PEAK_UNKNOWN = auto()  # the catalog has no FLOP/s of the chips in the program's precision


@dataclass(frozen=True, slots=True)
class PeakExceeded:
    """More FLOP/s than a chip can do: its peak is that of another chip, or the FLOPs of the model are wrong. Nobody
    knows which, so that utilization is unknown, here and elsewhere."""

    flops: float
    """FLOP/s of the model, for each chip."""
    peak: float
    """Dense FLOP/s of the chip in the program's precision."""
    precision: str
    """As the program says, such as bf16."""
    chip: str
    """Key of the chip in the catalog."""
    pool: str
    """Where the job is."""


def flops_per_unit(job: Job) -> float | None:
    """FLOPs of a sample or step, whichever the job's throughput counts; None where they are not known.

    What the user says goes before what the program shows.
    """
    profile, revision = job.observed.profile, job.state.revision
    if profile is None or revision is None:
        return None
    traits = profile.traits
    if profile.unit is WorkUnit.STEPS:
        return traits.step_flops
    if job.spec.flops_per_sample is not None:
        return job.spec.flops_per_sample
    batch = traits.batch or job.spec.samples_per_step(revision.placement.chips)
    return None if traits.step_flops is None or not batch else traits.step_flops / batch


def full_rate(job: Job, chips: int, chip: Accelerator) -> float | None:
    """Units of work a second if so many chips did nothing but the model's FLOPs, at their peak; None where FLOPs,
    precision or the chip's peak are not known."""
    flops, profile = flops_per_unit(job), job.observed.profile
    peak = None if profile is None else dense_peak(chip, profile.traits.precision)
    return None if flops is None or peak is None else chips * peak / flops


def flops_utilization(job: Job, rate: float, chips: int, chip: Accelerator) -> float | None:
    """Model FLOPs utilization at this many units a second, 0-1; None where it is not known, or would be above 1."""
    full = full_rate(job, chips, chip)
    return None if full is None or rate > full else rate / full


def peak_exceeded(job: Job, rate: float, placement: Placement, chip: Accelerator) -> PeakExceeded | None:
    """What contradicts itself in a measured rate of this many units a second; None where it can be so."""
    flops, profile = flops_per_unit(job), job.observed.profile
    precision = None if profile is None else profile.traits.precision
    peak = dense_peak(chip, precision)
    if flops is None or peak is None or precision is None or rate * flops <= placement.chips * peak:
        return None
    return PeakExceeded(rate * flops / placement.chips, peak, precision, chip.key, placement.pool)


def flops_gap(job: Job) -> FlopsGap:
    """Why the utilization is not known where the job is."""
    profile = job.observed.profile
    if profile is None:
        return FlopsGap.NOT_MEASURED
    if flops_per_unit(job) is None:
        unseen = profile.unit is WorkUnit.STEPS and job.spec.flops_per_sample is not None
        return FlopsGap.SAMPLES_UNSEEN if unseen else FlopsGap.FLOPS_UNKNOWN
    return FlopsGap.PRECISION_UNKNOWN if profile.traits.precision is None else FlopsGap.PEAK_UNKNOWN
