"""The overhead of the agent in a training step: of its hooks, of its thread, and of whole programs with and without it.

    PYTHONPATH=operator:profiler_sidecar python -m benchmarks.agent_overhead

Processor time, the minimum of several rounds, with ratios to an empty Python call or to the program without the agent.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rightpool import contract
from rightpool_profiler.install import install

_ROUNDS: Final = 3  # of each program, alternately with and without the agent

_BEST: Final = """
import json, sys, time
def best(call, n, rounds=25):
    found = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(n): call()
        found.append((time.process_time() - began) / n)
    return min(found)
def nothing(optimizer, args, kwargs): pass
empty = best(lambda: nothing(None, (), {}), 20000)
"""

_TORCH: Final = """
import torch
from torch.utils.data import DataLoader
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
def loop():
    for x in loader:
        net(x).mean().backward(); optimizer.step()
loader = DataLoader(torch.ones(2000, 4), batch_size=4)
loop()
rows = {"a small step": best(loop, 1, 5) / len(loader)}
if hooks := sys.modules.get("rightpool_agent.torch_steps"):
    rows["hook of a step"] = best(lambda: hooks._after_step(optimizer, (), {}), 20000)
    roots, batch = sys.modules["rightpool_agent.torch_roots"], torch.ones(4, 4)
    rows["rows of a batch"] = best(lambda: roots._rows((batch,), {}, False), 20000)
"""

_JAX: Final = """
import jax, jax.numpy as jnp, numpy as np
tiny = jax.jit(lambda p: p + 1)
step = jax.jit(lambda p, batch: {"w": p["w"] + batch["x"].sum()})
p, batch = {"w": jnp.zeros(())}, {"x": np.ones((8, 4), np.float32), "y": np.ones((8,), np.float32)}
q = jnp.zeros(())
rows = {"empty call": best(lambda: tiny(q), 20000)}
rows["a small step"] = best(lambda: step(p, batch)["w"].block_until_ready(), 2000)
hook = sys.modules["jax._src.api"]._post_hook_state.get_global()
if hook is not None:
    out = step(p, batch)
    rows["hook of a step"] = best(lambda: hook(step, (p, batch), {}, out), 20000)
"""

_THREAD: Final = """
from rightpool_agent.steps import StepLog, Track
log, track, helper = StepLog(), Track(1000.0, True), Track(1.0, False)
at = 0.0
def second():
    global at
    for _ in range(1000):
        at += 1e-3
        log.add(helper, at, 0); log.add(helper, at, 0); log.add(track, at, 8)
filling = best(second, 1)
log.drain()
rows = {"counting of a call": (best(lambda: (second(), log.drain()), 1) - filling) / 3000}
log.interruptions.extend(at - 1e-3 * n for n in range(200, 0, -1))
rows["after 200 compilations"] = (best(lambda: (second(), log.drain()), 1) - filling) / 3000
"""


def measure(program: str, environment: dict[str, str]) -> dict[str, float]:
    """Run the program once; its seconds by row."""
    completed = subprocess.run(
        [sys.executable, "-c", _BEST + program + "print(json.dumps({**rows, 'empty': empty}))"],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows: dict[str, float] = json.loads(completed.stdout)
    return rows


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="rightpool-", dir="/tmp") as folder:
        shared = Path(folder)
        install(shared)
        path = {"PYTHONPATH": str(shared / "agent")}
        agent = {**path, contract.ENV_SHARED_DIR: folder, contract.ENV_TRACE: "Off"}
        for name, program, bare in (
            ("PyTorch", _TORCH, {"PYTHONPATH": ""}),
            ("JAX", _JAX, {"PYTHONPATH": ""}),
            ("thread", _THREAD, None),
        ):
            with_agent: dict[str, float] = {}
            without: dict[str, float] = {}
            for _ in range(_ROUNDS):
                for runs, environment in ((with_agent, agent if bare else path), (without, bare)):
                    if environment is not None:
                        for row, seconds in measure(program, environment).items():
                            runs[row] = min(seconds, runs.get(row, seconds))
            empty = with_agent.pop("empty")
            for row, seconds in with_agent.items():
                ratio = f"{seconds / empty:5.1f} × an empty call"
                if row in without:
                    ratio = (
                        f"{seconds / without[row]:5.2f} × without the agent, +{(seconds - without[row]) * 1e9:.0f} ns"
                    )
                print(f"{name:10}  {row:26} {seconds * 1e9:10,.0f} ns  {ratio}")


if __name__ == "__main__":
    main()
