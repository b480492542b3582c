"""`python -m devcluster.replay --kubeconfig FILE --listen 0.0.0.0:9464`, in the namespace of the simulated pods."""

import argparse
import asyncio
import logging
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from devcluster.api import Api, ApiError
from devcluster.replay.faults import CONFIG_MAP_NAME, CONFIG_MAP_NAMESPACE
from devcluster.replay.fleet import Fleet
from devcluster.replay.pod import SimulatedNode, SimulatedPod, parse_node, parse_pod
from devcluster.replay.server import Sidecars, listen
from devcluster.replay.table import BadTable, Table
from devcluster.watch import Watch
from rightpool.contract import LABEL_JOB, SIDECAR_PORT

_log = logging.getLogger("devcluster.replay")
_BATCH_SECONDS: Final = 0.05  # changes of pods are collected this long: a Job's pods start and end together
_SUMMARY_SECONDS: Final = 60.0


class Replay:
    """The fleet, updated by three watches on threads. Their updates run on the event loop only."""

    def __init__(self, api: Api, table: Table) -> None:
        self.fleet = Fleet(table.at, self._lose)
        self._api = api
        self._loop = asyncio.get_running_loop()
        self._pods: list[tuple[SimulatedPod, bool]] = []

    def start(self) -> None:
        Watch(
            self._api,
            "/api/v1/nodes",
            reduce=parse_node,
            replaced=lambda nodes: self._on_loop(self._replace_nodes, nodes),
            changed=lambda node, exists: self._on_loop(self._change_node, node, exists),
        ).start()
        Watch(
            self._api,
            "/api/v1/pods",
            reduce=parse_pod,
            replaced=lambda pods: self._on_loop(self._replace_pods, pods),
            changed=lambda pod, exists: self._on_loop(self._gather, pod, exists),
            labelSelector=LABEL_JOB,
        ).start()
        Watch(
            self._api,
            f"/api/v1/namespaces/{CONFIG_MAP_NAMESPACE}/configmaps",
            reduce=_data,
            replaced=lambda maps: self._on_loop(self._set_faults, maps[0] if maps else {}),
            changed=lambda data, exists: self._on_loop(self._set_faults, data if exists else {}),
            fieldSelector=f"metadata.name={CONFIG_MAP_NAME}",
        ).start()

    def _on_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(function, *arguments)

    def _replace_nodes(self, nodes: list[SimulatedNode]) -> None:
        self.fleet.replace_nodes(nodes, time.time())

    def _change_node(self, node: SimulatedNode, exists: bool) -> None:
        self.fleet.change_node(node, exists, time.time())

    def _replace_pods(self, pods: list[SimulatedPod]) -> None:
        self._pods.clear()
        self.fleet.replace_pods(pods, time.time())
        _log.info("listed: %s", self.fleet)

    def _gather(self, pod: SimulatedPod, exists: bool) -> None:
        if not self._pods:
            self._loop.call_later(_BATCH_SECONDS, self._carry_out)
        self._pods.append((pod, exists))

    def _carry_out(self) -> None:
        changes, self._pods = self._pods, []
        self.fleet.change_pods(changes, time.time())

    def _set_faults(self, data: dict[str, str]) -> None:
        self.fleet.set_faults(data, time.time())

    def _lose(self, pod: SimulatedPod) -> None:
        """Report the pod as failed, as the kubelet does. A thread sends the patch, so that the loop does not wait."""
        self._loop.run_in_executor(None, self._mark_failed, pod)

    def _mark_failed(self, pod: SimulatedPod) -> None:
        not_ready = [{"type": kind, "status": "False", "reason": "PodFailed"} for kind in ("Ready", "ContainersReady")]
        status = {
            "phase": "Failed",
            "reason": "SimulatedLoss",
            "message": "lost on request of the simulation",
            "conditions": not_ready,
            "containerStatuses": None,
        }
        try:
            self._api.request(
                "PATCH",
                f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status",
                {"status": status},
                content="application/strategic-merge-patch+json",  # conditions are merged by their type
            )
        except (OSError, HTTPException, ApiError) as error:
            _log.error("%s could not be marked as failed: %s", pod, error)


def _data(config_map: dict[str, Any]) -> dict[str, str]:
    return config_map.get("data") or {}


async def serve(api: Api, table: Table, host: str, port: int, log: Path | None) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    replay = Replay(api, table)
    with ExitStack() as stack:
        requests = stack.enter_context(log.open("a", encoding="utf-8", buffering=1)) if log is not None else None
        server = await listen(Sidecars(replay.fleet, requests=requests), host, port)
        _log.info("%d rows; listening on %s:%d", len(table.rows), host, port)
        replay.start()
        logged = ""
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), _SUMMARY_SECONDS)
            except TimeoutError:
                if logged != str(replay.fleet):
                    logged = str(replay.fleet)
                    _log.info("%s", logged)
        server.close()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devcluster.replay", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="admin kubeconfig of the cluster")
    parser.add_argument("--listen", default=f"0.0.0.0:{SIDECAR_PORT}", metavar="HOST:PORT")
    parser.add_argument("--table", type=Path, help="another table of measurements")
    parser.add_argument("--log", type=Path, help="where requests are noted down, all but scrapes that went well")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    host, _, port = options.listen.rpartition(":")
    if not port.isdecimal():
        parser.error(f"--listen: {options.listen} is not HOST:PORT")
    # Each scraper keeps a connection to each pod.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        table = Table.read(options.table) if options.table is not None else Table.read()
        api = Api(options.kubeconfig)
        asyncio.run(serve(api, table, host, int(port), options.log))
    except (OSError, BadTable, KeyError, StopIteration) as error:
        print(f"replay: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
