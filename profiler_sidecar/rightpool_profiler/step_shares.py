"""What a step's time goes to: from short traces of the program, and from the waits for its data."""

from collections.abc import Sequence
from typing import Final

from rightpool import contract
from rightpool_profiler.inputs import Inputs
from rightpool_profiler.report import Report

_MAX_TRACES: Final = 256
_TRACE_LASTS: Final = 600.0  # seconds for which the shares of a trace are valid


class StepShares:
    """Shares of a step by part, 0-1, of each process and of the pod."""

    def __init__(self, interval: float) -> None:
        self.inputs = Inputs(interval)
        self._traces: dict[int, tuple[float, dict[str, float]]] = {}  # pid → when, shares

    def add(self, pid: int, shares: dict[str, float], now: float) -> None:
        """Add the shares from a trace of process `pid`."""
        if len(self._traces) >= _MAX_TRACES:
            self._traces.clear()
        self._traces[pid] = (now, shares)

    def traced(self, now: float) -> bool | None:
        """Whether a trace is still valid; None where there was none."""
        return any(now - at <= _TRACE_LASTS for at, _ in self._traces.values()) if self._traces else None

    def of_pod(self, living: Sequence[Report], now: float) -> dict[str, float]:
        """The average over all traces, with the leading process' wait for data."""
        if not living:
            return {}
        valid = [shares for at, shares in self._traces.values() if now - at <= _TRACE_LASTS]
        found = {part: sum(one[part] for one in valid) / len(valid) for part in valid[0]} if valid else {}
        leader = min(living, key=lambda report: (report.rank, report.start, report.pid))
        _add_input(found, self.inputs.share(leader.key, now))
        return found

    def by_rank(self, living: Sequence[Report], now: float) -> dict[int, dict[str, float]]:
        """Those of each living rank; one entry where ranks are not known."""
        if len({report.rank for report in living}) < len(living) or len(living) < 2:
            shares = self.of_pod(living, now)
            return {0: shares} if shares else {}
        found = {}
        for report in living:
            at, traced = self._traces.get(report.pid, (-_TRACE_LASTS - now, {}))
            shares = dict(traced) if now - at <= _TRACE_LASTS else {}
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
