"""A real server on loopback: a residual network of PyTorch on small pictures, batched as requests come.

The program is measured as a profile would measure it: full batches, one after the other. Then clients send requests at
some rates, and what they wait is compared with what was predicted. The server waits for nothing: it takes what is
there. Requests and answers are lines over one TCP connection.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.serving import Ends, Server, fixed_shares

BATCH: Final = 16
PIXELS: Final = 32
CHANNELS: Final = (32, 64, 128)
SHARES: Final = (0.2, 0.4, 0.6, 0.8)
"""Of the measured rate."""


@dataclass(frozen=True, slots=True)
class Run:
    """Requests at one rate."""

    clock: str
    """Which time is measured: that of a clock on the wall, or of the processor."""
    utilisation: float
    """Of the measured rate of full batches."""
    requests: int
    """How many were answered."""
    half: float
    """Measured median latency, seconds."""
    tail: float
    """Measured 99th percentile."""
    predicted_half: Ends
    """What the model says of the median."""
    predicted_tail: Ends
    """And of the 99th percentile."""


def model() -> Callable[[int], None]:
    """A residual network that answers so many requests at once, on one thread."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)

    class Block(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        """Two convolutions beside a shortcut, as in He et al. (2016), arXiv:1512.03385."""

        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(),
                nn.Conv2d(after, after, 3, padding=1, bias=False),
                nn.BatchNorm2d(after),
            )
            self.shortcut = nn.Conv2d(before, after, 1, stride=2, bias=False)

        def forward(self, pictures: torch.Tensor) -> torch.Tensor:
            return nn.functional.relu(self.inner(pictures) + self.shortcut(pictures))

    sizes = (3, *CHANNELS)
    network = nn.Sequential(
        *(Block(before, after) for before, after in pairwise(sizes)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(CHANNELS[-1], 10),
    ).eval()
    pictures = torch.randn(BATCH, 3, PIXELS, PIXELS)

    def answer(count: int) -> None:
        with torch.inference_mode():
            network(pictures[:count])

    return answer


def full_rate(answer: Callable[[int], None], seconds: float, clock: Callable[[], float]) -> tuple[float, float]:
    """Requests a second with full batches, and the standard deviation of its log between tenths of the time."""
    rates = []
    for _ in range(5):
        answer(BATCH)
    for _ in range(10):
        began, done = clock(), 0
        while clock() - began < seconds / 10.0:
            answer(BATCH)
            done += BATCH
        rates.append(done / (clock() - began))
    return float(np.mean(rates)), float(np.std(np.log(rates)))


async def _serve(answer: Callable[[int], None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection; the program runs in a thread, so that requests are read meanwhile."""
    waiting: deque[bytes] = deque()
    arrived, loop = asyncio.Event(), asyncio.get_running_loop()

    async def read() -> None:
        while line := await reader.readline():
            waiting.append(line)
            arrived.set()
        waiting.append(b"")
        arrived.set()

    reading = asyncio.create_task(read())
    while True:
        while not waiting:
            arrived.clear()
            await arrived.wait()
        batch = [waiting.popleft() for _ in range(min(BATCH, len(waiting)))]
        asked = [line for line in batch if line]
        if asked:
            await loop.run_in_executor(None, answer, len(asked))
            writer.writelines(asked)
            await writer.drain()
        if len(asked) < len(batch):
            break
    await reading
    writer.close()


async def _latencies(answer: Callable[[int], None], rate: float, seconds: float, seed: int) -> Floats:
    """Of requests at so many a second, from when each was due to its answer."""
    ended = asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _serve(answer, reader, writer)
        ended.set()

    handler = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = handler.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    gaps = np.random.default_rng(seed).exponential(1.0 / rate, int(rate * seconds))
    due = time.perf_counter() + 0.1 + np.cumsum(gaps)
    found = np.empty(len(due))

    async def send() -> None:
        for number, moment in enumerate(due.tolist()):
            wait = moment - time.perf_counter()
            if wait > 0.0:
                await asyncio.sleep(wait)
            writer.write(f"{number}\n".encode())
        await writer.drain()

    sending = asyncio.create_task(send())
    for _ in range(len(due)):
        number = int(await reader.readline())
        found[number] = time.perf_counter() - due[number]
    await sending
    writer.close()
    await ended.wait()
    handler.close()
    return found[len(found) // 10 :]


def _processor_latencies(answer: Callable[[int], None], rate: float, seconds: float, seed: int) -> Floats:
    """The same by the time of the processor, which other work on the machine does not lengthen; without connections."""
    arrival = np.cumsum(np.random.default_rng(seed).exponential(1.0 / rate, int(rate * seconds)))
    found = np.empty(len(arrival))
    first, free = 0, 0.0
    while first < len(arrival):
        start = max(free, float(arrival[first]))
        taken = max(1, int(np.searchsorted(arrival[first : first + BATCH], start, side="right")))
        began = time.thread_time()
        answer(taken)
        free = start + time.thread_time() - began
        found[first : first + taken] = free - arrival[first : first + taken]
        first += taken
    return found[len(found) // 10 :]


def runs(seconds: float) -> list[Run]:
    """A run at each share of the measured rate, by the clock and by the time of the processor."""
    answer = model()
    server, made = Server.of(BATCH, fixed_shares(BATCH)), []
    for name, clock in (("clock", time.perf_counter), ("processor", time.thread_time)):
        rate, sd = full_rate(answer, seconds, clock)
        for seed, share in enumerate(SHARES):
            if name == "clock":
                seen = asyncio.run(_latencies(answer, share * rate, seconds, seed))
            else:
                seen = _processor_latencies(answer, share * rate, seconds, seed)
            half, tail = np.quantile(seen, (0.5, 0.99)).tolist()
            predicted = server.latencies(floats([rate]), floats([sd]), floats([share * rate]))
            made.append(Run(name, share, len(seen), half, tail, *predicted))
    return made
