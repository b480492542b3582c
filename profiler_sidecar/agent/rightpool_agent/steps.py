"""Counts the steps of a training loop.

The hooks call `StepLog.add` from inside the program, many thousand times a second if need be: one append, no lock, no
way to fail. `drain` turns the events into counters later, on the agent's thread.

Several things may look like a step: every jitted function, every optimizer. Each is a `Track` with its own counters.
The one that carries the program's time is the step; its increments go into totals that never decrease.
"""

from __future__ import annotations

import bisect
import collections
import time

# Upper bounds in seconds of rightpool_step_seconds; the sidecar has the same ones (a test compares them).
BUCKETS = (
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    20.0,
    60.0,
    120.0,
)

_HALF_LIFE = 60.0  # seconds after which the past counts half in the choice of the dominant track
_SWITCH = 1.5  # how much more time another track must carry to become the dominant one
_SLOW = 1.5  # times the usual step
_MIN_CALLS = 3  # a function called once or twice is set-up


class Track:
    """One candidate for "the step"."""

    def __init__(self, weight: float, has_rows: bool) -> None:
        self.weight = weight  # decides whose time it is between two calls of different tracks
        self.has_rows = has_rows
        self.calls = 0
        self.rows = 0
        self.seconds = 0.0
        self.counts = [0] * (len(BUCKETS) + 1)
        self.last: float | None = None
        self.carried = 0.0  # decayed seconds of the program's timeline
        self.taken = (0, 0, 0.0, [0] * (len(BUCKETS) + 1))  # what has gone into the totals

    def step(self, at: float, rows: int, flagged: bool) -> None:
        self.calls += 1
        self.rows += rows
        if self.last is not None and not flagged:
            interval = max(0.0, at - self.last)
            self.seconds += interval
            self.counts[bisect.bisect_left(BUCKETS, interval)] += 1
        self.last = at


def _any_within(moments: list[float], after: float, until: float) -> bool:
    """Does one of the sorted moments lie in (after, until]?"""
    place = bisect.bisect_right(moments, after)
    return place < len(moments) and moments[place] <= until


class StepLog:
    """Events in, totals out. Times are time.perf_counter() seconds."""

    def __init__(self) -> None:
        self._events: collections.deque[tuple[Track, float, int]] = collections.deque(maxlen=1 << 16)
        self._tracks: list[Track] = []
        self._previous: tuple[Track, float] | None = None
        self._decayed_at = time.perf_counter()
        self.interruptions: collections.deque[float] = collections.deque(maxlen=256)  # moments of a compilation
        self.dominant: Track | None = None
        self.steps = 0
        self.samples = 0
        self.seconds = 0.0
        self.counts = [0] * (len(BUCKETS) + 1)
        self.recent: collections.deque[float] = collections.deque(maxlen=256)  # seconds of the last steps
        self.slow: collections.deque[tuple[float, float]] = collections.deque(maxlen=1024)  # (end, seconds)
        # The hot path: bound once, C all the way down.
        self.append = self._events.append

    def reset(self) -> None:
        """Begin at zero in a forked child: what was counted so far is the parent's."""
        self._events.clear()
        self.recent.clear()
        self.slow.clear()
        for track in self._tracks:
            track.last = None
            track.taken = (track.calls, track.rows, track.seconds, list(track.counts))
        self._tracks.clear()
        self._previous = self.dominant = None
        self.steps = self.samples = 0
        self.seconds = 0.0
        self.counts = [0] * (len(BUCKETS) + 1)

    def add(self, track: Track, at: float, rows: int) -> None:
        """One step of `track` ended at `at` having consumed `rows` samples."""
        self.append((track, at, rows))

    @property
    def seen(self) -> int:
        """Events so far that are not drained yet plus steps counted: grows while the program steps."""
        return self.steps + len(self._events)

    def drain(self) -> None:
        """Digest what the hooks have left. Called from the agent's thread alone."""
        self._decay()
        interrupted = sorted(self.interruptions)
        newest = interrupted[-1] if interrupted else 0.0
        usual = self.median()
        take, dominant = self._events.popleft, self.dominant
        before, moment = self._previous or (None, 0.0)
        for _ in range(len(self._events)):
            track, at, rows = take()
            if track is not before and track not in self._tracks:
                self._tracks.append(track)
                del self._tracks[:-64]
            last = track.last
            flagged = last is not None and last < newest and _any_within(interrupted, last, at)
            track.step(at, rows, flagged)
            if before is not None and at > moment and not (moment < newest and _any_within(interrupted, moment, at)):
                owner = track if track.weight >= before.weight else before
                owner.carried += at - moment
            before, moment = track, at
            if track is dominant and last is not None and not flagged:
                interval = at - last
                self.recent.append(interval)
                if usual is not None and interval > _SLOW * usual:
                    self.slow.append((at, interval))
        if before is not None:
            self._previous = before, moment
        self._choose()
        self._take()

    def _decay(self) -> None:
        now = time.perf_counter()
        factor = 0.5 ** ((now - self._decayed_at) / _HALF_LIFE)
        self._decayed_at = now
        for track in self._tracks:
            track.carried *= factor

    def _choose(self) -> None:
        ready = [track for track in self._tracks if track.calls >= _MIN_CALLS]
        if not ready:
            return
        best = max(ready, key=lambda track: (track.carried, track.calls))
        if self.dominant is None:
            self.dominant = best
        elif best is not self.dominant and best.carried > _SWITCH * self.dominant.carried:
            # Both were called for a while, and one of them alone was the step. Totals never decrease.
            self.dominant = best
            self.steps = max(self.steps, best.calls)
            self.samples = max(self.samples, best.rows)
            self.seconds = max(self.seconds, best.seconds)
            self.counts = [max(pair) for pair in zip(self.counts, best.counts)]
            best.taken = (best.calls, best.rows, best.seconds, list(best.counts))

    def _take(self) -> None:
        track = self.dominant
        if track is None:
            return
        calls, rows, seconds, counts = track.taken
        self.steps += track.calls - calls
        self.samples += track.rows - rows
        self.seconds += track.seconds - seconds
        for index, count in enumerate(track.counts):
            self.counts[index] += count - counts[index]
        track.taken = (track.calls, track.rows, track.seconds, list(track.counts))

    def median(self) -> float | None:
        """Seconds of a usual recent step."""
        intervals = sorted(self.recent)
        return intervals[len(intervals) // 2] if intervals else None

    def held_up(self, at: float) -> float | None:
        """How much longer than usual the step around the moment `at` took, in seconds; 0 if it did not stand out."""
        usual = self.median()
        if usual is None:
            return None
        for end, interval in reversed(self.slow):
            if end - interval <= at <= end:
                return max(0.0, interval - usual)
        return 0.0
