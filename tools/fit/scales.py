"""Fits the scales of the model of chips by marginal likelihood, in JAX."""

from __future__ import annotations

import statistics
from dataclasses import astuple, fields, replace
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from rightpool.prediction.chip_model import ANYTHING, STATIC_RULE
from rightpool.prediction.columns import Floats
from rightpool.prediction.scales import Scales
from tools.fit.evidence import Evidence, Spreads

# Scales are about 0.1 before anything is known of them, within a factor of e.
USUAL: Final = 0.1
# Scales and spreads in turns.
TURNS: Final = 5
# Of the log of a source's spread, while it is not known how much they differ.
_ANY_SPREAD: Final = 0.5
# All but the last, which is of the spreads that were found.
_FITTED: Final = len(fields(Scales)) - 1
_OF_CHIPS: Final = ("arch", "chip", "fleet_chip")
_OF_JOBS: Final = tuple(one.name for one in fields(Scales) if one.name.startswith(("job_", "rest")))


def loss(evidence: Evidence, spread: Floats) -> Any:
    """Minus the log posterior of the logarithms of scales, as a function of them. spread: of the job of each row."""
    a, x, rest = jnp.asarray(evidence.design), jnp.asarray(evidence.x), jnp.asarray(evidence.rest())
    governed = jnp.asarray(evidence.governed())
    level = x @ jnp.asarray(STATIC_RULE)
    columns = [x[:, 0], x[:, 1], level, jnp.asarray(evidence.fallback), jnp.asarray(evidence.fallback_half)]
    outer = jnp.array([jnp.outer(column, column) for column in columns])
    single, spreads = jnp.asarray(evidence.single), jnp.outer(jnp.asarray(spread), jnp.asarray(spread))
    same_job, same_source = jnp.asarray(evidence.same_job), jnp.asarray(evidence.same_source)
    same_arch = jnp.asarray(evidence.same_arch)

    def value(logs: Any) -> Any:
        scales = Scales(*jnp.append(jnp.exp(2.0 * logs), 0.0))  # squared
        first = jnp.array([scales.exponents, scales.exponents_class, scales.arch, scales.chip])
        common = jnp.concatenate([first, jnp.array([scales.fallback, scales.fallback_half])]) @ governed
        fleet = scales.fleet_exponents * governed[0] + scales.fleet_chip * governed[3]
        jobs = jnp.array([scales.job_flops, scales.job_bandwidth, scales.job_level])
        jobs = jnp.concatenate([jobs, jnp.array([scales.job_fallback, scales.job_fallback_half])])
        own = same_job * jnp.tensordot(jobs, outer, 1) + scales.job_arch * same_arch
        own += jnp.diag(jnp.where(single > 0, scales.rest_single, scales.rest))
        whole = (a * common) @ a.T + same_source * ((a * fleet) @ a.T) + own * spreads + ANYTHING * same_job
        root = jnp.linalg.cholesky(whole)
        scaled = jax.scipy.linalg.solve_triangular(root, rest, lower=True)
        usual = 0.5 * jnp.sum((logs - jnp.log(USUAL)) ** 2)
        return 0.5 * scaled @ scaled + jnp.sum(jnp.log(jnp.diag(root))) + usual

    return value


def fitted(evidence: Evidence) -> Scales:
    """The most likely scales, to three digits, of jobs of a usual source."""
    logs = np.full(_FITTED, np.log(USUAL))
    found = Spreads(np.ones(len(evidence.logs)), dict.fromkeys(evidence.sources, 1.0))
    scales = Scales(*np.append(np.exp(logs), _ANY_SPREAD))
    for _ in range(TURNS):
        step = jax.jit(jax.value_and_grad(loss(evidence, found.rows)))
        best = minimize(
            lambda at, step=step: tuple(np.asarray(one, dtype=np.float64) for one in step(at)),
            logs,
            jac=True,
            method="L-BFGS-B",
        )
        logs = best.x
        scales = Scales(*np.append(np.exp(logs), _ANY_SPREAD))
        found = Spreads.of(evidence, scales)
    # Chips and micro-architectures are few, so their scales are uncertain: they count with the root of their mean
    # square, by Laplace's method. Three exponents say too little of theirs for that.
    doubt = np.diag(np.linalg.inv(np.asarray(jax.hessian(loss(evidence, found.rows))(logs))))
    names = [one.name for one in fields(Scales)]
    uncertain = {name: float(np.exp(logs[at] + doubt[at])) for name in _OF_CHIPS for at in (names.index(name),)}
    scales = replace(scales, **uncertain)
    # A usual source is the one in the middle of those that were seen.
    spreads = [float(np.log(spread)) for spread in found.sources.values()]
    middle = float(np.exp(statistics.fmean(spreads)))
    usual = replace(scales, **{name: getattr(scales, name) * middle for name in _OF_JOBS})
    fleets = statistics.stdev(spreads) if len(spreads) > 1 else _ANY_SPREAD
    return Scales(*(float(f"{value:.3g}") for value in astuple(replace(usual, fleets=fleets))))
