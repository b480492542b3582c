"""Progress: what is said while something takes long."""

from __future__ import annotations

import io
import threading

from devcluster.progress import Progress
from tests.patience import PATIENCE


class Heard(io.StringIO):
    """Tells when a number of lines was written."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self.enough = threading.Event()
        self._lines = lines

    def flush(self) -> None:
        if self.getvalue().count("\n") >= self._lines:
            self.enough.set()


def test_what_takes_long_is_said_again_until_it_is_over() -> None:
    stream = Heard(3)
    with Progress(stream).during("building kubelet, 2 of 9", interval=0.01):
        assert stream.enough.wait(PATIENCE)
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("] building kubelet, 2 of 9")
    assert all(line.endswith("] still building kubelet, 2 of 9") for line in lines[1:])


def test_a_quiet_one_says_nothing() -> None:
    stream = io.StringIO()
    with Progress(stream, quiet=True).during("building"):
        pass
    assert stream.getvalue() == ""
