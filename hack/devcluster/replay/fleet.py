"""The fleet: every simulated pod by address, with its gang and its current faults.

Watches deliver changes in batches; only the gangs of changed pods are recomputed.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from devcluster.replay.faults import EVERY_POOL, NONE, BadFault, Faults, parse
from devcluster.replay.gang import Gang, Lookup
from devcluster.replay.pod import GangKey, SimulatedNode, SimulatedPod

_log = logging.getLogger(__name__)


class Fleet:
    """lose: called once for each pod that a fault ends, to report it to the API server."""

    def __init__(self, lookup: Lookup, lose: Callable[[SimulatedPod], None]) -> None:
        self._lookup = lookup
        self._lose = lose
        self._pods: dict[str, SimulatedPod] = {}
        self._nodes: dict[str, SimulatedNode] = {}
        self._accelerators: dict[str, str | None] = {}
        self._pool_faults: dict[str, Faults] = {}
        self._gangs: dict[GangKey, Gang] = {}
        self._members: dict[GangKey, set[str]] = {}
        self._by_ip: dict[str, str] = {}
        self._lost: set[str] = set()
        self._logged_problems: dict[GangKey, str] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def find(self, ip: str) -> tuple[SimulatedPod, Gang] | None:
        """The running pod with this address and its gang; None if there is none."""
        pod = self._pods.get(self._by_ip.get(ip, ""))
        if pod is None or not pod.running or pod.uid in self._lost:
            return None
        return pod, self._gangs[pod.gang]

    # --- what the watches say ----------------------------------------------------------------------------------------

    def replace_pods(self, pods: Iterable[SimulatedPod], now: float) -> None:
        """Replace all pods."""
        listed = {pod.uid: pod for pod in pods}
        gone = [pod for uid, pod in self._pods.items() if uid not in listed]
        self.change_pods([(pod, False) for pod in gone] + [(pod, True) for pod in listed.values()], now)

    def change_pods(self, changes: Iterable[tuple[SimulatedPod, bool]], now: float) -> None:
        """Update pods: each with its present state and whether it still exists."""
        touched: set[GangKey] = set()
        for pod, exists in changes:
            known = self._pods.get(pod.uid)
            if exists and known == pod:
                continue
            touched.add(pod.gang)
            if exists:
                self._pods[pod.uid] = pod
                self._members.setdefault(pod.gang, set()).add(pod.uid)
                if pod.ip is not None and pod.running:
                    self._by_ip[pod.ip] = pod.uid
            elif known is not None:
                del self._pods[pod.uid]
                self._members[pod.gang].discard(pod.uid)
                self._lost.discard(pod.uid)
                if known.ip is not None and self._by_ip.get(known.ip) == pod.uid:
                    del self._by_ip[known.ip]
        self._rework(touched, now)

    def replace_nodes(self, nodes: Iterable[SimulatedNode], now: float) -> None:
        listed = {node.name: node for node in nodes}
        changed = {name for name in listed.keys() | self._nodes.keys() if listed.get(name) != self._nodes.get(name)}
        self._nodes = listed
        self._accelerators = {node.name: node.accelerator for node in listed.values()}
        self._rework({pod.gang for pod in self._pods.values() if pod.node in changed}, now)

    def change_node(self, node: SimulatedNode, exists: bool, now: float) -> None:
        """Update one node."""
        if exists and self._nodes.get(node.name) == node:
            return
        others = [known for known in self._nodes.values() if known.name != node.name]
        self.replace_nodes([*others, *([node] if exists else [])], now)

    def set_faults(self, data: Mapping[str, str], now: float) -> None:
        """Set the faults from the ConfigMap's data. Invalid values are reported and left out."""
        faults: dict[str, Faults] = {}
        for pool, text in data.items():
            try:
                faults[pool] = parse(text)
            except BadFault as error:
                _log.error("fault of pool %s ignored: %s", pool, error)
        if faults != self._pool_faults:
            _log.info("faults: %s", faults or "none")
            self._pool_faults = faults
            self._rework(set(self._gangs), now)

    # --- what follows from it ----------------------------------------------------------------------------------------

    def faults_of(self, pod: SimulatedPod) -> Faults:
        """The faults of a pod: those of its pool, by any of its names, and its own."""
        node = self._nodes.get(pod.node or "")
        faults = pod.play.faults
        for name in {pod.pool, EVERY_POOL, *([node.pool] if node is not None else [])}:
            faults = faults.and_also(self._pool_faults.get(name, NONE))
        return faults

    def _rework(self, keys: Iterable[GangKey], now: float) -> None:
        for key in keys:
            uids = self._members.get(key)
            if not uids:
                self._members.pop(key, None)
                self._gangs.pop(key, None)
                self._logged_problems.pop(key, None)
                continue
            gang = self._gangs.get(key)
            if gang is None:
                gang = self._gangs[key] = Gang(key)
            pods, faults = {}, {}
            for uid in uids:
                pod = self._pods[uid]
                faults[uid] = self.faults_of(pod)
                if pod.running and faults[uid].loses(pod.namespace, pod.name) and uid not in self._lost:
                    self._lost.add(uid)
                    _log.info("%s is lost", pod)
                    self._lose(pod)
                pods[uid] = replace(pod, ended=True) if uid in self._lost else pod
            gang.update(now, pods, faults, self._accelerators, self._lookup)
            self._report(key, gang)

    def _report(self, key: GangKey, gang: Gang) -> None:
        """Log each problem once."""
        if gang.problem is None:
            self._logged_problems.pop(key, None)
        elif self._logged_problems.get(key) != gang.problem:
            self._logged_problems[key] = gang.problem
            _log.error("%s/%s revision %s exports nothing: %s", key.namespace, key.job, key.revision, gang.problem)

    def __str__(self) -> str:
        stepping = sum(gang.formed_at is not None for gang in self._gangs.values())
        return (
            f"{len(self._pods)} pods of {len(self._gangs)} revisions on {len(self._nodes)} nodes, {stepping} stepping"
        )
