"""A fleet for the tests of the page, and the page over it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from rightpool.cli.connection import Connection
from rightpool.cli.ui.server import Pages, PictureSource, application
from rightpool.cluster.resources import EVENTS, LEASES, PODS, PROFILED_JOBS
from tests.unit.cli.cluster import NOW, FakeClient, job, moment, pod, profile, running_status, two_pools
from tests.unit.cli.test_top import recommended

Body = dict[str, Any]
HOME = "http://127.0.0.1:8270"


def decision(number: int, outcome: str, source: str, target: str, began: float, ended: float, **changes: Any) -> Body:
    """An entry of a ledger: a move of four chips. began, ended: seconds ago."""
    place: Body = {"chips": 4, "replicas": 1, "capacity": "OnDemand"}
    return {
        "id": f"d-{number}",
        "action": "Move",
        "from": {"pool": source, **place},
        "to": {"pool": target, **place},
        "startedAt": moment(began),
        "finishedAt": moment(ended),
        "outcome": outcome,
        "reason": "Delivered",
        "predicted": "6100",
        "baseline": "3000",
        "realised": "6070",
        "toPerHour": "20.1",
        **changes,
    }


MOVED = [
    decision(1, "Verified", "a10g", "a100", 3000, 2400),
    decision(
        2,
        "RolledBack",
        "a100",
        "a10g",
        1500,
        1000,
        baseline="6070",
        realised="2500",
    ),
]


def event(name: str, namespace: str, uid: str, message: str, ago: float = 60.0, kind: str = "Normal") -> Body:
    """An Event about a ProfiledJob."""
    return {
        "metadata": {"name": f"{name}.{ago}", "namespace": namespace},
        "involvedObject": {"kind": "ProfiledJob", "name": name, "namespace": namespace, "uid": uid},
        "reason": "Moved",
        "message": message,
        "type": kind,
        "count": 3,
        "lastTimestamp": moment(ago),
    }


def fleet() -> FakeClient:
    """`resnet50` runs, and is recommended elsewhere; `moved` has been moved; `waiting` nobody has looked at."""
    client = two_pools()
    client.add(PROFILED_JOBS, job(status=recommended()))
    detailed = profile(exposedCommunication="0.1", inputWait="0.01", chipBusy="0.95")
    outlook = {"progress": "0.5", "finishAt": moment(-7200)}
    moved = running_status(history=MOVED, profile=detailed, outlook=outlook, ledgerCount=2)
    body = client.add(PROFILED_JOBS, job("moved", status=moved))
    client.add(PROFILED_JOBS, job("waiting", "research", status={}))
    client.add(PODS, pod("resnet50", "vision", "a100-0"))
    client.add(PODS, pod("moved", "vision", "a100-1"))
    client.add(EVENTS, event("moved", "vision", body["metadata"]["uid"], "4 chips of a100 deliver 6070 samples/s"))
    return client


def abandoned(client: FakeClient) -> FakeClient:
    """With the Lease of an operator that has ended."""
    lease = {"holderIdentity": "", "renewTime": moment(600), "leaseDurationSeconds": 15}
    client.add(LEASES, {"metadata": {"name": "rightpool", "namespace": "rightpool-system"}, "spec": lease})
    return client


def stories() -> tuple[FakeClient, float]:
    """What `make demo` had in its API server after its four stories (25 November 2026, Kubernetes 1.36), without the
    templates of pods and what no page reads; and when it was recorded, Unix seconds."""
    recorded = json.loads((Path(__file__).parent / "recorded" / "stories.json").read_text(encoding="utf-8"))
    client = FakeClient()
    for kind in client.objects:
        for body in recorded.get(kind.plural, ()):
            client.add(kind, body)
    return client, datetime.fromisoformat(client.objects[LEASES][0]["spec"]["renewTime"]).timestamp()


def pages_of(client: FakeClient, *, everywhere: bool = True, context: str = "prod", now: float = NOW) -> Pages:
    """The page at this time."""
    connection = Connection(client, "vision", context)  # type: ignore[arg-type]
    return Pages(PictureSource(connection, everywhere, "rightpool-system", lambda: now))


def browser_of(client: FakeClient, *, everywhere: bool = True) -> TestClient:
    """Asks the server without a network."""
    return TestClient(application(pages_of(client, everywhere=everywhere)), base_url=HOME)
