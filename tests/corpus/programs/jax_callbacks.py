# a step that prints and calls back
# jax
import jax
import jax.numpy as jnp
import numpy as np

seen = []


@jax.jit
def step(w, x):
    jax.debug.callback(lambda v: seen.append(float(v)), jnp.sum(x))
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


w = jnp.ones((4, 4))
for i in range(9):
    w = step(w, np.full((8, 4), i / 9, "float32"))
jax.effects_barrier()
print(float(w.sum()).hex(), len(seen))
truth(steps=9, samples=72, parameters=w.size)
