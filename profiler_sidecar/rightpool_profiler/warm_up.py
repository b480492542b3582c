"""Warm-up: a server gets requests over loopback first, so that what is slow at first is slow for no user.

A mark in the sidecar's own volume says that it is warm. The kubelet looks for it as this container's readiness, so that
no endpoint is there before. The mark stays when the sidecar alone is started anew, and goes when nothing listens.
"""

import asyncio
import http.client
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, NoReturn, Self

from rightpool import contract

STEADY: Final = 20
"""So many requests in a row are looked at."""
_DRIFT: Final = 0.1  # share by which the two halves of these may differ
PAUSE_SECONDS: Final = 1.0
"""Between two looks, and after a request that is not answered as it should be."""
PATIENCE_SECONDS: Final = 300.0
"""For how long requests may fail, all of them."""
_LONGEST_SECONDS: Final = 600.0  # of one request: the first ones may compile
_HOST: Final = "localhost"
_EXCERPT: Final = 40  # characters of an answer, and of the path, that a message repeats
_CHUNK: Final = 65_536


class WarmUpFailed(Exception):
    """The server does not answer these requests as it should. The message says how it does."""


class _NotYet(Exception):
    """The server says that it is not ready."""


@dataclass(frozen=True, slots=True)
class WarmUpSettings:
    """What is sent, and how often."""

    port: int
    """Of the server."""
    method: str
    """Of HTTP."""
    path: str
    """With the query."""
    content_type: str
    """Of the body."""
    requests: int
    """How many are answered, at most."""
    body: str | None
    """File that holds it; None for an empty one."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Of the environment. Raises ValueError."""
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(f"{contract.ENV_WARM_UP}: {error}") from None

    def read_body(self) -> bytes | None:
        """The body as it is now. Raises OSError and ValueError where it can't be read."""
        try:
            return None if self.body is None else Path(self.body).read_bytes()
        except FileNotFoundError:
            raise ValueError("the ConfigMap of its body, or its key, is not there") from None


class WarmUp:
    """Keeps the mark true."""

    def __init__(
        self,
        settings: WarmUpSettings,
        mark: Path,
        *,
        pause: float = PAUSE_SECONDS,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._settings = settings
        self._mark = mark
        self._pause = pause
        self._patience = patience

    async def run(self) -> NoReturn:
        """Warm the server up whenever it was started. Raises WarmUpFailed, and OSError where the mark can't be
        written."""
        while True:
            if not await self._listens():
                self._mark.unlink(missing_ok=True)
            elif not self._mark.exists():
                await self._warm()
            await asyncio.sleep(self._pause)

    async def _listens(self) -> bool:
        """Whether anything does. A server that is too busy to take a connection is there."""
        try:
            async with asyncio.timeout(self._pause):
                _, writer = await asyncio.open_connection(_HOST, self._settings.port)
        except TimeoutError:
            return True
        except OSError:
            return False
        writer.close()
        return True

    async def _warm(self) -> None:
        began, times = time.monotonic(), list[float]()
        failing = math.inf  # since when all requests do
        while len(times) < self._settings.requests and not is_steady(times):
            sent = time.monotonic()
            try:
                await asyncio.to_thread(self._send)
            except ConnectionRefusedError:
                return
            except _NotYet:
                failing = math.inf
            except (OSError, ValueError, http.client.HTTPException) as error:
                failing = min(failing, sent)
                if time.monotonic() - failing > self._patience:
                    raise WarmUpFailed(f"{self._what}: {error or type(error).__name__}") from error
            else:
                failing = math.inf
                times.append(time.monotonic() - sent)
                continue
            await asyncio.sleep(self._pause)
        self._mark.touch()
        took, last = time.monotonic() - began, _mean(times[-STEADY:])
        message = f"{len(times)} requests in {took:.3g} s, the last ones in {last:.3g} s each"
        print(f"rightpool_profiler: warmed up: {message}", file=sys.stderr, flush=True)

    @property
    def _what(self) -> str:
        return f"{self._settings.method} {self._settings.path[:_EXCERPT]}"

    def _send(self) -> None:
        """One request, over a connection of its own. Raises what its caller catches."""
        sender = Sender(self._settings, self._settings.read_body())
        try:
            sender.send()
        finally:
            sender.close()


class Sender:
    """Sends the request over one connection, again and again. Used by one thread."""

    def __init__(self, settings: WarmUpSettings, body: bytes | None) -> None:
        self._settings = settings
        self._body = body
        self._headers = {"User-Agent": "rightpool-warm-up"}
        if body is not None:
            self._headers["Content-Type"] = settings.content_type
        self._connection = http.client.HTTPConnection(_HOST, settings.port, timeout=_LONGEST_SECONDS)

    def close(self) -> None:
        """The next request has another connection."""
        self._connection.close()

    def send(self) -> None:
        """Ask, and wait for the answer. Raises OSError, ValueError and HTTPException where that is not as it should
        be."""
        settings, until = self._settings, time.monotonic() + _LONGEST_SECONDS
        try:
            self._connection.request(settings.method, settings.path, self._body, self._headers)
            answer = self._connection.getresponse()
            begins = answer.read(_EXCERPT)
            while time.monotonic() < until and answer.read(_CHUNK):
                pass
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise _NotYet
        if not 200 <= answer.status < 300:
            text = "".join(letter for letter in begins.decode("utf-8", "replace") if letter.isprintable())
            raise ValueError(f"HTTP {answer.status}: {text}")


def is_steady(times: Sequence[float]) -> bool:
    """Whether the last requests took as long as those before them: seconds, in their order."""
    last = times[-STEADY:]
    before, after = _mean(last[: STEADY // 2]), _mean(last[STEADY // 2 :])
    return len(last) == STEADY and abs(after - before) <= _DRIFT * before


def _mean(times: Sequence[float]) -> float:
    return math.fsum(times) / len(times) if times else math.nan
