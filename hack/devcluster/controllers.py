"""Controllers of other projects as processes beside the API server, instead of as their modules' Deployments.

Each has the rights of its own service account. Webhooks without a Service are called at a port of loopback, with a
certificate of the cluster's own CA.
"""

import base64
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from devcluster import host, pki
from devcluster.spec import Cluster


def address(cluster: Cluster, port: int) -> str:
    """Where a controller's health is asked for."""
    return f"{cluster.node_ip if host.is_root() else '127.0.0.1'}:{port}"


def kubeconfig_as(cluster: Cluster, account: str, path: Path) -> None:
    """Write a kubeconfig by which a program is this service account."""
    client = yaml.safe_load(pki.kubeconfig(cluster, "admin").read_text())
    client["users"][0]["user"]["as"] = account
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(client, sort_keys=False))


def certificate(cluster: Cluster, name: str, folder: Path) -> None:
    """Write a certificate for loopback to where the controller looks for it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = pki.server_certificate(cluster, name)
    for suffix, file in ((".crt", "tls.crt"), (".key", "tls.key")):
        shutil.copy(made.with_suffix(suffix), folder / file)


def called_at_loopback(cluster: Cluster, objects: Iterable[dict[str, Any]], port: int) -> Iterator[dict[str, Any]]:
    """The objects without Deployments, with their webhooks at a port of loopback."""
    authority = base64.b64encode((pki.folder(cluster) / "ca.crt").read_bytes()).decode()
    for item in objects:
        if item["kind"] == "Deployment":
            continue
        for webhook in item.get("webhooks") or ():
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}
        yield item
