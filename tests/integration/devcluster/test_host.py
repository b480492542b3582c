"""Changes of the machine are reverted."""

from pathlib import Path

import pytest

from devcluster import deps, host


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for /proc/sys, and a state folder of its own."""
    settings = tmp_path / "sys"
    (settings / "vm").mkdir(parents=True)
    (settings / "vm" / "overcommit_memory").write_text("0\n")
    monkeypatch.setattr(host, "_PROC_SYS", settings)
    monkeypatch.setattr(host, "state_home", lambda: tmp_path / "state")
    return settings / "vm" / "overcommit_memory"


def test_settings_come_back(kernel: Path) -> None:
    host.remember_settings()
    kernel.write_text("1\n")
    host.restore_settings()
    assert kernel.read_text().strip() == "0"


def test_a_second_cluster_does_not_take_the_changes_for_the_original(kernel: Path) -> None:
    host.remember_settings()
    kernel.write_text("1\n")
    host.remember_settings()
    host.restore_settings()
    assert kernel.read_text().strip() == "0"


def test_restoring_without_a_memory_changes_nothing(kernel: Path) -> None:
    host.restore_settings()
    assert kernel.read_text().strip() == "0"


def test_packages_start_no_service_and_leave_no_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "policy-rc.d"
    monkeypatch.setattr(deps, "_POLICY", policy)
    with deps._no_service_start():
        assert "exit 101" in policy.read_text()
    assert not policy.exists()
    policy.write_text("theirs")
    with deps._no_service_start():
        assert policy.read_text() == "theirs"
    assert policy.read_text() == "theirs"


def test_a_tree_with_a_mount_in_it_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").mkdir()
    monkeypatch.setattr(host, "mounts_below", lambda folder: [f"{folder}/data"])
    host.remove_tree(tmp_path / "state")
    assert (tmp_path / "state").exists()
    monkeypatch.setattr(host, "mounts_below", lambda folder: [])
    host.remove_tree(tmp_path / "state")
    assert not (tmp_path / "state").exists()
