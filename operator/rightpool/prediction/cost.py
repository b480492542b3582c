"""What work costs: dollars for a million units of it, and how surely one placement is cheaper than another."""

from typing import Final

import numpy as np

from rightpool.api.estimate import Estimate
from rightpool.api.units import HOUR
from rightpool.prediction.columns import Floats, cumulative_normal

MILLION: Final = 1_000_000.0


def cost_per_million(throughput: Estimate, dollars_per_hour: float) -> Estimate:
    """Dollars for a million units. Lognormal like the throughput; at no price, 0 without doubt."""
    if dollars_per_hour <= 0.0:
        return Estimate(0.0, 0.0)
    return throughput.reciprocal(dollars_per_hour * MILLION / HOUR)


def probability_cheaper(
    rate: Floats,
    dollars_per_hour: Floats,
    other_rate: Floats,
    other_dollars_per_hour: Floats,
    variance: Floats,
) -> Floats:
    """P(a sample costs less at `rate` for `dollars_per_hour` than at the other), row by row.

    variance: of the log of the ratio of the two rates, common doubt cancelled, with the noise of the baseline that the
    outcome is judged by.
    """
    priced = (dollars_per_hour > 0.0) & (other_dollars_per_hour > 0.0)
    there, here = np.where(priced, dollars_per_hour, 1.0), np.where(priced, other_dollars_per_hour, 1.0)
    advantage = np.log(rate / other_rate) - (np.log(there) - np.log(here))
    certain = variance < 1e-18
    sd = np.sqrt(np.where(certain, 1.0, variance))
    probable = np.where(certain, np.where(advantage > 0.0, 1.0, 0.0), cumulative_normal(advantage / sd))
    free = np.where(dollars_per_hour < other_dollars_per_hour, 1.0, 0.0)
    return np.where(priced, probable, free)


def probability_above(rate: Floats, sd: Floats, threshold: Floats) -> Floats:
    """P(rate > threshold), row by row."""
    certain, trivial = sd <= 0.0, threshold <= 0.0
    z = (np.log(rate) - np.log(np.where(trivial, 1.0, threshold))) / np.where(certain, 1.0, sd)
    known = np.where(rate > threshold, 1.0, 0.0)
    return np.where(trivial, 1.0, np.where(certain, known, cumulative_normal(z)))
