"""The cgroups of a cluster, some of which go while they are looked through."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devcluster import node, teardown
from devcluster.spec import DEMO


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree in which the group `leaving` goes when it is about to be read."""
    top = tmp_path / "rightpool-demo"
    for name in ("staying", "leaving/inside", "with-us"):
        (top / name).mkdir(parents=True)
    scandir: Callable[[Any], Any] = os.scandir

    def leave(path: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == "leaving":
            shutil.rmtree(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", leave)
    monkeypatch.setattr(node, "cgroup_folders", lambda cluster: [top, tmp_path / "absent"])
    return top


def test_processes_are_found_beside_a_group_that_goes_meanwhile(groups: Path) -> None:
    (groups / "staying" / "cgroup.procs").write_text("11\n12\n")
    (groups / "leaving" / "cgroup.procs").write_text("13\n")
    (groups / "with-us" / "cgroup.procs").write_text("14\n")
    assert sorted(teardown._in_cgroups(DEMO)) == [11, 12, 14]


def test_groups_are_removed_beside_one_that_goes_meanwhile(groups: Path) -> None:
    teardown._remove_cgroups(DEMO)
    assert not groups.exists()
