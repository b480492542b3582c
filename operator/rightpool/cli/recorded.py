"""The profile that a status tells of, as planning reads it.

The operator measures, and writes what it measured into the status; whoever asks later has no other source. Digits and
the spread of the readings are lost on the way, the values are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition
from rightpool.api.quantities import parse_duration
from rightpool.api.status import ProfiledJobStatus, ProfileStatus
from rightpool.hardware.accelerator import Accelerator
from rightpool.planning.snapshot import JobState
from rightpool.profiles.diagnosis import Bottleneck, Diagnosis, diagnose
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey
from rightpool.runtime.jobs import StoredJob

# The operator writes what it measures at least once a minute while it runs.
OLD_SECONDS: Final = 300.0

# Fields of ProfileStatus → what they are a reading of.
FIELDS: Final[Mapping[str, Field]] = {
    "samples_per_second": Field.SAMPLES_PER_SECOND,
    "step_seconds": Field.STEP_SECONDS,
    "chip_busy": Field.CHIP_BUSY,
    "compute_active": Field.COMPUTE_ACTIVE,
    "matrix_active": Field.MATRIX_ACTIVE,
    "memory_bandwidth": Field.MEMORY_BANDWIDTH,
    "memory_used_bytes": Field.MEMORY_USED,
    "power_watts": Field.POWER,
    "exposed_communication": Field.EXPOSED_COMMUNICATION,
    "input_wait": Field.INPUT_WAIT,
}
_STEADINESS: Final[Mapping[str, Steadiness]] = {
    Reason.WARMING_UP: Steadiness.WARMING_UP,
    Reason.STALE_TELEMETRY: Steadiness.STALE,
    Reason.NO_TELEMETRY: Steadiness.ABSENT,
    Reason.PROFILING_OFF: Steadiness.ABSENT,
}
_JUDGED: Final = ("True", "False")


def recorded_profile(stored: StoredJob) -> Profile | None:
    """None where nothing was measured of the current Revision, or nothing of it runs."""
    job, status = stored.state, stored.status
    said = find_condition(status.conditions, ConditionType.PROFILED)
    if job.ref is None or said is None or said.reason == Reason.NOT_RUNNING:
        return None
    recorded = status.profile
    steadiness = Steadiness.STEADY if said.status == "True" else _STEADINESS.get(said.reason, Steadiness.STEADY)
    if recorded is None and steadiness is not Steadiness.ABSENT:
        return None
    placement = job.ref.placement
    window = parse_duration(recorded.window) if recorded and recorded.window else job.spec.profiling.window
    return Profile(
        key=RevisionKey(job.key.namespace, job.key.name, job.ref.revision),
        chips=placement.chips,
        steadiness=steadiness,
        window=window.total_seconds(),
        covered=1.0 if steadiness is Steadiness.STEADY else 0.0,
        newest=None if recorded is None or recorded.measured_at is None else recorded.measured_at.timestamp(),
        pods=0 if _partial(said) else placement.replicas,
        expected=placement.replicas,
        readings={} if recorded is None else _readings(recorded),
    )


def _partial(said: Condition) -> bool:
    return said.status != "True" and said.reason == Reason.PARTIAL_TELEMETRY


def _readings(recorded: ProfileStatus) -> dict[Field, Reading]:
    quality = Quality.DERIVED if recorded.quality == Quality.DERIVED else Quality.MEASURED
    values = {field: getattr(recorded, name) for name, field in FIELDS.items()}
    return {
        field: Reading(float(value), float(value), float(value), quality)
        for field, value in values.items()
        if value is not None
    }


def telemetry_is_up(status: ProfiledJobStatus) -> bool:
    """Whether the operator could read measurements when it last wrote."""
    said = find_condition(status.conditions, ConditionType.PROFILED)
    return said is None or said.reason != Reason.TELEMETRY_UNAVAILABLE


def recorded_diagnosis(
    status: ProfiledJobStatus, profile: Profile | None, accelerator: Accelerator | None
) -> Diagnosis | None:
    """What limits the job, in the operator's words.

    It is diagnosed again from what was recorded. Where the operator found something else, it saw counters that the
    status does not hold, such as those of single chips: then it is right, and its condition has the evidence.
    """
    recorded = status.profile
    if recorded is None or recorded.bottleneck is None:
        return None
    if profile is not None and accelerator is not None:
        found = diagnose(profile, accelerator)
        if found.bottleneck.value == recorded.bottleneck:
            return found
    said = find_condition(status.conditions, ConditionType.EFFICIENT)
    evidence = said.message if said is not None and said.status in _JUDGED else ""
    try:
        return Diagnosis(Bottleneck(recorded.bottleneck), evidence, "")
    except ValueError:  # of a newer operator
        return Diagnosis(Bottleneck.UNKNOWN, f"{recorded.bottleneck}: {evidence}", "")


def age(job: JobState, profile: Profile | None, now: float) -> float | None:
    """Seconds since the newest reading, where that is longer ago than an operator at work would leave it."""
    if profile is None or profile.newest is None or job.finished is not None:
        return None
    seconds = now - profile.newest
    return seconds if seconds > max(OLD_SECONDS, 2 * profile.window) else None
