"""Real programs whose steps are seen and whose samples are not, from the agent to the profile that decisions rest on.

A program does ten steps whenever it is told to, and between readings ten seconds pass by the clock of the readings.
"""

from collections.abc import Iterator

import pytest

from rightpool import contract
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Observed
from rightpool.planning.jobs.revision_window import RevisionWindow
from rightpool.telemetry.reader import Target
from rightpool.telemetry.scrape import ScrapeReader
from tests.integration.profiler.conftest import PATIENCE, Pod
from tests.integration.profiler.forking import ForkHost
from tests.unit.planning.jobs import NOW, judged, running, spec

# What is trained on is made on the device, inside the step.
_TORCH = """
import sys, torch
points = torch.nn.Parameter(torch.randn(64, 3))
optimizer = torch.optim.Adam([points], lr=0.01)
for line in sys.stdin:
    for _ in range(10):
        optimizer.zero_grad()
        (points.norm(dim=1) - 1).square().mean().backward()
        optimizer.step()
    print("done", flush=True)
"""
_JAX = """
import sys, jax, jax.numpy as jnp
@jax.jit
def step(params, key):
    key, own = jax.random.split(key)
    def loss(params):
        x = jax.random.normal(own, (32, 4))
        return ((x @ params["w"] - x.sum(1, keepdims=True)) ** 2).mean()
    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), key, value
params, key = {"w": jnp.zeros((4, 1))}, jax.random.key(0)
for line in sys.stdin:
    for _ in range(10):
        params, key, value = step(params, key)
    value.block_until_ready()
    print("done", flush=True)
"""
_ELASTIC = {"minChips": 1, "maxChips": 8, "batch": "Global"}


def observed(host: ForkHost, pod: Pod, source: str) -> Iterator[Observed]:
    """What is known after each ten steps."""
    job = running(made=spec(elasticity=_ELASTIC, profiling={"interval": "10s", "window": "1m"}))
    window = RevisionWindow.of(job, 1)
    program = host.start(pod, source)
    clock = [0.0]
    reader = ScrapeReader(port=pod.port, timeout=60.0, budget=120.0, clock=lambda: clock[0])
    target = Target(window.key, (("pod-0", "127.0.0.1"),), 10.0)
    for number in range(1, 13):
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline() == "done\n"
        page = pod.page(lambda page, steps=10.0 * number: page.get(contract.STEPS, 0.0) >= steps)
        assert contract.SAMPLES not in page, "nobody sees how many there are"
        clock[0] = 10.0 * number
        for sample in reader.read((target,), NOW + clock[0]).samples.values():
            window.append(sample)
        yield window.observe(job, None, NOW + clock[0])
    reader.close()
    _, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err


@pytest.mark.parametrize(
    ("framework", "source"),
    [
        pytest.param("torch", _TORCH, marks=pytest.mark.torch, id="torch"),
        pytest.param("jax", _JAX, marks=pytest.mark.jax, id="jax"),
    ],
)
def test_steps_a_second_are_its_throughput_and_a_move_can_be_decided_on(
    request: pytest.FixtureRequest, pod: Pod, framework: str, source: str
) -> None:
    *_, last = observed(request.getfixturevalue(f"{framework}_host"), pod, source)
    profile = last.profile
    assert profile is not None and profile.complete and profile.unit is WorkUnit.STEPS
    assert profile.throughput is not None and profile.throughput.value == pytest.approx(1.0)
    assert last.track is not None and last.track.counter == 120.0
    job = running(made=spec(elasticity=_ELASTIC), measured=profile)
    found = judged(job)
    assert found.current is not None and found.current.unit is WorkUnit.STEPS
    assert found.current.throughput is not None and found.current.cost_per_million is not None
    assert any(one.throughput is not None for one in found.candidates), "elsewhere is predicted in steps/s too"
