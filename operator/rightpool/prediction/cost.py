"""What work costs: dollars a million samples, joules a sample, and the price of stopping and starting again."""

import math
from typing import Final

from rightpool.prediction.estimate import Estimate, normal_cdf

MILLION: Final = 1_000_000.0
HOUR: Final = 3600.0


def cost_per_million(samples_per_second: Estimate, dollars_per_hour: float) -> Estimate:
    """Dollars for a million samples. Lognormal like the throughput; at no price, 0 without doubt."""
    if dollars_per_hour <= 0.0:
        return Estimate(0.0, 0.0, samples_per_second.basis)
    return samples_per_second.reciprocal(dollars_per_hour * MILLION / HOUR)


def probability_cheaper(
    rate: Estimate, dollars_per_hour: float, other_rate: Estimate, other_dollars_per_hour: float, noise: float = 0.0
) -> float:
    """P(a sample costs less at `rate` for `dollars_per_hour` than at the other), common doubt cancelled.

    noise: further standard deviation of the logarithm, such as the noise of the baseline that the outcome is judged by.
    """
    if dollars_per_hour <= 0.0 or other_dollars_per_hour <= 0.0:
        return 1.0 if dollars_per_hour < other_dollars_per_hour else 0.0
    advantage = math.log(rate.median / other_rate.median) - math.log(dollars_per_hour / other_dollars_per_hour)
    sd = math.hypot(rate.ratio_sd(other_rate), noise)
    if sd == 0.0:
        return 1.0 if advantage > 0.0 else 0.0
    return normal_cdf(advantage / sd)


def energy_per_sample(samples_per_second: Estimate, chips: int, watts_per_chip: float | None) -> Estimate | None:
    """Joules a sample; None where power is not known."""
    if watts_per_chip is None or watts_per_chip <= 0.0:
        return None
    return samples_per_second.reciprocal(watts_per_chip * chips)


def restart_cost(
    stopped_seconds: float, target_dollars_per_hour: float, lost_seconds: float = 0.0, dollars_per_hour: float = 0.0
) -> float:
    """Dollars that a move costs: chips of the target paid while nothing progresses, and work to be done again.

    stopped_seconds: from the last step before to the first step after. lost_seconds: work since the checkpoint, at the
    current price.
    """
    return (stopped_seconds * target_dollars_per_hour + lost_seconds * dollars_per_hour) / HOUR
