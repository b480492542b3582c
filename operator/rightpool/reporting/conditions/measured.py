"""Profiled and Efficient: what measurements say of the job where it is."""

from __future__ import annotations

from functools import partial
from typing import Final

from rightpool.api.choices import Switch
from rightpool.api.conditions import Reason
from rightpool.api.program_edit import EditVerdict
from rightpool.api.wording import how_many, sentence, span
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.flops_texts import peak_exceeded_text
from rightpool.planning.offers.readiness import comparable_elsewhere
from rightpool.planning.offers.targets.registry import TARGETS
from rightpool.planning.work.training import awaits_rate, lacks_samples, misses_samples
from rightpool.profiles.bottleneck import Bottleneck
from rightpool.profiles.consistency import Inconsistency
from rightpool.profiles.findings import SharedChip
from rightpool.profiles.profile import Profile, Steadiness
from rightpool.reporting.conditions.context import Context, Statement, complete_profile, runs
from rightpool.reporting.conditions.served import served
from rightpool.reporting.diagnosis_texts import diagnosis_text
from rightpool.workloads.kinds.registry import pod_sets_of
from rightpool.workloads.load import gets_load
from rightpool.workloads.notes import NOTE_MESSAGES, InjectionNote, notes_for
from rightpool.workloads.overlay import workload_on
from rightpool.workloads.pod_set import scaled_of
from rightpool.workloads.template import InvalidTemplate

_INEFFICIENT: Final = {
    Bottleneck.INPUT_BOUND: Reason.INPUT_BOUND,
    Bottleneck.CHECKPOINT_BOUND: Reason.CHECKPOINT_BOUND,
    Bottleneck.HOST_BOUND: Reason.CHIP_IDLE,
    Bottleneck.SMALL_KERNELS: Reason.SMALL_KERNELS,
    Bottleneck.IDLE: Reason.CHIP_IDLE,
    Bottleneck.COMMUNICATION_BOUND: Reason.COMMUNICATION_BOUND,
    Bottleneck.THROTTLED: Reason.THROTTLED,
    Bottleneck.MEMORY_CAPACITY: Reason.MEMORY_CAPACITY,
}

_CONTRADICTIONS: Final = {
    Inconsistency.OUT_OF_RANGE: "a share outside 0% to 100%",
    Inconsistency.SHARES_EXCEED_STEP: "together more than a step",
    Inconsistency.UNITS_ACTIVE_ON_IDLE_CHIP: "busier than what holds them",
    Inconsistency.MEAN_BEYOND_EXTREMES: "the mean is outside the extremes",
    Inconsistency.TRACE_DISTORTED: "less work by a trace, which slows the program, than by counters",
    Inconsistency.MEMORY_OVERFULL: "less than is in use",
}


def profiled(job: Job, context: Context) -> Statement:
    profile = job.observed.profile
    if not runs(job):
        return Statement("Unknown", Reason.NOT_RUNNING, "no pod runs")
    if not context.telemetry:
        return Statement(
            "Unknown", Reason.TELEMETRY_UNAVAILABLE, "measurements can't be read at the moment; see the operator's log"
        )
    if job.spec.workload.server is not None:
        return served(job, job.spec.workload.server)
    if profile is None or profile.steadiness is Steadiness.ABSENT:
        return _unheard(job)
    if profile.complete and not lacks_samples(job, profile):
        return _measured(job, profile, context)
    return _incomplete(job, profile)


def _unheard(job: Job) -> Statement:
    if job.spec.profiling.mode is Switch.OFF:
        return Statement("False", Reason.PROFILING_OFF, "spec.profiling.mode is Off and nothing else measures the pods")
    lacks = _lacks_profiler(job)
    if lacks is not None:
        text = f"no exporter of the cluster covers the pods of {job.spec.workload_ref}, which have no profiler; {lacks}"
        return Statement("False", Reason.NO_TELEMETRY, text)
    if InjectionNote.HOST_NETWORK in _notes(job):
        return _noted(InjectionNote.HOST_NETWORK)
    return Statement("False", Reason.NO_TELEMETRY, "the pods run and nothing was heard from their profilers yet")


def _lacks_profiler(job: Job) -> str | None:
    """How pods of an adopted object get the profiler; None where they have it, and where they are the operator's."""
    adopted = job.observed.adopted
    if job.spec.workload_ref is None or (adopted is not None and adopted.profiled):
        return None
    if adopted is not None and adopted.admits:
        return "they get it when they start anew"
    return "it takes Kubernetes 1.36"


def _measured(job: Job, profile: Profile, context: Context) -> Statement:
    if profile.set_aside:
        return Statement("True", Reason.CONTRADICTORY_TELEMETRY, _set_aside(profile))
    measured = partial(_by_what, job, profile)
    current = None if context.assessment is None else context.assessment.current
    if current is not None and current.peak_exceeded is not None:
        text = peak_exceeded_text(job, current.peak_exceeded)
        return Statement("True", Reason.PEAK_EXCEEDED, f"{text}; {measured()}")
    return Statement("True", Reason.MEASURED, measured)


