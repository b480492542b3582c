"""etcd, API server, controller-manager and scheduler: their programs and readiness probes."""

from pathlib import Path
from typing import Final

import yaml

from devcluster import build, pki, probes
from devcluster.processes import Program
from devcluster.spec import Cluster

LOOPBACK: Final = "127.0.0.1"

# The audit log serves to compare the requests of a service account with the rights of its role. The frequent requests
# of the cluster's own components are left out.
_AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "None",
            "users": [
                "system:apiserver",
                "system:kube-controller-manager",
                "system:kube-scheduler",
                "system:kube-proxy",
                "devcluster:kwok",
                "devcluster:coredns",
                "devcluster:prometheus",
            ],
        },
        {"level": "None", "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"]},
        {"level": "None", "nonResourceURLs": ["/livez*", "/readyz*", "/healthz*", "/version", "/openapi*"]},
        {"level": "Metadata"},
    ],
}


def address(cluster: Cluster, *, root: bool) -> str:
    """The address of the API server: on the cluster's bridge, or loopback without root."""
    return cluster.node_ip if root else LOOPBACK


def server(cluster: Cluster, *, root: bool) -> str:
    return f"https://{address(cluster, root=root)}:{cluster.ports.api}"


def audit_log(cluster: Cluster) -> Path:
    return cluster.logs / "audit.log"


def programs(cluster: Cluster, *, root: bool) -> tuple[Program, ...]:
    """In the order in which they are started."""
    policy = cluster.state / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(_AUDIT_POLICY, sort_keys=False))
    return (
        _etcd(cluster, root=root),
        _api_server(cluster, policy, root=root),
        _controller_manager(cluster, root=root),
        _scheduler(cluster, root=root),
    )


def _namespace(cluster: Cluster, root: bool) -> str | None:
    return cluster.namespace if root else None


def _etcd(cluster: Cluster, *, root: bool) -> Program:
    """etcd on loopback, because it has no authentication. The API server's readiness covers it."""
    client = f"http://{LOOPBACK}:{cluster.ports.etcd}"
    return Program(
        "etcd",
        (
            build.binary("etcd"),
            f"--data-dir={cluster.state / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls=http://{LOOPBACK}:0",
            "--unsafe-no-fsync",  # survives a killed process; only a power cut loses data, and with it the cluster
            "--log-level=error",
        ),
        ports=(cluster.ports.etcd,),
        namespace=_namespace(cluster, root),
    )


def _api_server(cluster: Cluster, policy: Path, *, root: bool) -> Program:
    keys = pki.folder(cluster)
    here = address(cluster, root=root)
    command = (
        build.binary("kube-apiserver"),
        f"--etcd-servers=http://{LOOPBACK}:{cluster.ports.etcd}",
        f"--cert-dir={cluster.state / 'apiserver'}",
        f"--bind-address={here}",
        f"--advertise-address={cluster.node_ip}",  # loopback is not allowed as an endpoint; without root it is not used
        f"--secure-port={cluster.ports.api}",
        f"--tls-cert-file={keys / 'apiserver.crt'}",
        f"--tls-private-key-file={keys / 'apiserver.key'}",
        f"--client-ca-file={keys / 'ca.crt'}",
        f"--service-cluster-ip-range={cluster.service_cidr}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys / 'sa.pub'}",
        f"--service-account-signing-key-file={keys / 'sa.key'}",
        "--enable-aggregator-routing=true",  # webhooks are reached at their pods' addresses
        f"--kubelet-client-certificate={keys / 'admin.crt'}",
        f"--kubelet-client-key={keys / 'admin.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={audit_log(cluster)}",
        "--audit-log-maxsize=50",
        "--audit-log-maxbackup=1",
        "--max-requests-inflight=1000",
        "--max-mutating-requests-inflight=500",
    )
    return Program(
        "kube-apiserver",
        command,
        ports=(cluster.ports.api,),
        namespace=_namespace(cluster, root),
        reads=(policy, keys / "apiserver.crt", keys / "ca.crt"),
        ready=probes.http(f"https://{here}:{cluster.ports.api}/readyz"),
    )


def _controller_manager(cluster: Cluster, *, root: bool) -> Program:
    keys = pki.folder(cluster)
    return _client(
        cluster,
        "kube-controller-manager",
        pki.kubeconfig(cluster, "controller-manager"),
        cluster.ports.controller_manager,
        (
            f"--service-account-private-key-file={keys / 'sa.key'}",
            f"--root-ca-file={keys / 'ca.crt'}",
            "--use-service-account-credentials",
            "--node-monitor-grace-period=40s",
        ),
        root=root,
    )


def _scheduler(cluster: Cluster, *, root: bool) -> Program:
    return _client(
        cluster, "kube-scheduler", pki.kubeconfig(cluster, "scheduler"), cluster.ports.scheduler, (), root=root
    )


def _client(cluster: Cluster, name: str, kubeconfig: Path, port: int, extra: tuple[str, ...], *, root: bool) -> Program:
    here = address(cluster, root=root)
    command = (
        build.binary(name),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--bind-address={here}",
        f"--secure-port={port}",
        "--kube-api-qps=300",
        "--kube-api-burst=500",
        *extra,
    )
    return Program(
        name,
        command,
        ports=(port,),
        namespace=_namespace(cluster, root),
        reads=(kubeconfig,),
        ready=probes.http(f"https://{here}:{port}/healthz"),
    )
