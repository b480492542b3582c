# data parallel by pmap (Flax ImageNet, older JAX examples)
# jax
import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.pmap, axis_name="batch")
def step(w, x, y):
    grad = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - 0.1 * jax.lax.pmean(grad, "batch")


n = jax.local_device_count()
w = jnp.zeros((n, 4, 2))
for i in range(11):
    w = step(w, np.full((n, 6, 4), i / 11, "float32"), np.ones((n, 6, 2), "float32"))
print(float(w.sum()).hex())
truth(steps=11, samples=66 * n)
