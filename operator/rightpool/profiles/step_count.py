"""A step count: the throughput of a program whose steps are seen and whose samples are not.

What a job's throughput counts is decided here, and nowhere else:

| known | unit | throughput |
|---|---|---|
| the program's own count of samples, until it ceases | samples | as it is read |
| else, samples of a step, as the user says | samples | steps times samples of a step, derived |
| else, steps, where nothing in the spec counts samples | steps | steps a second |
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Final

from rightpool.api.work_unit import WorkUnit
from rightpool.profiles.profile import WARM_UP_STEPS
from rightpool.profiles.sample import Field, Sample


class Basis(StrEnum):
    """What throughput is taken from. Readings on different bases must not be compared."""

    COUNTED = "Counted"  # the program's own count of samples
    DERIVED = "Derived"  # steps, and samples of a step
    STEPS = "Steps"  # steps alone

    @property
    def unit(self) -> WorkUnit:
        """What is counted."""
        return WorkUnit.STEPS if self is Basis.STEPS else WorkUnit.SAMPLES


LOST_READINGS: Final = 3
"""Readings in a row with new steps and without samples, after which a program that counted them has ceased to."""


class StepCount:
    """Completes the readings of one Revision. What the program itself counts goes before; where it ceases to count,
    what is derived goes on from there."""

    __slots__ = (
        "_at",
        "_lacking",
        "_made",
        "_newest",
        "_samples",
        "_steps",
        "_waits",
        "basis",
        "per_step",
        "steps_suffice",
    )

    def __init__(self, per_step: float | None, *, steps_suffice: bool, known: bool = False) -> None:
        """known: whether the job was counted in steps before."""
        self.per_step = per_step
        """Samples of one step of the whole job; None where that is not known."""
        self.steps_suffice = steps_suffice
        """Whether steps may be the unit: nothing that the user declares is in samples."""
        self.basis: Basis | None = None
        """Of the newest reading with a throughput; None before the first."""
        self._waits = 0 if known else WARM_UP_STEPS
        self._at = 0.0
        self._steps: float | None = None
        self._samples = 0.0
        self._lacking = 0  # readings in a row with new steps that lack the program's own count
        self._made = 0.0  # steps in them
        self._newest = 0.0  # its steps so far

    def complete(self, sample: Sample) -> Sample:
        """The reading with its throughput, and `basis` set; as it is where the program counts, or nothing can be
        derived. A rate is that of the steps since the reading before."""
        values = sample.values
        if Field.SAMPLES_PER_SECOND in values or Field.SAMPLES in values:
            self._count(sample)
            return sample
        steps = values.get(Field.STEPS)
        if self.basis is Basis.COUNTED and not self._lost(steps):
            return sample
        basis = self._derivable()
        if basis is None:
            self.basis = None
        if basis is None or steps is None:
            return sample
        if basis is not self.basis:
            if basis is Basis.STEPS and steps < self._waits and self.basis is not Basis.COUNTED:
                return sample  # a program that counts samples may not have said so yet
            if self.basis is not Basis.COUNTED:
                self._steps = None
            self.basis = basis
        return sample if self._steps is not None and sample.at <= self._at else self._derived(sample, steps)

    def _derived(self, sample: Sample, steps: float) -> Sample:
        """With what the steps since the reading before tell."""
        before = self._steps
        restarted = before is None or steps < before
        new = steps if before is None or restarted else steps - before
        found: dict[Field, float] = {}
        derived = sample.derived
        if self.per_step is not None:
            self._samples = new * self.per_step + (0.0 if restarted else self._samples)
            found[Field.SAMPLES] = self._samples
        if not restarted:
            rate = new / (sample.at - self._at)
            if self.per_step is None:
                found[Field.STEPS_PER_SECOND] = rate
            else:
                found[Field.SAMPLES_PER_SECOND] = rate * self.per_step
        if self.per_step is not None or Field.STEPS in derived:
            derived = derived | found.keys()
        self._at, self._steps = sample.at, steps
        return replace(sample, values={**sample.values, **found}, derived=derived)

    def _count(self, sample: Sample) -> None:
        """The program's own count is there."""
        self.basis, self._lacking, self._made = Basis.COUNTED, 0, 0.0
        steps, samples = sample.values.get(Field.STEPS), sample.values.get(Field.SAMPLES)
        if steps is not None and samples is not None:
            self._at, self._steps, self._samples = sample.at, steps, samples
        self._newest = self._newest if steps is None else steps

    def _lost(self, steps: float | None) -> bool:
        """Whether a program that counted has made steps for several readings by now, and has not said its samples."""
        if steps is None:
            return False
        new = steps - self._newest if steps >= self._newest else steps
        self._newest = steps
        if new:
            self._lacking, self._made = self._lacking + 1, self._made + new
        return self._lacking >= LOST_READINGS and self._made >= WARM_UP_STEPS

    def _derivable(self) -> Basis | None:
        if self.per_step is not None:
            return Basis.DERIVED
        return Basis.STEPS if self.steps_suffice else None
