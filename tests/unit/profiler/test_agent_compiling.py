"""How long the agent says that a real program has compiled, beside what PyTorch and JAX say of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from rightpool_agent import compiling

from tests.unit.profiler.test_state import metrics, report, state

AGENT: Final = Path(__file__).resolve().parents[3] / "profiler_sidecar" / "agent"

_START: Final = """
import json, time
from rightpool_agent import imports
imports.watch()
from rightpool_agent import compiling
"""
_JAX: Final = """
import jax, jax.numpy as jnp
own = 0.0
def listen(event, duration, **_):
    global own
    own += duration if event == "/jax/core/compile/backend_compile_duration" else 0.0
jax.monitoring.register_event_duration_secs_listener(listen)
for rows in range(2, 5):
    jax.jit(lambda x: jnp.sin(x) @ x.T)(jnp.ones((rows, 8))).block_until_ready()
found, said = compiling.facts(3)["compile_seconds"], own
jax.jit(lambda x: x + 1).lower(jnp.ones(3))
stepped = compiling.facts(4)["compile_seconds"]
time.sleep(0.2)
print(json.dumps({"own": said, "found": found, "stepped": stepped, "later": compiling.facts(5)["compile_seconds"]}))
"""


def printed(program: str) -> dict[str, float]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RIGHTPOOL_")}
    environment = {**kept, "PYTHONPATH": str(AGENT), "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run([sys.executable, "-c", _START + program], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, float] = json.loads(ran.stdout)
    return found


@pytest.mark.jax
def test_jax_says_when_it_has_compiled_and_a_lowering_alone_is_none() -> None:
    pytest.importorskip("jax")
    found = printed(_JAX)
    assert found["own"] <= found["found"]
    assert found["later"] == found["stepped"], "a step was made, so that nothing is being compiled"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The agent's time, and nothing compiled so far."""
    made = SimpleNamespace(now=0.0, perf_counter=lambda: made.now)
    for name, value in {
        "time": made,
        "_known": True,
        "_seconds": 0.0,
        "_steps": 0,
        "_handler": None,
        "_since": 0.0,
    }.items():
        monkeypatch.setattr(compiling, name, value)
    monkeypatch.setattr(compiling, "_begun", {})
    return made


def test_compilations_side_by_side_take_the_time_of_one(clock: SimpleNamespace) -> None:
    seen = []
    for now, step in ((0.0, "begin a"), (5.0, "begin b"), (10.0, "end a"), (12.0, "end b"), (20.0, "")):
        clock.now = now
        if step.startswith("begin"):
            compiling._begin(step[-1], certain=True)
        elif step:
            compiling._end(step[-1])
        seen.append(compiling.facts(0)["compile_seconds"])
    assert seen == [0.0, 5.0, 10.0, 12.0, 12.0]


def test_a_step_ends_what_only_seemed_to_be_compiled(clock: SimpleNamespace) -> None:
    compiling._begin("lowered", certain=False)
    clock.now = 3.0
    assert compiling.facts(0)["compile_seconds"] == 3.0
    assert compiling.facts(1)["compile_seconds"] == 0.0
    compiling._begin("compiled", certain=True)
    clock.now = 5.0
    assert compiling.facts(2)["compile_seconds"] == 2.0


@pytest.mark.parametrize("what", ["compile", "saving"])
def test_the_share_is_that_of_the_slowest_rank_and_absent_where_there_was_none(what: str) -> None:
    counter, metric = f"{what}_seconds", f"rightpool_{what}_ratio"
    made = state()
    for moment in range(1, 4):
        for rank in (0, 1):
            made.apply(report(10 + rank, rank, moment, **{counter: 0.0}), float(moment), 0.0)
    assert metric not in metrics(made, 3.0)
    for moment in range(4, 8):
        for rank, share in ((0, 0.25), (1, 0.5)):
            made.apply(report(10 + rank, rank, moment, **{counter: share * (moment - 3)}), float(moment), 0.0)
    assert metrics(made, 7.0)[metric] == pytest.approx(0.5, abs=0.07)
