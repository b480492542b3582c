"""A Gateway in a running cluster: Contour from its Go module, and Envoy from its wheel, as processes in the cluster's
network namespace. The definitions are the newest of the Gateway API, without those that Contour does not need."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import build, controllers, host, pki, probes, recipes
from devcluster.kubectl import Kubectl
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import Cluster, DevclusterError

NAMESPACE: Final = "projectcontour"
GATEWAY: Final = "contour"
START_SECONDS: Final = 180.0
_LOCK: Final = Path(__file__).parent / "envoy.lock"
_API: Final = "sigs.k8s.io/gateway-api"
_CONTOUR: Final = "github.com/projectcontour/contour"
_ENVOY: Final = ("--service-cluster", "gateway", "--service-node", "envoy", "--disable-hot-restart")
_ABOVE: Final = 8000  # by so much the port at which Contour has Envoy listen is above the listener's
_UNUSED: Final = ("tlsroutes", "grpcroutes", "tcproutes", "backendtlspolicies", "extensionservices")


def definitions() -> list[dict[str, Any]]:
    """Those of the Gateway API's standard channel."""
    folder = build.source(build.GATEWAY_API, _API) / "config" / "crd" / "standard"
    read = (one for path in sorted(folder.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text()))
    return [one for one in read if one["kind"] == "CustomResourceDefinition"]


def up(cluster: Cluster, progress: Progress) -> str:
    """Install both, building Contour first where needed, and return the Gateway's URL. Repeating it changes nothing."""
    if not host.is_root():
        raise DevclusterError("a Gateway needs root: it reaches pods in the cluster's network namespace")
    build.ensure([build.CONTOUR], progress)
    Kubectl(cluster.kubeconfig).install(_objects(cluster))
    supervisor = Supervisor(cluster.state)
    for program in _programs(cluster):
        did = supervisor.ensure(program)
        if did is not None:
            progress.say(f"{program.name} {did}")
        supervisor.wait(program, seconds=START_SECONDS)
    return f"http://{cluster.node_ip}:{cluster.ports.gateway}"


def _objects(cluster: Cluster) -> Iterator[dict[str, Any]]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield from definitions()
    own = build.source(build.CONTOUR.module, _CONTOUR) / "examples" / "contour" / "01-crds.yaml"
    yield from filter(None, yaml.safe_load_all(own.read_text()))
    yield {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": GATEWAY},
        "spec": {"controllerName": "projectcontour.io/gateway-controller"},
    }
    listener = {"name": "http", "protocol": "HTTP", "port": cluster.ports.gateway - _ABOVE}
    yield {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": GATEWAY, "namespace": NAMESPACE},
        "spec": {
            "gatewayClassName": GATEWAY,
            "listeners": [listener | {"allowedRoutes": {"namespaces": {"from": "All"}}}],
        },
    }


def _programs(cluster: Cluster) -> Iterator[Program]:
    folder, health, xds = cluster.state / "contour", cluster.ports.contour_health, cluster.ports.contour_xds
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings, bootstrap = folder / "contour.yaml", folder / "envoy.json"
    settings.write_text(yaml.safe_dump({"gateway": {"gatewayRef": {"namespace": NAMESPACE, "name": GATEWAY}}}))
    contour, talks = str(build.path(build.CONTOUR)), ("--xds-address=127.0.0.1", f"--xds-port={xds}")
    made = [contour, "bootstrap", str(bootstrap), *talks, f"--admin-address={folder / 'envoy.sock'}"]
    subprocess.run(made, check=True, capture_output=True, timeout=START_SECONDS)
    kubeconfig = pki.kubeconfig(cluster, "admin")
    serve = [contour, "serve", "--insecure", "--disable-leader-election", *talks]
    serve += [f"--config-path={settings}", f"--kubeconfig={kubeconfig}"]
    for what, port in (("health", health), ("http", health), ("stats", cluster.ports.envoy_health)):
        serve += [f"--{what}-address={cluster.node_ip}", f"--{what}-port={port}"]
    yield Program(
        "contour",
        (*serve, *(f"--disable-feature={feature}" for feature in _UNUSED)),
        ports=(health, xds),
        namespace=cluster.namespace,
        reads=(settings, kubeconfig),
        ready=probes.http(f"http://{controllers.address(cluster, health)}/healthz"),
    )
    envoy = recipes.packages(_LOCK) / "envoy" / "_bin" / "envoy"
    yield Program(
        "envoy",
        (str(envoy), "--config-path", str(bootstrap), *_ENVOY),
        ports=(cluster.ports.gateway, cluster.ports.envoy_health),
        namespace=cluster.namespace,
        reads=(bootstrap,),
        ready=probes.http(f"http://{controllers.address(cluster, cluster.ports.envoy_health)}/ready"),
    )
