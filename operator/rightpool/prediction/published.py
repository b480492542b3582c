"""What published measurements say of chips: many sources, each with jobs of its own stack.

A source is to the model what a fleet is: its chips differ a little from what is common (`ChipModel.deviations`). The
posterior of what is common, with the deviations of all sources integrated out, is what ships with the operator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.chip_model import STATIC_RULE, ChipModel, Comparison, axes
from rightpool.prediction.columns import Floats
from rightpool.prediction.precision import SINGLE, falls_back
from rightpool.prediction.scales import Scales


@dataclass(frozen=True, slots=True)
class SourcedComparison:
    """A comparison and who published it."""

    source: str
    comparison: Comparison


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
    """1 where fp32 runs without tf32."""
    single: Floats
    """1 in the class of single precision."""
    same_job: Floats
    """1 for two rows of one job; so below."""
    same_source: Floats
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
        return cls(
            model=model,
            design=np.array([entry[5] for entry in flat]).reshape(len(flat), len(model.names)),
            logs=np.array([entry[4] for entry in flat]),
            x=np.array([entry[6] for entry in flat]).reshape(len(flat), 3),
            fallback=np.array([float(falls_back(entry[2], entry[3])) for entry in flat]),
            single=np.array([float(entry[3] == SINGLE) for entry in flat]),
            same_job=same_job,
            same_source=_same(sources),
            same_arch=same_job * _same(archs),
        )

    def groups(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Which unknowns each of five scales governs: exponents, those by class, archs, chips, fallback."""
        names = self.model.names
        plain = np.array([float(name in ("flops", "bandwidth", "power")) for name in names])
        archs = np.array([float(name.startswith("arch:")) for name in names])
        chips = np.array([float(name.startswith("chip:")) for name in names])
        fallback = np.array([float(name == "fallback") for name in names])
        return plain, 1.0 - plain - archs - chips - fallback, archs, chips, fallback


def _same(values: np.ndarray[tuple[int], np.dtype[np.generic]]) -> Floats:
    return np.asarray(values[:, np.newaxis] == values[np.newaxis, :], dtype=np.float64)


def covariance(evidence: Evidence, scales: Scales) -> Floats:
    """Of the rates, row by row. The reference for the fit, which has the same in JAX."""
    v = [scale**2 for scale in astuple(scales)]
    plain, classes, archs, chips, fallback = evidence.groups()
    common = v[0] * plain + v[1] * classes + v[2] * archs + v[3] * chips + v[4] * fallback
    own = v[5] * plain + v[6] * chips
    a, x = evidence.design, evidence.x
    level = x @ np.array(STATIC_RULE)
    job = v[7] * np.outer(x[:, 0], x[:, 0]) + v[8] * np.outer(x[:, 1], x[:, 1]) + v[9] * np.outer(level, level)
    job += v[11] * np.outer(evidence.fallback, evidence.fallback) + 25.0
    whole: Floats = (a * common) @ a.T + evidence.same_source * ((a * own) @ a.T)
    whole += evidence.same_job * job + v[10] * evidence.same_arch
    whole += np.diag(np.where(evidence.single > 0, v[13], v[12]))
    return whole


def log_likelihood(evidence: Evidence, scales: Scales) -> float:
    """Of the rates under these scales, constants left out."""
    root = np.linalg.cholesky(covariance(evidence, scales))
    rest = np.linalg.solve(root, evidence.logs - evidence.x @ np.array(STATIC_RULE))
    return -0.5 * float(rest @ rest) - float(np.log(np.diag(root)).sum())


def learned(rows: Sequence[SourcedComparison], scales: Scales) -> ChipModel:
    """The posterior of what is common to all fleets."""
    evidence = Evidence.of(rows, scales)
    model = evidence.model
    if not len(evidence.logs):
        return model
    a, prior = evidence.design, model.covariance
    whole = covariance(evidence, scales)
    gain = np.linalg.solve(whole, a @ prior).T
    mean = model.mean + gain @ (evidence.logs - evidence.x @ np.array(STATIC_RULE))
    after = prior - gain @ a @ prior
    return replace(model, mean=mean, covariance=(after + after.T) / 2.0)


def rate_logs(rates: Sequence[float]) -> tuple[float, ...]:
    """Logarithms of rates."""
    return tuple(math.log(rate) for rate in rates)
