"""How fast chips are for the same work: a hierarchical Gaussian model in logarithms, with its exact posterior.

    log rate(job j, chip d) = c_j + (b0 + β + β_class + w_j) · x_d + e_arch(d) + e_d + z_d + a_j,arch(d) + ε

x_d: log of peak FLOP/s in the job's class, of memory bandwidth and of power. b0 is the static rule. β, e and z (fp32
without tf32) are learned: first from published measurements (data/chips.json, by `make fit`), then from jobs of the
fleet that ran on two kinds of chips or more. w_j, a_j and ε are a job's own and c_j its size, of which nothing is
assumed. Everything is normal, so the posterior of what is common to jobs is linear algebra over as many unknowns as
there are chips.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Final

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.columns import Floats
from rightpool.prediction.precision import CLASSES, PLAIN, SINGLE, falls_back, peak
from rightpool.prediction.scales import Scales
from rightpool.prediction.spread import TAILS_SD, Misfit, fleet_spread, oddity

# The static rule: FLOP/s^0.40 · bandwidth^0.45 · power^0.15.
STATIC_RULE: Final = (0.40, 0.45, 0.15)
# Units in which x is measured, so that its logarithms are small.
_UNITS: Final = (1e14, 1e12, 300.0)
# Power of chips that publish none, from the other two; and how far it may be off.
_POWER_FROM: Final = (0.5, 0.5)
UNPUBLISHED_POWER_SD: Final = 0.4
# The variance of c_j: anything goes.
ANYTHING: Final = 25.0

# What is common to jobs, their fleet's spread and how odd each of them is, in turns: they hardly change after these.
_TURNS: Final = 3

_AXES: Final = ("flops", "bandwidth", "power")
# By class of precision; none of eight bits.
_FALLBACK: Final = ("fallback/half", "fallback/single")


@value_object
class Comparison:
    """One job's rates on several kinds of chips, all else alike."""

    chips: tuple[Accelerator, ...]
    """Where it ran, each once."""
    kind: int
    """Its class of precision."""
    logs: tuple[float, ...]
    """Logarithms of its rates per chip."""
    sd: float = 0.0
    """What each of these may be off beside the model: windows, sizes that were corrected for, a doubtful verdict."""


def axes(chip: Accelerator, kind: int) -> Floats:
    """x of a chip, NaN where figures are missing. Unpublished power follows from the rest."""
    flops = peak(chip, kind)
    if flops is None or chip.memory_bandwidth <= 0:
        return np.full(3, np.nan)
    first, second = math.log(flops / _UNITS[0]), math.log(chip.memory_bandwidth / _UNITS[1])
    watts = chip.power_watts
    third = math.log(watts / _UNITS[2]) if watts else _POWER_FROM[0] * first + _POWER_FROM[1] * second
    return np.array([first, second, third])


def figures_variance(chip: Accelerator) -> float:
    """Of log rate, because figures of the chip are estimated. They may well be wrong the same way."""
    flops, bandwidth = chip.doubts.get("peak_flops", 0.0), chip.doubts.get("memory_bandwidth", 0.0)
    sd = STATIC_RULE[0] * flops + STATIC_RULE[1] * bandwidth
    if not chip.power_watts:
        sd += STATIC_RULE[2] * (_POWER_FROM[0] * flops + _POWER_FROM[1] * bandwidth)
    return sd**2


