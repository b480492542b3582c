"""The programs of `labelled_models` and `labelled_libraries` in JAX: `python labelled_jax.py NAME SECONDS`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from labelled_loop import Clock, counted, small, wait_for_turn


def _jax_layers(width: int, count: int, dtype: Any) -> tuple[Any, Callable[[Any, Any], Any]]:
    """Weights, and the step that trains them on rows."""
    import jax
    import jax.numpy as jnp

    def loss(weights: Any, x: Any) -> Any:
        for weight in weights:
            x = jax.nn.relu(x @ weight)
        return x.astype(jnp.float32).mean()

    def step(weights: Any, x: Any) -> Any:
        return [one - 1e-4 * slope for one, slope in zip(weights, jax.grad(loss)(weights, x), strict=True)]

    keys = jax.random.split(jax.random.key(0), count)
    return [jax.random.normal(key, (width, width), dtype) * 0.02 for key in keys], step


def jax_elementwise(clock: Clock) -> None:
    import jax
    import jax.numpy as jnp

    wait_for_turn()

    @jax.jit
    def step(scale: Any, x: Any) -> Any:
        return scale - 1e-6 * jax.grad(lambda value: (jnp.tanh(x * value)).mean())(scale), x * 0.999

    scale, x = jnp.float32(1.0), jnp.ones(small(2**30, 2**12), jnp.float32)
    while not clock.over():
        for _ in range(10):
            scale, x = step(scale, x)
        jax.block_until_ready(scale)


def jax_scan(clock: Clock) -> None:
    """Fifty steps are one call."""
    import jax
    import jax.numpy as jnp

    wait_for_turn()
    width = small(4096, 32)
    weights, step = _jax_layers(width, 4, jnp.bfloat16)
    rows = jax.random.normal(jax.random.key(1), (width, width), jnp.bfloat16)

    @jax.jit
    def epoch(weights: Any) -> Any:
        return jax.lax.scan(lambda carry, _: (step(carry, rows), None), weights, length=50)[0]

    while not clock.over():
        weights = jax.block_until_ready(epoch(weights))


def jax_flax_bf16(clock: Clock) -> None:
    import jax
    import jax.numpy as jnp
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(6):
                x = x + linen.Dense(x.shape[-1], dtype=jnp.bfloat16)(
                    linen.gelu(linen.Dense(4 * x.shape[-1], dtype=jnp.bfloat16)(x))
                )
            return linen.Dense(10)(x)

    wait_for_turn()
    net, optimizer = Net(), optax.adamw(1e-4)
    x = jax.random.normal(jax.random.key(0), (small(16384, 8), small(4096, 32)), jnp.bfloat16)
    y = jnp.zeros(x.shape[0], jnp.int32)
    variables = net.init(jax.random.key(1), x)
    state = optimizer.init(variables)

    @jax.jit
    def step(variables: Any, state: Any) -> Any:
        def loss(variables: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(net.apply(variables, x), y).mean()

        updates, state = optimizer.update(jax.grad(loss)(variables), state, variables)
        return optax.apply_updates(variables, updates), state

    while not clock.over():
        for _ in range(5):
            variables, state = step(variables, state)
        jax.block_until_ready(variables)


def jax_host_loop(clock: Clock) -> None:
    """Python prepares each step for some milliseconds, while nothing runs on the chip."""
    import jax
    import jax.numpy as jnp

    wait_for_turn()
    weights, step = _jax_layers(small(1024, 32), 4, jnp.float32)
    compiled = jax.jit(step)
    x = jnp.ones((256, small(1024, 32)), jnp.float32)
    while not clock.over():
        sum(number * number for number in range(200_000))
        weights = jax.block_until_ready(compiled(weights, x))


def jax_starved(clock: Clock) -> None:
    """A generator that takes 50 ms for each batch."""
    import jax
    import jax.numpy as jnp
    import numpy

    wait_for_turn()

    def batches() -> Iterator[Any]:
        made = numpy.random.default_rng(0)
        while True:
            time.sleep(0.05)
            yield made.standard_normal((256, small(1024, 32)), dtype=numpy.float32)

    weights, step = _jax_layers(small(1024, 32), 4, jnp.float32)
    compiled = jax.jit(step)
    for x in batches():
        weights = jax.block_until_ready(compiled(weights, x))
        if clock.over():
            break


def jax_donated(clock: Clock) -> None:
    """Flax NNX, its state given away to each call."""
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx

    wait_for_turn()
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
