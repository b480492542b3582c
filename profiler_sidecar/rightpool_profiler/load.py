"""Load on the server of a trial: sample requests over loopback, first one at a time, then twice as many, and so on.

So the batches that the server makes of them become fuller, and its own page shows what these take. Each request is
followed by the next one once it is answered.
"""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, Self

from rightpool import contract
from rightpool_profiler.warm_up import Sender, WarmUpSettings

FIRST_SECONDS: Final = 1.0
"""For each number of requests at once in the first round, in which a program may compile for batches of each size."""
PAUSE_SECONDS: Final = 1.0
"""After a request that is not answered as it should be."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How much is sent, and for how long."""

    at_once: int
    """Requests that are sent at once, at most."""
    seconds: float
    """Of one round, in which each number of them has its turn."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Of the environment. Raises ValueError."""
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(f"{contract.ENV_LOAD}: {error}") from None


class Load:
    """Sends requests, round after round."""

    def __init__(
        self,
        settings: LoadSettings,
        request: WarmUpSettings,
        warm: Path,
        *,
        first: float = FIRST_SECONDS,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        """request: what is sent. warm: a file that is there once the server is warm."""
        self._settings = settings
        self._request = request
        self._warm = warm
        self._body: bytes | None = None
        self._first = first
        self._pause = pause
        self._ended = threading.Event()

    async def run(self) -> NoReturn:
        """Until it is cancelled."""
        rungs = rungs_of(self._settings.at_once)
        while not self._warm.exists():
            await asyncio.sleep(self._pause)
        self._body = self._request.read_body()  # once: of many senders each would have a copy
        for rung in rungs:
            await self._at_once(rung, self._first)
        while True:
            for rung in rungs:
                await self._at_once(rung, self._settings.seconds / len(rungs))

    async def _at_once(self, requests: int, seconds: float) -> None:
        until, loop = time.monotonic() + seconds, asyncio.get_running_loop()
        with ThreadPoolExecutor(requests, thread_name_prefix="load") as threads:
            try:
                await asyncio.gather(*(loop.run_in_executor(threads, self._send, until) for _ in range(requests)))
            except asyncio.CancelledError:
                self._ended.set()
                raise

    def _send(self, until: float) -> None:
        sender = Sender(self._request, self._body)
        while time.monotonic() < until and not self._ended.is_set():
            try:
                sender.send()
            except Exception:  # whatever it is, the server's page tells of it, or counts no request
                self._ended.wait(min(self._pause, max(until - time.monotonic(), 0.0)))
        sender.close()


def rungs_of(at_once: int) -> tuple[int, ...]:
    """1, 2, 4 and so on up to as many."""
    return (*(2**power for power in range((at_once - 1).bit_length())), at_once)
