"""How the operator behaves with 100, 1,000 and 10,000 jobs over 100,000 chips, and a naive one beside it.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m benchmarks.scale --jobs 100 1000 10000

The API server is real, nodes and pods are kwok's, measurements come from `synthetic_prometheus`. Times of the machine
are what they are; processor seconds are the operator process' own, of all its threads.
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

from benchmarks.crowd import Member
from benchmarks.sandbox import Sandbox, sandbox
from benchmarks.settlement import Settlement
from benchmarks.worker import Worker, cpu_seconds, memory

KEY: Final = b"0123456789abcdef0123456789abcdef"  # that the sidecars' tokens are derived from
METRICS_PORT: Final = 21460
PROMETHEUS_PORT: Final = 21461
START_SECONDS: Final = 300.0
REST_SECONDS: Final = 1200.0  # until there is nothing left to say about a fleet that was just found
QUIET_SECONDS: Final = 120.0  # the crowd's windows become full meanwhile, and there is more to say
STEADY_CYCLES: Final = 8
DECISION_SECONDS: Final = 150.0
RESTART_SECONDS: Final = 100.0
CHANGED: Final = 3  # jobs
NAIVE_SECONDS: Final = 40.0
_WRITES: Final = frozenset({"create", "update", "patch", "delete"})
_SAMPLE: Final = re.compile(r'^rightpool_operator_cycle_seconds_(sum|count)\{phase="(\w+)"\} (\S+)$', re.MULTILINE)
_WRITTEN: Final = re.compile(r"^rightpool_operator_status_writes_total\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cycle:
    """seconds: by its phases' own clock. cpu: of the process, since the end of the cycle before. writes: statuses."""

    seconds: float
    cpu: float
    writes: float


@dataclass(frozen=True, slots=True)
class Result:
    """One run of the operator. Times in seconds, memory in megabytes."""

    jobs: int
    first_plan: float
    first_plan_cpu: float
    settled: float
    settling_writes: float
    cycles: Sequence[Cycle]
    api_cpu_per_cycle: float
    rss: float
    peak: float
    writes_per_minute: float
    noticed: Sequence[float]
    decided: Sequence[float]
    again: float
    again_cpu: float
    repeated: int


@dataclass(frozen=True, slots=True)
class Naive:
    """One run of the naive operator. ticks: share of those that were due."""

    jobs: int
    cpu_per_interval: float
    ticks: float
    writes: int
    peak: float


