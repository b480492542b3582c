"""The promise of a move: its predicted rate against the rate before, without what is doubtful in both alike."""

import math
from dataclasses import dataclass

from rightpool.api.estimate import WINDOW
from rightpool.api.migration import Migration


@dataclass(frozen=True, slots=True)
class Promise:
    """A ratio of rates that was predicted: the target's over that where the job was."""

    log: float
    """Its logarithm."""
    sd: float
    """Standard deviation of that."""

    def weight(self, measured: float, sd: float) -> float:
        """How much a measured ratio counts beside this one, from 0 to 1. measured, sd: of its logarithm."""
        # Commands that read accounts do without NumPy.
        from rightpool.prediction.columns import floats
        from rightpool.prediction.combination import measured_weight

        return float(measured_weight(floats(measured), floats(sd), floats(self.log), floats(self.sd**2)))


def promise_of(migration: Migration) -> Promise | None:
    """What a migration promised; None where nothing was predicted or measured before.

    How the job itself varies is in the doubt of the predicted rate, and not in that of the ratio.
    """
    predicted, baseline = migration.predicted, migration.baseline
    if predicted is None or not predicted.median or not baseline:
        return None
    own = sum(loading**2 for name, loading in predicted.shared if name == WINDOW)
    return Promise(math.log(predicted.median / baseline), math.sqrt(max(predicted.sd**2 - own, 0.0)))
