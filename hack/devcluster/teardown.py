"""Removes a cluster, complete or damaged, and checks that nothing remains.

Records may be missing after a crash, so processes are also found by the cluster's network namespace, its cgroup and the
shims' command lines. The state is deleted too, so processes are killed without a grace period.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from devcluster import host, network, node
from devcluster.processes import Identity, Supervisor, stop_all
from devcluster.spec import NAMED, Cluster, DevclusterError, state_home

_SECONDS: Final = 300.0
_RESTARTERS: Final = ("kubelet", "containerd")  # first, because they would restart what is killed


def remove(cluster: Cluster) -> None:
    """Remove the cluster. Idempotent. Raises with a list of what could not be removed."""
    kill_processes(cluster)
    if host.is_root():
        for point in host.mounts_below(cluster.state):
            subprocess.run(["umount", "--lazy", point], capture_output=True)
        _remove_cgroups(cluster)
        network.remove(cluster)
    host.remove_tree(cluster.state)
    if host.is_root():
        with host.changing():
            last = not others_up(cluster)
            host.remove_files(cluster, last=last)
            if last:
                host.restore_settings()
    remaining = left(cluster)
    if remaining:
        raise DevclusterError("\n  ".join([f"cluster {cluster.name} is down, but this is left:", *remaining]))


def left(cluster: Cluster) -> list[str]:
    """Parts of this cluster that still exist."""
    found = [f"process {identity.pid} ({_command(identity.pid)})" for identity in processes(cluster)]
    found += [f"mount {point}" for point in host.mounts_below(cluster.state)]
    if cluster.state.exists():
        found.append(f"folder {cluster.state}")
    if host.is_root():
        found += network.left(cluster)
        found += [f"cgroup {folder}" for folder in node.cgroup_folders(cluster) if folder.exists()]
    return found


def others_up(cluster: Cluster) -> bool:
    """Whether another cluster of this user is up, including clusters that are not in NAMED."""
    names = {path.name for path in state_home().glob("*") if path.is_dir()} | set(NAMED)
    return any(Supervisor(state_home() / name).records() for name in names - {cluster.name})


def kill_processes(cluster: Cluster) -> None:
    """Kill all of them, and those that start meanwhile."""
    supervisor = Supervisor(cluster.state)
    supervisor.stop(_RESTARTERS, grace=0.0)
    deadline = time.monotonic() + _SECONDS
    while (alive := processes(cluster)) and time.monotonic() < deadline:
        for identity in alive:
            identity.signal(signal.SIGKILL)
        stop_all(alive, grace=1.0)
    supervisor.stop([record.name for record in supervisor.records()], grace=0.0)


def processes(cluster: Cluster) -> list[Identity]:
    recorded = [record.identity for record in Supervisor(cluster.state).records()]
    pids: set[int] = set()
    if host.is_root():
        pids.update(network.processes_inside(cluster) if network.available() else [])
        pids.update(_in_cgroups(cluster), _shims(cluster))
    found = {identity for pid in pids - {os.getpid()} if (identity := Identity.of(pid)) is not None}
    return sorted(found | {identity for identity in recorded if identity.alive()}, key=lambda identity: identity.pid)


def _in_cgroups(cluster: Cluster) -> Iterable[int]:
    """Processes in containers, which have separate network namespaces and may have lost their shim."""
    for folder in node.cgroup_folders(cluster):
        for group in _groups(folder):
            try:
                yield from (int(line) for line in (group / "cgroup.procs").read_text().split())
            except OSError:
                continue  # the group was removed meanwhile


def _groups(top: Path) -> Iterable[Path]:
    """A cgroup and all inside, innermost first. Without those that go meanwhile, of which `Path.rglob` raises."""
    return (Path(folder) for folder, _, _ in os.walk(top, topdown=False))


def _shims(cluster: Cluster) -> Iterable[int]:
    socket = os.fsencode(cluster.containerd_socket)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if arguments[0].endswith(b"containerd-shim-runc-v2") and socket in arguments:
            yield int(path.parent.name)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()[:80]
    except OSError:
        return "gone meanwhile"


def _remove_cgroups(cluster: Cluster) -> None:
    """Remove cgroups. A group can be removed once its killed processes are gone."""
    deadline = time.monotonic() + _SECONDS
    for top in node.cgroup_folders(cluster):
        while top.exists() and time.monotonic() < deadline:
            for group in _groups(top):
                try:
                    group.rmdir()
                except OSError:
                    pass
            if top.exists():
                time.sleep(0.1)
