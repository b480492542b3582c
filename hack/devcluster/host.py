"""Folders and kernel settings of the machine that Kubernetes' programs change, and how they are restored.

The kubelet sets kernel parameters and uses two fixed folders; containerd's shims keep their sockets in a third; CNI has
a cache in a fourth. Settings are restored; this cluster's files are removed, and so are folders that are then empty.
"""

import json
import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from devcluster import locks, probes
from devcluster.node import cni_network
from devcluster.spec import Cluster, state_home

_PROC_SYS: Final = Path("/proc/sys")
_SYSCTLS: Final = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
_SHIM_SOCKETS: Final = Path("/run/containerd/s")
_CNI_RESULTS: Final = Path("/var/lib/cni/results")
_CONTAINER_LOGS: Final = Path("/var/log/containers")
_DEVICE_PLUGINS: Final = Path("/var/lib/kubelet/device-plugins")


def unchanged() -> AbstractContextManager[None]:
    """A shared lock for a starting cluster: shared settings and files are not removed meanwhile."""
    return locks.held(state_home() / "host.lock", shared=True)


def changing() -> AbstractContextManager[None]:
    """An exclusive lock for the removal or restoration of shared settings and files."""
    return locks.held(state_home() / "host.lock")


def one_kubelet_starting() -> AbstractContextManager[None]:
    """One kubelet starts at a time: it empties the folder of device plugins, where another may be about to connect."""
    return locks.held(state_home() / "kubelet.lock")


def _saved() -> Path:
    return state_home() / "host-settings.json"


def remember_settings() -> None:
    """Record kernel settings before the first kubelet changes them. Later clusters keep that record."""
    if not _saved().exists():
        found = {key: path.read_text().strip() for key in _SYSCTLS if (path := _PROC_SYS / key).exists()}
        _saved().parent.mkdir(parents=True, exist_ok=True)
        _saved().write_text(json.dumps(found))


def restore_settings() -> None:
    """Restore kernel settings after the last cluster is down."""
    try:
        settings: dict[str, str] = json.loads(_saved().read_text())
    except (FileNotFoundError, ValueError):
        return
    for key, value in settings.items():
        path = _PROC_SYS / key
        try:
            if path.read_text().strip() != value:
                path.write_text(value)
        except OSError:
            pass  # not writable here, so the kubelet could not change it either
    _saved().unlink()


def mps_folder(cluster: Cluster) -> Path:
    """Where programs meet NVIDIA's MPS. Not in the state folder, which other users can't reach."""
    return Path(f"/run/rightpool-{cluster.name}-mps")


def remove_files(cluster: Cluster, *, last: bool) -> None:
    """Remove this cluster's files. last: no other cluster is up, so shared files are removed too."""
    shutil.rmtree(mps_folder(cluster), ignore_errors=True)
    for result in _CNI_RESULTS.glob(f"{cni_network(cluster)}-*"):
        container = result.name.removeprefix(f"{cni_network(cluster)}-").removesuffix("-eth0")
        result.unlink(missing_ok=True)
        (_CNI_RESULTS / f"cni-loopback-{container}-lo").unlink(missing_ok=True)
    for link in _CONTAINER_LOGS.glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{cluster.state}/"):
            link.unlink(missing_ok=True)
    for socket in _SHIM_SOCKETS.glob("*"):
        if socket.is_socket() and not probes.listens(socket):
            socket.unlink(missing_ok=True)
    if last and not probes.listens(_DEVICE_PLUGINS / "kubelet.sock"):
        for name in ("kubelet.sock", "kubelet_internal_checkpoint", "DEPRECATION", "rightpool-*.sock"):
            for path in _DEVICE_PLUGINS.glob(name):
                path.unlink(missing_ok=True)
    for folder in (_SHIM_SOCKETS, _CNI_RESULTS, _CONTAINER_LOGS, _DEVICE_PLUGINS):
        _remove_empty(folder)


def _remove_empty(folder: Path) -> None:
    """Remove an empty folder, and its parent if that is empty then; never a system folder."""
    for path in (folder, folder.parent):
        if path in (Path("/var/log"), Path("/var/lib"), Path("/run")):
            return
        try:
            path.rmdir()
        except OSError:
            return


def mounts_below(folder: Path) -> list[str]:
    """Mount points below a folder, deepest first. The kernel writes blanks in paths as octal."""
    prefix = f"{folder}/"
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    decoded = (point.encode().decode("unicode_escape") for point in points)
    return sorted((point for point in decoded if point.startswith(prefix)), reverse=True)


def remove_tree(folder: Path) -> None:
    """Remove a folder, unless something is mounted below it: that may be user data."""
    if folder.exists() and not mounts_below(folder):
        shutil.rmtree(folder, ignore_errors=True)


def is_root() -> bool:
    return os.geteuid() == 0
