"""What the operator may cost at 10,000 jobs, and how fast the machine is that a figure was measured on."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

JOBS: Final = 10_000
"""Size of the fleet that the bars are about."""
SET_AT: Final = 0.18
"""The yardstick, in seconds, of the machine that they were set for."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The most that something may be."""

    what: str
    most: float
    unit: str

    def row(self, found: float) -> str:
        """As a row of a Markdown table."""
        return f"| {self.what} | {found:.3g} {self.unit} | {self.most:g} | {'ok' if found <= self.most else 'missed'} |"


FIRST_CYCLE: Final = Bar("first cycle", 3.0, "CPU s")
CYCLE_MEDIAN: Final = Bar("later cycles, median", 1.2, "CPU s")
CYCLE_P95: Final = Bar("later cycles, 95th percentile", 1.6, "CPU s")
RSS: Final = Bar("RSS", 450.0, "MB")
WRITES: Final = Bar("API writes a minute, nothing changes", 0.0, "")
ADOPTED: Final = Bar("later cycle, a third of the jobs adopted", 1.1, "x")
EVALUATION: Final = Bar("fleet evaluated from nothing", 1.0, "CPU s")
EVALUATION_MEMORY: Final = Bar("memory to evaluate it", 200.0, "MB")
START: Final = Bar("requests to start a job of one pod", 5.0, "")
START_WITH_SERVICE: Final = Bar("requests to start a job with a Service", 6.0, "")


def against(found: Mapping[Bar, float]) -> str:
    """Figures beside their bars, as a Markdown table."""
    return "\n".join(
        ["| | found | bar | |", "|---|---:|---:|---|", *(bar.row(figure) for bar, figure in found.items())]
    )


def timed(work: Callable[[], object]) -> float:
    """Processor seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began


def yardstick() -> float:
    """Processor seconds for sorting a million random floats; the best of three."""
    draw = random.Random(0)
    numbers = [draw.random() for _ in range(1_000_000)]
    return min(timed(lambda: sorted(numbers)) for _ in range(3))


def machine() -> str:
    """How fast it is, in words."""
    return f"A million random floats are sorted in {yardstick():.2f} s here, and in {SET_AT} s where the bars were set."
