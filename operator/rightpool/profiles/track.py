"""A track: how much work a Revision has counted, over the last hours, in samples or steps.

It is kept beside the window because a window is too short for three questions: how much of the job is done, how fast a
job was over an hour, and when its steps had caught up after a restart. Ten thousand tracks must fit in memory, so that
points are thinned to one every five minutes.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from rightpool.api.work_unit import WorkUnit
from rightpool.profiles.sample import Field, Sample

SPACING: Final = 300.0
"""Seconds between points that are kept."""
KEPT: Final = 4 * 3600.0
"""Seconds after which a point is dropped, but for the newest of those."""
# The longest time over which a rate stands for the samples of a source that does not count them, seconds.
_LONGEST_STRETCH: Final = 60.0
_MOST: Final = round(2 * KEPT / SPACING)
# A counter that falls by less than this share fell because one pod of several was made anew.
_PARTIAL: Final = 0.5
_READ: Final = {
    WorkUnit.SAMPLES: (Field.SAMPLES, Field.SAMPLES_PER_SECOND),
    WorkUnit.STEPS: (Field.STEPS, Field.STEPS_PER_SECOND),
}


class Track:
    """One Revision's work since the first reading. There is one writer."""

    __slots__ = (
        "_at",
        "_before",
        "_count",
        "_counts",
        "_saved",
        "continues",
        "counter",
        "first",
        "throttled_at",
        "throttled_from",
        "unit",
    )

    def __init__(self, unit: WorkUnit = WorkUnit.SAMPLES, *, continues: float = 0.0) -> None:
        self.unit = unit
        """What is counted."""
        self.continues = continues
        """The counter of the one whose place it takes, in this unit and of the same processes: a lower one is a better
        one, and no restart. 0 where there was none."""
        self._at = array("d")
        self._count = array("d")
        self._before = (-math.inf, 0.0)  # the reading before the newest
        self._counts = False  # whether the source has a counter
        self._saved: float | None = None
        self.counter: float | None = None
        """The newest reading of the counter; None before the first."""
        self.first: float | None = None
        """The first reading of the counter."""
        self.throttled_at = -math.inf
        """Unix seconds until which a fault held down the clocks of the chips; -inf where none did."""
        self.throttled_from = math.inf
        """Unix seconds when that was first seen, the last time that it began; inf where it never did."""

    def throttle(self, now: float, window: float) -> None:
        """A fault holds down the clocks of the chips. window: seconds without one after which it begins anew."""
        if now - self.throttled_at > window:
            self.throttled_from = now
        self.throttled_at = now

    def add(self, sample: Sample, expected_pods: int) -> None:
        """Add a reading. One without all pods, or older than the newest, is skipped."""
        values, at = sample.values, sample.at
        if not math.isfinite(at) or (self._at and at <= self._at[-1]):
            return
        if values.get(Field.PODS, expected_pods) < expected_pods:
            return
        counter_of, rate_of = _READ[self.unit]
        counter = values.get(counter_of)
        if counter is None and not self._counts:
            counter = self._by_rate(at, values.get(rate_of))
        elif counter is not None and not self._counts:
            self._counts = True
            if self.counter is not None:
                self.counter = counter  # until now it was made up from rates
        if counter is None or not math.isfinite(counter):
            return
        self._take(at, counter, values.get(Field.CHECKPOINT_TIMESTAMP))

    def _by_rate(self, at: float, rate: float | None) -> float | None:
        """What the counter of a source would be that has none."""
        if rate is None:
            return None
        if self.counter is None:
            return 0.0
        return self.counter + rate * min(at - self._at[-1], _LONGEST_STRETCH)

    def _take(self, at: float, counter: float, saved: float | None) -> None:
        anew = False  # whether the rate is another one than before the newest point, which therefore stays
        if self.counter is None:
            self.first, count = counter, 0.0
        else:
            stood = self._before[1] == self._count[-1]
            self._before = (self._at[-1], self._count[-1])
            fell = counter < self.counter
            count = self._restarted(counter) if fell else self._count[-1] + counter - self.counter
            anew = (fell or stood != (count == self._count[-1])) and len(self._at) < _MOST
        self.counter = counter
        if saved is not None and (self._saved is None or saved > self._saved):
            self._saved = saved
        if len(self._at) >= 2 and at - self._at[-2] < SPACING and not anew:
            self._at[-1], self._count[-1] = at, count
        else:
            self._at.append(at)
            self._count.append(count)
        # One older point stays: after a long time without readings, what was counted before is not counted again.
        drop = bisect_left(self._at, at - KEPT) - 1
        if drop > 0:
            del self._at[:drop]
            del self._count[:drop]

    def _restarted(self, counter: float) -> float:
        """Processes were made anew: they go on from the last save, and do again what they had done since. Where no
        save was seen, nothing is known to be done again."""
        assert self.counter is not None
        kept = self._count[-1] - self.since_save()
        # Of one pod of several nothing is known of what it has counted since.
        return kept + (counter if counter < _PARTIAL * self.counter else 0.0)

    # --- questions ---------------------------------------------------------------------------------------------------

    @property
    def began(self) -> float | None:
        """Unix seconds of the oldest point; None without any."""
        return self._at[0] if self._at else None

    @property
    def newest(self) -> float | None:
        """Unix seconds of the newest reading; None without any."""
        return self._at[-1] if self._at else None

    @property
    def healthy_since(self) -> float:
        """Unix seconds of the oldest point that no fault was seen at or after; inf where there is none."""
        place = bisect_left(self._at, self.throttled_at)
        return self._at[place] if place < len(self._at) else math.inf

    @property
    def total(self) -> float:
        """Units since the first reading, without those that a restart repeated."""
        return self._count[-1] if self._count else 0.0

    def count(self, at: float) -> float | None:
        """Units since the first reading, at Unix seconds `at`; None before the oldest point."""
        if not self._at or at < self._at[0]:
            return None
        place = bisect_right(self._at, at)
        if place == len(self._at):
            return self._count[-1]
        before, after = self._at[place - 1], self._at[place]
        share = (at - before) / (after - before)
        return self._count[place - 1] + share * (self._count[place] - self._count[place - 1])

    def since_save(self) -> float:
        """Units that no save holds: they are repeated after a restart. 0 where no save was seen."""
        kept = None if self._saved is None else self.count(self._saved)
        return 0.0 if kept is None else max(0.0, self.total - kept)

    def idle_since(self, rate: float) -> float | None:
        """Unix seconds since when no more than this rate was counted, units a second; None without any reading."""
        for at, count in zip(self._at, self._count, strict=True):
            if self.total - count <= rate * (self._at[-1] - at):
                return at
        return None

    def reached(self, work: float) -> float | None:
        """Unix seconds when the processes had counted so many; None where they have not. It is exact for who asks after
        every reading; later it is the time of the last reading but one."""
        if self.first is None or self.total + self.first < work:
            return None
        at, count = self._before
        wanted = work - self.first
        if not math.isfinite(at):
            return self._at[-1]
        share = (wanted - count) / (self.total - count) if count < wanted <= self.total else 0.0
        return at + share * (self._at[-1] - at)

    def mean(self, start: float, end: float) -> float | None:
        """Units a second from Unix seconds `start` to `end`; None where the track does not cover them."""
        one, two = self.count(start), self.count(end)
        if one is None or two is None or self.newest is None or end > self.newest + SPACING or end <= start:
            return None
        return (two - one) / (min(end, self.newest) - start) if self.newest > start else None
