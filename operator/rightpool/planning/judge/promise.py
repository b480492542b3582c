"""The promise of a move: its predicted rate against the rate before, without what is doubtful in both alike.

Verdicts and accounts judge what was measured by the same two hypotheses: the promise is kept, within its own doubt, or
it is broken, and the place does anything, within BROKEN_SD. How likely each of them makes the measurement tells the
probability that it is broken (Bayes' theorem, with a share of BROKEN before anything is measured).
"""

import math
from typing import Final

from rightpool.api.estimate import WINDOW
from rightpool.api.migration import Migration
from rightpool.api.value_object import value_object

BROKEN: Final = 0.10
"""Share of the promises that are taken to be broken before anything is measured."""
BROKEN_SD: Final = 0.40
"""How far a place that does not keep its promise may be from it: standard deviation of the logarithm."""
# No promise is taken to be surer than this.
_SUREST: Final = 0.05
# Where the logarithm of the odds is larger, the probability is 0 as far as numbers can tell.
_LARGEST: Final = 700.0


@value_object
class Promise:
    """A ratio of rates that was predicted: the target's over that where the job was."""

    log: float
    """Its logarithm."""
    sd: float
    """Standard deviation of that."""

    def broken(self, measured: float, sd: float) -> float:
        """Probability that it is not kept, by a measured ratio. measured, sd: of its logarithm."""
        kept = self._variance + sd**2
        broken, square = kept + BROKEN_SD**2, (measured - self.log) ** 2
        odds = math.log((1.0 - BROKEN) / BROKEN) + 0.5 * (math.log(broken / kept) + square / broken - square / kept)
        return 1.0 / (1.0 + math.exp(min(odds, _LARGEST)))

    def weight(self, sd: float) -> float:
        """How much a measured ratio counts beside this one where it is kept, from 0 to 1. sd: of its logarithm."""
        return self._variance / (self._variance + sd**2)

    def expected_weight(self, measured: float, sd: float) -> float:
        """The same where nobody knows whether it is kept: the mean over both cases."""
        broken, anything = self.broken(measured, sd), self._variance + BROKEN_SD**2
        return broken * anything / (anything + sd**2) + (1.0 - broken) * self.weight(sd)

    def doubt(self, weight: float, sd: float) -> float:
        """Standard deviation of the logarithm of what a measured ratio of this weight, and this one, make together."""
        return math.sqrt(weight**2 * sd**2 + (1.0 - weight) ** 2 * self._variance)

    @property
    def _variance(self) -> float:
        return max(self.sd, _SUREST) ** 2


def promise_of(migration: Migration) -> Promise | None:
    """What a migration promised; None where nothing was predicted or measured before.

    How the job itself varies is in the doubt of the predicted rate, and not in that of the ratio.
    """
    predicted, baseline = migration.predicted, migration.baseline
    if predicted is None or not predicted.median or not baseline:
        return None
    own = sum(loading**2 for name, loading in predicted.shared if name == WINDOW)
    return Promise(math.log(predicted.median / baseline), math.sqrt(max(predicted.sd**2 - own, 0.0)))
