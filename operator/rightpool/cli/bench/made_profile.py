"""Makes the profile of a program from what was seen while it ran."""

from __future__ import annotations

import math
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

from rightpool import contract
from rightpool.api.altered import altered
from rightpool.api.traits import UNKNOWN_TRAITS
from rightpool.api.wording import percent
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.bench.beside import Beside, Heard, NothingSeen
from rightpool.cli.bench.mllog import MlperfLog, TrainedStretch
from rightpool.cli.bench.profile import BenchProfile
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.catalog import load_catalog
from rightpool.prediction.precision import dense_peak
from rightpool.profiles.diagnosis import diagnose
from rightpool.profiles.profile import Profile, Steadiness
from rightpool.profiles.sample import Field as Measured
from rightpool.profiles.shares import parts_of_step
from rightpool.profiles.statistics import stationary_from
from rightpool_profiler.report import BUCKETS

# Windows that the measured time is divided into, and readings in each where there are enough of them.
_WINDOWS: Final = 20
_FEWEST: Final = 3
_READINGS: Final = 3
_PROCESSOR: Final = "CPU"
_LEAST_LEFT: Final = 0.01
_LATE: Final = 1.0  # seconds that a line may be newer than the last report
# Shares of the time.
_OF_TIME: Final = frozenset(
    {
        Measured.CHIP_BUSY,
        Measured.SLOWEST_CHIP_BUSY,
        Measured.INPUT_WAIT,
        Measured.LEAST_INPUT_WAIT,
        Measured.SAVING,
        Measured.EXPOSED_COMMUNICATION,
    }
)


def bench_profile(run: Beside, name: str) -> BenchProfile:
    """Of a program that has run. Raises NothingSeen."""
    profile = run.profile
    if not run.readings:
        raise NothingSeen("no step was seen: rightpool measures Python programs that train with PyTorch or JAX")
    if profile.steadiness is not Steadiness.STEADY:
        short = f"{percent(profile.covered)} of {run.wanted:g} s"
        raise NothingSeen(f"the program ended with {short} measured: let it run longer, or lower --seconds")
    begin = (profile.newest or 0.0) - profile.covered * profile.window
    chip = _chip(run.readings[-1])
    measured = [one for one in run.readings if one.page.at >= begin]
    taken = _taken(measured) if chip is None else None
    if taken is not None:
        profile = _of_own_time(profile, taken)
    if run.log is None:
        unit, counted = _counted(measured, computes_here=chip is None)
    else:
        unit, counted = WorkUnit.SAMPLES, _trained(_logged(run.log, measured, computes_here=chip is None))
    windows, length = _windows(counted)
    rate = (counted[-1][1] - counted[0][1]) / (counted[-1][0] - counted[0][0])
    if rate <= 0.0:
        raise NothingSeen("the program made no step in the measured time")
    catalog = load_catalog()
    key = _PROCESSOR if chip is None else catalog.by_device(chip)
    accelerator = None if key is None else catalog.get(key)
    diagnosis = None if accelerator is None else diagnose(profile, accelerator)
    shares = parts_of_step(profile)
    joules = None
    if (power := profile.value(Measured.POWER)) is not None:
        joules = power * profile.chips / rate
    return BenchProfile(
        kind="BenchProfile",
        name=name,
        at=datetime.fromtimestamp(run.began, UTC).isoformat(timespec="seconds"),
        commit=_commit(),
        command=run.command,
        chip=chip or _processor(),
        accelerator=None if chip is None else key,
        chips=profile.chips,
        unit=unit,
        rate=rate,
        taken_by_others=taken,
        windows=windows,
        runs=(rate,),
        session="",
        window_seconds=length,
        warm_up_seconds=max(0.0, begin - run.began),
        bottleneck="Unknown" if diagnosis is None else diagnosis.bottleneck.value,
        finding="the catalog does not have the chip" if diagnosis is None else diagnosis.finding.text(),
        lever="" if diagnosis is None else diagnosis.finding.lever(),
        shares=shares,
        flops_utilization=None if chip is None else _utilization(profile, accelerator, unit, rate),
        memory_bytes=profile.value(Measured.MEMORY_USED),
        joules_per_unit=joules,
        step_p99_seconds=_p99(run.readings, begin),
        model=profile.traits,
        readings={field.value: reading.value for field, reading in sorted(profile.readings.items())},
    )


