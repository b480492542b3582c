"""The network is created once, repaired if broken, and removed completely."""

import subprocess
from collections.abc import Iterator

import pytest

from devcluster import network
from devcluster.spec import Cluster, DevclusterError

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture
def cluster(crash: Cluster, root: None) -> Iterator[Cluster]:
    if crash.state.exists():
        pytest.skip(f"a cluster {crash.name} is up")
    network.remove(crash)
    yield crash
    network.remove(crash)


def test_made_once_and_removed_completely(cluster: Cluster) -> None:
    assert network.left(cluster) == []
    assert network.ensure(cluster)
    assert network.ensure(cluster) == []
    assert network.intact(cluster)
    assert len(network.left(cluster)) == 6  # two namespaces, the host's interface, three routes
    network.remove(cluster)
    assert network.left(cluster) == []
    network.remove(cluster)
    assert network.left(cluster) == []


def test_the_host_reaches_the_node_and_every_simulated_address(cluster: Cluster) -> None:
    network.ensure(cluster)
    for address in (cluster.node_ip, cluster.simulated_ip, "10.92.0.1", "10.92.200.77"):
        route = network.ip("route", "get", address)
        assert f"dev {cluster.host_link}" in route
    inside = network.ip("-n", cluster.simulated_namespace, "route", "get", "10.92.200.77")
    assert inside.startswith("local")


@pytest.mark.parametrize("broken", ["bridge", "host link", "simulated namespace", "cluster namespace"])
def test_broken_parts_are_recreated(cluster: Cluster, broken: str) -> None:
    network.ensure(cluster)
    if broken == "bridge":
        network.ip("-n", cluster.namespace, "link", "delete", cluster.bridge)
    elif broken == "host link":
        network.ip("link", "delete", cluster.host_link)
    else:
        name = cluster.simulated_namespace if broken.startswith("simulated") else cluster.namespace
        network.ip("netns", "delete", name)
    assert network.ensure(cluster)
    assert network.ensure(cluster) == []
    assert len(network.left(cluster)) == 6


def test_a_pod_that_outlived_the_bridge_is_joined_again(cluster: Cluster) -> None:
    network.ensure(cluster)
    inside = ("-n", cluster.namespace)
    network.ip(*inside, "link", "add", "veth1", "type", "veth", "peer", "name", "veth2")
    network.ip(*inside, "link", "delete", cluster.bridge)
    network.ensure(cluster)
    assert f"master {cluster.bridge}" in network.ip(*inside, "link", "show", "veth1")


def test_a_file_without_its_namespace_does_not_stop_it(cluster: Cluster) -> None:
    """As after a reboot or a lazy unmount."""
    network.ensure(cluster)
    subprocess.run(["umount", network.NAMESPACES / cluster.namespace], check=True)
    assert not network.intact(cluster)
    assert network.ensure(cluster)
    assert network.intact(cluster)


def test_an_error_names_the_failed_command() -> None:
    with pytest.raises(DevclusterError, match="ip link show no-such-link"):
        network.ip("link", "show", "no-such-link")
