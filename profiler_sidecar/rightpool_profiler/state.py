"""The state of this pod, aggregated from the reports of its processes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rightpool import contract
from rightpool_profiler.chips import Chips
from rightpool_profiler.counters import Counters, has_stepped, uncounted
from rightpool_profiler.exposition import Histogram, Sample
from rightpool_profiler.report import BUCKETS, MAX_CHIPS, Chip, Malformed, Report
from rightpool_profiler.step_shares import StepShares
from rightpool_profiler.window import Window

MAX_PROCESSES: Final = 256
SILENT_AFTER: Final = 15.0  # seconds without a report: the process has ended or hangs
_FUTURE: Final = 5.0  # seconds by which a checkpoint's time may be ahead of this clock
_CPU_CHIP: Final = "cpu"
_LIBTPU: Final = (0, 0)  # in place of the process that reads a chip
_MEASURED: Final = contract.QUALITY_MEASURED
_DERIVED: Final = contract.QUALITY_DERIVED


@dataclass(slots=True)
class _Process:
    report: Report
    heard: float
    cpu_rate: float | None = None  # CPU seconds per second
    # Shares of the time since the report before the last.
    compiling: float | None = None
    saving: float | None = None


class State:
    """All times are of the sidecar's monotonic clock, except a checkpoint's, which is Unix time."""

    def __init__(self, interval: float, chips: int) -> None:
        self._count = max(1, chips)
        self._processes: dict[tuple[int, int], _Process] = {}
        self._counters = Counters()
        self._shares = StepShares(interval)
        self._cpu = Window(interval)
        self._memory = Window(interval)
        self._compiling = Window(interval)
        self._saving = Window(interval)
        self._chips = Chips(interval, MAX_CHIPS)
        self._saved: tuple[float, float | None] | None = None
        self._libtpu: bool | None = None  # whether it answers; None where it never did
        self.taken = 0
        self.refused = 0

    def apply(self, report: Report, now: float, unix: float) -> None:
        """Add a report. Raises Malformed if its counters decrease or there are too many processes."""
        process = self._processes.get(report.key)
        if process is None:
            self._make_room(now)
            if report.world > 1 and self._leader(now) is None:
                self._counters.begin_program()
            process = self._processes[report.key] = _Process(_zero(report), now)
        before = process.report
        if report.opaque:  # the agent sends no counters; those so far stay
            report = replace(report, steps=before.steps, seconds=before.seconds, counts=before.counts)
        self._counters.check(before, report)
        self._counters.add(before, report, self._leader(now) in (None, report.key))
        if process.heard < now and report.at > before.at and report.cpu >= before.cpu:
            process.cpu_rate = (report.cpu - before.cpu) / (report.at - before.at)
        span = report.at - before.at
        process.compiling = _share(before.compile_seconds, report.compile_seconds, span)
        process.saving = _share(before.saving_seconds, report.saving_seconds, span)
        # One that says so for the first time has waited in earlier steps as well.
        if report.input_seconds is not None and before.input_seconds is not None and report.seconds > before.seconds:
            waited = max(0.0, report.input_seconds - before.input_seconds)
            self._shares.inputs.add(report.key, waited, report.seconds - before.seconds, now)
        process.report, process.heard = report, now
        for chip in report.chips:
            self._chips.add(report.key, chip, now)
        self._observe_cpu(now)
        # One that compiles or saves holds up the others.
        for window, name in ((self._compiling, "compiling"), (self._saving, "saving")):
            shares = [share for one in self._living(now) if (share := getattr(one, name)) is not None]
            if shares:
                window.add(now, max(shares))
        newest = self._saved[0] if self._saved else 0.0
        if report.saved is not None and newest <= report.saved <= unix + _FUTURE:
            self._saved = (report.saved, report.save_seconds)

    def _leader(self, now: float) -> tuple[int, int] | None:
        """The living process with the lowest rank of those that are ranks of a program."""
        living = [one.report for one in self._processes.values() if now - one.heard <= SILENT_AFTER]
        living = [report for report in living if report.world > 1]
        return min(living, key=lambda report: (report.rank, report.start, report.pid)).key if living else None

    def _make_room(self, now: float) -> None:
        if len(self._processes) < MAX_PROCESSES:
            return
        key, oldest = min(self._processes.items(), key=lambda item: item[1].heard)
        if now - oldest.heard <= SILENT_AFTER:
            raise Malformed(f"more than {MAX_PROCESSES} processes")
        del self._processes[key]
        self._counters.forget(oldest.report)
        self._shares.inputs.forget(key)

    def _living(self, now: float) -> list[_Process]:
        return [one for one in self._processes.values() if now - one.heard <= SILENT_AFTER]

    def _heard(self, now: float) -> float:
        """Time of the last report of a living process. It is valid until the next one, or until the process is gone."""
        return max((one.heard for one in self._living(now)), default=now)

    def _on_cpu(self, now: float) -> bool:
        """Whether the program computes on the CPU. Otherwise CPU time is no measure of the chip."""
        living = self._living(now)
        return bool(living) and all(one.report.platform == "cpu" for one in living)

    def on_tpu(self, now: float) -> bool:
        """Whether a living process computes on a TPU."""
        return any(one.report.platform == "tpu" for one in self._living(now))

    def add_tpu_chips(self, chips: Sequence[Chip], now: float) -> None:
        """Add what libtpu says of the chips; none where it does not answer."""
        self._libtpu = bool(chips) if chips or self._libtpu is not None else None
        for chip in chips:
            self._chips.add(_LIBTPU, chip, now)

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

    def add_shares(self, pid: int, shares: dict[str, float], now: float, step: float | None = None) -> None:
        """Add the shares of a step from a trace of process `pid`. step: seconds that one took while it was traced."""
        self._shares.add(pid, shares, now, step)

    def usual_step(self, pid: int, now: float) -> float | None:
        """Seconds of a usual step of process `pid`; None where it makes none that are seen."""
        return next((self._counters.pace(one.report.key) for one in self._living(now) if one.report.pid == pid), None)

    @property
    def saved(self) -> float | None:
        """Unix time of the newest complete checkpoint."""
        return self._saved[0] if self._saved else None

    def command(self, identity: str, now: float) -> str | None:
        """The leading process' response to the checkpoint request with this id."""
        answers = [
            (one.report.rank, one.report.command[1])
            for one in self._living(now)
            if one.report.command is not None and one.report.command[0] == identity
        ]
        return min(answers)[1] if answers else None

    def trace(self, identity: str, rank: int, now: float) -> tuple[int, str, float | None] | None:
        """Pid, state and cost of the living process with this rank that serves the requested trace with this id. One
        that makes steps goes before one that makes none, such as a launcher with the pod's own rank."""
        serving = [
            one.report
            for one in self._living(now)
            if one.report.trace is not None and (one.report.trace[0], one.report.rank) == (identity, rank)
        ]
        found = max(serving, key=has_stepped, default=None)
        return None if found is None or found.trace is None else (found.pid, found.trace[1], found.trace_cost)

    def ranks(self, now: float) -> frozenset[int]:
        """Ranks of the living processes."""
        return frozenset(one.report.rank for one in self._living(now))

    def members(self, now: float, settled: bool) -> tuple[frozenset[int], int | None]:
        """Ranks of the living processes of the program, and how many it has in all pods, as they say.

        A launcher counts its pods where its workers count themselves, so who makes steps says how many there are.
        settled: where nobody does, nobody who does is waited for.
        """
        living = [one.report for one in self._living(now)]
        worlds = {report.world for report in living if has_stepped(report)}
        if not worlds and settled:
            worlds = {report.world for report in living}
        if not worlds:
            return frozenset(), None
        world = max(worlds)
        return frozenset(report.rank for report in living if report.world == world), world

    def stepping(self, now: float) -> bool:
        """Whether a living process has made a step, counted or not."""
        return any(has_stepped(one.report) for one in self._living(now))

    def sources(self, now: float) -> dict[str, bool]:
        """Each source that ever delivered values, and whether it does now."""
        found: dict[str, bool] = {}
        for one in self._processes.values():
            alive = now - one.heard <= SILENT_AFTER
            names = [f"{one.report.framework}-steps"]
            if one.report.chips:
                names.append("agent-nvml")
            for name in names:
                found[name] = found.get(name, False) or alive
        if self._libtpu is not None:
            found["libtpu"] = self._libtpu and self.on_tpu(now)
        traced = self._shares.traced(now)
        if traced is not None:
            found["xla-trace"] = traced
        return found

    def exposition(self, now: float) -> tuple[list[Sample], list[Histogram]]:
        """All metrics of the pod."""
        heard = self._heard(now)
        samples = self._chips.samples(heard)
        unused = self._chips.unused(heard)
        if unused is not None:
            samples.append(Sample(contract.CHIPS_UNUSED, {}, unused))
        quality = {sample.metric: _MEASURED for sample in samples}
        if contract.CHIP_BUSY in quality and self._chips.busy_is_sampled:
            quality[contract.CHIP_BUSY] = _DERIVED
        if not samples and self._on_cpu(now):
            samples = self._processor(now)
            quality.update({sample.metric: _DERIVED for sample in samples})
        histograms: list[Histogram] = []
        counted, sums = self._quality_of_steps(now), self._counters
        if sums.steps:
            samples.append(Sample(contract.STEPS, {}, sums.steps))
            histograms.append(Histogram(contract.STEP_SECONDS, BUCKETS, tuple(sums.buckets), sums.seconds))
            quality[contract.STEPS] = quality[contract.STEP_SECONDS] = counted
        if sums.samples_lost or any(uncounted(one.report) for one in self._processes.values()):
            quality[contract.SAMPLES] = contract.QUALITY_MISSING
        elif sums.samples is not None:
            samples.append(Sample(contract.SAMPLES, {}, sums.samples))
            quality[contract.SAMPLES] = counted
        for sample, known in self._of_program(now):
            samples.append(sample)
            quality[sample.metric] = known
        for source, up in self.sources(now).items():
            samples.append(Sample(contract.SOURCE_UP, {"source": source}, float(up)))
        for field, value in quality.items():
            samples.append(Sample(contract.FIELD_QUALITY, {"field": field, "quality": value}, 1.0))
        for result, count in (("taken", self.taken), ("refused", self.refused)):
            samples.append(Sample("rightpool_profiler_datagrams_total", {"result": result}, count))
        return samples, histograms

    def _of_program(self, now: float) -> Iterator[tuple[Sample, str]]:
        """What is told of the program beside its steps, and how it is known."""
        for sample in self._model(now):
            yield sample, _DERIVED if sample.metric == contract.STEP_SAMPLES else _MEASURED
        for sample in self._hindrances(now):
            yield sample, _MEASURED
        for sample in self._step_shares(now):
            yield sample, _MEASURED if self._shares.sure(now) else _DERIVED
        if self._saved is not None:
            at, seconds = self._saved
            yield Sample(contract.CHECKPOINT_TIMESTAMP, {}, at), _MEASURED
            if seconds is not None:
                yield Sample(contract.CHECKPOINT_SECONDS, {}, seconds), _DERIVED

    def _processor(self, now: float) -> list[Sample]:
        """The host's processor and memory, in place of a chip's."""
        heard = self._heard(now)
        limits = [one.report.memory_limit for one in self._living(now) if one.report.memory_limit is not None]
        found = {
            contract.CHIP_BUSY: self._cpu.mean(heard),
            contract.CHIP_MEMORY_USED: self._memory.peak(heard),
            contract.CHIP_MEMORY_TOTAL: max(limits, default=None),
        }
        chip = {contract.LABEL_CHIP: _CPU_CHIP}
        return [Sample(metric, chip, value) for metric, value in found.items() if value is not None]

    def _quality_of_steps(self, now: float) -> str:
        """Who makes steps now says how they are known; a program that has ended says so only where no other follows."""
        stepping = [one.report for one in self._living(now) if one.report.steps > 0]
        reports = stepping or [one.report for one in self._processes.values() if one.report.steps > 0]
        return _DERIVED if any(report.derived for report in reports) else _MEASURED

    def _step_shares(self, now: float) -> list[Sample]:
        """Of each rank, where the pod has several."""
        by_rank = self._shares.by_rank([one.report for one in self._living(now)], now, self._counters.pace)
        return [
            Sample(contract.STEP_SHARE, {contract.LABEL_PART: part, **labels}, share)
            for rank, shares in by_rank.items()
            for labels in ({contract.LABEL_RANK: str(rank)} if len(by_rank) > 1 else {},)
            for part, share in shares.items()
        ]

    def _hindrances(self, now: float) -> list[Sample]:
        """What keeps the program from its steps: memory that was short, compilation, saves."""
        heard = self._heard(now)
        retries = [one.report.memory_retries for one in self._living(now) if one.report.memory_retries is not None]
        found = {
            contract.MEMORY_RETRIES: sum(retries) if retries else None,
            contract.COMPILE: self._compiling.mean(heard),
            contract.SAVING: self._saving.mean(heard),
        }
        return [Sample(metric, {}, value) for metric, value in found.items() if value is not None]

    def _model(self, now: float) -> list[Sample]:
        """What the leading process says of the model, and the samples that all processes take in a step."""
        living = self._living(now)
        found = []
        known = [self._counters.batch(one.report.key) for one in living]
        batches = [batch for batch in known if batch is not None]
        takes = [one for one in living if _takes_samples(one.report)]
        if batches and len(batches) == len(takes):
            found.append(Sample(contract.STEP_SAMPLES, {}, sum(batches)))
        flops = _step_flops([one.report for one in living if has_stepped(one.report)])
        if flops is not None:
            found.append(Sample(contract.STEP_FLOPS, {}, flops))
        saying = [one.report for one in living if one.report.model is not None]
        if not saying:
            return found
        model = min(saying, key=lambda report: (report.rank, report.start, report.pid)).model
        assert model is not None
        words = {contract.LABEL_PRECISION: model.precision, contract.LABEL_PARAMETER_DTYPE: model.parameter_dtype}
        labels = {name: word for name, word in words.items() if word is not None}
        labels |= {name: str(degree) for name, degree in model.degrees}
        found.append(Sample(contract.MODEL_INFO, labels, 1.0))
        if model.parameters is not None:
            found.append(Sample(contract.MODEL_PARAMETERS, {}, model.parameters))
        if model.parameter_bytes is not None:
            found.append(Sample(contract.MODEL_PARAMETER_BYTES, {}, model.parameter_bytes))
        if model.model_bytes is not None:
            found.append(Sample(contract.MODEL_BYTES, {}, model.model_bytes))
        return found

    def that_step(self, now: float) -> list[Report]:
        """The last of each living process that makes steps."""
        return [one.report for one in self._living(now) if one.report.steps]

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
                    "steps": report.steps or None,  # none so far, or not known: the first may be compiling
                    "samples": report.samples,
                    "cpuSeconds": report.cpu,
                    "memoryBytes": report.memory,
                }
            )
        return found


def _share(before: float | None, after: float | None, span: float) -> float | None:
    """Share of the time between two reports that went to something; None where a process does not say, or never did
    it."""
    if before is None or not after or span <= 0:
        return None
    return min(1.0, max(0.0, after - before) / span)


def _takes_samples(report: Report) -> bool:
    """Whether a process consumes samples, or may. One that makes steps with none is a later stage of a pipeline."""
    return uncounted(report) if report.samples is None else bool(report.samples) or not has_stepped(report)


def _step_flops(stepping: list[Report]) -> float | None:
    """FLOPs of a step of these processes together; None where one does not say, or where they are programs of their own
    whose steps are added up."""
    known = [report.model.step_flops for report in stepping if report.model and report.model.step_flops]
    ranks = all(report.world > 1 for report in stepping) or len(stepping) == 1
    return sum(known) if ranks and known and len(known) == len(stepping) else None


def _zero(report: Report) -> Report:
    """The report of the same process at its start."""
    return Report(
        pid=report.pid,
        start=report.start,
        rank=report.rank,
        world=report.world,
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
