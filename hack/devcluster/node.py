"""The container node: containerd, kubelet, kube-proxy and CoreDNS. Needs root.

Several defaults of these programs are paths or names shared by the whole machine. Each is moved below the state folder
or named after the cluster, so that two clusters can run side by side and one can be removed completely.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import build, deps, pki, probes
from devcluster.processes import Program
from devcluster.spec import NODE_NAME, POOL_LABEL, Cluster, DevclusterError

PAUSE_IMAGE: Final = "docker.io/library/pause:dev"
CGROUPS: Final = Path("/sys/fs/cgroup")
# Pods together weigh as much as eight processes of the machine: where it does much else, those with a limit still get
# it, and what a program measures does not swing with what runs beside it. The file of cgroup v1 and of v2.
WEIGHTS: Final = {"cpu.shares": 8 * 1024, "cpu.weight": 8 * 100}
LABELS: Final = {
    POOL_LABEL: "dev",
    "simulation.rightpool.dev/chip": "cpu",
    "node.kubernetes.io/instance-type": "devcluster",
}


def programs(cluster: Cluster) -> tuple[Program, ...]:
    """The programs in the order of their start."""
    return (_containerd(cluster), _kubelet(cluster), _kube_proxy(cluster), _coredns(cluster))


def cni_network(cluster: Cluster) -> str:
    return f"rightpool-{cluster.name}"


def cgroup_folders(cluster: Cluster) -> list[Path]:
    """The cluster's cgroup folders: one per writable hierarchy with cgroup v1, a single one with v2."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS / cluster.cgroup]
    return [
        folder / cluster.cgroup for folder in sorted(CGROUPS.iterdir()) if folder.is_dir() and not folder.is_symlink()
    ]


def prepare(cluster: Cluster) -> None:
    """Create the kubelet's cgroup and all configuration files."""
    weigh(cluster)
    _write(cluster.state / "containerd" / "config.toml", _containerd_config(cluster))
    _write(cluster.state / "cni" / "conf" / "10-rightpool.conflist", json.dumps(_cni_config(cluster), indent=1))
    _write(cluster.state / "kubelet" / "config.yaml", yaml.safe_dump(_kubelet_config(cluster), sort_keys=False))
    _write(cluster.state / "kubelet" / "resolv.conf", f"nameserver {cluster.node_ip}\n")
    _write(cluster.state / "coredns" / "Corefile", _corefile(cluster))


def weigh(cluster: Cluster) -> None:
    """Create the kubelet's cgroup, and give it its weight if that can be written. Without it pods are only slower."""
    for folder in cgroup_folders(cluster):
        folder.mkdir(exist_ok=True)
        for name, weight in WEIGHTS.items():
            if (folder / name).exists():
                with suppress(OSError):
                    (folder / name).write_text(str(weight))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _containerd(cluster: Cluster) -> Program:
    config = cluster.state / "containerd" / "config.toml"
    return Program(
        "containerd",
        (build.binary("containerd"), f"--config={config}", "--log-level=warn"),
        # containerd finds its shim and runc by PATH.
        environment={"PATH": f"{build.bin_dir()}:{deps.search_path()}"},
        namespace=cluster.namespace,
        reads=(config,),
        ready=probes.unix_socket(cluster.containerd_socket),
    )


def _containerd_config(cluster: Cluster) -> str:
    base = cluster.state / "containerd"
    runc = deps.find("runc")
    if runc is None:
        raise DevclusterError("runc is missing (Debian package runc)")
    return f"""version = 3
root = "{base}/root"
state = "{base}/state"
[grpc]
  address = "{cluster.containerd_socket}"
[plugins.'io.containerd.internal.v1.opt']
  path = "{base}/opt"
[plugins.'io.containerd.nri.v1.nri']
  disable = true  # its socket is the machine's, not the cluster's
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      Root = "{base}/runc"
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{deps.CNI_DIR}"]
    conf_dir = "{cluster.state}/cni/conf"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE_IMAGE}"
"""


def _cni_config(cluster: Cluster) -> dict[str, Any]:
    first, last = cluster.pod_range
    addresses = {
        "type": "host-local",
        "dataDir": str(cluster.state / "cni" / "ipam"),
        "ranges": [
            [{"subnet": cluster.node_subnet, "rangeStart": first, "rangeEnd": last, "gateway": cluster.node_ip}]
        ],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": cluster.bridge,
        "isGateway": True,
        "hairpinMode": True,
        "ipMasq": False,
        "ipam": addresses,
    }
    return {"cniVersion": "1.0.0", "name": cni_network(cluster), "plugins": [bridge]}


