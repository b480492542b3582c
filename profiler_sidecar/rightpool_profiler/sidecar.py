"""The sidecar process: receives reports, analyses traces and serves metrics until SIGTERM."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from rightpool import contract
from rightpool_profiler.checkpoint import Checkpoints, Mode
from rightpool_profiler.load import Load, LoadSettings
from rightpool_profiler.receiver import Receiver
from rightpool_profiler.repeated import repeated
from rightpool_profiler.report import Chip
from rightpool_profiler.server import Server
from rightpool_profiler.state import State
from rightpool_profiler.traces import collector
from rightpool_profiler.traces.answer import RankAnswer
from rightpool_profiler.traces.requested import Requested
from rightpool_profiler.warm_up import WarmUp, WarmUpSettings

_TRACES_EVERY: Final = 2.0  # seconds
_REQUESTED_EVERY: Final = 0.5
_TPU_EVERY: Final = 5.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that the operator passes by environment variables."""

    shared: Path
    """Folder of the socket and of files that the agent hands over."""
    kept: Path
    """Folder of traces that outlive a restart of the sidecar."""
    token_sha256: str
    """Of the token that requests have to bring, in hexadecimal; empty: none is accepted."""
    interval: float
    """Seconds between two reports of a process."""
    chips: int
    """How many the pod has."""
    mode: Mode
    """How the program is asked for a checkpoint."""
    signal: str
    """Its name, where a signal is what asks."""
    warm_up: WarmUpSettings | None = None
    """None where nothing is to be warmed up."""
    load: LoadSettings | None = None
    """That the server gets once it is warm, in a trial; None elsewhere."""
    port: int = contract.SIDECAR_PORT
    """That is listened on, of TCP."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read the environment. Raises ValueError for an invalid value."""
        interval = float(environment.get(contract.ENV_INTERVAL) or 10)
        if not 1 <= interval <= 3600:
            raise ValueError(f"{contract.ENV_INTERVAL}: {interval} is not within 1 and 3600 seconds")
        name = environment.get(contract.ENV_CHECKPOINT_SIGNAL) or "SIGUSR1"
        if name not in signal.Signals.__members__:
            raise ValueError(f"{contract.ENV_CHECKPOINT_SIGNAL}: {name} is no signal")
        warm_up, load = environment.get(contract.ENV_WARM_UP), environment.get(contract.ENV_LOAD)
        return cls(
            shared=Path(environment.get(contract.ENV_SHARED_DIR) or contract.SHARED_DIR),
            kept=Path(environment.get(contract.ENV_KEPT_DIR) or contract.KEPT_DIR),
            token_sha256=environment.get(contract.ENV_TOKEN_SHA256, ""),
            interval=interval,
            chips=int(environment.get(contract.ENV_CHIPS) or 1),
            mode=Mode(environment.get(contract.ENV_CHECKPOINT_MODE) or "None"),
            signal=name,
            warm_up=WarmUpSettings.read(warm_up) if warm_up else None,
            load=LoadSettings.read(load) if load else None,
        )


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    state = State(settings.interval, settings.chips)
    checkpoints = Checkpoints(settings.mode, settings.signal, settings.shared / Path(contract.COMMAND_DIR).name)
    receiver = Receiver(settings.shared / Path(contract.AGENT_SOCKET).name, state)
    receiver.start(loop)
    requested = Requested(settings.shared, settings.kept, time.monotonic())
    server = await Server(state, checkpoints, requested, settings.token_sha256).start(settings.port)
    traces = settings.shared / Path(contract.TRACE_DIR).name
    tasks: list[asyncio.Task[Any]] = [
        asyncio.create_task(repeated(what, work, seconds))
        for what, work, seconds in (
            ("reading traces", lambda: _take_traces(traces, state), _TRACES_EVERY),
            ("taking a trace on request", lambda: _take_requested(requested, state), _REQUESTED_EVERY),
            ("asking libtpu", lambda: _ask_tpu(settings.chips, state), _TPU_EVERY),
        )
    ]
    if settings.warm_up is not None:
        mark = settings.kept / contract.WARM_MARK
        tasks.append(asyncio.create_task(_warm(WarmUp(settings.warm_up, mark))))
        if settings.load is not None:
            tasks.append(asyncio.create_task(Load(settings.load, settings.warm_up, mark).run()))
    await stop.wait()
    receiver.stop(loop)
    for task in tasks:
        task.cancel()
    server.close()
    # A thread may be analysing a trace. It can't be cancelled and must not delay the end of the pod.
    os._exit(0)


async def _warm(warm_up: WarmUp) -> None:
    try:
        await warm_up.run()
    except Exception as error:
        # The kubelet keeps the last words of a container that ends, where the operator reads them, and starts it anew.
        print(f"rightpool_profiler: {contract.WARM_UP_FAILED}{error}", file=sys.stderr, flush=True)
        os._exit(1)


async def _take_traces(directory: Path, state: State) -> None:
    for pid, traced in await asyncio.to_thread(collector.collect, directory):
        state.add_shares(pid, traced.shares, time.monotonic(), traced.step)


async def _ask_tpu(count: int, state: State) -> None:
    if not state.on_tpu(time.monotonic()):
        return
    chips: list[Chip] = []
    try:
        from rightpool_profiler import libtpu

        chips = await libtpu.read_chips(count)
    finally:
        state.add_tpu_chips(chips, time.monotonic())


async def _take_requested(requested: Requested, state: State) -> None:
    found = requested.look(state, time.monotonic(), time.time())
    if found is None:
        return
    outcome = RankAnswer.failed(found.rank, "CaptureFailed")
    try:
        outcome = await asyncio.to_thread(requested.read, found)
    finally:
        requested.settle(found, outcome)
