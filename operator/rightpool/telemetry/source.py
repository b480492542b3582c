"""Where samples come from: what is asked, and what is answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rightpool.profiles.sample import RevisionKey, Sample


@dataclass(frozen=True, slots=True)
class Target:
    """A Revision to be read. pods: name and IP of each pod that has one. interval: seconds between two readings."""

    key: RevisionKey
    pods: tuple[tuple[str, str], ...]
    interval: float


@dataclass(frozen=True, slots=True)
class TelemetryReading:
    """samples: of the Revisions of which anything could be read; the others are absent. failures: what went wrong, for
    a human, one sentence each. up: whether the source could be read at all."""

    samples: Mapping[RevisionKey, Sample] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    up: bool = True


class TelemetrySource(Protocol):
    """Reads all targets at once. Blocks, for a bounded time, and never raises: what fails is missing, and is said."""

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """now: Unix seconds."""
        ...


_SHOWN = 20


def summarised(failures: Sequence[str]) -> tuple[str, ...]:
    """The first failures, and how many more there were: a thousand silent pods are one fact, not a thousand lines."""
    if len(failures) <= _SHOWN:
        return tuple(failures)
    return (*failures[:_SHOWN], f"and {len(failures) - _SHOWN} more failures")
