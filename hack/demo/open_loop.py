"""Requests in an open loop: each is sent when it is due, however long the others take."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Final

LONGEST: Final = 120.0
"""Seconds that an answer is waited for."""
AT_ONCE: Final = 64


class OpenLoop:
    """Sends requests at a rate, over a connection each. url_of: the address of a request, by its number; body: what is
    posted there, None to get it. What came of them is counted by code; one that was not answered counts as code 0."""

    def __init__(self, rate: float, url_of: Callable[[int], str], body: bytes | None = None) -> None:
        self._rate, self._url_of, self._body = rate, url_of, body
        self.answered: Counter[int] = Counter()
        self.seconds: list[float] = []
        """Of each request, since it was due."""
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> OpenLoop:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(LONGEST)
        self._pool.shutdown()

    def _run(self) -> None:
        begun, number = time.monotonic(), 0
        while not self._stop.wait(max(0.0, begun + number / self._rate - time.monotonic())):
            self._pool.submit(self._ask, self._url_of(number), begun + number / self._rate)
            number += 1

    def _ask(self, url: str, due: float) -> None:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, self._body), timeout=LONGEST) as answer:
                answer.read()
                code = answer.status
        except urllib.error.HTTPError as error:
            code = error.code
        except OSError:
            code = 0
        self.seconds.append(time.monotonic() - due)
        self.answered[code] += 1
