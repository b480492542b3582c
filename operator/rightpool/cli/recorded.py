"""The profile and diagnosis of a job, reconstructed from its status.

Commands have no other source than what the operator wrote into the status. The values are there; the spread of the
readings and some digits are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition
from rightpool.api.quantities import parse_duration
from rightpool.api.status import ProfiledJobStatus
from rightpool.api.traits import UNKNOWN_TRAITS
from rightpool.hardware.accelerator import Accelerator
from rightpool.profiles.bottleneck import Bottleneck, Diagnosis
from rightpool.profiles.diagnosis import diagnose
from rightpool.profiles.profile import Profile, Steadiness
from rightpool.profiles.sample import RevisionKey
from rightpool.reporting.diagnosis_texts import RecordedFinding
from rightpool.reporting.profile_status import readings_of
from rightpool.reporting.stored_job import StoredJob

_STEADINESS: Final[Mapping[str, Steadiness]] = {
    Reason.WARMING_UP: Steadiness.WARMING_UP,
    Reason.STALE_TELEMETRY: Steadiness.STALE,
    Reason.NO_TELEMETRY: Steadiness.ABSENT,
    Reason.PROFILING_OFF: Steadiness.ABSENT,
}
_DIAGNOSED: Final = ("True", "False")


def recorded_profile(stored: StoredJob) -> Profile | None:
    """The recorded profile; None if the current Revision was not measured or does not run."""
    job, status = stored.job, stored.status
    profiled = find_condition(status.conditions, ConditionType.PROFILED)
    if job.state.revision is None or profiled is None or profiled.reason == Reason.NOT_RUNNING:
        return None
    recorded = status.profile
    if profiled.status == "True":
        steadiness = Steadiness.STEADY
    else:
        steadiness = _STEADINESS.get(profiled.reason, Steadiness.STEADY)
    if recorded is None and steadiness is not Steadiness.ABSENT:
        return None
    placement = job.state.revision.placement
    window = parse_duration(recorded.window) if recorded and recorded.window else job.spec.profiling.window
    return Profile(
        key=RevisionKey(job.key.namespace, job.key.name, job.state.revision.revision),
        chips=placement.chips,
        steadiness=steadiness,
        window=window.total_seconds(),
        covered=1.0 if steadiness is Steadiness.STEADY else 0.0,
        newest=None if recorded is None or recorded.measured_at is None else recorded.measured_at,
        pods=0 if _partial(profiled) else placement.replicas,
        expected=placement.replicas,
        readings={} if recorded is None else readings_of(recorded),
        traits=UNKNOWN_TRAITS if recorded is None else recorded.model or UNKNOWN_TRAITS,
    )


def _partial(profiled: Condition) -> bool:
    return profiled.status != "True" and profiled.reason == Reason.PARTIAL_TELEMETRY


def telemetry_is_up(status: ProfiledJobStatus) -> bool:
    """Whether the operator could read measurements when it last wrote the status."""
    profiled = find_condition(status.conditions, ConditionType.PROFILED)
    return profiled is None or profiled.reason != Reason.TELEMETRY_UNAVAILABLE


def recorded_diagnosis(stored: StoredJob, profile: Profile | None, accelerator: Accelerator | None) -> Diagnosis | None:
    """What limits the job, while it is measured; of one that has ended, what limited it.

    The recorded profile is diagnosed again. If the result differs from the recorded bottleneck, the operator had
    counters that the status does not contain, such as those of single chips. Then the recorded bottleneck is returned,
    with the evidence of its condition.
    """
    status = stored.status
    recorded = status.measured if stored.job.state.finished is None else status.profile
    if recorded is None or recorded.bottleneck is None:
        return None
    if profile is not None and accelerator is not None:
        diagnosis = diagnose(profile, accelerator)
        # Of a fault the status does not say all: what it is due to, for one.
        if diagnosis.bottleneck.value == recorded.bottleneck and diagnosis.bottleneck is not Bottleneck.THROTTLED:
            return diagnosis
    efficient = find_condition(status.conditions, ConditionType.EFFICIENT)
    evidence = efficient.message if efficient is not None and efficient.status in _DIAGNOSED else ""
    try:
        return Diagnosis(Bottleneck(recorded.bottleneck), RecordedFinding(evidence))
    except ValueError:  # written by a newer operator
        return Diagnosis(Bottleneck.UNKNOWN, RecordedFinding(f"{recorded.bottleneck}: {evidence}"))
