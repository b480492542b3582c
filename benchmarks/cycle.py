"""A planning cycle without a cluster: the operator's own planner on a store that was filled, with answers from memory.

    PYTHONPATH=operator:profiler_sidecar:hack python -m benchmarks.cycle 1000 10000

What is left out is what `scale` measures on top: kopf's watches, the API server, and reading Prometheus' answers.
Making those answers and keeping what is written is the benchmark's own work; its processor time does not count.
"""

import argparse
import gc
import logging
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from pydantic_core import from_json, to_json

from benchmarks import bars
from benchmarks.adopted_fleet import EVERY, Adoption, pods
from benchmarks.bars import Bar
from benchmarks.synthetic_fleet import Body, SyntheticJob, nodes, pools, synthetic_jobs
from rightpool.api.kubernetes import JOBS, Resource
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.cli.decider import Decider
from rightpool.cluster.client import Listing
from rightpool.cluster.events import EventRecorder
from rightpool.cluster.resources import ACCELERATOR_POOLS, CONFIG_MAPS, NODES, PODS, PROFILED_JOBS
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.profiles.sample import Sample
from rightpool.runtime.act.admissions import Admissions
from rightpool.runtime.act.adopt_labels import AdoptLabels
from rightpool.runtime.act.chargeback_books import ChargebackBooks
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.demand_records import DemandRecords
from rightpool.runtime.act.executor import Executor
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.act.policy_publisher import PolicyPublisher
from rightpool.runtime.act.pool_publisher import PoolPublisher
from rightpool.runtime.act.status_publisher import StatusPublisher
from rightpool.runtime.health import Health
from rightpool.runtime.loop import Parts, Planner
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.observe.members import Members
from rightpool.runtime.observe.server_feed import ServerFeed
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from rightpool.runtime.observe.windows import RevisionWindows
from rightpool.telemetry.reader import Target, TelemetryReader, TelemetryReading
from rightpool.telemetry.server_scrape import ServerScrape

INTERVAL = 10.0
QUIET = 8  # cycles without a write, longer than a window
SETTLING = 20  # times as many
STEADY = 12
RESTARTED = 12
FILLING = 6  # of these, until windows are full


_WRITTEN_AGAIN = (PROFILED_JOBS, ACCELERATOR_POOLS)


class Meter:
    """Processor seconds of the operator alone."""

    def __init__(self) -> None:
        self._others = 0.0

    def read(self) -> float:
        """Seconds so far, without those of the others."""
        return time.process_time() - self._others

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is done meanwhile is other programs' work."""
        began = time.process_time()
        try:
            yield
        finally:
            self._others += time.process_time() - began


METER = Meter()


class Cluster:
    """Stands for client, relister and Lease: answers at once, and always with yes."""

    held = True
    ready = True
    missed = 0
    transitions = 0

    def __init__(self) -> None:
        self.writes = 0
        # In a file: an API server would have the objects, and not the process that is measured.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._places: dict[str, tuple[int, int]] = {}
        self.pools: Mapping[str, Pool] = {}

    def held_for(self, seconds: float) -> bool:
        """The Lease is never taken away."""
        return self.held

    def run(self) -> None:
        """Nothing to list."""

    def submit(self, function: Any, *arguments: Any) -> Future[None]:
        """At once, in the caller's thread."""
        future: Future[None] = Future()
        future.set_result(function(*arguments))
        return future

    def put(self, resource: Resource, body: Body) -> Body:
        """A new object of the fleet, as it is stored."""
        answer: Body = from_json(self._store(resource, body))
        return answer

    def _store(self, resource: Resource, body: Body) -> bytes:
        """Store it as the API server would, and respond."""
        about = body["metadata"]
        uid = f"{resource.plural}/{about.get('namespace')}/{about['name']}"
        old = self.stored(resource, about.get("namespace"), about["name"])
        self.writes += 1
        kept = {"uid": uid, "generation": 1, **old.get("metadata", {})}
        version = {"resourceVersion": str(self.writes)}
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **old, **body}
        text = to_json({**whole, "metadata": {**kept, **about, **version}})
        if resource in _WRITTEN_AGAIN:
            self._places[uid] = (self._file.seek(0, os.SEEK_END), len(text))
            self._file.write(text)
        return text

    def stored(self, resource: Resource, namespace: str | None, name: str) -> Body:
        """An object as it was last written; nothing where it never was."""
        place = self._places.get(f"{resource.plural}/{namespace}/{name}")
        if place is None:
            return {}
        self._file.seek(place[0])
        body: Body = from_json(self._file.read(place[1]))
        return body

    def apply(self, resource: Resource, body: Body, *, subresource: str | None = None) -> Body:
        """A write of the operator's, who makes the request and reads the response."""
        request = to_json(body)
        with METER.paused():
            response = self._store(resource, from_json(request))
        answer: Body = from_json(response)
        return answer

    def create(self, resource: Resource, body: Body) -> Body:
        """An Event, or the PodTemplate of an adopted object."""
        if resource == CONFIG_MAPS:
            return self.replace(resource, body)
        self.writes += 1
        return {**body, "metadata": {"uid": "made", **body["metadata"]}}

    def replace(self, resource: Resource, body: Body) -> Body:
        """The books of a namespace, which are no write about a job."""
        return {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}

    def list_all(self, *_: Any, **__: Any) -> list[Body]:
        """No books are stored yet."""
        return []

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]:
        """Nobody else has pods but adopted objects."""
        if resource is PODS and labels is not None:
            with METER.paused():
                text = to_json([*pods(labels, self.pools)])
            yield Listing(from_json(text), "1", "")


