"""What a server's answers take by load, with doubt: batches, and tokens.

A batching server takes s(b) = t0 + t1·b for a batch of b. A server that generates tokens takes a + b·c between two
tokens where c requests share it, and p0 + p1·tokens for a prompt. Both are the same line, seconds over load, fitted on
windows at different loads. `replay.py` puts a record of demand through it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import Final

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.prediction.columns import Floats, floats

HALF: Final = 0.4
"""The load whose variable part takes as long as the fixed one is HALF · √(largest load), where no window tells:
between PyTorch's programs (1.1 in NVIDIA DeepLearningExamples: `python -m benchmarks.serving`) and compiled ones, for
which 0.12 and 0.35 predict MLPerf's results about as well."""
HALF_SD: Final = 1.6
"""Standard deviation of the log of that."""
INSIDE_SD: Final = 0.09
"""What a line is off by at loads that were seen, as the standard deviation of a log: 495 measured series of LLMs."""
OUTSIDE: Final = 5.0
"""So many times as much at twice the highest load that was seen."""
WINDOW_SD: Final = 0.05
"""How far the mean of one window is off, as the standard deviation of a log."""
TOKEN_EXPONENT: Final = 0.5
"""Between two tokens a server takes less by this power of the memory bandwidth: a part is launches and synchronisation,
which no bandwidth shortens."""
TOKEN_EXPONENT_SD: Final = 0.2
"""Standard deviation of that power, between published pairs of chips and programs."""
TOKEN_SD: Final = 0.06
"""How far two chips of the same bandwidth are apart, as the standard deviation of a log."""
DRAWS: Final = 64
"""Equally likely lines that stand for the doubt."""

_LEVEL_SD: Final = 4.0  # of the log of seconds before anything is seen
_USUAL: Final = 2.0  # windows that INSIDE_SD counts as
_STEPS: Final = 30  # of Gauss and Newton


@value_object
class Lines:
    """Equally likely lines, one a row."""

    fixed: Floats
    """Seconds that any load takes."""
    each: Floats
    """Seconds that one more of the load adds."""


@value_object
class LoadLine:
    """Seconds by load: fixed + each · load, with the doubt about both."""

    fixed: float
    """Seconds that any load takes; as likely less as more."""
    each: float
    """Seconds that one more adds."""
    doubt: tuple[float, float, float]
    """Variances of the logs of fixed and each, and their covariance."""
    seen: float
    """The highest load that was measured; 0 where none was."""
    most: float
    """The highest load that it takes: its largest batch, or the requests whose memory fits."""
    off: float = INSIDE_SD
    """What the line itself is off by at loads that were seen, as the standard deviation of a log."""

    def seconds(self, load: float) -> float:
        """At a load, as likely less as more."""
        return self.fixed + self.each * load

    @property
    def capacity(self) -> float:
        """The most of its load in a second: what full batches reach."""
        return self.most / self.seconds(self.most)

    def sd(self, load: float) -> float:
        """Standard deviation of the log of seconds at a load, what the line itself is off by included."""
        share = self.fixed / self.seconds(load)
        fixed, each, both = self.doubt
        known = share**2 * fixed + (1.0 - share) ** 2 * each + 2.0 * share * (1.0 - share) * both
        return math.sqrt(max(known, 0.0) + self._off(load) ** 2)

    def elsewhere(self, faster: float, sd: float, stays: float = 0.5) -> LoadLine:
        """On another chip that is so many times faster with full batches, give or take the sd of the log.

        stays: share of what any load takes that is the host's, and does not get faster.
        """
        fixed, each, both = self.doubt
        moved = (
            (1.0 - stays) / faster / (stays + (1.0 - stays) / faster)
        )  # what of the log of fixed moves with the chip
        return replace(
            self,
            fixed=self.fixed * (stays + (1.0 - stays) / faster),
            each=self.each / faster,
            doubt=(fixed + (moved * sd) ** 2, each + sd**2, both + moved * sd**2),
        )

    def draws(self, upto: float | None = None) -> Lines:
        """DRAWS equally likely lines. upto: the load that is asked about, for what lies beyond what was seen.

        What the line itself is off by changes its level inside the loads that were seen and its slope beyond them.
        """
        one, two, three = _NORMAL
        fixed, each, both = self.doubt
        root = math.sqrt(max(fixed, 1e-12))
        rest = math.sqrt(max(each - (both / root) ** 2, 0.0))
        level, load = np.exp(self.off * three), self.most if upto is None else upto
        t0, t1 = self.fixed * np.exp(root * one) * level, self.each * np.exp(both / root * one + rest * two) * level
        beyond = np.exp((self._off(load) - self.off) * three)
        # So much longer at `load`, all of it by the slope, which stays above a tenth of itself.
        slope = np.maximum(t1 + (t0 + t1 * load) * (beyond - 1.0) / load, 0.1 * t1)
        return Lines(t0, slope)

    def _off(self, load: float) -> float:
        if self.seen <= 0.0:
            return self.off  # what is not known at all is in `doubt`
        return self.off * (1.0 + (OUTSIDE - 1.0) * min(max(math.log2(max(load, 1e-9) / self.seen), 0.0), 1.0))


