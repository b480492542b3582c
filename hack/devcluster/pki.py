"""Certificates and kubeconfigs of one cluster. Self-signed, and stored in the state folder only."""

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from devcluster.spec import NODE_NAME, Cluster, DevclusterError

_DAYS: Final = "365"
# To find primes for as many RSA keys took four seconds of each first start.
_KEY: Final = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
_NEW_KEY: Final = ("-newkey", "ec", "-nodes", *_KEY[2:])


@dataclass(frozen=True)
class User:
    """A client certificate, by which the audit log and RBAC identify a component."""

    name: str
    subject: str


USERS: Final = (
    User("admin", "/O=system:masters/CN=admin"),
    User("controller-manager", "/CN=system:kube-controller-manager"),
    User("scheduler", "/CN=system:kube-scheduler"),
    User("proxy", "/CN=system:kube-proxy"),
    User("kubelet", f"/O=system:nodes/CN=system:node:{NODE_NAME}"),
    # Separate users, so that the audit log can leave their requests out.
    User("kwok", "/O=system:masters/CN=devcluster:kwok"),
    User("coredns", "/O=system:masters/CN=devcluster:coredns"),
    User("prometheus", "/O=system:masters/CN=devcluster:prometheus"),
)


def folder(cluster: Cluster) -> Path:
    return cluster.state / "pki"


def kubeconfig(cluster: Cluster, user: str) -> Path:
    return cluster.state / f"{user}.kubeconfig"


def ensure(cluster: Cluster, server: str) -> None:
    """Create missing files. server: the API server's address, the node's or loopback without root."""
    pki = folder(cluster)
    pki.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (pki / "sa.pub").exists():
        _openssl("genpkey", *_KEY, "-out", f"{pki}/sa.key")
        _openssl("pkey", "-in", f"{pki}/sa.key", "-pubout", "-out", f"{pki}/.sa.pub")
        (pki / ".sa.pub").rename(pki / "sa.pub")
    if not (pki / "ca.crt").exists():
        for stale in pki.glob("*.crt"):  # signed by an earlier CA
            stale.unlink()
        _openssl(
            *(
                "req",
                "-x509",
                *_NEW_KEY,
                "-days",
                _DAYS,
                "-subj",
                f"/CN=rightpool-{cluster.name}",
            ),
            *("-keyout", f"{pki}/ca.key", "-out", f"{pki}/.ca.crt"),
        )
        (pki / ".ca.crt").rename(pki / "ca.crt")
    names = ("IP:127.0.0.1", f"IP:{cluster.node_ip}", f"IP:{cluster.service_ip}", "DNS:localhost")
    service = ("DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc")
    _certificate(pki, "apiserver", "/CN=kube-apiserver", f"subjectAltName={','.join((*names, *service))}")
    for user in USERS:
        _certificate(pki, user.name, user.subject, "extendedKeyUsage=clientAuth")
        _write_kubeconfig(cluster, user.name, server)


def server_certificate(cluster: Cluster, name: str) -> Path:
    """The certificate of a program that answers at loopback, by the cluster's CA; its key lies beside it."""
    _certificate(folder(cluster), name, f"/CN={name}", "subjectAltName=IP:127.0.0.1,DNS:localhost")
    return folder(cluster) / f"{name}.crt"


def _certificate(pki: Path, name: str, subject: str, extension: str) -> None:
    """Write a certificate and its key. The certificate is moved into place last: if it exists, its key does too."""
    if (pki / f"{name}.crt").exists():
        return
    request, extensions, fresh = pki / f".{name}.csr", pki / f".{name}.ext", pki / f".{name}.crt"
    extensions.write_text(extension + "\n")
    _openssl("req", *_NEW_KEY, "-subj", subject, "-keyout", f"{pki}/{name}.key", "-out", f"{request}")
    _openssl(
        *("x509", "-req", "-in", f"{request}", "-CA", f"{pki}/ca.crt", "-CAkey", f"{pki}/ca.key", "-CAcreateserial"),
        *("-out", f"{fresh}", "-days", _DAYS, "-extfile", f"{extensions}"),
    )
    fresh.rename(pki / f"{name}.crt")
    for scratch in (request, extensions):
        scratch.unlink()


def _write_kubeconfig(cluster: Cluster, user: str, server: str) -> None:
    """Write a kubeconfig with inline certificates, so that it can be copied, for example into a Secret."""

    def data(name: str) -> str:
        return base64.b64encode((folder(cluster) / name).read_bytes()).decode()

    context = f"rightpool-{cluster.name}"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": {"server": server, "certificate-authority-data": data("ca.crt")}}],
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": data(f"{user}.crt"), "client-key-data": data(f"{user}.key")},
            }
        ],
        "contexts": [{"name": context, "context": {"cluster": context, "user": user}}],
        "current-context": context,
    }
    path = kubeconfig(cluster, user)
    text = yaml.safe_dump(content, sort_keys=False)
    if not path.exists() or path.read_text() != text:
        path.touch(mode=0o600)
        path.write_text(text)


def _openssl(*arguments: str) -> None:
    try:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True, timeout=60)
    except subprocess.CalledProcessError as error:
        raise DevclusterError(f"openssl {arguments[0]} failed:\n{error.stderr}") from None
