"""Where the agent takes a trace of a JAX program, and where it keeps its hands off."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

jax = pytest.importorskip("jax")
from rightpool_agent import jax_trace, torch_trace  # type: ignore[import-not-found] # noqa: E402

pytestmark = pytest.mark.jax


@pytest.fixture
def backends(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The platform of this process' JAX, as stored by JAX."""
    import jax._src.profiler
    import jax._src.xla_bridge as bridge

    jax.devices("cpu")
    found = dict(bridge._backends)
    monkeypatch.setattr(bridge, "_backends", found)
    yield found
    if jax_trace._session is not None:
        jax_trace.abandon(jax_trace._session)


def test_a_program_on_the_cpu_is_traced(backends: dict[str, Any]) -> None:
    assert jax_trace.begin() is not None


@pytest.mark.parametrize("platform", ["cuda", "gpu", "rocm"])
def test_a_program_with_a_gpu_is_not(backends: dict[str, Any], platform: str) -> None:
    """Not by the agent's thread, also one whose steps run on the CPU: the trace would be of the GPU as well."""
    backends[platform] = SimpleNamespace(platform=platform)
    assert jax_trace.begin() is None


def test_no_trace_before_the_program_has_a_device(backends: dict[str, Any]) -> None:
    """To ask JAX would make it look for one."""
    backends.clear()
    assert jax_trace.begin() is None


def test_a_jax_that_keeps_it_elsewhere_is_not_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax._src.xla_bridge as bridge

    monkeypatch.delattr(bridge, "_backends")
    assert jax_trace.begin() is None


def test_a_trace_without_space_is_deleted(tmp_path: Path) -> None:
    """Kineto of PyTorch 2.11 writes to a file beside the given name, without an error."""
    session = torch_trace.Session()
    session.result = SimpleNamespace(save=lambda path: Path(path + ".tmp").touch())
    session.ended = True
    assert not torch_trace.finish(session, str(tmp_path / "7.kineto.json.tmp"))
    assert list(tmp_path.iterdir()) == []
