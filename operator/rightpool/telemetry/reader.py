"""Reading telemetry: what is asked for, and what is answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from rightpool.profiles.sample import RevisionKey, Sample


@dataclass(frozen=True, slots=True)
class Target:
    """A Revision to be read."""

    key: RevisionKey
    """Which Revision it is."""
    pods: tuple[tuple[str, str], ...]
    """Name and IP of each pod that has an IP. An empty one: it has no profiler to be asked."""
    interval: float
    """Seconds between two readings."""


@dataclass(frozen=True, slots=True)
class TelemetryReading:
    """What one reading of all targets gave."""

    samples: Mapping[RevisionKey, Sample] = field(default_factory=dict)
    """Of the Revisions of which anything could be read; the others are absent."""
    failures: tuple[str, ...] = ()
    """What went wrong, for a human, one sentence each."""
    up: bool = True
    """Whether anything could be read at all."""


class TelemetryReader(Protocol):
    """Reads all targets at once. Blocks, for a bounded time, and never raises: what fails is missing, and reported."""

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """now: Unix seconds."""
        ...


_SHOWN: Final = 20


def summarised(failures: Sequence[str]) -> tuple[str, ...]:
    """The first failures, and how many more there were: a thousand silent pods are one fact, not a thousand lines."""
    if len(failures) <= _SHOWN:
        return tuple(failures)
    return (*failures[:_SHOWN], f"and {len(failures) - _SHOWN} more failures")
