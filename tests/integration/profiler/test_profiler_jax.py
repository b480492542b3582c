"""Real, unmodified JAX programs with a real sidecar: the counters must match the programs."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from rightpool import contract
from tests.integration.profiler.comparison import same
from tests.integration.profiler.conftest import PATIENCE, ROOT, Pod, free_port
from tests.integration.profiler.forking import ForkHost

pytestmark = pytest.mark.jax

TRAIN = str(ROOT / "examples" / "training" / "train_jax.py")

_LOOP = """
import time
import numpy as np
import jax, jax.numpy as jnp

def step(params, batch, lr):
    loss, g = jax.value_and_grad(lambda p: ((batch["x"] @ p["w"] - batch["y"]) ** 2).mean())(params)
    return jax.tree.map(lambda p, g: p - lr * g, params, g), loss

{make}
params = {{"w": jnp.zeros((4, 2))}}
key = jax.random.key(0)
for i in range(30):
    if i == 0: began = time.perf_counter()
    batch = {{"x": np.ones((8, 4), np.float32), "y": np.ones((8, 2), np.float32)}}
    key, _ = jax.random.split(key)
    params, loss = call(params, batch, 0.1)
    float(jnp.abs(loss))
    time.sleep(0.005)
print(time.perf_counter() - began)
"""

_WAYS = {
    "jit": "call = jax.jit(step)",
    "imported jit": "from jax import jit\ncall = jit(step)",
    "donated": "call = jax.jit(step, donate_argnums=(0,))",
    "nested": "inner = jax.jit(step)\ncall = jax.jit(lambda p, b, lr: inner(p, b, lr))",
    "method": (
        "import functools\nclass M:\n    @functools.partial(jax.jit, static_argnums=0)\n"
        "    def f(self, p, b, lr): return step(p, b, lr)\ncall = M().f"
    ),
    "ahead of time": (
        "shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), ({'w': jnp.zeros((4, 2))}, "
        "{'x': jnp.zeros((8, 4)), 'y': jnp.zeros((8, 2))}))\n"
        "call = jax.jit(step, static_argnums=2).lower(*shapes, 0.1).compile()\n"
        "compiled = call\ncall = lambda p, b, lr: compiled(p, b)"
    ),
    "side effects": (
        "def noisy(p, b, lr):\n    jax.debug.callback(lambda: None)\n    return step(p, b, lr)\ncall = jax.jit(noisy)"
    ),
}


@pytest.mark.parametrize("way", list(_WAYS))
def test_every_way_of_compiling_a_step_is_counted(jax_host: ForkHost, pod: Pod, way: str) -> None:
    program = jax_host.start(pod, _LOOP.format(make=_WAYS[way]))
    out, err = program.communicate(timeout=PATIENCE)
    assert (program.returncode, err) == (0, "")
    found = pod.page(lambda page: page.get(contract.STEPS, 0) >= 30)
    assert found[contract.STEPS] == 30
    assert found[contract.SAMPLES] == 8 * found[contract.STEPS]
    intervals = found[f"{contract.STEP_SECONDS}_count"]
    assert 27 <= intervals <= 29, "one in which JAX compiles is none"
    assert 0.005 * intervals < found[f"{contract.STEP_SECONDS}_sum"] < float(out), "as long as the program took"
    assert any(name.startswith(contract.MODEL_INFO) and 'precision="fp32"' in name for name in found)
    assert found.get(contract.MODEL_PARAMETERS, 8) == 8
    assert found[contract.STEP_FLOPS] == 2 * (2 * 8 * 4 * 2), "a product forward, and one for the gradient"


_TWO_FUNCTIONS = """
gradients = jax.jit(lambda p, b: jax.grad(lambda p: ((b["x"] @ p["w"] - b["y"]) ** 2).mean())(p))
update = jax.jit(lambda p, g, lr: jax.tree.map(lambda p, g: p - lr * (g + 0.0 * p @ (p.T @ g)), p, g))
call = lambda p, b, lr: (update(p, gradients(p, b), lr), jnp.zeros(()))
"""
_UNEVEN = """
inner = jax.jit(step)
turn = iter(range(100))
def call(p, b, lr):
    rows = 8 if next(turn) % 4 else {rows}
    return inner(p, {{"x": b["x"][:rows], "y": b["y"][:rows]}}, lr)
