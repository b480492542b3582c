"""Train a small language model with JAX, data parallel: one process or many, on any device.

The model guesses the next byte of a text from hashed n-grams of the bytes before it: an embedding table with many
parameters and little arithmetic. Its text is the source code of Python's own standard library.

    python train_jax.py --steps 500
    CHECKPOINT_DIR=/checkpoints python train_jax.py

Run as several processes, each needs JAX_COORDINATOR_ADDRESS (host:port of process 0), JAX_NUM_PROCESSES and
JAX_PROCESS_ID. SIGUSR1 asks for a checkpoint at the next step; a restart goes on from the newest one.
"""

import argparse
import os
import signal
import sysconfig
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

NGRAMS = 8


def read_text(limit: int = 4_000_000) -> np.ndarray:
    """The bytes that the model learns to continue."""
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    text = b"".join(path.read_bytes() for path in sources)[:limit]
    return np.frombuffer(text, np.uint8)


def batches(text: np.ndarray, size: int, seed: list[int]):
    """Endless random (context, next byte) pairs: uint8[size, NGRAMS] and uint8[size]."""
    random = np.random.default_rng(seed)
    while True:
        starts = random.integers(0, len(text) - NGRAMS, size)
        window = text[starts[:, None] + np.arange(NGRAMS + 1)]
        yield window[:, :-1], window[:, -1]


def init(rows: int, width: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "table": random.normal(0, 0.05, (rows, width)).astype(np.float32),
        "head": random.normal(0, width**-0.5, (width, 256)).astype(np.float32),
        "bias": np.zeros(256, np.float32),
    }


def loss_fn(params, context, target):
    # One hash for each n-gram that ends at the last byte: the last byte, the last two, ... the last eight.
    hashed = jnp.zeros(context.shape[0], jnp.uint32)
    rows = []
    for n in range(NGRAMS):
        hashed = (hashed ^ (context[:, -1 - n].astype(jnp.uint32) + 1 + n)) * jnp.uint32(0x01000193)
        rows.append((hashed ^ (hashed >> 15)) % params["table"].shape[0])
    hidden = jnp.tanh(params["table"][jnp.stack(rows, axis=1)].sum(axis=1))
    logits = hidden @ params["head"] + params["bias"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, None].astype(jnp.int32), axis=1).mean()


@jax.jit(donate_argnums=0)
def train_step(params, context, target, learning_rate):
    loss, gradients = jax.value_and_grad(loss_fn)(params, context, target)
    return jax.tree.map(lambda p, g: p - learning_rate * g, params, gradients), loss


def save(directory: Path, step: int, params) -> None:
    """Write beside the final name and rename, so that a file with that name is always whole."""
    path = directory / f"step-{step:08d}.npz"
    with (temporary := path.with_suffix(".tmp")).open("wb") as file:
        np.savez(file, step=step, **jax.tree.map(np.asarray, params))
    temporary.rename(path)
    for old in sorted(directory.glob("step-*.npz"))[:-2]:
        old.unlink()
    print(f"saved {path.name}", flush=True)


def restore(directory: Path) -> tuple[int, dict[str, np.ndarray]] | None:
    saved = sorted(directory.glob("step-*.npz"))
    if not saved:
        return None
    arrays = dict(np.load(saved[-1]))
    return int(arrays.pop("step")), arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, help="stop after this many steps (default: run until SIGTERM)")
    parser.add_argument("--batch", type=int, default=512, help="samples per process and step")
    parser.add_argument("--rows", type=int, default=1 << 17, help="rows of the embedding table")
    parser.add_argument("--width", type=int, default=64, help="width of the embedding table")
    parser.add_argument("--learning-rate", type=float, default=2.0)
    parser.add_argument("--save-every", type=float, default=60, help="seconds between checkpoints")
    options = parser.parse_args()
    directory = Path(os.environ.get("CHECKPOINT_DIR", "checkpoints"))
    directory.mkdir(parents=True, exist_ok=True)

    save_now = False

    def on_save(*_):
        nonlocal save_now
        save_now = True

    signal.signal(signal.SIGUSR1, on_save)

    if int(os.environ.get("JAX_NUM_PROCESSES", "1")) > 1:
        jax.distributed.initialize(
            os.environ["JAX_COORDINATOR_ADDRESS"],
            int(os.environ["JAX_NUM_PROCESSES"]),
            int(os.environ["JAX_PROCESS_ID"]),
        )
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    mesh = Mesh(jax.devices(), ("data",))
    replicated = NamedSharding(mesh, PartitionSpec())
    split = NamedSharding(mesh, PartitionSpec("data"))
    leader = jax.process_index() == 0

    step, params = restore(directory) or (0, init(options.rows, options.width))
    if leader:
        print(f"{jax.process_count()} process(es), {jax.device_count()} device(s), from step {step}", flush=True)
    params = jax.device_put(params, replicated)
    data = batches(read_text(), options.batch, seed=[step, jax.process_index()])

    saved_at = reported_at = time.monotonic()
    reported_step = step
    while options.steps is None or step < options.steps:
        context, target = (jax.make_array_from_process_local_data(split, part) for part in next(data))
        params, loss = train_step(params, context, target, options.learning_rate)
        step += 1
        loss = float(loss)  # waits for the step, so that the times below are true

        now = time.monotonic()
        if leader and now - reported_at >= 2:
            rate = (step - reported_step) * options.batch * jax.process_count() / (now - reported_at)
            print(f"step {step}  loss {loss:.3f}  {rate:,.0f} samples/s", flush=True)
            reported_at, reported_step = now, step
        if leader and (save_now or now - saved_at >= options.save_every):
            save_now = False
            save(directory, step, params)
            saved_at = time.monotonic()
    if leader:
        save(directory, step, params)


if __name__ == "__main__":
    main()
