"""A whole cluster: start it, remove it, and list its programs.

`up` changes nothing in a healthy cluster and repairs a broken one.
"""

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from devcluster import (
    build,
    control_plane,
    deps,
    host,
    images,
    monitoring,
    network,
    node,
    pki,
    simulated,
    teardown,
)
from devcluster.api import Api
from devcluster.kubectl import Kubectl
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import DEV_CHIP_RESOURCE, DEV_CHIPS, NODE_NAME, Cluster, DevclusterError, state_home

START_SECONDS: Final = 900.0
ANSWER_SECONDS: Final = (
    60.0  # for programs that were already running: after this time without an answer they are restarted
)
NODE_SECONDS: Final = 900.0
LONGEST_SOCKET: Final = 95  # the kernel allows 107 characters, and containerd appends to the name


@dataclass(frozen=True)
class Running:
    """A running cluster, with the paths and addresses that tests and people need."""

    spec: Cluster
    kubeconfig: Path
    prometheus_url: str
    with_node: bool

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.kubeconfig)

    @property
    def bin_dir(self) -> Path:
        return build.bin_dir()

    def load_images(self, *files: Path) -> list[str]:
        return images.load(self.spec, files)

    def set_nodes(self, pool: str, count: int) -> None:
        """Set the number of simulated nodes of a pool, and wait until all are Ready."""
        api, described = Api(self.kubeconfig), simulated.pool_named(pool)
        simulated.set_nodes(api, described, count)
        complaint = f"not all {count} nodes of {pool} are Ready"
        _until(
            lambda: simulated.ready_nodes(api, described) == count,
            NODE_SECONDS + count / 10,
            complaint,
            self.spec.logs / "kwok.log",
        )


def up(cluster: Cluster, progress: Progress | None = None) -> Running:
    """Start missing programs, restart those that have ended or do not answer, and wait until all are ready."""
    root = host.is_root()
    progress = progress or Progress()
    deps.require(root=root)
    build.ensure(build.EVERYTHING if root else build.CONTROL_PLANE, progress)
    with _exclusive(cluster), host.unchanged():
        return _Start(cluster, progress, root).run()


def down(cluster: Cluster) -> None:
    with _exclusive(cluster):
        teardown.remove(cluster)


def running(cluster: Cluster) -> Running:
    """The cluster, without a check that it answers."""
    root = host.is_root()
    return Running(cluster, cluster.kubeconfig, monitoring.url(cluster, root=root), with_node=root)


def programs(cluster: Cluster, *, root: bool) -> list[Program]:
    """All programs that should run."""
    wanted = [*control_plane.programs(cluster, root=root), *simulated.programs(cluster, root=root)]
    wanted += node.programs(cluster) if root else ()
    return [*wanted, *monitoring.programs(cluster, root=root)]


def _lock(cluster: Cluster) -> Path:
    return state_home() / f"{cluster.name}.lock"


@contextlib.contextmanager
def _exclusive(cluster: Cluster) -> Iterator[None]:
    """A lock for one `up` or `down` of a cluster at a time; the kernel releases it when the holder ends."""
    state_home().mkdir(parents=True, exist_ok=True)
    with _lock(cluster).open("w") as lock:
        deadline = time.monotonic() + 600
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DevclusterError(f"another command holds {_lock(cluster)} for 10 minutes") from None
                time.sleep(0.2)
        yield


