# any training step that differentiates jax.nn.relu
# jax quick
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.sum(jax.nn.relu(x @ w)))(w)


w = jnp.ones((4, 4))
for i in range(25):
    w = step(w, np.full((6, 4), i, "float32"))
print(float(w.sum()).hex())
truth(steps=25, samples=150, parameters=w.size)
