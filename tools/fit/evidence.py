"""What published measurements say of chips: many sources, each with jobs of its own stack.

A source is to the model what a fleet is: its chips differ a little from what is common (`ChipModel.deviations`). The
posterior of what is common, with the deviations of all sources integrated out, is what ships with the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.chip_model import ANYTHING, STATIC_RULE, ChipModel, Comparison, axes
from rightpool.prediction.columns import Floats, Ints
from rightpool.prediction.precision import HALF, PLAIN, SINGLE, falls_back
from rightpool.prediction.scales import Scales
from rightpool.prediction.spread import Misfit, fleet_spread, oddity

# Spreads and what is common depend on each other: in turns, until they hardly change.
_TURNS: Final = 4


@dataclass(frozen=True, slots=True)
class SourcedComparison:
    """A comparison and who published it."""

    source: str
    """Name of the publication."""
    comparison: Comparison
    """Rates that it gives for one job."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Published rates in columns, a row a rate; everything that the likelihood of scales depends on."""

    model: ChipModel
    """Any scales; the unknowns that the design is of."""
    design: Floats
    """Rows of `ChipModel.design`."""
    logs: Floats
    """Logarithms of the rates, less their job's mean."""
    x: Floats
    """Three axes a row."""
    fallback: Floats
    """1 where a program of single precision runs without tf32."""
    fallback_half: Floats
    """1 where a program of half precision does."""
    single: Floats
    """1 in the class of single precision."""
    job: Ints
    """Each row's job, by number."""
    sources: tuple[str, ...]
    """Of each job."""
    same_job: Floats
    """1 for two rows of one job; so below."""
    same_source: Floats
    """Shape (rows, rows), as all of these."""
    same_arch: Floats
    """Within a job."""

    @classmethod
    def of(cls, rows: Sequence[SourcedComparison], scales: Scales) -> Evidence:
        """The columns of these comparisons; those without figures are left out."""
        model = ChipModel.prior(scales).including(chip for row in rows for chip in row.comparison.chips)
        flat: list[tuple[int, str, Accelerator, int, float, Floats, Floats]] = []
        for number, row in enumerate(rows):
            one = row.comparison
            design = model.design(one.chips, one.kind)
            if np.isnan(design).any() or len(one.chips) < 2:
                continue
            mean = sum(one.logs) / len(one.logs)
            for chip, log, line in zip(one.chips, one.logs, design, strict=True):
                flat.append((number, row.source, chip, one.kind, log - mean, line, axes(chip, one.kind)))
        jobs = np.array([entry[0] for entry in flat])
        sources, archs = np.array([entry[1] for entry in flat]), np.array([entry[2].arch for entry in flat])
        same_job = _same(jobs)
        falls = np.array([float(falls_back(entry[2], entry[3])) for entry in flat])
        kinds = np.array([entry[3] for entry in flat])
        return cls(
            model=model,
            design=np.array([entry[5] for entry in flat]).reshape(len(flat), len(model.names)),
            logs=np.array([entry[4] for entry in flat]),
            x=np.array([entry[6] for entry in flat]).reshape(len(flat), 3),
            fallback=falls * (kinds == SINGLE),
            fallback_half=falls * (kinds == HALF),
            single=np.isin(kinds, (SINGLE, PLAIN)).astype(np.float64),
            job=np.unique(jobs, return_inverse=True)[1],
            sources=tuple({entry[0]: entry[1] for entry in flat}.values()),
            same_job=same_job,
            same_source=_same(sources),
            same_arch=same_job * _same(archs),
        )

    def rest(self) -> Floats:
        """Logarithms of the rates, less the static rule."""
        rest: Floats = self.logs - self.x @ np.array(STATIC_RULE)
        return rest

    def governed(self) -> Floats:
        """Which unknowns the first six scales govern, a row a scale."""
        names = self.model.names
        plain = [name in ("flops", "bandwidth", "power") for name in names]
        archs = [name.startswith("arch:") for name in names]
        chips = [name.startswith("chip:") for name in names]
        single, half = ([name == f"fallback/{kind}" for name in names] for kind in ("single", "half"))
        rest = [not any(one) for one in zip(plain, archs, chips, single, half, strict=True)]
        return np.array([plain, rest, archs, chips, single, half], dtype=np.float64)