def fit(load: Floats, seconds: Floats, weight: Floats, most: float, half: float | None = None) -> LoadLine:
    """A line through windows: the mean load of each, its seconds, and how many times as much it counts as a usual one.

    most: the highest load that the server takes. half: the load whose variable part takes as long as the fixed one,
    where something tells it, else HALF · √most. One load alone leaves what of it is fixed as uncertain as before.
    """
    known = np.isfinite(load) & np.isfinite(seconds) & (load > 0.0) & (seconds > 0.0) & (weight > 0.0)
    load, log, weight = load[known], np.log(seconds[known]), weight[known]
    usual = half if half is not None else HALF * math.sqrt(most)
    level = float(np.median(log)) if len(log) else 0.0
    middle = float(np.median(load)) if len(load) else most
    each = math.log(math.exp(level) / (usual + middle))
    found = np.array([each + math.log(usual), each])
    # The prior: of their difference, and hardly any of their level.
    prior = np.array([[1.0, -1.0], [-1.0, 1.0]]) / HALF_SD**2 + np.eye(2) / _LEVEL_SD**2
    start, precision = found.copy(), prior
    counted = weight / WINDOW_SD**2
    for _ in range(_STEPS):
        t0, t1 = np.exp(found)
        whole = t0 + t1 * load
        slopes = np.stack([np.full(len(load), t0) / whole, t1 * load / whole])
        precision = prior + (slopes * counted) @ slopes.T
        step = np.linalg.solve(precision, (slopes * counted) @ (log - np.log(whole)) - prior @ (found - start))
        found = found + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    doubt = np.linalg.inv(precision)
    t0, t1 = np.exp(found)
    highest = float(load.max()) if len(load) else 0.0
    # Windows as near to the line as they are sure say that it is one, as far as there are more than it has ends.
    missed = (
        float((weight * (log - np.log(t0 + t1 * load)) ** 2).sum() / max(weight.mean(), 1e-9)) if len(load) else 0.0
    )
    more = max(len(load) - 2, 0)
    off = math.sqrt((_USUAL * INSIDE_SD**2 + max(missed - more * WINDOW_SD**2, 0.0)) / (_USUAL + more))
    variances = float(doubt[0, 0]), float(doubt[1, 1]), float(doubt[0, 1])
    return LoadLine(float(t0), float(t1), variances, highest, most, off)


def token_speedup(here: float, there: float) -> tuple[float, float]:
    """How many times as fast tokens follow one another, from one chip's memory bandwidth to another's, and the standard
    deviation of its log."""
    apart = math.log(there / here)
    return math.exp(TOKEN_EXPONENT * apart), math.hypot(TOKEN_SD, TOKEN_EXPONENT_SD * apart)


def _normals(count: int) -> Floats:
    """Quasi-random standard normal numbers: three rows of a Kronecker sequence by roots of the plastic number's kin."""
    grown = 1.2207440846057596  # the root of x⁴ = x + 1: Roberts (2018)
    steps = np.array([grown**-1, grown**-2, grown**-3])
    uniform = (0.5 + np.outer(steps, np.arange(1, count + 1))) % 1.0
    found = [[NormalDist().inv_cdf(share) for share in row] for row in uniform.tolist()]
    return floats(found)


_NORMAL: Final = _normals(DRAWS)
