"""A planning cycle without a cluster: the operator's own planner on a store that was filled, with answers from memory.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m benchmarks.cycle 1000 10000

What is left out is what `scale` measures on top: kopf's watches, the API server, and reading Prometheus' answers.
"""

import gc
import json
import logging
import resource
import statistics
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from benchmarks.crowd import Body, Member, members, nodes, pools
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.cli.operator import Decider
from rightpool.cluster.client import Listing
from rightpool.cluster.events import EventRecorder
from rightpool.cluster.resources import ACCELERATOR_POOLS, JOBS, NODES, PODS, PROFILED_JOBS, Resource
from rightpool.hardware.catalog import load_catalog
from rightpool.runtime.children import Children
from rightpool.runtime.executor import Executor
from rightpool.runtime.fence import Fence
from rightpool.runtime.health import Health
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.observations import Observations
from rightpool.runtime.planner import Parts, Planner
from rightpool.runtime.pools import PoolPublisher
from rightpool.runtime.store import Store
from rightpool.runtime.usage import ChipUsage
from rightpool.telemetry.fields import assembled
from rightpool.telemetry.source import Target, TelemetryReading, TelemetrySource

INTERVAL = 10.0
QUIET = 8  # cycles without a write, longer than a window
SETTLING = 20  # times as many
STEADY = 12
RESTARTED = 12


_WRITTEN_AGAIN = (PROFILED_JOBS, ACCELERATOR_POOLS)


class Cluster:
    """Stands for client, relister and Lease: answers at once, and always with yes."""

    held = True
    ready = True
    missed = 0

    def __init__(self) -> None:
        self.writes = 0
        # Packed, because an API server would have them, and not the process that is measured.
        self._objects: dict[str, bytes] = {}

    def run(self) -> None:
        """Nothing to list."""

    def submit(self, function: Any, *arguments: Any) -> Future[None]:
        """At once, in the caller's thread."""
        future: Future[None] = Future()
        future.set_result(function(*arguments))
        return future

    def put(self, resource: Resource, body: Body) -> Body:
        """Store it as the API server would."""
        about = body["metadata"]
        uid = f"{resource.plural}/{about.get('namespace')}/{about['name']}"
        old = self.stored(resource, about.get("namespace"), about["name"])
        self.writes += 1
        kept = {"uid": uid, "generation": 1, **old.get("metadata", {})}
        version = {"resourceVersion": str(self.writes)}
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **old, **body}
        text = json.dumps({**whole, "metadata": {**kept, **about, **version}})
        if resource in _WRITTEN_AGAIN:
            self._objects[uid] = zlib.compress(text.encode(), 1)
        answer: Body = json.loads(text)
        return answer

    def stored(self, resource: Resource, namespace: str | None, name: str) -> Body:
        """An object as it was last written; nothing where it never was."""
        packed = self._objects.get(f"{resource.plural}/{namespace}/{name}")
        body: Body = {} if packed is None else json.loads(zlib.decompress(packed))
        return body

    def apply(self, resource: Resource, body: Body, *, subresource: str | None = None) -> Body:
        """A write of the operator's."""
        return self.put(resource, body)

    def create(self, resource: Resource, body: Body) -> Body:
        """An Event."""
        self.writes += 1
        return body

    def pages(self, *_: Any, **__: Any) -> Iterator[Listing]:
        """Nobody else has pods."""
        yield from ()


class Readings:
    """Every target's sample, from the crowd."""

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """At once."""
        numbers = {target.key: int(target.key.job.removeprefix("job-")) for target in targets}
        return TelemetryReading({key: assembled(now, Member(number).reading(now)) for key, number in numbers.items()})


def filled(cluster: Cluster, count: int, now: float) -> Store:
    """A store with the whole crowd in it."""
    store, children, machines = Store(), Children("rightpool-profiler:dev", bytes(32)), pools()
    for node in nodes():
        store.observe(NODES, None, cluster.put(NODES, node))
    for member in members(count):
        job = member.profiled_job()
        ref = member.placed(ProfiledJobSpec.model_validate(job["spec"]), machines, now)
        stored = cluster.put(PROFILED_JOBS, {**job, "status": member.status(ref)})
        child = cluster.put(JOBS, member.child(stored, ref, machines[ref.placement.pool], children))
        status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
        pod = cluster.put(PODS, {**member.pod(child), "status": status})
        for kind, body in ((PROFILED_JOBS, stored), (JOBS, child), (PODS, pod)):
            store.observe(kind, None, body)
    return store


def planner_of(
    cluster: Any, store: Store, clock: Mapping[str, float], source: TelemetrySource | None = None
) -> Planner:
    """The operator's, with everything outside it replaced."""
    metrics, fence = OperatorMetrics(lambda: True), Fence(cluster, lambda seconds: True)
    sidecars: Any = None  # nobody asks for a checkpoint
    children = Children("rightpool-profiler:dev", bytes(32))
    parts = Parts(
        client=cluster,
        store=store,
        relister=cluster,
        elector=cluster,
        fence=fence,
        executor=Executor(cluster, store, fence, children, sidecars, metrics),
        observations=Observations(source or Readings(), patience=600.0),
        usage=ChipUsage(cluster, interval=60.0),
        publisher=PoolPublisher(cluster, store),
        recorder=EventRecorder(cluster, instance="benchmark"),
        catalog=load_catalog(),
        decide=Decider(),
        metrics=metrics,
        health=Health(INTERVAL),
    )
    return Planner(parts, interval=INTERVAL, clock=lambda: clock["now"])


def main(count: int) -> None:
    """Print one row."""
    cluster, clock = Cluster(), {"now": time.time()}
    store = filled(cluster, count, clock["now"])
    planner = planner_of(cluster, store, clock)
    first = settle(planner, cluster, clock)
    spent, writes = cycles(planner, cluster, clock, STEADY)
    middle = statistics.median(spent)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    del planner
    again = planner_of(cluster, store, clock)
    _, repeated = cycles(again, cluster, clock, RESTARTED)
    print(
        f"| {count:,} | {first:.2f} | {middle:.3f} | {max(spent):.2f} | {1e6 * middle / count:.0f} | {writes} "
        f"| {peak:.0f} | {repeated} |",
        flush=True,
    )


def cycles(planner: Planner, cluster: Cluster, clock: dict[str, float], count: int) -> tuple[list[float], int]:
    """Processor seconds of each, and the writes in all of them."""
    spent, before = [], cluster.writes
    for _ in range(count):
        began = time.process_time()
        planner.cycle()
        spent.append(time.process_time() - began)
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
    logging.disable(logging.WARNING)
    gc.set_threshold(50_000, 20, 100)  # as the operator does
    print(
        "| jobs | first cycle, CPU s | later ones, median | at most | µs a job | writes in 2 minutes | peak RSS, MB "
        "| writes after a restart |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for size in sys.argv[1:] or ["1000", "10000"]:
        main(int(size))
        gc.collect()
