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

from tests.patience import PATIENCE


class OpenLoop:
    """Sends GETs at a rate. url_of: the address of a request, by its number. What came of them is counted by code; one
    that was not answered counts as code 0."""

    def __init__(self, rate: float, url_of: Callable[[int], str]) -> None:
        self._rate, self._url_of = rate, url_of
        self.answered: Counter[int] = Counter()
        self._pool = ThreadPoolExecutor(16)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> OpenLoop:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        self._pool.shutdown()

    def _run(self) -> None:
        begun, number = time.monotonic(), 0
        while not self._stop.wait(max(0.0, begun + number / self._rate - time.monotonic())):
            self._pool.submit(self._ask, self._url_of(number))
            number += 1

    def _ask(self, url: str) -> None:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                code = answer.status
        except urllib.error.HTTPError as error:
            code = error.code
        except OSError:
            code = 0
        self.answered[code] += 1