class Page:
    """The operator's metrics page."""

    def __init__(self) -> None:
        self._url = f"http://127.0.0.1:{METRICS_PORT}/metrics"

    def read(self) -> tuple[int, float, float, int]:
        """Cycles, seconds in them, statuses written, plans."""
        try:
            with urllib.request.urlopen(self._url, timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            return 0, 0.0, 0.0, 0
        found = {(kind, phase): float(value) for kind, phase, value in _SAMPLE.findall(text)}
        seconds = sum(value for (kind, _), value in found.items() if kind == "sum")
        written = sum(map(float, _WRITTEN.findall(text)))
        return int(found.get(("count", "execute"), 0)), seconds, written, int(found.get(("count", "plan"), 0))


class OperatorRun:
    """`rightpool operator` with its own settings, but for a rate limit that lets it settle in the time there is."""

    def __init__(self, kubeconfig: Path, logs: Path) -> None:
        key = logs / "key"
        key.write_bytes(KEY)
        environment = {
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

    def first_plan(self) -> float:
        """Seconds until the first plan was made."""
        deadline = time.time() + START_SECONDS
        while time.time() < deadline:
            _ = self.worker.pid
            if self._page.read()[3]:
                return time.time() - self.worker.began
            time.sleep(0.2)
        raise RuntimeError(f"no plan within {START_SECONDS:.0f} s:\n{self.worker.log.read_text()[-2000:]}")

    def cycles(self, seconds: float) -> Iterator[Cycle]:
        """Every cycle that ends within that time."""
        deadline = time.time() + seconds
        count, spent, written, _ = self._page.read()
        cpu = cpu_seconds(self.worker.pid)
        while time.time() < deadline:
            time.sleep(0.5)
            now = self._page.read()
            if now[0] > count:
                used = cpu_seconds(self.worker.pid)
                yield Cycle((now[1] - spent) / (now[0] - count), (used - cpu) / (now[0] - count), now[2] - written)
                (count, spent, written, _), cpu = now, used

    def rest(self) -> float:
        """Until nothing was said for so long that there is nothing left to say; the statuses written on the way."""
        written, last = 0.0, time.time()
        for cycle in self.cycles(REST_SECONDS):
            written += cycle.writes
            if cycle.writes:
                last = time.time()
            tell(f"cycle of {cycle.seconds:.1f} s, {cycle.cpu:.2f} CPU s, {cycle.writes:.0f} statuses")
            if time.time() - last > QUIET_SECONDS:
                return written
        tell(f"still not settled after {REST_SECONDS:.0f} s: what follows is no steady state")
        return written

    def told_of(self, changed: Sequence[Member]) -> list[list[float]]:
        """Jobs whose speed is halved now: seconds until each change of decision about them."""
        since = time.time()
        for member in changed:
            _post(f"http://127.0.0.1:{PROMETHEUS_PORT}/change/{member.number}")
        told: list[list[float]] = []
        while time.time() - since < DECISION_SECONDS:
            time.sleep(2.0)
            told = [self._decisions(member, since) for member in changed]
            if all(len(times) > 1 for times in told):
                break
        return told

    def _decisions(self, member: Member, since: float) -> list[float]:
        found = []
        with self.worker.log.open() as lines:
            for line in lines:
                if "decided: " in line and f'"{member.key}"' in line:
                    at = datetime.fromisoformat(json.loads(line)["time"]).timestamp() - since
                    if at > 0:
                        found.append(at)
        return found


def measure(box: Sandbox, jobs: int) -> Result:
    """One run: start, rest, steady state, a few jobs that change, and a start over a fleet that has been told all."""
    prometheus = prometheus_for(jobs, box.logs)
    operator = OperatorRun(box.kubeconfig, box.logs)
    try:
        first = operator.first_plan()
        first_cpu = cpu_seconds(operator.worker.pid)
        tell(f"first plan after {first:.0f} s")
        settling = operator.rest()
        settled = time.time() - operator.worker.began - QUIET_SECONDS
        began, api_cpu = time.time(), cpu_seconds(box.pid("kube-apiserver"))
        cycles = list(islice(operator.cycles(REST_SECONDS), STEADY_CYCLES))
        ended = time.time()
        api_cpu = (cpu_seconds(box.pid("kube-apiserver")) - api_cpu) / len(cycles)
        steady = writes(box.audit_log, began, ended, "rightpool")
        rss, peak = memory(operator.worker.pid)
        tell(f"{steady} writes in {ended - began:.0f} s, {rss:.0f} MB")
        told = operator.told_of([Member(jobs - 1 - 4 * number) for number in range(CHANGED)])
        operator.worker.end()
        operator = OperatorRun(box.kubeconfig, box.logs)
        again = operator.first_plan()
        again_cpu = cpu_seconds(operator.worker.pid)
        tell(f"first plan after a restart: {again:.0f} s")
        time.sleep(RESTART_SECONDS)
        repeated = writes(box.audit_log, operator.worker.began, time.time(), "rightpool")
        return Result(
            jobs=jobs,
            first_plan=first,
            first_plan_cpu=first_cpu,
            settled=settled,
            settling_writes=settling,
            cycles=cycles,
            api_cpu_per_cycle=api_cpu,
            rss=rss,
            peak=max(peak, memory(operator.worker.pid)[1]),
            writes_per_minute=60.0 * steady / (ended - began),
            noticed=[times[0] for times in told if times],
            decided=[times[-1] for times in told if len(times) > 1],
            again=again,
            again_cpu=again_cpu,
            repeated=repeated,
        )
    finally:
        operator.worker.end()
        prometheus.end()


def measure_naive(box: Sandbox, jobs: int) -> Naive:
    """The same crowd, looked after by a timer for each job."""
    prometheus = prometheus_for(jobs, box.logs)
    environment = {"KUBECONFIG": str(box.kubeconfig), "NAIVE_PROMETHEUS": f"http://127.0.0.1:{PROMETHEUS_PORT}"}
    naive = Worker("benchmarks.naive_operator", [], box.logs / "naive.log", environment)
    try:
        deadline = time.time() + START_SECONDS
        while _ticks(naive.log) < jobs and time.time() < deadline:  # everyone once
            time.sleep(1.0)
        ticks, cpu, since = _ticks(naive.log), cpu_seconds(naive.pid), time.time()
        time.sleep(NAIVE_SECONDS)
        seconds = time.time() - since
        used, looked = cpu_seconds(naive.pid) - cpu, _ticks(naive.log) - ticks
        written = writes(box.audit_log, naive.began, time.time(), "kopf")
        peak = memory(naive.pid)[1]
        return Naive(jobs, used / seconds * 10.0, looked / (jobs * seconds / 10.0), written, peak)
    finally:
        naive.end()
        prometheus.end()


def prometheus_for(jobs: int, logs: Path) -> Worker:
    """Measurements of so many jobs."""
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
    """Writes that a program asked the API server for, but for the renewal of its Lease, by the audit log."""
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


def tell(what: str) -> None:
    """A line of progress."""
    print(f"{datetime.now(UTC):%H:%M:%S} {what}", flush=True)


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f}" if values else "none"


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


def table(results: Sequence[Result], naive: Sequence[Naive]) -> str:
    """Both, as Markdown."""
    rows: list[tuple[str, list[str]]] = [
        ("start to first plan, s", [f"{r.first_plan:.1f}" for r in results]),
        ("… CPU s", [f"{r.first_plan_cpu:.1f}" for r in results]),
        ("start to nothing left to say, s", [f"{r.settled:.0f}" for r in results]),
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
        ("changed counter to first new Decision, s", [_median(r.noticed) for r in results]),
        ("… to the Decision on a full new window, s", [_median(r.decided) for r in results]),
        ("restart to first plan, s", [f"{r.again:.1f}" for r in results]),
        ("… CPU s", [f"{r.again_cpu:.1f}" for r in results]),
        (f"… API writes in {RESTART_SECONDS:.0f} s", [f"{r.repeated}" for r in results]),
    ]
    compared: list[tuple[str, list[str]]] = [
        ("CPU s in 10 s", [f"{n.cpu_per_interval:.2f}" for n in naive]),
        ("ticks done, of those due", [f"{n.ticks:.0%}" for n in naive]),
        ("API writes from its start on", [f"{n.writes}" for n in naive]),
        ("peak RSS, MB", [f"{n.peak:.0f}" for n in naive]),
    ]
    text = _markdown("Rightpool", [f"{r.jobs:,} jobs" for r in results], rows)
    if naive:
        text += "\n\n" + _markdown("naive operator", [f"{n.jobs:,} jobs" for n in naive], compared)
    return text


def _markdown(corner: str, head: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    lines = ["| " + " | ".join([corner, *head]) + " |", "|---" + "|---:" * len(head) + "|"]
    lines += ["| " + " | ".join([name, *cells]) + " |" for name, cells in rows]
    return "\n".join(lines)


def main() -> None:
    """Print a table after each size, so that a run that is cut short has said something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100, 1_000, 10_000], metavar="N")
    parser.add_argument("--output", type=Path, help="the tables go here too, as Markdown")
    options = parser.parse_args()
    results: list[Result] = []
    naive: list[Naive] = []

    def show() -> None:
        tables = table(results, naive)
        tell(f"load {os.getloadavg()[0]:.1f}\n{tables}")
        if options.output is not None:
            options.output.write_text(tables + "\n")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what runs is taken down
    with sandbox() as box:
        settlement = Settlement(box.kubeconfig, KEY)
        settlement.found()
        for size in sorted(options.jobs):
            began = time.time()
            settlement.grow(size)
            tell(f"{size:,} jobs made in {time.time() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
            results.append(measure(box, size))
            show()
            naive.append(measure_naive(box, size))
            show()


if __name__ == "__main__":
    main()
