"""Why the model FLOPs utilization of a job is not known, in words."""

from __future__ import annotations

from typing import Final

from rightpool.planning.evaluate.flops import FlopsGap, flops_gap
from rightpool.planning.job import Job

_TEXTS: Final = {
    FlopsGap.NOT_MEASURED: "the job was not measured",
    FlopsGap.SAMPLES_UNSEEN: "samples are not seen: say in spec.progress.samplesPerStep how many a step takes",
    FlopsGap.FLOPS_UNKNOWN: "FLOPs of a sample are not known: say them in spec.progress.flopsPerSample",
    FlopsGap.PRECISION_UNKNOWN: "the program's precision is not known",
    FlopsGap.PEAK_UNKNOWN: "no FLOP/s of its chips in {precision}",
}


def unknown_flops_text(job: Job) -> str:
    """What is missing, with the remedy."""
    profile = job.observed.profile
    return _TEXTS[flops_gap(job)].format(precision=None if profile is None else profile.traits.precision)
