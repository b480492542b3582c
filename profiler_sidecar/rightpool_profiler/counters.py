"""The counters of this pod: steps, their times, and samples.

Every process counts for itself and from zero. The pod's counters are made of their increments, so they outlive
processes and never decrease. Of the ranks of one program steps come from one, the leader, because all of them step
together: a leader that takes over from another rank counts on from where that one was. Programs that are no ranks of
anything, one after the other or side by side, each count. Samples come from all, because each rank consumes its own;
where one that steps does not know its own, those of the pod are missing, and the page says so: the operator must not
take those of other pods for the job's.
"""

from collections import deque
from statistics import median, median_low
from typing import Final

from rightpool_profiler.report import BUCKETS, Malformed, Report

_TICKS: Final = 100  # of Report.start in a second
_LAUNCH: Final = 60 * _TICKS  # all ranks of one program start within this time
_BATCHES: Final = 31  # the last step of an epoch is smaller, and most reports have none
_PACES: Final = 31  # reports; those of steps that were slowed by a trace are few of them

Key = tuple[int, int]


class Counters:
    """Sums over all processes that this pod has had."""

    def __init__(self) -> None:
        self.steps = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.samples: int | None = None
        self.samples_lost = False  # a process that is forgotten made steps, and did not know what it consumed
        self._led: Report | None = None  # the last report of the leader whose steps were counted
        self._position = 0  # how many of its steps are counted
        self._taken: dict[Key, int] = {}  # samples of each process that are counted: the last that it knew
        self._paces: dict[Key, deque[float]] = {}  # seconds of a step, likewise
        self._batches: dict[Key, deque[int]] = {}  # samples of a step, in the last reports of a process

    def check(self, before: Report, report: Report) -> None:
        """Raises Malformed if the counters of a process decrease."""
        fewer = report.samples is not None and report.samples < self._taken.get(report.key, 0)
        counters = zip(
            (report.steps, report.seconds, *report.counts), (before.steps, before.seconds, *before.counts), strict=True
        )
        if fewer or any(new < old for new, old in counters):
            raise Malformed("counters run backwards")

    def add(self, before: Report, report: Report, leads: bool) -> None:
        """Count what a process has done since its report `before`. `leads`: no living rank of its program is lower."""
        if report.steps > before.steps and report.seconds > before.seconds:
            pace = (report.seconds - before.seconds) / (report.steps - before.steps)
            self._paces.setdefault(report.key, deque(maxlen=_PACES)).append(pace)
        if report.world <= 1:
            self.steps += report.steps - before.steps
            self._take_times(before, report)
        elif leads:
            self._take_leader(before, report)
        if report.samples is None:
            return
        samples, steps = report.samples - self._taken.get(report.key, 0), report.steps - before.steps
        self.samples = (self.samples or 0) + samples
        self._taken[report.key] = report.samples
        if before.samples is not None and steps > 0 and samples > 0:
            self._batches.setdefault(report.key, deque(maxlen=_BATCHES)).append(round(samples / steps))

    def _take_leader(self, before: Report, report: Report) -> None:
        last = self._led
        if last is None or not (last.key == report.key or _together(last, report)):
            self._position = before.steps
        self._led = report
        if before.steps >= self._position:  # its steps are not counted yet
            self._take_times(before, report)
        self.steps += max(0, report.steps - self._position)
        self._position = max(self._position, report.steps)

    def _take_times(self, before: Report, report: Report) -> None:
        self.seconds += report.seconds - before.seconds
        for index, count in enumerate(report.counts):
            self.buckets[index] += count - before.counts[index]

    def begin_program(self) -> None:
        """The program whose ranks were counted has ended, and the ranks of another one follow."""
        self._led = None

    def forget(self, report: Report) -> None:
        """The process of this report is no longer remembered. What it has done stays counted."""
        self.samples_lost = self.samples_lost or uncounted(report)
        self._taken.pop(report.key, None)
        self._batches.pop(report.key, None)
        self._paces.pop(report.key, None)

    def batch(self, key: Key) -> int | None:
        """Samples of a usual step of the process; None where it does not know them."""
        return median_low(self._batches[key]) if key in self._batches else None

    def pace(self, key: Key) -> float | None:
        """Seconds of a usual step of the process; None where it makes none that are seen."""
        return median(self._paces[key]) if key in self._paces else None


def uncounted(report: Report) -> bool:
    """Whether a process makes steps, and does not know what it consumes."""
    return report.samples is None and has_stepped(report)


def has_stepped(report: Report) -> bool:
    """Whether a process has made a step, counted or not."""
    return report.steps > 0 or report.opaque


def _together(one: Report, other: Report) -> bool:
    """Whether two processes are ranks of one program, which make the same steps."""
    return one.rank != other.rank and abs(one.start - other.start) <= _LAUNCH
