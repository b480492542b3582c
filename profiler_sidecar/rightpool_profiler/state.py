"""What is known about this pod, gathered from the reports of its processes.

Every process counts for itself and from zero. The pod's counters are made of their increments, so they outlive
processes and never decrease. Steps come from one process, the leader, because all ranks of a job step together: a
leader that takes over from another rank counts on from where that one was. Samples come from all, because each rank
consumes its own.
"""

from dataclasses import dataclass
from typing import Any, Final

from rightpool import contract
from rightpool_profiler.chips import Chips
from rightpool_profiler.exposition import Histogram, Sample
from rightpool_profiler.report import BUCKETS, MAX_CHIPS, Malformed, Report
from rightpool_profiler.window import Window

MAX_PROCESSES: Final = 256
SILENT_AFTER: Final = 15.0  # seconds without a report: the process has ended or hangs
_TICKS: Final = 100  # of Report.start in a second
_LAUNCH: Final = 60 * _TICKS  # ranks of one program are started within
_TRACE_LASTS: Final = 600.0  # seconds a trace's shares are current
_FUTURE: Final = 5.0  # seconds a checkpoint's time may be ahead of this clock
_CPU_CHIP: Final = "cpu"
_MEASURED: Final = contract.QUALITY_MEASURED
_DERIVED: Final = contract.QUALITY_DERIVED


@dataclass(slots=True)
class _Process:
    report: Report
    heard: float
    cpu_rate: float | None = None  # CPU seconds per second


