"""Runs a program on this machine with the agent in it, and takes what the agent reports, as a pod's sidecar does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rightpool import contract
from rightpool.cli.bench.cores import CoreTimes, core_times
from rightpool.cli.bench.mllog import MlperfLog
from rightpool.profiles.profile import Profile, Steadiness, build_profile
from rightpool.profiles.sample import RevisionKey
from rightpool.profiles.window import Window
from rightpool.telemetry.exposition import parse
from rightpool.telemetry.samples import sample_of
from rightpool.telemetry.sources.sidecar_page import PodPage, page_of, reading_of
from rightpool_profiler.exposition import render
from rightpool_profiler.install import install
from rightpool_profiler.receiver import Receiver
from rightpool_profiler.report import Report
from rightpool_profiler.state import State
from rightpool_profiler.traces.collector import collect

_LOOK: Final = 0.1  # seconds between two looks for a report: its counters are of that moment
_APART: Final = 0.9  # seconds between two readings; agents report once a second
_SPAN: Final = 5  # readings that a rate is taken over
_TRACES: Final = 2.0
_MOST_TAKEN: Final = 0.95  # of the time between two readings: it had a core at times, since it made steps
_BLOCK: Final = 65_536  # bytes that a pipe holds, and most of a line
_GRACE: Final = 30.0  # seconds that the program has to end by SIGTERM
_WARMED: Final = 2.0  # times the measured time after which a pace that changes is the program's own


class CommandFailed(Exception):
    """The program did not run, or ended with an error; the message is for the user."""


class NothingSeen(Exception):
    """There is nothing to write; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the agents reported at one moment."""

    chips: tuple[str, ...]
    """Names of the chips, as the driver has them."""
    page: PodPage
    """All else."""
    steps: tuple[int, ...]
    """Since its start, by their time: a number a bucket, and one beyond."""
    at: float
    """When they reported it: seconds on their clock."""
    taken: float
    """Seconds since the first reading that it waited for cores that others had; 0 where that is not known."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What was seen of a program."""

    command: tuple[str, ...]
    """The program with its arguments."""
    readings: tuple[Heard, ...]
    """One a second from its first steps on, the newest last."""
    profile: Profile
    """Of the measured time."""
    wanted: float
    """Seconds that were to be measured."""
    began: float
    """Unix seconds of the program's start."""
    log: MlperfLog | None
    """What it has printed of its samples; None where that was not asked for."""


async def beside(
    command: Sequence[str], seconds: float, folders: Sequence[Path], *, logged: bool = False
) -> list[Beside]:
    """Run it in each of these folders at once, until so many seconds were measured of all after their warm-up, or until
    they end. logged: whether MLPerf's lines are read of what it prints, which is passed on. Raises CommandFailed and
    NothingSeen."""
    running: list[_Running] = []
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _pass_on_to_all, running, number)
    programs = [
        _beside(command, seconds, folder, running, len(folders), MlperfLog() if logged else None) for folder in folders
    ]
    return await asyncio.gather(*programs)


@dataclass(slots=True)
class _Running:
    """A program of those that run at once."""

    program: asyncio.subprocess.Process
    seen: _Seen
    ended: bool = False

    @property
    def enough(self) -> bool:
        return self.ended or self.seen.enough


async def _beside(
    command: Sequence[str],
    seconds: float,
    folder: Path,
    running: list[_Running],
    together: int,
    log: MlperfLog | None,
) -> Beside:
    with tempfile.TemporaryDirectory(prefix="rightpool-", dir="/tmp") as made:  # a short path: it has a socket
        shared = Path(made)
        try:
            install(shared)
        except OSError as error:
            raise NothingSeen(f"the profiler is not here ({error.filename}): run it from the repository") from error
        state = State(float(_SPAN), 1)
        receiver = Receiver(shared / Path(contract.AGENT_SOCKET).name, state)
        printed, loop = None if log is None else _Printed(log), asyncio.get_running_loop()
        receiver.start(loop)
        began = time.time()
        try:
            program = await asyncio.create_subprocess_exec(
                *command, env=_environment(shared), cwd=folder, stdout=None if printed is None else printed.pipe
            )
        except OSError as error:
            raise CommandFailed(f"{command[0]} does not run: {error.strerror}") from error
        if printed is not None:
            printed.start(loop)
        seen = _Seen(seconds, program.pid)
        one = _Running(program, seen)
        running.append(one)
        try:
            # What is slow to warm up is waited for, so that all are measured in the same seconds.
            while not one.ended and (len(running) < together or not all(other.enough for other in running)):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(program.wait(), _LOOK)
                    one.ended = True
                await seen.look(state, shared)
            if one.ended and program.returncode:
                raise CommandFailed(f"the program ended with exit code {program.returncode} while it was measured")
        finally:
            await _end(program)
            if printed is not None:
                printed.stop(loop)
            receiver.stop(loop)
    return Beside(tuple(command), tuple(seen.readings), seen.profile(), seconds, began, log)


