"""Programs here are interrupted, also where the shell that began it all ignores interrupts."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(autouse=True)
def interruptible() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
