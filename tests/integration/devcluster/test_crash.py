"""A whole cluster, killed in several ways: `up` repairs it, `down` removes it, other clusters are not affected."""

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster import cluster as clusters
from devcluster import deps, host, network, teardown
from devcluster.processes import Identity, Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import Cluster, Ports
from tests.patience import PATIENCE

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("root")]
QUIET = Progress(quiet=True)


def pause_pod(name: str) -> dict[str, Any]:
    """A pod with the one image that every cluster has."""
    container = {"name": "main", "image": "pause:dev", "imagePullPolicy": "Never"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def firewall() -> list[str]:
    program = deps.find("iptables-save")
    assert program is not None
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return [line for line in output.splitlines() if line.startswith("-A")]  # without comments, which have the time


@pytest.fixture
def neighbour(root: None, tmp_path: Path) -> Iterator[Identity]:
    """A process in the network of another cluster."""
    spec = Cluster("near", Ports.starting_at(24440), "10.111.0.0/24", "10.112.0.0/24", "10.113.0.0/16")
    network.remove(spec)
    network.ensure(spec)
    supervisor = Supervisor(tmp_path)
    supervisor.ensure(Program("etcd", ("sleep", "3600"), namespace=spec.namespace))
    record = supervisor.record("etcd")
    assert record is not None
    yield record.identity
    assert record.identity.alive()
    assert network.intact(spec)
    supervisor.stop(["etcd"], grace=0.2)
    network.remove(spec)


@pytest.fixture
def broken_later(crash: Cluster, root: None) -> Iterator[Cluster]:
    clusters.down(crash)
    yield crash
    clusters.down(crash)


def kill(cluster: Cluster, *names: str, number: int = signal.SIGKILL) -> None:
    for name in names:
        record = Supervisor(cluster.state).record(name)
        assert record is not None, name
        record.identity.signal(number)


def wait_for_pod(running: clusters.Running, name: str) -> None:
    running.kubectl("wait", f"pod/{name}", "--for=condition=Ready", f"--timeout={PATIENCE:.0f}s")


def test_repaired_after_a_crash_and_gone_after_another(neighbour: Identity, broken_later: Cluster) -> None:
    spec = broken_later
    rules = firewall()

    running = clusters.up(spec, QUIET)
    running.kubectl.apply([pause_pod("before")])
    wait_for_pod(running, "before")
    chips = running.kubectl.json("get", "node", "node-0")["status"]["allocatable"]["rightpool.dev/cpu-chip"]
    assert chips == "2"
    before = {record.name: record.identity for record in Supervisor(spec.state).records()}
    clusters.up(spec, QUIET)
    assert before == {record.name: record.identity for record in Supervisor(spec.state).records()}

    # Some processes are killed, and one is stopped: it has a pid and does not answer.
    kill(spec, "etcd", "kube-apiserver", "containerd")
    kill(spec, "coredns", number=signal.SIGSTOP)
    running = clusters.up(spec, QUIET)
    wait_for_pod(running, "before")
    running.kubectl.apply([pause_pod("after")])
    wait_for_pod(running, "after")

    # The network is removed.
    network.ip("netns", "delete", spec.namespace)
    running = clusters.up(spec, QUIET)
    running.kubectl.apply([pause_pod("third")])
    wait_for_pod(running, "third")

    running.set_nodes("a10g", 5)
    running.set_nodes("a10g", 2)
    nodes = running.kubectl("get", "nodes", "--selector=simulation.rightpool.dev/pool=a10g", "--output=name").split()
    assert nodes == ["node/a10g-0", "node/a10g-1"]

    # All processes and records are lost.
    alive = teardown.processes(spec)
    chance = random.Random(1)
    for identity in chance.sample(alive, len(alive) // 2):
        identity.signal(signal.SIGKILL)
    for record in (spec.state / "pid").glob("kube*.json"):
        record.unlink()
    (spec.state / "pid" / "etcd.json").write_text("{")
    clusters.down(spec)
    assert teardown.left(spec) == []
    clusters.down(spec)  # repeating it is no error

    assert firewall() == rules
    assert neighbour.alive()


def test_shims_containers_and_mounts_are_found_without_any_record(broken_later: Cluster) -> None:
    running = clusters.up(broken_later, QUIET)
    running.kubectl.apply([pause_pod("orphan")])
    wait_for_pod(running, "orphan")
    assert host.mounts_below(broken_later.state)
    for record in (broken_later.state / "pid").glob("*.json"):
        record.unlink()
    shims = list(teardown._shims(broken_later))
    assert shims
    for pid in shims:
        os.kill(pid, signal.SIGKILL)  # the containers continue as children of init
    clusters.down(broken_later)
    assert teardown.left(broken_later) == []
    assert not list(Path("/var/lib/cni/results").glob("rightpool-crash-*"))
