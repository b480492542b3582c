"""NetworkPolicies of a running cluster, enforced by kube-router's firewall; its router and its proxy stay off.

kube-router is given as a program: it is not among the components that are built from locked Go modules.
"""

from pathlib import Path
from typing import Final

from devcluster import deps, host, network, pki, probes
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import NODE_NAME, Cluster, DevclusterError

START_SECONDS: Final = 60.0
_IPSET: Final = "ipset"
# Pods of the node share a bridge: without it, what they send each other passes no rule.
_SYSCTLS: Final = {"net/bridge/bridge-nf-call-iptables": "1"}


def up(cluster: Cluster, kube_router: Path, progress: Progress) -> None:
    """Enforce them, and wait until kube-router answers; rules follow within a second or two. Repeating it changes
    nothing."""
    if not host.is_root():
        raise DevclusterError("NetworkPolicies are about pods of the container node, and that needs root")
    if not kube_router.is_file():
        raise DevclusterError(f"there is no {kube_router}: docs/lab/security.md says how kube-router is built")
    if deps.find(_IPSET) is None:
        raise DevclusterError(f"{_IPSET} is missing (Debian package {_IPSET})")
    network.set_sysctls(cluster.namespace, _SYSCTLS)
    program, supervisor = _program(cluster, kube_router), Supervisor(cluster.state)
    did = supervisor.ensure(program)
    if did is not None:
        progress.say(f"{program.name} {did}")
    supervisor.wait(program, seconds=START_SECONDS)


def _program(cluster: Cluster, kube_router: Path) -> Program:
    kubeconfig, port = pki.kubeconfig(cluster, "admin"), cluster.ports.kube_router_health
    return Program(
        "kube-router",
        (
            str(kube_router.resolve()),
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={NODE_NAME}",
            f"--service-cluster-ip-range={cluster.service_cidr}",
            f"--health-addr={cluster.node_ip}",
            f"--health-port={port}",
        ),
        ports=(port,),
        environment={"PATH": deps.search_path()},
        namespace=cluster.namespace,
        reads=(kubeconfig,),
        ready=probes.http(f"http://{cluster.node_ip}:{port}/healthz"),
    )
