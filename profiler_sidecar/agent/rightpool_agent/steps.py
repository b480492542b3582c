"""Counts the steps of a training loop.

The hooks call `StepLog.add` from inside the program, up to many thousand times a second: one append, no lock, no
exceptions. `drain` turns the events into counters later, on the agent's thread.

Several things may look like a step: every jitted function, every optimizer. Each is a `Track` with its own counters.
The one that carries the program's time is the step; its increments go into totals that never decrease. A program may
have phases, each with a step of its own: another function like the step takes its place where it is called and the step
no longer is.
"""

from __future__ import annotations

import bisect
import collections
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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

_HALF_LIFE = 60.0  # seconds after which earlier time has half its weight in the choice of the dominant track
_SWITCH = 1.5  # how much more time another track must carry to become the dominant one
_SLOW = 1.5  # times the usual step
_MIN_CALLS = 3  # a function called fewer times is set-up
_NO_TRAINER = 30.0  # seconds until something that trains nothing may be the step
_MORE_ROWS = 1.1  # times the step's rows: another network that learns from more has batches of its own
_BESIDE = 0.5  # of the step's calls: what computes so often is no evaluation
_EARLY = 100  # calls of what was taken for the step at first: more are a phase of the program
_LIGHT = 0.25  # of the heaviest: what carries less than that is a helper beside it


class Track:
    """One candidate for "the step"."""

    __slots__ = (  # each event reads several
        "alike",
        "began",
        "calls",
        "carried",
        "constant",
        "counts",
        "doubtful",
        "each",
        "fed_by",
        "feeds_itself",
        "flops",
        "flops_rows",
        "function",
        "has_rows",
        "joined",
        "joins",
        "keeps",
        "last",
        "loops",
        "missed",
        "opaque",
        "parameters",
        "probes",
        "products",
        "recurs",
        "returned",
        "rows",
        "rows_before",
        "rows_taken",
        "seconds",
        "state",
        "taken",
        "then",
        "trains",
        "unclear",
        "weight",
    )

    def __init__(self, weight: float, has_rows: bool, trains: bool = True, opaque: bool = False) -> None:
        self.weight = weight  # decides whose time it is between two calls of different tracks
        self.has_rows = has_rows
        self.trains = trains  # others are the step only where nothing trains
        self.opaque = opaque  # makes steps, and nobody knows how many
        self.calls = 0
        self.rows = 0
        self.seconds = 0.0
        self.counts = [0] * (len(BUCKETS) + 1)
        self.last: float | None = None
        self.carried = 0.0  # decayed seconds of the program's timeline
        self.state = 0.0  # bytes that come out of the function as they went in, by shape, and are not merely handed on
        self.probes = 0  # calls that are still looked at more closely
        self.returned: list[Any] = []  # weak references to what the last call returned, while there are probes
        self.constant: Any = None  # weak reference to what may be the batch, while it has been the same in each call
        self.alike: Any = ()  # arguments with the batch, where its shapes are those of parameters
        self.recurs = False  # what it returned was given to it again: parameters
        self.keeps = False  # most of its state is merely handed on, and it trains nothing of it as far as is seen
        self.loops = False  # a call is a loop of steps, of one or of many
        self.doubtful = False  # it is a step only if it recurs
        self.feeds_itself = False  # the same, and the very arrays
        self.fed_by: Track | None = None  # what another had returned was given to it
        self.joins: Track | None = None  # it makes steps of that one: they take turns with the same parameters
        self.joined = False  # another one makes steps of this one
        self.function = ""  # its name, and the steps of a call; 0 where nobody knows
        self.each = 0
        self.missed = False  # a batch could not be read
        self.products: Any = {}  # FLOPs of a call by arithmetic, where they are known
        self.flops: float | None = None  # of a call; None where they are not known, or differ between calls
        self.flops_rows = 0  # rows of that call
        self.parameters: Any = None  # that a call trains; None where they are not known, or differ between calls
        self.taken = (0, 0.0, [0] * (len(BUCKETS) + 1))  # what has gone into the totals
        self.rows_taken = 0  # the same of its rows
        self.rows_before = 0  # rows that belong to earlier phases
        self.began = 0  # calls before the phase whose step it is
        self.unclear = False  # not all that it seems to train is given to it again
        # Where it began to be called without the step: that step, its calls, the own calls and rows, and the moment.
        self.then: tuple[Track | None, int, int, int, float] = (None, 0, 0, 0, 0.0)

    @property
    def rank(self) -> int:
        """A function that updates parameters is the step rather than one that makes gradients, or any other."""
        return 2 if self.recurs else 1 if self.trains else 0

    def is_like(self, other: Track) -> bool:
        """Whether one of them may be the step in one phase of the program, and one in another."""
        sizes = sorted((self.state, other.state)), sorted((self.weight, other.weight))
        return (
            self.rank == other.rank
            and self.trains
            and other.trains
            and not (self.opaque or other.opaque)
            and (not self.doubtful or (self.recurs and self.each == 1))
            and all(less >= _LIGHT * more for less, more in sizes)
            and bool(self.products or not other.products)
        )

    def step(self, at: float, rows: int, steps: int, flagged: bool) -> None:
        """One call that made `steps` steps has returned."""
        self.calls += steps
        self.rows += rows
        self.missed = self.missed or (self.has_rows and rows == 0)
        if self.last is not None and steps and not flagged:
            interval = max(0.0, at - self.last)
            self.seconds += interval
            self.counts[bisect.bisect_left(BUCKETS, interval / steps)] += steps
        self.last = at