class State:
    """All times are of the sidecar's monotonic clock, except a checkpoint's, which is Unix time."""

    def __init__(self, interval: float, chips: int) -> None:
        self._count = max(1, chips)
        self._processes: dict[tuple[int, int], _Process] = {}
        self._steps = 0
        self._counted: Report | None = None  # of the leader that steps were counted of last
        self._position = 0  # of its steps, those that are counted
        self._seconds = 0.0
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._samples: int | None = None
        self._input: tuple[Window, Window] = (Window(interval), Window(interval))
        self._cpu = Window(interval)
        self._memory = Window(interval)
        self._chips = Chips(interval, MAX_CHIPS)
        self._shares: dict[tuple[int, int] | int, tuple[float, dict[str, float]]] = {}
        self._saved: tuple[float, float | None] | None = None
        self.taken = 0
        self.refused = 0

    def apply(self, report: Report, now: float, unix: float) -> None:
        """Take one report; raises Malformed if its counters run backwards or there are too many processes."""
        process = self._processes.get(report.key)
        if process is None:
            self._make_room(now)
            if self._leader(now) is None:
                self._counted = None  # whatever ran before has ended
            process = self._processes[report.key] = _Process(_zero(report), now)
        before = process.report
        counters = zip(
            (report.steps, report.seconds, *report.counts), (before.steps, before.seconds, *before.counts), strict=True
        )
        if any(new < old for new, old in counters) or (report.samples or 0) < (before.samples or 0):
            raise Malformed("counters run backwards")
        self._count_steps(process, report, now)
        if report.samples is not None:
            self._samples = (self._samples or 0) + report.samples - (before.samples or 0)
        if process.heard < now and report.at > before.at and report.cpu >= before.cpu:
            process.cpu_rate = (report.cpu - before.cpu) / (report.at - before.at)
        process.report, process.heard = report, now
        for chip in report.chips:
            self._chips.add(report.key, chip, now)
        self._observe_cpu(now)
        newest = self._saved[0] if self._saved else 0.0
        if report.saved is not None and newest <= report.saved <= unix + _FUTURE:
            self._saved = (report.saved, report.save_seconds)

    def _count_steps(self, process: _Process, report: Report, now: float) -> None:
        if self._leader(now) not in (None, report.key):
            return
        before, last = process.report, self._counted
        if last is None or not (last.key == report.key or _together(last, report)):
            self._position = before.steps
        self._counted = report
        if before.steps >= self._position:  # no step of it is counted yet
            self._seconds += report.seconds - before.seconds
            for index, count in enumerate(report.counts):
                self._buckets[index] += count - before.counts[index]
            if report.input_seconds is not None and report.seconds > before.seconds:
                self._input[0].add(now, max(0.0, report.input_seconds - (before.input_seconds or 0.0)))
                self._input[1].add(now, report.seconds - before.seconds)
        self._steps += max(0, report.steps - self._position)
        self._position = max(self._position, report.steps)

    def _leader(self, now: float) -> tuple[int, int] | None:
        """The living process with the lowest rank."""
        living = [one.report for one in self._processes.values() if now - one.heard <= SILENT_AFTER]
        return min(living, key=lambda report: (report.rank, report.start, report.pid)).key if living else None

    def _make_room(self, now: float) -> None:
        if len(self._processes) < MAX_PROCESSES:
            return
        key, oldest = min(self._processes.items(), key=lambda item: item[1].heard)
        if now - oldest.heard <= SILENT_AFTER:
            raise Malformed(f"more than {MAX_PROCESSES} processes")
        del self._processes[key]

    def _living(self, now: float) -> list[_Process]:
        return [one for one in self._processes.values() if now - one.heard <= SILENT_AFTER]

    def _heard(self, now: float) -> float:
        """When the living were heard last: what they said then holds until they speak again, or count as gone."""
        return max((one.heard for one in self._living(now)), default=now)

    def _on_cpu(self, now: float) -> bool:
        """Does the work run on the CPU itself? Elsewhere CPU time says nothing about the chip."""
        living = self._living(now)
        return bool(living) and all(one.report.platform == "cpu" for one in living)

    def _observe_cpu(self, now: float) -> None:
        if not self._on_cpu(now):
            return
        living = self._living(now)
        rates = [one.cpu_rate for one in living if one.cpu_rate is not None]
        if rates:
            self._cpu.add(now, min(1.0, sum(rates) / self._count))
        memory = [one.report.memory for one in living if one.report.memory is not None]
        if memory:
            self._memory.add(now, sum(memory))

    def add_shares(self, pid: int, shares: dict[str, float], now: float) -> None:
        """Take the shares of a step that a trace of process `pid` has shown."""
        if len(self._shares) >= MAX_PROCESSES:
            self._shares.clear()
        self._shares[pid] = (now, shares)

    def shares(self, now: float) -> dict[str, float]:
        """Shares of a step by part: from traces, and the wait for input where the program's loader is seen."""
        if not self._living(now):
            return {}
        traced = [shares for at, shares in self._shares.values() if now - at <= _TRACE_LASTS]
        found = {part: sum(one[part] for one in traced) / len(traced) for part in traced[0]} if traced else {}
        heard = self._heard(now)
        waited, stepped = self._input[0].mean(heard), self._input[1].mean(heard)
        if waited is not None and stepped:
            found[contract.PART_INPUT] = min(1.0, waited / stepped)
            if contract.PART_IDLE in found:  # a trace of the device sees that wait as idleness
                found[contract.PART_INPUT] = min(found[contract.PART_INPUT], found[contract.PART_IDLE])
                found[contract.PART_IDLE] -= found[contract.PART_INPUT]
        return found

    @property
    def saved(self) -> float | None:
        """Unix time of the newest complete checkpoint."""
        return self._saved[0] if self._saved else None

    def command(self, identity: str, now: float) -> str | None:
        """What the leading process has answered to the checkpoint request of that id."""
        answers = [
            (one.report.rank, one.report.command[1])
            for one in self._living(now)
            if one.report.command is not None and one.report.command[0] == identity
        ]
        return min(answers)[1] if answers else None

    def stepping(self, now: float) -> bool:
        """Is there a living process that has made a step?"""
        return any(one.report.steps > 0 for one in self._living(now))

    def sources(self, now: float) -> dict[str, bool]:
        """Each source that has ever delivered, and whether it does now."""
        found: dict[str, bool] = {}
        for one in self._processes.values():
            alive = now - one.heard <= SILENT_AFTER
            names = [f"{one.report.framework}-steps"]
            if one.report.chips:
                names.append("agent-nvml")
            for name in names:
                found[name] = found.get(name, False) or alive
        if self._shares:
            found["xla-trace"] = any(now - at <= _TRACE_LASTS for at, _ in self._shares.values())
        return found

    def exposition(self, now: float) -> tuple[list[Sample], list[Histogram]]:
        """Everything that is known at this moment."""
        heard = self._heard(now)
        samples = self._chips.samples(heard)
        quality = {sample.metric: _MEASURED for sample in samples}
        busy, memory = self._cpu.mean(heard), self._memory.peak(heard)
        if not samples and self._on_cpu(now):
            chip = {contract.LABEL_CHIP: _CPU_CHIP}
            if busy is not None:
                samples.append(Sample(contract.CHIP_BUSY, chip, busy))
                quality[contract.CHIP_BUSY] = _DERIVED
            if memory is not None:
                samples.append(Sample(contract.CHIP_MEMORY_USED, chip, memory))
                quality[contract.CHIP_MEMORY_USED] = _DERIVED
            limits = [one.report.memory_limit for one in self._living(now) if one.report.memory_limit is not None]
            if limits:
                samples.append(Sample(contract.CHIP_MEMORY_TOTAL, chip, max(limits)))
                quality[contract.CHIP_MEMORY_TOTAL] = _DERIVED
        histograms: list[Histogram] = []
        if self._processes:
            samples.append(Sample(contract.STEPS, {}, self._steps))
            histograms.append(Histogram(contract.STEP_SECONDS, BUCKETS, tuple(self._buckets), self._seconds))
            quality[contract.STEPS] = quality[contract.STEP_SECONDS] = _MEASURED
        if self._samples is not None:
            samples.append(Sample(contract.SAMPLES, {}, self._samples))
            quality[contract.SAMPLES] = _MEASURED
        for part, share in self.shares(now).items():
            samples.append(Sample(contract.STEP_SHARE, {contract.LABEL_PART: part}, share))
            quality[contract.STEP_SHARE] = _MEASURED
        if self._saved is not None:
            samples.append(Sample(contract.CHECKPOINT_TIMESTAMP, {}, self._saved[0]))
            quality[contract.CHECKPOINT_TIMESTAMP] = _MEASURED
            if self._saved[1] is not None:
                samples.append(Sample(contract.CHECKPOINT_SECONDS, {}, self._saved[1]))
                quality[contract.CHECKPOINT_SECONDS] = _DERIVED
        for source, up in self.sources(now).items():
            samples.append(Sample(contract.SOURCE_UP, {"source": source}, float(up)))
        for field, value in quality.items():
            samples.append(Sample(contract.FIELD_QUALITY, {"field": field, "quality": value}, 1.0))
        for result, count in (("taken", self.taken), ("refused", self.refused)):
            samples.append(Sample("rightpool_profiler_datagrams_total", {"result": result}, count))
        return samples, histograms

    def processes(self, now: float) -> list[dict[str, Any]]:
        """The processes for /profile, the living first."""
        found = []
        for one in sorted(self._processes.values(), key=lambda process: -process.heard):
            report = one.report
            found.append(
                {
                    "pid": report.pid,
                    "rank": report.rank,
                    "framework": report.framework,
                    "platform": report.platform,
                    "alive": now - one.heard <= SILENT_AFTER,
                    "steps": report.steps,
                    "samples": report.samples,
                    "cpuSeconds": report.cpu,
                    "memoryBytes": report.memory,
                }
            )
        return found


def _together(one: Report, other: Report) -> bool:
    """Whether two processes are ranks of one program, and so make the same steps."""
    return one.rank != other.rank and abs(one.start - other.start) <= _LAUNCH


def _zero(report: Report) -> Report:
    """The same process before it did anything."""
    return Report(
        pid=report.pid,
        start=report.start,
        rank=report.rank,
        at=report.at,
        framework=report.framework,
        steps=0,
        seconds=0.0,
        counts=(0,) * (len(BUCKETS) + 1),
        cpu=report.cpu,
        samples=0,
        input_seconds=0.0,
        platform=report.platform,
    )
