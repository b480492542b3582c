"""Servers move to and fro under requests, and their operator is killed in each move: in its first phase, its second,
and so on.

The suite makes few of them; RIGHTPOOL_SERVER_MOVES says how many each of the servers makes.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from demo.open_loop import OpenLoop
from rightpool.api.migration import Phase
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import PROFILED_JOBS, SERVICES
from rightpool.workloads.kinds.server import DEPLOYMENTS
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.integration.runtime.test_real_failures import pool
from tests.integration.runtime.test_served_requests import answers, image, template
from tests.integration.runtime.test_server_moves import other_pool
from tests.integration.runtime.test_servers import SLICES, create
from tests.patience import eventually

__all__ = ["image", "pool"]

pytestmark = pytest.mark.cluster

MOVES = int(os.environ.get("RIGHTPOOL_SERVER_MOVES", "1"))
SERVERS = tuple(f"ranker-{letter}" for letter in ("abc" if MOVES < 10 else "abcdefghij"))
RATE = 8.0
KILLED_IN = (Phase.SURGING, Phase.SHARING, Phase.HOLDING)


@pytest.fixture
def places(client: ClusterClient, pool: str, kubeconfig: Path) -> Iterator[tuple[str, str]]:
    """Two pools of one node, with room for all servers twice."""
    chips = 2 * len(SERVERS)
    with (
        other_pool(client, pool, kubeconfig, "rightpool.dev/left-chip", chips) as left,
        other_pool(client, pool, kubeconfig, "rightpool.dev/right-chip", chips) as right,
    ):
        yield left, right


class Endpoints:
    """How few ready endpoints each Service had at any time."""

    def __init__(self, fleet: Fleet) -> None:
        self.fewest: dict[str, int] = {}
        self.looks = 0
        self._fleet, self._stop = fleet, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            try:
                slices = self._fleet.client.list_all(SLICES, self._fleet.namespace)
            except ClusterError:
                continue
            ready = Counter(dict.fromkeys(SERVERS, 0))
            for each in slices:
                service = each["metadata"]["labels"]["kubernetes.io/service-name"]
                ready[service] += sum(bool(one["conditions"].get("ready")) for one in each["endpoints"] or ())
            self.fewest = {name: min(self.fewest.get(name, ready[name]), ready[name]) for name in SERVERS}
            self.looks += 1

    def stop(self) -> dict[str, int]:
        eventually(lambda: self.looks > 0)
        self._stop.set()
        self._thread.join()
        return self.fewest


def statuses(fleet: Fleet) -> dict[str, Body]:
    found = fleet.client.list_all(PROFILED_JOBS, fleet.namespace)
    return {body["metadata"]["name"]: body.get("status") or {} for body in found}


def moved(status: Body, place: str) -> bool:
    return (status.get("placement") or {}).get("pool") == place and "migration" not in status


def test_moves_lose_no_request_whenever_their_operator_is_killed(
    start: Start, fleet: Fleet, places: tuple[str, str], image: str
) -> None:
    operator, starts = start("0"), 0
    for name in SERVERS:
        create(
            fleet,
            name,
            chipsPerReplica=1,
            replicas={"min": 1},
            drain={"quiet": "1s", "timeout": "3s"},
            template=template(image),
            spec={
                "placement": {"pools": {"allow": [places[0]]}},
                "profiling": {"mode": "Off", "interval": "1s", "window": "3s"},
            },
        )
    with ExitStack() as stack:
        traffic = {}
        for name in SERVERS:
            eventually(lambda name=name: fleet.status(name).get("server"), "it is there")  # type: ignore[misc]
            address = fleet.client.get(SERVICES, name, fleet.namespace)["spec"]["clusterIP"]
            url = f"http://{address}:8000/predict?seconds=0.01"
            eventually(lambda url=url: answers(url), "it answers")  # type: ignore[misc]
            traffic[name] = stack.enter_context(OpenLoop(RATE, lambda number, url=url: url))  # type: ignore[misc]
        watch = Endpoints(fleet)
        made, killed = Counter[str](), set[tuple[str, int, str | None]]()

        def step() -> bool:
            """The operator is killed where a server is in the phase for that. The next move begins where the last one
            is over."""
            nonlocal operator, starts
            found = statuses(fleet)
            for name in SERVERS:
                if made[name] <= MOVES and moved(found[name], places[made[name] % 2]):
                    made[name] += 1
                    if made[name] <= MOVES:
                        allow = [places[made[name] % 2]]
                        fleet.edit(name, lambda spec, allow=allow: spec["placement"]["pools"].update(allow=allow))  # type: ignore[misc]
                        print(f"{time.monotonic():.0f} {name} begins move {made[name]}, {starts} kills", flush=True)
            due = {
                (name, made[name], phase)
                for number, name in enumerate(SERVERS)
                if (phase := (found[name].get("migration") or {}).get("phase"))
                == KILLED_IN[(made[name] + number) % len(KILLED_IN)]
            } - killed
            if due:
                operator.kill()
                killed.update(due)
                starts += 1
                operator = start(str(starts))
            return all(made[name] > MOVES for name in SERVERS)

        eventually(step, lambda: str(statuses(fleet)), seconds=900.0 * MOVES, longest=0.2)
        fewest = watch.stop()
    deployments = {f"{name}-r{MOVES + 1}" for name in SERVERS}
    eventually(
        lambda: {one["metadata"]["name"] for one in fleet.client.list_all(DEPLOYMENTS, fleet.namespace)} == deployments
    )
    answered = sum((each.answered for each in traffic.values()), Counter[int]())
    phases = Counter(phase for _, _, phase in killed)
    print(
        f"{MOVES * len(SERVERS)} moves, {starts} kills in {dict(phases)}: {dict(answered)}, fewest endpoints {fewest}"
    )
    assert set(answered) == {200}, answered
    assert min(fewest.values()) >= 1, fewest
    assert phases.keys() == set(KILLED_IN), phases
    for name, status in statuses(fleet).items():
        assert len(fleet.revisions_alive(name)) == 1, name
        assert {entry["outcome"] for entry in status["history"] if entry["action"] == "Move"} == {"Verified"}, status[
            "history"
        ]
