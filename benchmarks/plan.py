"""How long a plan takes: the first of a fleet, and the next one when nothing has changed but noise.

    PYTHONPATH=operator python -m benchmarks.plan [jobs]

Times are processor seconds, and ratios to the time of sorting a million floats, which travels between machines better.
"""

import gc
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from benchmarks.fleet import again, snapshot
from rightpool.planning.plan import plan


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


def main(count: int) -> None:
    """Print the table."""
    unit = yardstick()
    fleet = snapshot(count)
    gc.collect()
    began = time.process_time()
    first = plan(fleet)
    rows = {"first plan": time.process_time() - began}
    candidates = sum(len(assessment.candidates) for assessment in first.assessments.values())
    later = again(fleet)
    second = plan(later, first)
    key = next(iter(later.pools))
    less = replace(later.pools[key], free=later.pools[key].free - 8)
    crowded = replace(later, pools={**later.pools, key: less})
    rows["same jobs, new noise"] = timed(lambda: plan(later, first))
    rows["fewer free chips"] = timed(lambda: plan(crowded, first))
    print(f"{count} jobs, {candidates} candidates, {second.reused} surveys kept")
    print(Counter(str(assessment.decision.reason) for assessment in first.assessments.values()).most_common())
    for name, seconds in rows.items():
        each = seconds / count * 1e6
        print(f"{name:24} {seconds:7.3f} s  {seconds / unit:7.2f} × sorting a million  {each:7.1f} µs a job")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