"""


@pytest.mark.parametrize(
    ("make", "flops"),
    [(_TWO_FUNCTIONS, None), (_UNEVEN.format(rows=3), 256)],
    ids=["two functions", "a smaller last batch"],
)
def test_flops_are_of_the_whole_step_or_absent(jax_host: ForkHost, pod: Pod, make: str, flops: int | None) -> None:
    program = jax_host.start(pod, _LOOP.format(make=make))
    assert program.communicate(timeout=PATIENCE)[1] == ""
    found = pod.page(lambda page: page.get(contract.MODEL_INFO + '{precision="fp32"}', 0) == 1)
    assert found.get(contract.STEP_FLOPS) == flops


def test_the_precision_is_that_of_the_matrix_products(jax_host: ForkHost, pod: Pod) -> None:
    """Parameters in single precision, computed with in half, as mixed precision is written in JAX."""
    half = "x, w = batch['x'].astype(jnp.bfloat16), p['w'].astype(jnp.bfloat16)"
    mixed = _LOOP.replace('(batch["x"] @ p["w"] - batch["y"])', '(half(batch, p) - batch["y"])')
    make = f"def half(batch, p):\n    {half}\n    return (x @ w).astype(jnp.float32)\n{_WAYS['jit']}"
    program = jax_host.start(pod, mixed.format(make=make))
    assert program.communicate(timeout=PATIENCE)[1] == ""
    found = pod.page(lambda page: page.get(contract.STEPS, 0) >= 30)
    assert found[f'{contract.MODEL_INFO}{{precision="bf16"}}'] == 1


def test_a_jitted_function_is_unchanged(make_pod: Callable[..., Pod]) -> None:
    code, out, err = same(
        make_pod(),
        "-c",
        """
import jax, jax.numpy as jnp, inspect
def f(x, *, scale=2.0): "doc"; return x * scale
g = jax.jit(f)
for _ in range(5): g(jnp.ones(3))
print(type(g).__name__, type(g).__module__, g.__name__, g.__doc__, inspect.signature(g))
print(g.__wrapped__ is f, hash(g) == hash(g))
print(g.lower(jnp.ones(3)).compile()(jnp.ones(3)), g.trace(jnp.ones(3)).out_info, g.eval_shape(jnp.ones(3)).shape)
g.clear_cache()
print(jax.jit.__module__, inspect.signature(jax.jit), isinstance(g, jax.stages.Wrapped))
""",
    )
    assert (code, err) == (0, "") and "doc" in out


def test_the_step_is_the_function_with_the_most_time(pod: Pod) -> None:
    """Helpers are called more often and an evaluation runs in between; neither is the step."""
    pod.alter("reporter.py", {"PERIOD = 0.1": "PERIOD = 1e6"})  # at the end, when all has been seen
    program = pod.start(
        "-c",
        """
import time, jax, jax.numpy as jnp, numpy as np
scale = jax.jit(lambda x: x * 2)
evaluate = jax.jit(lambda p, x: (x @ p).sum())
train = jax.jit(lambda p, x: (p + x.mean(), x.sum()))
p = jnp.zeros((256, 256))
for i in range(40):
    x = scale(scale(scale(np.ones((16, 256), np.float32))))
    p, loss = train(p, x)
    loss.block_until_ready()
    time.sleep(0.01)
    if i % 20 == 19:
        for _ in range(3): evaluate(p, np.ones((64, 256), np.float32))
""",
    )
    assert program.communicate(timeout=PATIENCE)[1] == ""
    found = pod.page(lambda page: page.get(contract.STEPS, 0) >= 40)
    assert (found[contract.STEPS], found[contract.SAMPLES]) == (40, 40 * 16)


def test_checkpoint_on_demand_restart_and_exit_code(pod: Pod, tmp_path: Path) -> None:
    """The whole conversation: ask, signal, save, proof; then the program goes on from there."""
    assert pod.post({"id": "d-0"})[0] == 409, "no step has been made yet"
    began = time.time()
    program = pod.start(
        TRAIN, "--rows", "4096", CHECKPOINT_DIR=str(tmp_path), **{contract.ENV_CHECKPOINT_PATH: str(tmp_path)}
    )
    pod.page(lambda page: page.get(contract.STEPS, 0) > 20)
    asked = time.time()
    assert pod.post({"id": "d-7"}) == (202, {"id": "d-7", "state": "requested"})
    pod.until(lambda: pod.post({"id": "d-7"})[1]["state"] == "saved")
    found = pod.metrics()
    assert asked < found[contract.CHECKPOINT_TIMESTAMP] < time.time()
    assert 0 <= found[contract.CHECKPOINT_SECONDS] < time.time() - began
    program.send_signal(signal.SIGTERM)
    assert program.wait(PATIENCE) == 143
    again = pod.start(TRAIN, "--rows", "4096", "--steps", "100000", CHECKPOINT_DIR=str(tmp_path))
    assert again.stdout is not None
    line = again.stdout.readline()
    assert "from step" in line and not line.rstrip().endswith("from step 0")


_UNTIL_GOOD: Final = """
import signal, time
import jax, jax.numpy as jnp

asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))

@jax.jit
def fit(w, x):
    loss = lambda w: jnp.mean((x @ w - 1) ** 2)
    step = lambda state: (state[0] - 0.05 * jax.grad(loss)(state[0]), state[1] + 1)
    return jax.lax.while_loop(lambda state: (loss(state[0]) > 0.5) & (state[1] < 100), step, (w, 0))

while not asked:
    fit(jnp.zeros((4, 1)), jnp.ones((16, 4)))
    time.sleep(0.05)
print("asked")
"""


def test_a_program_whose_steps_cannot_be_counted_is_asked_to_save(jax_host: ForkHost, pod: Pod) -> None:
    program = jax_host.start(pod, _UNTIL_GOOD)
    pod.until(lambda: pod.post({"id": "d-1"})[0] == 202)
    out, err = program.communicate(timeout=PATIENCE)
    assert (program.returncode, out, err) == (0, "asked\n", "")
    assert contract.STEPS not in pod.metrics()


_UNEVEN = """
import sys, jax, jax.numpy as jnp

@jax.jit
def train(w, xs):
    def step(w, x):
        return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w), None
    return jax.lax.scan(step, w, xs)[0]

w = jnp.ones(4)
for line in sys.stdin:
    for _ in range(5):
        w = train(w, jnp.ones((int(line), 8, 4)))
    w.block_until_ready()
    print("done", flush=True)
"""


def test_a_program_whose_steps_can_be_counted_no_longer_is_heard_on(jax_host: ForkHost, pod: Pod) -> None:
    """Its calls make five steps each, and then seven: which call makes how many is not seen."""
    running = jax_host.start(pod, _UNEVEN)
    missing = f'{contract.FIELD_QUALITY}{{field="{contract.SAMPLES}",quality="missing"}}'
    for turns, seen in (
        ("5", lambda page: page.get(contract.SAMPLES) == 5 * 5 * 8),
        ("7", lambda page: page.get(missing) == 1),
    ):
        running.stdin.write(f"{turns}\n")
        running.stdin.flush()
        assert running.stdout.readline() == "done\n"
        pod.page(seen)
    page = pod.caught_up()
    assert page[contract.STEPS] == 25 and contract.SAMPLES not in page
    assert page['rightpool_profiler_datagrams_total{result="refused"}'] == 0
    running.communicate(timeout=PATIENCE)
    assert running.returncode == 0


def test_two_processes_expose_their_communication(make_pod: Callable[..., Pod], tmp_path: Path) -> None:
    """Data parallel over TCP with a big model: two pods, each with its share of the samples, and the wait measured."""
    pods = [make_pod(), make_pod()]
    address = f"127.0.0.1:{free_port()}"
    for rank, pod in enumerate(pods):
        pod.trace_all_the_time()
        pod.start_sidecar()
        pod.start(
            TRAIN,
            CHECKPOINT_DIR=str(tmp_path),
            JAX_COORDINATOR_ADDRESS=address,
            JAX_NUM_PROCESSES="2",
            JAX_PROCESS_ID=str(rank),
        )
    exposed = f'{contract.STEP_SHARE}{{part="{contract.PART_EXPOSED_COMMUNICATION}"}}'
    for pod in pods:
        found = pod.page(lambda page: exposed in page)
        shares = {name: value for name, value in found.items() if name.startswith(contract.STEP_SHARE)}
        assert 0.1 < found[exposed] < 1
        assert sum(shares.values()) == pytest.approx(1.0)
        assert found[contract.SAMPLES] == 512 * found[contract.STEPS], "this process' share alone"


def test_the_users_own_trace_has_precedence(make_pod: Callable[..., Pod], tmp_path: Path) -> None:
    """The program profiles itself, and the agent wants to all the time; it never gets in the way."""
    pod = make_pod()
    pod.trace_all_the_time()
    program = pod.start(
        "-c",
        f"""
import glob, time, jax, jax.numpy as jnp
step = jax.jit(lambda p: p @ p)
p = jnp.ones((64, 64))
n = 0
while n < 8 or not glob.glob({str(pod.shared / "traces" / "*.xplane.pb")!r}):  # in between, the agent takes its own
    n += 1
    with jax.profiler.trace({str(tmp_path)!r} + f"/{{n}}"):
        for _ in range(12):
            step(p).block_until_ready(); time.sleep(0.01)
    for _ in range(40):
        step(p).block_until_ready(); time.sleep(0.01)
print(n)
""",
    )
    out, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err
    assert "rror" not in err
    assert len(list(tmp_path.rglob("*.xplane.pb"))) == int(out)
