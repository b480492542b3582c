"""The cost of reading the measurements of N jobs from Prometheus: processor time and memory.

    PYTHONPATH=operator:profiler_sidecar:hack python -m benchmarks.prometheus_reader 100 1000 10000

`synthetic_prometheus` serves the responses from a process of its own. Each size is read in a process of its own too,
because peak memory is counted per process.
"""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.synthetic_fleet import synthetic_jobs
from benchmarks.worker import Worker, memory
from rightpool.telemetry.prometheus import PrometheusReader
from rightpool.telemetry.reader import Target

PORT = 21462
READINGS = 5
START_SECONDS = 120.0


def measure(jobs: int, url: str) -> None:
    """Print one row."""
    targets = [Target(job.revision_key, ((f"{job.key.name}-0", "10.0.0.1"),), 10.0) for job in synthetic_jobs(jobs)]
    reader = PrometheusReader(url, timeout=60.0, budget=300.0)
    before = memory(os.getpid())[1]
    spent = []
    for _ in range(READINGS):
        began = time.process_time()
        reading = reader.read(targets, time.time())
        spent.append(time.process_time() - began)
        if reading.failures or len(reading.samples) != jobs:
            raise RuntimeError(f"{len(reading.samples)} of {jobs} jobs were read: {reading.failures}")
    after = memory(os.getpid())[1]
    median = statistics.median(spent)
    print(f"| {jobs:,} | {median:.3f} | {1e6 * median / jobs:.0f} | {after - before:.0f} |", flush=True)


def main(sizes: list[int]) -> None:
    """Measure each size with a synthetic Prometheus of its own."""
    print("| jobs | CPU s for all responses, median | µs a job | peak memory for them, MB |")
    print("|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for jobs in sizes:
            log = Path(folder) / "prometheus.log"
            prometheus = Worker("benchmarks.synthetic_prometheus", [str(PORT), str(jobs)], log, {})
            try:
                url = f"http://127.0.0.1:{PORT}"
                _wait_until_up(prometheus, url)
                subprocess.run(
                    [sys.executable, "-m", "benchmarks.prometheus_reader", "--one", str(jobs), url], check=True
                )
            finally:
                prometheus.end()


def _wait_until_up(prometheus: Worker, url: str) -> None:
    reader, deadline = PrometheusReader(url, timeout=60.0), time.monotonic() + START_SECONDS
    while not reader.read([], time.time()).up:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no response within {START_SECONDS:.0f} s: {prometheus.log.read_text()[-2000:]}")
        _ = prometheus.pid
        time.sleep(0.2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        gc.set_threshold(50_000, 20, 100)  # as the operator does
        measure(int(sys.argv[2]), sys.argv[3])
    else:
        main([int(size) for size in sys.argv[1:] or ["1000", "10000"]])