def _kubelet(cluster: Cluster) -> Program:
    config = cluster.state / "kubelet" / "config.yaml"
    kubeconfig = pki.kubeconfig(cluster, "kubelet")
    return Program(
        "kubelet",
        (
            build.binary("kubelet"),
            f"--config={config}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={cluster.node_ip}",
            f"--node-labels={','.join(f'{key}={value}' for key, value in LABELS.items())}",
            f"--root-dir={cluster.state / 'kubelet' / 'root'}",
            f"--cert-dir={cluster.state / 'kubelet' / 'pki'}",
        ),
        ports=(cluster.ports.kubelet, cluster.ports.kubelet_health),
        environment={"PATH": deps.search_path()},
        namespace=cluster.namespace,
        reads=(config, kubeconfig),
        ready=probes.http(f"http://{cluster.node_ip}:{cluster.ports.kubelet_health}/healthz"),
    )


def _kubelet_config(cluster: Cluster) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": cluster.node_ip,
        "port": cluster.ports.kubelet,
        "healthzBindAddress": cluster.node_ip,
        "healthzPort": cluster.ports.kubelet_health,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki.folder(cluster) / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cluster.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{cluster.containerd_socket}",
        "featureGates": {"KubeletInUserNamespace": True},  # tolerates what a sandbox without every capability forbids
        "enforceNodeAllocatable": [],
        "evictionHard": {"nodefs.available": "1%", "memory.available": "100Mi"},
        # Images can't be pulled again, because there is no registry.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "clusterDNS": [cluster.node_ip],
        "clusterDomain": "cluster.local",
        "resolvConf": str(cluster.state / "kubelet" / "resolv.conf"),
        "podLogsDir": str(cluster.state / "kubelet" / "podlogs"),
        "volumePluginDir": str(cluster.state / "kubelet" / "plugins"),
        "nodeStatusUpdateFrequency": "5s",
        "serializeImagePulls": False,
    }


def _kube_proxy(cluster: Cluster) -> Program:
    kubeconfig = pki.kubeconfig(cluster, "proxy")
    return Program(
        "kube-proxy",
        (
            build.binary("kube-proxy"),
            f"--kubeconfig={kubeconfig}",
            "--proxy-mode=iptables",
            f"--hostname-override={NODE_NAME}",
            f"--cluster-cidr={cluster.node_subnet}",
            # Pods, node and host share one bridge: an answer would otherwise go straight to the client, who asked the
            # Service and knows no pod.
            "--masquerade-all",
            f"--healthz-bind-address={cluster.node_ip}:{cluster.ports.proxy_health}",
            f"--metrics-bind-address={cluster.node_ip}:{cluster.ports.proxy_metrics}",
            f"--nodeport-addresses={cluster.node_subnet}",
            # These would change settings of the machine.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ),
        ports=(cluster.ports.proxy_health, cluster.ports.proxy_metrics),
        environment={"PATH": deps.search_path()},
        namespace=cluster.namespace,
        reads=(kubeconfig,),
        ready=probes.http(f"http://{cluster.node_ip}:{cluster.ports.proxy_health}/healthz"),
    )


def _coredns(cluster: Cluster) -> Program:
    config = cluster.state / "coredns" / "Corefile"
    return Program(
        "coredns",
        (build.binary("coredns"), f"-conf={config}"),
        ports=(53,),
        namespace=cluster.namespace,
        reads=(config, pki.kubeconfig(cluster, "coredns")),
        ready=probes.dns(cluster.node_ip, "kubernetes.default.svc.cluster.local"),
    )


def _corefile(cluster: Cluster) -> str:
    """Configuration of CoreDNS. Other names get 'no such name' at once, since nothing outside can be reached."""
    return f"""cluster.local:53 {{
  bind {cluster.node_ip}
  kubernetes cluster.local {{
    kubeconfig {pki.kubeconfig(cluster, "coredns")}
  }}
}}
.:53 {{
  bind {cluster.node_ip}
  template ANY ANY {{
    rcode NXDOMAIN
  }}
}}
"""
