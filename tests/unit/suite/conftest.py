"""Tests interrupt programs, also if the shell that started pytest ignores SIGINT."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(autouse=True)
def interruptible() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