@value_object
class ChipModel:
    """The posterior of what is common to all jobs. `names` are its unknowns; mean and covariance are in their order."""

    scales: Scales
    """How far rates deviate, for each cause."""
    names: tuple[str, ...]
    """Of the unknowns, such as `flops` or `chip:A100-80GB`; n of them."""
    mean: Floats
    """Shape (n,): logarithms, or exponents of a chip's figures."""
    covariance: Floats
    """Shape (n, n), of the same."""
    index: dict[str, int] = field(default_factory=dict)
    """Place in the columns, by name."""
    observations: int = 0
    """Comparisons of this fleet that it has learned from."""
    spread: float = 1.0
    """How much more than usual the jobs of this fleet differ, as a factor."""

    def __post_init__(self) -> None:
        if not self.index:
            self.index.update({name: number for number, name in enumerate(self.names)})

    @classmethod
    def prior(cls, scales: Scales) -> ChipModel:
        """Before anything was measured anywhere: the static rule."""
        classes = dict.fromkeys(CLASSES)
        names = [*_AXES, *(f"{axis}/{kind}" for kind in classes for axis in _AXES), *_FALLBACK]
        exponents = [scales.exponents] * 3 + [scales.exponents_class] * 3 * len(classes)
        sd = np.array([*exponents, scales.fallback_half, scales.fallback])
        return cls(scales, tuple(names), np.array([*STATIC_RULE] + [0.0] * (len(names) - 3)), np.diag(sd**2))

    # --- unknowns ----------------------------------------------------------------------------------------------------

    def including(self, chips: Iterable[Accelerator]) -> ChipModel:
        """The same model with these chips among its unknowns."""
        chips = tuple(chips)
        wanted = dict.fromkeys(name for chip in chips for name in (f"arch:{chip.arch}", f"chip:{chip.key}"))
        new = [name for name in wanted if name not in self.index]
        if not new:
            return self
        scales, before = self.scales, len(self.names)
        size = before + len(new)
        covariance = np.zeros((size, size))
        covariance[:before, :before] = self.covariance
        doubts = {f"chip:{chip.key}": figures_variance(chip) for chip in chips}
        for number, name in enumerate(new, before):
            spread = scales.arch if name.startswith("arch:") else scales.chip
            covariance[number, number] = spread**2 + doubts.get(name, 0.0)
        mean = np.concatenate((self.mean, np.zeros(len(new))))
        return replace(self, names=(*self.names, *new), mean=mean, covariance=covariance, index={})

    def of_a_fleet(self) -> ChipModel:
        """What this says of one fleet, which differs from others."""
        spread = fleet_spread((), self.scales.fleets)
        return replace(self, covariance=self.covariance + np.diag(self.deviations()), spread=spread)

    def deviations(self) -> Floats:
        """Variances by which the unknowns of one fleet differ from the common ones."""
        own = np.zeros(len(self.names))
        own[:3] = self.scales.fleet_exponents**2
        for name, number in self.index.items():
            if name.startswith("chip:"):
                own[number] = self.scales.fleet_chip**2
        return own

    def design(self, chips: Sequence[Accelerator], kind: int) -> Floats:
        """A row a chip, a column an unknown: how each of them enters log rate. NaN where figures are missing."""
        rows = np.zeros((len(chips), len(self.names)))
        for row, chip in zip(rows, chips, strict=True):
            x = axes(chip, kind)
            row[:3] = x
            begin = self.index[f"flops/{CLASSES[kind]}"]
            row[begin : begin + 3] = x
            if falls_back(chip, kind):
                row[self.index[_FALLBACK[kind]]] = 1.0
            row[self.index[f"arch:{chip.arch}"]] = 1.0
            row[self.index[f"chip:{chip.key}"]] = 1.0
        return rows

    # --- jobs --------------------------------------------------------------------------------------------------------

    def of_a_job(self, chips: Sequence[Accelerator], kind: int, counted: float = 1.0, awaited: float = 1.0) -> Floats:
        """Covariance of what is a job's own on these chips, c_j aside.

        counted: of the sd of its exponents, the part that its counters leave. awaited: of the sd of its level, the part
        that is left once it is known how long the chip waits.
        """
        return self.own_variance * self.of_a_usual_job(chips, kind, counted, awaited)

    @property
    def own_variance(self) -> float:
        """What variances of a usual job's own are multiplied by: the fleet's spread and the tails."""
        return (TAILS_SD * self.spread) ** 2

    def of_a_usual_job(
        self, chips: Sequence[Accelerator], kind: int, counted: float = 1.0, awaited: float = 1.0
    ) -> Floats:
        """The same without tails and without what is the fleet's own: the scales as they are."""
        scales = self.scales
        x = np.array([axes(chip, kind) for chip in chips]).reshape(len(chips), 3)
        level = x @ np.array(STATIC_RULE)
        falls = np.array([float(falls_back(chip, kind)) for chip in chips])
        archs, keys = np.array([chip.arch for chip in chips]), np.array([chip.key for chip in chips])
        single = kind in (SINGLE, PLAIN)
        rest = scales.rest_single if single else scales.rest
        fallback = scales.job_fallback if single else scales.job_fallback_half
        own: Floats = (counted * scales.job_flops) ** 2 * np.outer(x[:, 0], x[:, 0])
        own += (counted * scales.job_bandwidth) ** 2 * np.outer(x[:, 1], x[:, 1])
        own += (awaited * scales.job_level) ** 2 * np.outer(level, level)
        own += (awaited * fallback) ** 2 * np.outer(falls, falls)
        own += (counted * scales.job_arch) ** 2 * (archs[:, np.newaxis] == archs)
        own += rest**2 * (keys[:, np.newaxis] == keys)
        return own

    # --- learning ----------------------------------------------------------------------------------------------------

    def updated(self, comparisons: Sequence[Comparison]) -> ChipModel:
        """The posterior after these comparisons, which are independent given what is common to jobs.

        They are all of the fleet's: its spread follows from these alone. A job that is far off counts for less, as its
        tails have it: what is common, the spread and how odd jobs are follow from each other, in turns.
        """
        model = self.including(chip for one in comparisons for chip in one.chips)
        learnt = model._alike([one for one in comparisons if len(one.chips) > 1])
        if not learnt:
            return model
        size, spread, odd = len(model.names), model.spread, [np.ones(len(one.logs)) for one in learnt]
        mean, covariance = model.mean, model.covariance
        for _ in range(_TURNS):
            precision, pull = np.zeros((size, size)), np.zeros(size)
            for one, factors in zip(learnt, odd, strict=True):
                noise = spread**2 * one.own + one.sd**2 * np.eye(len(one.rows)) + ANYTHING
                weighed, weights = np.linalg.solve(noise, one.rows), factors**-2.0
                precision += weights.sum() * one.rows.T @ weighed
                pull += weighed.T @ (weights @ one.logs)
            mean, covariance = _conditioned(model.mean, model.covariance, precision, pull)
            misfits = [one.misfit(mean, covariance) for one in learnt]
            spread = fleet_spread(misfits, model.scales.fleets)
            odd = [oddity(one.usual() / spread**2, np.array(one.dimensions)) for one in misfits]
        count = model.observations + sum(len(one.logs) for one in learnt)
        return replace(model, mean=mean, covariance=covariance, observations=count, spread=spread)

    def _alike(self, comparisons: Iterable[Comparison]) -> list[_Alike]:
        """Comparisons on the same chips with the same doubt, together; without those whose chips lack figures."""
        groups: dict[tuple[tuple[tuple[object, ...], ...], int, float], list[Comparison]] = {}
        for one in comparisons:
            # Pools of one chip have figures of their own where they were measured.
            figures = tuple((chip.key, peak(chip, one.kind), chip.memory_bandwidth) for chip in one.chips)
            groups.setdefault((figures, one.kind, one.sd), []).append(one)
        found = []
        for (_, kind, sd), alike in groups.items():
            chips = alike[0].chips
            rows = self.design(chips, kind)
            if np.isnan(rows).any():
                continue
            logs = np.array([one.logs for one in alike])
            logs = logs - logs.mean(axis=1, keepdims=True)
            found.append(_Alike(rows, self.of_a_usual_job(chips, kind), sd, logs))
        return found


@value_object
class _Alike:
    """Jobs of one class of precision on the same chips."""

    rows: Floats
    """A row a chip, a column an unknown."""
    own: Floats
    """Covariance of what is a usual job's own."""
    sd: float
    """What each rate may be off beside the model."""
    logs: Floats
    """Logarithms of rates, a row a job, less its mean."""

    def misfit(self, mean: Floats, covariance: Floats) -> Misfit:
        """What these jobs are off by, with this posterior of what is common."""
        return Misfit.of(self.logs - self.rows @ mean, self.own, self.rows @ covariance @ self.rows.T, self.sd**2)


def _conditioned(mean: Floats, covariance: Floats, precision: Floats, pull: Floats) -> tuple[Floats, Floats]:
    """N(mean, covariance) after observations with this information matrix and vector.

    Σ' = L (I + Lᵀ P L)⁻¹ Lᵀ with Σ = L Lᵀ: no inverse of Σ, of which some unknowns may be certain.
    """
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    inner = np.eye(len(mean)) + root.T @ precision @ root
    left = np.linalg.solve(np.linalg.cholesky(inner), root.T)
    after = left.T @ left
    moved = mean + after @ (pull - precision @ mean)
    return moved, (after + after.T) / 2.0
