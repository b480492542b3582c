"""What the profiler costs beside a training step: the sidecar's processor time and memory, a scrape of it, and the
start of a Python program that does not train.

    PYTHONPATH=operator:profiler_sidecar python -m benchmarks.sidecar [SECONDS]

The sidecar is a process of its own, as in a pod, and hears sixteen ranks with one chip each, once a second, while it
is scraped every ten seconds. The programs start in pairs, with the agent and without it. Exit code 1 where a bar is
missed.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from rightpool import contract
from rightpool_profiler.install import install
from rightpool_profiler.report import BUCKETS, RATIOS

CHIPS: Final = 16
SCRAPE_SECONDS: Final = 10
SCRAPES: Final = 30  # timed, at the end
PAIRS: Final = 40
BARS: Final = {
    "processor time, % of a core": 1.0,
    "memory, MiB": 64.0,
    "scrape, ms": 20.0,
    "scrape, KB": 100.0,
    "start, ms more": 30.0,
}

_RUN: Final = """
import asyncio, dataclasses, os, sys
from rightpool_profiler.sidecar import Settings, run
asyncio.run(run(dataclasses.replace(Settings.read(os.environ), port=int(sys.argv[1]))))
"""


def report(rank: int, seconds: int) -> bytes:
    """What the agent of one rank says after so many seconds, with every counter that a chip can have."""
    steps = 10 * seconds
    chip = {
        "uuid": f"GPU-{rank:08x}-aaaa-bbbb-cccc-{rank:012x}",
        **dict.fromkeys(RATIOS, 0.6180339887),
        "memory_used": 61_234_567_890 + rank,
        "memory_total": 85_899_345_920,
        "power": 612.345,
        "power_limit": 700.0,
        "energy": 612.345 * seconds,
        "temperature": 61,
        "xid": 0,
        "repair": 0,
        "name": "NVIDIA-H100-80GB-HBM3",
        "sharing": "none",
        "rank": rank,
        "pipes": dict.fromkeys(contract.PIPES, 0.1234567),
        "throttle": dict.fromkeys(contract.REASONS, False),
        "errors": dict.fromkeys(contract.ERRORS, 0),
        "links": [[link, way, 1e9 * seconds] for link in ("pcie", "nvlink") for way in ("tx", "rx")],
    }
    message: dict[str, Any] = {
        "pid": 100 + rank,
        "start": 5_000 + rank,
        "rank": rank,
        "world": CHIPS,
        "at": 1e5 + seconds,
        "framework": "torch",
        "steps": steps,
        "seconds": 0.1 * steps,
        "counts": [0] * 6 + [steps] + [0] * (len(BUCKETS) - 6),
        "cpu": 0.9 * seconds,
        "samples": 32 * steps,
        "input_seconds": 0.001 * steps,
        "memory": 12e9,
        "memory_limit": 128e9,
        "platform": "gpu",
        "saved": time.time() - 600.0,
        "save_seconds": 1.5,
        "memory_retries": 0,
        "compile_seconds": 21.5,
        "model": {"precision": "bf16", "parameter_dtype": "fp32", "parameters": 7_000_000_000, "data": CHIPS},
        "chips": [chip],
    }
    return json.dumps(message, separators=(",", ":")).encode()


def sidecar(seconds: int) -> dict[str, float]:
    """Figures of a sidecar that ran for so long."""
    with tempfile.TemporaryDirectory(prefix="rightpool-", dir="/tmp") as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        for name in ("commands", "traces"):
            Path(folder, name).mkdir()
        environment = {**os.environ, contract.ENV_SHARED_DIR: folder, contract.ENV_KEPT_DIR: folder}
        environment[contract.ENV_CHIPS] = str(CHIPS)
        process = subprocess.Popen([sys.executable, "-c", _RUN, str(port)], env=environment)
        try:
            return _observed(process.pid, Path(folder, Path(contract.AGENT_SOCKET).name), port, seconds)
        finally:
            process.terminate()
            process.wait()


def _observed(pid: int, path: Path, port: int, seconds: int) -> dict[str, float]:
    while not path.exists():
        time.sleep(0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.connect(str(path))
        for rank in range(CHIPS):  # of the first one, which sets everything up
            out.send(report(rank, 1))
        _scrape(port)
        began, used = time.monotonic(), _processor_seconds(pid)
        for second in range(2, seconds + 2):
            for rank in range(CHIPS):
                out.send(report(rank, second))
            if second % SCRAPE_SECONDS == 0:
                _scrape(port)
            time.sleep(max(0.0, began + second - 1 - time.monotonic()))
        share = (_processor_seconds(pid) - used) / (time.monotonic() - began)
        scrapes = [_scrape(port) for _ in range(SCRAPES)]
    return {
        "processor time, % of a core": 100.0 * share,
        "memory, MiB": _most_memory(pid) / 2**20,
        "scrape, ms": 1e3 * statistics.median(took for took, _ in scrapes),
        "scrape, KB": max(size for _, size in scrapes) / 1e3,
    }


def _scrape(port: int) -> tuple[float, int]:
    """Seconds and bytes of one page, by a new connection."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", contract.PATH_METRICS)
    answer = connection.getresponse()
    body = answer.read()
    took = time.perf_counter() - began
    connection.close()
    pages = body.count(f"\n{contract.CHIP_BUSY}{{".encode())
    if answer.status != 200 or pages != CHIPS:
        raise RuntimeError(f"the sidecar answers {answer.status} and shows {pages} of {CHIPS} chips")
    return took, len(body)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _most_memory(pid: int) -> int:
    """Bytes that it has ever had resident."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def start() -> float:
    """Milliseconds that a program which does nothing starts later with the agent: the median over pairs."""
    with tempfile.TemporaryDirectory(prefix="rightpool-", dir="/tmp") as folder:
        install(Path(folder))
        bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        agent = {**bare, "PYTHONPATH": str(Path(folder, "agent")), contract.ENV_SHARED_DIR: folder}
        more = []
        for _ in range(PAIRS):
            without, beside = (_started(environment) for environment in (bare, agent))
            more.append(1e3 * (beside - without))
    return statistics.median(more)


def _started(environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True)
    return time.perf_counter() - began


def main() -> int:
    """Print the table."""
    figures = sidecar(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
    figures["start, ms more"] = start()
    for name, bar in BARS.items():
        missed = "" if figures[name] <= bar else "   missed"
        print(f"{name:30} {figures[name]:8.2f}   at most {bar:g}{missed}")
    return 0 if all(figures[name] <= bar for name, bar in BARS.items()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
