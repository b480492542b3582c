"""The cgroups of a cluster's pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from devcluster import node
from devcluster.spec import DEMO


@pytest.mark.parametrize(("name", "usual", "weight"), [("cpu.shares", 1024, 8192), ("cpu.weight", 100, 800)])
def test_pods_weigh_as_much_as_eight_processes(
    name: str, usual: int, weight: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By both versions of cgroups. A hierarchy of something else has no such file, and gets none."""
    processor, memory = tmp_path / "cpu", tmp_path / "memory"
    processor.mkdir()
    (processor / name).write_text(str(usual))
    monkeypatch.setattr(node, "cgroup_folders", lambda cluster: [processor, memory])
    node.weigh(DEMO)
    assert (processor / name).read_text() == str(weight)
    assert [path.name for path in processor.iterdir()] == [name] and list(memory.iterdir()) == []


def test_a_weight_that_can_not_be_written_keeps_no_node_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as in a container whose cgroups are read-only in part."""
    processor = tmp_path / "cpu"
    (processor / "cpu.weight").mkdir(parents=True)  # any write to it is an OSError, also root's
    monkeypatch.setattr(node, "cgroup_folders", lambda cluster: [processor])
    node.weigh(DEMO)
