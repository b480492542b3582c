"""A value that takes long to read: shown as it was read last, and read anew in the background while somebody looks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rightpool.cli.connection import CliError, error_message
from rightpool.cluster.errors import ClusterError

T = TypeVar("T")
# So many times its age at most, and a value is not shown any more without reading it anew.
LONG: Final = 6.0
# So many times as long as reading took, nothing is read anew: a large fleet takes a quarter of a core at most.
REST: Final = 3.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadProblem:
    """Why it could not be read."""

    message: str
    """For the reader, with what to do."""
    status: int
    """Of the answer where nothing was ever read: 404 there is none, 502 the cluster refuses, 500 a defect."""


@dataclass(frozen=True, slots=True)
class Latest(Generic[T]):
    """What is known. At least one of the two is set."""

    value: T | None
    """As it was read last."""
    problem: ReadProblem | None
    """Of the newest attempt."""


class Cached(Generic[T]):
    """Thread-safe. The first caller waits; later ones get what there is."""

    def __init__(self, read: Callable[[], T], seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """seconds: how old a value may be when it is asked for, before it is read anew."""
        self._read = read
        self._seconds = seconds
        self._clock = clock
        self._latest: Latest[T] | None = None
        self._read_at = 0.0
        self._took = 0.0
        self._reading = threading.Lock()

    def latest(self) -> Latest[T]:
        """What is known now. A value that is too old is read anew in the background, for the next call.

        Where nobody has asked for long, the call waits for it.
        """
        known = self._fresher_than(LONG * max(self._seconds, self._took))
        if known is None:
            with self._reading:
                return self._fresher_than(LONG * max(self._seconds, self._took)) or self._refreshed()
        if self._fresher_than(max(self._seconds, REST * self._took)) is None and self._reading.acquire(blocking=False):
            threading.Thread(target=self._refresh_and_release, daemon=True).start()
        return known

    def _fresher_than(self, seconds: float) -> Latest[T] | None:
        return self._latest if self._clock() - self._read_at <= seconds else None

    def renew(self) -> Latest[T]:
        """Read it anew, and wait for it."""
        with self._reading:
            return self._refreshed()

    def _refresh_and_release(self) -> None:
        try:
            self._refreshed()
        finally:
            self._reading.release()

    def _refreshed(self) -> Latest[T]:
        value = None if self._latest is None else self._latest.value
        problem: ReadProblem | None = None
        began = self._clock()
        try:
            value = self._read()
        except CliError as error:
            problem = ReadProblem(str(error), 404)
        except ClusterError as error:
            problem = ReadProblem(error_message(error), 502)
        except Exception as error:  # a defect must not end the page
            logger.exception("the page could not be made")
            problem = ReadProblem(f"a defect of Rightpool; please report it: {type(error).__name__}: {error}", 500)
        self._latest = Latest(value, problem)
        self._read_at = self._clock()
        self._took = self._read_at - began
        return self._latest
