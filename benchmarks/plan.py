"""How long evaluating a whole fleet takes, how long a plan of it, and the next one when nothing is new.

    PYTHONPATH=operator python -m benchmarks.plan [jobs]

Times are processor seconds, and ratios to the time of sorting a million floats, which travels between machines better.
Memory is what the process has grown by at its peak while it evaluated, in MB.
"""

import argparse
import gc
import resource
import time
from collections import Counter
from dataclasses import replace

from benchmarks import bars
from benchmarks.bars import timed
from benchmarks.made_fleet import snapshot
from rightpool.planning.allocate.greedy import GreedyAllocator
from rightpool.planning.allocate.plan import Plan, plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.offers.evaluate import evaluate
from rightpool.prediction.step_model import StepModelPredictor

PREDICTOR, ALLOCATOR = StepModelPredictor(), GreedyAllocator()


def peak() -> float:
    """MB that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def planned(fleet: Fleet, previous: Plan | None = None) -> Plan:
    """The operator's own plan."""
    return plan(fleet, PREDICTOR, ALLOCATOR, previous)


def main(count: int) -> None:
    """Print the table."""
    fleet = snapshot(count)
    planned(snapshot(10))  # what is imported and made once
    gc.collect()
    before = peak()
    began = time.process_time()
    evaluated = evaluate(fleet, PREDICTOR)
    rows = {"evaluated from nothing": time.process_time() - began}
    grown = peak() - before
    placements = sum(len(job.entries) + 1 for job in evaluated.values())
    del evaluated
    gc.collect()
    began = time.process_time()
    first = planned(fleet)
    rows["first plan"] = time.process_time() - began
    later = replace(fleet, now=fleet.now + 10.0)
    second = planned(later, first)
    key = next(iter(later.pools))
    less = replace(later.pools[key], free=later.pools[key].free - 8)
    crowded = replace(later, pools={**later.pools, key: less})
    rows["nothing new"] = timed(lambda: planned(later, first))
    rows["fewer free chips"] = timed(lambda: planned(crowded, first))
    print(f"{count} jobs, {placements} placements, {second.reused} evaluations kept, {grown:.0f} MB to evaluate them")
    print(Counter(str(assessment.decision.reason) for assessment in first.assessments.values()).most_common())
    unit = bars.yardstick()
    for name, seconds in rows.items():
        each = seconds / count * 1e6
        print(f"{name:24} {seconds:7.3f} s  {seconds / unit:7.2f} × sorting a million  {each:7.1f} µs a job")
    print(bars.machine())
    if count == bars.JOBS:
        print(bars.against({bars.EVALUATION: rows["evaluated from nothing"], bars.EVALUATION_MEMORY: grown}))


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 100)  # as the operator does
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="?", type=int, default=10_000, help="how many jobs")
    main(parser.parse_args().jobs)
