"""A profile as the status has it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from rightpool.api.altered import altered
from rightpool.api.quantities import format_duration
from rightpool.api.status import ProfileStatus
from rightpool.api.traits import UNKNOWN_TRAITS, ModelTraits
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment
from rightpool.profiles.health import NOT_THROTTLED, throttling
from rightpool.profiles.profile import Profile, Reading
from rightpool.profiles.sample import Field, Quality

# Fields of ProfileStatus, in the order in which people are shown them → what they are a reading of.
FIELDS: Final[Mapping[str, Field]] = {
    "samples_per_second": Field.SAMPLES_PER_SECOND,
    "steps_per_second": Field.STEPS_PER_SECOND,
    "step_seconds": Field.STEP_SECONDS,
    "chip_busy": Field.CHIP_BUSY,
    "compute_active": Field.COMPUTE_ACTIVE,
    "matrix_active": Field.MATRIX_ACTIVE,
    "memory_bandwidth": Field.MEMORY_BANDWIDTH,
    "memory_used_bytes": Field.MEMORY_USED,
    "power_watts": Field.POWER,
    "exposed_communication": Field.EXPOSED_COMMUNICATION,
    "input_wait": Field.INPUT_WAIT,
    "saving": Field.SAVING,
}
FAULTS: Final[Mapping[str, Field]] = {"throttle": Field.THROTTLE, "clock": Field.CLOCK}
"""Recorded where a fault throttles chips: predictions and verdicts then go by them."""
OTHERS: Final[Mapping[str, Field]] = {"others": Field.OTHERS}
"""Recorded where others work on a chip so much that nothing is decided by the profile."""
EXPECTED: Final = tuple(field for field in FIELDS.values() if field not in (Field.STEPS_PER_SECOND, Field.SAVING))
"""Those that are said to be missing. Steps a second stand in for samples a second, and not every program saves."""


def readings_of(recorded: ProfileStatus) -> dict[Field, Reading]:
    """What a status has of a profile's readings: their values, without how they spread."""
    values = {field: getattr(recorded, name) for name, field in {**FIELDS, **FAULTS, **OTHERS}.items()}
    return {
        field: Reading(
            float(value),
            float(value),
            float(value),
            Quality.DERIVED if field.value in recorded.derived else Quality.MEASURED,
        )
        for field, value in values.items()
        if value is not None
    }


def profile_status(job: Job, assessment: Assessment | None) -> ProfileStatus | None:
    """None where nothing was measured, or on another Revision."""
    profile = job.observed.profile
    if profile is None or profile.newest is None or not profile.readings:
        return None
    if job.state.revision is not None and profile.key.revision != job.state.revision.revision:
        return None
    shown = {
        **FIELDS,
        **({} if throttling(profile) == NOT_THROTTLED else FAULTS),
        **({} if profile.shared is None else OTHERS),
    }
    readings = profile.readings
    values: dict[str, Any] = {}
    derived = []
    for name, field in shown.items():
        reading = readings.get(field)
        if reading is not None:
            values[name] = reading.value
            if reading.quality is Quality.DERIVED and name in FIELDS:
                derived.append(field.value)
    memory = values.pop("memory_used_bytes", None)
    joules = profile.joules_per_unit
    current = None if assessment is None else assessment.current
    return ProfileStatus(
        window=format_duration(timedelta(seconds=profile.window)),
        measured_at=math.floor(profile.newest),
        memory_used_bytes=None if memory is None else int(memory),
        joules_per_sample=joules if profile.unit is WorkUnit.SAMPLES else None,
        joules_per_step=joules if profile.unit is WorkUnit.STEPS else None,
        scaling_efficiency=None if current is None else current.scaling_efficiency,
        model_flops_utilization=None if current is None else current.flops_utilization,
        bottleneck=None if job.observed.diagnosis is None else job.observed.diagnosis.bottleneck.value,
        model=_model(profile.traits),
        quality=_quality(profile),
        derived=tuple(derived),
        **values,
    )


def _model(traits: ModelTraits) -> ModelTraits | None:
    if traits == UNKNOWN_TRAITS:
        return None
    return altered(traits, model_bytes=None) if traits.model_bytes == traits.parameter_bytes else traits


def _quality(profile: Profile) -> str:
    if not profile.complete:
        return "Partial"
    derived = any(reading.quality is Quality.DERIVED for reading in profile.readings.values())
    return Quality.DERIVED.value if derived else Quality.MEASURED.value
