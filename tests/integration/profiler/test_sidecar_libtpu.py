"""A real sidecar beside a program on a TPU: it reads libtpu at its own port, and nothing where there is no TPU."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from rightpool import contract
from rightpool_profiler.libtpu import FIRST_PORT
from tests.integration.profiler.conftest import Pod
from tests.integration.profiler.test_sidecar_hostile import REPORT
from tests.unit.profiler.test_libtpu import DUTY, TOTAL, USED, serving


def tell(pod: Pod, **more: object) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.sendto(json.dumps({**REPORT, **more}).encode(), str(pod.shared / "profiler.sock"))


def mapped(pod: Pod) -> str:
    """The files that the sidecar has loaded."""
    assert pod.sidecar is not None
    return Path(f"/proc/{pod.sidecar.pid}/maps").read_text()


async def test_chips_of_a_tpu_are_read_from_libtpu(pod: Pod) -> None:
    busy = f'{contract.CHIP_BUSY}{{chip="tpu-0"}}'
    async with serving({DUTY: [75.0], USED: [2**30], TOTAL: [2**34]}, port=FIRST_PORT):
        await asyncio.to_thread(tell, pod, framework="torch", platform="cuda")
        await asyncio.to_thread(pod.until, lambda: contract.STEPS in pod.metrics())
        assert "cygrpc" not in mapped(pod)  # no memory for it where there is no TPU
        tpu = {"pid": 41, "framework": "jax", "platform": "tpu"}
        page = await asyncio.to_thread(pod.page, lambda found: busy in found or tell(pod, **tpu))
    assert page[busy] == 0.75
    assert page[f'{contract.SOURCE_UP}{{source="libtpu"}}'] == 1


def test_stubs_that_can_not_be_imported_stop_nothing_else(
    pod: Pod, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As of another version of protobuf: no error of gRPC, which is what a port without libtpu gives."""
    (tmp_path / "tpu_info").mkdir()
    (tmp_path / "tpu_info" / "__init__.py").write_text("raise RuntimeError('other stubs')")
    environment = pod.sidecar_environment()
    environment["PYTHONPATH"] = f"{tmp_path}:{environment['PYTHONPATH']}"
    monkeypatch.setattr(pod, "sidecar_environment", lambda: environment)
    pod.restart_sidecar()
    errors = ""

    def failed() -> bool:
        nonlocal errors
        tell(pod, framework="jax", platform="tpu")
        errors += capfd.readouterr().err
        return "asking libtpu" in errors

    pod.until(failed)
    (pod.shared / "traces" / "1.kineto.json").write_bytes(b"no trace")
    pod.until(lambda: not (pod.shared / "traces" / "1.kineto.json").exists())
    assert contract.STEPS in pod.metrics() and 'source="libtpu"' not in pod.metrics()
    assert errors.count("RuntimeError: other stubs") == 1
