"""The story of a server: a real Triton under requests goes to cores that cost less, then to slow ones and back, and
answers each of them."""

import json
import math
import time
import urllib.request
from collections.abc import Sequence
from typing import Final

from demo import past
from demo.job import Job, StoryFailed, Watcher
from demo.open_loop import OpenLoop
from demo.past import RATE
from demo.stage import Stage, apply
from demo.story import MOVE_SECONDS, START_SECONDS, Say, expect, paid, placed, tell_prices, wait
from rightpool.api.ledger import LedgerEntry

FEWEST: Final = 3000
"""Requests."""
LEFT: Final = 0.3
"""Of the processor time that it takes on spare-cores, for its replica on worn-cores, which gets half of the requests:
less than one by one takes, and enough for many together."""
_OFFERED: Final = {"rightpool.dev/core": "2", "rightpool.dev/spare-core": "2", "rightpool.dev/worn-core": "2"}


def serving(stage: Stage, say: Say) -> Job:
    """It runs on cores at $0.05 an hour under requests that come all the time. It may then use others at $0.015, where
    it stays, and others at $0.0045, which are slow."""
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
    with OpenLoop(RATE, lambda number: url, body) as traffic:
        _goes_to_spare_cores(stage, watcher, say)
        before = len(traffic.seconds)
        job = _comes_back_from_slow_ones(stage, watcher, say)
    asked, failed = traffic.answered.total(), traffic.answered.total() - traffic.answered[200]
    usual, slow = _p99(traffic.seconds[:before]), _p99(traffic.seconds[before:])
    say(f"ranker: {failed} of {asked} requests failed; 99% took up to {usual:.0f} ms, with the slow chip {slow:.0f} ms")
    expect(asked >= FEWEST and not failed, f"every request should be answered: {dict(traffic.answered)}", job)
    return job


def _goes_to_spare_cores(stage: Stage, watcher: Watcher, say: Say) -> None:
    watcher.until("its requests are counted", lambda j: "requestsPerSecond" in j.status.get("server", {}), 600.0)
    say(f"ranker: {RATE:g} requests/s come in, each when it is due; it may use spare-cores from now on")
    _allow(stage, "cores", "spare-cores")
    job = watcher.until("the move to spare-cores is verified", paid, MOVE_SECONDS)
    expect(job.pool == "spare-cores", "it should run on spare-cores", job)
    tell_prices(job, "ranker", say, "requests")


def _comes_back_from_slow_ones(stage: Stage, watcher: Watcher, say: Say) -> Job:
    begun = time.monotonic()
    slow = f"{LEFT * _millicores(stage):.0f}m"
    say(f"ranker: it may use worn-cores, too; they promise to be as fast, but what runs there gets {slow} of a core")
    _allow(stage, "cores", "spare-cores", "worn-cores")
    watcher.until("it tries worn-cores", lambda j: j.phase == "Surging", MOVE_SECONDS)
    wait("its replica there is throttled", lambda: _throttled(stage, slow))
    job = watcher.until("the move is undone", lambda j: j.phase is None, MOVE_SECONDS)
    entry = LedgerEntry.from_dict(job.history[-1])
    expect((entry.outcome, entry.reason) == ("RolledBack", "TooLate"), "the move should be undone as too late", job)
    expect(job.pool == "spare-cores", "it should be back on spare-cores", job)
    # What it still answers there counts, too.
    wait("its replica there has ended", lambda: not stage.kubectl("get", *_SLOW_PODS, "-o", "name"))
    promised, before = entry.predicted_cost_per_million, entry.baseline_cost_per_million
    assert promised and before
    say(
        f"ranker: $ per million requests: {promised:.4g} promised by worn-cores, {before:.4g} where it is again, "
        f"{time.monotonic() - begun:.0f} s after it might leave"
    )
    return job


_SLOW_PODS: Final = ("pods", "-n", "shop", "-l", "rightpool.dev/pool=worn-cores")


def _millicores(stage: Stage) -> float:
    """What its replica takes now, by the kubelet."""
    for pod in json.loads(stage.kubectl("get", "--raw", "/api/v1/nodes/node-0/proxy/stats/summary"))["pods"]:
        if pod["podRef"]["name"].startswith("ranker-r2-"):
            return float(pod["cpu"]["usageNanoCores"]) / 1e6
    raise StoryFailed("the kubelet knows nothing of the server's replica")


def _throttled(stage: Stage, slow: str) -> bool:
    """Whether what is ready there has been given less; its start would take minutes with that."""
    pods = stage.kubectl.json("get", *_SLOW_PODS)["items"]
    ready = [
        pod["metadata"]["name"]
        for pod in pods
        if any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))
    ]
    container = {"name": "server", "resources": {"requests": {"cpu": slow}, "limits": {"cpu": slow}}}
    change = json.dumps({"spec": {"containers": [container]}})
    for name in ready:
        stage.kubectl("patch", "pod", name, "-n", "shop", "--subresource=resize", f"--patch={change}")
    return bool(ready)


def _allow(stage: Stage, *pools: str) -> None:
    allowed = json.dumps({"spec": {"placement": {"pools": {"allow": pools}}}})
    stage.kubectl("patch", "profiledjob", "ranker", "-n", "shop", "--type=merge", f"--patch={allowed}")


def _p99(seconds: Sequence[float]) -> float:
    """In milliseconds."""
    return 1000.0 * sorted(seconds)[math.ceil(0.99 * len(seconds)) - 1]


def _answers(url: str, body: bytes) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
