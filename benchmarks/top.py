"""How long `rightpool top` takes, as a user runs it: a process, an API server, and jobs with the operator's statuses.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m benchmarks.top --jobs 1000

The statuses are those that the operator's own loop writes about the synthetic fleet until it has nothing more to say,
with a ledger of so many moves each. etcd and the API server are real. `top` is started anew each time. An empty Python
and a read of the list that does nothing with it stand beside it, since they are part of what is waited for.

The last line says whether the median of `top -A` is within the bar for a thousand jobs; where not, the exit code is 1.
"""

import argparse
import logging
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import yaml
from pydantic_core import to_json

from benchmarks.cycle import Cluster, filled, planner_of, settle
from benchmarks.sandbox import sandbox
from benchmarks.synthetic_fleet import NAMESPACES, Body, synthetic_jobs
from devcluster.api import Api, ApiError
from rightpool.api.kubernetes import Resource
from rightpool.api.ledger import MAX_HISTORY
from rightpool.cluster.resources import PROFILED_JOBS

TIMES: Final = 7
BAR_SECONDS: Final = 1.5
"""For 1,000 jobs, on two cores that nothing else uses."""
ROOT: Final = Path(__file__).parents[1]
_CRD: Final = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_NAMESPACE: Final = Resource("", "v1", "Namespace", "namespaces", False)
_SERVED_SECONDS: Final = 60.0
_READ: Final = """
import sys
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import PROFILED_JOBS
ClusterClient.connect(sys.argv[1]).list_all(PROFILED_JOBS)
"""


def written(count: int, moves: int) -> list[Body]:
    """The jobs as the operator leaves them, each with so many moves in its ledger."""
    cluster, clock = Cluster(), {"now": time.time()}
    planner = planner_of(cluster, filled(cluster, count, clock["now"]), clock)
    settle(planner, cluster, clock)
    jobs = [cluster.stored(PROFILED_JOBS, job.key.namespace, job.key.name) for job in synthetic_jobs(count)]
    for job in jobs:
        job["status"] |= {"history": _ledger(job["status"], moves), "ledgerCount": moves}
    return jobs


def _ledger(status: Body, moves: int) -> list[Body]:
    """An hour each, as long as those that the operator writes."""
    here = {part: status["placement"][part] for part in ("pool", "chips", "replicas")} | {"capacity": "OnDemand"}
    began = time.time() - 3600.0 * (moves + 1)
    return [
        {
            "id": f"d-{number}",
            "action": "Resize",
            "from": here,
            "to": here,
            "startedAt": datetime.fromtimestamp(began + 3600.0 * number, UTC).isoformat(),
            "finishedAt": datetime.fromtimestamp(began + 3600.0 * number + 900.0, UTC).isoformat(),
            "outcome": "Verified",
            "reason": "Delivered",
            "message": "4 chips of a100 deliver 6070 samples/s for $0.92 per million, as promised",
            "baseline": "3000",
            "predicted": "6100",
            "realised": "6070",
            "fromPerHour": "15.2",
            "toPerHour": "20.1",
            "lostSeconds": "61",
            "cost": "0.34",
        }
        for number in range(moves)
    ]


def store(api: Api, jobs: Sequence[Body]) -> None:
    """Create the definitions, the namespaces and the jobs with their statuses."""
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        api.request("POST", _CRD.path(), yaml.safe_load(path.read_text(encoding="utf-8")))
    for number in range(NAMESPACES):
        api.request("POST", _NAMESPACE.path(), {"metadata": {"name": f"team-{number}"}})
    deadline = time.monotonic() + _SERVED_SECONDS
    while True:
        try:
            api.request("GET", PROFILED_JOBS.path())
            break
        except ApiError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)

    def create(job: Body) -> None:
        about = {part: job["metadata"][part] for part in ("name", "namespace")}
        whole = {"apiVersion": PROFILED_JOBS.api_version, "kind": PROFILED_JOBS.kind, "spec": job["spec"]}
        made = api.request("POST", PROFILED_JOBS.path(about["namespace"]), {**whole, "metadata": about})
        path = PROFILED_JOBS.path(about["namespace"], about["name"], "status")
        api.request("PUT", path, {**made, "status": job["status"]})

    Api.in_parallel(create, jobs)


def timed(what: str, command: Sequence[str]) -> tuple[str, float]:
    """Run it several times, and print how long it took. What it printed, and the median of its times, seconds."""
    walls, processors, output = [], [], ""
    for _ in range(TIMES):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        walls.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(
        f"{what:<40} best {min(walls):.2f} s, median {statistics.median(walls):.2f} s, worst {max(walls):.2f} s; "
        f"CPU {statistics.median(processors):.2f} s",
        flush=True,
    )
    return output, statistics.median(walls)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.top", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--ledger", type=int, default=3, metavar="N", help=f"moves of each job, {MAX_HISTORY} at most")
    arguments = parser.parse_args()
    count = arguments.jobs
    logging.disable(logging.WARNING)
    jobs = written(count, min(arguments.ledger, MAX_HISTORY))
    size = statistics.mean(len(to_json(job)) for job in jobs)
    os.environ["PYTHONPATH"] = str(ROOT / "operator")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed command is compiled once
    top = (sys.executable, "-m", "rightpool.cli.main", "top")
    with sandbox() as running:
        store(Api(running.kubeconfig), jobs)
        print(f"{count} jobs of {size / 1e3:.1f} kB; wall-clock times, and processor time of the command alone")
        where = ("--kubeconfig", str(running.kubeconfig))
        timed("an empty Python", (sys.executable, "-c", ""))
        timed("reading the list alone", (sys.executable, "-c", _READ, str(running.kubeconfig)))
        timed("rightpool top --help", (*top, "--help"))
        timed(f"rightpool top, of one namespace of {NAMESPACES}", (*top, *where, "-n", "team-0"))
        shown, taken = timed("rightpool top -A", (*top, *where, "-A"))
        timed("rightpool top -A -o json", (*top, *where, "-A", "-o", "json"))
    print(shown.splitlines()[-2 if "no operator" in shown else -1])
    if count > 1000:
        return 0  # the bar says nothing of it
    print(
        f"rightpool top -A: {taken:.2f} s; the bar is {BAR_SECONDS} s: {'held' if taken <= BAR_SECONDS else 'MISSED'}"
    )
    return int(taken > BAR_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
