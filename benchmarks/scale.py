"""The operator with 100, 1,000 and 10,000 jobs on 100,000 chips, compared with a naive operator.

    PYTHONPATH=operator:profiler_sidecar:hack python -m benchmarks.scale --jobs 100 1000 10000

The API server is real, kwok simulates nodes and pods, and `synthetic_prometheus` serves the measurements. Processor
seconds are those of the operator process, all threads included; wall-clock times also depend on the machine's load.
"""

import argparse
import json
import os
import re
import signal
import statistics
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from benchmarks import bars
from benchmarks.bars import Bar
from benchmarks.fleet_loader import FleetLoader
from benchmarks.sandbox import Sandbox, sandbox
from benchmarks.synthetic_fleet import SyntheticJob
from benchmarks.worker import Worker, cpu_seconds, memory
from devcluster.recipes import OPERATOR_ENVIRONMENT

KEY: Final = b"0123456789abcdef0123456789abcdef"  # the sidecars' tokens are derived from it
METRICS_PORT: Final = 21460
PROMETHEUS_PORT: Final = 21461
START_SECONDS: Final = 300.0
SETTLE_SECONDS: Final = 1200.0  # at most, until a newly discovered fleet causes no more status writes
QUIET_SECONDS: Final = 120.0  # without a status write; longer than a window, because full windows cause writes
STEADY_CYCLES: Final = 8
DECISION_SECONDS: Final = 150.0
RESTART_SECONDS: Final = 100.0
CHANGED_JOBS: Final = 12  # some keep the verdict that they have, and get no new Decision
NAIVE_SECONDS: Final = 40.0
_WRITES: Final = frozenset({"create", "update", "patch", "delete"})
_SAMPLE: Final = re.compile(r'^rightpool_operator_cycle_seconds_(sum|count)\{phase="(\w+)"\} (\S+)$', re.MULTILINE)
_READ: Final = (
    "rightpool_operator_cycle_seconds_sum",
    "rightpool_operator_cycle_seconds_count",
    "rightpool_operator_status_writes_total",
)
_WRITTEN: Final = re.compile(r"^rightpool_operator_status_writes_total\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cycle:
    """One planning cycle."""

    seconds: float
    """The sum of its phases."""
    cpu: float
    """Processor seconds of the process since the end of the previous cycle."""
    writes: float
    """Statuses written."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run of the operator. Times in seconds, memory in megabytes."""

    jobs: int
    first_cycle: float
    first_cycle_cpu: float
    settled: float
    """Until the last status write."""
    settling_writes: float
    """Statuses written until then."""
    cycles: Sequence[Cycle]
    """Cycles of the settled fleet."""
    api_cpu_per_cycle: float
    """Processor seconds of the API server."""
    rss: float
    peak: float
    writes_per_minute: float
    """API writes while nothing changes."""
    first_decision: Sequence[float]
    """Of each changed job: until its first new Decision."""
    final_decision: Sequence[float]
    """Of each changed job: until its Decision on a full new window."""
    restart: float
    """From the start of a new process to the end of its first cycle."""
    restart_cpu: float
    restart_writes: int
    """API writes after the restart."""


@dataclass(frozen=True, slots=True)
class NaiveResult:
    """One run of the naive operator."""

    jobs: int
    cpu_per_interval: float
    ticks: float
    """Ticks done, as a share of the scheduled ones."""
    writes: int
    peak: float


class Page:
    """The operator's metrics page. Some lines of it are read all the time; the whole page has thousands."""

    def __init__(self) -> None:
        self._url = f"http://127.0.0.1:{METRICS_PORT}/metrics"
        self._part = f"{self._url}?{urlencode([('name[]', name) for name in _READ])}"

    def read(self) -> tuple[int, float, float, int]:
        """Totals so far: cycles, their seconds, statuses written, plans of cycles that are over."""
        text = self._get(self._part)
        if not text:
            return 0, 0.0, 0.0, 0
        phases = {(kind, phase): float(value) for kind, phase, value in _SAMPLE.findall(text)}
        seconds = sum(value for (kind, _), value in phases.items() if kind == "sum")
        written = sum(map(float, _WRITTEN.findall(text)))
        return int(phases.get(("count", "execute"), 0)), seconds, written, int(phases.get(("count", "plan"), 0))

    def scrape(self) -> None:
        """Read all of it, as a Prometheus does."""
        self._get(self._url)

    @staticmethod
    def _get(url: str) -> str:
        """Nothing where the operator does not answer yet."""
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                text: str = response.read().decode()
                return text
        except OSError:
            return ""


class OperatorRun:
    """`rightpool operator` with default settings in the environment of its image, except for a higher API rate limit so
    that it settles sooner."""

    def __init__(self, kubeconfig: Path, logs: Path) -> None:
        key = logs / "key"
        key.write_bytes(KEY)
        environment = {
            **OPERATOR_ENVIRONMENT,
            "RIGHTPOOL_PROMETHEUS_URL": f"http://127.0.0.1:{PROMETHEUS_PORT}",
            "RIGHTPOOL_TOKEN_KEY_FILE": str(key),
            "RIGHTPOOL_BIND_ADDRESS": "127.0.0.1",
            "RIGHTPOOL_METRICS_PORT": str(METRICS_PORT),
            "RIGHTPOOL_LIVENESS_PORT": "0",
            "RIGHTPOOL_API_QPS": "500",
            "RIGHTPOOL_API_BURST": "500",
        }
        arguments = ["operator", "--kubeconfig", str(kubeconfig)]
        self.worker = Worker("rightpool.cli.main", arguments, logs / "operator.log", environment)
        self._page = Page()

    def first_cycle(self) -> float:
        """Seconds from the start of the process until its first cycle is over, with what it wrote."""
        deadline = time.time() + START_SECONDS
        while time.time() < deadline:
            _ = self.worker.pid
            if self._page.read()[3]:
                return time.time() - self.worker.began
            time.sleep(0.2)
        raise RuntimeError(f"no plan within {START_SECONDS:.0f} s:\n{self.worker.log.read_text()[-2000:]}")

    def cycles(self, seconds: float) -> Iterator[Cycle]:
        """Every cycle that ends within this time, with one scrape of the metrics in each."""
        deadline = time.time() + seconds
        count, spent, written, _ = self._page.read()
        cpu = cpu_seconds(self.worker.pid)
        while time.time() < deadline:
            time.sleep(0.5)
            now = self._page.read()
            if now[0] > count:
                self._page.scrape()
                used = cpu_seconds(self.worker.pid)
                yield Cycle((now[1] - spent) / (now[0] - count), (used - cpu) / (now[0] - count), now[2] - written)
                (count, spent, written, _), cpu = now, used

    def settle(self) -> float:
        """Wait until no status was written for QUIET_SECONDS. Returns the number of statuses written until then."""
        written, last = 0.0, time.time()
        for cycle in self.cycles(SETTLE_SECONDS):
            written += cycle.writes
            if cycle.writes:
                last = time.time()
            progress(f"cycle of {cycle.seconds:.1f} s, {cycle.cpu:.2f} CPU s, {cycle.writes:.0f} statuses")
            if time.time() - last > QUIET_SECONDS:
                return written
        progress(f"not settled after {SETTLE_SECONDS:.0f} s: the following figures are not of a steady state")
        return written

    def slow_down(self, changed: Sequence[SyntheticJob]) -> list[list[float]]:
        """Halve the speed of these jobs. Returns for each the seconds until each of its new Decisions."""
        since = time.time()
        for job in changed:
            _post(f"http://127.0.0.1:{PROMETHEUS_PORT}/change/{job.number}")
        decisions: list[list[float]] = []
        while time.time() - since < DECISION_SECONDS:
            time.sleep(2.0)
            decisions = [self._decisions(job, since) for job in changed]
            if all(len(times) > 1 for times in decisions):
                break
        return decisions

    def _decisions(self, job: SyntheticJob, since: float) -> list[float]:
        times = []
        with self.worker.log.open() as lines:
            for line in lines:
                if "decided: " in line and f'"{job.key}"' in line:
                    at = datetime.fromisoformat(json.loads(line)["time"]).timestamp() - since
                    if at > 0:
                        times.append(at)
        return times


def measure(box: Sandbox, jobs: int) -> Result:
    """One run: start, settle, steady state, a few jobs that become slower, and a restart on the settled fleet."""
    prometheus = prometheus_for(jobs, box.logs)
    operator = OperatorRun(box.kubeconfig, box.logs)
    try:
        first = operator.first_cycle()
        first_cpu = cpu_seconds(operator.worker.pid)
        progress(f"first cycle after {first:.0f} s")
        settling = operator.settle()
        settled = time.time() - operator.worker.began - QUIET_SECONDS
        began, api_cpu = time.time(), cpu_seconds(box.pid("kube-apiserver"))
        cycles = list(islice(operator.cycles(SETTLE_SECONDS), STEADY_CYCLES))
        ended = time.time()
        api_cpu = (cpu_seconds(box.pid("kube-apiserver")) - api_cpu) / len(cycles)
        steady = writes(box.audit_log, began, ended, "rightpool")
        rss, peak = memory(operator.worker.pid)
        progress(f"{steady} writes in {ended - began:.0f} s, {rss:.0f} MB")
        decisions = operator.slow_down([SyntheticJob(jobs - 1 - 4 * number) for number in range(CHANGED_JOBS)])
        operator.worker.end()
        operator = OperatorRun(box.kubeconfig, box.logs)
        restart = operator.first_cycle()
        restart_cpu = cpu_seconds(operator.worker.pid)
        progress(f"first cycle after a restart: {restart:.0f} s")
        time.sleep(RESTART_SECONDS)
        restart_writes = writes(box.audit_log, operator.worker.began, time.time(), "rightpool")
        return Result(
            jobs=jobs,
            first_cycle=first,
            first_cycle_cpu=first_cpu,
            settled=settled,
            settling_writes=settling,
            cycles=cycles,
            api_cpu_per_cycle=api_cpu,
            rss=rss,
            peak=max(peak, memory(operator.worker.pid)[1]),
            writes_per_minute=60.0 * steady / (ended - began),
            first_decision=[times[0] for times in decisions if times],
            final_decision=[times[-1] for times in decisions if len(times) > 1],
            restart=restart,
            restart_cpu=restart_cpu,
            restart_writes=restart_writes,
        )
    finally:
        operator.worker.end()
        prometheus.end()


def measure_naive(box: Sandbox, jobs: int) -> NaiveResult:
    """The naive operator on the same fleet."""
    prometheus = prometheus_for(jobs, box.logs)
    environment = {"KUBECONFIG": str(box.kubeconfig), "NAIVE_PROMETHEUS": f"http://127.0.0.1:{PROMETHEUS_PORT}"}
    naive = Worker("benchmarks.naive_operator", [], box.logs / "naive.log", environment)
    try:
        deadline = time.time() + START_SECONDS
        while _ticks(naive.log) < jobs and time.time() < deadline:  # each job once
            time.sleep(1.0)
        ticks, cpu, since = _ticks(naive.log), cpu_seconds(naive.pid), time.time()
        time.sleep(NAIVE_SECONDS)
        seconds = time.time() - since
        used, done = cpu_seconds(naive.pid) - cpu, _ticks(naive.log) - ticks
        written = writes(box.audit_log, naive.began, time.time(), "kopf")
        peak = memory(naive.pid)[1]
        return NaiveResult(jobs, used / seconds * 10.0, done / (jobs * seconds / 10.0), written, peak)
    finally:
        naive.end()
        prometheus.end()


def prometheus_for(jobs: int, logs: Path) -> Worker:
    """A synthetic Prometheus that serves this many jobs."""
    arguments = [str(PROMETHEUS_PORT), str(jobs)]
    worker = Worker("benchmarks.synthetic_prometheus", arguments, logs / "synthetic-prometheus.log", {})
    time.sleep(2.0)
    return worker


def _post(url: str) -> None:
    urllib.request.urlopen(urllib.request.Request(url, data=b"", method="POST"), timeout=30).close()


def _ticks(log: Path) -> int:
    lines = [line for line in log.read_text().splitlines() if re.fullmatch(r"[\d.]+ \d+", line)]
    return int(lines[-1].split()[1]) if lines else 0


def writes(log: Path, began: float, ended: float, agent: str) -> int:
    """API writes of a program according to the audit log, without renewals of its Lease."""
    count = 0
    for path in sorted(log.parent.glob("audit*.log")):
        with path.open() as lines:
            for line in lines:
                if f'"userAgent":"{agent}' not in line.replace('": "', '":"'):
                    continue
                entry = json.loads(line)
                at = datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()
                lease = entry.get("objectRef", {}).get("resource") == "leases"
                count += entry["verb"] in _WRITES and began <= at <= ended and not lease
    return count


def progress(message: str) -> None:
    """Print a line of progress."""
    print(f"{datetime.now(UTC):%H:%M:%S} {message}", flush=True)


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f}" if values else "none"


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