def _same(values: np.ndarray[tuple[int], np.dtype[np.generic]]) -> Floats:
    return np.asarray(values[:, np.newaxis] == values[np.newaxis, :], dtype=np.float64)


def common_covariance(evidence: Evidence, scales: Scales) -> Floats:
    """Of what is common to jobs, fleets' own included, row by row."""
    first = (scales.exponents, scales.exponents_class, scales.arch, scales.chip, scales.fallback, scales.fallback_half)
    governed, a = evidence.governed(), evidence.design
    own = scales.fleet_exponents**2 * governed[0] + scales.fleet_chip**2 * governed[3]
    whole: Floats = (a * (np.square(first) @ governed)) @ a.T + evidence.same_source * ((a * own) @ a.T)
    return whole


def job_covariance(evidence: Evidence, scales: Scales) -> Floats:
    """Of what is a usual job's own, row by row. With the above, the reference for what the fit has in JAX."""
    x, level = evidence.x, evidence.x @ np.array(STATIC_RULE)
    columns = (
        (scales.job_flops, x[:, 0]),
        (scales.job_bandwidth, x[:, 1]),
        (scales.job_level, level),
        (scales.job_fallback, evidence.fallback),
        (scales.job_fallback_half, evidence.fallback_half),
    )
    own: Floats = evidence.same_job * sum(scale**2 * np.outer(column, column) for scale, column in columns)
    own += scales.job_arch**2 * evidence.same_arch
    own += np.diag(np.where(evidence.single > 0, scales.rest_single, scales.rest) ** 2)
    return own


def covariance(evidence: Evidence, scales: Scales, spread: Floats) -> Floats:
    """Of the rates. spread: how much more than usual the job of each row differs."""
    own = job_covariance(evidence, scales) * np.outer(spread, spread)
    whole: Floats = common_covariance(evidence, scales) + own + ANYTHING * evidence.same_job
    return whole


@dataclass(frozen=True, slots=True)
class Spreads:
    """How much more than usual jobs differ."""

    rows: Floats
    """The job of each row: its source's, times its own."""
    sources: dict[str, float]
    """Those of each source."""

    @classmethod
    def of(cls, evidence: Evidence, scales: Scales) -> Spreads:
        """The likely ones."""
        job, names = evidence.job, sorted(set(evidence.sources))
        own, common = job_covariance(evidence, scales), common_covariance(evidence, scales)
        members = [np.flatnonzero(job == number) for number in range(len(evidence.sources))]
        dimensions = np.array([len(rows) - 1 for rows in members])
        found, rows = dict.fromkeys(names, 1.0), np.ones(len(job))
        for _ in range(_TURNS):
            whole = common + own * np.outer(rows, rows) + ANYTHING * evidence.same_job
            gain = np.linalg.solve(whole, common).T
            rest, doubt = evidence.rest() - gain @ evidence.rest(), common - gain @ common
            misfits = [Misfit.of(rest[np.newaxis, m], own[np.ix_(m, m)], doubt[np.ix_(m, m)], 0.0) for m in members]
            for name in names:
                mine = [one for one, source in zip(misfits, evidence.sources, strict=True) if source == name]
                found[name] = fleet_spread(mine, scales.fleets)
            usual = np.array([found[name] for name in evidence.sources])
            squares = np.array([float(one.usual()[0]) for one in misfits]) / usual**2
            rows = (usual * oddity(squares, dimensions))[job]
        return cls(rows, found)


def learned(rows: Sequence[SourcedComparison], scales: Scales) -> ChipModel:
    """The posterior of what is common to all fleets."""
    evidence = Evidence.of(rows, scales)
    if not len(evidence.logs):
        return evidence.model
    return posterior(evidence, scales, Spreads.of(evidence, scales).rows)


def posterior(evidence: Evidence, scales: Scales, spread: Floats) -> ChipModel:
    """The same, where it is known how much more than usual the job of each row differs."""
    model = evidence.model
    a, prior = evidence.design, model.covariance
    whole = covariance(evidence, scales, spread)
    gain = np.linalg.solve(whole, a @ prior).T
    after = prior - gain @ a @ prior
    return replace(model, mean=model.mean + gain @ evidence.rest(), covariance=(after + after.T) / 2.0)
