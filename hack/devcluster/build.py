"""Components from Go modules into a per-user cache.

Each component has its own go.mod: in one common module graph, Kubernetes, containerd and helm would change each other's
dependencies from the released versions. The name of the cache folder is a digest of all inputs, so a changed go.sum or
Go version leads to a new build, and an unchanged one costs a few stat calls.
"""

import hashlib
import json
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
BUILD_SECONDS: Final = 7200  # kube-apiserver takes 4 minutes, and 20 beside ten other programs
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
    cold: str  # duration on two cores with an empty Go cache, printed before the build starts
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
# Built only when it is asked for, each into a folder of its own: another version of it rebuilds nothing else.
KUEUE: Final = Component("kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue", "9 min")
JOBSET: Final = Component("jobset", "jobset", "sigs.k8s.io/jobset", "3 min")
TRAINER: Final = Component(
    "trainer", "trainer", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager", "3 min"
)
LWS: Final = Component("lws", "lws", "sigs.k8s.io/lws/cmd", "3 min")
GPU_DEVICE_PLUGIN: Final = Component("gpu-device-plugin", "gpu-device-plugin", ".", "20 s")
CONTOUR: Final = Component("contour", "contour", "github.com/projectcontour/contour/cmd/contour", "3 min")
ON_DEMAND: Final = (KUEUE, JOBSET, TRAINER, LWS, GPU_DEVICE_PLUGIN, CONTOUR)
GATEWAY_API: Final = "gateway-api"
"""The module of the Gateway API's definitions, of which nothing is built."""


@cache
def go_version() -> str:
    go = shutil.which("go")
    if go is None:
        raise DevclusterError("Go is not installed (`go` is not on PATH); the components are built from Go modules")
    environment = {**os.environ, **_GO_ENVIRONMENT}
    return subprocess.run([go, "env", "GOVERSION"], env=environment, check=True, capture_output=True, text=True).stdout


def cache_key(modules: Path, version: str, components: tuple[Component, ...] = EVERYTHING) -> str:
    """A digest of all inputs of a build: module files, sources, Go version and flags."""
    digest = hashlib.sha256(f"{version}\n{sorted(_GO_ENVIRONMENT.items())}\n{components}".encode())
    wanted = {component.module for component in components}
    for path in sorted(path for path in modules.glob("*/*") if path.parent.name in wanted):
        digest.update(str(path.relative_to(modules)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def bin_dir() -> Path:
    return cache_home() / "bin" / cache_key(MODULES, go_version())


def binary(name: str) -> str:
    return str(bin_dir() / name)


def path(component: Component) -> Path:
    """Of its binary, which may not be built yet."""
    if component not in ON_DEMAND:
        return bin_dir() / component.name
    key = cache_key(MODULES, go_version(), (component,))
    return cache_home() / "bin" / f"{component.name}-{key}" / component.name


def source(needs: str, module: str) -> Path:
    """The folder of a Go module, downloaded where it is missing. needs: what of `MODULES` has its version."""
    command = ["go", "mod", "download", "-json", module]
    result = subprocess.run(
        command,
        cwd=MODULES / needs,
        env={**os.environ, **_GO_ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
    )
    if result.returncode != 0:
        raise DevclusterError(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")
    return Path(json.loads(result.stdout)["Dir"])


def missing(components: Iterable[Component]) -> list[Component]:
    return [component for component in components if not path(component).exists()]


def ensure(components: Iterable[Component], progress: Progress) -> Path:
    """Build the binaries that are missing and return the folder."""
    wanted = tuple(components)
    if missing(wanted):
        with locks.held(bin_dir() / ".lock"):  # concurrent commands would compile everything twice
            left = missing(wanted)  # checked again: another process may have built it while this one waited
            for number, component in enumerate(left, 1):
                about = f"about {component.cold} cold, {number} of {len(left)}"
                with progress.during(f"building {component.name} ({about})"):
                    _build(component)
    return bin_dir()


def _build(component: Component) -> None:
    target = path(component)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{component.name}.tmp")
    log = target.with_name(f".{component.name}.log")
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
    temporary.replace(target)