def table(results: Sequence[Result], naive: Sequence[NaiveResult]) -> str:
    """Both results as Markdown tables."""
    rows: list[tuple[str, list[str]]] = [
        ("start to the end of the first cycle, s", [f"{r.first_cycle:.1f}" for r in results]),
        ("… CPU s", [f"{r.first_cycle_cpu:.1f}" for r in results]),
        ("start to last status write, s", [f"{r.settled:.0f}" for r in results]),
        ("… statuses written", [f"{r.settling_writes:.0f}" for r in results]),
        ("cycle, median s", [f"{statistics.median(c.seconds for c in r.cycles):.2f}" for r in results]),
        ("cycle, p95 s", [f"{p95([c.seconds for c in r.cycles]):.2f}" for r in results]),
        ("CPU s a cycle, median", [f"{statistics.median(c.cpu for c in r.cycles):.2f}" for r in results]),
        ("CPU s a cycle, p95", [f"{p95([c.cpu for c in r.cycles]):.2f}" for r in results]),
        (
            "CPU ms a cycle and job",
            [f"{1000 * statistics.median(c.cpu for c in r.cycles) / r.jobs:.2f}" for r in results],
        ),
        ("API server, CPU s a cycle", [f"{r.api_cpu_per_cycle:.2f}" for r in results]),
        ("RSS, MB", [f"{r.rss:.0f}" for r in results]),
        ("peak RSS, MB", [f"{r.peak:.0f}" for r in results]),
        ("API writes a minute, nothing changes", [f"{r.writes_per_minute:.1f}" for r in results]),
        ("changed counter to first new Decision, s", [_median(r.first_decision) for r in results]),
        ("… to the Decision on a full new window, s", [_median(r.final_decision) for r in results]),
        ("restart to the end of the first cycle, s", [f"{r.restart:.1f}" for r in results]),
        ("… CPU s", [f"{r.restart_cpu:.1f}" for r in results]),
        (f"… API writes in {RESTART_SECONDS:.0f} s", [f"{r.restart_writes}" for r in results]),
    ]
    compared: list[tuple[str, list[str]]] = [
        ("CPU s in 10 s", [f"{n.cpu_per_interval:.2f}" for n in naive]),
        ("ticks done, share of those scheduled", [f"{n.ticks:.0%}" for n in naive]),
        ("API writes since its start", [f"{n.writes}" for n in naive]),
        ("peak RSS, MB", [f"{n.peak:.0f}" for n in naive]),
    ]
    text = _markdown("Rightpool", [f"{r.jobs:,} jobs" for r in results], rows)
    if naive:
        text += "\n\n" + _markdown("naive operator", [f"{n.jobs:,} jobs" for n in naive], compared)
    return text


