"""Progress messages on the terminal."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

STILL_SECONDS: Final = 30.0


class Progress:
    """Lines with the seconds since the start in front: `[  42s] building kube-apiserver (about 4 min cold)`."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._start = time.monotonic()

    def say(self, message: str) -> None:
        if not self._quiet:
            print(f"[{self.elapsed:4.0f}s] {message}", file=self._stream, flush=True)

    @contextmanager
    def during(self, message: str, interval: float = STILL_SECONDS) -> Iterator[None]:
        """Say it now, and every half a minute that it still goes on."""
        self.say(message)
        over = threading.Event()

        def repeat() -> None:
            while not over.wait(interval):
                self.say(f"still {message}")

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start
