"""Why the model FLOPs utilization of a job is not known, or is impossible as computed, in words."""

from __future__ import annotations

from typing import Final

from rightpool.api.wording import number, share
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.flops import FlopsGap, PeakExceeded, flops_gap

_TEXTS: Final = {
    FlopsGap.NOT_MEASURED: "the job was not measured",
    FlopsGap.SAMPLES_UNSEEN: "samples are not seen: set spec.progress.samplesPerStep to the samples of a step",
    FlopsGap.FLOPS_UNKNOWN: "FLOPs of a sample are not known: set spec.progress.flopsPerSample",
    FlopsGap.PRECISION_UNKNOWN: "the program's precision is not known",
    FlopsGap.PEAK_UNKNOWN: "the FLOP/s of its chips in {precision} are not known",
}


def unknown_flops_text(job: Job, current: Candidate | None) -> str:
    """What is missing or wrong, with the remedy. current: the job where it is."""
    if current is not None and current.peak_exceeded is not None:
        return peak_exceeded_text(job, current.peak_exceeded)
    profile = job.observed.profile
    return _TEXTS[flops_gap(job)].format(precision=None if profile is None else profile.traits.precision)


def peak_exceeded_text(job: Job, found: PeakExceeded) -> str:
    """What contradicts itself, and which fields may be wrong."""
    profile = job.observed.profile
    counted = "the FLOPs that the profiler counts for a step are wrong: set "
    if profile is not None and profile.unit is WorkUnit.STEPS:
        wrong = f"{counted}spec.progress.samplesPerStep and flopsPerSample"
    elif job.spec.flops_per_sample is None:
        wrong = f"{counted}spec.progress.flopsPerSample"
    else:
        wrong = "spec.progress.flopsPerSample is too high: leave out recomputation and sparsity"
    return (
        f"modelFlopsUtilization would be {share(found.flops / found.peak)}: {number(found.flops / 1e12)} TFLOP/s of a "
        f"chip in {found.precision}, and {found.chip} can do {number(found.peak / 1e12)}. Either {wrong}. Or the "
        f"chips are others: correct spec.accelerator or spec.chip.teraflops of AcceleratorPool {found.pool}"
    )
