"""The programs of `labelled_libraries` in JAX: `python labelled_jax_libraries.py NAME SECONDS`."""

from __future__ import annotations

import sys
from typing import Any

from labelled_loop import Clock, counted, small, wait_for_line


def jax_donated(clock: Clock) -> None:
    """Flax NNX, its state given away to each call."""
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx

    wait_for_line()
    width = small(4096, 32)

    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            made = {"dtype": jnp.bfloat16, "rngs": rngs}
            self.layers = nnx.List([nnx.Linear(width, width, **made) for _ in range(8)])
            self.head = nnx.Linear(width, 10, **made)

        def __call__(self, x: Any) -> Any:
            for layer in self.layers:
                x = x + nnx.gelu(layer(x))
            return self.head(x)

    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adamw(1e-4), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(1), (small(16384, 8), width), jnp.bfloat16)
    y = jnp.zeros(len(x), jnp.int32)

    @nnx.jit(donate_argnums=(0, 1))
    def step(net: Any, optimizer: Any, x: Any, y: Any) -> Any:
        def loss(net: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(net(x).astype(jnp.float32), y).mean()

        value, slopes = nnx.value_and_grad(loss)(net)
        optimizer.update(net, slopes)
        return value

    steps = 0
    while not clock.over():
        for _ in range(5):
            value = step(net, optimizer, x, y)
            steps += 1
        jax.block_until_ready(value)
    counted(steps, steps * len(x))


if __name__ == "__main__":
    globals()[sys.argv[1]](Clock(float(sys.argv[2])))
