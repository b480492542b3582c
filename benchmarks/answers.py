"""What reading Prometheus' answers for N jobs costs the operator: processor time, bytes and memory.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m benchmarks.answers 100 1000 10000

The answers come from `synthetic_prometheus`, a process of its own. A size is read in a process of its own too, because
the most memory that a process ever took is not given back.
"""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.crowd import members
from benchmarks.worker import Worker, memory
from rightpool.telemetry.prometheus import PrometheusSource
from rightpool.telemetry.source import Target

PORT = 21462
READINGS = 5
START_SECONDS = 120.0


def measure(jobs: int, url: str) -> None:
    """Print one row."""
    targets = [Target(member.revision, ((f"{member.key.name}-0", "10.0.0.1"),), 10.0) for member in members(jobs)]
    source = PrometheusSource(url, timeout=60.0, budget=300.0)
    before = memory(os.getpid())[1]
    spent = []
    for _ in range(READINGS):
        began = time.process_time()
        reading = source.read(targets, time.time())
        spent.append(time.process_time() - began)
        if reading.failures or len(reading.samples) != jobs:
            raise RuntimeError(f"{len(reading.samples)} of {jobs} jobs were read: {reading.failures}")
    after = memory(os.getpid())[1]
    middle = statistics.median(spent)
    print(f"| {jobs:,} | {middle:.3f} | {1e6 * middle / jobs:.0f} | {after - before:.0f} |", flush=True)


def main(sizes: list[int]) -> None:
    """Each size with a Prometheus of its own."""
    print("| jobs | CPU s for all answers, median | µs a job | memory for them at most, MB |")
    print("|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for jobs in sizes:
            log = Path(folder) / "prometheus.log"
            prometheus = Worker("benchmarks.synthetic_prometheus", [str(PORT), str(jobs)], log, {})
            try:
                url = f"http://127.0.0.1:{PORT}"
                _wait(prometheus, url)
                subprocess.run([sys.executable, "-m", "benchmarks.answers", "--one", str(jobs), url], check=True)
            finally:
                prometheus.end()


def _wait(prometheus: Worker, url: str) -> None:
    source, deadline = PrometheusSource(url, timeout=60.0), time.monotonic() + START_SECONDS
    while not source.read([], time.time()).up:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no answer within {START_SECONDS:.0f} s: {prometheus.log.read_text()[-2000:]}")
        _ = prometheus.pid
        time.sleep(0.2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        gc.set_threshold(50_000, 20, 100)  # as the operator does
        measure(int(sys.argv[2]), sys.argv[3])
    else:
        main([int(size) for size in sys.argv[1:] or ["1000", "10000"]])
