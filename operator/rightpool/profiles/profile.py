"""A Profile: a job's behaviour over a window on one Revision."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rightpool.profiles.sample import Field, Quality, RevisionKey


class Steadiness(StrEnum):
    """Whether the window may be believed."""

    STEADY = "Steady"
    WARMING_UP = "WarmingUp"  # too few steps, or the step time still drifts
    STALE = "Stale"  # the newest reading is too old
    ABSENT = "Absent"  # nothing was ever read


@dataclass(frozen=True, slots=True)
class Reading:
    """One field over the window: median, 10th and 90th percentile, and how it came about."""

    value: float
    low: float
    high: float
    quality: Quality


@dataclass(frozen=True, slots=True)
class Profile:
    """readings: absent where missing. window: seconds asked for; covered: share of it that readings cover (0–1).

    pods: how many answered in the newest sample, of `expected`. newest: Unix seconds of the newest sample, None if none.
    """

    key: RevisionKey
    chips: int
    steadiness: Steadiness
    window: float
    covered: float
    newest: float | None
    pods: int
    expected: int
    readings: Mapping[Field, Reading]

    def value(self, field: Field) -> float | None:
        """The median of a field, None where it is missing."""
        reading = self.readings.get(field)
        return None if reading is None else reading.value

    @property
    def complete(self) -> bool:
        """Steady, every pod answered, and throughput known: good enough to decide on."""
        return (
            self.steadiness is Steadiness.STEADY
            and self.pods >= self.expected
            and Field.SAMPLES_PER_SECOND in self.readings
        )
