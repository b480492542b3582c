"""An Estimate: a predicted positive quantity, lognormal, with the part of its doubt that it shares with others."""

import math
from dataclasses import dataclass

# Standard normal quantile of the 80% interval's upper end.
Z80 = 1.2815515655446004

Loadings = tuple[tuple[str, float], ...]


def normal_cdf(z: float) -> float:
    """P(Z ≤ z) of a standard normal."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@dataclass(frozen=True, slots=True)
class Estimate:
    """median > 0; sd: standard deviation of the logarithm (0: measured, no doubt). basis: what it was derived from.

    shared: named sources of doubt, each an independent standard normal, with its loading on the logarithm. Two
    Estimates that name the same source err together, and what they share cancels when they are compared. The loadings'
    squares are part of sd²; what is left is this Estimate's own. A model with a joint posterior gives its columns here.
    """

    median: float
    sd: float
    basis: tuple[str, ...] = ()
    shared: Loadings = ()

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
        return Estimate(self.median * factor, math.hypot(self.sd, sd), self.basis + basis, self.shared)

    def reciprocal(self, numerator: float) -> "Estimate":
        """numerator / X, with nothing shared: to compare two reciprocals, compare what they are reciprocals of."""
        return Estimate(numerator / self.median, self.sd, self.basis)

    def probability_above(self, threshold: float) -> float:
        """P(X > threshold)."""
        if threshold <= 0:
            return 1.0
        if self.sd == 0:
            return 1.0 if self.median > threshold else 0.0
        return normal_cdf((math.log(self.median) - math.log(threshold)) / self.sd)

    def ratio_sd(self, other: "Estimate") -> float:
        """Standard deviation of log(self / other), their common doubt cancelled."""
        variance = self.sd * self.sd + other.sd * other.sd
        for name, loading in other.shared:
            for mine, own in self.shared:
                if mine == name:
                    variance -= 2.0 * loading * own
        return math.sqrt(variance) if variance > 1e-18 else 0.0