def _incomplete(job: Job, profile: Profile) -> Statement:
    if profile.steadiness is Steadiness.STALE:
        return Statement("False", Reason.STALE_TELEMETRY, f"nothing was heard within {span(profile.window)}")
    if profile.steadiness is Steadiness.WARMING_UP:
        return Statement("False", Reason.WARMING_UP, f"the window of {span(profile.window)} is not full yet")
    if profile.pods < profile.expected:
        return Statement("False", Reason.PARTIAL_TELEMETRY, f"{profile.pods} of {profile.expected} pods answer")
    if profile.shared is not None:
        return Statement("False", Reason.SHARED_CHIP, diagnosis_text(SharedChip(profile.shared)))
    if misses_samples(job, profile):
        return Statement(
            "False",
            Reason.PARTIAL_TELEMETRY,
            f"steps are seen, and not how many samples they take, which spec.{job.spec.counts_samples} needs: set "
            "spec.progress.samplesPerStep",
        )
    if awaits_rate(job, profile):
        return Statement("False", Reason.WARMING_UP, "training steps are seen; their rate is not known yet")
    lacks = _lacks_profiler(job)
    if lacks is not None:
        text = (
            f"exporters of the cluster measure the chips; steps take the profiler, which the pods do not have; {lacks}"
        )
        return Statement("False", Reason.EXPORTERS_ALONE, text)
    notes = _notes(job) if job.spec.profiling.mode is not Switch.OFF else ()
    if notes:
        return _noted(notes[0])
    tried = job.spec.workload.job
    if tried is not None and gets_load(tried.template):
        text = "the trial of a server has no training steps: its requests are counted for the ProfiledJob that is tried"
        return Statement("False", Reason.PARTIAL_TELEMETRY, text)
    return Statement(
        "False",
        Reason.PARTIAL_TELEMETRY,
        "no training steps are seen: the program has not begun, or is not PyTorch or JAX, or runs in a virtual "
        "environment (then set PYTHONPATH in the template)",
    )


def _set_aside(profile: Profile) -> str:
    """Which fields are left out, why, and what to look at."""
    by_reason: dict[Inconsistency, list[str]] = {}
    for field, reason in profile.set_aside.items():
        by_reason.setdefault(reason, []).append(field.value)
    parts = [f"{', '.join(sorted(fields))}: {_CONTRADICTIONS[reason]}" for reason, fields in sorted(by_reason.items())]
    if by_reason.keys() == {Inconsistency.TRACE_DISTORTED}:
        return sentence("left out", *parts, "nothing is wrong with the chips")
    return sentence(f"impossible, so left out: {parts[0]}", *parts[1:], remedy="check which chips the exporter reports")


def _by_what(job: Job, profile: Profile) -> str:
    return f"{how_many(profile.pods, 'pod')} over {span(profile.window)}{_in_steps(job, profile)}"


def _in_steps(job: Job, profile: Profile) -> str:
    """What it means that steps are counted; nothing where samples are."""
    if profile.unit is WorkUnit.SAMPLES:
        return ""
    text = "; throughput is in steps/s, since the samples of a step are not seen"
    if comparable_elsewhere(job):
        return text
    return f"{text}: to compare other sizes, set spec.progress.samplesPerStep"


def _notes(job: Job) -> tuple[InjectionNote, ...]:
    ref = job.state.revision
    try:
        workload = workload_on(job.spec, None if ref is None else ref.vendor)
        scaled = scaled_of(pod_sets_of(workload))
        return notes_for(scaled.template, scaled.chip_container)
    except InvalidTemplate:
        return ()  # Placed says so


def _noted(note: InjectionNote) -> Statement:
    return Statement("False", note.value, NOTE_MESSAGES[note])


def efficient(job: Job, context: Context) -> Statement:
    edit = job.state.judged_edit
    slower = None if edit is None or edit.verdict is not EditVerdict.REGRESSED else edit.message
    serves = job.spec.workload.server is not None  # no profile is asked of it
    if slower is not None and serves:
        return Statement("False", Reason.REGRESSED, slower)
    if complete_profile(job) is None or job.observed.diagnosis is None:
        if serves:
            return Statement(
                "Unknown", Reason.PROFILE_NEEDED, "a server has no training steps to profile: see TargetsMet"
            )
        return Statement("Unknown", Reason.PROFILE_NEEDED, "there is no complete profile yet")
    diagnosis = job.observed.diagnosis
    text, reason = partial(diagnosis_text, diagnosis.finding), _INEFFICIENT.get(diagnosis.bottleneck)
    if slower is not None and reason is not Reason.THROTTLED:
        return Statement("False", Reason.REGRESSED, slower)
    if reason is not None:
        return Statement("False", reason, text)
    current = None if context.assessment is None else context.assessment.current
    for target in TARGETS:
        missed = target.missed_at(job, current) if target.of_efficiency else None
        if missed is not None:
            return Statement("False", target.unreachable, f"{missed.text()}; {text()}")
    return Statement("True", Reason.EFFICIENT_ENOUGH, text)