def _any_within(moments: list[float], after: float, until: float) -> bool:
    """Whether one of the sorted times is in (after, until]."""
    place = bisect.bisect_right(moments, after)
    return place < len(moments) and moments[place] <= until


class StepLog:
    """Events in, totals out. Times are time.perf_counter() seconds."""

    def __init__(self) -> None:
        self._events: collections.deque[tuple[Track, float, int, int]] = collections.deque(maxlen=1 << 16)
        self._tracks: list[Track] = []
        self._previous: tuple[Track, float] | None = None
        self._decayed_at = self._began = time.perf_counter()
        self.interruptions: collections.deque[float] = collections.deque(maxlen=256)  # moments of a compilation
        self.dominant: Track | None = None
        self._phase = (0, 0.0, [0] * (len(BUCKETS) + 1))  # steps, seconds and counts of earlier phases
        self._samples_before = 0  # likewise
        self._samples_lost = False  # were they unknown in one of those?
        self.steps = 0
        self.samples = 0
        self.seconds = 0.0
        self.counts = [0] * (len(BUCKETS) + 1)
        self.recent: collections.deque[float] = collections.deque(maxlen=256)  # seconds of the last steps
        self.slow: collections.deque[tuple[float, float]] = collections.deque(maxlen=1024)  # (end, seconds)
        # The hot path: bound once, C all the way down.
        self.append = self._events.append

    def reset(self) -> None:
        """Reset in a forked child, because the counters so far are the parent's."""
        self._events.clear()
        self.recent.clear()
        self.slow.clear()
        for track in self._tracks:
            track.last = None
            track.taken = (track.calls, track.seconds, list(track.counts))
            track.rows = track.rows_taken = track.rows_before = 0
            track.then = (None, 0, 0, 0, 0.0)
        self._tracks.clear()
        self._previous = self.dominant = None
        self.steps = self.samples = self._samples_before = 0
        self._samples_lost = False
        self.seconds = 0.0
        self.counts = [0] * (len(BUCKETS) + 1)
        self._phase = (0, 0.0, list(self.counts))
        self._decayed_at = self._began = time.perf_counter()

    def add(self, track: Track, at: float, rows: int, steps: int = 1) -> None:
        """`steps` steps of `track` ended at `at`, having consumed `rows` samples together."""
        self.append((track, at, rows, steps))

    @property
    def seen(self) -> int:
        """Events so far that are not drained yet plus steps counted: grows while the program steps."""
        return self.steps + len(self._events)

    def drain(self, final: bool = False) -> None:
        """Process the events of the hooks. Called by the agent's thread only. `final`: the program ends."""
        self._decay()
        interrupted = sorted(self.interruptions)
        newest = interrupted[-1] if interrupted else 0.0
        usual = pace = self.median()
        self._join()
        take, dominant = self._events.popleft, self.dominant
        before, moment = self._previous or (None, 0.0)
        for _ in range(len(self._events)):
            track, at, rows, steps = take()
            while track.joins is not None:
                track = self._joined(track, track.joins)
                dominant = self.dominant
            if track is not before and track not in self._tracks:
                self._choose(False)
                self._take()
                dominant = self.dominant
                self._tracks.append(track)
                del self._tracks[:-64]
            step = None if track is dominant else dominant
            if step is not None and (track.then[1] != step.calls or track.then[0] is not step):
                track.then = step, step.calls, track.calls, track.rows, at
            last = track.last
            flagged = last is not None and last < newest and _any_within(interrupted, last, at)
            track.step(at, rows, steps, flagged)
            if before is not None and at > moment and not (moment < newest and _any_within(interrupted, moment, at)):
                owner = track if track.weight >= before.weight else before
                owner.carried += at - moment
            before, moment = track, at
            if step is not None:
                if track.calls - track.then[2] >= _MIN_CALLS and self._follows(track, step, at, pace):
                    self._begin_phase(track)
                    dominant, pace = track, None
            elif track is dominant and last is not None and steps and not flagged:
                interval = (at - last) / steps
                self.recent.append(interval)
                if usual is not None and interval > _SLOW * usual:
                    self.slow.append((at, interval))
        if before is not None:
            self._previous = before, moment
        self._choose(final)
        self._take()

    def _join(self) -> None:
        for one in list(self._tracks):
            while one.joins is not None:
                one = self._joined(one, one.joins)

    def _follows(self, track: Track, step: Track, at: float, pace: float | None) -> bool:
        """Whether a function like the step is called at last where the step no longer is. pace: of a step."""
        if not track.is_like(step):
            return False
        pace = self.median() if pace is None else pace
        return step.last is None or pace is None or at - step.last > _MIN_CALLS * pace

    def _begin_phase(self, track: Track) -> None:
        """The step was not called for a while, and this one was: it is the step from where it was called alone."""
        _, _, calls, rows, began = track.then
        self._take()
        self._samples_lost = not self.has_samples
        self._samples_before = self.samples
        for one in self._tracks:
            one.rows_before = one.rows_taken
            if one.last is None or one.last < began:
                one.carried = 0.0
        self._tracks = [one for one in self._tracks if one.last is not None and one.last >= began]
        self.dominant, track.rows_before, track.began = track, rows, calls
        track.taken = calls, track.seconds, list(track.counts)
        self._phase = self.steps, self.seconds, list(self.counts)
        self.recent.clear()

    def _joined(self, track: Track, other: Track) -> Track:
        """The track whose steps those of `track` are, with what was counted of it before that was known."""
        if track in self._tracks:
            self._tracks.remove(track)
        calls, rows = other.taken[0] + track.taken[0], other.rows_taken + track.rows_taken
        other.calls += track.calls
        other.rows += track.rows
        other.rows_taken, other.rows_before = rows, other.rows_before + track.rows_before
        other.missed = other.missed or track.missed
        other.joined = True
        other.has_rows = other.has_rows and track.has_rows
        other.then = (None, 0, 0, 0, 0.0)
        other.taken = calls, *other.taken[1:]
        if self.dominant is track:  # the times of both would be too long together
            self.dominant, other.taken = other, (calls, other.seconds, list(other.counts))
        track.taken = 0, track.seconds, list(track.counts)
        track.rows_taken = track.rows_before = 0
        track.calls = track.rows = 0
        return other

    def _decay(self) -> None:
        now = time.perf_counter()
        factor = 0.5 ** ((now - self._decayed_at) / _HALF_LIFE)
        self._decayed_at = now
        for track in self._tracks:
            track.carried *= factor

    def _choose(self, final: bool) -> None:
        ready = [track for track in self._tracks if track.opaque or track.calls >= _MIN_CALLS]
        ready = [track for track in ready if track.recurs or not track.doubtful]
        if not ready:
            return
        rank = max(track.rank for track in ready)
        if rank == 0 and not final and time.perf_counter() - self._began < _NO_TRAINER:
            return
        ready = [track for track in ready if track.rank == rank]
        if any(track.products for track in ready):  # averages of the parameters come in again as well
            ready = [track for track in ready if track.products]
        heaviest = max(track.weight for track in ready)
        ready = [track for track in ready if track.weight >= _LIGHT * heaviest]
        most = max(track.state for track in ready)
        ready = [track for track in ready if track.state >= _LIGHT * most]  # an evaluation keeps its scores alone
        best = max(ready, key=lambda track: (track.carried, track.calls))
        current = self.dominant
        if current is None:
            self.dominant = best
            return
        lesser = rank > current.rank or current.state < _LIGHT * most or bool(best.products and not current.products)
        if best is not current and (lesser or best.carried > _SWITCH * current.carried):
            # Both were called for a while, and one of them alone was the step. Totals never decrease.
            self.dominant = best
            steps, seconds, counts = self._phase
            calls, spent, found = best.taken
            self.steps = max(self.steps, steps + best.calls - calls)
            self.seconds = max(self.seconds, seconds + best.seconds - spent)
            mine = [before + count - gone for before, count, gone in zip(counts, best.counts, found)]
            self.counts = [max(pair) for pair in zip(self.counts, mine)]
            # What was merely called first gave totals that the step has yet to reach.
            early = lesser and current.calls - current.began <= _EARLY
            best.taken = (
                (
                    calls + self.steps - steps,
                    spent + self.seconds - seconds,
                    [gone + total - before for gone, total, before in zip(found, self.counts, counts)],
                )
                if early
                else (best.calls, best.seconds, list(best.counts))
            )

    def _take(self) -> None:
        track = self.dominant
        if track is None:
            return
        calls, seconds, counts = track.taken
        self.steps += max(0, track.calls - calls)
        self.seconds += max(0.0, track.seconds - seconds)
        for index, count in enumerate(track.counts):
            self.counts[index] += max(0, count - counts[index])
        most = [max(pair) for pair in zip(track.counts, counts)]
        track.taken = (max(track.calls, calls), max(track.seconds, seconds), most)
        source = self._source()
        if source is not None:
            self.samples = max(self.samples, self._samples_before + source.rows - source.rows_before)
            source.rows_taken = source.rows

    def _source(self) -> Track | None:
        """Whose rows are the samples: the step's, else those of the function that makes the gradients for it."""
        track = self.dominant
        if track is None or track.has_rows:
            return track
        others = [one for one in self._tracks if one.has_rows and one.rank > 0 and one.calls >= track.calls - 1]
        return max(others, key=lambda one: one.carried) if others else None

    @property
    def has_samples(self) -> bool:
        """Whether the size of each batch is known."""
        source = self._source()
        if source is None or not source.has_rows or source.missed or source.opaque or self._samples_lost:
            return False
        # A small critic may learn from several batches for each of the step's: which ones count is not clear.
        rows = source.rows - source.rows_before
        return all(one.rows - one.rows_before <= _MORE_ROWS * rows for one in self._trained_beside() if one.has_rows)

    @property
    def flops(self) -> float | None:
        """FLOPs of a step; None where they are not known, or where another function that computes is called as often:
        then the step may be made of both."""
        step = self.dominant
        if step is None or step.opaque or step.joined or not step.flops or not step.each:
            return None
        others = (one for one in self._tracks if one is not step and one.flops != 0.0)
        beside = self._trained_beside() or any(one.calls >= _BESIDE * step.calls for one in others)
        return None if beside else step.flops / step.each

    @property
    def parameters(self) -> Any:
        """What the step trains; None where it is not known, or where another function that trains takes turns."""
        step = self.dominant
        if step is None or step.opaque or step.unclear or not step.trains:
            return None
        return None if self._trained_beside() else step.parameters

    def _trained_beside(self) -> list[Track]:
        """Other functions that train, however seldom they take their turn."""
        return [one for one in self._tracks if one is not self.dominant and one.parameters is not None]

    @property
    def opaque(self) -> bool:
        """Whether steps are made in a way that hides their number."""
        return self.dominant is not None and self.dominant.opaque

    def median(self) -> float | None:
        """Seconds of a usual recent step."""
        intervals = sorted(self.recent)
        return intervals[len(intervals) // 2] if intervals else None

    def mean(self) -> float | None:
        """Seconds of a recent step on average, waits included that come after many of them."""
        return sum(self.recent) / len(self.recent) if self.recent else None

    def held_up(self, at: float) -> float | None:
        """How much longer than usual the step around the moment `at` took, in seconds; 0 if it took a usual time."""
        usual = self.median()
        if usual is None:
            return None
        for end, interval in reversed(self.slow):
            if end - interval <= at <= end:
                return max(0.0, interval - usual)
        return 0.0
