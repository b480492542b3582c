"""Fitting the scales by marginal likelihood, in JAX. `make fit` runs it; the operator never imports this module."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rightpool.prediction.chip_model import STATIC_RULE
from rightpool.prediction.published import Evidence
from rightpool.prediction.scales import Scales

# Scales are about 0.1 before anything is known of them, within a factor of e.
_USUAL, _SPREAD = 0.1, 1.0
STEPS = 400
RATE = 0.03


def loss(evidence: Evidence) -> Any:
    """Minus the log posterior of the logarithms of scales, as a function of them."""
    a, x = jnp.asarray(evidence.design), jnp.asarray(evidence.x)
    rest = jnp.asarray(evidence.logs) - x @ jnp.asarray(STATIC_RULE)
    plain, classes, archs, chips, fallback = map(jnp.asarray, evidence.groups())
    falls, single = jnp.asarray(evidence.fallback), jnp.asarray(evidence.single)
    same_job, same_source = jnp.asarray(evidence.same_job), jnp.asarray(evidence.same_source)
    same_arch = jnp.asarray(evidence.same_arch)
    level = x @ jnp.asarray(STATIC_RULE)

    def value(logs: Any) -> Any:
        v = jnp.exp(2.0 * logs)
        common = v[0] * plain + v[1] * classes + v[2] * archs + v[3] * chips + v[4] * fallback
        own = v[5] * plain + v[6] * chips
        job = v[7] * jnp.outer(x[:, 0], x[:, 0]) + v[8] * jnp.outer(x[:, 1], x[:, 1]) + v[9] * jnp.outer(level, level)
        job += v[11] * jnp.outer(falls, falls) + 25.0
        whole = (a * common) @ a.T + same_source * ((a * own) @ a.T) + same_job * job + v[10] * same_arch
        whole += jnp.diag(jnp.where(single > 0, v[13], v[12]))
        root = jnp.linalg.cholesky(whole)
        scaled = jax.scipy.linalg.solve_triangular(root, rest, lower=True)
        usual = 0.5 * jnp.sum(((logs - jnp.log(_USUAL)) / _SPREAD) ** 2)
        return 0.5 * scaled @ scaled + jnp.sum(jnp.log(jnp.diag(root))) + usual

    return value


def fitted(evidence: Evidence, start: Scales) -> Scales:
    """The most likely scales, to three digits: Adam from `start`, with a step that shrinks to nothing."""
    step = jax.jit(jax.value_and_grad(loss(evidence)))
    logs = jnp.log(jnp.asarray(astuple(start)))
    first, second = jnp.zeros_like(logs), jnp.zeros_like(logs)
    for number in range(1, STEPS + 1):
        _, slope = step(logs)
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        move = (first / (1 - 0.9**number)) / (jnp.sqrt(second / (1 - 0.99**number)) + 1e-8)
        logs = logs - RATE * (1.0 - (number - 1) / STEPS) * move
    return Scales(*(float(f"{value:.3g}") for value in np.exp(np.asarray(logs))))
