"""What a step's time goes to: from short traces of the program, and from the waits for its data."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from rightpool import contract
from rightpool_profiler.inputs import Inputs
from rightpool_profiler.report import Report
from rightpool_profiler.traces.slowdown import at_usual_pace, slowdown

_MAX_TRACES: Final = 256
Pace = Callable[[tuple[int, int]], float | None]
"""Seconds of a usual step of a process."""
_TRACE_LASTS: Final = 600.0  # seconds for which the shares of a trace are valid
_AGREE: Final = 2  # traces of a process that say the same are sure


class StepShares:
    """Shares of a step by part, 0-1, of each process and of the pod."""

    def __init__(self, interval: float) -> None:
        self.inputs = Inputs(interval)
        # pid → the newest traces: when, shares, step
        self._traces: dict[int, deque[tuple[float, dict[str, float], float | None]]] = {}

    def add(self, pid: int, shares: dict[str, float], now: float, step: float | None) -> None:
        """Add the shares from a trace of process `pid`. step: seconds that one took while it was traced."""
        if len(self._traces) >= _MAX_TRACES:
            self._traces.clear()
        self._traces.setdefault(pid, deque(maxlen=_AGREE)).append((now, shares, step))

    def traced(self, now: float) -> bool | None:
        """Whether a trace is still valid; None where there was none."""
        return any(self._valid(pid, now) for pid in self._traces) if self._traces else None

    def sure(self, now: float) -> bool:
        """Whether no process is told by one trace alone, which may have slowed it in a way of its own."""
        return all(len(self._valid(pid, now)) != 1 for pid in self._traces)

    def _valid(self, pid: int, now: float) -> list[tuple[dict[str, float], float | None]]:
        return [(shares, step) for at, shares, step in self._traces.get(pid, ()) if now - at <= _TRACE_LASTS]

    def _of(self, pid: int, key: tuple[int, int] | None, now: float, pace: Pace) -> dict[str, float]:
        """What the traces of a process say, at its usual pace: that in which it waits least for others. Nothing where
        none is valid. key: None of one that has ended."""
        usual = None if key is None else pace(key)
        paced = [at_usual_pace(shares, slowdown(shares, step, usual)) for shares, step in self._valid(pid, now)]
        return min(paced, key=lambda shares: shares.get(contract.PART_EXPOSED_COMMUNICATION, 0.0), default={})

    def of_pod(self, living: Sequence[Report], now: float, pace: Pace) -> dict[str, float]:
        """The average over all traces, with the leading process' wait for data. pace: of each process."""
        if not living:
            return {}
        keys = {report.pid: report.key for report in living}
        valid = [shares for pid in self._traces if (shares := self._of(pid, keys.get(pid), now, pace))]
        found = {part: sum(one[part] for one in valid) / len(valid) for part in valid[0]} if valid else {}
        leader = min(living, key=lambda report: (report.rank, report.start, report.pid))
        _add_input(found, self.inputs.share(leader.key, now))
        return found

    def by_rank(self, living: Sequence[Report], now: float, pace: Pace) -> dict[int, dict[str, float]]:
        """Those of each living rank; one entry where ranks are not known. pace: of each process."""
        if len({report.rank for report in living}) < len(living) or len(living) < 2:
            shares = self.of_pod(living, now, pace)
            return {0: shares} if shares else {}
        found = {}
        for report in living:
            shares = self._of(report.pid, report.key, now, pace)
            _add_input(shares, self.inputs.share(report.key, now))
            if shares:
                found[report.rank] = shares
        return dict(sorted(found.items()))


def _add_input(shares: dict[str, float], waited: float | None) -> None:
    """Put the wait for data into shares of a step. In a trace of the device this wait is idle time."""
    if waited is None:
        return
    if contract.PART_IDLE in shares:
        waited = min(waited, shares[contract.PART_IDLE])
        shares[contract.PART_IDLE] -= waited
    shares[contract.PART_INPUT] = waited
