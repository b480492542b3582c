"""The network of one cluster: a namespace with a bridge, connected to the host by one veth pair.

All network changes of a cluster are inside its own namespace: kube-proxy's rules are global to a namespace and its
clean-up would remove another cluster's. The host gets one interface with three routes (nodes and pods, Services,
simulated pods). Deleting the namespace deletes bridge, rules, routes and veth pairs in one step, even without records.

    host ── rp-<name> ════ host0 ┐                       namespace rp-<name>
      .254                       ├─ rpbr-<name> .1 ── veth… ── pods .10–.240
                    sim0 ════════┘
                     └ eth0 .250   namespace rp-<name>-sim: every address of the simulated pods is local there
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devcluster import deps
from devcluster.spec import Cluster, DevclusterError

NAMESPACES: Final = Path("/run/netns")
_SECONDS: Final = 300
_HOST_PORT: Final = "host0"
_SIMULATED_PORT: Final = "sim0"
# After an ICMP redirect pods would bypass the node and with it the rules of Services.
_SYSCTLS: Final = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
}


def ip(*arguments: str) -> str:
    """Run `ip`; its error message becomes the exception."""
    result = _ip(*arguments)
    if result.returncode != 0:
        raise DevclusterError(f"ip {' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout


def _ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = deps.find("ip")
    if program is None:
        raise DevclusterError("`ip` is missing (Debian package iproute2)")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_SECONDS)


def namespace_works(name: str) -> bool:
    """Whether the namespace can be entered. After a crash or reboot its file may exist without it."""
    return _ip("-n", name, "link", "show", "lo").returncode == 0


def intact(cluster: Cluster) -> bool:
    return namespace_works(cluster.namespace) and namespace_works(cluster.simulated_namespace)


def ensure(cluster: Cluster) -> list[str]:
    """Create the missing parts and return their names. Idempotent."""
    made: list[str] = []
    for name in (cluster.namespace, cluster.simulated_namespace):
        if not namespace_works(name):
            _delete_namespace(name)
            ip("netns", "add", name)
            made.append(f"namespace {name}")
        ip("-n", name, "link", "set", "lo", "up")
        set_sysctls(name, _SYSCTLS)
    made += _ensure_bridge(cluster)
    made += _ensure_veth(
        cluster,
        port=_HOST_PORT,
        far=cluster.host_link,
        namespace=None,
        address=cluster.host_ip,
        routes=[
            ("unicast", cluster.service_cidr, cluster.node_ip),
            ("unicast", cluster.simulated_cidr, cluster.simulated_ip),
        ],
    )
    made += _ensure_veth(
        cluster,
        port=_SIMULATED_PORT,
        far="eth0",
        namespace=cluster.simulated_namespace,
        address=cluster.simulated_ip,
        routes=[("unicast", "default", cluster.node_ip)],
    )
    ip("-n", cluster.simulated_namespace, "route", "replace", "local", cluster.simulated_cidr, "dev", "lo")
    ip("-n", cluster.namespace, "route", "replace", cluster.simulated_cidr, "via", cluster.simulated_ip)
    return made


def _ensure_bridge(cluster: Cluster) -> list[str]:
    made: list[str] = []
    inside = ("-n", cluster.namespace)
    if not _exists(cluster.bridge, cluster.namespace):
        ip(*inside, "link", "add", cluster.bridge, "type", "bridge")
        # Without a fixed MAC address a bridge takes the lowest of its ports', which changes while pods use it.
        octets = "".join(f":{int(part):02x}" for part in cluster.node_ip.split("."))
        ip(*inside, "link", "set", cluster.bridge, "address", f"0a:58{octets}")
        made.append(f"bridge {cluster.bridge}")
    ip(*inside, "addr", "replace", f"{cluster.node_ip}/{cluster.prefix}", "dev", cluster.bridge)
    ip(*inside, "link", "set", cluster.bridge, "up")
    if made:  # pods that survived the old bridge are attached to the new one
        for line in ip(*inside, "-o", "link", "show", "type", "veth").splitlines():
            name = line.split(": ")[1].split("@")[0]
            if " master " not in line:
                ip(*inside, "link", "set", name, "master", cluster.bridge, "up")
    return made


def _ensure_veth(
    cluster: Cluster,
    *,
    port: str,
    far: str,
    namespace: str | None,
    address: str,
    routes: list[tuple[str, str, str]],
) -> list[str]:
    """A veth pair from the bridge to the host (namespace None) or to the simulated pods' namespace."""
    made: list[str] = []
    far_side = () if namespace is None else ("-n", namespace)
    if not (_exists(far, namespace) and _exists(port, cluster.namespace)):
        _ip(*far_side, "link", "delete", far)
        _ip("-n", cluster.namespace, "link", "delete", port)
        peer = ("peer", "name", port, "netns", cluster.namespace)
        ip(*far_side, "link", "add", far, "type", "veth", *peer)
        made.append(f"cable {far}")
    ip("-n", cluster.namespace, "link", "set", port, "master", cluster.bridge, "up")
    ip(*far_side, "addr", "replace", f"{address}/{cluster.prefix}", "dev", far)
    ip(*far_side, "link", "set", far, "up")
    for kind, destination, via in routes:
        ip(*far_side, "route", "replace", kind, destination, "via", via, "dev", far)
    return made


def _exists(interface: str, namespace: str | None) -> bool:
    side = () if namespace is None else ("-n", namespace)
    return _ip(*side, "link", "show", interface).returncode == 0


def set_sysctls(namespace: str, values: Mapping[str, str]) -> None:
    """Set kernel parameters in the namespace, by their path below /proc/sys, which shows those of the reading process.

    Raises DevclusterError, also where the kernel lacks one.
    """
    script = "; ".join(f"echo {value} > /proc/sys/{key}" for key, value in values.items())
    command = ["nsenter", f"--net={NAMESPACES / namespace}", "--", "sh", "-ec", script]
    result = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    if result.returncode != 0:
        raise DevclusterError(f"network settings in {namespace}: {result.stderr.strip()}")


def processes_inside(cluster: Cluster) -> list[int]:
    """All processes in the cluster's namespaces, recorded or not. Containers have separate namespaces."""
    pids: list[int] = []
    for name in (cluster.namespace, cluster.simulated_namespace):
        result = _ip("netns", "pids", name)
        pids += [int(pid) for pid in result.stdout.split()] if result.returncode == 0 else []
    return [pid for pid in pids if pid != os.getpid()]


def remove(cluster: Cluster) -> None:
    """Remove the network, or what is left of it. Idempotent."""
    if not available():
        return
    for name in (cluster.simulated_namespace, cluster.namespace):
        _delete_namespace(name)
    if _exists(cluster.host_link, None):  # removed with the namespace, but with a delay
        _ip("link", "delete", cluster.host_link)


def _delete_namespace(name: str) -> None:
    path = NAMESPACES / name
    if path.exists() and _ip("netns", "delete", name).returncode != 0:
        path.unlink(missing_ok=True)


def left(cluster: Cluster) -> list[str]:
    """Parts that `remove` should have removed and that still exist."""
    found = [
        f"network namespace {name}"
        for name in (cluster.namespace, cluster.simulated_namespace)
        if (NAMESPACES / name).exists()
    ]
    if not available():
        return found
    if _exists(cluster.host_link, None):
        found.append(f"interface {cluster.host_link}")
    for cidr in (cluster.node_subnet, cluster.service_cidr, cluster.simulated_cidr):
        found += [f"route {line.strip()}" for line in _ip("route", "show", cidr).stdout.splitlines()]
    return found


def available() -> bool:
    return deps.find("ip") is not None