class _Start:
    """One run of `up`."""

    def __init__(self, cluster: Cluster, progress: Progress, root: bool) -> None:
        self._cluster = cluster
        self._progress = progress
        self._root = root
        self._supervisor = Supervisor(cluster.state)

    def run(self) -> Running:
        cluster, root = self._cluster, self._root
        if len(str(cluster.containerd_socket)) > LONGEST_SOCKET:
            raise DevclusterError(f"{cluster.state} is too deep for the kernel's socket names; set XDG_STATE_HOME")
        cluster.logs.mkdir(parents=True, exist_ok=True)
        pki.ensure(cluster, control_plane.server(cluster, root=root))
        container_node: tuple[Program, ...] = ()
        if root:
            self._network()
            host.remember_settings()
            node.prepare(cluster)
            container_node = node.programs(cluster)
        # containerd needs no API server: it starts meanwhile.
        core = control_plane.programs(cluster, root=root)
        first = (*core[:2], *container_node[:1])
        self._answering(first)
        if root and images.ensure_pause(cluster):
            self._progress.say("imported the pause image")
        began = datetime.now(UTC).replace(microsecond=0)
        rest = (*core[2:], *simulated.programs(cluster, root=root), *container_node[1:])
        with host.one_kubelet_starting():
            restarted = self._answering((*rest, *monitoring.programs(cluster, root=root)))
        kubectl = Kubectl(cluster.kubeconfig)
        self._nodes(kubectl, since=began if "kubelet" in restarted else None)
        return Running(cluster, cluster.kubeconfig, monitoring.url(cluster, root=root), with_node=root)

    def _network(self) -> None:
        if not network.intact(self._cluster) and teardown.processes(self._cluster):
            self._progress.say("the network is gone; stopping what still lives in its remains")
            teardown.kill_processes(self._cluster)
        for made in network.ensure(self._cluster):
            self._progress.say(f"made {made}")

    def _answering(self, wanted: Iterable[Program]) -> set[str]:
        """Start all of them, then wait for each. Returns the names of those that were (re)started."""
        started: set[str] = set()
        listed = tuple(wanted)
        for program in listed:
            self._ensure(program, started)
        for program in listed:
            if program.name not in started:
                try:
                    self._supervisor.wait(program, seconds=ANSWER_SECONDS)
                    continue
                except DevclusterError:
                    self._progress.say(f"{program.name} does not answer")
                    self._supervisor.stop([program.name], grace=2.0)
                    self._ensure(program, started)
            self._supervisor.wait(program, seconds=START_SECONDS)
        return started

    def _ensure(self, program: Program, started: set[str]) -> None:
        did = self._supervisor.ensure(program)
        if did is not None:
            self._progress.say(f"{program.name} {did}")
            started.add(program.name)

    def _nodes(self, kubectl: Kubectl, *, since: datetime | None) -> None:
        for name, count in simulated.default_counts(self._cluster).items():
            simulated.ensure_nodes(kubectl, simulated.POOLS[name], count)
        if self._root:
            _until(
                lambda: _reported(kubectl, since),
                NODE_SECONDS,
                f"{NODE_NAME} is not Ready",
                self._supervisor.log("kubelet"),
            )
            _offer_chips(kubectl)
        _wait_for_nodes(kubectl)
        listed = kubectl("get", "nodes", "--output=name").split()
        self._progress.say(f"{len(listed)} nodes are Ready")


def _reported(kubectl: Kubectl, since: datetime | None) -> bool:
    """Whether the present kubelet has reported the node Ready: the status of an earlier kubelet remains stored."""
    listed = kubectl.json("get", "nodes", f"--field-selector=metadata.name={NODE_NAME}")["items"]
    conditions = listed[0]["status"].get("conditions", []) if listed else []
    for condition in conditions:
        if condition["type"] == "Ready" and condition["status"] == "True":
            return since is None or datetime.fromisoformat(condition["lastHeartbeatTime"]) >= since
    return False


def _offer_chips(kubectl: Kubectl) -> None:
    """Set the number of development chips, which have no device. A starting kubelet resets it to zero."""
    status = kubectl.json("get", "node", NODE_NAME)["status"]
    count = str(DEV_CHIPS)
    if any(status[kind].get(DEV_CHIP_RESOURCE) != count for kind in ("capacity", "allocatable")):
        chips = f'{{"{DEV_CHIP_RESOURCE}":"{count}"}}'
        patch = f'{{"status":{{"capacity":{chips},"allocatable":{chips}}}}}'
        kubectl("patch", "node", NODE_NAME, "--subresource=status", "--type=merge", f"--patch={patch}")


def _wait_for_nodes(kubectl: Kubectl) -> None:
    kubectl("wait", "nodes", "--all", "--for=condition=Ready", f"--timeout={NODE_SECONDS:.0f}s")


def _until(ready: Callable[[], bool], seconds: float, complaint: str, log: Path) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise DevclusterError(f"{complaint} after {seconds:.0f} s; see {log}")
        time.sleep(0.3)
