"""Slow starts: how long a job is slower after each start than it is from then on.

A loader that reads its first epoch from a cold cache, or a program that tunes itself, does so anew wherever it starts.
That says nothing of the place where it went. A start is looked at once, when two hours of windows have passed since:
its first windows are a slow start if each is slower than all that follow, and their mean is so by far. Of 300 series of
each kind of noise that the benchmark of decisions has, 9% are taken for one where noise lasts for half an hour or an
hour, else at most 1%. What that leads to: a verdict that comes so many windows later, and a restart that is taken to
cost more work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rightpool.api.variation import MAX_RECENT, SlowStart, Variation
from rightpool.profiles.statistics import median

# A start is slow if its mean is less than that of what follows by so much, and by so many standard deviations of that;
# and its last window by so much less than what is usual afterwards.
_SLOWER: Final = 0.20
_Z: Final = 3.0
_ENDS: Final = 0.05
LONGEST_START: Final = MAX_RECENT // 2
"""Windows that a slow start has at most."""
# Windows of a warm-up that were not counted, at most: the first one that was is taken to be the first there was.
_UNCOUNTED: Final = 4.0


def slow_start(rates: Sequence[float]) -> int:
    """How many of the first windows are slower than all later ones; 0 where they are not, or are more than half."""
    for count in range(len(rates) // 2, 0, -1):
        first, later = rates[:count], rates[count:]
        mean = sum(later) / len(later)
        sd = math.sqrt(sum((rate - mean) ** 2 for rate in later) / len(later))
        slower = sum(first) / count < min((1.0 - _SLOWER) * mean, mean - _Z * sd)
        if slower and first[-1] < (1.0 - _ENDS) * median(later) and max(first) < min(later):
            return count
    return 0


def with_start_seen(before: Variation | None, variation: Variation, since: float | None, window: float) -> Variation:
    """With what the start of its Revision shows, once that is known. before: what was known before the newest window;
    since: Unix seconds since when the Revision runs, None if not known; window: seconds.

    A start that is as fast as what follows it ends what earlier ones have shown.
    """
    looked_at = before is not None and len(before.recent) == MAX_RECENT and before.revision == variation.revision
    if since is None or looked_at or len(variation.recent) < MAX_RECENT:
        return variation
    if not begins_with_start(variation, since, window):
        return variation
    count, known = slow_start(variation.recent), variation.slow_start
    if not count:
        return replace(variation, slow_start=None)
    first, later = variation.recent[:count], variation.recent[count:]
    lost = count - sum(first) / (sum(later) / len(later))
    revision = variation.revision if known is None else known.revision
    return replace(variation, slow_start=SlowStart(count * window, lost * window, revision))


def begins_with_start(variation: Variation, since: float, window: float) -> bool:
    """Whether the first window of `recent` is the first one that was counted of its Revision. since, window: as of
    `with_start_seen`."""
    return not variation.forgotten and (variation.as_of - since) / window <= len(variation.recent) + _UNCOUNTED


def known_before(variation: Variation | None, revision: int) -> SlowStart | None:
    """How slowly the job starts by what was seen before this Revision; None where it does not, or nothing is known.

    What a Revision itself begins with is not left out for being slow: it would be judged by a part of its noise.
    """
    known = None if variation is None else variation.slow_start
    return known if known is not None and known.revision < revision else None


def windows_after_start(variation: Variation, since: float | None, window: float) -> int:
    """How many of the newest windows are none of a slow start of their Revision; all, where none are. since, window: as
    of `with_start_seen`."""
    count, known = len(variation.recent), variation.slow_start
    if known is None or since is None:
        return count
    dropped = (variation.as_of - since) / window - count - _UNCOUNTED
    slow = known.in_windows(window) - max(math.ceil(dropped), 0)
    return count - slow if 0 < slow < count else count
