"""Components from Go modules into a per-user cache.

Each component keeps its own go.mod: in one common module graph Kubernetes, containerd and helm would drag each other's
dependencies away from what they were released with. The cache folder is named by everything that decides what comes
out, so a changed go.sum or another Go builds anew and an unchanged one costs a few stat calls.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from devcluster import locks
from devcluster.progress import Progress
from devcluster.spec import DevclusterError, cache_home

MODULES: Final = Path(__file__).parent / "modules"
KUBERNETES_VERSION: Final = "v1.36.3"
BUILD_SECONDS: Final = 1800
_GO_ENVIRONMENT: Final = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
_MINOR: Final = KUBERNETES_VERSION.split(".")[1]
_KUBERNETES_LDFLAGS: Final = " ".join(
    f"-X k8s.io/component-base/version.{key}={value}"
    for key, value in (("gitVersion", KUBERNETES_VERSION), ("gitMajor", "1"), ("gitMinor", _MINOR))
)


@dataclass(frozen=True)
class Component:
    name: str
    module: str
    package: str
    cold: str  # how long on two cores with an empty Go cache: said before it starts, so that nobody thinks it hangs
    ldflags: str = ""


def _kubernetes(name: str, cold: str) -> Component:
    return Component(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", cold, _KUBERNETES_LDFLAGS)


def _containerd(name: str, cold: str) -> Component:
    return Component(name, "containerd", f"github.com/containerd/containerd/v2/cmd/{name}", cold)


CONTROL_PLANE: Final = (
    _kubernetes("kube-apiserver", "4 min"),
    _kubernetes("kube-controller-manager", "1 min"),
    _kubernetes("kube-scheduler", "4 s"),
    _kubernetes("kubectl", "20 s"),
    Component("etcd", "etcd", "go.etcd.io/etcd/server/v3", "25 s"),
    Component("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "80 s"),
    Component("helm", "helm", "helm.sh/helm/v4/cmd/helm", "70 s"),
)
CONTAINER_NODE: Final = (
    _kubernetes("kubelet", "15 s"),
    _kubernetes("kube-proxy", "8 s"),
    _containerd("containerd", "45 s"),
    _containerd("containerd-shim-runc-v2", "5 s"),
    _containerd("ctr", "5 s"),
    Component("coredns", "coredns", "github.com/coredns/coredns", "95 s"),
    Component("pause", "pause", ".", "1 s"),
)
EVERYTHING: Final = CONTROL_PLANE + CONTAINER_NODE


@cache
def go_version() -> str:
    go = shutil.which("go")
    if go is None:
        raise DevclusterError("Go is not installed (`go` is not on PATH); the components are built from Go modules")
    environment = {**os.environ, **_GO_ENVIRONMENT}
    return subprocess.run([go, "env", "GOVERSION"], env=environment, check=True, capture_output=True, text=True).stdout


def cache_key(modules: Path, version: str) -> str:
    """Everything that decides what comes out: the module files, our own sources, Go, and the flags."""
    digest = hashlib.sha256(f"{version}\n{sorted(_GO_ENVIRONMENT.items())}\n{EVERYTHING}".encode())
    for path in sorted(modules.glob("*/*")):
        digest.update(str(path.relative_to(modules)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def bin_dir() -> Path:
    return cache_home() / "bin" / cache_key(MODULES, go_version())


def binary(name: str) -> str:
    return str(bin_dir() / name)


def missing(components: Iterable[Component]) -> list[Component]:
    return [component for component in components if not (bin_dir() / component.name).exists()]


def ensure(components: Iterable[Component], progress: Progress) -> Path:
    """Build what is not there yet and return the folder."""
    wanted = tuple(components)
    if missing(wanted):
        with locks.held(bin_dir() / ".lock"):  # two commands at once would compile everything twice
            for component in missing(wanted):  # asked again: another process may have built it while this one waited
                progress.say(f"building {component.name} (about {component.cold} cold)")
                _build(component)
    return bin_dir()


def _build(component: Component) -> None:
    temporary = bin_dir() / f".{component.name}.tmp"
    log = bin_dir() / f".{component.name}.log"
    command = ["go", "build", "-trimpath", "-ldflags", f"-s -w {component.ldflags}", "-o", str(temporary)]
    with log.open("w") as output:
        try:
            result = subprocess.run(
                [*command, component.package],
                cwd=MODULES / component.module,
                env={**os.environ, **_GO_ENVIRONMENT},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=BUILD_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise DevclusterError(f"building {component.name} took more than {BUILD_SECONDS} s; see {log}") from None
    if result.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise DevclusterError(f"building {component.name} failed; {log} says:\n{tail}")
    temporary.replace(bin_dir() / component.name)
