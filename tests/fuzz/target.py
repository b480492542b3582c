"""The interface of fuzzing targets: they accept inputs and check invariants."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, Protocol

CHECK_EVERY: Final = 2_000
WARM_UP: Final = 0.1  # share of the inputs after which memory must not grow
MAX_GROWTH: Final = 8 * 2**20


class Finding(AssertionError):
    """A wrong value was accepted, or a limit was exceeded. The message names it."""


class Target(Protocol):
    """feed: process one input; True if accepted. Any exception is a finding. check: verify the invariants."""

    name: str

    def feed(self, random: Random) -> bool: ...

    def check(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run. Memory is the resident set in bytes, after the warm-up and at the end."""

    name: str
    seed: int
    inputs: int
    taken: int
    seconds: float
    before: int
    after: int

    @property
    def growth(self) -> int:
        return self.after - self.before

    def __str__(self) -> str:
        mib = 2**20
        return (
            f"{self.name}: {self.inputs:,} inputs (seed {self.seed}), {self.taken:,} taken, {self.seconds:.0f} s, "
            f"resident {self.before / mib:.1f} MiB → {self.after / mib:.1f} MiB"
        )


def run(make: Callable[[], Target], inputs: int, seed: int) -> Outcome:
    """Feed a number of inputs. Raises findings with the seed and number of their input."""
    target, taken, before = make(), 0, 0
    began = time.monotonic()
    for number in range(inputs):
        random = Random(seed * 1_000_003 + number)
        try:
            taken += target.feed(random)
            if number % CHECK_EVERY == CHECK_EVERY - 1:
                target.check()
        except Exception as error:
            error.add_note(f"{target.name}, seed {seed}, input {number}")
            raise
        if number == int(inputs * WARM_UP):
            before = resident()
    target.check()
    outcome = Outcome(target.name, seed, inputs, taken, time.monotonic() - began, before, resident())
    if not 0 < taken < inputs:
        raise Finding(f"{outcome}: inputs that are all taken, or all refused, test nothing")
    if outcome.growth > MAX_GROWTH:
        raise Finding(f"{outcome}: memory grows")
    return outcome


def resident() -> int:
    """The resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
