"""The story of a server: a real Triton under requests goes to cores that cost less, and answers each of them."""

import json
import math
import time
import urllib.request
from typing import Final

from demo import past
from demo.job import Job
from demo.open_loop import OpenLoop
from demo.past import RATE
from demo.stage import Stage, apply
from demo.story import MOVE_SECONDS, START_SECONDS, Say, expect, paid, placed, tell_prices, wait

FEWEST: Final = 3000
"""Requests."""
_OFFERED: Final = {"rightpool.dev/core": "2", "rightpool.dev/spare-core": "2"}


def serving(stage: Stage, say: Say) -> Job:
    """It runs on cores at $0.05 an hour, and may then use others at $0.015, under requests that come all the time."""
    for resource, count in _OFFERED.items():
        change = {"op": "add", "path": f"/status/capacity/{resource.replace('/', '~1')}", "value": count}
        stage.kubectl(
            "patch", "node", "node-0", "--subresource=status", "--type=json", f"--patch={json.dumps([change])}"
        )
    wait("Prometheus remembers the requests of before", lambda: past.remembered(stage.prometheus))
    apply(stage, "ranker.yaml")
    watcher = stage.watch("shop", "ranker", say)
    job = watcher.until("it runs", placed, START_SECONDS)
    expect(job.pool == "cores", "it should have started on cores, which alone it allows", job)
    address = stage.kubectl("get", "service", "ranker", "-n", "shop", "-o", "jsonpath={.spec.clusterIP}")
    url = f"http://{address}:8000/v2/models/ranker/infer"
    row = {"name": "x", "shape": [1, 64], "datatype": "FP32", "data": [n / 64 for n in range(64)]}
    body = json.dumps({"inputs": [row]}).encode()
    wait("it answers", lambda: _answers(url, body))
    begun = time.monotonic()
    with OpenLoop(RATE, lambda number: url, body) as traffic:
        watcher.until("its requests are counted", lambda j: "requestsPerSecond" in j.status.get("server", {}), 600.0)
        say(f"ranker: {RATE:g} requests/s come in, each when it is due; it may use spare-cores from now on")
        allowed = {"spec": {"placement": {"pools": {"allow": ["cores", "spare-cores"]}}}}
        stage.kubectl("patch", "profiledjob", "ranker", "-n", "shop", "--type=merge", f"--patch={json.dumps(allowed)}")
        job = watcher.until("the move to spare-cores is verified", paid, MOVE_SECONDS)
        time.sleep(max(0.0, FEWEST / RATE - (time.monotonic() - begun)) + 1.0)
    expect(job.pool == "spare-cores", "it should run on spare-cores", job)
    asked, slowest = traffic.answered.total(), sorted(traffic.seconds)
    p99 = slowest[math.ceil(0.99 * len(slowest)) - 1]
    failed = asked - traffic.answered[200]
    say(f"ranker: {failed} of {asked} requests failed; the 99th percentile since each was due is {1000 * p99:.0f} ms")
    expect(asked >= FEWEST and not failed, f"every request should be answered: {dict(traffic.answered)}", job)
    tell_prices(job, "ranker", say, "requests")
    return job


def _answers(url: str, body: bytes) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
