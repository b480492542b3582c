"""Offers of the machine's chips to pods, without a chip."""

from pathlib import Path

import pytest

from devcluster import deps, gpu, host
from devcluster.gpu import Offer
from devcluster.processes import Program, Supervisor
from devcluster.spec import Cluster, DevclusterError, named


@pytest.fixture
def cluster() -> Cluster:
    return named("test")


def test_offers_are_read() -> None:
    assert Offer.read("nvidia.com/gpu=0,1") == Offer("nvidia.com/gpu", (0, 1))
    assert Offer.read("example.com/half=3@50") == Offer("example.com/half", (3,), 50)


@pytest.mark.parametrize("text", ["gpu=0", "nvidia.com/gpu", "a.b/c=0,1@50", "a.b/c=0@0", "a.b/c=0@101", "a.b/c=x"])
def test_what_is_no_offer(text: str) -> None:
    with pytest.raises(ValueError, match=r"RESOURCE=CHIP|a share is of one chip"):
        Offer.read(text)


def test_a_chip_that_is_not_there(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "is_root", lambda: True)
    with pytest.raises(DevclusterError, match="no /dev/nvidia250: `nvidia-smi -L`"):
        gpu.up(cluster, [Offer("nvidia.com/gpu", (250,))], None)  # type: ignore[arg-type]  # nothing is said before


def test_a_share_is_given_out_with_its_server(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods of a share find the server of their chip, and get their part of it; pods of a whole chip do neither."""
    monkeypatch.setattr(deps, "find", lambda program: f"/driver/{program}")
    monkeypatch.setattr(host, "mps_folder", lambda cluster: tmp_path / "mps")
    offers = [Offer("a.b/whole", (0, 1)), Offer("a.b/half", (1,), 50), Offer("a.b/quarter", (1,), 25)]
    found = {program.name: program for program in gpu.programs(cluster, offers)}
    assert list(found) == ["mps-1", "gpu-a.b-whole", "gpu-a.b-half", "gpu-a.b-quarter"]
    pipe = str(tmp_path / "mps" / "chip-1")
    assert found["mps-1"].environment["CUDA_MPS_PIPE_DIRECTORY"] == pipe
    assert found["mps-1"].environment["CUDA_VISIBLE_DEVICES"] == "1"
    assert Path(pipe).stat().st_mode & 0o777 == 0o777
    half = found["gpu-a.b-half"].command
    assert f"-variables=CUDA_MPS_PIPE_DIRECTORY={pipe},CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50" in half
    assert f"{pipe}:{pipe}" in next(one for one in half if one.startswith("-mounts="))
    whole = found["gpu-a.b-whole"].command
    assert "-chips=/dev/nvidia0,/dev/nvidia1" in whole and "-variables=" in whole


def test_what_is_offered_no_more_is_withdrawn(cluster: Cluster, tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    old, kept, other = (Program(name, ("/bin/sleep", "60")) for name in ("gpu-a.b-half", "mps-0", "etcd"))
    for program in (old, kept, other):
        supervisor.ensure(program)
    try:
        gpu.withdraw(supervisor, [kept])
        assert [supervisor.running(name) for name in ("gpu-a.b-half", "mps-0", "etcd")] == [False, True, True]
    finally:
        supervisor.stop(["gpu-a.b-half", "mps-0", "etcd"])
