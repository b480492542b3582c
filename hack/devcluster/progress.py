"""What the person at the terminal sees while something takes its time."""

import sys
import time
from typing import TextIO


class Progress:
    """Lines with the seconds since the start in front: `[  42s] building kube-apiserver (about 4 min cold)`."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._start = time.monotonic()

    def say(self, message: str) -> None:
        if not self._quiet:
            print(f"[{self.elapsed:4.0f}s] {message}", file=self._stream, flush=True)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start