class Readings:
    """Every target's sample, of the synthetic fleet."""

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """At once."""
        with METER.paused():
            numbers = {target.key: int(target.key.job.removeprefix("job-")) for target in targets}
            samples = {key: Sample(now, SyntheticJob(number).reading(now)) for key, number in numbers.items()}
        return TelemetryReading(samples)


def filled(
    cluster: Cluster, count: int, now: float, machines: Sequence[Body] | None = None, *, adopted: bool = False
) -> Store:
    """A store with the whole fleet in it. machines: its nodes, where they are not all. adopted: whether every third job
    names an object of somebody else's."""
    machines = nodes() if machines is None else machines
    store, children, found = Store(), Children("rightpool-profiler:dev", bytes(32)), pools(machines)
    for node in machines:
        store.observe(NODES, None, cluster.put(NODES, node))
    cluster.pools = found
    for member in synthetic_jobs(count):
        if adopted and member.number % EVERY == 0:
            _adopt(cluster, store, Adoption(member, member.pool(found)), now)
            continue
        job = member.profiled_job()
        ref = member.first_revision(ProfiledJobSpec.model_validate(job["spec"]), found, now)
        stored = cluster.put(PROFILED_JOBS, {**job, "status": member.status(ref)})
        child = cluster.put(JOBS, member.child(stored, ref, found[ref.placement.pool], children))
        status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
        pod = cluster.put(PODS, {**member.pod(child), "status": status})
        for kind, body in ((PROFILED_JOBS, stored), (JOBS, child), (PODS, pod)):
            store.observe(kind, None, body)
    return store


def _adopt(cluster: Cluster, store: Store, adoption: Adoption, now: float) -> None:
    body = cluster.put(JOBS, adoption.object())
    stored = cluster.put(PROFILED_JOBS, {**adoption.profiled_job(), "status": adoption.status(body, now)})
    store.observe(PROFILED_JOBS, None, stored)
    store.observe(JOBS, None, adoption.marked(body, stored))