def figures(result: Result) -> dict[Bar, float]:
    """Those that have a bar."""
    spent = [cycle.cpu for cycle in result.cycles]
    return {
        bars.CYCLE_MEDIAN: statistics.median(spent),
        bars.CYCLE_P95: p95(spent),
        bars.RSS: result.rss,
        bars.WRITES: result.writes_per_minute,
    }


def _markdown(corner: str, head: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    lines = ["| " + " | ".join([corner, *head]) + " |", "|---" + "|---:" * len(head) + "|"]
    lines += ["| " + " | ".join([name, *cells]) + " |" for name, cells in rows]
    return "\n".join(lines)


def main() -> None:
    """Print the tables after each size, so that an interrupted run leaves results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100, 1_000, 10_000], metavar="N")
    parser.add_argument("--output", type=Path, help="also write the tables to this Markdown file")
    options = parser.parse_args()
    results: list[Result] = []
    naive: list[NaiveResult] = []

    def show() -> None:
        tables = f"{table(results, naive)}\n\n{bars.machine()}"
        for result in results:
            if result.jobs == bars.JOBS:
                tables += f"\n\n{bars.against(figures(result))}"
        progress(f"load {os.getloadavg()[0]:.1f}\n{tables}")
        if options.output is not None:
            options.output.write_text(tables + "\n")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the control plane is stopped
    with sandbox() as box:
        loader = FleetLoader(box.kubeconfig, KEY)
        loader.prepare()
        for size in sorted(options.jobs):
            began = time.time()
            loader.grow(size)
            progress(f"{size:,} jobs created in {time.time() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
            results.append(measure(box, size))
            show()
            naive.append(measure_naive(box, size))
            show()


if __name__ == "__main__":
    main()
