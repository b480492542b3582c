"""Prometheus from Debian's package, on the node's address so that pods reach it.

Debian builds it without Kubernetes discovery. The `discovery` process writes targets with the same labels, so the rules
below are those of a real installation.
"""

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import deps, discovery, pki, probes
from devcluster.control_plane import address
from devcluster.processes import PACKAGE_ROOT, Program
from devcluster.spec import Cluster, DevclusterError

INTERVAL: Final = "2s"
_LABEL: Final = "__meta_kubernetes_pod_label_"


def url(cluster: Cluster, *, root: bool) -> str:
    return f"http://{address(cluster, root=root)}:{cluster.ports.prometheus}"


def programs(cluster: Cluster, *, root: bool) -> tuple[Program, ...]:
    return (_discovery(cluster, root=root), _prometheus(cluster, root=root))


def _targets(cluster: Cluster) -> Path:
    return cluster.state / "prometheus" / "targets.json"


def _discovery(cluster: Cluster, *, root: bool) -> Program:
    kubeconfig = pki.kubeconfig(cluster, "prometheus")
    return Program(
        "discovery",
        (sys.executable, "-m", "devcluster.discovery", str(kubeconfig), str(_targets(cluster))),
        environment={"PYTHONPATH": PACKAGE_ROOT},
        namespace=cluster.namespace if root else None,
        reads=(kubeconfig, Path(discovery.__file__)),
    )


def _prometheus(cluster: Cluster, *, root: bool) -> Program:
    found = deps.find("prometheus")
    if found is None:
        raise DevclusterError("prometheus is missing (Debian package prometheus)")
    folder = cluster.state / "prometheus"
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "prometheus.yaml"
    config.write_text(yaml.safe_dump(configuration(_targets(cluster)), sort_keys=False))
    return Program(
        "prometheus",
        (
            found,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=6h",
            f"--web.listen-address={address(cluster, root=root)}:{cluster.ports.prometheus}",
            "--web.enable-lifecycle",
            "--log.level=warn",
        ),
        ports=(cluster.ports.prometheus,),
        namespace=cluster.namespace if root else None,
        reads=(config,),
        ready=probes.http(f"{url(cluster, root=root)}/-/ready"),
    )


def configuration(targets: Path) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": INTERVAL},
        "scrape_configs": [
            _pods("rightpool-jobs", targets, _of_jobs("rightpool")),
            # Of servers, the page that they have themselves. It must not say what a profiler says.
            _pods("rightpool-servers", targets, _of_jobs("metrics"))
            | {"metric_relabel_configs": [{"action": "drop", "source_labels": ["__name__"], "regex": "rightpool_.*"}]},
            _pods("rightpool-operator", targets, _of_operator()),
        ],
    }


def _pods(job: str, targets: Path, relabel: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "job_name": job,
        # Labels of a page never override those from metadata: a tenant cannot write another's series.
        "honor_labels": False,
        "file_sd_configs": [{"files": [str(targets)]}],
        "relabel_configs": relabel,
    }


def _of_jobs(port: str) -> list[dict[str, Any]]:
    """Pods of a ProfiledJob at a port of this name. The profiler's is an init container's: it is a native sidecar."""
    return [
        _keep("__meta_kubernetes_pod_labelpresent_rightpool_dev_profiledjob", "true"),
        _keep("__meta_kubernetes_pod_container_port_name", port),
        _keep("__meta_kubernetes_pod_phase", "Running"),
        _copy("__meta_kubernetes_namespace", "namespace"),
        _copy("__meta_kubernetes_pod_name", "pod"),
        _copy(f"{_LABEL}rightpool_dev_profiledjob", "profiledjob"),
        _copy(f"{_LABEL}rightpool_dev_revision", "revision"),
    ]


def _of_operator() -> list[dict[str, Any]]:
    return [
        _keep(f"{_LABEL}app_kubernetes_io_name", "rightpool"),
        _keep("__meta_kubernetes_pod_container_port_name", "metrics"),
        _keep("__meta_kubernetes_pod_phase", "Running"),
        _copy("__meta_kubernetes_namespace", "namespace"),
        _copy("__meta_kubernetes_pod_name", "pod"),
    ]


def _keep(label: str, value: str) -> dict[str, Any]:
    return {"action": "keep", "source_labels": [label], "regex": value}


def _copy(label: str, target: str) -> dict[str, Any]:
    return {"action": "replace", "source_labels": [label], "target_label": target}
