"""Where the time of a step goes, for a reader."""

from __future__ import annotations

from typing import Final

from rightpool.api.value_object import value_object
from rightpool.api.wording import share
from rightpool.profiles.profile import Profile
from rightpool.profiles.shares import decompose

_LEAST: Final = 0.0005  # of the step; less is not shown


@value_object
class StepPart:
    """A part of the time of a step."""

    name: str
    """What the time goes to, for a reader."""
    kind: str
    """compute, bandwidth, chip, communication, input, saving or host."""
    start: float
    """Share of the step before it: parts are shown one after the other."""
    share: float
    """Of the step."""

    @property
    def text(self) -> str:
        """Its share, for a reader."""
        return share(self.share)


def step_parts(profile: Profile | None) -> tuple[StepPart, ...]:
    """Where the time of a step goes; empty where that is not known."""
    shares = None if profile is None else decompose(profile)
    if shares is None:
        return ()
    if shares.compute is None or shares.bandwidth is None:
        work = [("work on the chip", "chip", shares.chip)]
    else:
        work = [("limited by compute", "compute", shares.compute), ("by memory", "bandwidth", shares.bandwidth)]
    work += [
        ("exposed communication", "communication", shares.communication),
        ("waits for input", "input", shares.input or 0.0),
        ("waits for saves", "saving", shares.saving),
        ("waits for the host" if shares.input is not None else "waits for input or the host", "host", shares.host),
    ]
    parts: list[StepPart] = []
    start = 0.0
    for name, kind, value in work:
        parts.append(StepPart(name, kind, start, value))
        start += value
    return tuple(part for part in parts if part.share >= _LEAST)
