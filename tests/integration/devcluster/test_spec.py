"""Two clusters on one machine have nothing in common that could collide."""

import ipaddress
from itertools import combinations
from pathlib import Path

import pytest

from devcluster.spec import NAMED, TEST, Cluster, DevclusterError, Ports, cache_home, named, state_home

PAIRS = list(combinations(NAMED.values(), 2))


def networks(cluster: Cluster) -> list[ipaddress.IPv4Network]:
    texts = (cluster.node_subnet, cluster.service_cidr, cluster.simulated_cidr)
    return [ipaddress.IPv4Network(text) for text in texts]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_no_port_is_shared(one: Cluster, other: Cluster) -> None:
    assert not set(one.ports.all()) & set(other.ports.all())


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_no_address_is_shared(one: Cluster, other: Cluster) -> None:
    assert not any(mine.overlaps(theirs) for mine in networks(one) for theirs in networks(other))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_no_name_is_shared(one: Cluster, other: Cluster) -> None:
    def names(cluster: Cluster) -> set[str]:
        return {
            cluster.namespace,
            cluster.simulated_namespace,
            cluster.bridge,
            cluster.cgroup,
            str(cluster.state),
        }

    assert not names(one) & names(other)


@pytest.mark.parametrize("cluster", NAMED.values())
def test_names_ports_and_addresses_of_a_cluster_are_distinct(cluster: Cluster) -> None:
    ports = cluster.ports.all()
    assert len(set(ports)) == len(ports)
    assert not any(one.overlaps(other) for one, other in combinations(networks(cluster), 2))
    first, last = (ipaddress.ip_address(text) for text in cluster.pod_range)
    fixed = [ipaddress.ip_address(text) for text in (cluster.node_ip, cluster.simulated_ip, cluster.host_ip)]
    assert not any(int(first) <= int(address) <= int(last) for address in fixed)


@pytest.mark.parametrize("name", ["", "Demo", "a-b", "9lives", "muchtoolong", "a/b"])
def test_a_name_that_no_interface_could_carry_is_refused(name: str) -> None:
    with pytest.raises(DevclusterError, match="cluster name"):
        Cluster(name, Ports.starting_at(20000), "10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/16")


def test_interface_names_fit_the_kernel() -> None:
    longest = Cluster("a2345678", Ports.starting_at(20000), "10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/16")
    assert max(len(longest.host_link), len(longest.bridge)) <= 15


def test_paths_follow_the_base_directory_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert (state_home(), cache_home()) == (Path("/s/rightpool"), Path("/c/rightpool"))
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert (state_home(), cache_home()) == (Path.home() / ".local/state/rightpool", Path.home() / ".cache/rightpool")


def test_an_unknown_name_lists_the_known_ones() -> None:
    assert named("test") is TEST
    with pytest.raises(DevclusterError, match="demo, test"):
        named("prod")