def planner_of(
    cluster: Any, store: Store, clock: Mapping[str, float], reader: TelemetryReader | None = None
) -> Planner:
    """The operator's, with everything outside it replaced."""
    metrics, fence = OperatorMetrics(lambda: True), Fence(cluster, cluster)
    sidecars: Any = None  # nobody asks for a checkpoint
    children = Children("rightpool-profiler:dev", bytes(32))
    admissions = Admissions(cluster, fence, store, children, on=True)
    recorder = EventRecorder(cluster, leads=lambda: True, term=lambda: 0, instance="benchmark")
    statuses = StatusPublisher(cluster, store, recorder.post)
    parts = Parts(
        client=cluster,
        store=store,
        relister=cluster,
        elector=cluster,
        fence=fence,
        executor=Executor(cluster, store, fence, children, admissions, sidecars, metrics, clock=lambda: clock["now"]),
        windows=RevisionWindows(reader or Readings(), patience=600.0),
        members=Members(cluster, store, lambda: None, lambda: clock["now"]),
        adopt_labels=AdoptLabels(cluster, fence, store, recorder.post, clock=lambda: clock["now"]),
        usage=ChipUsage(cluster, interval=60.0),
        pool_publisher=PoolPublisher(cluster, store, statuses),
        policy_publisher=PolicyPublisher(statuses),
        recorder=recorder,
        catalog=load_catalog(),
        decide=Decider(),
        metrics=metrics,
        books=ChargebackBooks(cluster, fence, metrics.chargeback, "rightpool-system"),
        servers=ServerFeed(ServerScrape(), DemandRecords(cluster, fence, "rightpool-system"), store.pods),
        health=Health(INTERVAL, 15.0),
    )
    return Planner(parts, interval=INTERVAL, clock=lambda: clock["now"])


def main(count: int, found: dict[Bar, float]) -> None:
    """Print one row. found: gets the figures that have a bar."""
    cluster, clock = Cluster(), {"now": time.time()}
    store = filled(cluster, count, clock["now"])
    planner = planner_of(cluster, store, clock)
    first = settle(planner, cluster, clock)
    spent, writes = cycles(planner, cluster, clock, STEADY)
    middle = statistics.median(spent)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if count == bars.JOBS:
        found.update({bars.FIRST_CYCLE: first, bars.WRITES: writes * 60.0 / (STEADY * INTERVAL)})
    del planner
    again = planner_of(cluster, store, clock)
    restarted, repeated = cycles(again, cluster, clock, RESTARTED)
    filling = statistics.median(restarted[1:FILLING])
    print(
        f"| {count:,} | {first:.2f} | {middle:.3f} | {max(spent):.2f} | {1e6 * middle / count:.0f} | {writes} "
        f"| {peak:.0f} | {restarted[0]:.2f} | {filling:.3f} | {repeated} |",
        flush=True,
    )


def adopted_ratio(count: int) -> float:
    """Processor time of a later cycle where every third job is adopted, as a part of that where none is: two fleets in
    turns, the median of pairs."""
    sides = []
    for adopted in (False, True):
        cluster, clock = Cluster(), {"now": time.time()}
        planner = planner_of(cluster, filled(cluster, count, clock["now"], adopted=adopted), clock)
        settle(planner, cluster, clock)
        sides.append((planner, cluster, clock))
    pairs = [[cycles(*side, 1)[0][0] for side in sides] for _ in range(2 * STEADY)]
    return statistics.median(own / plain for plain, own in pairs)


def cycles(planner: Planner, cluster: Cluster, clock: dict[str, float], count: int) -> tuple[list[float], int]:
    """Processor seconds of each, and the writes in all of them."""
    spent, before = [], cluster.writes
    for _ in range(count):
        began = METER.read()
        planner.cycle()
        spent.append(METER.read() - began)
        clock["now"] += INTERVAL
    return spent, cluster.writes - before


def settle(planner: Planner, cluster: Cluster, clock: dict[str, float]) -> float:
    """Until every window is full and every status says so. Processor seconds of the first cycle."""
    [first], _ = cycles(planner, cluster, clock, 1)
    for _ in range(SETTLING):
        if cycles(planner, cluster, clock, QUIET)[1] == 0:
            return first
    raise RuntimeError(f"still writing after {SETTLING * QUIET} cycles")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", type=int, default=[1000, 10000], help="how many jobs, a row for each number")
    parser.add_argument("--adopted", action="store_true", help="and what it costs where a third is adopted")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    gc.set_threshold(50_000, 20, 100)  # as the operator does
    print(
        "| jobs | first cycle, CPU s | later ones, median | at most | µs a job | writes in 2 minutes | peak RSS, MB "
        "| first after a restart | while windows fill, median | writes after a restart |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    measured: dict[Bar, float] = {}
    for size in arguments.jobs:
        main(size, measured)
        if arguments.adopted:
            measured[bars.ADOPTED] = adopted_ratio(size)
        gc.collect()
    print(bars.machine())
    if measured:
        print(bars.against(measured))
