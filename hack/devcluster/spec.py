"""The specification of a cluster: name, addresses, ports and paths. Pure data.

Two specs never collide: with root each cluster has a separate network namespace, but without root all share the host's
loopback, and the host has routes to all of them in any case.
"""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

NODE_NAME: Final = "node-0"
DEV_CHIP_RESOURCE: Final = "rightpool.dev/cpu-chip"
DEV_CHIPS: Final = 2
POOL_LABEL: Final = "simulation.rightpool.dev/pool"
REPLAY_PORT: Final = 9464


class DevclusterError(Exception):
    """An error for the user. The message says what to do about it."""


@dataclass(frozen=True)
class Ports:
    """All TCP ports of a cluster's processes except DNS, which is 53 on the cluster's address."""

    etcd: int
    api: int
    controller_manager: int
    scheduler: int
    kwok: int
    kubelet: int
    kubelet_health: int
    proxy_health: int
    proxy_metrics: int
    prometheus: int
    kueue_health: int
    kueue_webhook: int
    kube_router_health: int

    @classmethod
    def starting_at(cls, base: int) -> "Ports":
        """A block of consecutive ports."""
        return cls(*(base + offset for offset in range(len(fields(cls)))))

    def all(self) -> tuple[int, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class SimulatedSize:
    """How many nodes each simulated pool starts with."""

    a100: int = 4
    a10g: int = 8
    tpu_v5e: int = 4


@dataclass(frozen=True)
class Cluster:
    """One cluster. Equal specs mean the same cluster, in any process."""

    name: str
    ports: Ports
    node_subnet: str
    service_cidr: str
    simulated_cidr: str
    simulated: SimulatedSize = SimulatedSize()

    def __post_init__(self) -> None:
        # Interface names end at 15 characters, and "rp-<name>-sim" is the longest thing made from the name.
        if not re.fullmatch(r"[a-z][a-z0-9]{0,7}", self.name):
            raise DevclusterError(f"cluster name {self.name!r}: 1 to 8 lower-case letters and digits, a letter first")

    # Names in the kernel. The bridge is inside the namespace; it carries the cluster's name so that it reads well.
    @property
    def namespace(self) -> str:
        return f"rp-{self.name}"

    @property
    def simulated_namespace(self) -> str:
        return f"rp-{self.name}-sim"

    @property
    def host_link(self) -> str:
        """The host's end of the veth pair into the cluster."""
        return f"rp-{self.name}"

    @property
    def bridge(self) -> str:
        return f"rpbr-{self.name}"

    @property
    def cgroup(self) -> str:
        """Two kubelets in one cgroup tree would remove each other's pods as orphans."""
        return f"rightpool-{self.name}"

    # Addresses in the node subnet: .1 the node and the API server, .250 the simulated pods' router, .254 the host.
    def _address(self, index: int) -> str:
        return str(ipaddress.ip_network(self.node_subnet)[index])

    @property
    def node_ip(self) -> str:
        return self._address(1)

    @property
    def simulated_ip(self) -> str:
        return self._address(250)

    @property
    def host_ip(self) -> str:
        """The address at which pods and the API server reach processes on the host."""
        return self._address(254)

    @property
    def pod_range(self) -> tuple[str, str]:
        """First and last pod address of the real node, without the fixed addresses."""
        return self._address(10), self._address(240)

    @property
    def prefix(self) -> int:
        return ipaddress.ip_network(self.node_subnet).prefixlen

    @property
    def service_ip(self) -> str:
        """The API server's address as a Service: always the first of the range."""
        return str(ipaddress.ip_network(self.service_cidr)[1])

    # Paths.
    @property
    def state(self) -> Path:
        return state_home() / self.name

    @property
    def logs(self) -> Path:
        return self.state / "log"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "admin.kubeconfig"

    @property
    def containerd_socket(self) -> Path:
        return self.state / "containerd" / "containerd.sock"


def state_home(environ: Mapping[str, str] = os.environ) -> Path:
    return _xdg(environ, "XDG_STATE_HOME", ".local/state")


def cache_home(environ: Mapping[str, str] = os.environ) -> Path:
    return _xdg(environ, "XDG_CACHE_HOME", ".cache")


def _xdg(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    base = environ.get(variable)
    return (Path(base) if base else Path.home() / fallback) / "rightpool"


DEMO: Final = Cluster(
    name="demo",
    ports=Ports.starting_at(16440),
    node_subnet="10.88.0.0/24",
    service_cidr="10.96.0.0/24",
    simulated_cidr="10.99.0.0/16",
)
TEST: Final = Cluster(
    name="test",
    ports=Ports.starting_at(17440),
    node_subnet="10.89.0.0/24",
    service_cidr="10.97.0.0/24",
    simulated_cidr="10.98.0.0/16",
)
# For tests that break shared components or need a new cluster.
CRASH: Final = Cluster(
    name="crash",
    ports=Ports.starting_at(18440),
    node_subnet="10.90.0.0/24",
    service_cidr="10.94.0.0/24",
    simulated_cidr="10.92.0.0/16",
    simulated=SimulatedSize(a100=1, a10g=1, tpu_v5e=1),
)
CHART: Final = Cluster(
    name="chart",
    ports=Ports.starting_at(19440),
    node_subnet="10.91.0.0/24",
    service_cidr="10.95.0.0/24",
    simulated_cidr="10.93.0.0/16",
    simulated=SimulatedSize(a100=2, a10g=1, tpu_v5e=1),
)
SECURITY: Final = Cluster(
    name="sec",
    ports=Ports.starting_at(20440),
    node_subnet="10.104.0.0/24",
    service_cidr="10.103.0.0/24",
    simulated_cidr="10.102.0.0/16",
    simulated=SimulatedSize(a100=2, a10g=2, tpu_v5e=1),
)
FAULTS: Final = Cluster(
    name="faults",
    ports=Ports.starting_at(22440),
    node_subnet="10.105.0.0/24",
    service_cidr="10.106.0.0/24",
    simulated_cidr="10.107.0.0/16",
    simulated=SimulatedSize(a100=0, a10g=0, tpu_v5e=0),
)
# Some tests of faults take long and break what others need, so they run side by side on clusters of their own.
FAULTS_TOO: Final = Cluster(
    name="faults2",
    ports=Ports.starting_at(25440),
    node_subnet="10.114.0.0/24",
    service_cidr="10.115.0.0/24",
    simulated_cidr="10.116.0.0/16",
    simulated=FAULTS.simulated,
)
CHAOS: Final = Cluster(
    name="chaos",
    ports=Ports.starting_at(23440),
    node_subnet="10.108.0.0/24",
    service_cidr="10.109.0.0/24",
    simulated_cidr="10.110.0.0/16",
    simulated=SimulatedSize(a100=10, a10g=20, tpu_v5e=4),
)
# With the chart, whose operator would take part in other tests.
STORIES: Final = Cluster(
    name="stories",
    ports=Ports.starting_at(27440),
    node_subnet="10.100.0.0/24",
    service_cidr="10.101.0.0/24",
    simulated_cidr="10.122.0.0/16",
)
KUEUE: Final = Cluster(
    name="kueue",
    ports=Ports.starting_at(26440),
    node_subnet="10.117.0.0/24",
    service_cidr="10.118.0.0/24",
    simulated_cidr="10.119.0.0/16",
    simulated=FAULTS.simulated,
)
NAMED: Final[Mapping[str, Cluster]] = {
    cluster.name: cluster for cluster in (DEMO, TEST, CRASH, CHART, SECURITY, FAULTS, FAULTS_TOO, CHAOS, STORIES, KUEUE)
}


def named(name: str) -> Cluster:
    try:
        return NAMED[name]
    except KeyError:
        raise DevclusterError(f"no cluster is called {name!r}; there are: {', '.join(NAMED)}") from None
