"""How fast `rightpool ui` is: in the server alone, and in a Chromium where one is installed.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m benchmarks.page --jobs 1000

The objects come from memory, not from an API server: the page is made from what was read last, and reading goes on in
the background. Between two readings the rate of every job changes.
"""

import argparse
import itertools
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import uvicorn
from starlette.testclient import TestClient

from benchmarks.synthetic_fleet import Body, SyntheticJob, nodes, pools, synthetic_jobs
from rightpool.api.kubernetes import Resource
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.cli.connection import Connection
from rightpool.cli.ui.server import FRAGMENT, Pages, PictureSource, application
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import NODES, PROFILED_JOBS
from rightpool.hardware.pool import Pool
from rightpool.profiles.sample import Field

CHROMIUM = "/usr/bin/chromium"
TIMES = 10
FIRST_PAINT_SECONDS, UPDATE_SECONDS = 1.0, 0.3
"""Bars for the medians, for 1,000 jobs and two cores that nothing else uses. Missed, the exit code is 1."""
# In milliseconds.
FIRST_PAINT = """new Promise((done) => new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (entry.name === "first-contentful-paint") done(entry.startTime);
}).observe({ type: "paint", buffered: true }))"""
# With the frame that shows it.
UPDATE = """(async () => {
  const began = performance.now();
  await update();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
})()"""


class Memory:
    """The reading side of the client, over a synthetic fleet. Every list of jobs has other rates."""

    def __init__(self, count: int) -> None:
        machines, now = pools(), time.time()
        self._nodes = nodes()
        for number, node in enumerate(self._nodes):
            node["metadata"] |= {"uid": f"node-{number}", "resourceVersion": "1"}
        self._jobs = itertools.cycle(
            [[_stored(job, machines, now, version) for job in synthetic_jobs(count)] for version in (1, 2)]
        )

    def list_all(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> list[Body]:
        if resource is PROFILED_JOBS:
            return [body for body in next(self._jobs) if namespace in (None, body["metadata"]["namespace"])]
        return self._nodes if resource is NODES else []

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]:
        yield Listing(self.list_all(resource, namespace), "1", "")

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Body:
        raise NotFound(f"{name} not found", status=404)


def _stored(job: SyntheticJob, machines: dict[str, Pool], now: float, version: int) -> Body:
    """As it is after an hour, with a recommendation for one of three."""
    body = job.profiled_job()
    moment = datetime.fromtimestamp(now, UTC).isoformat()
    ref = job.first_revision(ProfiledJobSpec.model_validate(body["spec"]), machines, now)
    reading = job.reading(now)
    rate = reading[Field.SAMPLES_PER_SECOND] * (1.0 + 0.01 * version)
    body["metadata"] |= {
        "uid": f"job-{job.number}",
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": datetime.fromtimestamp(now - 4000.0, UTC).isoformat(),
    }
    conditions = [("Placed", "Running"), ("Profiled", "Measured")]
    body["status"] = job.status(ref) | {
        "conditions": [
            {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": moment}
            for kind, reason in conditions
        ],
        "profile": {
            "window": "60s",
            "measuredAt": moment,
            "samplesPerSecond": f"{rate:.2f}",
            "chipBusy": f"{reading[Field.CHIP_BUSY]:.3f}",
            "matrixActive": f"{reading[Field.MATRIX_ACTIVE]:.3f}",
            "memoryBandwidth": f"{reading[Field.MEMORY_BANDWIDTH]:.3f}",
            "exposedCommunication": "0.05",
            "bottleneck": "Compute",
            "quality": "Measured",
        },
    }
    if job.number % 3 == 0:
        body["status"]["recommendation"] = {
            "id": f"d-2-{ref.placement.pool}-1",
            "action": "Resize",
            "placement": {"pool": ref.placement.pool, "chips": 1, "replicas": 1, "capacity": "OnDemand"},
            "reason": "CheaperSizeMeetsTargets",
            "costPerHour": "1.00",
            "throughput": {"median": f"{rate / job.chips:.2f}", "low": "1", "high": "9", "sd": "0.1"},
            "savings": "0.2",
            "heldBy": "PolicyRecommendOnly",
        }
    return body


def _seconds(work: Callable[[], Any]) -> list[float]:
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return taken


def _tell(what: str, seconds: list[float]) -> None:
    print(f"{what:<46} median {statistics.median(seconds):.3f} s, worst {max(seconds):.3f} s", flush=True)


def _in_server(pages: Pages, path: str) -> None:
    client = TestClient(application(pages), base_url="http://127.0.0.1")
    _tell("reading and parsing the fleet, in the background", _seconds(pages.source.fleet))
    began = time.perf_counter()
    client.get(path)
    print(f"{'the first page of one job, which is waited for':<46} {time.perf_counter() - began:.3f} s")
    _tell("the fleet's page, made by the server", _seconds(lambda: client.get("/", headers={FRAGMENT: "1"})))
    print(f"{'its size':<46} {len(client.get('/').content) / 1e6:.2f} MB")


def _judged(what: str, seconds: list[float], bar: float) -> bool:
    """Whether the median is within the bar."""
    _tell(what, seconds)
    held = statistics.median(seconds) <= bar
    print(f"{'':<46} the bar is {bar} s: {'held' if held else 'MISSED'}")
    return held


def _in_browser(pages: Pages, query: str) -> bool:
    """Whether the bars are held."""
    from playwright.sync_api import sync_playwright

    server = uvicorn.Server(uvicorn.Config(application(pages), port=0, log_level="warning", lifespan="off"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/{query}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        paints, updates = [], []
        for _ in range(TIMES):
            page = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
            page.goto(address)
            paints.append(page.evaluate(FIRST_PAINT) / 1e3)
            if len(paints) < TIMES:
                page.close()
        for _ in range(TIMES):
            pages.fleet.renew()
            updates.append(page.evaluate(UPDATE) / 1e3)
        browser.close()
    server.should_exit = True
    painted = _judged("Chromium: from navigation to the first paint", paints, FIRST_PAINT_SECONDS)
    return _judged("Chromium: an update, every row changed, shown", updates, UPDATE_SECONDS) and painted


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    count = parser.parse_args().jobs
    print(f"{count} jobs")
    pages = Pages(PictureSource(Connection(Memory(count), "team-0"), True, "rightpool-system"))  # type: ignore[arg-type]
    _in_server(pages, "/jobs/team-0/job-0")
    held = True
    try:
        held = _in_browser(pages, "")
        print("with a row for every job, which is a link of the page:")
        held = _in_browser(pages, "?all=1") and held
    except ImportError:
        print("Chromium was not measured: playwright is not installed")
    except Exception as error:
        if "xecutable" not in str(error):
            raise
        print(f"Chromium was not measured: {CHROMIUM} is not there (Debian package chromium)")
    return int(not held and count <= 1000)


if __name__ == "__main__":
    sys.exit(main())
