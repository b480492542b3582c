"""Enforcement of NetworkPolicies: what it needs, and settings of a namespace's kernel."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import deps, host, network, network_policies
from devcluster.spec import Cluster, DevclusterError, named

NAMESPACE = "rp-sysctls"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(host, "is_root", lambda: True)
    return named("test")


def test_a_program_that_is_not_there(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(DevclusterError, match="kube-router: docs"):
        network_policies.up(cluster, tmp_path / "kube-router", None)  # type: ignore[arg-type]  # nothing is said before


def test_ipset_that_is_not_there(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deps, "find", lambda program: None)
    program = tmp_path / "kube-router"
    program.touch()
    with pytest.raises(DevclusterError, match="Debian package ipset"):
        network_policies.up(cluster, program, None)  # type: ignore[arg-type]  # nothing is said before


@pytest.fixture
def namespace() -> Iterator[str]:
    if not host.is_root():
        pytest.skip("network namespaces need root")
    network.ip("netns", "add", NAMESPACE)
    yield NAMESPACE
    network.ip("netns", "delete", NAMESPACE)


def test_a_setting_that_the_kernel_lacks_is_named(namespace: str) -> None:
    network.set_sysctls(namespace, {"net/ipv4/ip_forward": "1"})
    with pytest.raises(DevclusterError, match=f"{namespace}.*net/bridge/no-such-setting"):
        network.set_sysctls(namespace, {"net/bridge/no-such-setting": "1"})
