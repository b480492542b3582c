"""Kubernetes discovery for a Prometheus that was built without it: watches pods and writes a targets file.

Lists pods and then watches them, and writes one target for each declared container port with the `__meta_kubernetes_*`
labels of Prometheus' own discovery (role `pod`) that the rules in `monitoring` use. The file is written at most twice a
second and only when a target has changed.

Runs as a separate process: `python -m devcluster.discovery KUBECONFIG TARGETS_FILE`.
"""

import json
import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from devcluster.api import Api
from devcluster.watch import Watch

WRITE_SECONDS: Final = 0.5
_META: Final = "__meta_kubernetes_"


def targets(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One target for each declared port, as in Prometheus' discovery; none before the pod has an address."""
    address = pod.get("status", {}).get("podIP")
    if not address:
        return []
    common = _pod_labels(pod)
    spec = pod["spec"]
    found = []
    for containers, init in ((spec.get("containers", ()), "false"), (spec.get("initContainers", ()), "true")):
        for container in containers:
            for port in container.get("ports", ()):
                labels = {
                    **common,
                    f"{_META}pod_container_init": init,
                    f"{_META}pod_container_name": container["name"],
                    f"{_META}pod_container_port_name": port.get("name", ""),
                    f"{_META}pod_container_port_number": str(port["containerPort"]),
                }
                found.append({"targets": [f"{address}:{port['containerPort']}"], "labels": labels})
    return found


def _pod_labels(pod: Mapping[str, Any]) -> dict[str, str]:
    meta, status = pod["metadata"], pod["status"]
    labels = {
        f"{_META}namespace": meta["namespace"],
        f"{_META}pod_name": meta["name"],
        f"{_META}pod_ip": status["podIP"],
        f"{_META}pod_phase": status.get("phase", "Unknown"),
        f"{_META}pod_node_name": pod["spec"].get("nodeName", ""),
        f"{_META}pod_uid": meta["uid"],
    }
    for kind in ("labels", "annotations"):
        for key, value in meta.get(kind, {}).items():
            name = re.sub(r"[^a-zA-Z0-9_]", "_", key)
            labels[f"{_META}pod_{kind.removesuffix('s')}_{name}"] = value
            labels[f"{_META}pod_{kind.removesuffix('s')}present_{name}"] = "true"
    return labels


class TargetsFile:
    """The file that Prometheus watches, replaced atomically and only when its content changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._by_pod: dict[str, list[dict[str, Any]]] = {}
        self._written = ""
        self._lock = threading.Lock()

    def replace(self, pods: Iterable[Mapping[str, Any]]) -> None:
        with self._lock:
            self._by_pod = {pod["metadata"]["uid"]: found for pod in pods if (found := targets(pod))}

    def change(self, pod: Mapping[str, Any], exists: bool) -> None:
        found = targets(pod) if exists else []
        with self._lock:
            if found:
                self._by_pod[pod["metadata"]["uid"]] = found
            else:
                self._by_pod.pop(pod["metadata"]["uid"], None)

    def write(self) -> None:
        with self._lock:
            text = json.dumps([target for uid in sorted(self._by_pod) for target in self._by_pod[uid]])
        if text != self._written:
            temporary = self._path.with_name(f".{self._path.name}.tmp")
            temporary.write_text(text)
            temporary.replace(self._path)
            self._written = text


def main(kubeconfig: Path, path: Path) -> None:
    file = TargetsFile(path)
    # Where the API server restarts, the last targets are kept.
    Watch(Api(kubeconfig), "/api/v1/pods", reduce=lambda pod: pod, replaced=file.replace, changed=file.change).start()
    while True:
        file.write()
        time.sleep(WRITE_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