def logged_profile(log: MlperfLog, name: str, accelerator: str, chips: int) -> BenchProfile:
    """Of a program by its log alone, which says how fast it was and not why. Raises NothingSeen."""
    stretches = log.stretches
    warm = stationary_from([(one.end - one.begin) / one.samples for one in stretches])
    if warm is None:
        raise NothingSeen("its pace still rises at the end")
    counted = _trained(stretches[warm:])
    windows, length = _windows(counted)
    return BenchProfile(
        kind="BenchProfile",
        name=name or log.benchmark or "program",
        at=datetime.fromtimestamp(stretches[0].begin, UTC).isoformat(timespec="seconds"),
        commit=None,
        command=(),
        chip=accelerator,
        accelerator=accelerator,
        chips=chips,
        unit=WorkUnit.SAMPLES,
        rate=counted[-1][1] / counted[-1][0],
        taken_by_others=None,
        windows=windows,
        runs=(counted[-1][1] / counted[-1][0],),
        session="",
        window_seconds=length,
        warm_up_seconds=stretches[warm].begin - stretches[0].begin,
        bottleneck="Unknown",
        finding="a log says how fast it was, and not why",
        lever="",
        shares={},
        flops_utilization=None,
        memory_bytes=None,
        joules_per_unit=None,
        step_p99_seconds=None,
        model=altered(UNKNOWN_TRAITS, batch=log.batch),
        readings={},
    )


def _logged(log: MlperfLog, measured: Sequence[Heard], *, computes_here: bool) -> list[TrainedStretch]:
    """Its stretches within the measured time, each less what others took of it."""
    taken = [(one.page.at, one.taken if computes_here else 0.0) for one in measured]
    within = [one for one in log.stretches if taken[0][0] <= one.begin and one.end <= taken[-1][0] + _LATE]
    return [one._replace(begin=one.begin + _at(taken, one.end) - _at(taken, one.begin)) for one in within]


def _trained(stretches: Sequence[TrainedStretch]) -> list[tuple[float, float]]:
    """Samples so far, by the seconds of training so far. Raises NothingSeen."""
    if len(stretches) < _FEWEST:
        few = f"{len(stretches)} of the {_FEWEST} rates that are needed after the warm-up"
        raise NothingSeen(f"MLPerf's lines tell {few}: let it run longer")
    seconds = accumulate((one.end - one.begin for one in stretches), initial=0.0)
    return list(zip(seconds, accumulate((one.samples for one in stretches), initial=0.0), strict=True))


def _counted(measured: Sequence[Heard], *, computes_here: bool) -> tuple[WorkUnit, list[tuple[float, float]]]:
    """Units of work so far, by when they were read. computes_here: on the processor, whose time others may take."""
    times = [one.at - (one.taken if computes_here else 0.0) for one in measured]
    pages = [one.page for one in measured]
    if all(contract.SAMPLES in page.counters for page in pages):
        return WorkUnit.SAMPLES, list(zip(times, (page.counters[contract.SAMPLES] for page in pages), strict=True))
    steps = (math.fsum(page.gauges.get((contract.STEPS, ""), ())) for page in pages)
    return WorkUnit.STEPS, list(zip(times, steps, strict=True))


def _taken(measured: Sequence[Heard]) -> float:
    """Share of the time in which others had the program's cores."""
    return (measured[-1].taken - measured[0].taken) / (measured[-1].at - measured[0].at)


def _of_own_time(profile: Profile, taken: float) -> Profile:
    """With shares of the time that others did not take: the program did nothing in theirs."""
    left = max(1.0 - taken, _LEAST_LEFT)
    own = {
        field: one._replace(**{name: min(1.0, getattr(one, name) / left) for name in ("value", "low", "high")})
        for field, one in profile.readings.items()
        if field in _OF_TIME
    }
    return replace(profile, readings={**profile.readings, **own})


def _p99(readings: Sequence[Heard], begin: float) -> float | None:
    """The end of the bucket that has it; None where steps are longer than all buckets."""
    first = next(one for one in readings if one.page.at >= begin)
    counts = [late - early for early, late in zip(first.steps, readings[-1].steps, strict=True)]
    below, reached = accumulate(counts), 0.99 * sum(counts)
    return next((end for end, count in zip(BUCKETS, below, strict=False) if count >= reached > 0.0), None)


def _windows(counted: Sequence[tuple[float, float]]) -> tuple[tuple[float, ...], float]:
    """Rates in equal parts, and how long these are. Between two readings the pace is taken to be even."""
    first, last = counted[0][0], counted[-1][0]
    count = max(_FEWEST, min(_WINDOWS, len(counted) // _READINGS))
    length = (last - first) / count
    ends = [_at(counted, first + number * length) for number in range(count + 1)]
    return tuple(max(0.0, after - before) / length for before, after in pairwise(ends)), length


def _at(counted: Sequence[tuple[float, float]], at: float) -> float:
    for (early, few), (late, many) in pairwise(counted):
        if at <= late:
            return few + (many - few) * max(0.0, at - early) / (late - early)
    return counted[-1][1]


def _chip(reading: Heard) -> str | None:
    """None of a machine without GPUs."""
    return next((name for name in reading.chips if name), None)


def _utilization(profile: Profile, chip: Accelerator | None, unit: WorkUnit, rate: float) -> float | None:
    traits = profile.traits
    peak = None if chip is None else dense_peak(chip, traits.precision)
    steps = rate if unit is WorkUnit.STEPS else None if not traits.batch else rate / traits.batch
    if peak is None or steps is None or traits.step_flops is None:
        return None
    share = steps * traits.step_flops / (profile.chips * peak)
    return share if share <= 1.0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _commit() -> str | None:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip() or None
