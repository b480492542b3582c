"""An Estimate: a predicted positive quantity, lognormal."""

import math
from dataclasses import dataclass

# Standard normal quantile of the 80% interval's upper end.
Z80 = 1.2815515655446004


def normal_cdf(z: float) -> float:
    """P(Z ≤ z) of a standard normal."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@dataclass(frozen=True, slots=True)
class Estimate:
    """median > 0; sd: standard deviation of the logarithm (0: measured, no doubt). basis: what it was derived from."""

    median: float
    sd: float
    basis: tuple[str, ...] = ()

    @property
    def low(self) -> float:
        """10th percentile."""
        return self.median * math.exp(-Z80 * self.sd)

    @property
    def high(self) -> float:
        """90th percentile."""
        return self.median * math.exp(Z80 * self.sd)

    def times(self, factor: float, sd: float = 0.0, *basis: str) -> "Estimate":
        """The product with an independent lognormal factor."""
        return Estimate(self.median * factor, math.hypot(self.sd, sd), self.basis + basis)

    def probability_above(self, threshold: float) -> float:
        """P(X > threshold)."""
        if threshold <= 0:
            return 1.0
        if self.sd == 0:
            return 1.0 if self.median > threshold else 0.0
        return normal_cdf((math.log(self.median) - math.log(threshold)) / self.sd)
