"""The operator's whole process, with an API server and a Prometheus that answer from memory: start, cycles, a restart.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m benchmarks.process 100 1000 10000

What `cycle` leaves out is here: kopf's watches, the client, and reading Prometheus' answers. What `scale` has on top is
a real API server, which takes more of two cores than the operator.
"""

import signal
import statistics
import sys
import tempfile
import time
import urllib.request
from itertools import islice
from pathlib import Path
from typing import Final

import yaml

from benchmarks.sandbox import alone
from benchmarks.scale import REST_SECONDS, RESTART_SECONDS, STEADY_CYCLES, OperatorRun, p95, prometheus_for, tell
from benchmarks.worker import Worker, cpu_seconds, memory

PORT: Final = 21463
START_SECONDS: Final = 300.0


def main(sizes: list[int]) -> None:
    """One row for each size."""
    rows = [
        "| jobs | start to first plan, s | … CPU s | CPU s a cycle, median | p95 | µs a job | writes a minute "
        "| RSS, MB | peak | restart to first plan, s | … CPU s | … writes |",
        "|---:" * 12 + "|",
    ]
    with alone(), tempfile.TemporaryDirectory() as folder:
        for jobs in sizes:
            rows.append(measure(jobs, Path(folder)))
            tell("\n" + "\n".join(rows))


def measure(jobs: int, folder: Path) -> str:
    """One run, as a row."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(_kubeconfig()))
    server = Worker("benchmarks.memory_api", [str(PORT), str(jobs)], folder / "api.log", {})
    prometheus = prometheus_for(jobs, folder)
    operator: OperatorRun | None = None
    try:
        _wait(server)
        operator = OperatorRun(kubeconfig, folder)
        first, first_cpu = operator.first_plan(), cpu_seconds(operator.worker.pid)
        tell(f"{jobs:,} jobs: first plan after {first:.0f} s")
        operator.rest()
        before, began = _writes(), time.time()
        cycles = list(islice(operator.cycles(REST_SECONDS), STEADY_CYCLES))
        minutes = (time.time() - began) / 60.0
        written = _writes() - before
        resident, peak = memory(operator.worker.pid)
        operator.worker.end()
        before = _writes()
        operator = OperatorRun(kubeconfig, folder)
        again, again_cpu = operator.first_plan(), cpu_seconds(operator.worker.pid)
        time.sleep(RESTART_SECONDS)
        repeated = _writes() - before
        peak = max(peak, memory(operator.worker.pid)[1])
    finally:
        for worker in (*(() if operator is None else (operator.worker,)), server, prometheus):
            worker.end()
    cpu = [cycle.cpu for cycle in cycles]
    middle = statistics.median(cpu)
    return (
        f"| {jobs:,} | {first:.1f} | {first_cpu:.1f} | {middle:.2f} | {p95(cpu):.2f} | {1e6 * middle / jobs:.0f} "
        f"| {written / minutes:.1f} | {resident:.0f} | {peak:.0f} | {again:.1f} | {again_cpu:.1f} | {repeated} |"
    )


def _kubeconfig() -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "memory", "cluster": {"server": f"http://127.0.0.1:{PORT}"}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "memory", "context": {"cluster": "memory", "user": "nobody"}}],
        "current-context": "memory",
    }


def _writes() -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/writes", timeout=30) as answer:
        return int(answer.read())


def _wait(server: Worker) -> None:
    deadline = time.time() + START_SECONDS
    while True:
        try:
            _writes()
            return
        except OSError:
            _ = server.pid
            if time.time() > deadline:
                raise
            time.sleep(0.5)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what runs is taken down
    main([int(size) for size in sys.argv[1:] or ["100", "1000", "10000"]])