class _Printed:
    """What a program prints, passed on and read. What it leaves behind may keep the pipe open, and is not awaited."""

    def __init__(self, log: MlperfLog) -> None:
        self._log, self._half = log, b""
        self._end, self.pipe = os.pipe()
        os.set_blocking(self._end, False)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """The program has the pipe by now."""
        os.close(self.pipe)
        loop.add_reader(self._end, self._read, loop)

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._read(loop)
        loop.remove_reader(self._end)
        os.close(self._end)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            some = os.read(self._end, _BLOCK)
        except BlockingIOError:
            return
        if not some:
            loop.remove_reader(self._end)  # at its end it would be called again and again
            return
        with contextlib.suppress(BrokenPipeError):  # nobody reads on, and it goes on
            sys.stdout.buffer.write(some)
            sys.stdout.buffer.flush()
        *lines, half = (self._half + some).split(b"\n")
        self._half = half[-_BLOCK:]
        self._log.read(line.decode(errors="replace") for line in lines)


def _environment(shared: Path) -> dict[str, str]:
    path = os.environ.get("PYTHONPATH")
    agent = str(shared / Path(contract.AGENT_DIR).name)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((agent, path)) if path else agent,
        contract.ENV_SHARED_DIR: str(shared),
        contract.ENV_TRACE: "Auto",
    }


def _pass_on(program: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        program.send_signal(number)


def _pass_on_to_all(running: Sequence[_Running], number: int) -> None:
    for one in running:
        _pass_on(one.program, number)


async def _end(program: asyncio.subprocess.Process) -> None:
    if program.returncode is not None:
        return
    _pass_on(program, signal.SIGTERM)
    try:
        await asyncio.wait_for(program.wait(), _GRACE)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            program.kill()
        await program.wait()


class _Seen:
    """The readings so far."""

    def __init__(self, seconds: float, program: int) -> None:
        self.readings: list[Heard] = []
        self.enough = False
        self._program = program
        self._cores: CoreTimes | None = None
        self._seconds = seconds
        self._window = Window(int(seconds) * 2)
        self._last = -1
        self._traced = 0.0

    async def look(self, state: State, shared: Path) -> None:
        now, at = time.monotonic(), time.time()
        if now - self._traced >= _TRACES:
            self._traced = now
            for pid, traced in await asyncio.to_thread(collect, shared / Path(contract.TRACE_DIR).name):
                state.add_shares(pid, traced.shares, time.monotonic(), traced.step)
        if state.taken == self._last or (self.readings and at - self.readings[-1].page.at < _APART):
            return
        self._last = state.taken
        samples, histograms = state.exposition(now)
        page = page_of(parse(render(samples, histograms)), at)
        if not any(page.gauges.get((contract.STEPS, ""), ())):
            return  # it loads, and what chips do meanwhile is not the program's work
        names = (one.labels.get("name", "") for one in samples if one.metric == contract.CHIP_INFO)
        stepping = state.that_step(now)
        reported = statistics.fmean(one.at for one in stepping) if stepping else now
        if self.readings and reported <= self.readings[-1].at:
            return  # another process has reported something
        taken = self._taken(stepping, reported)
        self.readings.append(Heard(tuple(names), page, tuple(histograms[0].counts), reported, taken))
        pages = [one.page for one in self.readings]
        if len(pages) <= _SPAN:
            return  # of its first steps there is no rate yet that could be seen to rise
        before = pages[-1 - _SPAN]
        sample = sample_of((reading_of([(before, pages[-1])], at, 60.0),), at - before.at)
        if sample is not None:
            self._window.append(sample)
            profile = self.profile()
            self.enough = profile.steadiness is Steadiness.STEADY and profile.covered >= 1.0

    def _taken(self, stepping: Sequence[Report], at: float) -> float:
        """Seconds that others had its cores, so far."""
        before, self._cores = self._cores, core_times(self._program, stepping)
        if not self.readings:
            return 0.0
        last = self.readings[-1]
        since = 0.0 if before is None or self._cores is None else self._cores.taken_since(before)
        return last.taken + min(since, _MOST_TAKEN * (at - last.at))

    def profile(self) -> Profile:
        """Of the newest readings."""
        times = self._window.times
        return build_profile(
            RevisionKey("", "bench", 1),
            self._chips(),
            self._window,
            window=self._seconds,
            interval=1.0,
            expected_pods=1,
            now=self._window.newest or 0.0,
            warm=bool(self.readings) and times[-1] - self.readings[0].page.at > _WARMED * self._seconds,
        )

    def _chips(self) -> int:
        return max(1, len(self.readings[-1].chips)) if self.readings else 1
