"""The numbers of a profile as commands show them: each with its unit, how well it is known and what it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rightpool.api.conditions import ConditionType, Reason, find_condition
from rightpool.api.value_object import value_object
from rightpool.api.wording import gibibytes, moment, number, share, span
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.explained import Explanation
from rightpool.cli.table import Page
from rightpool.planning.offers.flops_texts import unknown_flops_text
from rightpool.profiles.profile import Steadiness
from rightpool.profiles.sample import Field, Quality
from rightpool.reporting.profile_status import EXPECTED

RATIO: Final = "ratio"


@value_object
class ProfileField:
    """One number of a profile."""

    name: str
    """As in the status."""
    title: str
    """For a reader."""
    value: float
    """SI base units, ratios 0-1."""
    unit: str
    """Of the value; ratio where it has none."""
    text: str
    """The value for a reader."""
    quality: Quality
    """Whether it was measured, or derived from something else."""
    origin: str
    """What it is from."""


@value_object
class _Kind:
    title: str
    unit: str
    text: Callable[[float], str]
    origin: str


def _watts(value: float) -> str:
    return f"{value:.0f} W"


def _joules(value: float) -> str:
    return f"{number(value)} J"


_PROGRAM, _CHIPS, _STEP = "the program's steps", "counters of the chips", "steps and traces of the program"
_MEASURED: Final[Mapping[Field, _Kind]] = {
    Field.SAMPLES_PER_SECOND: _Kind("samples/s", "1/s", number, "samples that the program takes"),
    Field.STEPS_PER_SECOND: _Kind("steps/s", "1/s", number, _PROGRAM),
    Field.STEP_SECONDS: _Kind("step", "s", moment, _PROGRAM),
    Field.CHIP_BUSY: _Kind("chip busy", RATIO, share, _CHIPS),
    Field.COMPUTE_ACTIVE: _Kind("compute active", RATIO, share, _CHIPS),
    Field.MATRIX_ACTIVE: _Kind("matrix units", RATIO, share, _CHIPS),
    Field.MEMORY_BANDWIDTH: _Kind("memory bandwidth", RATIO, share, _CHIPS),
    Field.EXPOSED_COMMUNICATION: _Kind("exposed communication", RATIO, share, _STEP),
    Field.INPUT_WAIT: _Kind("input wait", RATIO, share, _STEP),
    Field.SAVING: _Kind("time in saves", RATIO, share, "saves of the program"),
    Field.MEMORY_USED: _Kind("memory in use", "B", gibibytes, _CHIPS),
    Field.POWER: _Kind("power of a chip", "W", _watts, _CHIPS),
}
_MFU: Final = "modelFlopsUtilization"
_COMPUTED: Final[Mapping[str, _Kind]] = {
    "joulesPerSample": _Kind("energy of a sample", "J", _joules, "power and samples/s"),
    "joulesPerStep": _Kind("energy of a step", "J", _joules, "power and steps/s"),
    "scalingEfficiency": _Kind("scaling efficiency", RATIO, share, "throughput, and that of one chip"),
    _MFU: _Kind("model FLOPs utilization", RATIO, share, "throughput, and FLOPs counted in the program"),
    "goodput": _Kind("goodput", RATIO, share, "work done, and chip time paid"),
}
_DECLARED: Final = "throughput, and spec.progress.flopsPerSample"


def profile_fields(found: Explanation) -> list[ProfileField]:
    """The numbers that are known, in the order in which people are shown them; none where nothing was measured."""
    profile, recorded = found.job.observed.profile, found.stored.status.profile
    if profile is None or recorded is None:
        return []
    fields = [
        _made(field.value, kind, reading.value, reading.quality)
        for field, kind in _MEASURED.items()
        if (reading := profile.readings.get(field)) is not None
    ]
    computed = {
        "joulesPerSample": recorded.joules_per_sample,
        "joulesPerStep": recorded.joules_per_step,
        "scalingEfficiency": recorded.scaling_efficiency,
        _MFU: recorded.model_flops_utilization,
        "goodput": found.stored.status.state.account.goodput,
    }
    fields += [
        _made(name, _COMPUTED[name], value, Quality.DERIVED, _DECLARED if _declared(found, name) else None)
        for name, value in computed.items()
        if value is not None
    ]
    return fields


def _declared(found: Explanation, name: str) -> bool:
    return name == _MFU and found.job.spec.flops_per_sample is not None


def _made(name: str, kind: _Kind, value: float, quality: Quality, origin: str | None = None) -> ProfileField:
    return ProfileField(name, kind.title, value, kind.unit, kind.text(value), quality, origin or kind.origin)


def unmeasured_fields(found: Explanation) -> Iterator[tuple[str, str, str]]:
    """Name, title and reason of what was not measured, where anything was."""
    profile = found.job.observed.profile
    if profile is None or found.stored.status.profile is None:
        return
    left_out = contradictions(found) is not None
    for field in EXPECTED:
        if field in profile.readings:
            continue
        if field is Field.SAMPLES_PER_SECOND and profile.unit is WorkUnit.STEPS:
            reason = "the profiler sees steps, but not how many samples they take"
        elif field is Field.EXPOSED_COMMUNICATION and profile.chips == 1:
            reason = "a job of one chip does not wait for other chips"
        elif left_out:
            reason = "not measured, or left out because it is impossible: the condition Profiled says which"
        else:
            reason = f"none of the sources has it: {_MEASURED[field].origin}"
        yield field.value, _MEASURED[field].title, reason


def missing_fields(found: Explanation) -> Iterator[tuple[str, str, str]]:
    """The same of all that is not known, also of what is computed from measurements."""
    recorded = found.stored.status.profile
    if found.job.observed.profile is None or recorded is None:
        return
    yield from unmeasured_fields(found)
    reasons = {
        "scalingEfficiency": (recorded.scaling_efficiency, "the throughput of one chip is not known"),
        _MFU: (recorded.model_flops_utilization, unknown_flops_text(found.job, found.assessment.current)),
        "goodput": (found.stored.status.state.account.goodput, "the job's rate is not known yet"),
    }
    for name, (value, reason) in reasons.items():
        if value is None:
            yield name, _COMPUTED[name].title, reason


def nothing_measured(found: Explanation) -> str | None:
    """Why there is no profile; None where there is one."""
    profile = found.job.observed.profile
    if profile is not None and found.stored.status.profile is not None and profile.readings:
        return None
    profiled = find_condition(found.stored.status.conditions, ConditionType.PROFILED)
    waits = profiled is not None and profiled.reason == Reason.NOT_RUNNING
    return "it does not run" if found.job.state.revision is None or waits else "nothing was measured yet"


def contradictions(found: Explanation) -> str | None:
    """Which counters were read and left out, and why; None where none were."""
    profiled = find_condition(found.stored.status.conditions, ConditionType.PROFILED)
    left_out = profiled is not None and profiled.reason == Reason.CONTRADICTORY_TELEMETRY
    return profiled.message if profiled is not None and left_out else None


def profile_remarks(found: Explanation) -> str:
    """Over which time it was measured, when, and how far it is to be relied on."""
    profile, recorded = found.job.observed.profile, found.stored.status.profile
    assert profile is not None and recorded is not None
    remarks = [f"over {span(profile.window)}", f"quality {recorded.quality}"]
    if profile.newest is not None:
        remarks.append(f"measured {span(max(0.0, found.now - profile.newest))} ago")
    if profile.steadiness is not Steadiness.STEADY:
        remarks.append(f"not reliable: {profile.steadiness.value}")
    return ", ".join(remarks)


def print_bottleneck(page: Page, found: Explanation) -> None:
    """What limits the job, the evidence and the lever; nothing where that is not known."""
    diagnosis = found.job.observed.diagnosis
    if diagnosis is None:
        return
    page.heading(f"Limited by {diagnosis.bottleneck.value}")
    if evidence := diagnosis.finding.text():
        page.indented(evidence)
    if lever := diagnosis.finding.lever():
        page.indented(f"what helps: {lever}")


def bottleneck_document(found: Explanation) -> dict[str, str | None] | None:
    """The same for programs."""
    diagnosis = found.job.observed.diagnosis
    if diagnosis is None:
        return None
    return {
        "class": diagnosis.bottleneck.value,
        "evidence": diagnosis.finding.text() or None,
        "lever": diagnosis.finding.lever() or None,
    }
